//! A server that takes over a database in an object store, and finds runs missing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use windrow_collection::{
    Background, Engine, EngineOptions, Error, Follower, InsertOrder, Namespace, OpenedDatabase,
    OpeningPolicy, Succession, Work, open_shared,
};
use windrow_document::doc;
use windrow_storage::{
    Bucket, ClusterOptions, MemoryBucket, MemoryDisk, Outcome, Replica, RequestFaults, RetryPolicy,
    StaleReason, StorageError, Uploads,
};

struct NoRetries;

impl RetryPolicy for NoRetries {
    fn should_retry(&self, _: u32, _: &StorageError) -> bool {
        false
    }
}

/// Whether a server takes over when it is opened.
struct Policy(bool);

impl OpeningPolicy for Policy {
    fn takes_over(&self, _: &Replica) -> bool {
        self.0
    }

    fn check_primary(&self) -> Result<(), StorageError> {
        Ok(())
    }

    fn reload(&self, replica: Replica, stale: StaleReason) -> Result<Replica, StorageError> {
        replica.reload(stale, |_, _| Ok(()))
    }

    fn wait(&self, error: StorageError) -> Result<(), StorageError> {
        Err(error)
    }
}

fn open(bucket: &MemoryBucket, policy: &Policy) -> Result<OpenedDatabase, Error> {
    let cluster = ClusterOptions {
        bucket: Arc::new(bucket.clone()),
        address: "host:1".to_owned(),
        new_server: None,
        cache_bytes: 64 << 20,
        heartbeat: Duration::ZERO,
        retention: Duration::ZERO,
        retry_policy: Arc::new(NoRetries),
        member_lifetime: Duration::ZERO,
        log_objects_max: 20,
        uploads: Uploads::Caller,
    };
    let options = EngineOptions {
        background: Background::Caller,
        ..EngineOptions::with_memory(64 << 20)
    };
    let disk = Arc::new(MemoryDisk::new());
    let replica = Replica::open(disk, options.storage.clone(), cluster)?;
    open_shared(replica, &options, policy)
}

fn primary(bucket: &MemoryBucket) -> Arc<Engine> {
    match open(bucket, &Policy(true)).unwrap() {
        OpenedDatabase::Primary(engine) => engine,
        OpenedDatabase::Follower(..) => panic!("it follows"),
    }
}

fn follower(bucket: &MemoryBucket) -> (Arc<Engine>, Box<Follower>) {
    match open(bucket, &Policy(false)).unwrap() {
        OpenedDatabase::Follower(engine, follower) => (engine, follower),
        OpenedDatabase::Primary(_) => panic!("it has taken over"),
    }
}

/// Inserts a document, and folds and uploads it.
fn insert(engine: &Engine, id: i32) {
    let name = Namespace::new("db", "c").unwrap();
    let collection = engine.collection_or_create(&name).unwrap();
    let document = doc! { "_id": id }.as_bytes().to_vec();
    let inserted = collection.insert(document.into(), InsertOrder::Ordered);
    assert!(inserted.unwrap().errors.is_empty());
    engine.work(Work::Fold).unwrap();
    engine.work(Work::Upload).unwrap();
}

type Act = Box<dyn FnOnce() + Send>;

/// Does something once, before a server that has created a fence opens a run.
#[derive(Default)]
struct AfterFence {
    act: Mutex<Option<Act>>,
    has_fence: AtomicBool,
}

impl RequestFaults for AfterFence {
    fn outcome(&self, operation: &str, name: &str) -> Outcome {
        match operation {
            "create" if name.starts_with("log/") => self.has_fence.store(true, Ordering::Relaxed),
            "size" if self.has_fence.load(Ordering::Relaxed) => {
                let act = self.act.lock().take();
                act.into_iter().for_each(|act| act());
            }
            _ => {}
        }
        Outcome::Done
    }
}

/// Deletes the runs of the database.
fn lose_runs(bucket: &MemoryBucket) {
    for run in bucket.list("runs", "").unwrap() {
        bucket.delete(&format!("runs/{run}")).unwrap();
    }
}

/// Takes over, writes, and deletes the runs that it does not need.
fn overtake(bucket: &MemoryBucket) {
    let before = bucket.list("runs", "").unwrap();
    let engine = primary(bucket);
    (1000..1010).for_each(|id| insert(&engine, id));
    engine.fold().unwrap();
    insert(&engine, 1010);
    engine.work(Work::CollectGarbage).unwrap();
    let after = bucket.list("runs", "").unwrap();
    assert!(before.iter().any(|run| !after.contains(run)));
}

/// Returns the error of a follower that takes over with sections that it has not adopted, while
/// `act` happens.
fn promote(act: fn(&MemoryBucket)) -> Error {
    let bucket = MemoryBucket::new();
    let first = primary(&bucket);
    insert(&first, 1);
    let faults = Arc::new(AfterFence::default());
    let (engine, mut follower) = follower(&bucket.with_faults(faults.clone()));
    // The snapshot keeps the follower from adopting sections.
    let snapshot = engine.cluster_snapshot();
    insert(&first, 2);
    while engine.written() < first.written() {
        follower.follow().unwrap();
    }
    *faults.act.lock() = Some(Box::new(move || act(&bucket)));
    let error = match follower.take_over(|| Ok(())) {
        Ok(Succession::Won) => panic!("it has won"),
        Ok(Succession::Behind(_)) => panic!("it is behind"),
        Ok(Succession::Stale(stale)) => panic!("{stale:?}"),
        Err(error) => error,
    };
    assert!(faults.act.lock().is_none(), "nothing has happened");
    drop(snapshot);
    error
}

/// Returns the error of a server that takes over when it is opened, while `act` happens.
fn begin(act: fn(&MemoryBucket)) -> Error {
    let bucket = MemoryBucket::new();
    insert(&primary(&bucket), 1);
    let faults = Arc::new(AfterFence::default());
    let slow = bucket.with_faults(faults.clone());
    *faults.act.lock() = Some(Box::new(move || act(&bucket)));
    let Err(error) = open(&slow, &Policy(true)) else {
        panic!("it was opened");
    };
    assert!(faults.act.lock().is_none(), "nothing has happened");
    error
}

#[test]
fn server_that_was_overtaken_at_once_says_so() {
    for error in [promote(overtake), begin(overtake)] {
        let is_fenced = matches!(error, Error::Storage(StorageError::Fenced { .. }));
        assert!(is_fenced, "{error:?}");
    }
}

#[test]
fn lost_runs_are_damage() {
    for error in [promote(lose_runs), begin(lose_runs)] {
        let is_damaged = matches!(error, Error::Storage(StorageError::Damaged { .. }));
        assert!(is_damaged, "{error:?}");
    }
}
