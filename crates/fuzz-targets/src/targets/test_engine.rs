//! In-memory engines for the targets that need one.

use std::sync::Arc;

use windrow_collection::{
    Background, BuildControl, Collection, Engine, EngineOptions, Error, Namespace, Uninterrupted,
};
use windrow_document::DocumentBuf;
use windrow_index::Definition;
use windrow_storage::{LogOptions, MemoryDisk, StorageOptions};

/// Storage without background threads.
pub fn storage_options() -> StorageOptions {
    StorageOptions {
        log: LogOptions {
            segment_bytes: 64 << 10,
            recycled_max: 0,
            sync_interval: None,
            ..LogOptions::default()
        },
        ..StorageOptions::default()
    }
}

/// An engine without background threads.
pub fn open_engine(disk: &MemoryDisk) -> Result<Arc<Engine>, Error> {
    let options = EngineOptions {
        threads: 1,
        background: Background::Caller,
        random: |bytes| bytes.fill(7),
        storage: storage_options(),
        ..EngineOptions::with_memory(16 << 20)
    };
    Engine::open(Arc::new(disk.clone()), options)
}

/// Creates a collection with these indexes.
pub fn create_collection(
    engine: &Engine,
    database: &str,
    name: &str,
    indexes: &[DocumentBuf],
) -> Arc<Collection> {
    let namespace = Namespace::new(database, name).expect("a name");
    let collection = engine
        .collection_or_create(&namespace)
        .expect("a collection");
    let control = BuildControl {
        interrupt: &Uninterrupted,
        on_phase: &|_| {},
    };
    let parse = |index: &DocumentBuf| Definition::parse(index.as_document()).expect("an index");
    collection
        .create_indexes(indexes.iter().map(parse).collect(), &control)
        .expect("indexes");
    collection
}
