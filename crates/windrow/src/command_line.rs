//! What all sub-commands share: their table's rows, help, and failures.

use std::ffi::OsStr;
use std::fmt;
use std::process::ExitCode;

/// A sub-command.
pub struct Subcommand {
    pub name: &'static str,
    /// Half a sentence for the list of commands; none where the command is not for people.
    pub summary: Option<&'static str>,
    /// Reads the arguments behind its name and does it.
    pub run: fn(lexopt::Parser) -> Result<ExitCode, Failure>,
}

/// Why a command ended without doing what it was asked for; a sentence for standard error.
#[derive(Debug, PartialEq)]
pub enum Failure {
    /// The command line is wrong.
    Usage(String),
    /// It could not be done.
    Run(String),
}

impl Failure {
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Failure::Run(_) => 1,
            Failure::Usage(_) => 2,
        })
    }

    /// An option that the command cannot do without.
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

/// What `windrow --help` prints.
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

/// The failure of a name that is no sub-command's.
pub fn unknown(name: &OsStr, subcommands: &[&Subcommand]) -> Failure {
    let shown = subcommands.iter().filter(|one| one.summary.is_some());
    let names: Vec<&str> = shown.map(|one| one.name).collect();
    Failure::Usage(format!(
        "there is no command {name:?}; there is {}",
        names.join(", ")
    ))
}

/// For the tests of sub-commands: what their `parse` makes of a command line, or what stands in its
/// failure.
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
