//! `windrow search`: shows documents in the order of relevance, with matching parts of their text.
//!
//! Modules in reading order:
//!
//! - `help`, `options`: the command line
//! - `searcher`, `similar`, `stored_text`: run the searches of `windrow-file-search`
//! - `result`, `template`, `output`: format the results
//! - `opener`: opens a result
//! - `interactive`: searches while the user types

mod help;
mod interactive;
mod opener;
mod options;
mod output;
mod result;
mod searcher;
mod similar;
mod stored_text;
mod template;

use std::io::{self, Write as _};
use std::process::ExitCode;

use windrow_document::{ArrayBuf, doc};
use windrow_file_search::{
    CountedField, DocumentSource as _, ParsedQuery, QueryReader, ResultPage, ResultText,
    SavedSearches, SearchResult, Target, ValueCount, append_history, find, read_history,
};

use crate::command_line::{Failure, Subcommand};
use crate::folder_server::{Clients, serve_during};
use help::HELP;
use interactive::interact;
use options::{Action, Options, Output, parse};
use output::ResultWriter;
use result::escape_control;
use similar::similar_to_file;

use searcher::OpenedSearcher;
pub use searcher::{Searcher, not_indexed_failure};
pub use stored_text::read_stored_text;

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
            Ok(execute(&options).unwrap_or_else(|failure| report_failure(&failure)))
        }
        Err(failure) => Ok(report_failure(&failure)),
    }
}

/// Exit code 1 means that nothing matched, as in grep. Failures have code 2.
fn report_failure(failure: &Failure) -> ExitCode {
    eprintln!("windrow: {failure}");
    ExitCode::from(EXIT_FAILURE)
}

fn exit_code(results: usize) -> ExitCode {
    match results {
        0 => ExitCode::from(EXIT_NO_RESULTS),
        _ => ExitCode::SUCCESS,
    }
}

fn execute(options: &Options) -> Result<ExitCode, Failure> {
    let count = match options.action {
        Action::ListSaved => list_saved(options)?,
        Action::ListHistory => list_history(options)?,
        _ => search(options)?,
    };
    Ok(exit_code(count))
}

/// Prints the saved searches. Returns their number.
fn list_saved(options: &Options) -> Result<usize, Failure> {
    let saved = SavedSearches::open(&options.data_folder)?;
    let column = |name, value| ListColumn { name, value };
    let rows = saved
        .iter()
        .map(|(name, query)| [column("name", name), column("query", query)]);
    Ok(print_list(rows, options))
}

/// Prints the search history. Returns the number of its entries.
fn list_history(options: &Options) -> Result<usize, Failure> {
    let limit = options.page.limit as usize;
    let searches = read_history(&options.data_folder, limit)?;
    let rows = searches.iter();
    let rows = rows.map(|(time, query)| {
        [
            ListColumn {
                name: "time",
                value: time,
            },
            ListColumn {
                name: "query",
                value: query,
            },
        ]
    });
    Ok(print_list(rows, options))
}

/// A column of a printed list.
struct ListColumn<'n> {
    name: &'static str,
    value: &'n str,
}

/// Prints a list of two columns. Returns the number of rows.
fn print_list<'n>(rows: impl Iterator<Item = [ListColumn<'n>; 2]>, options: &Options) -> usize {
    let (mut output, mut count) = (io::stdout().lock(), 0);
    for [first, second] in rows {
        count += 1;
        // A write error means that the pipe was closed.
        let _ = match options.output {
            Output::Json => writeln!(
                output,
                "{}",
                doc! { (first.name): (first.value), (second.name): (second.value) }
            ),
            _ => writeln!(output, "{}\t{}", first.value, second.value),
        };
    }
    count
}

/// Runs a search. Returns the number of results.
fn search(options: &Options) -> Result<usize, Failure> {
    let reader = QueryReader::open(&options.data_folder, options.synonyms.as_deref())?;
    if options.action == Action::Interact {
        return search_interactively(reader, options).map(|()| 1);
    }
    let parsed = if options.query.is_empty() && options.similar.is_some() {
        None
    } else {
        Some(reader.parse(&options.query)?)
    };
    let mut searcher = Searcher::open(&options.data_folder)?;
    remember(options)?;
    for note in parsed.iter().flat_map(|parsed| &parsed.notes) {
        eprintln!("windrow: {}", escape_control(note));
    }
    let own_operator = parsed.as_ref().map(|parsed| parsed.query.to_operator());
    let target = match (&options.similar, own_operator) {
        (Some(file), restriction) => similar_to_file(&mut searcher, file, restriction)?,
        (None, operator) => Target::new(operator.unwrap_or_default()),
    };
    match options.action {
        Action::ShowPipeline => {
            print_pipeline(&target.pipeline(&options.page));
            Ok(1)
        }
        Action::CountBy(field) => print_counts(&mut searcher, &target, field, options),
        Action::Open(number) => open(&mut searcher, &target, number, options),
        _ => {
            let query = parsed.filter(|_| options.similar.is_none());
            show(&mut searcher, &target, query.as_ref(), options)
        }
    }
}

/// Searches while the user types. Other commands can use the data folder meanwhile.
fn search_interactively(reader: QueryReader, options: &Options) -> Result<(), Failure> {
    let OpenedSearcher { searcher, engine } = Searcher::open_with_engine(&options.data_folder)?;
    let interact = || interact(reader, searcher, options);
    match engine {
        Some(engine) => serve_during(
            &engine,
            &options.data_folder,
            Clients::OwnCommands,
            None,
            interact,
        ),
        None => interact(),
    }
}

/// Saves the query, and appends it to the history.
fn remember(options: &Options) -> Result<(), Failure> {
    if let Some(name) = &options.save {
        SavedSearches::open(&options.data_folder)?.save(name, &options.query)?;
        eprintln!(
            "windrow: saved; @{name} in a query stands for {:?}",
            options.query
        );
    }
    let is_search = !options.query.is_empty() && options.action != Action::ShowPipeline;
    if is_search && !options.no_history {
        append_history(&options.data_folder, &options.query);
    }
    Ok(())
}

/// Prints the results and suggestions of a search. Returns the number of results.
fn show(
    searcher: &mut Searcher,
    target: &Target,
    parsed: Option<&ParsedQuery>,
    options: &Options,
) -> Result<usize, Failure> {
    let mut writer = ResultWriter::new(options);
    let found = find(
        searcher,
        target,
        parsed,
        &options.page,
        &mut |result, number| {
            // A write error means that the pipe was closed, so the search ends.
            writer.write(&result, number).is_ok()
        },
    )?;
    if let Some(suggestion) = &found.suggestion {
        writer.write_suggestion(suggestion);
    }
    for note in found.notes() {
        eprintln!("windrow: {note}");
    }
    Ok(found.count)
}

/// Prints the number of documents for each value of a field. Returns the number of values.
fn print_counts(
    searcher: &mut Searcher,
    target: &Target,
    field: CountedField,
    options: &Options,
) -> Result<usize, Failure> {
    let limit = options.page.limit;
    let reply = searcher.first(&field.pipeline(&target.operator, limit))?;
    let counts = reply.map(|reply| field.counts(reply.as_document(), limit));
    let counts = counts.unwrap_or_default();
    let mut output = io::stdout().lock();
    for ValueCount { value, count } in &counts {
        // A write error means that the pipe was closed.
        let _ = match options.output {
            Output::Json => {
                writeln!(
                    output,
                    "{}",
                    doc! { "value": (value.as_str()), "count": (*count) }
                )
            }
            _ => writeln!(output, "{count:8}  {value}"),
        };
    }
    Ok(counts.len())
}

/// Prints the stages in Extended JSON, one per line.
fn print_pipeline(pipeline: &ArrayBuf) {
    let stages = pipeline.as_array().iter();
    let stages: Vec<String> = stages
        .map(|stage| format!("  {}", stage.to_value()))
        .collect();
    // A write error means that the pipe was closed.
    let _ = writeln!(io::stdout(), "[\n{}\n]", stages.join(",\n"));
}

/// Opens the file of a result. Returns 0 if the result does not exist.
fn open(
    searcher: &mut Searcher,
    target: &Target,
    number: u32,
    options: &Options,
) -> Result<usize, Failure> {
    let page = ResultPage {
        skip: options.page.skip.saturating_add(number - 1),
        limit: 1,
        text: ResultText::None,
        ..options.page
    };
    let Some(document) = searcher.first(&target.pipeline(&page))? else {
        eprintln!("windrow: there is no result {number}");
        return Ok(0);
    };
    let result = SearchResult::new(document.as_document());
    println!("{}", opener::open_result(&result)?);
    Ok(1)
}
