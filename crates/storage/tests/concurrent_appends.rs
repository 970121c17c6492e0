//! Concurrent appenders: publish steps run in the order of positions, before the append returns and
//! before `written` advances. Syncs are shared.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use common::{Random, open, small};
use windrow_storage::{
    LogOptions, MemoryDisk, Position, RealDisk, RowChange, Storage, StorageOptions,
};

fn append_concurrently(storage: &Storage, threads: u64, each: u64, synced: bool) {
    let newest = Arc::new(AtomicU64::new(storage.log.written().0));
    thread::scope(|scope| {
        for thread in 0..threads {
            let newest = newest.clone();
            scope.spawn(move || {
                let mut random = Random(thread);
                for number in 0..each {
                    let mut payload = format!("{thread} {number} ").into_bytes();
                    let length = random.below(2000) as usize;
                    payload.extend(random.payload(length));
                    let published = newest.clone();
                    let position = storage.log.append(&[&payload], move |position| {
                        let before = published.swap(position.0, Ordering::Relaxed);
                        assert_eq!(before + 1, position.0);
                    });
                    let position = position.unwrap();
                    assert!(newest.load(Ordering::Relaxed) >= position.0);
                    assert!(storage.log.written() >= position);
                    if synced {
                        storage.log.sync(position).unwrap();
                        assert!(storage.log.synced() >= position);
                    }
                }
            });
        }
    });
    assert_eq!(newest.load(Ordering::Relaxed), storage.log.written().0);
}

/// Checks that the log has each record of each thread once, in the order of the thread.
fn check_all_there(storage: &Storage, threads: u64, each: u64) {
    let mut expected = vec![0; threads as usize];
    for (record, position) in storage.log.read_from(Position(1)).zip(1..) {
        let record = record.unwrap();
        assert_eq!(record.position.0, position);
        let text = String::from_utf8_lossy(&record.payload);
        let mut words = text.split(' ').map(|word| word.parse::<u64>());
        let (Some(Ok(thread)), Some(Ok(number))) = (words.next(), words.next()) else {
            panic!("{text}");
        };
        assert_eq!(number, expected[thread as usize]);
        expected[thread as usize] += 1;
    }
    assert_eq!(expected, vec![each; threads as usize]);
}

#[test]
fn publish_steps_run_in_order() {
    let disk = MemoryDisk::new();
    let storage = open(&disk);
    append_concurrently(&storage, 8, 500, false);
    check_all_there(&storage, 8, 500);
    drop(storage);
    check_all_there(&open(&disk), 8, 500);
}

#[test]
fn publish_steps_run_in_order_on_a_real_disk() {
    let folder = tempfile::tempdir().unwrap();
    let disk = || Arc::new(RealDisk::new(folder.path()).unwrap());
    let storage = Storage::open(disk(), small()).unwrap();
    append_concurrently(&storage, 8, 200, true);
    drop(storage);
    let storage = Storage::open(disk(), small()).unwrap();
    check_all_there(&storage, 8, 200);
}

#[test]
fn sync_of_durable_record_does_no_io() {
    let disk = MemoryDisk::new();
    let storage = open(&disk);
    for _ in 0..100 {
        storage.log.append(&[b"x"], |_| {}).unwrap();
    }
    let before = disk.sync_count();
    for position in (1..=100).rev() {
        storage.log.sync(Position(position)).unwrap();
    }
    assert_eq!(disk.sync_count(), before + 1);
}

#[test]
fn timer_syncs_records_without_a_sync_call() {
    let interval = Duration::from_millis(20);
    let log = LogOptions {
        sync_interval: Some(interval),
        ..LogOptions::default()
    };
    let options = StorageOptions { log, ..small() };
    let storage = Storage::open(Arc::new(MemoryDisk::new()), options).unwrap();
    for _ in 0..5 {
        let position = storage.log.append(&[b"x"], |_| {}).unwrap();
        let start = Instant::now();
        while storage.log.synced() < position {
            assert!(
                start.elapsed() < Duration::from_secs(10),
                "the timer did not sync"
            );
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Threads increment one row with compare-and-set, and append data records in between. No increment
/// is lost: of two changes that expect the same value, only one is made.
#[test]
fn concurrent_compare_and_set_loses_no_increment() {
    let disk = MemoryDisk::new();
    let storage = open(&disk);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut increments = 0;
                while increments < 50 {
                    increments += u64::from(increment(&storage));
                    storage.log.append(&[b"between"], |_| {}).unwrap();
                }
            });
        }
    });
    assert_eq!(
        storage.catalog.get(b"count").as_deref(),
        Some(&200_u64.to_le_bytes()[..])
    );
    drop(storage);
    let storage = open(&disk);
    assert_eq!(
        storage.catalog.get(b"count").as_deref(),
        Some(&200_u64.to_le_bytes()[..])
    );
}

/// Tries to increment the row. Returns `false` if another thread changed it first.
fn increment(storage: &Storage) -> bool {
    use windrow_storage::Expectation::{Absent, Value};
    let old = storage.catalog.get(b"count");
    let (count, expected) = match &old {
        None => (0, Absent),
        Some(value) => (
            u64::from_le_bytes(value[..].try_into().unwrap()),
            Value(value.to_vec()),
        ),
    };
    let change = RowChange::put("count", (count + 1).to_le_bytes()).expecting(expected);
    storage.catalog.change(vec![change], |_| {}).is_ok()
}

#[test]
fn bytes_since_shrinks_with_the_position() {
    let storage = open(&MemoryDisk::new());
    assert_eq!(storage.log.bytes_since(Position(0)), 0);
    for _ in 0..50 {
        storage.log.append(&[&[1; 500]], |_| {}).unwrap();
    }
    let all = storage.log.bytes_since(Position(0));
    let half = storage.log.bytes_since(Position(25));
    assert!(half < all && half > 0, "{half} of {all}");
    // The segments are smaller than the interval of the sparse index, so the result may be a
    // segment too large.
    assert!(storage.log.bytes_since(Position(50)) <= 8 << 10);
}
