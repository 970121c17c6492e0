//! Each worker of a build writes its own sections. A small index is built by one worker, so its
//! entries can be counted without reading them. A large index may be written by several, and is
//! complete.

#[path = "common/building.rs"]
mod building;

use std::sync::Arc;

use building::build;
use bytes::Bytes;
use windrow_collection::{
    Background, Checks, Collection, Engine, EngineOptions, InsertOrder, Namespace,
};
use windrow_document::doc;
use windrow_storage::MemoryDisk;

/// Builds an index of `count` documents of `bytes` each.
fn built(count: i32, bytes: usize, look: impl Fn(&Collection)) {
    let options = EngineOptions {
        threads: 4,
        background: Background::Caller,
        ..EngineOptions::with_memory(64 << 20)
    };
    let engine = Engine::open(Arc::new(MemoryDisk::new()), options).unwrap();
    let namespace = Namespace::new("d", "c").unwrap();
    let created = engine.create(&namespace, doc! {}.as_document()).unwrap();
    let text = "x".repeat(bytes);
    for id in 0..count {
        let document = doc! { "_id": id, "a": (count - id), "text": (text.as_str()) };
        let document = Bytes::from(document.into_bytes());
        assert!(
            created
                .insert(document, InsertOrder::Ordered)
                .unwrap()
                .errors
                .is_empty()
        );
    }
    build(&created, doc! { "key": { "a": 1 }, "name": "a_1" });
    let found = created.validate(Checks::FULL).unwrap();
    assert!(found.is_valid(), "{found:?}");
    assert_eq!(found.indexes[1].keys, count as u64);
    look(&created);
}

#[test]
fn a_small_index_is_counted_without_reading() {
    for _ in 0..100 {
        built(100, 10, |collection| {
            let reader = collection.reader().unwrap();
            let count = reader.count_entries(1, b"", &[0xFF]).unwrap();
            assert_eq!(count, Some(100));
        });
    }
}

#[test]
fn a_large_index_is_complete() {
    for _ in 0..3 {
        built(1000, 8 << 10, |_| ());
    }
}
