//! The program `windrow`: the command line, and the wiring of the crates.
//!
//! `windrow COMMAND …`. A subcommand is a file and an entry of [`SUBCOMMANDS`]. It parses its
//! arguments with `lexopt`, in `COMMAND/options.rs`, and returns an exit code or a [`Failure`].
//!
//! Exit codes: 0 is success, 1 failure, 2 an invalid command line. `search` and `serve` have
//! additional ones.
//!
//! The program uses the allocator of the system. Processor time in seconds on 2 cores, median of
//! two runs, for inserting 240,000 documents with 40 multikey entries each, and for building a text
//! index on them: system 5.2 and 2.8, jemalloc 4.7 and 2.9, mimalloc 6.6 and 3.3, with the same
//! memory. No other allocator is clearly better.
//!
//! Modules in reading order:
//!
//! - `command_line`, `byte_size`, `memory`: shared by the subcommands
//! - `allocator`: limits the memory of the C library's allocator
//! - `secret_file`: files with keys, passwords and tokens
//! - `address_file`, `serve`: `windrow serve`; `serve/option_table` is the table of its options
//! - `certificate`: `windrow certificate`
//! - `encryption`: keys of encrypted data folders, `windrow encryption`
//! - `data_folder`, `client`, `server_store`: access to a data folder, with or without a server
//! - `folder_server`: serves the data folder of another command while it runs
//! - `config`, `index`, `progress_bar`, `run_converter`, `extract_worker`: `windrow index`
//! - `search`: `windrow search`; `display_text`: sanitizes text for terminals
//! - `mcp`: `windrow mcp`
//! - `server_target`: the options that name a server; `server_report`, `top`: reports about a
//!   server
//! - `page`: the web page of `serve` and `index`
//! - `status`, `failures`: reports about indexed files or a server
//! - `doctor`: checks of the system, the configuration and the data folder
//! - `help_page`, `completion`, `manual`: shell completions and manual pages, generated from the
//!   help texts

#![deny(missing_docs)]

mod address_file;
mod allocator;
mod byte_size;
mod certificate;
mod client;
mod command_line;
mod completion;
mod config;
mod data_folder;
mod data_sets;
mod display_text;
mod doctor;
mod encryption;
mod extract_worker;
mod failures;
mod folder_server;
mod help_page;
mod index;
mod manual;
mod mcp;
mod memory;
mod output_format;
mod page;
mod progress_bar;
mod progress_line;
mod run_converter;
mod search;
mod secret_file;
mod serve;
mod server_report;
mod server_store;
mod server_target;
mod status;
mod store;
mod top;

use std::process::ExitCode;

use command_line::{Failure, Subcommand, format_help, reject_unknown_subcommand};
use lexopt::prelude::*;

/// In the order of `--help`.
const SUBCOMMANDS: &[&Subcommand] = &[
    &serve::SERVE,
    &index::INDEX,
    &search::SEARCH,
    &mcp::MCP,
    &status::STATUS,
    &top::TOP,
    &failures::FAILURES,
    &certificate::CERTIFICATE,
    &encryption::ENCRYPTION,
    &store::STORE,
    &doctor::DOCTOR,
    &config::CONFIG,
    &completion::COMPLETION,
    &manual::MAN,
    &extract_worker::EXTRACT_WORKER,
    &run_converter::RUN_CONVERTER,
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
        None => Err(Failure::usage(
            "a command is missing; `windrow --help` shows them",
        )),
        Some(Short('h') | Long("help")) => {
            print!("{}", format_help(SUBCOMMANDS));
            Ok(ExitCode::SUCCESS)
        }
        Some(Short('V') | Long("version")) => {
            println!("windrow {}", env!("CARGO_PKG_VERSION"));
            Ok(ExitCode::SUCCESS)
        }
        Some(Value(name)) => {
            let found = SUBCOMMANDS.iter().find(|it| name == it.name);
            let subcommand = found.ok_or_else(|| reject_unknown_subcommand(&name, SUBCOMMANDS))?;
            (subcommand.run)(arguments)
        }
        Some(other) => Err(other.unexpected().into()),
    }
}
