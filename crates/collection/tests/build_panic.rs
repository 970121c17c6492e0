//! A build that panics fails, and leaves no index that each start would build again.

mod common;

use bytes::Bytes;
use common::{collection, namespace, open};
use windrow_collection::{BuildControl, BuildPhase, Error, InsertOrder, Uninterrupted};
use windrow_document::doc;
use windrow_index::Definition;
use windrow_storage::MemoryDisk;

#[test]
fn a_panicking_build_leaves_nothing() {
    let disk = MemoryDisk::new();
    let engine = open(&disk);
    let created = engine.create(&namespace(), doc! {}.as_document()).unwrap();
    let document = Bytes::from(doc! { "_id": 1, "a": 1 }.into_bytes());
    assert!(
        created
            .insert(document, InsertOrder::Ordered)
            .unwrap()
            .errors
            .is_empty()
    );
    let build = |on_phase: &(dyn Fn(&BuildPhase) + Sync)| {
        let control = BuildControl {
            interrupt: &Uninterrupted,
            on_phase,
        };
        let index = doc! { "key": doc! { "a": 1 }, "name": "a_1" };
        let definition = Definition::parse(index.as_document()).unwrap();
        created.create_indexes(vec![definition], &control)
    };
    let panics = |phase: &BuildPhase| {
        assert!(!matches!(phase, BuildPhase::Scanned { .. }));
    };
    assert!(matches!(build(&panics), Err(Error::Bug(_))));
    assert_eq!(created.indexes().len(), 1);
    // The build now succeeds, and the index survives a restart.
    build(&|_| ()).unwrap();
    drop((created, engine));
    let engine = open(&disk);
    let indexes = collection(&engine).indexes();
    assert_eq!(indexes.len(), 2);
    assert!(indexes.iter().all(|index| index.is_ready()));
}
