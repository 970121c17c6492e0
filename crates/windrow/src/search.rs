//! `windrow search`: shows ranked documents with the matching part of their text.

mod find;
mod options;
mod result;

use std::io::{self, IsTerminal};
use std::process::ExitCode;

use windrow_text::{Query, Sensitivity, TextVersion};

use crate::command_line::{Failure, Subcommand};
use find::{execute_search, not_indexed_failure};
use options::{HELP, Options, parse};
use result::{OutputStyle, SearchResult};

pub const SEARCH: Subcommand = Subcommand {
    name: "search",
    summary: Some("search indexed files"),
    run,
};

const EXIT_NO_RESULTS: u8 = 1;
const EXIT_FAILURE: u8 = 2;

fn run(arguments: lexopt::Parser) -> Result<ExitCode, Failure> {
    match parse(arguments) {
        Ok(None) => {
            print!("{HELP}");
            Ok(ExitCode::SUCCESS)
        }
        Ok(Some(options)) => {
            Ok(search(&options).unwrap_or_else(|failure| report_failure(&failure)))
        }
        Err(failure) => Ok(report_failure(&failure)),
    }
}

/// Exit code 1 means that nothing matched, as in other search commands. Failures have code 2.
fn report_failure(failure: &Failure) -> ExitCode {
    eprintln!("windrow: {failure}");
    ExitCode::from(EXIT_FAILURE)
}

fn search(options: &Options) -> Result<ExitCode, Failure> {
    if !options.data_folder.is_dir() {
        return Err(not_indexed_failure(&options.data_folder));
    }
    let query = Query::parse(
        &options.words,
        options.language,
        Sensitivity::NONE,
        TextVersion::V3,
    );
    let mut output = io::stdout().lock();
    let style = if options.json {
        OutputStyle::Json
    } else if output.is_terminal() && std::env::var_os("NO_COLOR").is_none() {
        OutputStyle::Colored
    } else {
        OutputStyle::Plain
    };
    let mut count = 0;
    execute_search(options, &mut |document| {
        count += 1;
        let written = SearchResult::new(document, &query).write(&mut output, count, style);
        // A write error means that the pipe was closed, so the search ends.
        written.is_ok()
    })?;
    if count == 0 {
        return Ok(ExitCode::from(EXIT_NO_RESULTS));
    }
    Ok(ExitCode::SUCCESS)
}
