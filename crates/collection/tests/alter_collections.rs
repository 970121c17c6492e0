//! Renames, drops and changed options, checked after each change and after a crash behind it.

use std::cell::Cell;
use std::sync::Arc;

use bytes::Bytes;
use windrow_collection::{
    BuildControl, Cap, Collection, Engine, EngineOptions, Error, IndexModification, InsertOrder,
    Interrupted, Modification, ModificationEvent, Namespace, Renaming, Uninterrupted, WaitControl,
    WriteOptions,
};
use windrow_document::{Document, DocumentBuf, doc};
use windrow_index::Definition;
use windrow_storage::MemoryDisk;

fn open(disk: &MemoryDisk) -> Arc<Engine> {
    let options = EngineOptions::with_memory(64 << 20);
    Engine::open(Arc::new(disk.clone()), options).unwrap()
}

fn named(name: &str) -> Namespace {
    Namespace::parse(name).unwrap()
}

/// The names of all collections, with their counts of documents.
fn listed(engine: &Engine) -> Vec<(String, u64)> {
    let databases = engine.databases();
    let all = databases.iter().flat_map(|name| engine.collections(name));
    all.map(|one| (one.namespace().to_string(), one.count()))
        .collect()
}

/// Creates collection a.one with one document and an index, and b.two with two documents.
fn fill(engine: &Engine) {
    for (name, count) in [("a.one", 1), ("b.two", 2)] {
        let collection = engine.create(&named(name), Document::EMPTY).unwrap();
        for number in 0..count {
            let document = doc! { "_id": number };
            let bytes = Bytes::copy_from_slice(document.as_bytes());
            assert!(
                collection
                    .insert(bytes, InsertOrder::Ordered)
                    .unwrap()
                    .errors
                    .is_empty()
            );
        }
    }
}

#[test]
fn a_collection_is_renamed() {
    let check = |from: &str, to: &str, drop_target: bool, expected: &[(&str, u64)]| {
        let expected: Vec<_> = expected
            .iter()
            .map(|(name, count)| ((*name).to_owned(), *count))
            .collect();
        for fold in [false, true] {
            let disk = MemoryDisk::new();
            let engine = open(&disk);
            fill(&engine);
            if fold {
                engine.fold().unwrap();
            }
            let renamed = engine.rename(
                &named(from),
                &named(to),
                &Renaming {
                    drop_target,
                    ..Renaming::default()
                },
            );
            assert_eq!(renamed.is_ok(), !expected.is_empty(), "{renamed:?}");
            if renamed.is_err() {
                continue;
            }
            assert_eq!(listed(&engine), expected);
            let collection = engine.collection(&named(to)).unwrap();
            let bytes = Bytes::copy_from_slice(doc! { "_id": 9 }.as_bytes());
            collection.insert(bytes, InsertOrder::Ordered).unwrap();
            engine.close().unwrap();
            drop((collection, engine));
            let engine = open(&disk);
            let count = engine.collection(&named(to)).unwrap().count();
            let before = expected.iter().find(|(name, _)| name == to).unwrap().1;
            assert_eq!((listed(&engine).len(), count), (expected.len(), before + 1));
        }
    };
    check("a.one", "a.other", false, &[("a.other", 1), ("b.two", 2)]);
    check("a.one", "b.other", false, &[("b.other", 1), ("b.two", 2)]);
    check("a.one", "b.two", true, &[("b.two", 1)]);
    check("a.one", "b.two", false, &[]);
    check("a.one", "a.one", true, &[]);
    check("a.none", "a.other", true, &[]);
}

/// A change by name used to hit the collection that had the name at that moment, not the one that
/// the caller had found.
#[test]
fn renames_and_drops_check_the_collection() {
    let engine = open(&MemoryDisk::new());
    fill(&engine);
    let [one, two] = ["a.one", "b.two"].map(|name| engine.collection(&named(name)).unwrap());
    let rename = |from: &str, to: &str, source: &Collection, target: Option<&Collection>| {
        let how = Renaming {
            drop_target: true,
            source: Some(source.uuid()),
            target: target.map(Collection::uuid),
            ..Renaming::default()
        };
        engine.rename(&named(from), &named(to), &how)
    };
    let is_another = |renamed| matches!(renamed, Err(Error::CollectionChanged(_)));
    assert!(is_another(rename("a.one", "a.new", &two, None)));
    assert!(is_another(rename("a.one", "b.two", &one, Some(&one))));
    assert!(is_another(rename("a.one", "a.new", &one, Some(&two))));
    rename("a.one", "a.new", &one, None).unwrap();
    assert!(!engine.drop_found(&one, &named("a.one")).unwrap());
    assert!(engine.drop_found(&one, &named("a.new")).unwrap());
    assert!(!engine.drop_found(&one, &named("a.new")).unwrap());
    assert_eq!(listed(&engine), [("b.two".to_owned(), 2)]);
}

#[test]
fn options_of_any_length_are_stored() {
    let check = |lengths: &[usize]| {
        let disk = MemoryDisk::new();
        let mut engine = open(&disk);
        engine.create(&named("a.one"), Document::EMPTY).unwrap();
        for length in lengths {
            let options = doc! { "validator": { "x": ("y".repeat(*length)) } };
            let collection = engine.collection(&named("a.one")).unwrap();
            let change = |_: Document<'_>| Ok::<DocumentBuf, Error>(options.clone());
            collection.change_options(change).unwrap();
            assert_eq!(collection.options(), options);
            drop((collection, engine));
            engine = open(&disk);
            let collection = engine.collection(&named("a.one")).unwrap();
            assert_eq!(collection.options(), options, "{length}");
        }
    };
    check(&[0, 10, 1_900]);
    check(&[100_000, 5_000, 10, 1_000_000, 3_990, 0]);
}

fn change_index<'m>(
    collection: &Collection,
    change: impl FnOnce(Document<'_>) -> Result<DocumentBuf, Error> + 'm,
) {
    let modification = Modification {
        index: Some(IndexModification {
            name: "a_1",
            change: Box::new(change),
        }),
        ..Modification::default()
    };
    collection.modify(modification).unwrap();
}

fn build(collection: &Collection, specification: &DocumentBuf) {
    let definition = Definition::parse(specification.as_document()).unwrap();
    let control = BuildControl {
        interrupt: &Uninterrupted,
        on_phase: &|_| {},
    };
    let built = collection.create_indexes(vec![definition], &control);
    assert_eq!(built.unwrap().created, ["a_1"]);
}

#[test]
fn specifications_of_any_length_are_stored() {
    let specified = |length: usize| {
        let filter = doc! { "s": ("y".repeat(length)) };
        doc! { "v": 2, "key": { "a": 1 }, "name": "a_1", "partialFilterExpression": filter }
    };
    let disk = MemoryDisk::new();
    let mut engine = open(&disk);
    fill(&engine);
    let reopened = |engine: Arc<Engine>| {
        drop(engine);
        open(&disk)
    };
    for lengths in [&[10, 5_000, 3_990][..], &[100_000, 9_000, 10]] {
        let (first, others) = lengths.split_first().unwrap();
        build(
            &engine.collection(&named("b.two")).unwrap(),
            &specified(*first),
        );
        for length in [first].into_iter().chain(others) {
            let wanted = specified(*length);
            let change = |_: Document<'_>| Ok::<DocumentBuf, Error>(wanted.clone());
            let collection = engine.collection(&named("b.two")).unwrap();
            change_index(&collection, change);
            drop(collection);
            engine = reopened(engine);
            let collection = engine.collection(&named("b.two")).unwrap();
            assert_eq!(collection.indexes()[1].definition.specification, wanted);
        }
        engine
            .collection(&named("b.two"))
            .unwrap()
            .drop_index("a_1")
            .unwrap();
        engine = reopened(engine);
        assert_eq!(
            engine.collection(&named("b.two")).unwrap().indexes().len(),
            1
        );
    }
}

#[test]
fn an_index_is_hidden_and_unhidden() {
    let disk = MemoryDisk::new();
    let engine = open(&disk);
    fill(&engine);
    let collection = engine.collection(&named("b.two")).unwrap();
    let specification = doc! { "v": 2, "key": { "a": 1 }, "name": "a_1" };
    build(&collection, &specification);
    drop(collection);
    let hidden = doc! { "v": 2, "key": { "a": 1 }, "name": "a_1", "hidden": true };
    let mut engine = engine;
    for wanted in [&hidden, &specification, &hidden] {
        let collection = engine.collection(&named("b.two")).unwrap();
        let change = |_: Document<'_>| Ok::<DocumentBuf, Error>(wanted.clone());
        change_index(&collection, change);
        // A later fold must not write the older definition again.
        engine.fold().unwrap();
        drop((collection, engine));
        engine = open(&disk);
        let collection = engine.collection(&named("b.two")).unwrap();
        assert_eq!(collection.indexes()[1].definition.specification, *wanted);
    }
}

/// The event used to be a record of its own, so a crash between the two lost it.
#[test]
fn a_change_and_its_event_are_one_record() {
    let disk = MemoryDisk::new();
    let engine = open(&disk);
    fill(&engine);
    let collection = engine.collection(&named("b.two")).unwrap();
    build(
        &collection,
        &doc! { "v": 2, "key": { "a": 1 }, "name": "a_1" },
    );
    let hidden = doc! { "v": 2, "key": { "a": 1 }, "name": "a_1", "hidden": true };
    let event = ModificationEvent {
        description: doc! { "a": 1 },
        before: doc! { "b": 1 },
    };
    let modify = |refuse: bool| {
        let index = |_: Document<'_>| {
            if refuse {
                Err(Error::IndexNotFound("none".to_owned()))
            } else {
                Ok(hidden.clone())
            }
        };
        collection.modify(Modification {
            options: Some(Box::new(|_| Ok(doc! { "validator": { "x": 1 } }))),
            index: Some(IndexModification {
                name: "a_1",
                change: Box::new(index),
            }),
            event: Some(event.clone()),
        })
    };
    let written = || engine.statistics().written;
    let before = written();
    assert!(modify(true).is_err());
    assert_eq!(written(), before);
    assert_eq!(collection.options(), DocumentBuf::new());
    modify(false).unwrap();
    assert_eq!(written(), before.next());
    assert_eq!(collection.options(), doc! { "validator": { "x": 1 } });
    assert_eq!(collection.indexes()[1].definition.specification, hidden);
}

#[test]
fn temporary_collections_end_with_the_process() {
    let disk = MemoryDisk::new();
    let engine = open(&disk);
    fill(&engine);
    let options = doc! { "temp": true };
    engine.create(&named("a.t"), options.as_document()).unwrap();
    assert_eq!(listed(&engine).len(), 3);
    drop(engine);
    assert_eq!(listed(&open(&disk)).len(), 2);
}

/// An insert used to delete all documents above a smaller limit, and could not be interrupted.
#[test]
fn an_interrupted_trim_continues_at_the_next_insert() {
    let engine = open(&MemoryDisk::new());
    let options = doc! { "capped": true, "size": (1i64 << 20) };
    let collection = engine
        .create(&named("a.capped"), options.as_document())
        .unwrap();
    let stopped = || Interrupted::new("stopped");
    let insert = |number: i32, wait_control: &dyn WaitControl| {
        let bytes = Bytes::copy_from_slice(doc! { "_id": number }.as_bytes());
        let write_options = WriteOptions {
            wait_control,
            ..WriteOptions::default()
        };
        assert_eq!(
            collection
                .insert_with(bytes, InsertOrder::Ordered, &write_options)
                .unwrap()
                .count,
            1
        );
        collection.count()
    };
    for number in 0..100 {
        insert(number, &Uninterrupted);
    }
    let resized = |old: Document<'_>| Ok::<DocumentBuf, Error>(Cap::resized(old, None, Some(10)));
    collection.change_options(resized).unwrap();
    assert_eq!(insert(100, &|| Err(stopped())), 100);
    let checks = Cell::new(0);
    let interrupt = || match checks.replace(checks.get() + 1) {
        30 => Err(stopped()),
        _ => Ok(()),
    };
    assert_eq!(insert(101, &interrupt), 70);
    assert_eq!(insert(102, &Uninterrupted), 10);
}
