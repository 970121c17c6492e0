//! A lookup of one key is correct for its snapshot, whether or not the newest commits have entries.

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use common::{collection, namespace, open};
use windrow_collection::{
    BuildControl, Change, Collection, Direction, Engine, Error, InsertOrder, Reader, Uninterrupted,
    Work,
};
use windrow_document::{ArrayBuf, DocumentBuf, ObjectId, Value, ValueRef, doc, key};
use windrow_index::Definition;
use windrow_storage::MemoryDisk;

/// The tags of each document.
type Model = BTreeMap<i32, Vec<String>>;

/// The indexes after the one on `_id`.
const ASCENDING: usize = 1;
const DESCENDING: usize = 2;
const COMPOUND: usize = 3;

/// An engine, and its collection with the indexes.
fn setting() -> (Arc<Engine>, Arc<Collection>) {
    let engine = open(&MemoryDisk::new());
    let created = engine.create(&namespace(), doc! {}.as_document()).unwrap();
    build(&created);
    (engine, created)
}

fn build(collection: &Collection) {
    let control = BuildControl {
        interrupt: &Uninterrupted,
        on_phase: &|_| (),
    };
    let keys = [
        doc! { "tags": 1 },
        doc! { "tags": (-1) },
        doc! { "n": 1, "tags": 1 },
    ];
    let definitions = keys.iter().enumerate().map(|(number, key)| {
        let index = doc! { "key": (key.clone()), "name": (format!("i{number}")) };
        Definition::parse(index.as_document()).unwrap()
    });
    collection
        .create_indexes(definitions.collect(), &control)
        .unwrap();
}

/// Three of thirty tags.
fn tags(seed: u64) -> Vec<String> {
    let tag = |shift: u64| format!("tag-{:02}", (seed >> shift) % 30);
    [8, 16, 24].map(tag).into()
}

fn document(id: i32, tags: &[String]) -> DocumentBuf {
    let tags: ArrayBuf = tags.iter().map(|tag| Value::from(tag.as_str())).collect();
    doc! { "_id": id, "n": (id % 2), "tags": tags }
}

fn insert(collection: &Collection, model: &mut Model, documents: Vec<(i32, Vec<String>)>) {
    save(
        collection,
        documents.iter().map(|(id, tags)| document(*id, tags)),
    );
    model.extend(documents);
}

fn save(collection: &Collection, documents: impl IntoIterator<Item = DocumentBuf>) {
    let bytes = documents.into_iter().flat_map(DocumentBuf::into_bytes);
    let inserted = collection.insert(
        Bytes::from(bytes.collect::<Vec<u8>>()),
        InsertOrder::Ordered,
    );
    assert!(inserted.unwrap().errors.is_empty());
}

fn change(collection: &Collection, id: i32, change: &Change) {
    let reader = collection.reader().unwrap();
    let record = reader.find_id(ValueRef::Int32(id)).unwrap().unwrap();
    let mut batch = collection.batch();
    let changed = batch.change(record, |_| Ok::<Change, Error>(change.clone()));
    changed.unwrap();
    batch.commit().unwrap();
}

/// Returns the records of a key.
fn found(reader: &Reader, index: usize, key: &[u8]) -> Vec<u64> {
    let mut cursor = reader.postings(index, key).unwrap();
    let mut records = Vec::new();
    while cursor.next().unwrap() && cursor.key() == key {
        records.push(cursor.id().0);
    }
    records
}

fn check(reader: &Reader, model: &Model, tag: &str) {
    let with_tag = |n: Option<i32>| {
        let ids = model
            .iter()
            .filter(|(id, tags)| n.is_none_or(|n| *id % 2 == n) && tags.iter().any(|it| it == tag));
        let record = |(id, _): (&i32, &Vec<String>)| {
            reader.find_id(ValueRef::Int32(*id)).unwrap().unwrap().0
        };
        let mut records: Vec<u64> = ids.map(record).collect();
        records.sort_unstable();
        records
    };
    let value = ValueRef::String(tag);
    let (mut ascending, mut descending, mut compound) = (Vec::new(), Vec::new(), Vec::new());
    key::append(&mut ascending, value);
    key::append_with_direction(&mut descending, value, true);
    key::append(&mut compound, ValueRef::Int32(1));
    key::append(&mut compound, value);
    assert_eq!(found(reader, ASCENDING, &ascending), with_tag(None));
    assert_eq!(found(reader, DESCENDING, &descending), with_tag(None));
    assert_eq!(found(reader, COMPOUND, &compound), with_tag(Some(1)));
}

/// Returns the answer of an ordered scan, which creates all entries.
fn is_multikey(reader: &Reader) -> bool {
    let multikey = reader.multikey(ASCENDING).unwrap();
    drop(reader.entries(ASCENDING, Direction::Forward).unwrap());
    assert_eq!(reader.multikey(ASCENDING).unwrap(), multikey);
    multikey.any()
}

#[test]
fn lookups_agree_with_the_model() {
    let (engine, created) = setting();
    let mut model = Model::new();
    let mut older: Vec<(Reader, Model)> = Vec::new();
    let mut seed = 7u64;
    for step in 0..1_500 {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let some = model.keys().nth((seed >> 40) as usize % model.len().max(1));
        match ((seed >> 33) % 8, some.copied()) {
            (0, Some(id)) => {
                change(&created, id, &Change::Delete);
                model.remove(&id);
            }
            (1 | 2, Some(id)) => {
                let tags = tags(seed);
                change(&created, id, &Change::Replace(document(id, &tags)));
                model.insert(id, tags);
            }
            _ => {
                let ids = (step * 3..).take(1 + seed as usize % 3);
                let new = ids.map(|id| (id, tags(seed.rotate_left(id as u32))));
                insert(&created, &mut model, new.collect());
            }
        }
        if step % 97 == 0 {
            engine.work(Work::Fold).unwrap();
        }
        let reader = created.reader().unwrap();
        for number in 0..seed % 4 {
            check(&reader, &model, &format!("tag-{:02}", (seed + number) % 30));
        }
        if step % 5 == 0 {
            older.push((reader, model.clone()));
        }
        if let Some((reader, model)) = older.get(step as usize % 7) {
            check(reader, model, &format!("tag-{:02}", seed % 30));
        }
        if older.len() > 6 {
            older.remove(0);
        }
    }
}

#[test]
fn arrays_are_known_without_entries_and_forgotten_at_once() {
    let (engine, created) = setting();
    let mut model = Model::new();
    save(&created, [doc! { "_id": (-1), "tags": "tag-01" }]);
    assert!(!is_multikey(&created.reader().unwrap()));
    for id in 0..4 {
        insert(&created, &mut model, vec![(id, tags(id as u64))]);
        assert!(is_multikey(&created.reader().unwrap()));
    }
    for id in 0..4 {
        assert!(is_multikey(&created.reader().unwrap()));
        change(&created, id, &Change::Delete);
    }
    let healed = collection(&engine).reader().unwrap();
    assert!(!is_multikey(&healed));
}

/// Values of every type are found, whether they are searched by their bytes or not.
#[test]
fn values_of_all_types_are_found() {
    let values: Vec<Value> = vec![
        Value::String("text of some length".into()),
        Value::String("zero\0and one\u{1}".into()),
        Value::String("abc".into()),
        Value::String(String::new()),
        Value::Symbol("a symbol".into()),
        Value::String("a symbol".into()),
        Value::ObjectId(ObjectId(*b"\0\x01twelve\xFF\0ab")),
        Value::Binary {
            subtype: 4,
            bytes: b"sixteen bytes...".to_vec(),
        },
        Value::Regex {
            pattern: "pattern".into(),
            options: "i".into(),
        },
        Value::Document(doc! { "text of some length": "within" }),
        Value::Int32(5),
        Value::Double(5.0),
        Value::Null,
        Value::MinKey,
        Value::MaxKey,
    ];
    let (_engine, created) = setting();
    let indexes = [(ASCENDING, false), (DESCENDING, true)];
    for (id, value) in (0..).zip(&values) {
        let other = values.get(id as usize / 2).unwrap();
        let tags: ArrayBuf = [value.clone(), other.clone()].into_iter().collect();
        save(&created, [doc! { "_id": id, "n": 1, "tags": tags }]);
        let all = || {
            let reader = created.reader().unwrap();
            let keys = values.iter().flat_map(|value| {
                indexes.map(|(index, descends)| {
                    let mut key = Vec::new();
                    key::append_with_direction(&mut key, value.as_ref(), descends);
                    (index, key)
                })
            });
            keys.map(|(index, key)| found(&reader, index, &key))
                .collect::<Vec<_>>()
        };
        let before = all();
        assert!(
            before
                .iter()
                .any(|records| records.contains(&(id as u64 + 1))),
            "{value}"
        );
        let reader = created.reader().unwrap();
        indexes.iter().for_each(|(index, _)| {
            drop(reader.entries(*index, Direction::Forward).unwrap());
        });
        assert_eq!(before, all(), "{value}");
    }
}
