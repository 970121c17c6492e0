//! What several threads take in beside each other is what one thread takes in after the other.

mod support;

use std::sync::{Arc, Mutex, PoisonError};

use support::Database;
use windrow_document::{Array, DocumentBuf, array, doc};
use windrow_query::{
    Aggregate, EngineCollections, Error, Interrupt, Pipeline, Source, Uninterrupted,
};

/// May not be asked from other threads.
struct Alone;

impl Interrupt for Alone {
    fn check(&self) -> Result<(), Error> {
        Ok(())
    }
}

const COUNT: i32 = 24_000;

/// So that each test finds a core free.
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
    Database::new(&documents, vec![])
}

fn run(
    database: &Database,
    source: &Arc<dyn Source>,
    stages: Array<'_>,
    interrupt: &dyn Interrupt,
) -> Result<Vec<DocumentBuf>, Error> {
    let pipeline = Pipeline::parse(stages, &Default::default())?;
    let collections = Arc::new(EngineCollections::of(database.engine.clone()));
    let mut aggregate = Aggregate::of(pipeline);
    aggregate.allow_disk_use = true;
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
        let alone = run(&database, &source, stages.as_array(), &Alone).unwrap();
        let beside = run(&database, &source, stages.as_array(), &Uninterrupted).unwrap();
        assert!(!alone.is_empty() && alone == beside, "{stages:?}");
    }
}

#[test]
fn the_error_is_that_of_the_earliest_row() {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let database = database();
    let source = database.source();
    // Strings fail from the fourth document on, numbers above a limit much later with another code.
    let stages = array![{ "$group": { "_id": { "$cond": [{ "$gt": ["$_id", 20_000] },
        { "$substr": ["$v", -1, "x"] }, { "$cond": [{ "$eq": ["$_id", 12_003] },
            { "$add": ["$v", 1] }, null] }] } } }];
    let code = |interrupt: &dyn Interrupt| {
        let found = run(&database, &source, stages.as_array(), interrupt);
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
    let collections = Arc::new(EngineCollections::of(database.engine.clone()));
    let mut aggregate = Aggregate::of(pipeline);
    aggregate.allow_disk_use = true;
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
