//! A collection of the engine on a disk in memory, and random numbers.
#![allow(dead_code, reason = "each test uses a part")]

pub mod search;

use std::sync::Arc;

use bytes::Bytes;
use windrow_collection::{
    BuildControl, Change, Engine, EngineOptions, Error, InsertOrder, Namespace, Uninterrupted,
};
use windrow_document::{DocumentBuf, ValueRef};
use windrow_index::Definition;
use windrow_query::{Collections, EngineCollections, PlannerSettings, Source};
use windrow_storage::MemoryDisk;

pub struct Database {
    pub engine: Arc<Engine>,
    pub planner_settings: Arc<PlannerSettings>,
}

impl Database {
    /// A collection with these documents and with indexes of the form `{key, name, …}`.
    pub fn new(documents: &[DocumentBuf], indexes: Vec<DocumentBuf>) -> Database {
        let options = EngineOptions {
            threads: 1,
            ..EngineOptions::with_memory(64 << 20)
        };
        let engine = Engine::open(Arc::new(MemoryDisk::new()), options).expect("an engine");
        let namespace = Namespace::new("test", "c").expect("a name");
        let collection = engine
            .collection_or_create(&namespace)
            .expect("a collection");
        for some in documents.chunks(16) {
            let bytes: Vec<u8> = some
                .iter()
                .flat_map(|one| one.as_bytes().to_vec())
                .collect();
            collection
                .insert(Bytes::from(bytes), InsertOrder::Ordered)
                .expect("documents");
        }
        let definition =
            |one: &DocumentBuf| Definition::parse(one.as_document()).expect("an index");
        let control = BuildControl {
            interrupt: &Uninterrupted,
            on_phase: &|_| {},
        };
        let definitions = indexes.iter().map(definition).collect();
        collection
            .create_indexes(definitions, &control)
            .expect("indexes");
        Database {
            engine,
            planner_settings: Arc::default(),
        }
    }

    pub fn source(&self) -> Arc<dyn Source> {
        let collections = EngineCollections {
            planner_settings: Some(self.planner_settings.clone()),
            ..EngineCollections::new(self.engine.clone())
        };
        collections.source("test", "c").expect("a snapshot")
    }

    /// Replaces a document.
    pub fn replace(&self, id: i32, document: &DocumentBuf) {
        let namespace = Namespace::new("test", "c").expect("a name");
        let collection = self.engine.collection(&namespace).expect("the collection");
        let reader = collection.reader().expect("a reader");
        let record = reader.find_id(ValueRef::Int32(id)).expect("a look-up");
        let mut batch = collection.batch();
        let change = |_: windrow_document::Document<'_>| {
            Ok::<Change, Error>(Change::Replace(document.clone()))
        };
        batch
            .change(record.expect("a record"), change)
            .expect("a change");
        batch.commit().expect("a commit");
    }

    pub fn fold(&self) {
        self.engine.fold().expect("a fold");
    }
}

/// Pseudorandom numbers that are the same in every run.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    pub fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize].clone()
    }
}
