//! Compaction and cleanup of the state collections of a collection.
//!
//! A transaction takes documents of the compaction collection, compacts the counters of their
//! values, and deletes them. The next one continues with the rest. So a command that is interrupted
//! has done a part of its work, and an insertion in between leaves a document for the next command.

use std::collections::BTreeSet;
use std::sync::Arc;

use windrow_collection::{
    Change, Collection, Direction, Error as CollectionError, Namespace, RecordId, StatementResult,
};
use windrow_document::{Document, DocumentBuf, ValueRef, doc};
use windrow_queryable_encryption::compaction::{CompactionTokens, CountedValue, CounterChange};
use windrow_wire::{CommandError, Reply, Request};

use super::collections::EncryptedCollection;
use super::state::{StateReader, insert_all, reader_of, terms};
use super::transaction::{Done, run_in_transaction};
use crate::arguments::Arguments;
use crate::context::Context;
use crate::errors::OrCommandError;

/// What is done to the counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompactionKind {
    Compact,
    CleanUp,
}

/// The documents of the compaction collection that a transaction takes at most.
const RECORDS_MAX: usize = 1_000;
/// The documents of the state collection that a transaction deletes at most, besides the anchors of
/// the last counter.
const DELETIONS_MAX: u64 = 10_000;

/// The numbers in the reply.
#[derive(Clone, Copy, Debug, Default)]
struct CompactionCounts {
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
            Ok(Done {
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
    Ok(Reply::ok(totals.into_reply()))
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
    let done: Vec<RecordId> = done.map(|(id, _)| id).collect();
    counts.records_deleted = done.len() as i64;
    change_all(context, &records, &done, &Change::Delete)?;
    Ok(counts)
}

/// The first documents of the compaction collection, with the value of each. Documents of fields
/// without a token have none.
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
    /// How many more documents can be deleted.
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
        self.room = self.room.saturating_sub(change.delete.len() as u64);
        self.apply(change)?;
        Ok(is_complete)
    }

    fn apply(&mut self, mut change: CounterChange) -> Result<(), CommandError> {
        if let Some(anchor) = change.insert {
            insert_all(self.context, self.namespace, &[anchor])?;
            self.counts.state_inserted += 1;
        }
        let Some(state) = self.context.collection(self.namespace)? else {
            return Ok(());
        };
        let reader = reader_of(self.context, &state)?;
        if let Some(anchor) = change.replace {
            let id = anchor.get("_id").unwrap_or(ValueRef::Null);
            let found = reader.find_id(id).or_command_error()?;
            let found: Vec<RecordId> = found.into_iter().collect();
            change_all(
                self.context,
                &state,
                &found,
                &Change::Replace(anchor.clone()),
            )?;
            self.counts.state_updated += 1;
        }
        // Their order must not tell which documents are of one value.
        change.delete.sort_unstable();
        let mut found = Vec::new();
        for id in change.delete {
            self.context.check()?;
            found.extend(reader.find_id(id.to_value().as_ref()).or_command_error()?);
        }
        self.counts.state_deleted += found.len() as i64;
        change_all(self.context, &state, &found, &Change::Delete)
    }
}

/// Changes documents in a transaction.
fn change_all(
    context: &Context<'_>,
    collection: &Arc<Collection>,
    ids: &[RecordId],
    change: &Change,
) -> Result<(), CommandError> {
    let mut batch = collection.batch_with(terms(context));
    for id in ids {
        context.check()?;
        let changed = batch.change(*id, |_| Ok::<Change, CollectionError>(change.clone()));
        changed.or_command_error()?;
    }
    batch.commit().or_command_error()
}
