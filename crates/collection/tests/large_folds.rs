//! A fold of many entries, which several threads write, loses none.

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use common::{MEMORY, namespace, open};
use windrow_collection::{
    Background, BuildControl, Checks, Collection, Engine, EngineOptions, InsertOrder, RecordId,
    Uninterrupted,
};
use windrow_document::{DocumentBuf, doc, key};
use windrow_index::Definition;
use windrow_storage::MemoryDisk;

const DOCUMENTS: u64 = 4_000;
/// Each document has this many different words, so the fold has four times the entries for which
/// another thread is used.
const WORDS: u64 = 70;
/// The number of documents with one of the rare words.
const RARE: u64 = 3;

/// The number of the text index, after the one on `_id`.
const TEXT: usize = 1;

fn open_with_threads(disk: &MemoryDisk) -> Arc<Engine> {
    let options = EngineOptions {
        threads: 4,
        background: Background::Caller,
        ..EngineOptions::with_memory(4 * MEMORY)
    };
    Engine::open(Arc::new(disk.clone()), options).unwrap()
}

/// Words without stems of their own, some in most documents and others in few.
fn words(document: u64) -> Vec<String> {
    let common = (0..WORDS - 1).map(|number| 1_000 + (document * 31 + number * 17) % 900);
    let rare = 100_000 + document / RARE;
    common
        .chain([rare])
        .map(|word| format!("w{word}"))
        .collect()
}

fn document(id: u64) -> DocumentBuf {
    doc! { "_id": (id as i64), "text": (words(id).join(" ")) }
}

fn create(engine: &Engine) -> Arc<Collection> {
    let collection = engine.create(&namespace(), doc! {}.as_document()).unwrap();
    let control = BuildControl {
        interrupt: &Uninterrupted,
        on_phase: &|_| (),
    };
    let index = doc! { "key": (doc! { "text": "text" }), "name": "text" };
    let index = Definition::parse(index.as_document()).unwrap();
    collection.create_indexes(vec![index], &control).unwrap();
    collection
}

/// Checks the index by the documents, and the records of some words.
fn check(collection: &Collection) {
    let validation = collection.validate(Checks::FULL).unwrap();
    assert!(validation.is_valid(), "{validation:?}");
    let mut expected: BTreeMap<String, u64> = BTreeMap::new();
    for word in (1..=DOCUMENTS).flat_map(words) {
        *expected.entry(word).or_default() += 1;
    }
    let reader = collection.reader().unwrap();
    for (word, count) in expected.iter().step_by(7) {
        let mut text_key = Vec::new();
        key::append_string_bytes(&mut text_key, word.as_bytes());
        let mut list = reader.posting_list(TEXT, &text_key).unwrap();
        let (mut found, mut id) = (0, list.id());
        while id < RecordId::MAX {
            (found, id) = (found + 1, list.next());
        }
        assert_eq!(found, *count, "{word}");
        assert!(list.take_error().is_none());
    }
}

#[test]
fn a_fold_by_several_threads_is_complete() {
    let disk = MemoryDisk::new();
    let engine = open_with_threads(&disk);
    let collection = create(&engine);
    for first in (1..=DOCUMENTS).step_by(500) {
        let documents = (first..first + 500).flat_map(|id| document(id).into_bytes());
        let documents = Bytes::from(documents.collect::<Vec<u8>>());
        let inserted = collection.insert(documents, InsertOrder::Ordered).unwrap();
        assert_eq!(inserted.count, 500);
    }
    engine.fold().unwrap();
    check(&collection);
    drop(collection);
    engine.close().unwrap();
    drop(engine);
    let engine = open(&disk);
    check(&common::collection(&engine));
}
