//! Indexes with wrong content and valid checksums: sections with extra or missing entries are added
//! with the storage's API. Quick and full validation both name the errors, and the rebuilt index is
//! correct.

mod common;

use std::sync::Arc;

use bytes::Bytes;
use windrow_collection::{
    BuildControl, Change, Checks, Collection, Direction, Engine, Error, InsertOrder, Interrupted,
    Reader, RecordId, Uninterrupted, Validation, Work,
};
use windrow_document::{DocumentBuf, Value, ValueRef, doc, key};
use windrow_fold::{Entry, Position, RunSink, SectionDescriptor, SectionOptions, SectionWriter};
use windrow_index::Definition;
use windrow_storage::{Compression, MemoryDisk, RowChange, Storage, StorageOptions};

use common::{collection, namespace, open};

/// A folded collection of a hundred documents with an index on `a` (multikey) and one on `b`.
fn folder(options: DocumentBuf) -> MemoryDisk {
    let disk = MemoryDisk::new();
    let engine = open(&disk);
    let collection = engine.create(&namespace(), options.as_document()).unwrap();
    let indexes = [
        doc! { "key": { "a": 1 }, "name": "a_1" },
        doc! { "key": { "b": -1 }, "name": "b_-1", "unique": true },
    ];
    let parse = |it: &DocumentBuf| Definition::parse(it.as_document()).unwrap();
    let control = BuildControl {
        interrupt: &Uninterrupted,
        on_phase: &|_| {},
    };
    collection
        .create_indexes(indexes.iter().map(parse).collect(), &control)
        .unwrap();
    let document = |id: i32| doc! { "_id": id, "a": [(id % 7), (id % 5)], "b": (id * 2) };
    let bytes: Vec<u8> = (1..=100).flat_map(|id| document(id).into_bytes()).collect();
    collection
        .insert(Bytes::from(bytes), InsertOrder::Ordered)
        .unwrap();
    engine.fold().unwrap();
    engine.close().unwrap();
    disk
}

/// The rows of sections: the map's id, the row's key, and the descriptor.
fn sections(storage: &Storage) -> Vec<(u64, Vec<u8>, SectionDescriptor)> {
    let rows = storage.catalog.scan(b"s").into_iter();
    rows.map(|(key, value)| {
        let map = u64::from_be_bytes(*key[1..].first_chunk().unwrap());
        (map, key, SectionDescriptor::decode(&value).unwrap())
    })
    .collect()
}

fn storage(disk: &MemoryDisk) -> Storage {
    Storage::open(Arc::new(disk.clone()), StorageOptions::default()).unwrap()
}

/// Writes a section of entries (key, record, deleted), and adds it to the map as its newest.
fn add_section(disk: &MemoryDisk, map: u64, entries: &[(Vec<u8>, u64, bool)]) {
    let alone =
        |(key, id, deleted): &(Vec<u8>, u64, bool)| (key.clone(), *id, *deleted, Vec::new());
    let entries: Vec<_> = entries.iter().map(alone).collect();
    add_section_beside(disk, map, &entries);
}

/// Writes a section of entries with payloads (key, record, deleted, payload).
fn add_section_beside(disk: &MemoryDisk, map: u64, entries: &[(Vec<u8>, u64, bool, Vec<u8>)]) {
    let storage = storage(disk);
    let youngest = sections(&storage).iter().map(|it| it.2.position).max();
    let sink = RunSink::new(storage.runs.create().unwrap());
    let options = SectionOptions {
        filter_bits: 10,
        packed: false,
        postings: None,
        with_digest: true,
        mark_byte: Some(windrow_index::MARK),
        compression: Compression::Lz4,
        position: youngest.unwrap(),
    };
    let mut writer = SectionWriter::new(&sink, options);
    for (key, id, deleted, payload) in entries {
        let entry = Entry {
            key,
            id: RecordId(*id),
            position: Position::ZERO,
            deleted: *deleted,
            payload,
        };
        writer.push(&entry, true).unwrap();
    }
    let section = writer.finish().unwrap().unwrap();
    sink.finish().unwrap();
    let mut row = vec![b's'];
    for number in [map, section.run.0, section.root_offset] {
        row.extend_from_slice(&number.to_be_bytes());
    }
    let row = RowChange::put(row, section.encode());
    storage.catalog.change(vec![row], |_| {}).unwrap();
}

/// Returns the map of an index. In a clustered collection, the index on `_id` has the map by record
/// id.
fn map_of(disk: &MemoryDisk, name: &str) -> u64 {
    let storage = storage(disk);
    let rows = storage.catalog.scan(b"i").into_iter();
    let named = |value: &[u8]| {
        let row = DocumentBuf::from_bytes(value.to_vec()).unwrap();
        let specification = row.get("spec").unwrap().as_document().unwrap().to_buf();
        specification.get("name") == Some(ValueRef::String(name))
    };
    let mut found = rows.filter(|(_, value)| named(value));
    let (key, _) = found.next().unwrap();
    u64::from_be_bytes(*key[9..].first_chunk().unwrap())
}

fn key_of(value: impl Into<Value>, descending: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    key::append_with_direction(&mut bytes, value.into().as_ref(), descending);
    bytes
}

/// Runs quick and full validation, which must agree.
fn validate(collection: &Collection) -> Validation {
    let quick = collection.validate(Checks::QUICK).unwrap();
    let full = collection.validate(Checks::FULL).unwrap();
    assert_eq!(quick.is_valid(), full.is_valid(), "{quick:?}\n{full:?}");
    full
}

/// Checks that exactly this index has these errors, and is correct once rebuilt, also after a
/// restart.
fn check(disk: &MemoryDisk, name: &str, missing: u64, extra: u64, expected: &str) {
    let engine = open(disk);
    let damaged = collection(&engine);
    let found = validate(&damaged);
    for index in found.reports() {
        assert_eq!(index.is_valid(), index.name != name, "{index:?}");
    }
    let wrong = found.reports().find(|index| index.name == name);
    let wrong = wrong.unwrap();
    assert_eq!((wrong.missing.count, wrong.extra.count), (missing, extra));
    assert!(wrong.errors[0].contains(expected), "{:?}", wrong.errors);
    let names = [name.to_owned()];
    engine.rebuild(&damaged, &names, &Uninterrupted).unwrap();
    check_whole(&engine);
    engine.close().unwrap();
    drop((damaged, engine));
    check_whole(&open(disk));
}

/// Checks that everything is valid, and can be written and folded.
fn check_whole(engine: &Engine) {
    let collection = collection(engine);
    let found = validate(&collection);
    assert!(found.is_valid(), "{found:?}");
    let reader = collection.reader().unwrap();
    for id in [1, 50, 100] {
        assert!(reader.find(ValueRef::Int32(id)).unwrap().is_some(), "{id}");
    }
    drop(reader);
    engine.fold().unwrap();
    assert!(validate(&collection).is_valid());
}

#[test]
fn missing_entries() {
    let disk = folder(doc! {});
    let map = map_of(&disk, "a_1");
    let gone = [(key_of(1, false), 1, true), (key_of(3, false), 3, true)];
    add_section(&disk, map, &gone);
    check(&disk, "a_1", 2, 0, "record 1 lacks key");
}

#[test]
fn extra_entries() {
    let disk = folder(doc! {});
    let map = map_of(&disk, "b_-1");
    let more = [
        (key_of(999, true), 5, false),
        (key_of(-4, true), 7777, false),
    ];
    add_section(&disk, map, &more);
    check(&disk, "b_-1", 0, 2, "is no document's");
}

#[test]
fn a_section_that_the_catalog_lost() {
    let disk = folder(doc! {});
    let map = map_of(&disk, "b_-1");
    let folder = storage(&disk);
    let lost = sections(&folder).into_iter().filter(|it| it.0 == map);
    let changes = lost.map(|(_, key, _)| RowChange::delete(key)).collect();
    folder.catalog.change(changes, |_| {}).unwrap();
    drop(folder);
    check(
        &disk,
        "b_-1",
        100,
        0,
        "has 0 entries where the documents have 100",
    );
}

#[test]
fn the_index_on_ids() {
    let disk = folder(doc! {});
    let map = map_of(&disk, "_id_");
    add_section(&disk, map, &[(key_of(50, false), 50, true)]);
    check(&disk, "_id_", 1, 0, "record 50 lacks key");
}

#[test]
fn the_records_of_a_clustered_collection() {
    let clustered =
        doc! { "clusteredIndex": { "key": { "_id": 1 }, "unique": true, "name": "by" } };
    let disk = folder(clustered);
    let by_id = map_of(&disk, "by");
    // The map by record id has the id before that of the index on `_id`.
    let id = 50u64.to_be_bytes().to_vec();
    add_section(&disk, by_id - 1, &[(id, 0, true)]);
    check(&disk, "by", 1, 0, "record 50 lacks key");
}

/// Two documents share a key of an index that was made unique without a check, or prepared for it.
/// A rebuild does not help, and the index has no other errors.
fn check_duplicate_keys(
    options: DocumentBuf,
    becomes: &str,
    keys: [i32; 2],
    expected: Option<&str>,
) {
    let disk = folder(doc! {});
    let mut specification = doc! { "key": { "c": 1 }, "name": "c_1" };
    options
        .iter()
        .for_each(|(name, value)| specification.push(name, value));
    let definition = Definition::parse(specification.as_document()).unwrap();
    let control = BuildControl {
        interrupt: &Uninterrupted,
        on_phase: &|_| {},
    };
    let engine = open(&disk);
    let damaged = collection(&engine);
    damaged.create_indexes(vec![definition], &control).unwrap();
    let documents = [
        doc! { "_id": 201, "b": (-1), "c": [(keys[0]), (keys[0])] },
        doc! { "_id": 202, "b": (-2), "c": (keys[1]) },
    ];
    let bytes = documents.into_iter().flat_map(DocumentBuf::into_bytes);
    damaged
        .insert(bytes.collect::<Vec<u8>>().into(), InsertOrder::Ordered)
        .unwrap();
    engine.fold().unwrap();
    engine.close().unwrap();
    drop((damaged, engine));
    set(&disk, "c_1", becomes);
    let engine = open(&disk);
    let damaged = collection(&engine);
    for round in 0..2 {
        let found = validate(&damaged);
        assert_eq!(found.is_valid(), expected.is_none(), "{found:?}");
        for index in found.reports() {
            let expected = expected.filter(|_| index.name == "c_1");
            assert_eq!(index.duplicates.as_deref(), expected, "{round}");
            assert!(index.errors.is_empty(), "{index:?}");
        }
        let names = ["c_1".to_owned()];
        engine.rebuild(&damaged, &names, &Uninterrupted).unwrap();
    }
}

/// Sets an option of an index in the catalog.
fn set(disk: &MemoryDisk, name: &str, option: &str) {
    let folder = storage(disk);
    for (key, value) in folder.catalog.scan(b"i") {
        let row = DocumentBuf::from_bytes(value.to_vec()).unwrap();
        let specification = row.get("spec").unwrap().as_document().unwrap();
        if specification.get("name") != Some(ValueRef::String(name)) {
            continue;
        }
        let mut specification = specification.to_buf();
        specification.push(option, true);
        let mut changed = doc! { "spec": specification };
        let rest = row.iter().filter(|(name, _)| *name != "spec");
        rest.for_each(|(name, value)| changed.push(name, value));
        let put = RowChange::put(key, changed.into_bytes());
        folder.catalog.change(vec![put], |_| {}).unwrap();
    }
}

#[test]
fn documents_that_share_a_key() {
    let error =
        r#"Unique index 'c_1' has duplicate key: {"c":7}, first record: 101, second record: 102"#;
    // The first hundred documents have no `c`.
    let sparse = || doc! { "sparse": true };
    let partial = doc! { "partialFilterExpression": { "c": { "$exists": true } } };
    check_duplicate_keys(sparse(), "unique", [7, 7], Some(error));
    check_duplicate_keys(sparse(), "unique", [7, 8], None);
    check_duplicate_keys(sparse(), "prepareUnique", [7, 7], None);
    check_duplicate_keys(partial, "unique", [7, 7], Some(error));
    let missing = "Unique index 'c_1' has duplicate key: {\"c\":null}, first record: 1, second record: 2, \
                   and 98 more";
    check_duplicate_keys(doc! {}, "unique", [7, 8], Some(missing));
}

/// The documents of a clustered collection are stored by `_id`.
#[test]
fn documents_that_share_an_id() {
    let clustered =
        doc! { "clusteredIndex": { "key": { "_id": 1 }, "unique": true, "name": "by" } };
    let disk = folder(clustered);
    let by_id = map_of(&disk, "by");
    let key = key_of(50, false);
    let second = doc! { "_id": 50, "a": [1], "b": 7000 }.into_bytes();
    add_section_beside(&disk, by_id, &[(key.clone(), 7777, false, second)]);
    let record = 7777u64.to_be_bytes().to_vec();
    add_section_beside(&disk, by_id - 1, &[(record, 0, false, key)]);
    let engine = open(&disk);
    let found = validate(&collection(&engine));
    let records_map = found.records_map.unwrap();
    let expected =
        r#"Unique index 'by' has duplicate key: {"_id":50}, first record: 50, second record: 7777"#;
    assert_eq!(records_map.duplicates.as_deref(), Some(expected));
    assert!(records_map.errors.is_empty(), "{records_map:?}");
}

/// A block of an index fails its checksum. Nothing else is affected.
#[test]
fn a_block_that_cannot_be_read() {
    let disk = folder(doc! {});
    let map = map_of(&disk, "a_1");
    let folder = storage(&disk);
    let all = sections(&folder);
    let (_, _, section) = all.iter().find(|it| it.0 == map).unwrap();
    // A section's blocks precede its root.
    let at = section.root_offset - 20;
    drop(folder);
    disk.spoil(&format!("runs/{:012}.run", section.run), |bytes| {
        bytes[at as usize] ^= 1;
    });
    let engine = open(&disk);
    let damaged = collection(&engine);
    let found = damaged.validate(Checks::FULL).unwrap();
    let wrong: Vec<_> = found.indexes.iter().filter(|it| !it.is_valid()).collect();
    assert_eq!(wrong.len(), 1, "{found:?}");
    assert!(wrong[0].errors[0].contains(" is damaged: "), "{wrong:?}");
    let names = [wrong[0].name.clone()];
    engine.rebuild(&damaged, &names, &Uninterrupted).unwrap();
    check_whole(&engine);
}

/// A full validation reads all bytes of a section, including its filters.
#[test]
fn a_changed_byte() {
    let spoilt = |name: &str, part: u64| {
        let disk = folder(doc! {});
        let map = map_of(&disk, name);
        let storage = storage(&disk);
        let all = sections(&storage);
        let (_, _, section) = all.iter().find(|it| it.0 == map).unwrap();
        let (run, root) = (section.run, section.root_offset);
        // Nearly all bytes precede the root.
        let at = root - section.bytes_stored * part / 10;
        drop(storage);
        disk.spoil(&format!("runs/{run:012}.run"), |bytes| {
            bytes[at as usize] ^= 1;
        });
        disk
    };
    for (name, part) in ["_id_", "a_1"]
        .iter()
        .flat_map(|name| (1..9).map(move |part| (name, part)))
    {
        let engine = open(&spoilt(name, part));
        let damaged = collection(&engine);
        let found = damaged.validate(Checks::FULL).unwrap();
        let wrong = found.indexes.iter().filter(|it| !it.is_valid());
        let wrong: Vec<String> = wrong.map(|it| it.name.clone()).collect();
        assert_eq!(wrong, [*name], "{part}");
        engine.rebuild(&damaged, &wrong, &Uninterrupted).unwrap();
        check_whole(&engine);
    }
}

/// A reader of an older snapshot sees the same during and after a rebuild. A rebuild that is
/// stopped leaves the index unchanged.
#[test]
fn readers_and_interrupts_during_a_rebuild() {
    let disk = folder(doc! {});
    let engine = open(&disk);
    let collection = collection(&engine);
    let names = ["a_1".to_owned(), "_id_".to_owned()];
    let old = collection.reader().unwrap();
    let before = entries(&old);
    let bytes = Bytes::from(doc! { "_id": 200, "a": 1, "b": 1 }.into_bytes());
    collection.insert(bytes, InsertOrder::Ordered).unwrap();
    let mut batch = collection.batch();
    let replace = Change::Replace(doc! { "_id": 3, "a": [1, 77], "b": 6 });
    for (record, change) in [(RecordId(3), replace), (RecordId(5), Change::Delete)] {
        batch
            .change(record, |_| Ok::<_, Error>(change.clone()))
            .unwrap();
    }
    batch.commit().unwrap();
    let stop = || Err(Interrupted::new("enough"));
    let stopped = engine.rebuild(&collection, &names, &stop);
    assert!(stopped.unwrap_err().to_string().contains("enough"));
    assert!(validate(&collection).is_valid());
    let new = entries(&collection.reader().unwrap());
    engine.rebuild(&collection, &names, &Uninterrupted).unwrap();
    assert_eq!(entries(&old), before);
    assert_eq!(entries(&collection.reader().unwrap()), new);
    assert!(validate(&collection).is_valid());
    drop(old);
    while engine.work(Work::Compact).unwrap() {}
    assert!(validate(&collection).is_valid());
    assert_eq!(entries(&collection.reader().unwrap()), new);
}

fn entries(reader: &Reader) -> Vec<(Vec<u8>, RecordId)> {
    let mut entries = reader.entries(1, Direction::Forward).unwrap();
    let next = || {
        entries
            .next()
            .unwrap()
            .then(|| (entries.key().to_vec(), entries.id()))
    };
    std::iter::from_fn(next).collect()
}
