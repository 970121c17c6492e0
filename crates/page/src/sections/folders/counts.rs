//! Queries of what is stored of files.

use windrow_document::{ArrayBuf, DocumentBuf, Value, ValueRef, array, doc};
use windrow_file_search::{ValueCount, counting_pipeline, read_documents};

use crate::database::Database;
use crate::error::PageError;

/// The database of indexed files.
pub const DATABASE: &str = "files";
/// The number of runs shown.
const RUNS_MAX: usize = 8;

/// Returns the number of documents of a collection.
///
/// # Errors
/// Fails if the database fails.
pub fn count(database: &mut Database, collection: &str) -> Result<i64, PageError> {
    let reply = database.run(doc! { "count": collection, "$db": DATABASE })?;
    Ok(reply.get("n").and_then(ValueRef::as_whole).unwrap_or(0))
}

/// Returns the number of documents whose content was read. It excludes files that are indexed by
/// name only.
///
/// # Errors
/// Fails if the database fails.
pub fn count_read(database: &mut Database) -> Result<i64, PageError> {
    count_found(database, &read_documents())
}

/// Returns the newest runs in descending order of time.
///
/// # Errors
/// Fails if the database fails.
pub fn newest_runs(database: &mut Database) -> Result<Vec<DocumentBuf>, PageError> {
    let command = doc! {
        "find": "runs", "sort": { "ended": -1 }, "limit": (RUNS_MAX as i64), "$db": DATABASE,
    };
    database.documents(command, RUNS_MAX)
}

/// Returns the folders of these runs with the number of documents below each.
///
/// # Errors
/// Fails if the database fails.
pub fn folders(
    database: &mut Database,
    runs: &[DocumentBuf],
) -> Result<Vec<ValueCount>, PageError> {
    let mut folders: Vec<ValueCount> = Vec::new();
    for run in runs {
        let named = run.get("folders").and_then(ValueRef::as_array);
        for folder in named.into_iter().flatten().filter_map(ValueRef::as_str) {
            if folders.iter().all(|known| known.value != folder) {
                let count = count_below(database, folder)?;
                folders.push(ValueCount {
                    value: folder.to_owned(),
                    count,
                });
            }
        }
    }
    folders.sort();
    Ok(folders)
}

fn count_below(database: &mut Database, folder: &str) -> Result<i64, PageError> {
    let below = doc! { "equals": { "path": "folders", "value": folder } };
    let filter = array![(below), (read_documents())];
    count_found(database, &doc! { "compound": { "filter": (filter) } })
}

fn count_found(database: &mut Database, operator: &DocumentBuf) -> Result<i64, PageError> {
    let pipeline = counting_pipeline(operator);
    let command = doc! {
        "aggregate": "documents", "pipeline": (pipeline), "cursor": {}, "$db": DATABASE,
    };
    let reply = database.documents(command, 1)?;
    let total = reply.first().and_then(|reply| {
        let count = reply.get("count")?.as_document()?;
        count.get("total")?.as_whole()
    });
    Ok(total.unwrap_or(0))
}

/// Returns the number of failures of each class, in descending order.
///
/// # Errors
/// Fails if the database fails.
pub fn failures_by_class(database: &mut Database) -> Result<Vec<ValueCount>, PageError> {
    grouped(
        database,
        array![{ "$group": { "_id": "$class", "count": { "$sum": 1 } } }],
    )
}

/// Returns the number of files for each missing converter, in descending order.
///
/// # Errors
/// Fails if the database fails.
pub fn missing_converters(database: &mut Database) -> Result<Vec<ValueCount>, PageError> {
    let stages = array![
        { "$match": { "class": "missing_converter" } },
        { "$group": { "_id": "$reason", "count": { "$sum": 1 } } }
    ];
    grouped(database, stages)
}

/// The maximum number of groups.
const GROUPS_MAX: usize = 50;

fn grouped(database: &mut Database, stages: ArrayBuf) -> Result<Vec<ValueCount>, PageError> {
    let sort: Value = doc! { "$sort": { "count": -1, "_id": 1 } }.into();
    let stages = stages.as_array().iter().map(|stage| stage.to_value());
    let pipeline: ArrayBuf = stages.chain([sort]).collect();
    let command = doc! {
        "aggregate": "failures", "pipeline": (pipeline), "cursor": {}, "$db": DATABASE,
    };
    let groups = database.documents(command, GROUPS_MAX)?;
    let read = |group: &DocumentBuf| {
        Some(ValueCount {
            value: group.get("_id")?.as_str()?.to_owned(),
            count: group.get("count")?.as_whole()?,
        })
    };
    Ok(groups.iter().filter_map(read).collect())
}
