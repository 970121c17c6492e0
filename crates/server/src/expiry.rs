//! Deletes expired documents: a thread that reads every TTL index in intervals.
//!
//! A document expires when the oldest date in the index's field is older than the number of seconds
//! in the index. Documents are deleted like in all writes, in batches, with the indexes taking
//! turns, so that neither a large backlog nor a large collection delays the others.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use windrow_collection::{Change, Collection, Index, Interrupted, WriteOptions};
use windrow_document::{DocumentBuf, Value, doc};
use windrow_index::{Definition, KeyKind};
use windrow_mql::filter::Filter;
use windrow_query::{Error, Find, Hint, Snapshot, Uninterrupted};

use crate::clock::now_millis;
use crate::state::State;
use crate::verbosity::Component;

/// Maximum number of documents that are deleted from one index before the next has its turn.
const BATCH: u64 = 1_000;

/// The interval at which the thread checks if the next pass is due. The interval of passes may
/// change meanwhile.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Runs until the server stops.
pub fn run_ttl_monitor(state: &State) {
    let mut last = Instant::now();
    while !state.stop.wait(CHECK_INTERVAL) {
        let interval = state.parameters.number("ttlMonitorSleepSecs").max(1);
        let is_time = last.elapsed() >= Duration::from_secs(interval as u64);
        let is_following = state.services.engine.is_following();
        if is_time && !is_following && state.parameters.flag("ttlMonitorEnabled") {
            last = Instant::now();
            pass(state);
            state.metrics.ttl_passes.fetch_add(1, Relaxed);
        }
    }
}

/// Deletes all documents that have expired.
fn pass(state: &State) {
    let now = now_millis();
    let mut left = expiring(state);
    while !left.is_empty() && !state.stop.is_requested() {
        left.retain(|(collection, definition)| {
            let deleted = delete_batch(state, collection, definition, now);
            match &deleted {
                Ok(count) => {
                    state.metrics.ttl_deleted.fetch_add(*count, Relaxed);
                    log_deletions(state, collection, definition, *count);
                }
                Err(error) => log_error(state, collection, error),
            }
            deleted.is_ok_and(|count| count == BATCH)
        });
    }
}

/// Returns the TTL indexes that can be read. Hashed indexes contain no dates.
fn expiring(state: &State) -> Vec<(Arc<Collection>, Arc<Definition>)> {
    let engine = &state.services.engine;
    let mut found = Vec::new();
    for database in engine.databases() {
        for collection in engine.collections(&database) {
            let of_dates = |index: &Arc<Index>| {
                let definition = &index.definition;
                let field = definition.fields.first().map(|field| field.kind);
                let is_plain = matches!(field, Some(KeyKind::Ascending | KeyKind::Descending));
                definition.expire_after_seconds.is_some() && is_plain && index.is_ready()
            };
            let indexes = collection.indexes().into_iter().filter(of_dates);
            let definitions = indexes.map(|index| index.definition.clone());
            let definitions = definitions.chain(clustered_ttl_index(&collection));
            found.extend(definitions.map(|one| (collection.clone(), one)));
        }
    }
    found
}

/// Returns the clustered index of a collection as a TTL index, if the collection's options contain
/// a lifetime. It expires documents whose `_id`s are dates.
fn clustered_ttl_index(collection: &Collection) -> Option<Arc<Definition>> {
    let options = collection.options();
    let seconds = options.get("expireAfterSeconds")?.as_whole()?;
    let id_index = collection.indexes().into_iter().next()?;
    let definition = Definition::clone(&id_index.definition);
    definition.clustered.then(|| {
        Arc::new(Definition {
            expire_after_seconds: Some(seconds),
            ..definition
        })
    })
}

/// Deletes the first batch of expired documents. Returns their number.
fn delete_batch(
    state: &State,
    collection: &Collection,
    definition: &Definition,
    now: i64,
) -> Result<u64, Error> {
    let Some(filter) = expired(definition, now) else {
        return Ok(0);
    };
    let filter = Filter::parse(filter.as_document())?;
    let find = Find {
        hint: Some(Hint::Own(definition.name.clone())),
        limit: Some(BATCH),
        ..Find::new(filter)
    };
    let snapshot = Snapshot::open(collection)?;
    let mut cursor = find.clone().open(&snapshot)?;
    let interrupt = || {
        if state.stop.is_requested() {
            return Err(Interrupted::new("the server stops"));
        }
        Ok(())
    };
    let write_options = WriteOptions {
        // A transaction may lock an expired document.
        wait_control: &interrupt,
        ..WriteOptions::default()
    };
    let (mut batch, mut count) = (collection.batch_with(write_options), 0);
    batch.trust_snapshot(find.stored_at(&*snapshot));
    while let Some(row) = cursor.next_row(&Uninterrupted)? {
        count += 1;
        let seen = row.document();
        batch.change_seen(row.id, seen, |newest| -> Result<Change, Error> {
            // The version that the query found matches. A newer version may not match.
            let is_seen = std::ptr::eq(newest.as_bytes(), seen.as_bytes());
            Ok(if is_seen || find.filter.matches(newest)? {
                Change::Delete
            } else {
                Change::Keep
            })
        })?;
    }
    batch.commit()?;
    Ok(count)
}

/// Returns the filter of expired documents.
fn expired(definition: &Definition, now: i64) -> Option<DocumentBuf> {
    let seconds = definition.expire_after_seconds?;
    let path = definition.fields.first()?.path.to_string();
    let until = now.saturating_sub(seconds.saturating_mul(1000));
    let mut dates = DocumentBuf::new();
    dates.push(&path, doc! { "$lte": (Value::DateTime(until)) });
    Some(
        match definition.specification.get("partialFilterExpression") {
            None => dates,
            Some(partial) => doc! { "$and": [(partial.to_value()), dates] },
        },
    )
}

/// Logs the deletions, if the verbosity of the index component is high enough.
fn log_deletions(state: &State, collection: &Collection, definition: &Definition, count: u64) {
    let verbosity = &state.parameters.verbosity;
    if count == 0 || !verbosity.logs(Component::INDEX, 1) {
        return;
    }
    let attr = doc! {
        "namespace": (collection.namespace().to_string()), "index": (definition.name.as_str()),
        "numDeleted": (count as i64),
    };
    let message = "Deleted expired documents using index";
    state
        .services
        .log
        .info("INDEX", 5_479_200, "ttl", message, attr);
}

fn log_error(state: &State, collection: &Collection, error: &Error) {
    let attr = doc! {
        "namespace": (collection.namespace().to_string()), "error": (error.to_string()),
    };
    let log = &state.services.log;
    let message = "Error running TTL job on collection";
    log.warn("INDEX", 5_400_703, "ttl", message, attr);
}
