//! The hidden command `windrow run-converter`: enters the sandbox and executes a converter.

use std::process::ExitCode;

use windrow_converters::{LaunchFailure, launch};

use crate::command_line::{Failure, Subcommand};

pub const RUN_CONVERTER: Subcommand = Subcommand {
    name: NAME,
    summary: None,
    run,
};

/// The name of the command.
pub const NAME: &str = "run-converter";

fn run(mut arguments: lexopt::Parser) -> Result<ExitCode, Failure> {
    let LaunchFailure { exit_code, reason } = launch(arguments.raw_args()?);
    eprintln!("{reason}");
    Ok(u8::try_from(exit_code).map_or(ExitCode::FAILURE, ExitCode::from))
}
