//! W3 (iiBench): a single writer inserts documents of 100 bytes with three compound indexes, whose
//! keys arrive in random order.

use crate::bson::{self, Document};
use crate::client::Connection;
use crate::corpus::Corpus;
use crate::corpus::registers::{INDEXES, Registers};
use crate::error::BenchError;
use crate::insertion::InsertionWorkload;
use crate::load;
use crate::options::Options;

const DOCUMENTS: u64 = 20_000_000;
const BATCH: u64 = 1_000;

/// Runs the workload.
pub fn run(options: &Options) -> Result<(), BenchError> {
    let corpus = Registers { seed: options.seed };
    InsertionWorkload {
        workload: "w3",
        corpus: &corpus,
        entries: &corpus,
        indexes: &INDEXES,
        documents: options.documents_of(DOCUMENTS).max(10),
        batch: BATCH,
        find: &|connection, number| find_by_price(connection, &corpus, number),
        targets: None,
    }
    .run(options)
}

fn find_by_price(
    connection: &mut Connection,
    corpus: &Registers,
    number: u64,
) -> Result<(), BenchError> {
    let mut bytes = Vec::new();
    corpus.batch(number, number + 1, &mut bytes);
    let price = Document::from_prefix(&bytes).and_then(|item| item.number("price"));
    let filter = bson::build_document(|filter| filter.double("price", price.unwrap_or_default()));
    load::find_by_index(connection, &filter, "price", &bytes)
}
