//! The catalog's checkpoint may be newer than the last fold, and collections still need the log
//! before it. A database without the first log file used to open as if its content had never been
//! written.

use std::sync::Arc;

use bytes::Bytes;
use windrow_collection::{Background, Engine, EngineOptions, Error, InsertOrder, Namespace};
use windrow_document::{Document, doc};
use windrow_storage::{Crash, Disk, MemoryDisk};

fn open(disk: &MemoryDisk) -> Result<Arc<Engine>, Error> {
    let mut options = EngineOptions {
        threads: 1,
        background: Background::Caller,
        ..EngineOptions::with_memory(64 << 20)
    };
    options.storage.log.segment_bytes = 4 << 10;
    options.storage.log.sync_interval = None;
    options.storage.catalog.checkpoint_bytes = 1 << 10;
    Engine::open(Arc::new(disk.clone()), options)
}

fn documents(engine: &Engine) -> u64 {
    let collection = engine.collection(&Namespace::new("d", "c").unwrap());
    collection.unwrap().count()
}

#[test]
fn a_truncated_log_start_is_rejected() {
    let disk = MemoryDisk::new();
    let engine = open(&disk).unwrap();
    let create = |name: &str| {
        let namespace = Namespace::new("d", name).unwrap();
        engine.create(&namespace, Document::EMPTY).unwrap()
    };
    let collection = create("c");
    for id in 0..40 {
        let text = format!("{:0400x}", u128::from(id * 7_919u32));
        let bytes = doc! { "_id": (id as i32), "text": text }.into_bytes();
        collection
            .insert(Bytes::from(bytes), InsertOrder::Ordered)
            .unwrap();
    }
    (0..40).for_each(|number| drop(create(&format!("other{number}"))));
    engine.sync().unwrap();
    let left = disk.crash(Crash::LosingUnsynced);
    assert_eq!(documents(&open(&left).unwrap()), 40);
    let mut names = disk.list("log").unwrap();
    names.sort();
    assert!(!disk.list("catalog").unwrap().is_empty() && names.len() > 3);
    for lost in 1..3 {
        let left = disk.crash(Crash::LosingUnsynced);
        for name in &names[..lost] {
            left.remove(&format!("log/{name}")).unwrap();
        }
        let error = open(&left).err().map(|error| error.to_string());
        let error = error.expect("it was opened without what it lacks");
        assert!(error.contains("the log begins with"), "{error}");
    }
}
