//! The log's data records: what a commit of one collection says.

use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use windrow_collection::{Checks, Direction, Reader};
use windrow_document::{Document, doc};
use windrow_storage::{Crash, MemoryDisk, Storage};

use super::engines::{create, open, storage_options};

/// A folder with one collection, which has the number 1, an index and a few documents in its log.
static FOLDER: LazyLock<MemoryDisk> = LazyLock::new(|| {
    let disk = MemoryDisk::new();
    let engine = open(&disk).expect("an engine");
    let index = doc! { "key": { "a": 1 }, "name": "a_1" };
    let collection = create(&engine, ("d", "c"), &[index]);
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

/// Appends the bytes to the log as a record, in good order as far as storage is concerned, and opens the
/// folder: it is refused, or everything in it can be read and folded. The first byte says whether it is a
/// record of the collection or a transaction's.
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
    let Ok(engine) = open(&disk) else {
        return;
    };
    let check = || {
        for collection in engine.collections("d") {
            let are_whole = read(&collection.reader().expect("a reader"));
            if let Ok(validation) = collection.validate(Checks::FULL) {
                assert!(are_whole || !validation.is_valid(), "{validation:?}");
            }
        }
    };
    check();
    if engine.fold().is_ok() {
        check();
    }
}

/// Reads everything; whether the documents are BSON. The log's checksums prove that they are what was
/// written, and only BSON is: their structure is not looked at again.
fn read(reader: &Reader) -> bool {
    let (mut records, mut are_whole) = (reader.records(Direction::Forward), true);
    while let Ok(true) = records.next() {
        are_whole &= Document::from_bytes(records.document()).is_ok();
    }
    for index in 0..reader.indexes().len() {
        let Ok(mut entries) = reader.entries(index, Direction::Backward) else {
            continue;
        };
        while let Ok(true) = entries.next() {}
    }
    are_whole
}
