//! Transactions: what they see, what others see of them, and what a crash leaves.

use std::sync::Arc;

use bytes::Bytes;
use windrow_collection::{
    Change, Collection, Direction, Engine, EngineOptions, Error, InsertOrder, Interrupted,
    Namespace, Origin, Reader, SessionKey, Transaction, Uninterrupted, WriteOptions,
};
use windrow_document::{Document, DocumentBuf, ValueRef, doc};
use windrow_index::Definition;
use windrow_storage::{Crash, MemoryDisk};

fn open(disk: &MemoryDisk) -> Arc<Engine> {
    let options = EngineOptions::with_memory(64 << 20);
    Engine::open(Arc::new(disk.clone()), options).unwrap()
}

fn named(name: &str) -> Namespace {
    Namespace::parse(name).unwrap()
}

fn origin() -> Origin {
    Origin {
        session: SessionKey([3; 16]),
        number: 1,
    }
}

fn insert(
    collection: &Collection,
    document: DocumentBuf,
    write_options: &WriteOptions<'_>,
) -> Result<(), Error> {
    let bytes = Bytes::copy_from_slice(document.as_bytes());
    let inserted = collection.insert_with(bytes, InsertOrder::Ordered, write_options)?;
    inserted.check_all_inserted()
}

/// Changes the document with an `_id`, as a reader finds it.
fn change(
    collection: &Collection,
    reader: &Reader,
    id: i32,
    change: Change,
    write_options: WriteOptions<'_>,
) -> Result<(), Error> {
    let (record, _) = reader.find(ValueRef::Int32(id))?.expect("a document");
    let mut batch = collection.batch_with(write_options);
    batch.change(record, |_| Ok::<Change, Error>(change.clone()))?;
    batch.commit()
}

fn replace(document: DocumentBuf) -> Change {
    Change::Replace(document)
}

/// `_id` and `n` of all documents, by the collection and by its index on `n` if there is one.
fn seen(reader: &Reader) -> Vec<(i32, i32)> {
    let pair = |bytes: &[u8]| {
        let document = Document::from_validated(bytes);
        let number = |name| match document.get(name) {
            Some(ValueRef::Int32(number)) => number,
            other => panic!("{other:?}"),
        };
        (number("_id"), number("n"))
    };
    let (mut found, mut cursor) = (Vec::new(), reader.records(Direction::Forward));
    while cursor.next().unwrap() {
        found.push(pair(cursor.document()));
    }
    found.sort_unstable();
    if reader.indexes().len() > 1 {
        let mut by_index = Vec::new();
        let mut cursor = reader.entries(1, Direction::Forward).unwrap();
        while cursor.next().unwrap() {
            let document = reader
                .get(cursor.id())
                .unwrap()
                .expect("an entry's document");
            by_index.push(pair(&document));
        }
        by_index.sort_unstable();
        assert_eq!(by_index, found);
    }
    found
}

fn within(transaction: &Transaction) -> WriteOptions<'_> {
    WriteOptions {
        transaction: Some(transaction),
        ..WriteOptions::default()
    }
}

/// Fails at once instead of waiting.
const NO_WAIT: WriteOptions<'static> = WriteOptions {
    validation: windrow_collection::DocumentValidation::Enabled,
    transaction: None,
    statements: None,
    wait_control: &|| Err(Interrupted::new("no wait")),
};

struct Setting {
    disk: MemoryDisk,
    engine: Arc<Engine>,
    one: Arc<Collection>,
    other: Arc<Collection>,
}

/// An ordinary and a clustered collection with `_id`s and `n`s 1 to 3, and a unique index on `n`.
fn setting() -> Setting {
    let disk = MemoryDisk::new();
    let engine = open(&disk);
    let clustered = doc! {
        "clusteredIndex": { "key": { "_id": 1 }, "unique": true, "v": 2, "name": "_id_" },
    };
    let made = |name: &str, options: Document<'_>| {
        let collection = engine.create(&named(name), options).unwrap();
        let index = doc! { "key": { "n": 1 }, "name": "n", "unique": true };
        let index = Definition::parse(index.as_document()).unwrap();
        let control = windrow_collection::BuildControl {
            interrupt: &Uninterrupted,
            on_phase: &|_| {},
        };
        collection.create_indexes(vec![index], &control).unwrap();
        for number in 1..=3 {
            insert(&collection, doc! { "_id": number, "n": number }, &NO_WAIT).unwrap();
        }
        collection
    };
    Setting {
        one: made("a.one", Document::EMPTY),
        other: made("a.other", clustered.as_document()),
        disk,
        engine,
    }
}

impl Setting {
    fn begin(&self) -> Transaction {
        let transaction = self.engine.begin(origin());
        for name in ["a.one", "a.other"] {
            transaction.collection(&named(name)).unwrap().unwrap();
        }
        transaction
    }

    fn both(&self) -> [&Collection; 2] {
        [&self.one, &self.other]
    }
}

const BEFORE: [(i32, i32); 3] = [(1, 1), (2, 2), (3, 3)];
const AFTER: [(i32, i32); 3] = [(1, 30), (3, 3), (5, 5)];

/// Changes 1 twice, deletes 2, inserts 4 and deletes it, inserts 5 with 4 and changes it.
fn work(setting: &Setting, transaction: &Transaction) {
    for collection in setting.both() {
        let write_options = within(transaction);
        let reader = || transaction.reader(collection).unwrap();
        let set = |id: i32, n: i32| {
            let new = replace(doc! { "_id": id, "n": n });
            change(collection, &reader(), id, new, write_options).unwrap();
        };
        set(1, 20);
        set(1, 30);
        change(collection, &reader(), 2, Change::Delete, write_options).unwrap();
        insert(collection, doc! { "_id": 4, "n": 2 }, &write_options).unwrap();
        change(collection, &reader(), 4, Change::Delete, write_options).unwrap();
        insert(collection, doc! { "_id": 5, "n": 4 }, &write_options).unwrap();
        set(5, 5);
        assert_eq!(seen(&reader()), AFTER);
        assert_eq!(seen(&collection.reader().unwrap()), BEFORE);
    }
}

#[test]
fn a_commit_is_visible_at_once_and_completely() {
    for fold in [false, true] {
        let setting = setting();
        if fold {
            setting.engine.fold().unwrap();
        }
        let transaction = setting.begin();
        work(&setting, &transaction);
        if fold {
            setting.engine.fold().unwrap();
        }
        transaction.commit().unwrap();
        for collection in setting.both() {
            assert_eq!(seen(&collection.reader().unwrap()), AFTER);
            assert_eq!(collection.count(), 3);
        }
        // Recovered from the log.
        let engine = open(&setting.disk.crash(Crash::OfProcess));
        for name in ["a.one", "a.other"] {
            let collection = engine.collection(&named(name)).unwrap();
            assert_eq!(seen(&collection.reader().unwrap()), AFTER);
            assert_eq!(collection.count(), 3);
        }
        engine.fold().unwrap();
        for name in ["a.one", "a.other"] {
            let collection = engine.collection(&named(name)).unwrap();
            assert_eq!(seen(&collection.reader().unwrap()), AFTER);
        }
    }
}

#[test]
fn an_abort_leaves_nothing() {
    for aborts in [true, false] {
        let setting = setting();
        let transaction = setting.begin();
        work(&setting, &transaction);
        if aborts {
            transaction.abort();
        }
        drop(transaction);
        for collection in setting.both() {
            assert_eq!(seen(&collection.reader().unwrap()), BEFORE);
            assert_eq!(collection.count(), 3);
            let reader = collection.reader().unwrap();
            let new = replace(doc! { "_id": 1, "n": 7 });
            change(collection, &reader, 1, new, NO_WAIT).unwrap();
            insert(collection, doc! { "_id": 5, "n": 5 }, &NO_WAIT).unwrap();
        }
    }
}

#[test]
fn a_snapshot_does_not_change() {
    let setting = setting();
    let transaction = setting.begin();
    for collection in setting.both() {
        let reader = collection.reader().unwrap();
        change(collection, &reader, 2, Change::Delete, NO_WAIT).unwrap();
        insert(collection, doc! { "_id": 9, "n": 9 }, &NO_WAIT).unwrap();
        setting.engine.fold().unwrap();
        assert_eq!(seen(&transaction.reader(collection).unwrap()), BEFORE);
    }
}

fn is_conflict(result: &Result<(), Error>) -> bool {
    matches!(result, Err(Error::WriteConflict(_)))
}

fn is_double(result: &Result<(), Error>) -> bool {
    matches!(result, Err(Error::DuplicateKey(_)))
}

#[test]
fn the_first_writer_wins() {
    let check = |between: &dyn Fn(&Collection),
                 act: &dyn Fn(&Collection, WriteOptions<'_>) -> bool| {
        let setting = setting();
        for collection in setting.both() {
            let transaction = setting.begin();
            between(collection);
            assert!(act(collection, within(&transaction)));
        }
    };
    let set = |collection: &Collection, n: i32, write_options: WriteOptions<'_>| {
        let reader = match write_options.transaction {
            Some(transaction) => transaction.reader(collection).unwrap(),
            None => collection.reader().unwrap(),
        };
        let new = replace(doc! { "_id": 1, "n": n });
        change(collection, &reader, 1, new, write_options)
    };
    let changes = |collection: &Collection| set(collection, 8, NO_WAIT).unwrap();
    let there_and_back = |collection: &Collection| {
        set(collection, 8, NO_WAIT).unwrap();
        set(collection, 1, NO_WAIT).unwrap();
    };
    let inserts = |collection: &Collection| {
        insert(collection, doc! { "_id": 9, "n": 9 }, &NO_WAIT).unwrap();
    };
    check(&changes, &|collection, write_options| {
        is_conflict(&set(collection, 7, write_options))
    });
    check(&there_and_back, &|collection, write_options| {
        is_conflict(&set(collection, 7, write_options))
    });
    // A key that was added after the snapshot, and one in the snapshot.
    check(&inserts, &|collection, write_options| {
        is_conflict(&insert(
            collection,
            doc! { "_id": 9, "n": 8 },
            &write_options,
        ))
    });
    check(&inserts, &|collection, write_options| {
        is_conflict(&insert(
            collection,
            doc! { "_id": 8, "n": 9 },
            &write_options,
        ))
    });
    check(&inserts, &|collection, write_options| {
        is_conflict(&set(collection, 9, write_options))
    });
    check(&|_| {}, &|collection, write_options| {
        is_double(&insert(
            collection,
            doc! { "_id": 1, "n": 9 },
            &write_options,
        ))
    });
    check(&|_| {}, &|collection, write_options| {
        is_double(&set(collection, 2, write_options))
    });
}

#[test]
fn others_wait_or_fail_on_a_transactions_locks() {
    let setting = setting();
    for collection in setting.both() {
        let (one, other) = (setting.begin(), setting.begin());
        let reader = collection.reader().unwrap();
        let new = |n: i32| replace(doc! { "_id": 1, "n": n });
        change(collection, &reader, 1, new(7), within(&one)).unwrap();
        insert(collection, doc! { "_id": 5, "n": 5 }, &within(&one)).unwrap();
        let conflicting = change(collection, &reader, 1, new(8), within(&other));
        assert!(is_conflict(&conflicting), "{conflicting:?}");
        let conflicting = insert(collection, doc! { "_id": 5, "n": 6 }, &within(&other));
        assert!(is_conflict(&conflicting), "{conflicting:?}");
        let gives_up = |result: Result<(), Error>| {
            assert!(matches!(result, Err(Error::Interrupted(_))), "{result:?}");
        };
        gives_up(change(collection, &reader, 1, new(8), NO_WAIT));
        gives_up(insert(collection, doc! { "_id": 5, "n": 6 }, &NO_WAIT));
        // Until the commit, the document has its old key.
        let taken = insert(collection, doc! { "_id": 6, "n": 1 }, &NO_WAIT);
        assert!(matches!(taken, Err(Error::DuplicateKey(_))), "{taken:?}");
        // Its new key.
        gives_up(change(
            collection,
            &reader,
            2,
            replace(doc! { "_id": 2, "n": 7 }),
            NO_WAIT,
        ));
        insert(collection, doc! { "_id": 7, "n": 70 }, &NO_WAIT).unwrap();
        std::thread::scope(|scope| {
            let patient = scope.spawn(|| {
                let new = replace(doc! { "_id": 1, "n": 8 });
                change(
                    collection,
                    &collection.reader().unwrap(),
                    1,
                    new,
                    WriteOptions::default(),
                )
            });
            std::thread::sleep(std::time::Duration::from_millis(20));
            assert!(!patient.is_finished());
            one.commit().unwrap();
            patient.join().unwrap().unwrap();
        });
        let found = seen(&collection.reader().unwrap());
        assert_eq!(found, [(1, 8), (2, 2), (3, 3), (5, 5), (7, 70)]);
    }
}

#[test]
fn a_collection_in_use_is_not_altered() {
    let setting = setting();
    let transaction = setting.engine.begin(origin());
    let late = setting.engine.begin(origin());
    let one = named("a.one");
    transaction.collection(&one).unwrap().unwrap();
    let refused = setting.one.exclude(NO_WAIT.wait_control);
    assert!(matches!(refused, Err(Error::Interrupted(_))));
    drop(transaction);
    assert!(setting.engine.drop_collection(&one).unwrap());
    assert!(late.collection(&one).unwrap().is_none());
    setting.engine.create(&one, Document::EMPTY).unwrap();
    assert!(matches!(
        late.collection(&one),
        Err(Error::CollectionChanged(_))
    ));
}

#[test]
fn a_transaction_creates_collections() {
    let setting = setting();
    let (engine, new) = (&setting.engine, named("b.new"));
    let make = |transaction: &Transaction| {
        let collection = transaction.collection_or_create(&new).unwrap();
        let index = doc! { "key": { "n": 1 }, "name": "n" };
        let index = Definition::parse(index.as_document()).unwrap();
        let created = transaction
            .create_indexes(&collection, vec![index.clone()])
            .unwrap();
        assert_eq!((created.before, created.after), (1, 2));
        insert(&collection, doc! { "_id": 1, "n": 1 }, &within(transaction)).unwrap();
        assert_eq!(seen(&transaction.reader(&collection).unwrap()), [(1, 1)]);
        let again = doc! { "key": { "n": -1 }, "name": "m" };
        let again = Definition::parse(again.as_document()).unwrap();
        assert!(matches!(
            transaction.create_indexes(&collection, vec![again]),
            Err(Error::NotInTransaction(_))
        ));
    };
    let (one, other) = (engine.begin(origin()), engine.begin(origin()));
    make(&one);
    make(&other);
    assert!(engine.collection(&new).is_none());
    one.commit().unwrap();
    assert!(is_conflict(&other.commit()));
    let check = |engine: &Engine| {
        let collection = engine.collection(&new).unwrap();
        assert_eq!(seen(&collection.reader().unwrap()), [(1, 1)]);
        assert_eq!(collection.index_count(), 2);
    };
    check(engine);
    check(&open(&setting.disk.crash(Crash::OfProcess)));
    engine.fold().unwrap();
    check(&open(&setting.disk.crash(Crash::OfProcess)));
}

/// The disk stops after each of its changes in turn. Recovery finds all of the transaction,
/// including the collection that it creates, or nothing.
#[test]
fn a_crash_leaves_all_or_nothing() {
    let mut found_both = [false; 2];
    for changes in 0..40 {
        let setting = setting();
        let transaction = setting.begin();
        work(&setting, &transaction);
        let new = named("b.new");
        let created = transaction.collection_or_create(&new).unwrap();
        insert(&created, doc! { "_id": 1, "n": 1 }, &within(&transaction)).unwrap();
        setting.disk.set_changes_left(Some(changes));
        let committed = transaction.commit().is_ok();
        let engine = open(&setting.disk.crash(Crash::OfProcess));
        let is_there = engine.collection(&new).is_some();
        assert!(is_there || !committed);
        found_both[usize::from(is_there)] = true;
        for name in ["a.one", "a.other"] {
            let collection = engine.collection(&named(name)).unwrap();
            let expected = if is_there { AFTER } else { BEFORE };
            assert_eq!(seen(&collection.reader().unwrap()), expected, "{changes}");
        }
        if let Some(created) = engine.collection(&new) {
            assert_eq!(seen(&created.reader().unwrap()), [(1, 1)]);
        }
    }
    assert_eq!(found_both, [true, true]);
}

#[test]
fn too_large_transactions_are_rejected() {
    let setting = setting();
    let transaction = setting.begin();
    let mut written = Ok(());
    for number in 10..100 {
        let document = doc! { "_id": number, "n": number, "x": ("x".repeat(1 << 20)) };
        written = insert(&setting.one, document, &within(&transaction));
        if written.is_err() {
            break;
        }
    }
    assert!(
        matches!(written, Err(Error::NoRoomForTransactions)),
        "{written:?}"
    );
    transaction.abort();
    let again = setting.begin();
    let document = doc! { "_id": 10, "n": 10, "x": ("x".repeat(1 << 20)) };
    insert(&setting.one, document, &within(&again)).unwrap();
}

/// Another transaction commits a key while this one checks many. Exactly one of the two succeeds.
#[test]
fn a_concurrently_committed_key_is_a_conflict() {
    const KEY: i32 = 20_000;
    let setting = setting();
    for collection in setting.both() {
        for round in 0..40 {
            let (one, other) = (setting.begin(), setting.begin());
            let contested = doc! { "_id": -1 - round, "n": KEY };
            let mine = insert(collection, contested, &within(&other));
            mine.unwrap();
            let many = (10..2_500).map(|n| doc! { "_id": n, "n": n });
            let last = doc! { "_id": KEY, "n": KEY };
            let bytes: Vec<u8> = many
                .chain([last])
                .flat_map(|it| it.as_bytes().to_vec())
                .collect();
            let wrote = std::thread::scope(|scope| {
                let all = || {
                    collection.insert_with(Bytes::from(bytes), InsertOrder::Ordered, &within(&one))
                };
                let writing = scope.spawn(all);
                std::thread::sleep(std::time::Duration::from_micros(120 * round as u64));
                other.commit().unwrap();
                writing.join().unwrap()
            });
            let wrote = wrote.is_ok_and(|inserted| inserted.errors.is_empty());
            assert!(!(wrote && one.commit().is_ok()), "both have {KEY}");
            let reader = collection.reader().unwrap();
            let (record, _) = reader.find(ValueRef::Int32(-1 - round)).unwrap().unwrap();
            let mut batch = collection.batch_with(WriteOptions::default());
            batch
                .change(record, |_| Ok::<Change, Error>(Change::Delete))
                .unwrap();
            batch.commit().unwrap();
        }
    }
}

#[test]
fn too_old_transactions_cannot_read() {
    let disk = MemoryDisk::new();
    let mut options = EngineOptions::with_memory(64 << 20);
    options.snapshot_age_max = std::time::Duration::from_millis(100);
    let engine = Engine::open(Arc::new(disk), options).unwrap();
    let collection = engine.create(&named("a.one"), Document::EMPTY).unwrap();
    insert(
        &collection,
        doc! { "_id": 1, "n": 1 },
        &WriteOptions::default(),
    )
    .unwrap();
    let transaction = engine.begin(origin());
    transaction.collection(&named("a.one")).unwrap().unwrap();
    assert_eq!(seen(&transaction.reader(&collection).unwrap()), [(1, 1)]);
    let reader = collection.reader().unwrap();
    change(
        &collection,
        &reader,
        1,
        replace(doc! { "_id": 1, "n": 2 }),
        WriteOptions::default(),
    )
    .unwrap();
    drop(reader);
    engine.fold().unwrap();
    let begun = std::time::Instant::now();
    loop {
        match transaction.reader(&collection) {
            // Until it ends, it sees the same.
            Ok(reader) => assert_eq!(seen(&reader), [(1, 1)]),
            Err(error) => break assert!(matches!(error, Error::SnapshotTooOld), "{error:?}"),
        }
        assert!(begun.elapsed() < std::time::Duration::from_secs(30));
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}
