//! Retried writes do not run again. The results of statements are in the log with the write, and
//! survive restarts, folds that truncate the log, and the drop of the collection.

use std::sync::Arc;

use bytes::Bytes;
use windrow_collection::{
    Background, Change, Collection, Engine, EngineOptions, Error, Image, InsertOrder,
    LastOperation, Namespace, Origin, RecordedResult, RetainedImage, SessionKey, StatementResult,
    Statements, Work, WriteOptions,
};
use windrow_document::{DocumentBuf, ValueRef, doc};
use windrow_storage::{Crash, LogOptions, MemoryDisk, StorageOptions};

const SESSION: SessionKey = SessionKey([3; 16]);

fn open(disk: &MemoryDisk) -> Arc<Engine> {
    let options = EngineOptions {
        background: Background::Caller,
        storage: StorageOptions {
            log: LogOptions {
                segment_bytes: 4 << 10,
                recycled_max: 0,
                ..LogOptions::default()
            },
            ..StorageOptions::default()
        },
        ..EngineOptions::with_memory(64 << 20)
    };
    Engine::open(Arc::new(disk.clone()), options).unwrap()
}

fn namespace() -> Namespace {
    Namespace::parse("d.c").unwrap()
}

fn origin(number: i64) -> Origin {
    Origin {
        session: SESSION,
        number,
    }
}

fn write_options(number: i64, numbers: &[i32], image: RetainedImage) -> WriteOptions<'_> {
    WriteOptions {
        statements: Some(Statements {
            origin: origin(number),
            numbers,
            image,
        }),
        ..WriteOptions::default()
    }
}

fn insert(
    collection: &Collection,
    documents: &[DocumentBuf],
    write_options: &WriteOptions<'_>,
) -> usize {
    let bytes: Vec<&[u8]> = documents.iter().map(DocumentBuf::as_bytes).collect();
    let bytes = Bytes::from(bytes.concat());
    collection
        .insert_with(bytes, InsertOrder::Unordered, write_options)
        .unwrap()
        .count
}

fn change(collection: &Collection, id: i32, change: Change, write_options: WriteOptions<'_>) {
    let reader = collection.reader().unwrap();
    let (record, _) = reader.find(ValueRef::Int32(id)).unwrap().unwrap();
    let mut batch = collection.batch_with(write_options);
    let changed = batch.change(record, |_| Ok::<Change, Error>(change.clone()));
    changed.unwrap();
    batch.commit().unwrap();
}

/// What happens between a write and the question for its result.
type Between = fn(&Engine);

const NOTHING: Between = |_| ();
const FOLD: Between = |engine| {
    engine.work(Work::Fold).unwrap();
};
/// The log segment with the write is removed after many folds.
const FOLD_MANY: Between = |engine| {
    let other = Namespace::parse("d.other").unwrap();
    for _ in 0..3 {
        let collection = engine.collection_or_create(&other).unwrap();
        let document = doc! { "_id": (collection.count() as i32), "a": ("x".repeat(6000)) };
        insert(&collection, &[document], &WriteOptions::default());
        engine.work(Work::Fold).unwrap();
        engine.work(Work::Merge).unwrap();
    }
};
const DROP: Between = |engine| {
    engine.drop_collection(&namespace()).unwrap();
};

/// Checks the recorded results after a write, in this process and after restarts.
fn check(write: impl Fn(&Engine, &Collection), number: i64, expected: &[(i32, RecordedResult)]) {
    for between in [NOTHING, FOLD, FOLD_MANY, DROP] {
        let mut disk = MemoryDisk::new();
        let engine = open(&disk);
        let collection = engine.collection_or_create(&namespace()).unwrap();
        insert(
            &collection,
            &[doc! { "_id": 1, "n": 1 }],
            &WriteOptions::default(),
        );
        write(&engine, &collection);
        drop(collection);
        let look = |engine: &Engine| {
            for (statement, expected) in expected {
                let found = engine.recorded_result(origin(number), *statement);
                assert_eq!(found, *expected, "statement {statement}");
            }
            let next = engine.recorded_result(origin(number + 7), 0);
            assert_eq!(next, RecordedResult::Nothing);
        };
        look(&engine);
        between(&engine);
        look(&engine);
        drop(engine);
        for _ in 0..2 {
            disk = disk.crash(Crash::OfProcess);
            let engine = open(&disk);
            look(&engine);
            FOLD_MANY(&engine);
            look(&engine);
        }
    }
}

fn done(done: StatementResult) -> RecordedResult {
    RecordedResult::Done(done)
}

/// Inserts a document into two collections, with a transaction of this origin.
fn insert_into_two(engine: &Engine, origin: Origin, result: Option<(i32, StatementResult)>) {
    let transaction = engine.begin(origin);
    for name in ["d.c", "d.second"] {
        let name = Namespace::parse(name).unwrap();
        let collection = transaction.collection_or_create(&name).unwrap();
        let write_options = WriteOptions {
            transaction: Some(&transaction),
            ..WriteOptions::default()
        };
        assert_eq!(insert(&collection, &[doc! { "_id": 9 }], &write_options), 1);
    }
    if let Some((statement, result)) = result {
        transaction.record_result(statement, result).unwrap();
    }
    transaction.commit().unwrap();
}

#[test]
fn a_write_to_several_collections_is_recorded() {
    let result = || StatementResult::Inserted(doc! { "_id": 9 });
    check(
        |engine, _| {
            insert_into_two(engine, origin(5), Some((3, result())));
            let last = engine.last_operation(SESSION);
            assert_eq!(last, Some(LastOperation::Wrote(5)));
        },
        5,
        &[(0, RecordedResult::Nothing), (3, done(result()))],
    );
}

#[test]
fn a_transaction_of_the_server_is_of_no_session() {
    let disk = MemoryDisk::new();
    let engine = open(&disk);
    insert_into_two(&engine, Origin::NO_SESSION, None);
    let nobody = |engine: &Engine| engine.last_operation(Origin::NO_SESSION.session);
    assert_eq!(nobody(&engine), None);
    drop(engine);
    let engine = open(&disk.crash(Crash::OfProcess));
    assert_eq!(nobody(&engine), None);
    let second = engine.collection(&Namespace::parse("d.second").unwrap());
    assert_eq!(second.unwrap().count(), 1);
}

#[test]
fn an_insert_is_recorded_per_document() {
    check(
        |_, collection| {
            let documents = [1, 2, 3].map(|id| doc! { "_id": id, "n": 0 });
            let write_options = write_options(5, &[0, 1, 2], RetainedImage::Id);
            assert_eq!(insert(collection, &documents, &write_options), 2);
        },
        5,
        &[
            (0, RecordedResult::Nothing),
            (1, done(StatementResult::Inserted(doc! { "_id": 2 }))),
            (2, done(StatementResult::Inserted(doc! { "_id": 3 }))),
        ],
    );
}

#[test]
fn a_change_is_recorded_with_its_image() {
    let (old, new) = (doc! { "_id": 1, "n": 1 }, doc! { "_id": 1, "n": 2 });
    let updated = |image: RetainedImage, expected: Option<Image>| {
        check(
            |_, collection| {
                let replaced = Change::Replace(new.clone());
                change(collection, 1, replaced, write_options(2, &[7], image));
            },
            2,
            &[(7, done(StatementResult::Updated(expected)))],
        );
    };
    updated(RetainedImage::Id, None);
    updated(RetainedImage::Before, Some(Image::Before(old.clone())));
    updated(RetainedImage::After, Some(Image::After(new.clone())));
    let deleted = |image: RetainedImage, expected: Option<DocumentBuf>| {
        check(
            |_, collection| change(collection, 1, Change::Delete, write_options(2, &[0], image)),
            2,
            &[(0, done(StatementResult::Deleted(expected)))],
        );
    };
    deleted(RetainedImage::Id, None);
    deleted(RetainedImage::Before, Some(old.clone()));
}

#[test]
fn only_the_newest_number_counts_also_for_commits() {
    check(
        |_, collection| {
            for number in [3, 4] {
                let document = doc! { "_id": (number + 10) };
                insert(
                    collection,
                    &[document],
                    &write_options(number, &[0], RetainedImage::Id),
                );
            }
        },
        3,
        &[(0, RecordedResult::Nothing)],
    );
    let disk = MemoryDisk::new();
    let engine = open(&disk);
    engine.collection_or_create(&namespace()).unwrap();
    let transaction = engine.begin(origin(9));
    let collection = transaction.collection(&namespace()).unwrap().unwrap();
    let within = WriteOptions {
        transaction: Some(&transaction),
        ..WriteOptions::default()
    };
    insert(&collection, &[doc! { "_id": 1 }], &within);
    assert_eq!(engine.last_operation(SESSION), None);
    transaction.commit().unwrap();
    drop((transaction, collection));
    for between in [NOTHING, FOLD_MANY] {
        assert_eq!(
            engine.last_operation(SESSION),
            Some(LastOperation::Committed(9))
        );
        between(&engine);
    }
    drop(engine);
    let engine = open(&disk.crash(Crash::OfProcess));
    assert_eq!(
        engine.last_operation(SESSION),
        Some(LastOperation::Committed(9))
    );
    engine.forget_session(SESSION);
    assert_eq!(engine.last_operation(SESSION), None);
}
