//! A database in an object store: servers that take it over from each other.

mod common;

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use common::{cluster_options, primary};
use windrow_storage::{
    Bucket, Caching, ClusterOptions, Compression, Disk, FollowOutcome, LogOptions, MemoryBucket,
    MemoryDisk, Outcome, Position, Replica, RequestFaults, RetryPolicy, RowChange, StaleReason,
    Storage, StorageError, StorageOptions, encode_block,
};

/// Tries again for a while.
struct Retries(u32);

impl RetryPolicy for Retries {
    fn should_retry(&self, attempt: u32, _: &StorageError) -> bool {
        std::thread::sleep(Duration::from_millis(1));
        attempt < self.0
    }
}

fn options(bucket: &MemoryBucket) -> ClusterOptions {
    ClusterOptions {
        retry_policy: Arc::new(Retries(1000)),
        ..cluster_options(bucket)
    }
}

fn storage_options() -> StorageOptions {
    StorageOptions {
        log: LogOptions {
            segment_bytes: 4096,
            ..LogOptions::default()
        },
        ..StorageOptions::default()
    }
}

fn replica(disk: &MemoryDisk, bucket: &MemoryBucket) -> Replica {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    Replica::open(disk, storage_options(), options(bucket)).unwrap()
}

fn append(storage: &Storage, text: &str) -> Position {
    storage.log.append(&[text.as_bytes()], |_| {}).unwrap()
}

fn wait_durable(storage: &Storage, position: Position) {
    let durable = storage.wait_durable(position, Duration::from_secs(10));
    assert!(durable.unwrap(), "not durable after 10 seconds");
}

fn records(storage: &Storage) -> Vec<String> {
    let records = storage.log.read_from(storage.log.first());
    let text = |payload| String::from_utf8(payload).unwrap();
    records
        .map(|record| text(record.unwrap().payload))
        .collect()
}

#[test]
fn new_server_has_what_the_primary_uploaded() {
    let bucket = MemoryBucket::new();
    let first = primary(replica(&MemoryDisk::new(), &bucket));
    append(&first, "one");
    let change = RowChange::put("key", "value");
    first.catalog.change(vec![change], |_| {}).unwrap();
    let mut writer = first.runs.create().unwrap();
    let block = encode_block(&[7; 5000], Compression::Lz4);
    let address = writer.append(&block).unwrap();
    writer.finish().unwrap();
    wait_durable(&first, append(&first, "two"));
    first.close_upload();

    let second = replica(&MemoryDisk::new(), &bucket);
    assert!(second.is_without_primary() || second.written() > Position::ZERO);
    let second = primary(second);
    assert_eq!(records(&second), ["one", "two"]);
    assert_eq!(second.catalog.get(b"key").as_deref(), Some(&b"value"[..]));
    let read = second.runs.open_block(address, Caching::Past).unwrap();
    assert_eq!(&*read, &[7; 5000][..]);
    let statistics = second.store_statistics().unwrap();
    assert!(statistics.cache.bytes > 0);
    assert_eq!((statistics.cache.misses, statistics.cache.hits), (1, 0));
    assert!(statistics.requests.bytes_read > 5000 / 255);
    assert_eq!(statistics.requests.failed, 0);
    // Ids of runs are unique over all servers.
    let run = second.runs.create().unwrap().run();
    assert!(run > address.run);
    append(&second, "three");
}

/// Drivers forget the servers that a new primary does not name.
#[test]
fn new_primary_knows_the_other_servers_from_the_first_moment() {
    struct AnnouncementsFail(AtomicBool);
    impl RequestFaults for AnnouncementsFail {
        fn outcome(&self, _: &str, name: &str) -> Outcome {
            if self.0.load(Ordering::Relaxed) && name.starts_with("servers") {
                Outcome::RequestLost
            } else {
                Outcome::Done
            }
        }
    }
    let bucket = MemoryBucket::new();
    let open = |bucket: &MemoryBucket, address: &str| {
        let options = ClusterOptions {
            address: address.to_owned(),
            ..options(bucket)
        };
        let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
        Replica::open(disk, storage_options(), options).unwrap()
    };
    let addresses = |storage: &Storage| -> Vec<String> {
        let members = storage.shared_state().unwrap().members;
        members.into_iter().map(|it| it.address).collect()
    };
    let first = primary(open(&bucket, "one:1"));
    wait_durable(&first, append(&first, "record"));
    let _third = open(&bucket, "three:3");
    let faults = Arc::new(AnnouncementsFail(AtomicBool::new(false)));
    let mut second = open(&bucket.with_faults(faults.clone()), "two:2");
    while second.follow(&mut ()).unwrap() == FollowOutcome::Advanced {}
    let changes = second.storage().member_changes();
    assert_eq!(changes, 1);

    faults.0.store(true, Ordering::Relaxed);
    let second = primary(second);
    assert_eq!(addresses(&second), ["one:1", "three:3", "two:2"]);
    assert_eq!(second.member_changes(), changes);

    faults.0.store(false, Ordering::Relaxed);
    let _fourth = open(&bucket, "four:4");
    let deadline = Instant::now() + Duration::from_secs(10);
    while second.member_changes() == changes {
        assert!(Instant::now() < deadline, "the new server was not noticed");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(addresses(&second), ["four:4", "one:1", "three:3", "two:2"]);
}

/// If `true`, requests that create objects of the log are lost.
struct LogFaults(AtomicBool);

impl RequestFaults for LogFaults {
    fn outcome(&self, operation: &str, name: &str) -> Outcome {
        let is_log = operation == "create" && name.starts_with("log/");
        if is_log && self.0.load(Ordering::Relaxed) {
            Outcome::RequestLost
        } else {
            Outcome::Done
        }
    }
}

#[test]
fn fenced_primary_refuses_writes_and_rolls_back() {
    let bucket = MemoryBucket::new();
    let disk = MemoryDisk::new();
    let first = primary(replica(&disk, &bucket));
    wait_durable(&first, append(&first, "both have this"));
    drop(first);

    // The old primary loses the network, and acknowledges writes from its local log.
    let faults = Arc::new(LogFaults(AtomicBool::new(false)));
    let old = primary(replica(&disk, &bucket.with_faults(faults.clone())));
    faults.0.store(true, Ordering::Relaxed);
    let lost = append(&old, "the local log has this");
    append(&old, "and this");
    assert!(!old.wait_durable(lost, Duration::from_millis(100)).unwrap());

    let new = primary(replica(&MemoryDisk::new(), &bucket));
    wait_durable(&new, append(&new, "the new primary has this"));
    drop(old);

    let mut back = replica(&disk, &bucket);
    let stale = loop {
        match back.follow(&mut ()).unwrap() {
            FollowOutcome::Advanced => {}
            FollowOutcome::AtEnd => panic!("the divergence was not noticed"),
            FollowOutcome::Stale(stale) => break stale,
        }
    };
    assert_eq!(stale, StaleReason::Diverged(lost));
    let mut saved = Vec::new();
    let back = back.reload(stale, |storage, from| {
        let records = storage.log.read_from(from);
        saved.extend(records.map(|record| record.unwrap().payload));
        Ok(())
    });
    let mut back = back.unwrap();
    assert_eq!(saved, [&b"the local log has this"[..], b"and this"]);
    // The new primary continues to create objects without records.
    assert!(!matches!(
        back.follow(&mut ()).unwrap(),
        FollowOutcome::Stale(_)
    ));
    assert_eq!(back.written(), new.log.written());

    // The new primary is fenced in turn.
    let back = primary(back);
    let refused = (0..500).find_map(|_| {
        std::thread::sleep(Duration::from_millis(10));
        new.log.append(&[b"too late"], |_| {}).err()
    });
    assert!(
        matches!(refused, Some(StorageError::Fenced { .. })),
        "{refused:?}"
    );
    let fenced = new.wait_durable(Position(99), Duration::from_secs(1));
    assert!(
        matches!(fenced, Err(StorageError::Fenced { .. })),
        "{fenced:?}"
    );
    assert_eq!(
        records(&back),
        ["both have this", "the new primary has this"]
    );
}

#[test]
fn unsent_records_of_the_only_server_are_uploaded_after_a_restart() {
    struct Down;
    impl RequestFaults for Down {
        fn outcome(&self, operation: &str, name: &str) -> Outcome {
            let is_log = operation == "create" && name.starts_with("log/");
            if is_log && name > "log/00000000000000000001" {
                Outcome::RequestLost
            } else {
                Outcome::Done
            }
        }
    }
    let bucket = MemoryBucket::new();
    let disk = MemoryDisk::new();
    let lonely = primary(replica(&disk, &bucket.with_faults(Arc::new(Down))));
    append(&lonely, "not uploaded");
    lonely.log.sync(lonely.log.written()).unwrap();
    drop(lonely);
    let again = replica(&disk, &bucket);
    let mut again = again;
    while again.follow(&mut ()).unwrap() == FollowOutcome::Advanced {}
    assert!(again.is_without_primary());
    let again = primary(again);
    wait_durable(&again, Position(1));
    let other = primary(replica(&MemoryDisk::new(), &bucket));
    assert_eq!(records(&other), ["not uploaded"]);
}

#[test]
fn folded_log_is_collected_and_new_servers_begin_at_the_checkpoint() {
    let bucket = MemoryBucket::new();
    let first = primary(replica(&MemoryDisk::new(), &bucket));
    let mut orphan = first.runs.create().unwrap();
    orphan
        .append(&encode_block(b"unused", Compression::None))
        .unwrap();
    let orphan = orphan.finish().unwrap();
    for number in 0..60 {
        let change = RowChange::put("row", format!("{number}").into_bytes());
        first.catalog.change(vec![change], |_| {}).unwrap();
        let text = format!("record {number}, with some text to fill a segment of the log");
        wait_durable(&first, append(&first, &text));
    }
    let before = bucket.list("log", "").unwrap().len();
    let folded = Position(101);
    first.drop_log_before(folded).unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    while bucket.list("log", "").unwrap().len() + 30 > before {
        assert!(Instant::now() < deadline, "nothing was collected");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(
        bucket.get("log/00000000000000000001").unwrap().is_some(),
        "fences are kept"
    );
    first.close_upload();

    let second = primary(replica(&MemoryDisk::new(), &bucket));
    assert_eq!(second.catalog.get(b"row").as_deref(), Some(&b"59"[..]));
    assert!(second.log.first() > Position(1) && second.log.first() <= folded);
    let last = records(&second).pop().unwrap();
    assert!(last.starts_with("record 59"), "{last}");
    assert_eq!(bucket.list("runs", "").unwrap().len(), 1);
    second.retain_runs(HashSet::new()).unwrap();
    while !bucket.list("runs", "").unwrap().is_empty() {
        assert!(
            Instant::now() < deadline,
            "the orphan {orphan} was not deleted"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn folder_of_another_database_is_refused() {
    let (one, other) = (MemoryBucket::new(), MemoryBucket::new());
    let disk = MemoryDisk::new();
    drop(replica(&disk, &one));
    let disk: Arc<dyn Disk> = Arc::new(disk);
    let open = |bucket| Replica::open(disk.clone(), storage_options(), options(bucket));
    assert!(matches!(
        open(&other).err(),
        Some(StorageError::Unsuitable { .. })
    ));
    let own: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    drop(Storage::open(own.clone(), storage_options()).unwrap());
    let opened = Replica::open(own, storage_options(), options(&one));
    assert!(matches!(
        opened.err(),
        Some(StorageError::Unsuitable { .. })
    ));
}

#[test]
fn store_that_lets_two_win_is_refused() {
    /// Creates an object although it exists.
    struct Careless(MemoryBucket);
    impl Bucket for Careless {
        fn create(
            &self,
            name: &str,
            bytes: bytes::Bytes,
        ) -> Result<windrow_storage::Creation, StorageError> {
            self.0.put(name, bytes)?;
            Ok(windrow_storage::Creation::Created)
        }
        fn put(&self, name: &str, bytes: bytes::Bytes) -> Result<(), StorageError> {
            self.0.put(name, bytes)
        }
        fn put_file(
            &self,
            name: &str,
            file: &dyn windrow_storage::DiskFile,
        ) -> Result<(), StorageError> {
            self.0.put_file(name, file)
        }
        fn get(&self, name: &str) -> Result<Option<bytes::Bytes>, StorageError> {
            self.0.get(name)
        }
        fn get_range(
            &self,
            name: &str,
            range: std::ops::Range<u64>,
        ) -> Result<Option<bytes::Bytes>, StorageError> {
            self.0.get_range(name, range)
        }
        fn size(&self, name: &str) -> Result<Option<u64>, StorageError> {
            self.0.size(name)
        }
        fn list(&self, folder: &str, after: &str) -> Result<Vec<String>, StorageError> {
            self.0.list(folder, after)
        }
        fn delete(&self, name: &str) -> Result<(), StorageError> {
            self.0.delete(name)
        }
        fn place(&self, name: &str) -> String {
            self.0.place(name)
        }
    }
    let options = ClusterOptions {
        bucket: Arc::new(Careless(MemoryBucket::new())),
        ..options(&MemoryBucket::new())
    };
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    let opened = Replica::open(disk, storage_options(), options);
    let Some(StorageError::Unsuitable { what, .. }) = opened.err() else {
        panic!("the store was accepted");
    };
    assert!(what.contains("If-None-Match"), "{what}");
}
