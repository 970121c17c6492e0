//! W2: a single writer inserts documents with 100 URIs and a multikey index, so each document adds
//! 100 keys in random order. `--find-every 100` runs a find by URI between the batches.

use crate::bson::{self, Document, Value};
use crate::client::Connection;
use crate::corpus::Corpus;
use crate::corpus::weather::Weather;
use crate::error::BenchError;
use crate::insertion::InsertionWorkload;
use crate::load;
use crate::options::Options;

const DOCUMENTS: u64 = 200_000;
const BATCH: u64 = 100;
const INDEX: &str = r#"{"key": {"URI": 1}, "name": "URI_1"}"#;

/// Runs the workload.
pub fn run(options: &Options) -> Result<(), BenchError> {
    let corpus = Weather::new(options.seed);
    InsertionWorkload {
        workload: "w2",
        corpus: &corpus,
        entries: &corpus,
        indexes: &[INDEX],
        documents: options.documents_of(DOCUMENTS).max(10),
        batch: BATCH,
        find: &|connection, number| find_by_uri(connection, &corpus, number),
        targets: Some((0.8, 4_000.0)),
    }
    .run(options)
}

/// Finds a document by one of its URIs, with the index.
fn find_by_uri(
    connection: &mut Connection,
    corpus: &Weather,
    number: u64,
) -> Result<(), BenchError> {
    let mut bytes = Vec::new();
    corpus.batch(number, number + 1, &mut bytes);
    let Some(Value::String(uri)) =
        Document::from_prefix(&bytes).and_then(|item| item.get("URI.57"))
    else {
        return Err(BenchError::Server("a document without URIs".into()));
    };
    let filter = bson::build_document(|filter| filter.string("URI", uri));
    load::find_by_index(connection, &filter, "URI_1", &bytes)
}
