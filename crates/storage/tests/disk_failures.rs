//! Full disks, failing writes and failing syncs: the errors that callers get, and the content of
//! the log afterwards.

mod common;

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use common::{open, small};
use windrow_storage::{
    Compression, Crash, Disk, MemoryDisk, Position, RowChange, Storage, StorageError, encode_block,
};

fn append(storage: &Storage, payload: &[u8]) -> Result<Position, StorageError> {
    storage.log.append(&[payload], |_| {})
}

fn payloads(storage: &Storage) -> Vec<Vec<u8>> {
    let records = storage.log.read_from(Position(1));
    records
        .map(|record| record.expect("a record").payload)
        .collect()
}

/// The disk becomes full in the middle of a record. The record is refused, and no crash brings a
/// part of it back. Earlier records can be read. After space was freed, the next append succeeds.
#[test]
fn full_disk_refuses_a_record_and_recovers() {
    for room in [0, 10, 47, 48, 49, 100, 300] {
        let disk = MemoryDisk::new();
        let storage = open(&disk);
        append(&storage, b"before").expect("there is space");
        disk.set_bytes_max(Some(disk.bytes() + room));
        let error = append(&storage, &[7; 400]).expect_err("no space");
        assert!(error.is_full(), "{error}");
        assert!(
            error
                .to_string()
                .starts_with("the disk is full: memory:/log/000000000001.log")
        );
        let change = storage
            .catalog
            .change(vec![RowChange::put("a", vec![1; 400])], |_| {});
        assert!(
            change
                .expect_err("no space")
                .to_string()
                .starts_with("the disk is full")
        );
        assert_eq!(storage.catalog.get(b"a"), None);
        assert_eq!(payloads(&storage), [b"before".to_vec()]);
        for crash in [
            Crash::OfProcess,
            Crash::LosingUnsynced,
            Crash::Tearing { seed: room },
        ] {
            let found = payloads(&open(&disk.crash(crash)));
            assert!(
                found.iter().all(|payload| payload == b"before"),
                "{crash:?}, room {room}"
            );
        }
        disk.set_bytes_max(None);
        assert_eq!(append(&storage, b"after").expect("there is space").0, 2);
        drop(storage);
        assert_eq!(
            payloads(&open(&disk)),
            [b"before".to_vec(), b"after".to_vec()]
        );
    }
}

/// Three records are written as one group, and the disk becomes full after the first of them. All
/// three are refused. After a crash the log has none of them, although the first one was written
/// completely.
#[test]
fn full_disk_refuses_all_records_of_a_group() {
    let disk = MemoryDisk::new();
    let storage = open(&disk);
    let (release, released) = mpsc::channel::<()>();
    thread::scope(|scope| {
        let blocking = scope.spawn(|| {
            let wait = move |_| released.recv().expect("a release");
            storage.log.append(&[b"before"], wait)
        });
        let length = || Some(disk.open("log/000000000001.log").ok()?.len().unwrap_or(0));
        while length() < Some(48 + 48 + 8) {
            thread::yield_now();
        }
        let append = || storage.log.append(&[&[1; 100]], |_| panic!("published"));
        let group: Vec<_> = (0..3).map(|_| scope.spawn(append)).collect();
        // The three appenders queue up during this sleep, behind the leader that publishes.
        thread::sleep(Duration::from_millis(200));
        disk.set_bytes_max(Some(disk.bytes() + 200));
        release.send(()).expect("it waits");
        blocking.join().expect("no panic").expect("there was space");
        for appender in group {
            assert!(
                appender
                    .join()
                    .expect("no panic")
                    .expect_err("no space")
                    .is_full()
            );
        }
    });
    let crashes = (0..20).map(|seed| Crash::Tearing { seed });
    for crash in crashes.chain([Crash::OfProcess, Crash::LosingUnsynced]) {
        let found = payloads(&open(&disk.crash(crash)));
        assert!(
            found.iter().all(|payload| payload == b"before"),
            "{crash:?}"
        );
    }
    disk.set_bytes_max(None);
    assert_eq!(append(&storage, b"after").expect("there is space").0, 2);
}

/// The disk is full when a new segment has to begin.
#[test]
fn full_disk_refuses_a_new_segment_and_recovers() {
    let disk = MemoryDisk::new();
    let storage = open(&disk);
    let payload: Vec<u8> = (0..400_u32).map(|i| ((i * i * 31) >> 3) as u8).collect();
    let mut count = 0;
    disk.set_bytes_max(Some(8 << 10));
    while append(&storage, &payload).is_ok() {
        count += 1;
    }
    assert!(append(&storage, &payload).expect_err("no space").is_full());
    disk.set_bytes_max(None);
    append(&storage, &payload).expect("there is space");
    drop(storage);
    assert_eq!(payloads(&open(&disk)).len(), count + 1);
}

#[test]
fn run_on_a_full_disk_leaves_no_file() {
    let disk = MemoryDisk::new();
    let storage = open(&disk);
    let bytes = disk.bytes();
    disk.set_bytes_max(Some(bytes + 1000));
    let mut writer = storage.runs.create().expect("a writer");
    let block = encode_block(&[1; 5000], Compression::None);
    writer.append(&block).expect("it is only buffered");
    assert!(writer.finish().expect_err("no space").is_full());
    assert_eq!(disk.bytes(), bytes);
    assert_eq!(storage.runs.list().expect("a list"), []);
}

/// After a failed sync it is unknown which records are durable. The log refuses writes until the
/// next start.
#[test]
fn log_refuses_writes_after_a_failed_sync() {
    let disk = MemoryDisk::new();
    let storage = open(&disk);
    let synced = append(&storage, b"durable").expect("an append");
    storage.log.sync(synced).expect("a sync");
    let position = append(&storage, b"written").expect("an append");
    disk.set_failing_syncs(true);
    storage.log.sync(position).expect_err("syncs fail");
    disk.set_failing_syncs(false);
    let refused = "the log refuses writes until the database is restarted: a sync failed: \
        memory:/log/000000000001.log: the disk was told to fail syncs";
    let cases = [
        append(&storage, b"more").map(|_| ()),
        storage.log.sync(position),
        storage.log.append(&[], |_| panic!("published")).map(|_| ()),
    ];
    for case in cases {
        assert_eq!(case.expect_err("refused").to_string(), refused);
    }
    storage.log.sync(synced).expect("it is durable");
    assert_eq!(payloads(&storage).len(), 2, "reads go on");
    let crashed = disk.crash(Crash::LosingUnsynced);
    assert_eq!(payloads(&open(&crashed)), [b"durable".to_vec()]);
}

#[test]
fn log_refuses_writes_after_a_failed_write() {
    let disk = MemoryDisk::new();
    let storage = open(&disk);
    append(&storage, b"first").expect("an append");
    disk.set_failing_writes(true);
    append(&storage, &[5; 300]).expect_err("writes fail");
    disk.set_failing_writes(false);
    let error = append(&storage, b"more").expect_err("refused").to_string();
    assert!(
        error.contains("a write failed: memory:/log/000000000001.log"),
        "{error}"
    );
    drop(storage);
    let storage = open(&disk);
    assert_eq!(payloads(&storage), [b"first".to_vec()]);
    assert_eq!(append(&storage, b"second").expect("a new start").0, 2);
}

/// After a panic of a publish step, the state in memory differs from the log.
#[test]
fn log_refuses_writes_after_a_panic_of_publish() {
    let storage = open(&MemoryDisk::new());
    let panicked = storage.log.append(&[b"x"], |_| panic!("on purpose"));
    assert!(
        matches!(panicked, Err(StorageError::RefusingWrites { .. })),
        "{panicked:?}"
    );
    assert!(matches!(
        append(&storage, b"y"),
        Err(StorageError::RefusingWrites { .. })
    ));
}

#[test]
fn append_refuses_payloads_above_the_limit() {
    let storage = open(&MemoryDisk::new());
    let half = vec![0; 32 << 20];
    append(&storage, &[0; 100]).expect("short enough");
    storage
        .log
        .append(&[&half, &half], |_| {})
        .expect("just short enough");
    let error = storage
        .log
        .append(&[&half, &half, &[1]], |_| {})
        .expect_err("too long");
    let expected = "the payload of a log record has 67108865 bytes, the limit is 67108864";
    assert_eq!(error.to_string(), expected);
    assert_eq!(payloads(&storage)[1].len(), 64 << 20);
    assert!(small().log.sync_interval.is_none());
}
