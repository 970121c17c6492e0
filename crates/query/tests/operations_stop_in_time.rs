//! Long operations check the interrupt, and operations that would need too much memory fail.

mod support;

use std::cell::Cell;

use support::Database;
use windrow_document::{DocumentBuf, array, doc};
use windrow_mql::filter::Filter;
use windrow_mql::sort::Sort;
use windrow_query::{
    Aggregate, EngineCollections, Find, Interrupt, Interrupted, Pipeline, Uninterrupted,
};

/// An interrupt that stops at the second check.
struct Second(Cell<u32>);

impl Interrupt for Second {
    fn check(&self) -> Result<(), Interrupted> {
        self.0.set(self.0.get() + 1);
        match self.0.get() {
            1 => Ok(()),
            _ => Err(Interrupted::with_code(50, "operation exceeded time limit")),
        }
    }
}

fn database(count: i32, pad_bytes: usize) -> Database {
    let document = |id: i32| doc! { "_id": id, "a": (id % 7), "pad": ("x".repeat(pad_bytes)) };
    let documents: Vec<DocumentBuf> = (0..count).map(document).collect();
    Database::new(&documents, vec![doc! { "key": { "a": 1 }, "name": "a" }])
}

#[test]
fn scans_and_stages_ask_whether_to_go_on() {
    let database = database(2_000, 10);
    let source = database.source();
    let finds = [
        doc! { "pad": "none" },
        doc! { "a": { "$gte": 0 }, "pad": "none" },
    ];
    for filter in finds {
        let find = Find::new(Filter::parse(filter.as_document()).unwrap());
        let error = find
            .open(&source)
            .unwrap()
            .next(&Second(Cell::new(0)))
            .unwrap_err();
        assert_eq!(error.code(), Some(50), "{filter}");
    }
    let pipelines = [
        array![{ "$group": { "_id": "$pad" } }],
        array![{ "$sort": { "pad": 1 } }],
        array![{ "$unwind": "$none" }],
        array![{ "$facet": { "all": [{ "$count": "n" }] } }],
    ];
    for stages in pipelines {
        let pipeline = Pipeline::parse(stages.as_array(), &Default::default()).unwrap();
        let collections = std::sync::Arc::new(EngineCollections::new(database.engine.clone()));
        let mut cursor = Aggregate::new(pipeline)
            .open(&source, &collections)
            .unwrap();
        let error = cursor.next(&Second(Cell::new(0))).unwrap_err();
        assert_eq!(error.code(), Some(50), "{stages:?}");
    }
}

#[test]
fn a_sort_of_more_than_memory_is_refused_unless_it_is_allowed_or_cut() {
    let database = database(120, 1 << 20);
    let source = database.source();
    let sort = || Some(Sort::parse(doc! { "pad": 1, "_id": -1 }.as_document()).unwrap());
    let find = || Find {
        sort: sort(),
        ..Find::new(Filter::all())
    };
    let first = |find: Find| find.open(&source).unwrap().next(&Uninterrupted);
    assert_eq!(first(find()).unwrap_err().code(), Some(292));
    assert!(
        first(Find {
            allow_disk_use: true,
            ..find()
        })
        .unwrap()
        .is_some()
    );
    assert!(
        first(Find {
            limit: Some(5),
            ..find()
        })
        .unwrap()
        .is_some()
    );
    let stages = array![{ "$group": { "_id": "$a", "all": { "$push": "$pad" } } }];
    let pipeline = Pipeline::parse(stages.as_array(), &Default::default()).unwrap();
    let collections = std::sync::Arc::new(EngineCollections::new(database.engine.clone()));
    let mut cursor = Aggregate::new(pipeline)
        .open(&source, &collections)
        .unwrap();
    assert_eq!(cursor.next(&Uninterrupted).unwrap_err().code(), Some(292));
}
