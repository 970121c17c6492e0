//! Maintenance that a client has requested stops with the error of its interrupt.

#[path = "common/building.rs"]
mod building;
mod common;

use std::cell::Cell;
use std::sync::atomic::{AtomicI32, Ordering};

use building::build;
use bytes::Bytes;
use windrow_collection::{Change, Checks, Error, InsertOrder, RecordId, Work};
use windrow_document::{Document, doc};
use windrow_interrupt::{Interrupted, Uninterrupted};
use windrow_storage::MemoryDisk;

use common::{collection, namespace, open};

const MAX_TIME_EXPIRED: i32 = 50;

fn expired() -> Interrupted {
    Interrupted::with_code(MAX_TIME_EXPIRED, "operation exceeded time limit")
}

fn is_expired<T>(result: Result<T, Error>) -> bool {
    matches!(result, Err(Error::Interrupted(interrupted)) if interrupted == expired())
}

#[test]
fn validation_and_compaction_return_the_error_of_the_interrupt() {
    let engine = open(&MemoryDisk::new());
    engine.create(&namespace(), Document::EMPTY).unwrap();
    let collection = collection(&engine);
    build(&collection, doc! { "key": { "n": 1 }, "name": "n_1" });
    for round in 0..2 {
        let document = |n: i32| doc! { "_id": (round * 5_000 + n), "n": n }.into_bytes();
        let documents: Vec<u8> = (0..5_000).flat_map(document).collect();
        collection
            .insert(Bytes::from(documents), InsertOrder::Ordered)
            .unwrap();
        engine.work(Work::Fold).unwrap();
    }

    // Each check of a validation can be the one that stops it.
    let count_checks = |checks: Checks| {
        let count = Cell::new(0);
        let interrupt = || {
            count.set(count.get() + 1);
            Ok(())
        };
        let found = collection.validate_with(checks, &interrupt).unwrap();
        assert!(found.is_valid());
        count.get()
    };
    let checks = count_checks(Checks::FULL);
    assert!(
        checks > count_checks(Checks::QUICK) && checks > 20,
        "{checks}"
    );
    for stopped_at in 1..=checks {
        let left = Cell::new(stopped_at);
        let interrupt = || {
            left.set(left.get() - 1);
            if left.get() == 0 {
                Err(expired())
            } else {
                Ok(())
            }
        };
        assert!(is_expired(
            collection.validate_with(Checks::FULL, &interrupt)
        ));
    }
    assert!(is_expired(
        collection.duplicate_keys("n_1", &|| Err(expired()))
    ));

    let mut batch = collection.batch();
    for id in 1..=6_000 {
        let delete = |_: Document<'_>| Ok::<_, Error>(Change::Delete);
        batch.change(RecordId(id), delete).unwrap();
    }
    batch.commit().unwrap();
    engine.work(Work::Fold).unwrap();
    let left = AtomicI32::new(3);
    let interrupt = || {
        if left.fetch_sub(1, Ordering::Relaxed) > 1 {
            Ok(())
        } else {
            Err(expired())
        }
    };
    assert!(is_expired(engine.compact(&interrupt)));
    assert!(engine.compact(&Uninterrupted).unwrap());
    assert!(collection.validate(Checks::FULL).unwrap().is_valid());
}
