//! Servers and tools that read a database in an object store so slowly that the primary deletes
//! what they read.

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::{cluster_options, primary, small};
use parking_lot::Mutex;
use windrow_storage::{
    Bucket, ClusterOptions, Disk, FollowOutcome, MemoryBucket, MemoryDisk, Outcome, Position,
    Promotion, Replica, RequestFaults, RowChange, RunId, StaleReason, Storage, StorageError,
    Uploads, inspect,
};

fn options(bucket: &MemoryBucket) -> ClusterOptions {
    ClusterOptions {
        heartbeat: Duration::ZERO,
        // No server waits for the others.
        member_lifetime: Duration::ZERO,
        uploads: Uploads::Caller,
        ..cluster_options(bucket)
    }
}

fn try_replica(disk: &MemoryDisk, bucket: &MemoryBucket) -> Result<Replica, StorageError> {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    Replica::open(disk, small(), options(bucket))
}

fn replica(disk: &MemoryDisk, bucket: &MemoryBucket) -> Replica {
    try_replica(disk, bucket).unwrap()
}

/// Writes a record, and uploads it in an object of its own. Returns its position.
fn write(storage: &Storage, text: &str) -> Position {
    let position = storage.log.append(&[text.as_bytes()], |_| {}).unwrap();
    storage.upload().unwrap();
    position
}

fn texts(storage: &Storage) -> Vec<String> {
    let records = storage.log.read_from(storage.log.first());
    let text = |payload| String::from_utf8(payload).unwrap();
    records
        .map(|record| text(record.unwrap().payload))
        .collect()
}

fn log_objects(bucket: &MemoryBucket) -> Vec<u64> {
    let names = bucket.list("log", "").unwrap().into_iter();
    names.map(|name| name.parse().unwrap()).collect()
}

/// A database whose log has the objects 1 and 2, the fences of two servers, and 3.
struct Database {
    bucket: MemoryBucket,
    primary: Storage,
}

impl Database {
    fn new() -> Database {
        let bucket = MemoryBucket::new();
        drop(primary(replica(&MemoryDisk::new(), &bucket)));
        let primary = primary(replica(&MemoryDisk::new(), &bucket));
        write(&primary, "one");
        assert_eq!(log_objects(&bucket), [1, 2, 3]);
        Database { bucket, primary }
    }

    /// Deletes the objects before the one of a new record, except the fences. Then `slow`, which
    /// has read them up to `last`, tries to take over. The fence that it leaves is the object
    /// before the one of the new record.
    fn collect(&self, slow: Replica, last: u64) {
        let change = RowChange::put("key", "value");
        self.primary.catalog.change(vec![change], |_| {}).unwrap();
        self.primary.upload().unwrap();
        assert_eq!(log_objects(&self.bucket).last(), Some(&(last + 1)));
        let folded = write(&self.primary, "folded");
        self.primary.drop_log_before(folded).unwrap();
        self.primary.collect_garbage().unwrap();
        assert_eq!(log_objects(&self.bucket), [1, 2, last + 2]);
        let Promotion::Stale(_, StaleReason::Collected) = slow.take_over().unwrap() else {
            panic!("a server that is behind has taken over");
        };
        assert_eq!(log_objects(&self.bucket), [1, 2, last + 1, last + 2]);
    }
}

/// Follows the log to its end.
fn caught_up(mut replica: Replica) -> Replica {
    while replica.follow(&mut ()).unwrap() == FollowOutcome::Advanced {}
    replica
}

/// Does something once, before a call.
struct Before {
    operation: &'static str,
    name: &'static str,
    act: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Before {
    fn new(
        operation: &'static str,
        name: &'static str,
        act: impl FnOnce() + Send + 'static,
    ) -> Arc<Before> {
        Arc::new(Before {
            operation,
            name,
            act: Mutex::new(Some(Box::new(act))),
        })
    }
}

impl RequestFaults for Before {
    fn outcome(&self, operation: &str, name: &str) -> Outcome {
        if (operation, name) == (self.operation, self.name) {
            let act = self.act.lock().take();
            act.into_iter().for_each(|act| act());
        }
        Outcome::Done
    }
}

/// Returns the object store of a reader that reads the object 4 after the primary has deleted it.
/// Another server has left a fence there.
fn slow_reader(database: Database) -> (MemoryBucket, Arc<Before>) {
    let bucket = database.bucket.clone();
    let slow = caught_up(replica(&MemoryDisk::new(), &bucket));
    let collect = move || database.collect(slow, 3);
    let before = Before::new("get", "log/00000000000000000004", collect);
    (bucket.with_faults(before.clone()), before)
}

#[test]
fn follower_begins_again_after_the_fence_of_another_one() {
    let bucket = MemoryBucket::new();
    drop(primary(replica(&MemoryDisk::new(), &bucket)));
    let disk = MemoryDisk::new();
    let second = primary(replica(&MemoryDisk::new(), &bucket));
    // It begins again at the object 2, a fence, which remains.
    drop(caught_up(replica(&disk, &bucket)));
    let slow = caught_up(replica(&MemoryDisk::new(), &bucket));
    let database = Database {
        bucket: bucket.clone(),
        primary: second,
    };
    database.collect(slow, 2);
    let mut back = replica(&disk, &bucket);
    let stale = loop {
        match back.follow(&mut ()).unwrap() {
            FollowOutcome::Advanced => {}
            FollowOutcome::AtEnd => panic!("the gap was not noticed"),
            FollowOutcome::Stale(stale) => break stale,
        }
    };
    assert_eq!(stale, StaleReason::Collected);
    let back = caught_up(back.reload(stale, |_, _| Ok(())).unwrap());
    assert_eq!(texts(&back.storage()), ["folded"]);
}

#[test]
fn start_reads_again_what_was_deleted_meanwhile() {
    let (bucket, before) = slow_reader(Database::new());
    let opened = caught_up(try_replica(&MemoryDisk::new(), &bucket).unwrap());
    assert!(before.act.lock().is_none(), "nothing was deleted");
    assert_eq!(texts(&opened.storage()), ["folded"]);
    let value = opened.storage().catalog.get(b"key");
    assert_eq!(value.as_deref(), Some(&b"value"[..]));
}

#[test]
fn inspection_reads_again_what_was_deleted_meanwhile() {
    let (bucket, before) = slow_reader(Database::new());
    let bucket: Arc<dyn Bucket> = Arc::new(bucket);
    let report = inspect(&bucket, &|_| None).unwrap();
    assert!(before.act.lock().is_none(), "nothing was deleted");
    assert_eq!((report.first_log_object, report.newest_log_object), (5, 5));
    assert!(report.missing.is_empty());
}

#[test]
fn inspection_tells_deleted_runs_from_missing_ones() {
    let Database { bucket, primary } = Database::new();
    let run_of = |key: &[u8]| (key == b"run").then_some(RunId(77));
    let change = |primary: &Storage, change| {
        primary.catalog.change(vec![change], |_| {}).unwrap();
        primary.upload().unwrap();
    };
    change(&primary, RowChange::put("run", "a row"));
    let shared: Arc<dyn Bucket> = Arc::new(bucket.clone());
    let report = inspect(&shared, &run_of).unwrap();
    assert_eq!(report.missing, [RunId(77)]);

    let delete = move || change(&primary, RowChange::delete("run"));
    let before = Before::new("list", "runs", delete);
    let shared: Arc<dyn Bucket> = Arc::new(bucket.with_faults(before.clone()));
    let report = inspect(&shared, &run_of).unwrap();
    assert!(before.act.lock().is_none(), "nothing was deleted");
    assert!(report.missing.is_empty());
    assert_eq!((report.first_log_object, report.newest_log_object), (1, 5));
}
