//! Model test: random inserts, updates, deletions, folds, index builds and crashes on a collection
//! and on a plain map. All reads agree, and each index agrees with the documents. For ordinary and
//! clustered collections.

use std::collections::BTreeMap;
use std::sync::Arc;

use InsertOrder::{Ordered, Unordered};
use bytes::Bytes;
use windrow_collection::{
    BuildControl, BuildPhase, Change, Checks, Collection, Direction, Engine, EngineOptions, Error,
    InsertOrder, Namespace, Outcome, Position, Uninterrupted,
};
use windrow_document::{Document, DocumentBuf, ObjectId, Value, ValueRef, doc};
use windrow_index::Definition;
use windrow_index::search::SearchDefinition;
use windrow_storage::{Crash, MemoryDisk};

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

fn options() -> EngineOptions {
    EngineOptions {
        threads: 2,
        ..EngineOptions::with_memory(64 << 20)
    }
}

fn namespace() -> Namespace {
    Namespace::new("test", "things").unwrap()
}

fn definition(specification: DocumentBuf) -> Definition {
    Definition::parse(specification.as_document()).unwrap()
}

fn build(collection: &Collection, specification: DocumentBuf) -> Result<(), Error> {
    let control = BuildControl {
        interrupt: &Uninterrupted,
        on_phase: &|_| {},
    };
    collection
        .create_indexes(vec![definition(specification)], &control)
        .map(drop)
}

fn document(id: i32, random: &mut Random) -> DocumentBuf {
    let mut document = doc! { "_id": id, "u": (random.below(1_000_000) as i32) };
    if random.below(3) > 0 {
        let tags: Vec<i32> = (0..random.below(5))
            .map(|_| random.below(20) as i32)
            .collect();
        document.push("tags", tags);
    }
    if random.below(2) == 0 {
        document.push(
            "text",
            format!("fox{} owl{}", random.below(9), random.below(9)),
        );
    }
    document
}

/// The specification of a search index on all fields.
fn search_index(name: &str) -> DocumentBuf {
    let source = doc! { "mappings": { "dynamic": true } };
    let id = ObjectId([7; 12]);
    let search = SearchDefinition::parse(name, id, 0, 0, source.as_document()).unwrap();
    Definition::from_search(search).specification
}

type Model = BTreeMap<i32, DocumentBuf>;

struct Life {
    disk: MemoryDisk,
    engine: Arc<Engine>,
    model: Model,
    next_index: u64,
}

/// The kinds of collections, by their options.
fn kinds() -> [DocumentBuf; 2] {
    let by_id = doc! { "v": 2, "key": { "_id": 1 }, "name": "by id", "unique": true };
    [DocumentBuf::new(), doc! { "clusteredIndex": by_id }]
}

impl Life {
    fn new() -> Life {
        Life::with_options(&DocumentBuf::new())
    }

    fn with_options(kind: &DocumentBuf) -> Life {
        let disk = MemoryDisk::new();
        let engine = Engine::open(Arc::new(disk.clone()), options()).unwrap();
        engine.create(&namespace(), kind.as_document()).unwrap();
        Life {
            disk,
            engine,
            model: Model::new(),
            next_index: 0,
        }
    }

    fn collection(&self) -> Arc<Collection> {
        self.engine.collection(&namespace()).unwrap()
    }

    fn insert(&mut self, random: &mut Random) {
        let mut buffer = Vec::new();
        let mut wrong = Vec::new();
        let growing = random.below(2) == 0;
        for number in 0..=random.below(40) as usize {
            let largest = self.model.last_key_value().map_or(0, |(id, _)| *id);
            let id = if growing {
                largest + 1
            } else {
                random.below(300) as i32
            };
            let document = document(id, random);
            buffer.extend_from_slice(document.as_bytes());
            if let std::collections::btree_map::Entry::Vacant(entry) = self.model.entry(id) {
                entry.insert(document);
            } else {
                wrong.push(number);
            }
        }
        let inserted = self
            .collection()
            .insert(Bytes::from(buffer), Unordered)
            .unwrap();
        let refused: Vec<usize> = inserted.errors.iter().map(|it| it.index).collect();
        assert_eq!(refused, wrong);
    }

    fn change(&mut self, random: &mut Random) {
        let collection = self.collection();
        let reader = collection.reader().unwrap();
        let mut batch = collection.batch();
        for _ in 0..random.below(20) {
            let id = random.below(300) as i32;
            let found = reader.find_id(ValueRef::Int32(id)).unwrap();
            assert!(
                found.is_some()
                    || !self.model.contains_key(&id)
                    || reader.position() > Position::ZERO
            );
            let Some(record) = found else { continue };
            let new = document(id, random);
            let delete = random.below(3) == 0;
            let seen = doc! { "_id": id };
            let outcome = batch
                .change_seen(record, seen.as_document(), |old| {
                    assert_eq!(old.get("_id"), Some(ValueRef::Int32(id)));
                    let change = if delete {
                        Change::Delete
                    } else {
                        Change::Replace(new.clone())
                    };
                    Ok::<Change, Error>(change)
                })
                .unwrap();
            match outcome {
                Outcome::Deleted => drop(self.model.remove(&id)),
                Outcome::Replaced => drop(self.model.insert(id, new)),
                Outcome::NotFound => assert!(!self.model.contains_key(&id)),
                Outcome::Unchanged => unreachable!(),
            }
        }
        batch.commit().unwrap();
    }

    fn build_index(&mut self, random: &mut Random) {
        self.next_index += 1;
        let name = format!("i{}", self.next_index);
        let specification = match random.below(5) {
            0 => doc! { "key": { "tags": 1, "u": (-1) }, "name": (name.as_str()) },
            1 => doc! { "key": { "u": 1, "tags": 1 }, "name": (name.as_str()), "sparse": true },
            2 => doc! { "key": { "text": "text" }, "name": (name.as_str()) },
            3 => search_index(&name),
            _ => doc! {
                "key": { "tags": (-1) }, "name": (name.as_str()),
                "partialFilterExpression": { "u": { "$gt": 500_000 } },
            },
        };
        match build(&self.collection(), specification) {
            Ok(()) | Err(Error::IndexConflict { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }

    fn drop_index(&self, random: &mut Random) {
        let indexes = self.collection().all_indexes();
        let number = random.below(indexes.len() as u64) as usize;
        if number > 0 {
            self.collection()
                .drop_index(&indexes[number].definition.name)
                .unwrap();
        }
    }

    fn crash(&mut self) {
        let disk = self.disk.crash(Crash::OfProcess);
        self.engine = Engine::open(Arc::new(disk.clone()), options()).unwrap();
        self.disk = disk;
    }

    fn check(&self) {
        let collection = self.collection();
        let reader = collection.reader().unwrap();
        assert_eq!(collection.count(), self.model.len() as u64);
        let mut cursor = reader.records(Direction::Forward);
        let (mut found, mut last) = (Model::new(), None);
        while cursor.next().unwrap() {
            let document = Document::from_validated(cursor.document()).to_buf();
            let Some(ValueRef::Int32(id)) = document.get("_id") else {
                panic!("{document}")
            };
            let record = reader.find_id(ValueRef::Int32(id)).unwrap();
            assert_eq!(record, Some(cursor.id()));
            let (_, by_id) = reader.find(ValueRef::Int32(id)).unwrap().unwrap();
            assert_eq!(by_id, document.as_bytes());
            let by_record = reader.get(cursor.id()).unwrap();
            assert_eq!(by_record, Some(by_id));
            let place = if collection.is_clustered() {
                i64::from(id)
            } else {
                cursor.id().0 as i64
            };
            assert!(last < Some(place), "natural order");
            last = Some(place);
            assert!(found.insert(id, document.clone()).is_none(), "{id} twice");
        }
        assert!(
            found == self.model,
            "{} and {} documents",
            found.len(),
            self.model.len()
        );
        let validation = collection.validate(Checks::FULL).unwrap();
        assert!(validation.is_valid(), "{validation:?}");
        let bytes: usize = self
            .model
            .values()
            .map(|document| document.as_bytes().len())
            .sum();
        assert_eq!(collection.bytes(), bytes as u64);
    }
}

fn check_seed(seed: u64, kind: &DocumentBuf) {
    let mut random = Random(seed);
    let mut life = Life::with_options(kind);
    for _ in 0..250 {
        match random.below(24) {
            0..=8 => life.insert(&mut random),
            9..=15 => life.change(&mut random),
            16..=17 => life.engine.fold().unwrap(),
            18 => life.build_index(&mut random),
            19 => life.drop_index(&mut random),
            20 => life.crash(),
            _ => life.check(),
        }
    }
    life.check();
}

#[test]
fn every_read_agrees() {
    for seed in 1..=4 {
        for kind in kinds() {
            check_seed(0x9E37_79B9_7F4A_7C15_u64.wrapping_mul(seed), &kind);
        }
    }
}

#[test]
fn unique_indexes_reject_duplicates() {
    kinds().iter().for_each(check_unique_indexes);
}

fn check_unique_indexes(kind: &DocumentBuf) {
    let life = Life::with_options(kind);
    let collection = life.collection();
    build(
        &collection,
        doc! { "key": { "a": 1 }, "name": "a", "unique": true },
    )
    .unwrap();
    let insert = |documents: &[DocumentBuf], order| {
        let buffer: Vec<u8> = documents
            .iter()
            .flat_map(|it| it.as_bytes().to_vec())
            .collect();
        let inserted = collection.insert(Bytes::from(buffer), order).unwrap();
        let numbers: Vec<usize> = inserted.errors.iter().map(|it| it.index).collect();
        (inserted.count, numbers)
    };
    let thing = |id: i32, a: i32| doc! { "_id": id, "a": a };
    assert_eq!(insert(&[thing(1, 1), thing(2, 2)], Ordered), (2, vec![]));
    assert_eq!(
        insert(&[thing(3, 3), thing(4, 2), thing(5, 5)], Ordered),
        (1, vec![1])
    );
    assert_eq!(
        insert(&[thing(1, 6), thing(6, 6), thing(7, 6)], Unordered),
        (1, vec![0, 2])
    );
    life.engine.fold().unwrap();
    assert_eq!(insert(&[thing(8, 1)], Ordered), (0, vec![0]));
    let reader = collection.reader().unwrap();
    let record = reader.find_id(ValueRef::Int32(2)).unwrap().unwrap();
    let mut batch = collection.batch();
    let mut set = |a: i32| batch.change(record, |_| Ok::<_, Error>(Change::Replace(thing(2, a))));
    assert!(matches!(set(1), Err(Error::DuplicateKey(_))));
    assert!(matches!(set(2), Ok(Outcome::Replaced)));
    assert!(matches!(set(9), Ok(Outcome::Replaced)));
    batch.commit().unwrap();
    assert_eq!(
        insert(&[thing(9, 2), thing(10, 9)], Unordered),
        (1, vec![1])
    );
    assert!(collection.validate(Checks::FULL).unwrap().is_valid());
}

#[test]
fn a_unique_build_fails_on_duplicates_and_leaves_nothing() {
    let life = Life::new();
    let collection = life.collection();
    let buffer: Vec<u8> = (0..100)
        .flat_map(|id: i32| doc! { "_id": id, "a": (id % 99) }.as_bytes().to_vec())
        .collect();
    collection.insert(Bytes::from(buffer), Ordered).unwrap();
    let unique = || doc! { "key": { "a": 1 }, "name": "a", "unique": true };
    assert!(matches!(
        build(&collection, unique()),
        Err(Error::DuplicateKey(_))
    ));
    assert_eq!(collection.indexes().len(), 1);
    let record = collection
        .reader()
        .unwrap()
        .find_id(ValueRef::Int32(99))
        .unwrap()
        .unwrap();
    let mut batch = collection.batch();
    batch
        .change(record, |_| Ok::<_, Error>(Change::Delete))
        .unwrap();
    batch.commit().unwrap();
    build(&collection, unique()).unwrap();
    assert_eq!(collection.indexes().len(), 2);
}

/// A fold right after the check of all entries removes the commits from memory that came since.
#[test]
fn a_unique_build_finds_duplicates_that_come_before_a_fold() {
    let life = Life::new();
    let collection = life.collection();
    let insert = |id: i32| {
        let buffer = Bytes::from(doc! { "_id": id, "a": 1 }.into_bytes());
        collection.insert(buffer, Ordered).unwrap();
    };
    insert(1);
    let on_phase = |phase: &BuildPhase| {
        if matches!(phase, BuildPhase::Checked { .. }) {
            insert(2);
            life.engine.fold().unwrap();
        }
    };
    let control = BuildControl {
        interrupt: &Uninterrupted,
        on_phase: &on_phase,
    };
    let unique = definition(doc! { "key": { "a": 1 }, "name": "a", "unique": true });
    let built = collection.create_indexes(vec![unique], &control);
    assert!(matches!(built, Err(Error::DuplicateKey(_))), "{built:?}");
    assert_eq!(collection.indexes().len(), 1);
}

/// Whatever part of a fold or merge fails on a full disk, no run stays that the catalog does not
/// contain.
#[test]
fn folds_on_a_full_disk_leave_nothing() {
    let life = Life::new();
    let collection = life.collection();
    let mut random = Random(5);
    let mut last_id = 0;
    let mut refused = 0;
    for _ in 0..6 {
        let ids = last_id..last_id + 30;
        last_id = ids.end;
        let buffer: Vec<u8> = ids
            .flat_map(|id| document(id, &mut random).into_bytes())
            .collect();
        collection.insert(Bytes::from(buffer), Ordered).unwrap();
        let before = life.disk.bytes();
        let mut room = 0;
        loop {
            life.disk.set_bytes_max(Some(before + room));
            if life.engine.fold().is_ok() {
                break;
            }
            assert!(life.disk.bytes() <= before, "with room for {room} bytes");
            refused += 1;
            room += 41;
        }
        life.disk.set_bytes_max(None);
    }
    assert!(refused > 100, "{refused}");
    let mut records = collection.reader().unwrap().records(Direction::Forward);
    let there = std::iter::from_fn(|| records.next().unwrap().then_some(()));
    assert_eq!(there.count(), 180);
}

#[test]
fn writers_and_builds_run_concurrently() {
    kinds().iter().for_each(check_writers_beside_builds);
}

fn check_writers_beside_builds(kind: &DocumentBuf) {
    let life = Life::with_options(kind);
    let collection = life.collection();
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let collection = &collection;
            scope.spawn(move || {
                let mut random = Random(77 + writer);
                for round in 0..60i32 {
                    let first = writer as i32 * 1_000_000 + round * 50;
                    let buffer: Vec<u8> = (first..first + 50)
                        .flat_map(|id| document(id, &mut random).into_bytes())
                        .collect();
                    let inserted = collection.insert(Bytes::from(buffer), Ordered).unwrap();
                    assert_eq!(inserted.count, 50);
                    let reader = collection.reader().unwrap();
                    let mut batch = collection.batch();
                    for id in (first..first + 50).step_by(3) {
                        let record = reader.find_id(ValueRef::Int32(id)).unwrap().unwrap();
                        let new = document(id, &mut random);
                        let change = if id % 2 == 0 {
                            Change::Delete
                        } else {
                            Change::Replace(new)
                        };
                        batch
                            .change(record, |_| Ok::<_, Error>(change.clone()))
                            .unwrap();
                    }
                    batch.commit().unwrap();
                }
            });
        }
        let engine = &life.engine;
        scope.spawn(move || (0..20).for_each(|_| engine.fold().unwrap()));
        for number in 0..6 {
            let name = format!("n{number}");
            let key = if number % 2 == 0 {
                doc! { "tags": 1, (name.as_str()): 1 }
            } else {
                doc! { (name.as_str()): 1, "u": 1 }
            };
            build(&collection, doc! { "key": key, "name": (name.as_str()) }).unwrap();
        }
    });
    let validation = collection.validate(Checks::FULL).unwrap();
    assert!(validation.is_valid(), "{validation:?}");
    assert_eq!(validation.indexes.len(), collection.index_count());
    assert_eq!(collection.indexes().len(), 7);
}

#[test]
fn concurrent_updates_of_one_document_all_apply() {
    let life = Life::new();
    let collection = life.collection();
    collection
        .insert(Bytes::from(doc! { "_id": 1, "n": 0 }.into_bytes()), Ordered)
        .unwrap();
    let record = collection
        .reader()
        .unwrap()
        .find_id(ValueRef::Int32(1))
        .unwrap()
        .unwrap();
    let counted = |old: Document<'_>| {
        let n = old.get("n").and_then(ValueRef::as_whole).unwrap() as i32;
        Ok::<_, Error>(Change::Replace(
            doc! { "_id": 1, "n": (Value::Int32(n + 1)) },
        ))
    };
    std::thread::scope(|scope| {
        for trusting in [false, true, false, true, false, true, false, true] {
            let collection = &collection;
            scope.spawn(move || {
                for _ in 0..200 {
                    let reader = collection.reader().unwrap();
                    let seen = reader.get(record).unwrap().unwrap();
                    let mut batch = collection.batch();
                    batch.trust_snapshot(trusting.then(|| reader.position()));
                    let seen = Document::from_validated(&seen);
                    batch.change_seen(record, seen, counted).unwrap();
                    batch.commit().unwrap();
                }
            });
        }
        scope.spawn(|| (0..20).for_each(|_| life.engine.fold().unwrap()));
    });
    let bytes = collection.reader().unwrap().get(record).unwrap().unwrap();
    assert_eq!(
        Document::from_validated(&bytes).get("n"),
        Some(ValueRef::Int32(1600))
    );
}

#[test]
fn an_interrupted_build_resumes() {
    kinds().iter().for_each(check_killed_build);
}

fn check_killed_build(kind: &DocumentBuf) {
    let disk = MemoryDisk::new();
    let options = EngineOptions {
        build_bytes: 1 << 16,
        ..options()
    };
    let engine = Engine::open(Arc::new(disk.clone()), options.clone()).unwrap();
    let collection = engine.create(&namespace(), kind.as_document()).unwrap();
    for first in (0..40_000i32).step_by(1000) {
        let documents = (first..first + 1000)
            .flat_map(|id| doc! { "_id": id, "a": (id * 7919 % 40_009) }.into_bytes());
        collection
            .insert(Bytes::from(documents.collect::<Vec<u8>>()), Ordered)
            .unwrap();
    }
    let checks = std::sync::atomic::AtomicUsize::new(0);
    let disk_then = std::sync::Mutex::new(None);
    let interrupt = || {
        if checks.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 40 {
            *disk_then.lock().unwrap() = Some(disk.crash(Crash::OfProcess));
        }
        Ok(())
    };
    let control = BuildControl {
        interrupt: &interrupt,
        on_phase: &|_| {},
    };
    let index = definition(doc! { "key": { "a": 1 }, "name": "a" });
    collection.create_indexes(vec![index], &control).unwrap();
    let disk = disk_then.into_inner().unwrap().unwrap();
    let engine = Engine::open(Arc::new(disk), options).unwrap();
    let collection = engine.collection(&namespace()).unwrap();
    let index = collection.indexes().into_iter().nth(1).unwrap();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !index.is_ready() && std::time::Instant::now() < deadline {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let again = index
        .progress()
        .documents
        .load(std::sync::atomic::Ordering::Relaxed);
    assert!(
        (1..40_000).contains(&again),
        "{again} documents were read again"
    );
    assert!(collection.validate(Checks::FULL).unwrap().is_valid());
}

#[test]
fn dropped_collections_leave_nothing() {
    let mut life = Life::new();
    let mut random = Random(5);
    (0..20).for_each(|_| life.insert(&mut random));
    life.engine.fold().unwrap();
    life.insert(&mut random);
    assert!(life.engine.drop_collection(&namespace()).unwrap());
    assert!(!life.engine.drop_collection(&namespace()).unwrap());
    life.crash();
    assert!(life.engine.collection(&namespace()).is_none());
    life.engine.create(&namespace(), Document::EMPTY).unwrap();
    life.model.clear();
    life.check();
}
