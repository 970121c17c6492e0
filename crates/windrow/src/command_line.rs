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

/// Why a command failed. The text is a sentence for standard error.
#[derive(Debug, PartialEq)]
pub enum Failure {
    /// The command line is invalid.
    Usage(String),
    /// The command could not be completed.
    Run(String),
}

impl Failure {
    /// The exit code of the failure.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Failure::Run(_) => 1,
            Failure::Usage(_) => 2,
        })
    }

    /// The failure of a missing argument.
    pub fn missing(option: &str, command: &str) -> Failure {
        Failure::Usage(format!(
            "{option} is missing; `windrow {command} --help` shows what it takes"
        ))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Usage(why) | Failure::Run(why) => formatter.write_str(why),
        }
    }
}

impl From<lexopt::Error> for Failure {
    fn from(error: lexopt::Error) -> Failure {
        Failure::Usage(error.to_string())
    }
}

/// The output of `windrow --help`.
pub fn help(subcommands: &[&Subcommand]) -> String {
    let mut commands = String::new();
    for one in subcommands {
        if let Some(summary) = one.summary {
            commands.push_str(&format!("  {:<9} {summary}\n", one.name));
        }
    }
    format!(
        "Windrow is a document database that speaks MongoDB's wire protocol.

Usage: windrow COMMAND [OPTION…]

Commands:
{commands}
Options:
  -h, --help     this text; `windrow COMMAND --help` explains a command
  -V, --version  the version

Examples:
  windrow serve --data ./data
  windrow index ~/Documents --data ./data
  windrow search 'velvet -barge' --data ./data
"
    )
}

/// The failure of an unknown subcommand.
pub fn unknown(name: &OsStr, subcommands: &[&Subcommand]) -> Failure {
    let shown = subcommands.iter().filter(|one| one.summary.is_some());
    let names: Vec<&str> = shown.map(|one| one.name).collect();
    Failure::Usage(format!(
        "there is no command {name:?}; there is {}",
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
        Err(said) => {
            let Err(Failure::Usage(why)) = found else {
                panic!("{arguments:?}: {found:?}");
            };
            assert!(why.contains(said), "{arguments:?}: {why}");
        }
    }
}
