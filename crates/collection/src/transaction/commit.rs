//! The commit of a transaction: one log record for all its collections.
//!
//! New snapshots are at the newest published position. The record is published in all collections
//! before its position becomes the newest, so a reader sees all of its writes or none.

use std::sync::Arc;

use bytes::Bytes;

use windrow_fold::Position;

use super::{Part, PartKind, Transaction, TransactionState};
use crate::collection::Collection;
use crate::error::Error;
use crate::record::net::net;
use crate::record::statements::{NumberedResult, StatementRecord, encode_results};
use crate::record::transaction::{self, Origin, TransactionPart};
use crate::record::{Commit, Effect, Operation};
use crate::retries::Retries;

/// The changes that a commit publishes in one collection.
struct Publication {
    collection: Arc<Collection>,
    operations: Vec<Operation>,
    bytes: usize,
    effect: Effect,
}

impl Transaction {
    /// Commits: makes all writes durable and visible together, and ends the transaction. If this
    /// fails, the writes are discarded, or, if the log accepts no more writes, the outcome is
    /// unknown.
    pub fn commit(&self) -> Result<(), Error> {
        let mut state = self.state()?;
        let committed = if state.created.is_empty() {
            self.append(&mut state)
        } else {
            self.append_creating(&mut state)
        };
        self.end(&mut state);
        drop(state);
        if self.core.tail_bytes() >= self.core.fold_from_bytes() {
            self.core.background.fold.raise();
        }
        committed
    }

    /// Appends the log record if there is anything to write.
    pub(super) fn append(&self, state: &mut TransactionState) -> Result<(), Error> {
        // A created collection has a part, even an empty one, because the record must name it.
        let writes = |part: &&mut Part| !part.payload.is_empty() || part.kind == PartKind::Created;
        let parts: Vec<&mut Part> = state.parts.values_mut().filter(writes).collect();
        if parts.is_empty() {
            return Ok(());
        }
        let (mut logged, mut publications) = (Vec::new(), Vec::new());
        for part in parts {
            let payload = std::mem::take(&mut part.payload);
            publications.push(Publication {
                collection: part.collection.clone(),
                operations: net(part.operations()),
                bytes: payload.iter().map(Bytes::len).sum(),
                effect: part.effect,
            });
            logged.push(TransactionPart {
                collection: part.collection.id,
                operations: payload,
            });
        }
        let outcome = CommitOutcome::new(self.origin, std::mem::take(&mut state.results));
        if let (CommitOutcome::Wrote(record), Some(first)) = (&outcome, logged.first_mut()) {
            let results = Bytes::from(encode_results(record));
            first.operations.insert(0, results);
        }
        let payload = transaction::encode(self.origin, logged);
        let slices: Vec<&[u8]> = payload.iter().map(|piece| &piece[..]).collect();
        let created: Vec<Arc<Collection>> = state.created.values().cloned().collect();
        let collections = self.collections.clone();
        let retries = self.core.retries.clone();
        let millis = self.core.now_millis();
        self.core.storage.log.append(&slices, move |position| {
            for publication in publications {
                publication.publish(position);
            }
            outcome.record(&retries, position, millis);
            for it in &created {
                it.set_named_from(position);
                collections.insert(it);
            }
        })?;
        Ok(())
    }
}

/// The record of a commit for retries of its session.
enum CommitOutcome {
    /// The transaction of the session was committed.
    Committed(Origin),
    /// These statements of the session's retryable write have run.
    Wrote(StatementRecord),
    /// Nothing, because the transaction belongs to no session.
    Unrecorded,
}

impl CommitOutcome {
    fn new(origin: Origin, results: Vec<NumberedResult>) -> CommitOutcome {
        match origin {
            _ if !results.is_empty() => CommitOutcome::Wrote(StatementRecord { origin, results }),
            Origin::NO_SESSION => CommitOutcome::Unrecorded,
            _ => CommitOutcome::Committed(origin),
        }
    }

    fn record(self, retries: &Retries, position: Position, millis: u64) {
        match self {
            CommitOutcome::Committed(origin) => retries.record_committed(origin, position, millis),
            CommitOutcome::Wrote(record) => retries.record(record, position, millis),
            CommitOutcome::Unrecorded => {}
        }
    }
}

impl Publication {
    fn publish(self, position: Position) {
        let commit = Commit {
            position,
            operations: self.operations,
            bytes: self.bytes,
        };
        self.collection.publish(commit, self.effect);
    }
}
