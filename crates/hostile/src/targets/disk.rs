//! A whole folder with damaged files.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use bytes::Bytes;
use windrow_collection::{Checks, Collection, Direction, Engine, IndexReport};
use windrow_document::{DocumentBuf, doc};
use windrow_storage::{Crash, Disk, MemoryDisk};

use super::engines::{create, open};

struct Folder {
    disk: MemoryDisk,
    files: Vec<String>,
    documents: BTreeMap<u64, DocumentBuf>,
}

static FOLDER: LazyLock<Folder> = LazyLock::new(|| {
    let disk = MemoryDisk::new();
    let engine = open(&disk).expect("an engine");
    let index = doc! { "key": { "a": 1 }, "name": "a_1" };
    let collection = create(&engine, ("d", "c"), &[index]);
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
        .insert(Bytes::from(bytes), true)
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

/// Changes bytes of the files, and opens the folder: what was durable is read as it was, or refused.
///
/// ```text
/// change   file, 1 · offset, 2 · bits, 1: these bits of the byte at the offset (modulo the length) are
///          flipped; none: the file is cut there
/// ```
pub fn run(bytes: &[u8]) {
    let folder = &*FOLDER;
    let disk = folder.disk.crash(Crash::OfProcess);
    for change in bytes.chunks_exact(4).take(8) {
        let file = &folder.files[usize::from(change[0]) % folder.files.len()];
        let offset = usize::from(u16::from_le_bytes([change[1], change[2]]));
        disk.spoil(file, |content| damage(content, offset, change[3]));
    }
    if let Ok(engine) = open(&disk) {
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

/// What is read is what was written. The end of a log can only be told from one that power took where
/// something behind it is whole: so much may be missing.
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
