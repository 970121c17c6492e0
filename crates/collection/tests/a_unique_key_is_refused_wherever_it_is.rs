//! A key that is there already is found in the tail, in sections that were folded lately, which one filter
//! speaks for, and in those that were not, whatever was merged, built, made anew or started meanwhile.

mod common;

use bytes::Bytes;
use common::{collection, namespace, open};
use windrow_collection::{BuildControl, Collection, Error, Work};
use windrow_document::{Document, DocumentBuf, doc};
use windrow_index::Definition;
use windrow_storage::MemoryDisk;

/// Numbers in no order, each once; in some folds they grow, and nobody asks for those before.
fn id(number: u64) -> i64 {
    match number / FOLDED % 12 {
        9 | 10 => (1 << 62) + number as i64,
        _ => number.wrapping_mul(0x9E37_79B9_7F4A_7C15) as i64 >> 1,
    }
}

fn documents(numbers: impl Iterator<Item = u64>) -> Bytes {
    let documents =
        numbers.map(|number| doc! { "_id": id(number), "email": email(number) }.into_bytes());
    Bytes::from(documents.flatten().collect::<Vec<u8>>())
}

fn email(number: u64) -> String {
    format!("{:x}", id(number))
}

fn is_refused(collection: &Collection, document: DocumentBuf) -> bool {
    let inserted = collection.insert(Bytes::from(document.into_bytes()), true);
    matches!(
        inserted.unwrap().errors.as_slice(),
        [(0, Error::DuplicateKey(_))]
    )
}

fn build(collection: &Collection) {
    let index = doc! { "key": doc! { "email": 1 }, "name": "email_1", "unique": true };
    let definition = Definition::parse(index.as_document()).unwrap();
    let control = BuildControl {
        should_stop: &|| None,
        on_phase: &|_| (),
    };
    collection
        .create_indexes(vec![definition], &control)
        .unwrap();
}

/// After so many folds the index on email is built.
const BUILT_AT: u64 = 17;
const FOLDS: u64 = 60;
const FOLDED: u64 = 100;

fn check(options: Document<'_>) {
    let disk = MemoryDisk::new();
    let mut engine = open(&disk);
    engine.create(&namespace(), options).unwrap();
    let mut next = 0;
    for fold in 0..FOLDS {
        let of_fold = collection(&engine);
        for _ in 0..4 {
            let inserted = of_fold
                .insert(documents(next..next + FOLDED / 4), true)
                .unwrap();
            assert!(inserted.errors.is_empty(), "{:?}", inserted.errors);
            next += FOLDED / 4;
        }
        match fold % 12 {
            3 => engine.work(Work::Compact).map(drop).unwrap(),
            5 if fold == BUILT_AT => build(&of_fold),
            7 => {
                drop(of_fold);
                drop(engine);
                engine = open(&disk);
            }
            _ => {}
        }
        engine.work(Work::Fold).unwrap();
        while engine.work(Work::Merge).unwrap() {}
        let collection = collection(&engine);
        for number in (0..next).step_by(37).chain([next - 1]) {
            let document = doc! { "_id": id(number), "email": "nobody's" };
            assert!(
                is_refused(&collection, document),
                "_id {number} after fold {fold}"
            );
            if fold >= BUILT_AT {
                let document = doc! { "_id": -1i64 - number as i64, "email": email(number) };
                assert!(
                    is_refused(&collection, document),
                    "email {number} after fold {fold}"
                );
            }
        }
        assert_eq!(collection.count(), next);
    }
}

#[test]
fn in_an_ordinary_collection() {
    check(Document::EMPTY);
}

#[test]
fn in_a_clustered_collection() {
    let key = doc! { "_id": 1 };
    let options = doc! { "clusteredIndex": { "key": key, "unique": true } };
    check(options.as_document());
}
