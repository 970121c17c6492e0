//! Compaction and cleanup of the state collections of a collection.
//!
//! A transaction takes documents of the compaction collection, compacts the counters of their
//! values, and deletes them. The next one continues with the rest. So a command that is interrupted
//! has done a part of its work, and an insertion in between leaves a document for the next command.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use windrow_collection::{
    Change, Collection, Direction, Error as CollectionError, Namespace, RecordId, StatementResult,
};
use windrow_document::{Document, DocumentBuf, Type, ValueRef, doc};
use windrow_queryable_encryption::compaction::{CompactionTokens, CountedValue, CounterChange};
use windrow_queryable_encryption::counter::Counter;
use windrow_queryable_encryption::padding::EdgeCounts;
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use super::collections::EncryptedCollection;
use super::state::{StateReader, insert_all, reader_of, write_options};
use super::transaction::{StatementOutcome, run_in_transaction};
use crate::arguments::Arguments;
use crate::context::Context;
use crate::errors::{OrCommandError, refuse};

/// The kind of change to the counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompactionKind {
    Compact,
    CleanUp,
}

/// The most documents of the compaction collection that a transaction processes.
const RECORDS_MAX: usize = 1_000;
/// The most documents of the state collection that a transaction deletes, besides the anchors of
/// the last counter.
const DELETIONS_MAX: u64 = 10_000;

/// The most padding documents that a transaction inserts.
const PADDING_MAX: u64 = 1_000;

/// The numbers of documents that a command has read and changed.
#[derive(Clone, Debug, Default)]
struct CompactionCounts {
    /// The edges of fields, by the position of the field's token.
    edges: BTreeMap<usize, EdgeCounts>,
    records_read: i64,
    records_deleted: i64,
    state_inserted: i64,
    state_updated: i64,
    state_deleted: i64,
}

impl CompactionCounts {
    fn add(&mut self, other: CompactionCounts) {
        self.records_read += other.records_read;
        self.records_deleted += other.records_deleted;
        self.state_inserted += other.state_inserted;
        self.state_updated += other.state_updated;
        self.state_deleted += other.state_deleted;
        for (field, counts) in other.edges {
            self.edges.entry(field).or_default().add(counts);
        }
    }

    fn into_reply(self) -> DocumentBuf {
        doc! { "stats": {
            "ecoc": { "read": (self.records_read), "deleted": (self.records_deleted) },
            "esc": {
                "read": (self.state_inserted + self.state_updated + self.state_deleted),
                "inserted": (self.state_inserted), "updated": (self.state_updated),
                "deleted": (self.state_deleted),
            },
        } }
    }
}

/// Runs `compactStructuredEncryptionData` or `cleanupStructuredEncryptionData`.
pub fn compact(
    request: &Request,
    context: &Context<'_>,
    kind: CompactionKind,
) -> Result<Reply, CommandError> {
    let context = &Context {
        hides_arguments: true,
        ..*context
    };
    let arguments = Arguments::new(request);
    let factor = padding_factor(&arguments)?;
    let (name, text) = match kind {
        CompactionKind::Compact => ("compactionTokens", "compaction"),
        CompactionKind::CleanUp => ("cleanupTokens", "cleanup"),
    };
    let target = EncryptedCollection::existing(context, request)?;
    let tokens = arguments
        .document(name)?
        .ok_or_else(|| arguments.missing(name))?;
    let tokens = CompactionTokens::parse(tokens, &target.fields, text).or_command_error()?;
    let mut totals = CompactionCounts::default();
    let mut left = match context.collection(&target.compaction)? {
        Some(records) => i64::try_from(records.count()).unwrap_or(i64::MAX),
        None => 0,
    };
    // What others insert in the meantime is left for the next command.
    while left > 0 {
        let counts = run_in_transaction(context, 0, &|context| {
            let counts = compact_some(context, &target, &tokens, kind)?;
            Ok(StatementOutcome {
                value: counts,
                result: Some(StatementResult::Updated(None)),
            })
        })?;
        if counts.records_read == 0 {
            break;
        }
        left -= counts.records_deleted;
        totals.add(counts);
    }
    for (field, edges) in totals.edges.clone() {
        let Some(counter) = tokens.padding(field) else {
            continue;
        };
        totals.add(match kind {
            CompactionKind::Compact => pad(context, &target, &counter, edges.padding(factor))?,
            CompactionKind::CleanUp => clean_up_padding(context, &target, &counter)?,
        });
    }
    Ok(Reply::ok(totals.into_reply()))
}

/// Returns the part of the shared edges that padding hides.
fn padding_factor(arguments: &Arguments<'_>) -> Result<f64, CommandError> {
    let Some(given) = arguments.present("anchorPaddingFactor") else {
        return Ok(1.0);
    };
    match given.as_f64() {
        Some(factor) if (0.0..=1.0).contains(&factor) => Ok(factor),
        Some(factor) => {
            let message = format!("'anchorPaddingFactor' must be from 0 to 1, but is {factor}");
            refuse(ErrorCode::BadValue, message)
        }
        None => Err(arguments.wrong_type(
            "anchorPaddingFactor",
            given.type_of(),
            &[Type::Double, Type::Decimal128, Type::Int32, Type::Int64],
        )),
    }
}

/// Inserts padding documents.
fn pad(
    context: &Context<'_>,
    target: &EncryptedCollection,
    counter: &Counter,
    mut count: u64,
) -> Result<CompactionCounts, CommandError> {
    let mut counts = CompactionCounts::default();
    while count > 0 {
        let now = count.min(PADDING_MAX);
        run_in_transaction(context, 0, &|context| {
            let reader = StateReader::open(context, &target.state)?;
            let found = counter.find(&mut |id| reader.look_up(id));
            let last = found.map_err(|error| error.0)?.anchor;
            let documents = (1..=now).map(|step| counter.anchor(last.saturating_add(step), 0));
            let documents: Result<Vec<DocumentBuf>, _> = documents.collect();
            insert_all(context, &target.state, &documents.or_command_error()?)?;
            Ok(StatementOutcome {
                value: (),
                result: Some(StatementResult::Updated(None)),
            })
        })?;
        counts.state_inserted += now as i64;
        count -= now;
    }
    Ok(counts)
}

/// Replaces padding documents by one document with their count.
fn clean_up_padding(
    context: &Context<'_>,
    target: &EncryptedCollection,
    counter: &Counter,
) -> Result<CompactionCounts, CommandError> {
    let mut totals = CompactionCounts::default();
    loop {
        let (counts, is_complete) = run_in_transaction(context, 0, &|context| {
            let mut counts = CompactionCounts::default();
            let reader = StateReader::open(context, &target.state)?;
            let found = counter.find(&mut |id| reader.look_up(id));
            let found = found.map_err(|error| error.0)?;
            let change = counter.clean_up_padding(found, DELETIONS_MAX);
            let change = change.or_command_error()?;
            let is_complete = change.is_complete;
            apply(context, &target.state, change, &mut counts)?;
            Ok(StatementOutcome {
                value: (counts, is_complete),
                result: Some(StatementResult::Updated(None)),
            })
        })?;
        totals.add(counts);
        if is_complete {
            return Ok(totals);
        }
    }
}

/// Compacts the counters of some documents of the compaction collection, in a transaction.
fn compact_some(
    context: &Context<'_>,
    target: &EncryptedCollection,
    tokens: &CompactionTokens,
    kind: CompactionKind,
) -> Result<CompactionCounts, CommandError> {
    let mut counts = CompactionCounts::default();
    let Some(records) = context.collection(&target.compaction)? else {
        return Ok(counts);
    };
    let taken = take_records(context, &records, tokens)?;
    counts.records_read = taken.len() as i64;
    let values: BTreeSet<CountedValue> = taken.iter().filter_map(|(_, value)| *value).collect();
    let mut compaction = StateCompaction {
        context,
        namespace: &target.state,
        kind,
        room: DELETIONS_MAX,
        counts: &mut counts,
    };
    let mut rest = BTreeSet::new();
    for value in values {
        if !compaction.compact_one(value)? {
            rest.insert(value);
        }
    }
    let done = taken.into_iter();
    let done = done.filter(|(_, value)| value.is_none_or(|value| !rest.contains(&value)));
    let done: Vec<(RecordId, Option<CountedValue>)> = done.collect();
    for value in done.iter().filter_map(|(_, value)| *value) {
        let edges = counts.edges.entry(value.field).or_default();
        edges.records += 1;
        edges.leaf_records += u64::from(value.is_leaf);
    }
    let done: Vec<RecordId> = done.into_iter().map(|(id, _)| id).collect();
    counts.records_deleted = done.len() as i64;
    change_all(context, &records, &done, &Change::Delete)?;
    Ok(counts)
}

/// Returns the first documents of the compaction collection, with the value of each. Documents of
/// fields without a token have none.
fn take_records(
    context: &Context<'_>,
    records: &Collection,
    tokens: &CompactionTokens,
) -> Result<Vec<(RecordId, Option<CountedValue>)>, CommandError> {
    let mut cursor = reader_of(context, records)?.records(Direction::Forward);
    let mut taken = Vec::new();
    while taken.len() < RECORDS_MAX && cursor.next().or_command_error()? {
        context.check()?;
        let document = Document::from_validated(cursor.document());
        taken.push((cursor.id(), tokens.read(document).or_command_error()?));
    }
    Ok(taken)
}

/// The changes of a state collection in one transaction.
struct StateCompaction<'c> {
    context: &'c Context<'c>,
    namespace: &'c Namespace,
    kind: CompactionKind,
    /// The number of documents that can still be deleted.
    room: u64,
    counts: &'c mut CompactionCounts,
}

impl StateCompaction<'_> {
    /// Compacts the counter of a value. Returns `false` if something is left to do.
    fn compact_one(&mut self, value: CountedValue) -> Result<bool, CommandError> {
        if self.room == 0 {
            return Ok(false);
        }
        let counter = value.counter();
        let reader = StateReader::open(self.context, self.namespace)?;
        let state = counter
            .find(&mut |id| reader.look_up(id))
            .map_err(|error| error.0)?;
        let change = match self.kind {
            CompactionKind::Compact => counter.compact(state, self.room),
            CompactionKind::CleanUp => counter.clean_up(state, self.room),
        };
        let change = change.or_command_error()?;
        let is_complete = change.is_complete;
        if change.insert.is_some() {
            let edges = self.counts.edges.entry(value.field).or_default();
            edges.anchors += 1;
            edges.leaf_anchors += u64::from(value.is_leaf);
        }
        self.room = self.room.saturating_sub(change.delete.len() as u64);
        apply(self.context, self.namespace, change, self.counts)?;
        Ok(is_complete)
    }
}

/// Changes the state collection, in a transaction.
fn apply(
    context: &Context<'_>,
    namespace: &Namespace,
    mut change: CounterChange,
    counts: &mut CompactionCounts,
) -> Result<(), CommandError> {
    if let Some(anchor) = change.insert {
        insert_all(context, namespace, &[anchor])?;
        counts.state_inserted += 1;
    }
    let Some(state) = context.collection(namespace)? else {
        return Ok(());
    };
    let reader = reader_of(context, &state)?;
    if let Some(anchor) = change.replace {
        let id = anchor.get("_id").unwrap_or(ValueRef::Null);
        let found = reader.find_id(id).or_command_error()?;
        let found: Vec<RecordId> = found.into_iter().collect();
        change_all(context, &state, &found, &Change::Replace(anchor.clone()))?;
        counts.state_updated += 1;
    }
    // Their order must not tell which documents are of one value.
    change.delete.sort_unstable();
    let mut found = Vec::new();
    for id in change.delete {
        context.check()?;
        found.extend(reader.find_id(id.to_value().as_ref()).or_command_error()?);
    }
    counts.state_deleted += found.len() as i64;
    change_all(context, &state, &found, &Change::Delete)
}

/// Changes documents in a transaction.
fn change_all(
    context: &Context<'_>,
    collection: &Arc<Collection>,
    ids: &[RecordId],
    change: &Change,
) -> Result<(), CommandError> {
    let mut batch = collection.batch_with(write_options(context));
    for id in ids {
        context.check()?;
        let changed = batch.change(*id, |_| Ok::<Change, CollectionError>(change.clone()));
        changed.or_command_error()?;
    }
    batch.commit().or_command_error()
}
