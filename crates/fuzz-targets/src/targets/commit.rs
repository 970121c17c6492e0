//! The target `commit`: data records of the log.

use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use windrow_collection::{Checks, Direction, InsertOrder, Reader};
use windrow_document::{Document, doc};
use windrow_storage::{Crash, MemoryDisk, Storage};

use super::test_engine::{create_collection, open_engine, storage_options};

/// A folder with a collection (number 1) with an index and a few documents.
static FOLDER: LazyLock<MemoryDisk> = LazyLock::new(|| {
    let disk = MemoryDisk::new();
    let engine = open_engine(&disk).expect("an engine");
    let index = doc! { "key": { "a": 1 }, "name": "a_1" };
    let collection = create_collection(&engine, "d", "c", &[index]);
    let documents = [doc! { "_id": 1, "a": 1 }, doc! { "_id": 2, "a": [2, 3] }];
    let bytes: Vec<u8> = documents
        .iter()
        .flat_map(|it| it.as_bytes().to_vec())
        .collect();
    collection
        .insert(Bytes::from(bytes), InsertOrder::Ordered)
        .expect("documents");
    engine.fold().expect("sections");
    disk
});

/// Appends the input to the log as a record with a valid checksum, and opens the folder. It must be
/// refused, or readable and foldable. The first byte selects a record of the collection or of a
/// transaction.
pub fn run(bytes: &[u8]) {
    let Some((first, bytes)) = bytes.split_first() else {
        return;
    };
    let collection = if first % 2 == 0 { 1u64 } else { 0 };
    let disk = FOLDER.crash(Crash::OfProcess);
    let storage = Storage::open(Arc::new(disk.clone()), storage_options()).expect("a folder");
    storage
        .log
        .append(&[&collection.to_le_bytes(), bytes], |_| {})
        .expect("a record");
    drop(storage);
    let Ok(engine) = open_engine(&disk) else {
        return;
    };
    let check = || {
        for collection in engine.collections("d") {
            let is_valid = read_all(&collection.reader().expect("a reader"));
            if let Ok(validation) = collection.validate(Checks::FULL) {
                assert!(is_valid || !validation.is_valid(), "{validation:?}");
            }
        }
    };
    check();
    if engine.fold().is_ok() {
        check();
    }
}

/// Reads everything. Returns `true` if all documents are valid BSON. Documents in the log are
/// protected by checksums and were validated before, so they are not validated again when they are
/// read.
fn read_all(reader: &Reader) -> bool {
    let (mut records, mut is_valid) = (reader.records(Direction::Forward), true);
    while let Ok(true) = records.next() {
        is_valid &= Document::from_bytes(records.document()).is_ok();
    }
    for index in 0..reader.indexes().len() {
        let Ok(mut entries) = reader.entries(index, Direction::Backward) else {
            continue;
        };
        while let Ok(true) = entries.next() {}
    }
    is_valid
}
