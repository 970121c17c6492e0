//! A database directory as format 1 wrote it: two log segments, runs with sections of every kind,
//! and a checkpoint of the catalog. Every later version reads it unchanged, or rejects FORMAT by
//! name. If any one byte is changed, a read returns either the original content or an error that
//! names the damage.
//!
//! `cargo test -p windrow-collection --test format_1 -- --ignored` writes it again: only before a
//! release, or for a new format under its own name.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use windrow_collection::{
    Background, BuildControl, BuildPhase, Change, Checks, Collection, Direction, Engine,
    EngineOptions, Error, IndexReport, InsertOrder, LastOperation, Namespace, Origin, RecordId,
    RecordedResult, RetainedImage, SessionKey, StatementResult, Statements, Uninterrupted, View,
    Work, WriteOptions,
};
use windrow_document::{ArrayBuf, Document, DocumentBuf, Value, doc};
use windrow_index::Definition;
use windrow_storage::{Crash, Disk, LogOptions, MemoryDisk, StorageOptions};

const FOLDERS: [&str; 3] = ["catalog", "log", "runs"];

fn open(disk: &MemoryDisk) -> Result<Arc<Engine>, Error> {
    let options = EngineOptions {
        threads: 1,
        background: Background::Caller,
        random: |bytes| bytes.fill(7),
        storage: StorageOptions {
            log: LogOptions {
                segment_bytes: 6 << 10,
                recycled_max: 0,
                sync_interval: None,
                clock: || 1_700_000_000_000,
            },
            ..StorageOptions::default()
        },
        ..EngineOptions::with_memory(64 << 20)
    };
    Engine::open(Arc::new(disk.clone()), options)
}

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/format-1")
}

/// The fixture on a disk of its own.
fn saved() -> MemoryDisk {
    let disk = MemoryDisk::new();
    let put = |name: &str| {
        let bytes = std::fs::read(fixture().join(name)).unwrap();
        disk.create(name).unwrap().write_at(0, &bytes).unwrap();
    };
    put("FORMAT");
    for folder in FOLDERS {
        disk.create_dir_all(folder).unwrap();
        for entry in std::fs::read_dir(fixture().join(folder)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            put(&format!("{folder}/{name}"));
        }
    }
    disk.crash(Crash::OfProcess)
}

fn files(disk: &MemoryDisk) -> Vec<String> {
    let within = |folder: &&str| {
        let names = disk.list(folder).unwrap().into_iter();
        let paths: Vec<String> = names.map(|name| format!("{folder}/{name}")).collect();
        paths
    };
    FOLDERS.iter().flat_map(within).collect()
}

fn content(disk: &MemoryDisk, path: &str) -> Vec<u8> {
    let file = disk.open(path).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(0, &mut bytes).unwrap();
    bytes
}

/// The collections by name, with their options and index specifications.
fn collections() -> Vec<(&'static str, DocumentBuf, Vec<DocumentBuf>)> {
    let zstd = doc! { "wiredTiger": { "configString": "block_compressor=zstd" } };
    let clustered = doc! { "key": { "_id": 1 }, "unique": true, "name": "by" };
    vec![
        (
            "ordinary",
            doc! {},
            vec![
                doc! { "key": { "a": 1, "b": -1 }, "name": "a_b" },
                doc! { "key": { "u": 1 }, "name": "u", "unique": true, "sparse": true },
                doc! { "key": { "t": "text" }, "name": "t" },
                doc! { "key": { "$**": 1 }, "name": "all" },
                doc! { "key": { "b": "hashed" }, "name": "hashed" },
                doc! { "key": { "place": "2dsphere" }, "name": "sphere" },
                doc! { "key": { "pair": "2d" }, "name": "plane" },
                doc! {
                    "key": { "b": 1 }, "name": "part",
                    "partialFilterExpression": { "b": { "$gt": 3 } },
                },
                doc! { "key": { "t": 1 }, "name": "german", "collation": { "locale": "de" } },
            ],
        ),
        (
            "clustered",
            doc! { "clusteredIndex": clustered },
            vec![doc! { "key": { "a": 1 }, "name": "a" }],
        ),
        ("pressed", doc! { "storageEngine": zstd }, Vec::new()),
        (
            "capped",
            doc! { "capped": true, "size": 100_000, "max": 15 },
            Vec::new(),
        ),
    ]
}

fn document(number: i32) -> DocumentBuf {
    let words = ["apple", "birne", "Kirsche", "plum"];
    let word = words[number as usize % words.len()];
    let place = [f64::from(number), f64::from(number % 9)];
    let mut document = doc! {
        "_id": number, "a": [(number % 3), (number % 5)], "b": (f64::from(number) / 2.0),
        "t": (format!("{word} and some words that can be pressed, {}", number % 4)),
        "place": { "type": "Point", "coordinates": [(place[0]), (place[1])] },
        "pair": [(place[0]), (place[1])],
    };
    if number % 2 == 0 {
        document.push("u", i64::from(number));
    }
    document
}

fn namespace(name: &str) -> Namespace {
    Namespace::new("d", name).unwrap()
}

fn insert(collection: &Collection, numbers: std::ops::Range<i32>) {
    let bytes: Vec<u8> = numbers.flat_map(|it| document(it).into_bytes()).collect();
    collection
        .insert(Bytes::from(bytes), InsertOrder::Ordered)
        .unwrap();
}

/// The sessions of two retryable writes.
const REMEMBERED: [Origin; 2] = [
    Origin {
        session: SessionKey([1; 16]),
        number: 4,
    },
    Origin {
        session: SessionKey([2; 16]),
        number: 5,
    },
];
const STATEMENT: i32 = 6;

/// Inserts with a retryable write.
fn insert_again(collection: &Collection, origin: Origin, number: i32) {
    let write_options = WriteOptions {
        statements: Some(Statements {
            origin,
            numbers: &[STATEMENT],
            image: RetainedImage::After,
        }),
        ..WriteOptions::default()
    };
    let bytes = Bytes::from(document(number).into_bytes());
    collection
        .insert_with(bytes, InsertOrder::Ordered, &write_options)
        .unwrap();
}

fn check_retry_results(engine: &Engine, what: &str) {
    for (origin, number) in REMEMBERED.into_iter().zip([60, 61]) {
        let expected = RecordedResult::Done(StatementResult::Inserted(document(number)));
        assert_eq!(
            engine.recorded_result(origin, STATEMENT),
            expected,
            "{what}"
        );
    }
    let committed = engine.last_operation(Origin::default().session);
    assert_eq!(committed, Some(LastOperation::Committed(0)), "{what}");
}

fn change(collection: &Collection, changes: Vec<(u64, Change)>) {
    let mut batch = collection.batch();
    for (record, change) in changes {
        let changed = batch.change(RecordId(record), |_| Ok::<_, Error>(change.clone()));
        changed.unwrap();
    }
    batch.commit().unwrap();
}

fn replaced(number: i32) -> Change {
    let mut document = document(number + 100);
    let others = document.iter().filter(|(name, _)| *name != "_id");
    document = others.collect();
    let mut whole = doc! { "_id": number };
    document
        .iter()
        .for_each(|(name, value)| whole.push(name, value));
    Change::Replace(whole)
}

fn build(
    collection: &Collection,
    indexes: &[DocumentBuf],
    on_phase: &(dyn Fn(&BuildPhase) + Sync),
) {
    let parse = |it: &DocumentBuf| Definition::parse(it.as_document()).unwrap();
    let control = BuildControl {
        interrupt: &Uninterrupted,
        on_phase,
    };
    let definitions = indexes.iter().map(parse).collect();
    collection.create_indexes(definitions, &control).unwrap();
}

/// A directory with one of everything that is stored on disk.
fn written() -> MemoryDisk {
    let disk = MemoryDisk::new();
    let engine = open(&disk).unwrap();
    for (name, options, indexes) in collections() {
        let collection = engine
            .create(&namespace(name), options.as_document())
            .unwrap();
        build(&collection, &indexes, &|_| {});
        insert(&collection, 0..20);
    }
    let collection = |name| engine.collection(&namespace(name)).unwrap();
    let pipeline: ArrayBuf = [Value::from(doc! { "$match": { "a": 1 } })]
        .into_iter()
        .collect();
    let view = View {
        on: "ordinary".to_owned(),
        pipeline,
        collation: None,
    };
    engine.create_view(&namespace("view"), &view).unwrap();
    engine.fold().unwrap();
    // One retryable write is in a section after the fold, and one in the log.
    insert_again(&collection("pressed"), REMEMBERED[0], 60);
    // A reader stays open while documents change, so sections contain past versions.
    let readers = [collection("ordinary"), collection("clustered")].map(|it| it.reader());
    for name in ["ordinary", "clustered", "pressed"] {
        change(
            &collection(name),
            vec![(3, replaced(2)), (5, Change::Delete)],
        );
        insert(&collection(name), 20..30);
    }
    engine.work(Work::Fold).unwrap();
    drop(readers);
    // The rest is only in the log, with records of every kind.
    insert(&collection("ordinary"), 30..33);
    change(
        &collection("clustered"),
        vec![(7, replaced(6)), (8, Change::Delete)],
    );
    insert_again(&collection("pressed"), REMEMBERED[1], 61);
    let transaction = engine.begin(Origin::default());
    for name in ["ordinary", "pressed"] {
        let target = transaction.collection(&namespace(name)).unwrap().unwrap();
        let write_options = WriteOptions {
            transaction: Some(&transaction),
            ..WriteOptions::default()
        };
        let bytes = Bytes::from(document(50).into_bytes());
        target
            .insert_with(bytes, InsertOrder::Ordered, &write_options)
            .unwrap();
    }
    transaction.commit().unwrap();
    drop(transaction);
    // The server stops during an index build, whose sections so far remain.
    let left = Mutex::new(None);
    let late = [doc! { "key": { "b": 1, "u": 1 }, "name": "late" }];
    build(&collection("ordinary"), &late, &|phase| {
        if matches!(phase, BuildPhase::Scanned { .. }) {
            engine.sync().unwrap();
            *left.lock().unwrap() = Some(disk.crash(Crash::OfProcess));
        }
    });
    left.into_inner().unwrap().unwrap()
}

/// What each version of the program must read.
type Content = BTreeMap<&'static str, BTreeMap<i32, DocumentBuf>>;

fn expected() -> Content {
    let mut expected = Content::new();
    for (name, ..) in collections() {
        let numbers = match name {
            "capped" => 5..20,
            _ => 0..30,
        };
        expected.insert(name, numbers.map(|it| (it, document(it))).collect());
    }
    for (name, documents) in &mut expected {
        if *name == "capped" {
            continue;
        }
        let mut replace = |number| {
            if let Change::Replace(document) = replaced(number) {
                documents.insert(number, document);
            }
        };
        replace(2);
        if *name == "clustered" {
            replace(6);
            documents.remove(&7);
        }
        documents.remove(&4);
        let more = match *name {
            "ordinary" => vec![30, 31, 32, 50],
            "pressed" => vec![50, 60, 61],
            _ => Vec::new(),
        };
        documents.extend(more.into_iter().map(|it| (it, document(it))));
    }
    expected
}

/// Reads all documents. Fails if one cannot be read.
fn documents(collection: &Collection) -> Result<BTreeMap<i32, DocumentBuf>, Error> {
    let reader = collection.reader()?;
    let (mut found, mut records) = (BTreeMap::new(), reader.records(Direction::Forward));
    while records.next()? {
        let document = Document::from_bytes(records.document()).unwrap().to_buf();
        let id = document.get("_id").unwrap().as_whole().unwrap();
        found.insert(id as i32, document);
    }
    Ok(found)
}

#[test]
#[ignore = "writes the fixture anew"]
fn write_the_fixture() {
    let disk = written();
    let _ = std::fs::remove_dir_all(fixture());
    for folder in FOLDERS {
        std::fs::create_dir_all(fixture().join(folder)).unwrap();
    }
    for path in files(&disk).into_iter().chain(["FORMAT".to_owned()]) {
        std::fs::write(fixture().join(&path), content(&disk, &path)).unwrap();
    }
}

#[test]
fn the_fixture_is_complete() {
    let engine = open(&saved()).unwrap();
    check_all(&engine);
    assert!(engine.view(&namespace("view")).unwrap().is_some());
    check_retry_results(&engine, "after the start");
    // The interrupted index build resumes.
    assert!(engine.work(Work::Builds).unwrap());
    engine.fold().unwrap();
    check_all(&engine);
    let indexes = engine.collection(&namespace("ordinary")).unwrap().indexes();
    assert!(indexes.iter().all(|index| index.is_ready()));
    assert_eq!(indexes.last().unwrap().definition.name, "late");
}

fn check_all(engine: &Engine) {
    let expected = expected();
    for (name, options, indexes) in collections() {
        let collection = engine.collection(&namespace(name)).unwrap();
        assert_eq!(documents(&collection).unwrap(), expected[name], "{name}");
        assert_eq!(collection.count(), expected[name].len() as u64, "{name}");
        assert_eq!(collection.options(), options, "{name}");
        assert!(collection.indexes().len() > indexes.len(), "{name}");
        let found = collection.validate(Checks::FULL).unwrap();
        assert!(found.is_valid(), "{name}: {found:?}");
    }
}

/// The number of changed bytes per file; all bytes of a small one.
const FLIPS_MAX: usize = 1_500;

#[test]
fn a_changed_byte_is_detected_or_harmless() {
    let whole = saved();
    let expected = expected();
    let mut refused = 0;
    for path in files(&whole) {
        let length = content(&whole, &path).len();
        for offset in (0..length).step_by(length.div_ceil(FLIPS_MAX).max(1)) {
            let damaged = whole.crash(Crash::OfProcess);
            damaged.spoil(&path, |bytes| bytes[offset] ^= 0x40);
            let what = format!("byte {offset} of {path}");
            for error in errors(&damaged, &expected, &what) {
                refused += 1;
                let is_named = error.contains(&path) || error.contains(&run_of(&path));
                assert!(is_named && error.contains("damaged"), "{what}: {error}");
            }
        }
    }
    assert!(refused > 1_000, "{refused} errors");
}

/// How errors name a run if they do not name its file.
fn run_of(path: &str) -> String {
    let number = path.trim_start_matches("runs/").trim_end_matches(".run");
    format!("run {}", number.trim_start_matches('0'))
}

/// Returns the errors of opening and reading. What can be read must be unchanged.
fn errors(disk: &MemoryDisk, expected: &Content, what: &str) -> Vec<String> {
    let engine = match open(disk) {
        Ok(engine) => engine,
        Err(error) => return vec![error.to_string()],
    };
    check_retry_results(&engine, what);
    let mut errors = Vec::new();
    for (name, ..) in collections() {
        let Some(collection) = engine.collection(&namespace(name)) else {
            panic!("{what}: {name} is gone, and nothing said so");
        };
        match documents(&collection) {
            Ok(found) => assert_eq!(found, expected[name], "{what}: {name}"),
            Err(error) => errors.push(error.to_string()),
        }
        match collection.validate(Checks::FULL) {
            Ok(found) => {
                let of_indexes = found.reports().flat_map(IndexReport::all_errors);
                errors.extend(found.errors.iter().chain(of_indexes).cloned());
            }
            Err(error) => errors.push(error.to_string()),
        }
    }
    errors
}
