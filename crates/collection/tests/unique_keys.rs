//! Duplicate keys are found in tails, in recently folded sections, which a filter covers, and in
//! others, across merges, builds, repairs and restarts.

#[path = "common/building.rs"]
mod building;
mod common;

use std::ops::Range;

use building::build;
use bytes::Bytes;
use common::{collection, namespace, open};
use windrow_collection::{Collection, Error, InsertError, InsertOrder, Work};
use windrow_document::{Document, DocumentBuf, doc};
use windrow_storage::MemoryDisk;

/// Events between the inserts.
#[derive(Clone, Copy, PartialEq)]
enum Course {
    /// None: filters of recent keys are never forgotten, only replaced.
    Undisturbed,
    /// Compaction, restarts, and increasing `_id`s, which need no check.
    Disturbed,
}

/// Distinct numbers in no order.
fn id(course: Course, number: u64) -> i64 {
    let grows = course == Course::Disturbed && matches!(number / FOLDED % 12, 9 | 10);
    if grows {
        (1 << 62) + number as i64
    } else {
        number.wrapping_mul(0x9E37_79B9_7F4A_7C15) as i64 >> 1
    }
}

fn email(number: u64) -> String {
    format!("{number:x}@")
}

fn insert(collection: &Collection, course: Course, numbers: Range<u64>) {
    let document = |number| doc! { "_id": id(course, number), "email": email(number) };
    let documents = numbers.flat_map(|number| document(number).into_bytes());
    let inserted = collection.insert(
        Bytes::from(documents.collect::<Vec<u8>>()),
        InsertOrder::Ordered,
    );
    assert!(inserted.unwrap().errors.is_empty());
}

fn is_refused(collection: &Collection, document: DocumentBuf) -> bool {
    let inserted = collection.insert(Bytes::from(document.into_bytes()), InsertOrder::Ordered);
    matches!(
        inserted.unwrap().errors.as_slice(),
        [InsertError {
            index: 0,
            error: Error::DuplicateKey(_),
        }]
    )
}

fn build_unique(collection: &Collection) {
    let index = doc! { "key": doc! { "email": 1 }, "name": "email_1", "unique": true };
    build(collection, index);
}

/// The index on email is built after this many folds.
const BUILT_AT: u64 = 17;
const FOLDS: u64 = 80;
/// About this many keys per fold.
const FOLDED: u64 = 100;

fn check(options: Document<'_>, course: Course) {
    let disk = MemoryDisk::new();
    let mut engine = open(&disk);
    engine.create(&namespace(), options).unwrap();
    let mut next = 0;
    for fold in 0..FOLDS {
        let of_fold = collection(&engine);
        for _ in 0..4 {
            let some = FOLDED / 8 + (fold * 7) % (FOLDED / 4);
            insert(&of_fold, course, next..next + some);
            next += some;
        }
        if fold == BUILT_AT {
            build_unique(&of_fold);
        }
        match (course, fold % 12) {
            (Course::Disturbed, 3) => engine.work(Work::Compact).map(drop).unwrap(),
            (Course::Disturbed, 7) => {
                drop(of_fold);
                drop(engine);
                engine = open(&disk);
            }
            _ => {}
        }
        engine.work(Work::Fold).unwrap();
        while fold % 5 != 2 && engine.work(Work::Merge).unwrap() {}
        check_keys(&collection(&engine), course, next, fold);
    }
}

/// Every existing key is rejected, and no other.
fn check_keys(collection: &Collection, course: Course, next: u64, fold: u64) {
    for number in (0..next).step_by(37).chain([next - 1]) {
        let document = doc! { "_id": id(course, number), "email": "nobody's" };
        let refused = is_refused(collection, document);
        assert!(refused, "_id {number} after fold {fold}");
        if fold >= BUILT_AT {
            let document = doc! { "_id": -1i64 - number as i64, "email": email(number) };
            let refused = is_refused(collection, document);
            assert!(refused, "email {number} after fold {fold}");
        }
    }
    assert_eq!(collection.count(), next);
}

#[test]
fn in_an_ordinary_collection() {
    check(Document::EMPTY, Course::Undisturbed);
    check(Document::EMPTY, Course::Disturbed);
}

#[test]
fn in_a_clustered_collection() {
    let key = doc! { "_id": 1 };
    let options = doc! { "clusteredIndex": { "key": key, "unique": true } };
    check(options.as_document(), Course::Undisturbed);
    check(options.as_document(), Course::Disturbed);
}
