//! The target `disk`: a folder with damaged files.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use bytes::Bytes;
use windrow_collection::{Checks, Collection, Direction, Engine, IndexReport, InsertOrder};
use windrow_document::{DocumentBuf, doc};
use windrow_storage::{Crash, Disk, MemoryDisk};

use super::test_engine::{create_collection, open_engine};

struct Folder {
    disk: MemoryDisk,
    files: Vec<String>,
    documents: BTreeMap<u64, DocumentBuf>,
}

static FOLDER: LazyLock<Folder> = LazyLock::new(|| {
    let disk = MemoryDisk::new();
    let engine = open_engine(&disk).expect("an engine");
    let index = doc! { "key": { "a": 1 }, "name": "a_1" };
    let collection = create_collection(&engine, "d", "c", &[index]);
    insert(&collection, 1..40);
    engine.fold().expect("sections");
    insert(&collection, 40..60);
    engine.close().expect("everything is durable");
    let documents = documents(&collection).expect("documents");
    drop((collection, engine));
    let mut files = Vec::new();
    for folder in ["log", "runs", "catalog"] {
        let names = disk.list(folder).expect("a folder");
        files.extend(names.into_iter().map(|name| format!("{folder}/{name}")));
    }
    files.sort();
    Folder {
        disk,
        files,
        documents,
    }
});

fn insert(collection: &Collection, numbers: std::ops::Range<i32>) {
    let document =
        |number| doc! { "_id": number, "a": (number % 7), "text": "some words to press" };
    let bytes: Vec<u8> = numbers.flat_map(|it| document(it).into_bytes()).collect();
    collection
        .insert(Bytes::from(bytes), InsertOrder::Ordered)
        .expect("documents");
}

fn documents(collection: &Collection) -> Option<BTreeMap<u64, DocumentBuf>> {
    let mut documents = BTreeMap::new();
    let reader = collection.reader().ok()?;
    let mut records = reader.records(Direction::Forward);
    while records.next().ok()? {
        let document = DocumentBuf::from_bytes(records.document().to_vec()).expect("BSON");
        documents.insert(records.id().0, document);
    }
    Some(documents)
}

/// Damages files and opens the folder. Durable data must be read unchanged or be refused.
///
/// ```text
/// change   file (1 byte) · offset (2 bytes, modulo the length) · mask (1 byte)
///          The mask's bits are flipped in the byte at the offset. A mask of 0 truncates the file.
/// ```
pub fn run(bytes: &[u8]) {
    let folder = &*FOLDER;
    let disk = folder.disk.crash(Crash::OfProcess);
    for change in bytes.chunks_exact(4).take(8) {
        let file = &folder.files[usize::from(change[0]) % folder.files.len()];
        let offset = usize::from(u16::from_le_bytes([change[1], change[2]]));
        disk.spoil(file, |content| damage(content, offset, change[3]));
    }
    if let Ok(engine) = open_engine(&disk) {
        check(&engine, &folder.documents);
    }
}

fn damage(content: &mut Vec<u8>, offset: usize, bits: u8) {
    if content.is_empty() {
        return;
    }
    let offset = offset % content.len();
    match bits {
        0 => content.truncate(offset),
        bits => content[offset] ^= bits,
    }
}

/// All documents that can be read must be unchanged. Some may be missing: a truncated log is
/// indistinguishable from a crash before the last records were written.
fn check(engine: &Engine, expected: &BTreeMap<u64, DocumentBuf>) {
    for collection in engine.collections("d") {
        if let Some(found) = documents(&collection) {
            for (id, document) in &found {
                assert_eq!(expected.get(id), Some(document), "record {id}");
            }
        }
        if let Ok(validation) = collection.validate(Checks::FULL) {
            let of_indexes = validation.reports().flat_map(IndexReport::all_errors);
            for error in validation.errors.iter().chain(of_indexes) {
                assert!(error.contains(" is damaged: "), "{error}");
            }
        }
    }
}
