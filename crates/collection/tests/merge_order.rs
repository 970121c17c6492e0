//! Which sections override others after a restart and merges.

mod common;

use bytes::Bytes;
use common::{collection, namespace, open};
use windrow_collection::{Change, Checks, Collection, Error, InsertOrder, RecordId, Work};
use windrow_document::{Document, DocumentBuf, doc};
use windrow_storage::MemoryDisk;

fn document(id: u64, round: i32) -> DocumentBuf {
    let pad: String = (0..2_000).map(|at| format!("{:x}", id * 31 + at)).collect();
    doc! { "_id": format!("{id:06}"), "round": round, "pad": pad }
}

/// Inserts documents of more than a tier of sections.
fn insert(collection: &Collection, from: u64) {
    let bytes: Vec<u8> = (from..from + PER_FOLD)
        .flat_map(|id| document(id, 0).into_bytes())
        .collect();
    collection
        .insert(Bytes::from(bytes), InsertOrder::Ordered)
        .unwrap();
}

const PER_FOLD: u64 = 40;
const FOLDS: u64 = 8;

/// A fold of a clustered collection writes changed documents and new ones into two sections of the
/// same age. A start used to read the new ones first. If these were merged with older sections, the
/// result overrode the changed documents: acknowledged updates and deletions were lost.
#[test]
fn a_merge_after_a_restart_keeps_changes_that_were_folded_beside_new_documents() {
    let disk = MemoryDisk::new();
    let engine = open(&disk);
    let by_id = doc! { "key": { "_id": 1 }, "unique": true, "name": "_id_" };
    let options = doc! { "clusteredIndex": by_id };
    let documents = engine.create(&namespace(), options.as_document()).unwrap();
    for fold in 0..FOLDS {
        insert(&documents, fold * PER_FOLD);
        if fold + 1 == FOLDS {
            let mut batch = documents.batch();
            let replace = |_: Document<'_>| Ok::<_, Error>(Change::Replace(document(0, 1)));
            batch.change(RecordId(1), replace).unwrap();
            let delete = |_: Document<'_>| Ok::<_, Error>(Change::Delete);
            batch.change(RecordId(2), delete).unwrap();
            batch.commit().unwrap();
        }
        engine.work(Work::Fold).unwrap();
    }
    drop(documents);
    drop(engine);
    let engine = open(&disk);
    let documents = collection(&engine);
    let sections = documents.statistics().sections;
    assert!(engine.work(Work::Merge).unwrap());
    assert!(documents.statistics().sections < sections);
    let report = documents.validate(Checks::FULL).unwrap();
    assert!(report.is_valid(), "{report:?}");
    assert_eq!(documents.count(), FOLDS * PER_FOLD - 1);
}
