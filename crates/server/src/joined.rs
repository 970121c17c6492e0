//! What a command with a transaction number is part of, while it runs.

use std::sync::{Arc, Mutex};

use windrow_collection::{Done, Kept, Origin, Statements, Transaction};
use windrow_document::doc;
use windrow_wire::{CommandError, Reply};

use crate::generic::{Numbered, Part, ReadConcern, Statements as Numbers};
use crate::labels::labelled;
use crate::state::State;
use crate::sync::lock;
use crate::transactions::Taken;

/// The number of the statement of a command that has one.
pub const ALONE: i32 = 0;

/// See the module.
#[derive(Debug)]
pub struct Joined {
    taken: Taken,
    numbered: Numbered,
    transaction: Option<Arc<Transaction>>,
    /// The statements of the command that had been done before, where it is a retryable write.
    retried: Mutex<Vec<i32>>,
}

impl Joined {
    pub(crate) fn new(
        taken: Taken,
        numbered: Numbered,
        transaction: Option<Arc<Transaction>>,
    ) -> Joined {
        Joined {
            taken,
            numbered,
            transaction,
            retried: Mutex::default(),
        }
    }

    /// How its transaction reads.
    pub fn read_concern(&self) -> ReadConcern {
        let opening = self.taken.opening(self.numbered.number);
        opening.map_or(ReadConcern::Local, |opening| opening.read_concern)
    }

    /// Ends the transaction where a command of it has failed; tells what a retryable write had done before.
    pub fn leave(
        &self,
        state: &State,
        outcome: Result<Reply, CommandError>,
    ) -> Result<Reply, CommandError> {
        if self.numbered.part == Part::RetryableWrite {
            return outcome.map(|reply| self.with_retried(reply));
        }
        let has_failed = match &outcome {
            Ok(reply) => reply.to_document().get("writeErrors").is_some(),
            Err(_) => true,
        };
        if self.transaction.is_some() && has_failed {
            self.taken.abort(self.numbered.number);
            state.cursors.end_transactions(self.numbered.session);
        }
        outcome.map_err(labelled)
    }

    fn with_retried(&self, reply: Reply) -> Reply {
        let retried = lock(&self.retried).clone();
        match retried.is_empty() {
            true => reply,
            false => reply.with_fields(doc! { "retriedStmtIds": retried }.as_document()),
        }
    }

    /// The transaction that the command is part of.
    pub fn transaction(&self) -> Option<&Arc<Transaction>> {
        self.transaction.as_ref()
    }

    /// The number of that transaction.
    pub fn transaction_number(&self) -> Option<i64> {
        self.transaction.as_ref().map(|_| self.numbered.number)
    }

    pub fn is_retryable_write(&self) -> bool {
        self.numbered.part == Part::RetryableWrite
    }

    /// Commits the transaction of the command's number.
    pub fn commit(&self, state: &State) -> Result<(), CommandError> {
        let committed = self.taken.commit(self.numbered.number);
        state.cursors.end_transactions(self.numbered.session);
        committed
    }

    /// Ends it without its writes.
    pub fn abort(&self, state: &State) -> Result<(), CommandError> {
        self.taken.resume(self.numbered.number)?;
        self.taken.abort(self.numbered.number);
        state.cursors.end_transactions(self.numbered.session);
        Ok(())
    }

    /// What the command's statement of this place has done before, where it is a retryable write.
    pub fn done(&self, place: usize) -> Result<Option<Done>, CommandError> {
        let statement = self.statement(place);
        let done = self.done_by(statement)?;
        if done.is_some() {
            lock(&self.retried).push(statement);
        }
        Ok(done)
    }

    /// What the command has done before, where it is one statement whatever number it has.
    pub fn done_alone(&self) -> Result<Option<Done>, CommandError> {
        self.done_by(ALONE)
    }

    fn done_by(&self, statement: i32) -> Result<Option<Done>, CommandError> {
        match self.is_retryable_write() {
            true => self.taken.done(self.numbered.number, statement),
            false => Ok(None),
        }
    }

    /// The statements of these numbers, to be remembered with what they do: of a retryable write.
    pub fn statements<'n>(&self, numbers: &'n [i32], kept: Kept) -> Option<Statements<'n>> {
        self.is_retryable_write().then_some(Statements {
            origin: Origin {
                session: self.numbered.session.0,
                number: self.numbered.number,
            },
            numbers,
            kept,
        })
    }

    /// The number of the statement of this place.
    pub fn statement(&self, place: usize) -> i32 {
        let place_number = i32::try_from(place).unwrap_or(i32::MAX);
        match &self.numbered.statements {
            None => place_number,
            Some(Numbers::From(first)) => first.saturating_add(place_number),
            Some(Numbers::Each(each)) => each.get(place).copied().unwrap_or(place_number),
        }
    }
}
