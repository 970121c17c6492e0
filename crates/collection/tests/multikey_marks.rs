//! Each snapshot knows which paths of an index contain arrays. Bounds are tight again after the
//! last array is removed, while an older reader still sees its arrays.

#[path = "common/building.rs"]
mod building;
mod common;

use std::sync::Arc;

use building::build;
use bytes::Bytes;
use windrow_collection::{
    Change, Checks, Collection, Direction, Engine, Error, InsertOrder, Origin, Reader, SessionKey,
    Work, WriteOptions,
};
use windrow_document::{DocumentBuf, ValueRef, array, doc};
use windrow_interrupt::Uninterrupted;
use windrow_storage::{Crash, MemoryDisk};

use common::{collection, namespace, open};

fn insert(collection: &Collection, documents: &[DocumentBuf], write_options: &WriteOptions<'_>) {
    let bytes: Vec<u8> = documents
        .iter()
        .flat_map(|it| it.as_bytes().to_vec())
        .collect();
    let inserted = collection.insert_with(Bytes::from(bytes), InsertOrder::Ordered, write_options);
    assert!(inserted.unwrap().errors.is_empty());
}

fn change(collection: &Collection, id: i32, change: Change, write_options: WriteOptions<'_>) {
    let reader = match write_options.transaction {
        Some(transaction) => transaction.reader(collection).unwrap(),
        None => collection.reader().unwrap(),
    };
    let record = reader.find_id(ValueRef::Int32(id)).unwrap().unwrap();
    let mut batch = collection.batch_with(write_options);
    let changed = batch.change(record, |_| Ok::<Change, Error>(change.clone()));
    changed.unwrap();
    batch.commit().unwrap();
}

/// Ten documents {_id, a: number, b: {c: number}}, and an index on both.
fn setting() -> (MemoryDisk, Arc<Engine>) {
    let disk = MemoryDisk::new();
    let engine = open(&disk);
    let created = engine.create(&namespace(), doc! {}.as_document()).unwrap();
    build(
        &created,
        doc! { "key": { "a": 1, "b.c": (-1) }, "name": "i" },
    );
    let documents: Vec<DocumentBuf> = (0..10).map(plain).collect();
    insert(&created, &documents, &WriteOptions::default());
    (disk, engine)
}

fn plain(id: i32) -> DocumentBuf {
    doc! { "_id": id, "a": id, "b": { "c": id } }
}

fn with_array(id: i32) -> DocumentBuf {
    doc! { "_id": id, "a": id, "b": { "c": (array![id, 5]) } }
}

fn arrays(reader: &Reader, index: usize) -> Vec<u32> {
    reader.multikey(index).unwrap().0
}

const NONE: [u32; 2] = [0, 0];
/// The second component of the second path.
const SOME: [u32; 2] = [0, 2];

fn check(engine: &Engine, expected: [u32; 2]) {
    let reader = collection(engine).reader().unwrap();
    assert_eq!(arrays(&reader, 1), expected);
    for checks in [Checks::QUICK, Checks::FULL] {
        let found = collection(engine).validate(checks).unwrap();
        assert!(found.is_valid(), "{found:?}");
        // Marks are no keys.
        let arrays = u64::from(expected == SOME);
        assert_eq!(found.indexes[1].keys, 10 + arrays);
    }
    let keys = |direction| {
        let (mut cursor, mut count) = (reader.entries(1, direction).unwrap(), 0);
        while cursor.next().unwrap() {
            count += 1;
        }
        count
    };
    let forward = keys(Direction::Forward);
    assert_eq!(forward, keys(Direction::Backward));
    assert_eq!(forward, 10 + i32::from(expected == SOME));
    assert!(reader.approximate_count(1, b"", &[0xFF]).unwrap() >= 10);
    let counted = reader.count_entries(1, b"", &[0xFF]).unwrap();
    assert!(counted.is_none_or(|count| count == forward as u64));
}

#[test]
fn marks_belong_to_snapshots() {
    for fold in [false, true] {
        let (disk, engine) = setting();
        let fold = |engine: &Engine| {
            if fold {
                engine.work(Work::Fold).unwrap();
            }
        };
        fold(&engine);
        check(&engine, NONE);
        let write_options = WriteOptions::default();
        change(
            &collection(&engine),
            3,
            Change::Replace(with_array(3)),
            write_options,
        );
        check(&engine, SOME);
        fold(&engine);
        check(&engine, SOME);
        let held = collection(&engine).reader().unwrap();
        change(
            &collection(&engine),
            3,
            Change::Replace(plain(3)),
            write_options,
        );
        let healed = collection(&engine).reader().unwrap();
        check(&engine, NONE);
        change(
            &collection(&engine),
            4,
            Change::Replace(with_array(4)),
            write_options,
        );
        fold(&engine);
        check(&engine, SOME);
        change(
            &collection(&engine),
            4,
            Change::Replace(plain(4)),
            write_options,
        );
        engine.fold().unwrap();
        check(&engine, NONE);
        assert_eq!(arrays(&healed, 1), NONE);
        assert_eq!(arrays(&held, 1), SOME);
        drop((held, healed));
        engine.sync().unwrap();
        drop(engine);
        check(&open(&disk.crash(Crash::LosingUnsynced)), NONE);
    }
}

#[test]
fn a_deletion_removes_the_mark() {
    let (_, engine) = setting();
    let found = collection(&engine);
    insert(&found, &[with_array(20)], &WriteOptions::default());
    assert_eq!(arrays(&found.reader().unwrap(), 1), SOME);
    engine.fold().unwrap();
    change(&found, 20, Change::Delete, WriteOptions::default());
    check(&engine, NONE);
    engine.fold().unwrap();
    check(&engine, NONE);
}

/// A transaction sees its own arrays at once; others see them after its commit.
#[test]
fn a_transaction_sees_its_own_arrays() {
    let (_, engine) = setting();
    let found = collection(&engine);
    let transaction = engine.begin(Origin {
        session: SessionKey([1; 16]),
        number: 1,
    });
    transaction.collection(&namespace()).unwrap().unwrap();
    let write_options = WriteOptions {
        transaction: Some(&transaction),
        ..WriteOptions::default()
    };
    let own = || arrays(&transaction.reader(&found).unwrap(), 1);
    assert_eq!(own(), NONE);
    change(&found, 6, Change::Replace(with_array(6)), write_options);
    assert_eq!(own(), SOME);
    check(&engine, NONE);
    transaction.commit().unwrap();
    check(&engine, SOME);
    let transaction = engine.begin(Origin {
        session: SessionKey([1; 16]),
        number: 2,
    });
    transaction.collection(&namespace()).unwrap().unwrap();
    let write_options = WriteOptions {
        transaction: Some(&transaction),
        ..WriteOptions::default()
    };
    change(&found, 6, Change::Replace(plain(6)), write_options);
    assert_eq!(arrays(&transaction.reader(&found).unwrap(), 1), NONE);
    check(&engine, SOME);
    transaction.commit().unwrap();
    check(&engine, NONE);
}

#[test]
fn a_build_finds_arrays_and_forgets_them() {
    let (_, engine) = setting();
    let found = collection(&engine);
    change(
        &found,
        2,
        Change::Replace(with_array(2)),
        WriteOptions::default(),
    );
    build(&found, doc! { "key": { "b.c": 1 }, "name": "late" });
    assert_eq!(arrays(&found.reader().unwrap(), 2), [2]);
    change(
        &found,
        2,
        Change::Replace(plain(2)),
        WriteOptions::default(),
    );
    assert_eq!(arrays(&found.reader().unwrap(), 2), [0]);
    build(&found, doc! { "key": { "b": 1 }, "name": "later" });
    assert_eq!(arrays(&found.reader().unwrap(), 3), [0]);
}

/// Many documents have the same mark, which is no duplicate in a unique index.
#[test]
fn marks_are_no_duplicates() {
    let disk = MemoryDisk::new();
    let engine = open(&disk);
    let created = engine.create(&namespace(), doc! {}.as_document()).unwrap();
    let write_options = WriteOptions::default();
    let numbers = |id: i32| doc! { "_id": id, "u": (array![id, (-id)]) };
    insert(&created, &[numbers(1), numbers(2)], &write_options);
    let unique = || doc! { "key": { "u": 1 }, "name": "u", "unique": true };
    build(&created, unique());
    insert(&created, &[numbers(3), numbers(4)], &write_options);
    change(
        &created,
        2,
        Change::Replace(doc! { "_id": 2, "u": 9 }),
        write_options,
    );
    let numbers_of_12 = doc! { "_id": 2, "u": (array![12, (-12)]) };
    change(&created, 2, Change::Replace(numbers_of_12), write_options);
    engine.fold().unwrap();
    insert(&created, &[numbers(5)], &write_options);
    let duplicates = created.duplicate_keys("u", &Uninterrupted).unwrap();
    assert!(duplicates.is_empty(), "{duplicates:?}");
    let double = doc! { "_id": 30, "u": (array![3]) };
    let again = created.insert_with(
        double.into_bytes().into(),
        InsertOrder::Ordered,
        &write_options,
    );
    assert_eq!(again.unwrap().errors.len(), 1);
}

/// Thirty fields below four arrays each have more marks than fit into a section's catalog row. The
/// fold succeeds, and every path counts as one with arrays.
#[test]
fn too_many_marks_count_every_path_as_multikey() {
    let disk = MemoryDisk::new();
    let engine = open(&disk);
    let created = engine.create(&namespace(), doc! {}.as_document()).unwrap();
    let (mut key, mut document) = (DocumentBuf::new(), doc! { "_id": 1 });
    for number in 0..30 {
        key.push(&format!("f{number}.a.b.c"), 1);
        let inner = array![doc! { "c": (array![number]) }];
        document.push(
            &format!("f{number}"),
            array![doc! { "a": (array![doc! { "b": inner }]) }],
        );
    }
    build(&created, doc! { "key": key, "name": "wide" });
    insert(&created, &[document], &WriteOptions::default());
    let check = |engine: &Engine| {
        let reader = collection(engine).reader().unwrap();
        assert_eq!(arrays(&reader, 1), [u32::MAX; 30]);
        let found = collection(engine).validate(Checks::FULL).unwrap();
        assert!(found.is_valid(), "{found:?}");
    };
    check(&engine);
    engine.fold().unwrap();
    check(&engine);
    engine.close().unwrap();
    drop(engine);
    check(&open(&disk.crash(Crash::LosingUnsynced)));
}
