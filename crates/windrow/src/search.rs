//! `windrow search`: shows ranked documents with the matching part of their text.

mod options;

use std::io::{self, IsTerminal};
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use windrow_collection::{Engine, Namespace};
use windrow_document::{Document, DocumentBuf, doc};
use windrow_ingest::{DATABASE_NAME, StoreCollection};
use windrow_mql::filter::Filter;
use windrow_mql::projection::Projection;
use windrow_mql::sort::Sort;
use windrow_query::{Find, Snapshot, Uninterrupted};
use windrow_text::{Query, Sensitivity, TextVersion};

use crate::client::{Client, ClientError};
use crate::command_line::{Failure, Subcommand};
use crate::data_folder::DataFolder;
use crate::memory;
use crate::search_result::{OutputStyle, SearchResult};
use options::{HELP, Options, parse};

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

/// Receives the results in the order of their scores. Returns `false` to end the search.
type ResultSink<'t> = dyn FnMut(Document<'_>) -> bool + 't;

fn execute_search(options: &Options, sink: &mut ResultSink<'_>) -> Result<(), Failure> {
    let command = find_command(options);
    let command = command.as_document();
    match DataFolder::open(&options.data_folder, memory::default_memory_bytes())? {
        DataFolder::Local(engine) => search_engine(&engine, command, &options.data_folder, sink),
        DataFolder::Server(address) => search_server(address, command, &options.data_folder, sink),
    }
}

/// The search as a `find` command.
fn find_command(options: &Options) -> DocumentBuf {
    let score = || doc! { "$meta": "textScore" };
    doc! {
        "find": (StoreCollection::Documents.name()),
        "filter": {
            "$text": { "$search": (options.words.clone()), "$language": (options.language.name()) }
        },
        "projection": {
            "path": 1, "inner": 1, "title": 1, "kind": 1, "language": 1, "text": 1,
            "score": (score())
        },
        "sort": { "score": (score()) },
        "limit": (i64::from(options.limit)),
        "$db": DATABASE_NAME,
    }
}

fn search_engine(
    engine: &Arc<Engine>,
    command: Document<'_>,
    data_folder: &Path,
    sink: &mut ResultSink<'_>,
) -> Result<(), Failure> {
    let namespace = Namespace::new(DATABASE_NAME, StoreCollection::Documents.name())
        .map_err(Failure::runtime)?;
    let collection = engine
        .collection(&namespace)
        .ok_or_else(|| not_indexed_failure(data_folder))?;
    let source = Snapshot::of(&collection).map_err(Failure::runtime)?;
    let find = parse_find(command).map_err(Failure::runtime)?;
    let mut cursor = find.open(&source).map_err(Failure::runtime)?;
    while let Some(found) = cursor.next(&Uninterrupted).map_err(Failure::runtime)? {
        if !sink(found.as_document()) {
            break;
        }
    }
    Ok(())
}

/// Parses the command for the planner.
fn parse_find(command: Document<'_>) -> Result<Find, windrow_mql::Error> {
    let part = |name: &str| {
        let part = command.get(name).and_then(|part| part.as_document());
        part.unwrap_or(Document::EMPTY)
    };
    let filter = Filter::parse(part("filter"))?;
    let limit = command.get("limit").and_then(|limit| limit.as_whole());
    Ok(Find {
        projection: Some(Projection::parse(part("projection"), &filter)?),
        sort: Some(Sort::parse(part("sort"))?),
        limit: limit.and_then(|limit| u64::try_from(limit).ok()),
        ..Find::of(filter)
    })
}

fn search_server(
    address: SocketAddr,
    command: Document<'_>,
    data_folder: &Path,
    sink: &mut ResultSink<'_>,
) -> Result<(), Failure> {
    const INDEX_NOT_FOUND: i32 = 27;
    let mut client = Client::connect(address).map_err(Failure::runtime)?;
    match client.for_each_document(command, sink) {
        Ok(()) => Ok(()),
        Err(ClientError::Command { code, .. }) if code == INDEX_NOT_FOUND => {
            Err(not_indexed_failure(data_folder))
        }
        Err(error) => Err(Failure::runtime(error)),
    }
}

fn not_indexed_failure(data_folder: &Path) -> Failure {
    let data_folder = data_folder.display();
    Failure::Runtime(format!(
        "no files are indexed in {data_folder}; run `windrow index FOLDER --data {data_folder}` first"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_is_parsed_as_a_find_command() {
        let find =
            parse_find(find_command(&Options::for_test("bread -white")).as_document()).unwrap();
        assert_eq!(find.limit, Some(10));
        assert!(find.sort.unwrap().needs_text_score());
        assert!(find.projection.unwrap().needs_text_score());
        assert_eq!(find.filter.text().unwrap().search, "bread -white");
    }
}
