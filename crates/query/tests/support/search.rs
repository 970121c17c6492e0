//! Pipelines on a collection with a search index.

use std::sync::Arc;

use windrow_collection::Engine;
use windrow_document::{ArrayBuf, DocumentBuf, ObjectId, Value, doc};
use windrow_mql::filter::Environment;
use windrow_query::{Aggregate, Collections, EngineCollections, Pipeline, Uninterrupted};

/// The specification of the search index `default` with this definition.
pub fn specification(definition: DocumentBuf) -> DocumentBuf {
    let id = ObjectId::parse("0123456789abcdef01234567").unwrap();
    doc! {
        "v": 2, "key": { "_search": "search" }, "name": "$search.default",
        "searchIndex": {
            "id": (Value::ObjectId(id)), "name": "default", "version": 0,
            "createdAt": (Value::DateTime(0)), "definition": definition,
        },
    }
}

/// Runs a pipeline on the collection `test.c`. Returns its rows, or the code and the text of the
/// error.
pub fn run(engine: &Arc<Engine>, stages: ArrayBuf) -> Result<Vec<DocumentBuf>, (i32, String)> {
    let failure =
        |error: windrow_query::Error| (error.code().unwrap_or_default(), error.to_string());
    let collections = Arc::new(EngineCollections::new(engine.clone()));
    let source = collections.source("test", "c").expect("a snapshot");
    let pipeline = Pipeline::parse(stages.as_array(), &Environment::default());
    let cursor = Aggregate::new(pipeline.map_err(failure)?).open(&source, &collections);
    let mut cursor = cursor.map_err(failure)?;
    let mut found = Vec::new();
    while let Some(row) = cursor.next(&Uninterrupted).map_err(failure)? {
        found.push(row.as_document().to_buf());
    }
    Ok(found)
}
