//! Inserts a corpus into a server, and verifies the result.

use std::io::Write;
use std::ops::Range;
use std::time::Instant;

use crate::bson::{self, Document, Value};
use crate::client::{Concern, Connection, insert_message, message};
use crate::corpus::Corpus;
use crate::error::BenchError;
use crate::json;
use crate::report::{HASH_START, hash};

/// The database of all workloads.
pub const DATABASE: &str = "bench";
/// The collection of all workloads.
pub const COLLECTION: &str = "documents";
const SAMPLES: u64 = 100;

/// How a corpus is inserted.
pub struct Feed<'a> {
    corpus: &'a dyn Corpus,
    batch: u64,
    concern: Concern,
}

impl<'a> Feed<'a> {
    /// Inserts in batches of `batch` documents, with acknowledged writes.
    pub fn new(corpus: &'a dyn Corpus, batch: u64) -> Self {
        Self {
            corpus,
            batch,
            concern: Concern::Acknowledged,
        }
    }

    /// Sets when inserts are acknowledged.
    pub fn with_concern(self, concern: Concern) -> Self {
        Self { concern, ..self }
    }

    /// Inserts the documents of a range over one connection. Returns the seconds that it took.
    pub fn insert(
        &self,
        connection: &mut Connection,
        range: Range<u64>,
    ) -> Result<f64, BenchError> {
        self.insert_with(connection, range, &mut |_, _| Ok(()))
    }

    /// Calls `between` after each batch, with the number of documents.
    fn insert_with(
        &self,
        connection: &mut Connection,
        range: Range<u64>,
        between: &mut dyn FnMut(&mut Connection, u64) -> Result<(), BenchError>,
    ) -> Result<f64, BenchError> {
        let start = Instant::now();
        let mut documents = Vec::new();
        let mut number = range.start;
        while number < range.end {
            let next = (number + self.batch).min(range.end);
            self.corpus.batch(number, next, &mut documents);
            let message = insert_message(DATABASE, COLLECTION, &documents, self.concern);
            match self.concern {
                Concern::Unacknowledged => connection.send(&message)?,
                _ => drop(connection.succeed(&message)?),
            }
            between(connection, next)?;
            number = next;
        }
        if self.concern == Concern::Unacknowledged {
            // The server handles the messages of a connection in order, so a reply to the last one
            // covers all.
            connection.run("admin", |writer| writer.int32("ping", 1))?;
        }
        Ok(start.elapsed().as_secs_f64())
    }

    /// Inserts all documents in ten parts and calls `between` after each batch. Returns the
    /// documents per second of each part.
    pub fn by_tenths(
        &self,
        connection: &mut Connection,
        documents: u64,
        mut between: impl FnMut(&mut Connection, u64) -> Result<(), BenchError>,
    ) -> Result<Vec<f64>, BenchError> {
        let stretch = |tenth: u64| (documents * tenth / 10, documents * (tenth + 1) / 10);
        (0..10)
            .map(stretch)
            .map(|(first, end)| {
                let seconds = self.insert_with(connection, first..end, &mut between)?;
                let rate = (end - first) as f64 / seconds;
                eprintln!("  {end:>9} documents, {rate:>9.0} documents/s");
                Ok(rate)
            })
            .collect()
    }
}

/// Writes all documents, for a baseline.
pub fn feed(corpus: &dyn Corpus, documents: u64, out: &mut impl Write) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    for number in 0..documents {
        corpus.batch(number, number + 1, &mut bytes);
        out.write_all(&bytes)?;
    }
    Ok(())
}

/// Creates an index, given as for `createIndexes`, and waits until it is ready.
pub fn create_index(connection: &mut Connection, index: &str) -> Result<(), BenchError> {
    let index = json::document(index)?;
    let made = connection.run(DATABASE, |writer| {
        writer.string("createIndexes", COLLECTION);
        writer.array("indexes", |list| {
            list.document("0", |out| out.append_fields(&index));
        });
    });
    made.map(drop)
}

/// Creates the search index "default" by its definition in JSON and waits until it is ready.
pub fn create_search_index(
    connection: &mut Connection,
    definition: &str,
) -> Result<(), BenchError> {
    let definition = json::document(definition)?;
    let made = connection.run(DATABASE, |writer| {
        writer.string("createSearchIndexes", COLLECTION);
        writer.array("indexes", |list| {
            list.document("0", |index| {
                index.document("definition", |out| out.append_fields(&definition));
            });
        });
    });
    made.map(drop)
}

/// Finds documents by `filter` with the index `hint`. Fails if `expected` is not among them.
pub fn find_by_index(
    connection: &mut Connection,
    filter: &[u8],
    hint: &str,
    expected: &[u8],
) -> Result<(), BenchError> {
    let find = message(DATABASE, |writer| {
        writer.string("find", COLLECTION);
        writer.document("filter", |out| out.append_fields(filter));
        writer.string("hint", hint);
    });
    check_found(connection, &find, expected)
}

/// Finds a document by `filter`. Fails if it is not `expected`.
pub fn find_one(
    connection: &mut Connection,
    filter: &[u8],
    expected: &[u8],
) -> Result<(), BenchError> {
    let find = message(DATABASE, |writer| {
        writer.string("find", COLLECTION);
        writer.document("filter", |out| out.append_fields(filter));
        writer.int32("limit", 1);
        writer.boolean("singleBatch", true);
    });
    check_found(connection, &find, expected)
}

fn check_found(
    connection: &mut Connection,
    find: &[u8],
    expected: &[u8],
) -> Result<(), BenchError> {
    let Some(Value::Array(batch)) = connection.succeed(find)?.get("cursor.firstBatch") else {
        return Err(BenchError::Server("a reply without a batch".into()));
    };
    let is_found = batch.iter().any(
        |(_, found)| matches!(found, Value::Document(document) if document.bytes() == expected),
    );
    if is_found {
        Ok(())
    } else {
        Err(BenchError::Server("a document is not found".into()))
    }
}

/// Verifies the number of documents, reads some of them by `_id`, and returns a hash of them.
pub fn verify(
    connection: &mut Connection,
    corpus: &dyn Corpus,
    documents: u64,
) -> Result<u64, BenchError> {
    check_count(connection, documents)?;
    check_documents(connection, corpus, documents)
}

/// Fails unless the collection has this number of documents.
pub fn check_count(connection: &mut Connection, documents: u64) -> Result<(), BenchError> {
    let count = connection
        .run(DATABASE, |writer| writer.string("count", COLLECTION))?
        .number("n");
    if count != Some(documents as f64) {
        return Err(BenchError::Server(format!(
            "{count:?} of {documents} documents are there"
        )));
    }
    Ok(())
}

/// Reads some of the first `documents` documents by `_id`, and returns a hash of them.
pub fn check_documents(
    connection: &mut Connection,
    corpus: &dyn Corpus,
    documents: u64,
) -> Result<u64, BenchError> {
    let mut sum = HASH_START;
    let mut expected = Vec::new();
    for place in 0..SAMPLES.min(documents) {
        let number = place * documents / SAMPLES.min(documents);
        corpus.batch(number, number + 1, &mut expected);
        find_one(connection, &by_id(&expected), &expected)?;
        sum = hash(sum, &expected);
    }
    Ok(sum)
}

/// Returns a number in the reply to `collStats`.
pub fn statistic(connection: &mut Connection, path: &str) -> Result<f64, BenchError> {
    let statistics = connection.run(DATABASE, |writer| writer.string("collStats", COLLECTION))?;
    let found = statistics.number(path);
    found.ok_or_else(|| BenchError::Server(format!("collStats without {path}")))
}

/// Returns the filter for a document's `_id`.
pub fn by_id(document: &[u8]) -> Vec<u8> {
    let id = Document::from_prefix(document).and_then(|item| item.get("_id"));
    bson::build_document(|filter| match id {
        Some(Value::Int32(id)) => filter.int32("_id", id),
        Some(Value::Binary(id)) => filter.uuid("_id", id.try_into().unwrap_or_default()),
        Some(Value::ObjectId(id)) => filter.object_id("_id", id.try_into().unwrap_or_default()),
        _ => {}
    })
}
