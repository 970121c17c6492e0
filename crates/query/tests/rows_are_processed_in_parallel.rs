//! Several threads produce the same result as one.

mod support;

use std::sync::{Arc, Mutex, PoisonError};

use support::Database;
use windrow_document::{Array, DocumentBuf, array, doc};
use windrow_query::{
    Aggregate, Direction, EngineCollections, Error, Hint, Interrupt, Interrupted, Pipeline, Source,
    Uninterrupted,
};

/// An interrupt that other threads may not check.
struct Alone;

impl Interrupt for Alone {
    fn check(&self) -> Result<(), Interrupted> {
        Ok(())
    }
}

const COUNT: i32 = 24_000;

/// Serializes the tests, so that each finds a free core.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn database() -> Database {
    let document = |id: i32| {
        let word = format!("word{}", id * 7919 % 1000);
        let tags = array![(id % 3), (id % 5), "all"];
        let value = match id % 4 {
            0 => doc! { "v": id },
            1 => doc! { "v": (f64::from(id) / 8.0) },
            2 => doc! { "v": (i64::from(id)) },
            _ => doc! { "v": "none" },
        };
        let mut document = doc! { "_id": id, "word": word, "bucket": (id % 17), "tags": tags };
        value
            .iter()
            .for_each(|(name, value)| document.push(name, value.to_value()));
        document
    };
    let documents: Vec<DocumentBuf> = (0..COUNT).map(document).collect();
    let index = |key: DocumentBuf, name: &str| doc! { "key": key, "name": name };
    let indexes = vec![
        index(doc! { "bucket": 1, "word": (-1) }, "pair"),
        index(doc! { "tags": 1 }, "tags"),
    ];
    Database::new(&documents, indexes)
}

fn run(
    database: &Database,
    source: &Arc<dyn Source>,
    stages: Array<'_>,
    hint: Option<&str>,
    interrupt: &dyn Interrupt,
) -> Result<Vec<DocumentBuf>, Error> {
    let pipeline = Pipeline::parse(stages, &Default::default())?;
    let collections = Arc::new(EngineCollections::new(database.engine.clone()));
    let mut aggregate = Aggregate::new(pipeline);
    aggregate.allow_disk_use = true;
    aggregate.hint = hint.map(|name| Hint::Name(name.to_owned()));
    let mut cursor = aggregate.open(source, &collections)?;
    let mut found = Vec::new();
    while let Some(content) = cursor.next(interrupt)? {
        found.push(content.into_buf());
    }
    Ok(found)
}

#[test]
fn the_results_are_those_of_one_thread() {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let database = database();
    let source = database.source();
    let all = [
        array![{ "$count": "n" }],
        array![{ "$match": { "bucket": { "$gt": 3 } } }, { "$count": "n" }],
        array![{ "$sort": { "bucket": 1 } }, { "$project": { "bucket": 1 } }],
        array![{ "$sort": { "bucket": -1, "word": 1 } }, { "$limit": 25 }],
        array![
            { "$group": { "_id": "$word", "n": { "$sum": 1 }, "v": { "$sum": "$v" },
                "a": { "$avg": "$v" }, "least": { "$min": "$v" }, "most": { "$max": "$v" } } },
            { "$sort": { "_id": 1 } }
        ],
        array![
            { "$group": { "_id": "$bucket", "all": { "$push": "$_id" }, "f": { "$first": "$_id" },
                "l": { "$last": "$word" }, "set": { "$addToSet": "$word" },
                "few": { "$firstN": { "input": "$v", "n": 3 } },
                "top": { "$top": { "sortBy": { "word": -1 }, "output": "$_id" } } } },
            { "$sort": { "_id": 1 } }
        ],
        array![
            { "$unwind": "$tags" }, { "$match": { "tags": { "$ne": 2 } } },
            { "$addFields": { "twice": { "$multiply": ["$bucket", 2] } } },
            { "$group": { "_id": { "tag": "$tags", "twice": "$twice" }, "n": { "$sum": 1 } } },
            { "$sort": { "_id": 1 } }
        ],
        array![{ "$group": { "_id": null, "all": { "$push": "$v" } } }],
    ];
    for stages in all {
        let alone = run(&database, &source, stages.as_array(), None, &Alone).unwrap();
        let beside = run(&database, &source, stages.as_array(), None, &Uninterrupted).unwrap();
        assert!(!alone.is_empty() && alone == beside, "{stages:?}");
    }
}

/// With the index or without one, the result has the same rows in another order.
#[test]
fn parts_of_an_index_are_its_whole() {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let database = database();
    let source = database.source();
    let group = |id: &str| {
        doc! { "$group": { "_id": id, "n": { "$sum": 1 }, "v": { "$max": "$v" } } }
    };
    let by_id = || doc! { "$sort": { "_id": 1 } };
    let some = || doc! { "$match": { "bucket": { "$gt": 2 }, "word": { "$gte": "word3" } } };
    let few =
        || doc! { "$match": { "bucket": { "$in": [1, 5, 16] }, "word": { "$ne": "word77" } } };
    let tagged = |tags: DocumentBuf| doc! { "$match": { "tags": tags } };
    let count = || doc! { "$count": "n" };
    let covered = || doc! { "$group": { "_id": "$bucket", "last": { "$max": "$word" } } };
    let many = || doc! { "$group": { "_id": 7, "n": { "$sum": 3 }, "m": { "$count": {} } } };
    let halves = || doc! { "$group": { "_id": 7, "n": { "$sum": 0.5 } } };
    let all = [
        ("pair", array![(some()), (group("$bucket")), (by_id())]),
        ("pair", array![(some()), (covered()), (by_id())]),
        ("pair", array![(few()), (group("$word")), (by_id())]),
        ("pair", array![(some()), (count())]),
        (
            "pair",
            array![(some()), { "$skip": 17 }, { "$limit": 9000 }, (many())],
        ),
        (
            "pair",
            array![{ "$match": { "bucket": { "$gte": 0 } } }, (many())],
        ),
        (
            "pair",
            array![{ "$match": { "bucket": { "$gte": 0 } } }, (halves())],
        ),
        (
            "pair",
            array![{ "$match": { "bucket": { "$gte": 18 } } }, (many())],
        ),
        ("tags", array![(tagged(doc! { "$gte": 1 })), (count())]),
        ("tags", array![(tagged(doc! { "$eq": "all" })), (many())]),
        (
            "_id_",
            array![{ "$match": { "_id": { "$gte": 700 } } }, (count())],
        ),
    ];
    for (index, stages) in all {
        let hint = Some(index);
        let stages = stages.as_array();
        let scanned = run(&database, &source, stages, None, &Alone).unwrap();
        let alone = run(&database, &source, stages, hint, &Alone).unwrap();
        let beside = run(&database, &source, stages, hint, &Uninterrupted).unwrap();
        assert_eq!(alone, scanned, "{stages:?}");
        assert_eq!(beside, scanned, "{stages:?}");
    }
}

#[test]
fn the_error_is_that_of_the_earliest_row() {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let database = database();
    let source = database.source();
    // Strings fail from the fourth document on, and numbers above a limit much later, with another
    // code.
    let stages = array![{ "$group": { "_id": { "$cond": [{ "$gt": ["$_id", 20_000] },
        { "$substr": ["$v", -1, "x"] }, { "$cond": [{ "$eq": ["$_id", 12_003] },
            { "$add": ["$v", 1] }, null] }] } } }];
    let code = |interrupt: &dyn Interrupt| {
        let found = run(&database, &source, stages.as_array(), None, interrupt);
        found.unwrap_err().code()
    };
    let alone = code(&Alone);
    for _ in 0..5 {
        assert_eq!(code(&Uninterrupted), alone);
    }
}

#[test]
fn explain_counts_what_all_threads_read() {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let database = database();
    let stages = array![{ "$match": { "bucket": 3 } }, { "$group": { "_id": null } }];
    let pipeline = Pipeline::parse(stages.as_array(), &Default::default()).unwrap();
    let collections = Arc::new(EngineCollections::new(database.engine.clone()));
    let mut aggregate = Aggregate::new(pipeline);
    aggregate.allow_disk_use = true;
    aggregate.hint = Some(Hint::Natural(Direction::Forward));
    let verbosity = windrow_query::Verbosity::ExecutionStats;
    let explained = aggregate
        .explain(&database.source(), &collections, verbosity, &Uninterrupted)
        .unwrap();
    let text = explained.to_string();
    let matching = (0..COUNT).filter(|id| id % 17 == 3).count();
    assert!(
        text.contains(&format!("\"totalDocsExamined\":{COUNT}")),
        "{text}"
    );
    assert!(
        text.contains(&format!(
            "\"nReturned\":{matching},\"executionTimeMillisEstimate\""
        )),
        "{text}"
    );
}
