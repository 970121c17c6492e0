//! An older version stored documents whose index path has a number that is both an array position
//! and a field name (error 16746). No insert accepts one today, but such a document could be
//! neither deleted nor corrected, because the entries to remove could not be computed.

#[path = "common/building.rs"]
mod building;
mod common;

use std::sync::Arc;

use building::build;
use bytes::Bytes;
use windrow_collection::{Change, Collection, Engine, Error, InsertOrder, Outcome, RecordId};
use windrow_document::{DocumentBuf, ValueRef, doc};
use windrow_storage::MemoryDisk;

use common::{namespace, open};

/// Documents with the `_id`s 0 and 1, and an index on an array position.
fn setting() -> (Arc<Engine>, Arc<Collection>) {
    let engine = open(&MemoryDisk::new());
    engine.create(&namespace(), doc! {}.as_document()).unwrap();
    let created = common::collection(&engine);
    build(&created, doc! { "key": { "a.0": 1 }, "name": "i" });
    for id in 0..2 {
        let document = doc! { "_id": id, "b": 1 };
        created
            .insert(
                Bytes::copy_from_slice(document.as_bytes()),
                InsertOrder::Ordered,
            )
            .unwrap();
    }
    (engine, created)
}

fn ambiguous(id: i32) -> DocumentBuf {
    doc! { "_id": id, "a": [{ "0": 1 }] }
}

fn record(collection: &Collection, id: i32) -> Option<RecordId> {
    let reader = collection.reader().unwrap();
    reader.find_id(ValueRef::Int32(id)).unwrap()
}

/// Changes a document by a batch that trusts its snapshot, which can show a document that could not
/// be stored today.
fn change(collection: &Collection, id: i32, change: Change) -> Result<Outcome, Error> {
    let seen = ambiguous(id);
    let mut batch = collection.batch();
    batch.trust_snapshot(Some(collection.reader().unwrap().position()));
    let id = record(collection, id).unwrap();
    let outcome = batch.change_seen(id, seen.as_document(), |_| Ok(change.clone()));
    batch.commit()?;
    outcome
}

#[test]
fn an_ambiguous_document_is_deleted() {
    let (_engine, collection) = setting();
    let deleted = change(&collection, 0, Change::Delete);
    assert_eq!(deleted.unwrap(), Outcome::Deleted);
    assert_eq!(record(&collection, 0), None);
}

#[test]
fn an_ambiguous_document_can_only_be_corrected() {
    let (_engine, collection) = setting();
    let still = doc! { "_id": 1, "a": [{ "0": 2 }] };
    let refused = change(&collection, 1, Change::Replace(still)).unwrap_err();
    assert!(refused.to_string().contains("Ambiguous"), "{refused}");
    let mended = doc! { "_id": 1, "a": [5] };
    let replaced = change(&collection, 1, Change::Replace(mended.clone()));
    assert_eq!(replaced.unwrap(), Outcome::Replaced);
    let reader = collection.reader().unwrap();
    let id = record(&collection, 1).unwrap();
    assert_eq!(reader.get(id).unwrap().unwrap(), mended.as_bytes());
}

/// At a second visit, the batch may have changed the document itself. Using the snapshot's version
/// again would undo that.
#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "met")]
fn a_trusted_snapshot_serves_each_document_once() {
    let (_engine, collection) = setting();
    let id = record(&collection, 0).unwrap();
    let seen = doc! { "_id": 0, "b": 1 };
    let mut batch = collection.batch();
    batch.trust_snapshot(Some(collection.reader().unwrap().position()));
    for _ in 0..2 {
        let kept = batch.change_seen(id, seen.as_document(), |_| Ok::<_, Error>(Change::Keep));
        kept.unwrap();
    }
}
