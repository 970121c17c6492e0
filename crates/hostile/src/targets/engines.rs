//! Engines in memory for targets that need one.

use std::sync::Arc;

use windrow_collection::{Background, Engine, EngineOptions, Error};
use windrow_storage::{LogOptions, MemoryDisk, StorageOptions};

/// Storage without threads of its own.
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

/// An engine that does nothing unasked.
pub fn open(disk: &MemoryDisk) -> Result<Arc<Engine>, Error> {
    let options = EngineOptions {
        threads: 1,
        background: Background::Caller,
        random: |bytes| bytes.fill(7),
        storage: storage_options(),
        ..EngineOptions::with_memory(16 << 20)
    };
    Engine::open(Arc::new(disk.clone()), options)
}
