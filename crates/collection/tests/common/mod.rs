//! An engine on a disk in memory without background threads, and its collection `d.c`.

use std::sync::Arc;

use windrow_collection::{Background, Collection, Engine, EngineOptions, Namespace};
use windrow_storage::MemoryDisk;

pub const MEMORY: u64 = 64 << 20;

pub fn open(disk: &MemoryDisk) -> Arc<Engine> {
    let options = EngineOptions {
        threads: 1,
        background: Background::Caller,
        ..EngineOptions::with_memory(MEMORY)
    };
    Engine::open(Arc::new(disk.clone()), options).unwrap()
}

pub fn namespace() -> Namespace {
    Namespace::new("d", "c").unwrap()
}

pub fn collection(engine: &Engine) -> Arc<Collection> {
    engine.collection(&namespace()).unwrap()
}
