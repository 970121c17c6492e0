//! Feeding a corpus to a server, and seeing that it arrived.

use std::io::Write;
use std::time::Instant;

use crate::bson::{Document, Value, Writer};
use crate::client::{Connection, insert_message};
use crate::corpus::Corpus;
use crate::error::BenchError;
use crate::report::{HASH_START, hash};

pub const DATABASE: &str = "bench";
pub const COLLECTION: &str = "documents";
const SAMPLES: u64 = 100;

/// Inserts documents `first` to `end` in batches over one connection; returns the seconds it took.
pub fn insert(
    connection: &mut Connection,
    corpus: &dyn Corpus,
    (first, end): (u64, u64),
    batch: u64,
) -> Result<f64, BenchError> {
    let start = Instant::now();
    let mut documents = Vec::new();
    let mut number = first;
    while number < end {
        let next = (number + batch).min(end);
        corpus.batch(number, next, &mut documents);
        connection.succeed(&insert_message(DATABASE, COLLECTION, &documents, false))?;
        number = next;
    }
    Ok(start.elapsed().as_secs_f64())
}

/// Inserts all in ten stretches; returns the documents/s of each.
pub fn insert_by_tenths(
    connection: &mut Connection,
    corpus: &dyn Corpus,
    documents: u64,
    batch: u64,
) -> Result<Vec<f64>, BenchError> {
    let stretch = |tenth: u64| (documents * tenth / 10, documents * (tenth + 1) / 10);
    (0..10)
        .map(stretch)
        .map(|(first, end)| {
            let seconds = insert(connection, corpus, (first, end), batch)?;
            let rate = (end - first) as f64 / seconds;
            eprintln!("  {end:>9} documents, {rate:>9.0} documents/s");
            Ok(rate)
        })
        .collect()
}

/// Writes all documents one after another, for a baseline.
pub fn feed(corpus: &dyn Corpus, documents: u64, out: &mut impl Write) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    for number in 0..documents {
        corpus.batch(number, number + 1, &mut bytes);
        out.write_all(&bytes)?;
    }
    Ok(())
}

/// Makes one index and waits until it is ready.
pub fn create_index(
    connection: &mut Connection,
    name: &str,
    key: impl FnOnce(&mut Writer),
    more: impl FnOnce(&mut Writer),
) -> Result<(), BenchError> {
    let made = connection.run(DATABASE, |one| {
        one.string("createIndexes", COLLECTION);
        one.array("indexes", |list| {
            list.document("0", |index| {
                index.document("key", key);
                index.string("name", name);
                more(index);
            });
        });
    });
    made.map(|_| ())
}

/// Counts the documents, reads some of them back by `_id`, and returns a hash of them.
pub fn verify(
    connection: &mut Connection,
    corpus: &dyn Corpus,
    documents: u64,
) -> Result<u64, BenchError> {
    let count = connection
        .run(DATABASE, |one| one.string("count", COLLECTION))?
        .number("n");
    if count != Some(documents as f64) {
        return Err(BenchError::Server(format!(
            "{count:?} of {documents} documents are there"
        )));
    }
    let mut sum = HASH_START;
    let mut expected = Vec::new();
    for place in 0..SAMPLES.min(documents) {
        let number = place * documents / SAMPLES.min(documents);
        corpus.batch(number, number + 1, &mut expected);
        let found = find_by_id(connection, &expected)?;
        if found != expected {
            return Err(BenchError::Server(format!(
                "document {number} is not what was inserted"
            )));
        }
        sum = hash(sum, &found);
    }
    Ok(sum)
}

fn find_by_id(connection: &mut Connection, document: &[u8]) -> Result<Vec<u8>, BenchError> {
    let id = Document::at(document).and_then(|one| one.get("_id"));
    let reply = connection.run(DATABASE, |one| {
        one.string("find", COLLECTION);
        one.document("filter", |filter| match id {
            Some(Value::Int32(id)) => filter.int32("_id", id),
            Some(Value::ObjectId(id)) => filter.object_id("_id", id.try_into().unwrap_or_default()),
            _ => {}
        });
        one.int32("limit", 1);
        one.boolean("singleBatch", true);
    })?;
    match reply.get("cursor.firstBatch.0") {
        Some(Value::Document(found)) => Ok(found.bytes().to_vec()),
        _ => Ok(Vec::new()),
    }
}
