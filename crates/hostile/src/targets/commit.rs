//! The log's data records: what a commit of one collection says.

use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use windrow_collection::{BuildControl, Direction, Namespace, Reader};
use windrow_document::{Document, doc};
use windrow_index::Definition;
use windrow_storage::{Crash, MemoryDisk, Storage};

use super::engines::{open, storage_options};

/// A folder with one collection, which has the number 1, an index and a few documents in its log.
static FOLDER: LazyLock<MemoryDisk> = LazyLock::new(|| {
    let disk = MemoryDisk::new();
    let engine = open(&disk).expect("an engine");
    let namespace = Namespace::new("d", "c").expect("a name");
    let collection = engine
        .collection_or_create(&namespace)
        .expect("a collection");
    let specification = doc! { "key": { "a": 1 }, "name": "a_1" };
    let control = BuildControl {
        should_stop: &|| None,
        on_phase: &|_| {},
    };
    let index = Definition::parse(specification.as_document()).expect("an index");
    collection
        .create_indexes(vec![index], &control)
        .expect("an index");
    let documents = [doc! { "_id": 1, "a": 1 }, doc! { "_id": 2, "a": [2, 3] }];
    let bytes: Vec<u8> = documents
        .iter()
        .flat_map(|it| it.as_bytes().to_vec())
        .collect();
    collection
        .insert(Bytes::from(bytes), true)
        .expect("documents");
    engine.fold().expect("sections");
    disk
});

/// Appends the bytes to the log as a record of that collection, in good order as far as storage is
/// concerned, and opens the folder: it is refused, or everything in it can be read and folded.
pub fn run(bytes: &[u8]) {
    let disk = FOLDER.crash(Crash::OfProcess);
    let storage = Storage::open(Arc::new(disk.clone()), storage_options()).expect("a folder");
    let collection = 1u64.to_le_bytes();
    storage
        .log
        .append(&[&collection, bytes], |_| {})
        .expect("a record");
    drop(storage);
    let Ok(engine) = open(&disk) else {
        return;
    };
    for collection in engine.collections("d") {
        read(&collection.reader().expect("a reader"));
        let _ = collection.validate(true);
    }
    if engine.fold().is_ok() {
        for collection in engine.collections("d") {
            read(&collection.reader().expect("a reader"));
        }
    }
}

/// What cannot be read is refused, and what can is BSON.
fn read(reader: &Reader) {
    let mut records = reader.records(Direction::Forward);
    while let Ok(true) = records.next() {
        Document::from_bytes(records.document()).expect("a record that was accepted is BSON");
    }
    for index in 0..reader.indexes().len() {
        let Ok(mut entries) = reader.entries(index, Direction::Backward) else {
            continue;
        };
        while let Ok(true) = entries.next() {}
    }
}
