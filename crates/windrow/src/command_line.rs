//! Shared by all subcommands: the type of their table, help, and failures.

use std::ffi::OsStr;
use std::fmt;
use std::process::ExitCode;

/// A subcommand.
pub struct Subcommand {
    /// The name on the command line.
    pub name: &'static str,
    /// A phrase for the list of commands. `None` hides the command.
    pub summary: Option<&'static str>,
    /// Parses the arguments after the name and runs the command.
    pub run: fn(lexopt::Parser) -> Result<ExitCode, Failure>,
}

/// The reason why a command failed. The text is a sentence for standard error.
#[derive(Debug, PartialEq)]
pub enum Failure {
    /// The command line is invalid.
    Usage(String),
    /// The command could not be completed.
    Runtime(String),
    /// The command failed for a reason with its own exit code.
    WithCode(u8, String),
}

impl Failure {
    /// Returns the exit code of the failure.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Failure::Runtime(_) => 1,
            Failure::Usage(_) => 2,
            Failure::WithCode(code, _) => *code,
        })
    }

    /// Creates the failure of an invalid command line. `reason` is a sentence.
    pub fn usage(reason: &str) -> Failure {
        Failure::Usage(reason.to_owned())
    }

    /// Creates the failure of a command because of `error`.
    pub fn runtime(error: impl fmt::Display) -> Failure {
        Failure::Runtime(error.to_string())
    }

    /// Creates the failure of a missing argument.
    pub fn missing_argument(option: &str, command: &str) -> Failure {
        Failure::Usage(format!(
            "{option} is missing; see `windrow {command} --help`"
        ))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Usage(reason) | Failure::Runtime(reason) | Failure::WithCode(_, reason) => {
                formatter.write_str(reason)
            }
        }
    }
}

impl From<lexopt::Error> for Failure {
    fn from(error: lexopt::Error) -> Failure {
        Failure::Usage(error.to_string())
    }
}

/// The output of `windrow --help`.
pub fn format_help(subcommands: &[&Subcommand]) -> String {
    let mut commands = String::new();
    for subcommand in subcommands {
        if let Some(summary) = subcommand.summary {
            commands.push_str(&format!("  {:<12} {summary}\n", subcommand.name));
        }
    }
    format!(
        "Windrow is a document database that speaks MongoDB's wire protocol.

Usage: windrow COMMAND [OPTION…]

Commands:
{commands}
Options:
  -h, --help     show this help; `windrow COMMAND --help` shows the options of a command
  -V, --version  show the version

Examples:
  windrow serve --data ./data
  windrow index ~/Documents --data ./data
  windrow search 'velvet -barge' --data ./data
"
    )
}

/// Creates the failure of an unknown subcommand.
pub fn reject_unknown_subcommand(name: &OsStr, subcommands: &[&Subcommand]) -> Failure {
    let shown = subcommands
        .iter()
        .filter(|subcommand| subcommand.summary.is_some());
    let names: Vec<&str> = shown.map(|subcommand| subcommand.name).collect();
    Failure::Usage(format!(
        "there is no command {name:?}; the commands are {}",
        names.join(", ")
    ))
}

/// Asserts that `parse` returns these options, or a usage failure that contains this text.
#[cfg(test)]
pub fn check_parsed<T: PartialEq + std::fmt::Debug>(
    parse: fn(lexopt::Parser) -> Result<Option<T>, Failure>,
    arguments: &[&str],
    expected: Result<T, &str>,
) {
    let found = parse(lexopt::Parser::from_args(arguments));
    match expected {
        Ok(options) => assert_eq!(found, Ok(Some(options)), "{arguments:?}"),
        Err(expected) => {
            let Err(Failure::Usage(reason)) = found else {
                panic!("{arguments:?}: {found:?}");
            };
            assert!(reason.contains(expected), "{arguments:?}: {reason}");
        }
    }
}
