//! Full disks, failing writes and failing syncs: who is told what, and what is there afterwards.

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

/// The disk fills in the middle of a record. That record is refused whole and never comes back;
/// what was there can be read; with space, writing goes on where it was.
#[test]
fn a_full_disk_refuses_and_recovers() {
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
            let there = payloads(&open(&disk.crash(crash)));
            assert!(
                there.iter().all(|payload| payload == b"before"),
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

/// Three records are written as one group and the disk fills after the first of them. All three
/// are refused, so none may be there after a crash, not even the one that got through whole.
#[test]
fn a_full_disk_refuses_a_whole_group() {
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
        // Time for the three to queue up behind the one that publishes.
        thread::sleep(Duration::from_millis(200));
        disk.set_bytes_max(Some(disk.bytes() + 200));
        release.send(()).expect("it waits");
        blocking.join().expect("no panic").expect("there was space");
        for one in group {
            assert!(
                one.join()
                    .expect("no panic")
                    .expect_err("no space")
                    .is_full()
            );
        }
    });
    let crashes = (0..20).map(|seed| Crash::Tearing { seed });
    for crash in crashes.chain([Crash::OfProcess, Crash::LosingUnsynced]) {
        let there = payloads(&open(&disk.crash(crash)));
        assert!(
            there.iter().all(|payload| payload == b"before"),
            "{crash:?}"
        );
    }
    disk.set_bytes_max(None);
    assert_eq!(append(&storage, b"after").expect("there is space").0, 2);
}

/// A new segment cannot even be begun.
#[test]
fn a_full_disk_between_segments() {
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
fn a_run_on_a_full_disk_leaves_nothing() {
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

/// After a failed sync nobody knows what is durable: no write is taken until a new start.
#[test]
fn a_failed_sync_ends_writing() {
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
fn a_failed_write_ends_writing() {
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

/// What a publish changes in memory is not what the log says any more: stop.
#[test]
fn a_panicking_publish_ends_writing() {
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
fn a_payload_has_a_limit() {
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
