//! A writer that waits for others reports it, and no other writer does.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use windrow_collection::{
    Change, Engine, EngineOptions, Error, InsertOrder, Interrupt, Interrupted, Namespace,
    WaitControl, WriteOptions,
};
use windrow_document::{Document, ValueRef, doc};
use windrow_storage::MemoryDisk;

/// Waits without limit, and records what is reported.
#[derive(Default)]
struct WaitLog(Mutex<Vec<bool>>);

impl Interrupt for WaitLog {
    fn check(&self) -> Result<(), Interrupted> {
        Ok(())
    }
}

impl WaitControl for WaitLog {
    fn set_waiting(&self, waits: bool) {
        self.0.lock().unwrap().push(waits);
    }
}

#[test]
fn a_writer_waits_for_a_document() {
    let options = EngineOptions::with_memory(64 << 20);
    let engine = Engine::open(Arc::new(MemoryDisk::new()), options).unwrap();
    let name = Namespace::parse("a.c").unwrap();
    let collection = engine.create(&name, Document::EMPTY).unwrap();
    let document = Bytes::copy_from_slice(doc! { "_id": 1 }.as_bytes());
    collection.insert(document, InsertOrder::Ordered).unwrap();
    let found = collection.reader().unwrap().find_id(ValueRef::Int32(1));
    let id = found.unwrap().unwrap();
    let (first, second) = (WaitLog::default(), WaitLog::default());
    let on = |told| WriteOptions {
        wait_control: told,
        ..WriteOptions::default()
    };
    let mut batch = collection.batch_with(on(&first));
    let changed = doc! { "_id": 1, "n": 1 };
    batch
        .change(id, |_| Ok::<_, Error>(Change::Replace(changed.clone())))
        .unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let mut batch = collection.batch_with(on(&second));
            batch
                .change(id, |_| Ok::<_, Error>(Change::Delete))
                .unwrap();
            batch.commit()
        });
        while second.0.lock().unwrap().is_empty() {
            thread::sleep(Duration::from_millis(1));
        }
        batch.commit().unwrap();
        waiting.join().unwrap().unwrap();
    });
    assert_eq!(*second.0.lock().unwrap(), [true, false]);
    assert!(first.0.lock().unwrap().is_empty());
    assert_eq!(collection.count(), 0);
}
