//! `windrow search`: shows ranked documents with the matching part of their text.

mod facets;
mod options;
mod pipeline;
mod result;
mod searcher;
mod snippet;

use std::io::{self, IsTerminal, Write as _};
use std::process::ExitCode;

use windrow_document::{ArrayBuf, DocumentBuf};
use windrow_file_query::{Query, TimeContext};

use crate::command_line::{Failure, Subcommand};
use facets::CountedField;
use options::{HELP, Options, parse};
use pipeline::build_pipeline;
use result::{OutputStyle, SearchResult};
use searcher::Searcher;

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
    let query = Query::parse(&options.query, &TimeContext::system());
    let query = query.map_err(|error| Failure::Usage(error.to_string()))?;
    if options.show_pipeline {
        print_pipeline(&match options.count_by {
            Some(field) => field.pipeline(&query, options.limit),
            None => build_pipeline(&query.to_operator(), options),
        });
        return Ok(ExitCode::SUCCESS);
    }
    let mut searcher = Searcher::open(&options.data_folder)?;
    if let Some(field) = options.count_by {
        let count = print_counts(&mut searcher, &query, field, options)?;
        return Ok(exit_code(count));
    }
    let mut count = print_results(&mut searcher, &query.to_operator(), options)?;
    if count == 0 && options.skip == 0 {
        count = print_best_of_some_words(&mut searcher, &query, options)?;
    }
    Ok(exit_code(count))
}

fn exit_code(results: usize) -> ExitCode {
    match results {
        0 => ExitCode::from(EXIT_NO_RESULTS),
        _ => ExitCode::SUCCESS,
    }
}

/// Prints how many documents have each value of a field. Returns how many values there are.
fn print_counts(
    searcher: &mut Searcher,
    query: &Query,
    field: CountedField,
    options: &Options,
) -> Result<usize, Failure> {
    let (mut output, mut count) = (io::stdout().lock(), 0);
    let pipeline = field.pipeline(query, options.limit);
    searcher.aggregate(&pipeline, &mut |reply| {
        // A write error means that the pipe was closed.
        count = field
            .write_counts(reply, options.json, &mut output)
            .unwrap_or(1);
        false
    })?;
    Ok(count)
}

/// Prints a stage a line, in extended JSON.
fn print_pipeline(pipeline: &ArrayBuf) {
    let stages = pipeline.as_array().iter();
    let stages: Vec<String> = stages
        .map(|stage| format!("  {}", stage.to_value()))
        .collect();
    // A write error means that the pipe was closed.
    let _ = writeln!(io::stdout(), "[\n{}\n]", stages.join(",\n"));
}

/// Prints the documents with the most of the words, if none has all. Says so on standard error.
fn print_best_of_some_words(
    searcher: &mut Searcher,
    query: &Query,
    options: &Options,
) -> Result<usize, Failure> {
    // Some documents have `found` words, and none has `missing` words.
    let (mut found, mut missing) = (0, query.words().len());
    while found + 1 < missing {
        let count = found.midpoint(missing);
        match query.to_relaxed_operator(count) {
            Some(operator) if has_results(searcher, &operator, options)? => found = count,
            _ => missing = count,
        }
    }
    let Some(operator) = query.to_relaxed_operator(found) else {
        return Ok(0);
    };
    let printed = print_results(searcher, &operator, options)?;
    eprintln!("windrow: no document has all words; these have at least {found} of them");
    Ok(printed)
}

fn has_results(
    searcher: &mut Searcher,
    operator: &DocumentBuf,
    options: &Options,
) -> Result<bool, Failure> {
    let mut is_found = false;
    searcher.aggregate(&build_pipeline(operator, options), &mut |_| {
        is_found = true;
        false
    })?;
    Ok(is_found)
}

/// Prints the results and returns how many there are.
fn print_results(
    searcher: &mut Searcher,
    operator: &DocumentBuf,
    options: &Options,
) -> Result<usize, Failure> {
    let mut output = io::stdout().lock();
    let style = output_style(options, output.is_terminal());
    let mut count = 0;
    searcher.aggregate(&build_pipeline(operator, options), &mut |document| {
        count += 1;
        let number = options.skip as usize + count;
        let written = SearchResult::new(document).write(&mut output, number, style);
        // A write error means that the pipe was closed, so the search ends.
        written.is_ok()
    })?;
    Ok(count)
}

fn output_style(options: &Options, is_terminal: bool) -> OutputStyle {
    if options.json {
        OutputStyle::Json
    } else if options.null {
        OutputStyle::Names("\0")
    } else if options.names_only {
        OutputStyle::Names("\n")
    } else if is_terminal && std::env::var_os("NO_COLOR").is_none() {
        OutputStyle::Colored
    } else {
        OutputStyle::Plain
    }
}
