//! Entries of documents are complete, even if the operation that creates them is interrupted.

#[path = "common/building.rs"]
mod building;
mod common;

use std::sync::Arc;

use building::build;
use bytes::Bytes;
use common::{collection, namespace, open};
use windrow_collection::{Change, Checks, Collection, Direction, Engine, Error, InsertOrder, Work};
use windrow_document::{ArrayBuf, DocumentBuf, Value, ValueRef, doc};
use windrow_interrupt::Interrupted;
use windrow_mql::interrupt::with_interrupt;
use windrow_storage::MemoryDisk;

const DOCUMENTS: i32 = 20;

/// A document that matches the filter of the index below, and takes it long.
fn document(id: i32) -> DocumentBuf {
    let zeros = (0..50_000).map(|_| Value::Int32(0));
    let values: ArrayBuf = zeros.chain([Value::Int32(-1)]).collect();
    doc! { "_id": id, "n": id, "a": values }
}

fn setting() -> (Arc<Engine>, Arc<Collection>) {
    let engine = open(&MemoryDisk::new());
    engine.create(&namespace(), doc! {}.as_document()).unwrap();
    let collection = collection(&engine);
    build(
        &collection,
        doc! { "key": { "n": 1 }, "name": "n", "partialFilterExpression": { "a": { "$lt": 0 } } },
    );
    let documents = (0..DOCUMENTS).flat_map(|id| document(id).into_bytes());
    let inserted = collection.insert(
        Bytes::from(documents.collect::<Vec<u8>>()),
        InsertOrder::Ordered,
    );
    assert!(inserted.unwrap().errors.is_empty());
    (engine, collection)
}

/// Runs `run` as an interrupted operation.
fn stopped<T>(run: impl FnOnce() -> T) -> T {
    let interrupt = || Err(Interrupted::with_code(50, "time is over"));
    with_interrupt(Arc::new(interrupt), run)
}

/// Returns the number of entries of the index.
fn entries(collection: &Collection) -> i32 {
    let reader = collection.reader().unwrap();
    let mut cursor = reader.entries(1, Direction::Forward).unwrap();
    let mut count = 0;
    while cursor.next().unwrap() {
        count += 1;
    }
    count
}

/// A find with `maxTimeMS` was the first to read a partial index after the inserts. It timed out
/// within the filter of the index, and the document had no entry for all later readers and the next
/// fold.
#[test]
fn an_interrupted_reader_creates_all_entries() {
    let (engine, collection) = setting();
    assert_eq!(stopped(|| entries(&collection)), DOCUMENTS);
    engine.work(Work::Fold).unwrap();
    assert_eq!(entries(&collection), DOCUMENTS);
    assert!(collection.validate(Checks::FULL).unwrap().is_valid());
}

/// A delete that timed out within the filter of a partial index went on, and left the entry of the
/// document in the index.
#[test]
fn an_interrupted_deletion_deletes_nothing() {
    let (_engine, collection) = setting();
    let reader = collection.reader().unwrap();
    let record = reader.find_id(ValueRef::Int32(7)).unwrap().unwrap();
    let deleted = stopped(|| {
        let mut batch = collection.batch();
        batch.change(record, |_| Ok::<Change, Error>(Change::Delete))?;
        batch.commit()
    });
    assert!(deleted.is_err());
    assert_eq!(entries(&collection), DOCUMENTS);
    assert!(collection.validate(Checks::FULL).unwrap().is_valid());
}
