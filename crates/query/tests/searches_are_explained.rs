//! Explain of `$search`: the plan of the search, and the counters of its run.

mod support;

use std::sync::Arc;

use support::Database;
use support::search::specification;
use windrow_document::{ArrayBuf, DocumentBuf, ValueRef, array, doc};
use windrow_mql::filter::Environment;
use windrow_query::{
    Aggregate, Collections, EngineCollections, Pipeline, Uninterrupted, Verbosity,
};

fn database() -> Database {
    let text = |id: i32| format!("{}coffee", "tea ".repeat((id % 5) as usize));
    let documents: Vec<DocumentBuf> = (0..2_000)
        .map(|id| doc! { "_id": id, "t": (text(id).as_str()), "n": id })
        .collect();
    let definition = doc! { "mappings": { "dynamic": true } };
    let database = Database::new(&documents, vec![specification(definition)]);
    database.fold();
    database
}

fn explained(database: &Database, stages: ArrayBuf, verbosity: Verbosity) -> Vec<DocumentBuf> {
    let collections = Arc::new(EngineCollections::new(database.engine.clone()));
    let source = collections.source("test", "c").expect("a snapshot");
    let pipeline = Pipeline::parse(stages.as_array(), &Environment::default()).unwrap();
    let aggregate = Aggregate::new(pipeline);
    let explained = aggregate.explain(&source, &collections, verbosity, &Uninterrupted);
    let explained = explained.unwrap();
    let stages = explained.get("stages").and_then(ValueRef::as_array);
    let stages = stages.expect("stages").iter();
    stages
        .map(|stage| stage.as_document().unwrap().to_buf())
        .collect()
}

#[test]
fn plans_have_the_index_and_the_query() {
    let database = database();
    let search = doc! { "compound": {
        "must": [{ "text": { "path": "t", "query": "coffee tea", "fuzzy": { "maxEdits": 1 } } }],
        "filter": [{ "range": { "path": "n", "gt": 5 } }],
        "mustNot": [{ "equals": { "path": "n", "value": 7 } }],
    } };
    let stages = array![{ "$search": search.clone() }, { "$limit": 3 }];
    let shown = explained(&database, stages, Verbosity::QueryPlanner);
    let given = shown[0].get("$search").unwrap().as_document().unwrap();
    let found = given.get("explain").unwrap().as_document().unwrap();
    let parsed = found
        .get("parsedQuery")
        .unwrap()
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        parsed.starts_with("(+(t:\"coffee\"~1 t:\"tea\"~1) #n:{5 TO *] -n:("),
        "{parsed}"
    );
    let expected = ValueRef::Document(search.as_document());
    assert_eq!(given.get("mongotQuery"), Some(expected));
    assert_eq!(found.get("limitAmount"), Some(ValueRef::Int64(3)));
    assert_eq!(found.get("indexName"), Some(ValueRef::String("default")));
    assert_eq!(shown[0].get("nReturned"), None);
    assert_eq!(shown[1].get("$limit").and_then(ValueRef::as_whole), Some(3));
}

#[test]
fn what_was_read_is_counted() {
    let database = database();
    let search = doc! { "text": { "path": "t", "query": "tea coffee" } };
    let stages = array![{ "$search": search }, { "$limit": 3 }];
    let shown = explained(&database, stages, Verbosity::ExecutionStats);
    let count = |at: usize, name: &str| shown[at].get(name).and_then(ValueRef::as_whole);
    assert_eq!(count(0, "nReturned"), Some(3));
    assert_eq!(count(0, "totalDocsExamined"), Some(3));
    let (read, skipped) = (count(0, "totalKeysExamined"), count(0, "keysSkipped"));
    let (read, skipped) = (read.unwrap(), skipped.unwrap());
    assert!(read > 0 && read + skipped >= 3_600, "{read} {skipped}");
    assert_eq!(count(1, "nReturned"), Some(3));
    let indexes = shown[0].get("indexesUsed").and_then(ValueRef::as_array);
    assert_eq!(indexes.unwrap().iter().count(), 1);
}

#[test]
fn an_index_that_there_is_not_has_no_rows() {
    let database = database();
    let search = doc! { "index": "other", "text": { "path": "t", "query": "tea" } };
    let shown = explained(
        &database,
        array![{ "$search": search }],
        Verbosity::ExecutionStats,
    );
    let plan = shown[0].get("$search").unwrap().as_document().unwrap();
    let plan = plan.get("explain").unwrap().as_document().unwrap();
    assert_eq!(plan.get("stage"), Some(ValueRef::String("EOF")));
    assert_eq!(
        shown[0].get("nReturned").and_then(ValueRef::as_whole),
        Some(0)
    );
}
