//! Windrow's program: the command line, and the wiring of the parts.
//!
//! `windrow COMMAND …`. A sub-command is a file and a line in [`SUBCOMMANDS`]; it reads its own
//! arguments with `lexopt` and answers with an exit code or a [`Failure`].
//!
//! Exit codes: 0 done, 1 it could not be done, 2 the command line is wrong.
//!
//! The allocator is the system's. Measured on 2 cores, seconds of processor time for inserting 240,000
//! documents with 40 multikey entries each, then for a text index on them, medians of two: system
//! 5.2 and 2.8, jemalloc 4.7 and 2.9, mimalloc 6.6 and 3.3, at the same memory: no reason for another.
//!
//! Reading order: `command_line`, `bytes`, `memory`, `serve`, `running`; `index`, `progress`,
//! `worker`, `search`, `found`, `folder`, `client`,
//! `server_store`.

mod bytes;
mod client;
mod command_line;
mod folder;
mod found;
mod index;
mod memory;
mod progress;
mod running;
mod search;
mod serve;
mod server_store;
mod worker;

use std::process::ExitCode;

use command_line::{Failure, Subcommand, help, unknown};
use lexopt::prelude::*;

/// In the order in which `--help` shows them.
const SUBCOMMANDS: &[&Subcommand] = &[
    &serve::SERVE,
    &index::INDEX,
    &search::SEARCH,
    &worker::WORKER,
];

fn main() -> ExitCode {
    match run(lexopt::Parser::from_env()) {
        Ok(code) => code,
        Err(failure) => {
            eprintln!("windrow: {failure}");
            failure.exit_code()
        }
    }
}

fn run(mut arguments: lexopt::Parser) -> Result<ExitCode, Failure> {
    match arguments.next()? {
        None => Err(Failure::Usage(
            "a command is missing; `windrow --help` shows them".to_owned(),
        )),
        Some(Short('h') | Long("help")) => {
            print!("{}", help(SUBCOMMANDS));
            Ok(ExitCode::SUCCESS)
        }
        Some(Short('V') | Long("version")) => {
            println!("windrow {}", env!("CARGO_PKG_VERSION"));
            Ok(ExitCode::SUCCESS)
        }
        Some(Value(name)) => {
            let found = SUBCOMMANDS.iter().find(|one| name == one.name);
            let subcommand = found.ok_or_else(|| unknown(&name, SUBCOMMANDS))?;
            (subcommand.run)(arguments)
        }
        Some(other) => Err(other.unexpected().into()),
    }
}
