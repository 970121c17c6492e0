//! Runs a search as a `find` command with `$text`. The engine and a server run the same command, so
//! both return the same results.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use windrow_collection::{Engine, Namespace};
use windrow_document::{Document, DocumentBuf, doc};
use windrow_ingest::{DATABASE_NAME, StoreCollection};
use windrow_mql::filter::Filter;
use windrow_mql::projection::Projection;
use windrow_mql::sort::Sort;
use windrow_query::{Find, Snapshot, Uninterrupted};

use super::options::Options;
use crate::client::{Client, ClientError};
use crate::command_line::Failure;
use crate::data_folder::DataFolder;
use crate::memory;

/// Receives the results in the order of their scores. Returns `false` to end the search.
pub type ResultSink<'t> = dyn FnMut(Document<'_>) -> bool + 't;

/// Searches the data folder, in this process or through the server that has it open.
pub fn execute_search(options: &Options, sink: &mut ResultSink<'_>) -> Result<(), Failure> {
    let command = build_find_command(options);
    let command = command.as_document();
    match DataFolder::open(&options.data_folder, memory::default_memory_bytes())? {
        DataFolder::Local(engine) => search_engine(&engine, command, &options.data_folder, sink),
        DataFolder::Server(address) => search_server(address, command, &options.data_folder, sink),
    }
}

/// The search as a `find` command.
fn build_find_command(options: &Options) -> DocumentBuf {
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

/// Creates the failure of a search in a data folder without indexed files.
pub fn not_indexed_failure(data_folder: &Path) -> Failure {
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
        let find = parse_find(build_find_command(&Options::for_test("bread -white")).as_document())
            .unwrap();
        assert_eq!(find.limit, Some(10));
        assert!(find.sort.unwrap().needs_text_score());
        assert!(find.projection.unwrap().needs_text_score());
        assert_eq!(find.filter.text().unwrap().search, "bread -white");
    }
}
