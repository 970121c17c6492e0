//! An engine that follows the log of another one over an object store, and takes over.

#[path = "common/building.rs"]
mod building;

use std::sync::Arc;
use std::time::Duration;

use windrow_collection::{
    Background, Change, Direction, Engine, EngineApplier, EngineOptions, Error, FollowingEngine,
    InsertOrder, Namespace, Reader, Renaming, Work,
};
use windrow_document::{Document, DocumentBuf, ValueRef, doc};
use windrow_storage::{
    Bucket, ClusterOptions, Disk, FollowOutcome, MemoryBucket, MemoryDisk, Promotion, Replica,
    RetryPolicy, StorageError, Uploads,
};

use building::build;

struct ManyRetries;

impl RetryPolicy for ManyRetries {
    fn should_retry(&self, attempt: u32, _: &StorageError) -> bool {
        attempt < 100
    }
}

fn options() -> EngineOptions {
    EngineOptions {
        background: Background::Caller,
        ..EngineOptions::with_memory(64 << 20)
    }
}

fn replica(disk: &MemoryDisk, bucket: &MemoryBucket) -> Replica {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    let cluster = ClusterOptions {
        bucket: Arc::new(bucket.clone()),
        address: "host:1".to_owned(),
        new_server: None,
        cache_bytes: 64 << 20,
        heartbeat: Duration::from_millis(10),
        retention: Duration::from_secs(60),
        retry_policy: Arc::new(ManyRetries),
        member_lifetime: Duration::from_secs(600),
        log_objects_max: 20,
        uploads: Uploads::Threads,
    };
    Replica::open(disk, options().storage, cluster).unwrap()
}

/// A server that follows.
struct Follower {
    replica: Replica,
    engine: Arc<Engine>,
    applier: EngineApplier,
}

impl Follower {
    fn open(bucket: &MemoryBucket) -> Follower {
        let replica = replica(&MemoryDisk::new(), bucket);
        let opened = Engine::open_following(replica.storage(), options());
        let FollowingEngine { engine, applier } = opened.unwrap();
        Follower {
            replica,
            engine,
            applier,
        }
    }

    /// Applies everything that `primary` has written.
    fn catch_up(&mut self, primary: &Engine) {
        let until = primary.written();
        while self.engine.written() < until {
            self.step();
        }
        self.applier.adopt().unwrap();
    }

    fn step(&mut self) {
        match self.replica.follow(&mut self.applier).unwrap() {
            FollowOutcome::Advanced => {}
            FollowOutcome::AtEnd => std::thread::sleep(Duration::from_millis(1)),
            FollowOutcome::Stale(stale) => panic!("{stale:?}"),
        }
        self.applier.adopt().unwrap();
    }

    /// Takes over the log.
    fn promote(mut self) -> Arc<Engine> {
        loop {
            while self.replica.follow(&mut self.applier).unwrap() == FollowOutcome::Advanced {}
            match self.replica.take_over().unwrap() {
                Promotion::Won(primary) => {
                    primary.into_storage().unwrap();
                    self.engine.begin_writing(self.applier).unwrap();
                    return self.engine;
                }
                Promotion::Behind(replica) => self.replica = *replica,
                Promotion::Stale(_, stale) => panic!("{stale:?}"),
            }
        }
    }
}

fn name(collection: &str) -> Namespace {
    Namespace::new("db", collection).unwrap()
}

fn insert(engine: &Engine, collection: &str, from: i32, count: i32) {
    let collection = engine.collection_or_create(&name(collection)).unwrap();
    let mut documents = Vec::new();
    for id in from..from + count {
        let document = doc! { "_id": id, "n": (id % 10), "text": (format!("text of {id}")) };
        documents.extend_from_slice(document.as_bytes());
    }
    collection
        .insert(documents.into(), InsertOrder::Ordered)
        .unwrap();
}

/// Sets the field "n" of a document.
fn update(engine: &Engine, collection: &str, id: i32, n: i32) {
    let collection = engine.collection(&name(collection)).unwrap();
    let (record, _) = collection
        .reader()
        .unwrap()
        .find(ValueRef::Int32(id))
        .unwrap()
        .unwrap();
    let mut batch = collection.batch();
    let changed = batch.change(record, |old| {
        let mut new = DocumentBuf::new();
        for (name, value) in old {
            match name {
                "n" => new.push("n", n),
                _ => new.push(name, value),
            }
        }
        Ok::<_, Error>(Change::Replace(new))
    });
    changed.unwrap();
    batch.commit().unwrap();
}

/// Returns all documents as `_id` and "n".
fn documents(reader: &Reader) -> Vec<(i32, i32)> {
    let mut records = reader.records(Direction::Forward);
    let mut found = Vec::new();
    while records.next().unwrap() {
        let document = Document::from_bytes(records.document()).unwrap();
        let number = |name: &str| document.get(name).and_then(ValueRef::as_whole).unwrap() as i32;
        found.push((number("_id"), number("n")));
    }
    found.sort_unstable();
    found
}

/// Returns the documents of a collection as `_id` and "n", and compares their number with the
/// entries of its indexes.
fn content(engine: &Engine, collection: &str) -> Vec<(i32, i32)> {
    let collection = engine.collection(&name(collection)).unwrap();
    let reader = collection.reader().unwrap();
    let found = documents(&reader);
    for index in 0..collection.indexes().len() {
        let mut entries = reader.entries(index, Direction::Forward).unwrap();
        let mut count = 0;
        while entries.next().unwrap() {
            count += 1;
        }
        assert_eq!(count, found.len(), "entries of index {index}");
    }
    found
}

fn same(primary: &Engine, follower: &Engine) {
    let names = |engine: &Engine| -> Vec<Namespace> {
        let all = engine.collections("db").into_iter();
        all.map(|it| it.namespace()).collect()
    };
    assert_eq!(names(primary), names(follower));
    for namespace in names(primary) {
        let indexes = |engine: &Engine| -> Vec<(String, bool)> {
            let collection = engine.collection(&namespace).unwrap();
            let indexes = collection.indexes().into_iter();
            indexes
                .map(|it| (it.definition.name.clone(), it.is_ready()))
                .collect()
        };
        assert_eq!(indexes(primary), indexes(follower), "{namespace}");
        let collection = &namespace.collection;
        assert_eq!(
            content(primary, collection),
            content(follower, collection),
            "{namespace}"
        );
        let count = |engine: &Engine| engine.collection(&namespace).unwrap().count();
        assert_eq!(count(primary), count(follower), "{namespace}");
    }
}

#[test]
fn follower_has_what_the_primary_wrote_and_takes_over() {
    let bucket = MemoryBucket::new();
    let primary = Follower::open(&bucket).promote();
    insert(&primary, "before", 0, 100);
    let mut follower = Follower::open(&bucket);
    follower.catch_up(&primary);
    same(&primary, &follower.engine);

    // Commits, folds and merges.
    for round in 0..6 {
        insert(&primary, "c", round * 100, 100);
        update(&primary, "c", round * 50, 77);
        update(&primary, "before", round, 78);
        primary.work(Work::Fold).unwrap();
        insert(&primary, "c", 10_000 + round, 1);
        while primary.work(Work::Merge).unwrap() {}
        follower.catch_up(&primary);
        same(&primary, &follower.engine);
    }

    // Indexes and names.
    let collection = primary.collection(&name("c")).unwrap();
    build(
        &collection,
        doc! { "key": { "n": 1 }, "name": "n_1", "v": 2 },
    );
    build(
        &collection,
        doc! { "key": { "text": 1 }, "name": "text_1", "v": 2 },
    );
    follower.catch_up(&primary);
    same(&primary, &follower.engine);
    insert(&primary, "c", 20_000, 50);
    primary.work(Work::Fold).unwrap();
    collection.drop_index("text_1").unwrap();
    primary
        .rename(&name("before"), &name("renamed"), &Renaming::default())
        .unwrap();
    insert(&primary, "before", 0, 3);
    insert(&primary, "dropped", 0, 3);
    follower.catch_up(&primary);
    same(&primary, &follower.engine);
    primary.drop_collection(&name("dropped")).unwrap();
    update(&primary, "renamed", 7, 79);
    follower.catch_up(&primary);
    same(&primary, &follower.engine);

    // The follower refuses writes, and then takes over.
    let refused = follower.engine.collection(&name("c")).unwrap();
    let refused = refused.insert(
        doc! { "_id": -1 }.as_bytes().to_vec().into(),
        InsertOrder::Ordered,
    );
    assert!(refused.is_err(), "a follower accepted a write");
    let promoted = follower.promote();
    same(&primary, &promoted);
    primary.close().unwrap();
    insert(&promoted, "c", 30_000, 20);
    update(&promoted, "c", 5, 80);
    promoted.fold().unwrap();
    insert(&promoted, "new", 0, 10);
    // What is not in the object store yet is lost when another server takes over.
    let limit = Duration::from_secs(60);
    assert!(promoted.wait_durable(promoted.written(), limit).unwrap());
    let last = Follower::open(&bucket);
    let last = last.promote();
    same(&promoted, &last);
    assert_eq!(content(&last, "new").len(), 10);
}

/// The primary does not know the snapshots of a follower, and removes versions that they see.
#[test]
fn open_snapshots_of_a_follower_keep_what_they_see() {
    let bucket = MemoryBucket::new();
    let primary = Follower::open(&bucket).promote();
    insert(&primary, "c", 0, 200);
    primary.work(Work::Fold).unwrap();
    let mut follower = Follower::open(&bucket);
    follower.catch_up(&primary);
    let snapshot = follower.engine.cluster_snapshot();
    let before = content(&follower.engine, "c");
    for round in 1..5 {
        for id in 0..200 {
            update(&primary, "c", id, round);
        }
        primary.work(Work::Fold).unwrap();
        while primary.work(Work::Merge).unwrap() {}
        follower.catch_up(&primary);
    }
    let collection = snapshot.collection(&name("c")).unwrap().unwrap();
    let reader = snapshot.reader(&collection).unwrap();
    let found = documents(&reader);
    assert_eq!(found, before);
    drop((reader, collection, snapshot));
    follower.catch_up(&primary);
    same(&primary, &follower.engine);
}

/// A primary without writes extends the log now and then. A server that starts must not read all of
/// that.
#[test]
fn log_is_shortened_without_writes() {
    let bucket = MemoryBucket::new();
    let primary = Follower::open(&bucket).promote();
    insert(&primary, "c", 0, 10);
    primary.work(Work::Fold).unwrap();
    let objects = || bucket.list("log", "").unwrap().len();
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    while objects() < 60 {
        assert!(std::time::Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(5));
    }
    let boundaries = bucket.list("boundary", "").unwrap().len();
    primary.work(Work::Fold).unwrap();
    while bucket.list("boundary", "").unwrap().len() == boundaries {
        assert!(std::time::Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(5));
    }
    let follower = Follower::open(&bucket);
    same(&primary, &follower.engine);
    let newest = bucket
        .list("boundary", "")
        .unwrap()
        .into_iter()
        .max()
        .unwrap();
    let boundary = bucket.get(&format!("boundary/{newest}")).unwrap().unwrap();
    let start = u64::from_le_bytes(boundary[24..32].try_into().unwrap());
    assert!(start >= 60, "a server begins at object {start}");
}
