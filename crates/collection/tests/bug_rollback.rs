//! A write that meets a broken invariant changes nothing and holds nothing: no claims, no locks, no
//! transaction locks. The engine continues.

mod common;

use bytes::Bytes;
use common::{collection, namespace, open};
use windrow_collection::{
    BuildControl, Change, Checks, Collection, Engine, Error, InsertOrder, Origin, RetainedImage,
    SessionKey, Statements, Transaction, Uninterrupted, WriteOptions,
};
use windrow_document::{DocumentBuf, ValueRef, doc};
use windrow_index::Definition;
use windrow_invariant::tolerate_bugs;
use windrow_storage::MemoryDisk;

const ORIGIN: Origin = Origin {
    session: SessionKey([3; 16]),
    number: 1,
};

/// A retryable write without statement numbers, which no caller makes.
fn broken() -> WriteOptions<'static> {
    WriteOptions {
        statements: Some(Statements {
            origin: ORIGIN,
            numbers: &[],
            image: RetainedImage::Id,
        }),
        ..WriteOptions::default()
    }
}

fn create(engine: &Engine) {
    let created = engine.create(&namespace(), doc! {}.as_document()).unwrap();
    let index = doc! { "key": doc! { "a": 1 }, "name": "a_1", "unique": true };
    let definition = Definition::parse(index.as_document()).unwrap();
    let control = BuildControl {
        interrupt: &Uninterrupted,
        on_phase: &|_| {},
    };
    created.create_indexes(vec![definition], &control).unwrap();
}

fn insert(
    collection: &Collection,
    document: DocumentBuf,
    write_options: &WriteOptions<'_>,
) -> Result<(), Error> {
    let inserted = collection.insert_with(
        Bytes::from(document.into_bytes()),
        InsertOrder::Ordered,
        write_options,
    )?;
    inserted.check_all_inserted()
}

fn change(
    collection: &Collection,
    id: i32,
    change: Change,
    write_options: WriteOptions<'_>,
) -> Result<(), Error> {
    let reader = collection.reader()?;
    let (record, _) = reader.find(ValueRef::Int32(id))?.expect("a document");
    let mut batch = collection.batch_with(write_options);
    batch.change(record, |_| Ok::<Change, Error>(change.clone()))?;
    batch.commit()
}

fn is_bug<T>(work: impl FnOnce() -> Result<T, Error>) -> bool {
    matches!(tolerate_bugs(work), Err(Error::Bug(_)))
}

/// Checks the number of documents, and validates every index.
fn check(engine: &Engine, documents: u64) {
    let collection = collection(engine);
    assert_eq!(collection.count(), documents);
    let validation = collection.validate(Checks::FULL).unwrap();
    assert!(validation.is_valid(), "{validation:?}");
    assert_eq!(validation.documents, documents);
}

#[test]
fn a_failed_insert_releases_its_claims() {
    let disk = MemoryDisk::new();
    let engine = open(&disk);
    create(&engine);
    let there = collection(&engine);
    let document = || doc! { "_id": 1, "a": 1 };
    assert!(is_bug(|| insert(&there, document(), &broken())));
    check(&engine, 0);
    // This would wait for ever if a key were still claimed.
    insert(&there, document(), &WriteOptions::default()).unwrap();
    check(&engine, 1);
    drop((there, engine));
    check(&open(&disk), 1);
}

#[test]
fn a_failed_change_releases_its_locks() {
    let disk = MemoryDisk::new();
    let engine = open(&disk);
    create(&engine);
    let there = collection(&engine);
    insert(&there, doc! { "_id": 1, "a": 1 }, &WriteOptions::default()).unwrap();
    let replace = || Change::Replace(doc! { "_id": 1, "a": 2 });
    assert!(is_bug(|| change(&there, 1, replace(), broken())));
    assert!(is_bug(|| change(&there, 1, Change::Delete, broken())));
    check(&engine, 1);
    // Both the old and the new key of the failed change are free.
    change(&there, 1, replace(), WriteOptions::default()).unwrap();
    insert(&there, doc! { "_id": 2, "a": 1 }, &WriteOptions::default()).unwrap();
    check(&engine, 2);
    drop((there, engine));
    check(&open(&disk), 2);
}

#[test]
fn a_failed_transaction_releases_everything() {
    let disk = MemoryDisk::new();
    let engine = open(&disk);
    create(&engine);
    let there = collection(&engine);
    insert(&there, doc! { "_id": 1, "a": 1 }, &WriteOptions::default()).unwrap();
    let begin = || engine.begin(ORIGIN);
    let write_options = |transaction| WriteOptions {
        transaction: Some(transaction),
        ..broken()
    };
    let transaction: Transaction = begin();
    let used = transaction.collection(&namespace()).unwrap().unwrap();
    let good = WriteOptions {
        transaction: Some(&transaction),
        ..WriteOptions::default()
    };
    insert(&used, doc! { "_id": 2, "a": 2 }, &good).unwrap();
    assert!(is_bug(|| insert(
        &used,
        doc! { "_id": 3, "a": 3 },
        &write_options(&transaction)
    )));
    transaction.abort();
    check(&engine, 1);
    // No lock is left, and no transaction uses the collection.
    insert(&there, doc! { "_id": 2, "a": 2 }, &WriteOptions::default()).unwrap();
    insert(&there, doc! { "_id": 3, "a": 3 }, &WriteOptions::default()).unwrap();
    check(&engine, 3);
    // A transaction that does not use the collection it writes to. The error used to be that the
    // collection does not exist.
    let transaction = begin();
    let good = WriteOptions {
        transaction: Some(&transaction),
        ..WriteOptions::default()
    };
    assert!(is_bug(|| insert(&there, doc! { "_id": 4, "a": 4 }, &good)));
    drop(transaction);
    insert(&there, doc! { "_id": 4, "a": 4 }, &WriteOptions::default()).unwrap();
    check(&engine, 4);
    assert!(engine.drop_collection(&namespace()).unwrap());
}
