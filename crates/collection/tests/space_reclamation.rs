//! Merges for space: with an open reader, and when others wait for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use windrow_collection::{
    AtBlock, Background, Change, Checks, Collection, Engine, EngineOptions, Error, InsertOrder,
    Namespace, RecordId, Work,
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

/// Inserts documents, and overwrites all of them.
fn overwritten(engine: &Engine) -> Arc<Collection> {
    let namespace = Namespace::new("d", "c").unwrap();
    let collection = engine.create(&namespace, Document::EMPTY).unwrap();
    let bytes: Vec<u8> = (0..DOCUMENTS)
        .flat_map(|id| document(id, 0).into_bytes())
        .collect();
    collection
        .insert(Bytes::from(bytes), InsertOrder::Ordered)
        .unwrap();
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

/// A large section that compresses well used to keep the small sections behind it from being
/// merged, so each fold left one more.
#[test]
fn small_sections_behind_a_compressible_one_are_merged() {
    let engine = open(AtBlock(Arc::new(|| ())));
    let namespace = Namespace::new("d", "c").unwrap();
    let collection = engine.create(&namespace, Document::EMPTY).unwrap();
    let insert = |from: i32, to: i32, pad: &str| {
        let document = |id| doc! { "_id": id, "pad": pad }.into_bytes();
        let bytes: Vec<u8> = (from..to).flat_map(document).collect();
        collection
            .insert(Bytes::from(bytes), InsertOrder::Ordered)
            .unwrap();
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

/// A forgotten cursor used to prevent all merges for space.
#[test]
fn merges_run_beside_an_open_reader() {
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

/// What an older reader sees stays, and merging ends.
#[test]
fn versions_of_open_readers_stay() {
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

/// A reader stays open while everything is overwritten again and again. Its versions stay, and no
/// versions between them and the newest.
#[test]
fn an_open_reader_keeps_only_its_versions() {
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
        // The run files that it reads contain its versions and the newest ones.
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

/// A shutdown and a drop used to wait until all merges had ended.
#[test]
fn a_merge_in_the_way_stops() {
    let (must_wait, blocks) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicBool::new(false)),
    );
    let (seen, wait) = (blocks.clone(), must_wait.clone());
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
    must_wait.store(true, Ordering::Release);
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
        must_wait.store(false, Ordering::Release);
        assert!(!merge.join().unwrap(), "it stopped early");
    });
    assert!(before > 0);
    engine.fold().unwrap();
}
