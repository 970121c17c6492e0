//! Merges for space: beside a reader that is open, and given up when they are in the way.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use windrow_collection::{
    AtBlock, Background, Change, Checks, Collection, Engine, EngineOptions, Error, Namespace,
    RecordId, Work,
};
use windrow_document::{Document, DocumentBuf, doc};
use windrow_storage::{Disk, MemoryDisk};

fn open(at_block: AtBlock) -> Arc<Engine> {
    open_on(&MemoryDisk::new(), at_block)
}

fn open_on(disk: &MemoryDisk, at_block: AtBlock) -> Arc<Engine> {
    let options = EngineOptions {
        threads: 1,
        background: Background::Caller,
        at_block,
        ..EngineOptions::with_memory(64 << 20)
    };
    Engine::open(Arc::new(disk.clone()), options).unwrap()
}

fn document(id: i32, round: i32) -> DocumentBuf {
    let text: String = (0..40)
        .map(|at| format!("{:x}", id * 31 + round * 7 + at))
        .collect();
    doc! { "_id": id, "text": text }
}

const DOCUMENTS: i32 = 3_000;

/// All documents, and all of them written again.
fn overwritten(engine: &Engine) -> Arc<Collection> {
    let namespace = Namespace::new("d", "c").unwrap();
    let collection = engine.create(&namespace, Document::EMPTY).unwrap();
    let bytes: Vec<u8> = (0..DOCUMENTS)
        .flat_map(|id| document(id, 0).into_bytes())
        .collect();
    collection.insert(Bytes::from(bytes), true).unwrap();
    engine.work(Work::Fold).unwrap();
    overwrite(&collection, 1);
    engine.work(Work::Fold).unwrap();
    collection
}

fn overwrite(collection: &Collection, round: i32) {
    let mut batch = collection.batch();
    for id in 0..DOCUMENTS {
        let change = |_: Document<'_>| Ok::<_, Error>(Change::Replace(document(id, round)));
        batch.change(RecordId(id as u64 + 1), change).unwrap();
    }
    batch.commit().unwrap();
}

/// Documents that compress very well stood in front of what came later in small pieces, which were never
/// merged: each fold left a section for ever.
#[test]
fn small_pieces_behind_what_compresses_well_become_few() {
    let engine = open(AtBlock(Arc::new(|| ())));
    let namespace = Namespace::new("d", "c").unwrap();
    let collection = engine.create(&namespace, Document::EMPTY).unwrap();
    let insert = |from: i32, to: i32, pad: &str| {
        let document = |id| doc! { "_id": id, "pad": pad }.into_bytes();
        let bytes: Vec<u8> = (from..to).flat_map(document).collect();
        collection.insert(Bytes::from(bytes), true).unwrap();
        engine.work(Work::Fold).unwrap();
    };
    insert(0, 1_000, &"x".repeat(10_000));
    for id in 1_000..1_100 {
        insert(id, id + 1, "little");
        while engine.work(Work::Merge).unwrap() {}
    }
    let sections = collection.statistics().sections;
    assert!(sections < 20, "{sections}");
}

fn stored(collection: &Collection) -> u64 {
    collection.statistics().bytes_stored
}

/// A cursor that somebody has forgotten kept every merge for space from happening.
#[test]
fn beside_a_reader_that_is_open() {
    let engine = open(AtBlock(Arc::new(|| ())));
    let collection = overwritten(&engine);
    let before = stored(&collection);
    let reader = collection.reader().unwrap();
    while engine.work(Work::Compact).unwrap() {}
    assert!(
        stored(&collection) < before * 6 / 10,
        "{before}, {}",
        stored(&collection)
    );
    assert!(collection.validate(Checks::FULL).unwrap().is_valid());
    drop(reader);
}

/// What an older reader sees stays, and there is an end to trying.
#[test]
fn what_is_read_stays() {
    let engine = open(AtBlock(Arc::new(|| ())));
    let namespace = Namespace::new("d", "c").unwrap();
    let other = Namespace::new("d", "other").unwrap();
    engine.create(&other, Document::EMPTY).unwrap();
    let old = engine.collection(&other).unwrap().reader().unwrap();
    let collection = overwritten(&engine);
    let mut merges = 0;
    while engine.work(Work::Compact).unwrap() {
        merges += 1;
        assert!(merges < 10, "{namespace}");
    }
    drop(old);
    while engine.work(Work::Compact).unwrap() {}
    assert!(collection.validate(Checks::FULL).unwrap().is_valid());
}

/// A reader stays open while everything is overwritten again and again: what it sees stays, and of what
/// lies between that and now nothing does.
#[test]
fn a_reader_that_stays_keeps_only_what_it_sees() {
    let disk = MemoryDisk::new();
    let engine = open_on(&disk, AtBlock(Arc::new(|| ())));
    let collection = overwritten(&engine);
    while engine.work(Work::Compact).unwrap() {}
    let bytes_of_runs = || {
        let names = disk.list("runs").unwrap();
        let length = |name: &String| disk.open(&format!("runs/{name}")).unwrap().len().unwrap();
        names.iter().map(length).sum::<u64>()
    };
    let fresh = bytes_of_runs();
    let reader = collection.reader().unwrap();
    for round in 2..12 {
        overwrite(&collection, round);
        engine.work(Work::Fold).unwrap();
        while engine.work(Work::Compact).unwrap() {}
        // The files that it reads, and of all documents what it sees and what is newest.
        assert!(bytes_of_runs() < fresh * 33 / 10, "round {round}");
    }
    for id in 0..DOCUMENTS {
        let seen = reader.get(RecordId(id as u64 + 1)).unwrap().unwrap();
        assert_eq!(seen, document(id, 1).into_bytes());
    }
    drop(reader);
    overwrite(&collection, 12);
    engine.work(Work::Fold).unwrap();
    while engine.work(Work::Compact).unwrap() {}
    let after = bytes_of_runs();
    assert!(after < fresh * 13 / 10, "{after} of {fresh}");
}

/// The end of a server and a drop waited until all was merged.
#[test]
fn a_merge_in_the_way_is_given_up() {
    let (asked, blocks) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicBool::new(false)),
    );
    let (seen, wait) = (blocks.clone(), asked.clone());
    let at_block = AtBlock(Arc::new(move || {
        seen.store(true, Ordering::Release);
        while wait.load(Ordering::Acquire) {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }));
    let engine = open(at_block);
    let collection = overwritten(&engine);
    let before = stored(&collection);
    blocks.store(false, Ordering::Release);
    asked.store(true, Ordering::Release);
    std::thread::scope(|scope| {
        let merge = scope.spawn(|| engine.work(Work::Compact).unwrap());
        while !blocks.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        assert!(
            engine
                .drop_collection(&Namespace::new("d", "c").unwrap())
                .unwrap()
        );
        asked.store(false, Ordering::Release);
        assert!(!merge.join().unwrap(), "it was given up");
    });
    assert!(before > 0);
    engine.fold().unwrap();
}
