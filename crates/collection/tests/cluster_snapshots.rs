//! Pinned snapshots: a read at a cluster time that a client knows gives the same result until the
//! snapshot is closed.

#[path = "common/building.rs"]
mod building;
mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use building::build;
use bytes::Bytes;
use common::{MEMORY, collection, namespace, open};
use windrow_collection::{
    Background, Change, ClusterSnapshot, ClusterTime, Collection, Direction, Engine, EngineOptions,
    Error, InsertOrder, Namespace, Origin, PINNED_SNAPSHOTS_MAX, Reader, Renaming, SessionKey,
    View, Work,
};
use windrow_document::{Document, DocumentBuf, Value, ValueRef, array, doc};
use windrow_storage::MemoryDisk;

fn insert(collection: &Collection, document: DocumentBuf) {
    let bytes = Bytes::copy_from_slice(document.as_bytes());
    let inserted = collection.insert(bytes, InsertOrder::Ordered).unwrap();
    assert!(inserted.errors.is_empty());
}

fn set(collection: &Collection, id: i32, change: Change) {
    let reader = collection.reader().unwrap();
    let record = reader.find_id(ValueRef::Int32(id)).unwrap().unwrap();
    let mut batch = collection.batch();
    batch
        .change(record, |_| Ok::<Change, Error>(change.clone()))
        .unwrap();
    batch.commit().unwrap();
}

fn build_on(collection: &Collection, field: &str) {
    let mut key = DocumentBuf::new();
    key.push(field, 1);
    build(collection, doc! { "key": key, "name": field });
}

/// `n` of all documents in insertion order; checks each index on `n`.
fn seen(reader: &Reader) -> Vec<i32> {
    let number = |bytes: &[u8]| match Document::from_validated(bytes).get("n") {
        Some(ValueRef::Int32(number)) => number,
        other => panic!("{other:?}"),
    };
    let (mut found, mut cursor) = (Vec::new(), reader.records(Direction::Forward));
    while cursor.next().unwrap() {
        found.push(number(cursor.document()));
    }
    for index in 1..reader.indexes().len() {
        let (mut by_index, mut cursor) = (
            Vec::new(),
            reader.entries(index, Direction::Forward).unwrap(),
        );
        while cursor.next().unwrap() {
            by_index.push(number(&reader.get(cursor.id()).unwrap().unwrap()));
        }
        let mut expected = found.clone();
        expected.sort_unstable();
        assert_eq!(by_index, expected, "by {}", reader.indexes()[index].name());
    }
    found
}

fn at(engine: &Engine, time: ClusterTime) -> Result<ClusterSnapshot, Error> {
    engine.cluster_snapshot_at(time, engine.newest_time())
}

/// The documents under a name at a cluster time, or `None` if there was no such collection.
fn visible_at(engine: &Engine, time: ClusterTime, name: &Namespace) -> Option<Vec<i32>> {
    let snapshot = at(engine, time).unwrap();
    assert_eq!(snapshot.time(), time);
    let found = snapshot.collection(name).unwrap()?;
    Some(seen(&snapshot.reader(&found).unwrap()))
}

fn is_gone(engine: &Engine, time: ClusterTime) -> bool {
    matches!(at(engine, time), Err(Error::SnapshotNotKept(found)) if found == time)
}

fn started() -> (Arc<Engine>, Arc<Collection>) {
    let engine = open(&MemoryDisk::new());
    engine
        .create(&namespace(), DocumentBuf::new().as_document())
        .unwrap();
    let collection = collection(&engine);
    (0..10).for_each(|id| insert(&collection, doc! { "_id": id, "n": id }));
    (engine, collection)
}

fn fold_all(engine: &Engine) {
    engine.fold().unwrap();
    while engine.work(Work::Compact).unwrap() {}
}

#[test]
fn a_pinned_snapshot_survives_changes_folds_merges_and_builds() {
    let (engine, collection) = started();
    build_on(&collection, "n");
    let first = engine.cluster_snapshot().time();
    let ten: Vec<i32> = (0..10).collect();
    set(&collection, 3, Change::Replace(doc! { "_id": 3, "n": 33 }));
    set(&collection, 4, Change::Delete);
    let second = engine.cluster_snapshot().time();
    assert!(second > first);
    fold_all(&engine);
    insert(&collection, doc! { "_id": 10, "n": 10 });
    build_on(&collection, "m");
    // The index was built from versions after both snapshots.
    let of_first = at(&engine, first).unwrap();
    assert_eq!(of_first.reader(&collection).unwrap().indexes().len(), 2);
    for round in 0..3 {
        set(
            &collection,
            5,
            Change::Replace(doc! { "_id": 5, "n": (50 + round) }),
        );
        fold_all(&engine);
        assert_eq!(visible_at(&engine, first, &namespace()).unwrap(), ten);
        let expected = [0, 1, 2, 33, 5, 6, 7, 8, 9];
        assert_eq!(visible_at(&engine, second, &namespace()).unwrap(), expected);
    }
    collection.drop_index("n").unwrap();
    assert_eq!(visible_at(&engine, first, &namespace()).unwrap(), ten);
    let third = engine.cluster_snapshot();
    assert_eq!(third.reader(&collection).unwrap().indexes().len(), 2);
    let transaction = engine
        .begin_at(
            Origin {
                session: SessionKey([1; 16]),
                number: 1,
            },
            Arc::new(of_first),
        )
        .unwrap();
    // It would use indexes that were built since.
    let refused = transaction.collection(&namespace());
    assert!(matches!(refused, Err(Error::CollectionChanged(_))));
}

/// Plans for a pinned snapshot used to go by the current number of documents.
#[test]
fn the_document_count_of_a_snapshot_is_approximated() {
    let (engine, collection) = started();
    let time = engine.cluster_snapshot().time();
    (0..10).for_each(|id| set(&collection, id, Change::Delete));
    for _ in 0..2 {
        assert_eq!(collection.count(), 0);
        let reader = at(&engine, time).unwrap().reader(&collection).unwrap();
        assert!((10..=11).contains(&reader.approximate_document_count()));
        fold_all(&engine);
    }
}

#[test]
fn a_position_is_pinned_once() {
    let (engine, collection) = started();
    let before = engine.statistics().open_snapshots;
    let times: Vec<ClusterTime> = (0..50).map(|_| engine.cluster_snapshot().time()).collect();
    assert!(times.windows(2).all(|pair| pair[0] == pair[1]));
    assert_eq!(engine.statistics().open_snapshots, before + 1);
    assert_eq!(times[0], engine.newest_time());
    insert(&collection, doc! { "_id": 10, "n": 10 });
    // The newest snapshot can be read although its time was not reported.
    assert_eq!(
        visible_at(&engine, engine.newest_time(), &namespace())
            .unwrap()
            .len(),
        11
    );
    insert(&collection, doc! { "_id": 11, "n": 11 });
    let between = engine.newest_time();
    insert(&collection, doc! { "_id": 12, "n": 12 });
    assert!(is_gone(&engine, between));
    assert_eq!(
        visible_at(&engine, times[0], &namespace()).unwrap().len(),
        10
    );
}

#[test]
fn pinned_snapshots_are_limited_in_number_and_age() {
    let (engine, collection) = started();
    let mut times = Vec::new();
    for id in 10..11 + PINNED_SNAPSHOTS_MAX as i32 {
        times.push(engine.cluster_snapshot().time());
        // A reader still uses the first snapshot.
        assert!(!is_gone(&engine, times[0]));
        insert(&collection, doc! { "_id": id, "n": id });
    }
    assert_eq!(times.len(), PINNED_SNAPSHOTS_MAX + 1);
    assert!(is_gone(&engine, times[1]));
    assert_eq!(
        visible_at(&engine, times[0], &namespace()).unwrap().len(),
        10
    );
    assert_eq!(
        visible_at(&engine, times[2], &namespace()).unwrap().len(),
        12
    );
    let reader = at(&engine, times[2]).unwrap().reader(&collection).unwrap();
    engine.set_snapshot_window(Duration::ZERO);
    std::thread::sleep(Duration::from_millis(2));
    assert!(times.iter().all(|time| is_gone(&engine, *time)));
    // Existing readers continue.
    fold_all(&engine);
    assert_eq!(seen(&reader).len(), 12);
    drop(reader);
    engine.work(Work::CreateEntries).unwrap();
    assert_eq!(engine.statistics().open_snapshots, 0);
}

#[test]
fn names_are_those_of_the_snapshot() {
    let (engine, collection) = started();
    let other = Namespace::new("d", "other").unwrap();
    let view = |on: &str| View {
        on: on.to_owned(),
        pipeline: array![],
        collation: None,
    };
    let named_view = Namespace::new("d", "v").unwrap();
    engine.create_view(&named_view, &view("c")).unwrap();
    let ten: Vec<i32> = (0..10).collect();
    let first = engine.cluster_snapshot().time();
    engine
        .rename(&namespace(), &other, &Renaming::default())
        .unwrap();
    engine.change_view(&named_view, &view("other")).unwrap();
    let second = engine.cluster_snapshot().time();
    engine
        .create(&namespace(), DocumentBuf::new().as_document())
        .unwrap();
    insert(&common::collection(&engine), doc! { "_id": 1, "n": 1 });
    let third = engine.cluster_snapshot().time();
    assert!(engine.drop_collection(&other).unwrap());
    assert!(engine.drop_collection(&namespace()).unwrap());
    assert!(engine.drop_view(&named_view).unwrap());
    let fourth = engine.cluster_snapshot().time();
    drop(collection);
    for _ in 0..2 {
        let check = |time, of_c: Option<Vec<i32>>, of_other: Option<Vec<i32>>, on: Option<&str>| {
            assert_eq!(visible_at(&engine, time, &namespace()), of_c);
            assert_eq!(visible_at(&engine, time, &other), of_other);
            let found = at(&engine, time).unwrap().view(&named_view).unwrap();
            assert_eq!(found.map(|view| view.on), on.map(str::to_owned));
        };
        check(first, Some(ten.clone()), None, Some("c"));
        check(second, None, Some(ten.clone()), Some("other"));
        check(third, Some(vec![1]), Some(ten.clone()), Some("other"));
        check(fourth, None, None, None);
        fold_all(&engine);
        engine.work(Work::CreateEntries).unwrap();
    }
}

#[test]
fn a_dropped_collection_with_large_tails_is_not_kept() {
    let (engine, collection) = started();
    let text = "x".repeat(1 << 20);
    (10..16).for_each(|id| {
        insert(
            &collection,
            doc! { "_id": id, "n": id, "text": (text.as_str()) },
        )
    });
    let time = engine.cluster_snapshot().time();
    engine.drop_collection(&namespace()).unwrap();
    assert!(
        at(&engine, time)
            .unwrap()
            .collection(&namespace())
            .unwrap()
            .is_some()
    );
    engine.work(Work::CreateEntries).unwrap();
    // It must not look as if the collection had not existed.
    let refused = at(&engine, time).unwrap().collection(&namespace());
    assert!(matches!(refused, Err(Error::CollectionChanged(_))));
}

/// A document that changes constantly had a version for each pinned snapshot, and each scan passed
/// over all of them.
#[test]
fn past_versions_do_not_slow_down_new_readers() {
    let (engine, collection) = started();
    build_on(&collection, "n");
    let update_all = |round: i32| {
        (0..10).for_each(|id| {
            let new = doc! { "_id": id, "n": (100 * round + id) };
            set(&collection, id, Change::Replace(new));
        });
    };
    let numbers = |round: i32| (0..10).map(|id| 100 * round + id).collect::<Vec<i32>>();
    let mut times = Vec::new();
    for round in 1..=40 {
        update_all(round);
        // Two of three times are not reported, so their versions are not kept.
        if round % 3 == 0 {
            times.push((engine.cluster_snapshot().time(), numbers(round)));
        }
        engine.fold().unwrap();
    }
    while engine.work(Work::Compact).unwrap() {}
    let entries = || {
        let statistics = collection.statistics();
        let index = &statistics.indexes[1];
        (index.entries_stored, index.sections, statistics.sections)
    };
    assert_eq!(entries(), (10, 1, 1));
    let bytes = || collection.statistics().bytes_stored;
    let with_versions = bytes();
    assert_eq!(seen(&collection.reader().unwrap()), numbers(40));
    for (time, expected) in &times {
        assert_eq!(&visible_at(&engine, *time, &namespace()).unwrap(), expected);
    }
    // Once the times are forgotten, the versions are removed without a merge.
    let merges = engine.statistics().merges;
    engine.set_snapshot_window(Duration::ZERO);
    std::thread::sleep(Duration::from_millis(2));
    assert!(engine.work(Work::CreateEntries).unwrap());
    assert_eq!(engine.statistics().merges, merges);
    assert!(bytes() < with_versions / 4, "{} {with_versions}", bytes());
    assert_eq!(entries(), (10, 1, 1));
    assert_eq!(seen(&collection.reader().unwrap()), numbers(40));
}

#[test]
fn the_oldest_snapshots_are_closed_if_versions_exceed_memory() {
    let disk = MemoryDisk::new();
    let mut options = EngineOptions::with_memory(4 << 20);
    options.background = Background::Caller;
    let engine = Engine::open(Arc::new(disk), options).unwrap();
    engine.create(&namespace(), Document::EMPTY).unwrap();
    let collection = collection(&engine);
    let mut state = 1u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut document = |round: i32| {
        let bytes: Vec<u8> = (0..1 << 15).flat_map(|_| random().to_be_bytes()).collect();
        doc! { "_id": 1, "n": round, "b": (Value::Binary { subtype: 0, bytes }) }
    };
    insert(&collection, document(0));
    let mut times = Vec::new();
    for round in 1..=30 {
        times.push(engine.cluster_snapshot().time());
        set(&collection, 1, Change::Replace(document(round)));
        fold_all(&engine);
        engine.work(Work::CreateEntries).unwrap();
    }
    assert!(is_gone(&engine, times[0]) && is_gone(&engine, times[5]));
    assert!(collection.statistics().bytes_stored < 6 << 20);
    for (number, time) in (0..).zip(&times).skip(25) {
        assert_eq!(visible_at(&engine, *time, &namespace()).unwrap(), [number]);
    }
}

/// A name changes before any snapshot of that position exists.
#[test]
fn a_collection_has_one_name_per_snapshot() {
    let (engine, _) = started();
    let other = Namespace::new("d", "other").unwrap();
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut from, mut to) = (namespace(), other.clone());
            for _ in 0..500 {
                engine.rename(&from, &to, &Renaming::default()).unwrap();
                std::mem::swap(&mut from, &mut to);
            }
            ended.store(true, Ordering::Relaxed);
        });
        let mut seen = 0;
        while !ended.load(Ordering::Relaxed) || seen < 10 {
            let snapshot = engine.cluster_snapshot();
            let named = [&namespace(), &other].map(|name| snapshot.collection(name).unwrap());
            assert_eq!(named.iter().flatten().count(), 1, "{snapshot:?}");
            seen += 1;
        }
    });
}

/// The number of remembered names is limited. A name that was forgotten must not look as if it had
/// not existed.
#[test]
fn forgotten_names_are_reported() {
    let (engine, _) = started();
    let time = engine.cluster_snapshot().time();
    let names = [namespace(), Namespace::new("d", "other").unwrap()];
    for number in 0..10_001 {
        let [from, to] = [number % 2, (number + 1) % 2].map(|it: usize| &names[it]);
        engine.rename(from, to, &Renaming::default()).unwrap();
    }
    let refused = at(&engine, time).unwrap().collection(&namespace());
    assert!(matches!(refused, Err(Error::CollectionChanged(_))));
    let now = engine.cluster_snapshot();
    assert!(now.collection(&names[0]).unwrap().is_none());
    assert!(now.collection(&names[1]).unwrap().is_some());
}

#[test]
fn dropped_collections_are_released() {
    let (engine, _) = started();
    let name = |number: u64| Namespace::new("d", &format!("c{number}")).unwrap();
    let count = 2 * MEMORY / 16 / (16 << 10);
    for number in 0..count {
        engine.create(&name(number), Document::EMPTY).unwrap();
    }
    let time = engine.cluster_snapshot().time();
    for number in 0..count {
        assert!(engine.drop_collection(&name(number)).unwrap());
    }
    engine.work(Work::CreateEntries).unwrap();
    let snapshot = at(&engine, time).unwrap();
    let refused = snapshot.collection(&name(0));
    assert!(matches!(refused, Err(Error::CollectionChanged(_))));
    assert!(snapshot.collection(&name(count - 1)).unwrap().is_some());
}

#[test]
fn a_transaction_at_a_snapshot_reports_a_dropped_collection() {
    let (engine, _) = started();
    let origin = Origin {
        session: SessionKey([1; 16]),
        number: 1,
    };
    let snapshot = Arc::new(engine.cluster_snapshot());
    let transaction = engine.begin_at(origin, snapshot).unwrap();
    engine.drop_collection(&namespace()).unwrap();
    let refused = transaction.collection(&namespace());
    assert!(matches!(refused, Err(Error::CollectionChanged(_))));
}
