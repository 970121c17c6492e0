//! A follower reads every record once, in order and with ascending times: while the log is written,
//! across segments, after a restart, and from the first record of the history on.

mod common;

use std::sync::Arc;
use std::time::{Duration, Instant};

use common::small;
use windrow_storage::{
    ClusterTime, Content, FollowedRecord, Follower, MemoryDisk, Position, RowChange, Storage,
    StorageError,
};

fn open(disk: &MemoryDisk) -> Storage {
    Storage::open(Arc::new(disk.clone()), small()).unwrap()
}

/// Returns the payload of a record. Most are short. Some are longer than the part of a segment that
/// a follower reads at once.
fn payload(number: u64) -> Vec<u8> {
    let length = if number.is_multiple_of(49) {
        100_000
    } else {
        number * 7 % 300
    };
    (0..length).map(|at| (at * 31 + number) as u8).collect()
}

fn append(storage: &Storage, numbers: std::ops::Range<u64>) {
    for number in numbers {
        let position = match number % 10 {
            0 => {
                let row = RowChange::put("row", number.to_string());
                storage.catalog.change(vec![row], |_| {}).unwrap()
            }
            _ => storage.log.append(&[&payload(number)], |_| {}).unwrap(),
        };
        assert_eq!(position, Position(number));
    }
}

fn next(follower: &mut Follower) -> Option<FollowedRecord> {
    follower.read().unwrap()
}

/// Reads all written records, compares them with what was appended from `number` on, and returns
/// the number of the next one.
fn check_rest(follower: &mut Follower, mut number: u64) -> u64 {
    let mut last = ClusterTime::default();
    while let Some(record) = next(follower) {
        assert_eq!(record.position, Position(number));
        assert!(record.time() > last);
        last = record.time();
        match record.content {
            Content::Data(found) => assert_eq!(found, payload(number)),
            Content::Catalog(_) => assert_eq!(number % 10, 0),
        }
        number += 1;
    }
    number
}

#[test]
fn follower_reads_records_while_the_log_grows() {
    let disk = MemoryDisk::new();
    let storage = open(&disk);
    let mut follower = storage.log.follow(Position(1));
    assert_eq!(next(&mut follower), None);
    let mut seen = 1;
    for end in [2, 3, 20, 21, 200, 400] {
        append(&storage, seen..end);
        assert_eq!(check_rest(&mut follower, seen), end);
        seen = end;
    }
    drop(storage);
    let storage = open(&disk);
    append(&storage, 400..410);
    for from in [1, 2, 50, 51, 399, 400, 409] {
        let mut follower = storage.log.follow(Position(from));
        assert_eq!(check_rest(&mut follower, from), 410);
    }
}

#[test]
fn follower_of_dropped_record_gets_not_kept() {
    let storage = open(&MemoryDisk::new());
    append(&storage, 1..300);
    let mut slow = storage.log.follow(Position(1));
    assert!(next(&mut slow).is_some());
    storage.log.keep_history(20 << 10);
    storage.drop_log_before(Position(300)).unwrap();
    let first = storage.log.history_first();
    assert!(first > Position(1));
    let mut follower = storage.log.follow(first);
    assert_eq!(check_rest(&mut follower, first.0), 300);
    for mut follower in [storage.log.follow(first.previous()), slow] {
        let error = loop {
            match follower.read() {
                Ok(record) => assert!(record.is_some(), "it must reach the dropped records"),
                Err(error) => break error,
            }
        };
        assert!(matches!(error, StorageError::NotKept { .. }), "{error}");
    }
    storage.log.keep_history(0);
    storage.drop_log_before(Position(300)).unwrap();
    assert!(
        storage.log.history_first() > first,
        "without a history, segments are dropped"
    );
}

#[test]
fn position_at_and_position_of_find_records_by_time() {
    let storage = open(&MemoryDisk::new());
    append(&storage, 1..300);
    let mut follower = storage.log.follow(Position(1));
    let mut times = Vec::new();
    while let Some(record) = next(&mut follower) {
        times.push(record.time());
    }
    for (index, time) in times.iter().enumerate() {
        let position = Position(index as u64 + 1);
        assert_eq!(storage.log.position_of(*time).unwrap(), Some(position));
        assert_eq!(storage.log.position_at(*time).unwrap(), position);
    }
    let newest = storage.log.newest_time();
    assert_eq!(times.last(), Some(&newest));
    let check = |time: ClusterTime, expected: u64| {
        assert_eq!(storage.log.position_at(time).unwrap(), Position(expected));
        assert_eq!(storage.log.position_of(time).unwrap(), None);
    };
    check(ClusterTime(0), 1);
    check(ClusterTime::new(times[0].seconds() - 1, 7), 1);
    check(newest.next(), 300);
    check(ClusterTime::new(u32::MAX, 0), 300);
}

#[test]
fn wait_beyond_returns_after_an_append() {
    let storage = open(&MemoryDisk::new());
    let log = storage.log.clone();
    assert!(!log.wait_beyond(Position(0), Duration::from_millis(10)));
    let began = Instant::now();
    let waiter = std::thread::spawn(move || log.wait_beyond(Position(0), Duration::from_secs(30)));
    std::thread::sleep(Duration::from_millis(50));
    append(&storage, 1..2);
    assert!(waiter.join().unwrap());
    assert!(began.elapsed() < Duration::from_secs(10));
    assert!(storage.log.wait_beyond(Position(0), Duration::ZERO));
}
