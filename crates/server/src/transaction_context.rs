//! The transaction or retryable write of a running command.

use std::sync::{Arc, Mutex};

use windrow_collection::{Origin, RetainedImage, StatementResult, Statements, Transaction};
use windrow_document::doc;
use windrow_wire::{CommandError, Reply};

use crate::common_arguments::{NumberedOperation, ReadConcern, StatementNumbers, TransactionPart};
use crate::error_labels::with_transient_label;
use crate::state::State;
use crate::sync::lock;
use crate::transactions::SessionGuard;

/// The statement number of a command that is a single statement.
pub const SINGLE_STATEMENT: i32 = 0;

/// The transaction or retryable write of a running command.
#[derive(Debug)]
pub struct TransactionContext {
    guard: SessionGuard,
    numbered: NumberedOperation,
    transaction: Option<Arc<Transaction>>,
    /// The statements of a retryable write that were executed before.
    retried: Mutex<Vec<i32>>,
}

impl TransactionContext {
    pub(crate) fn new(
        guard: SessionGuard,
        numbered: NumberedOperation,
        transaction: Option<Arc<Transaction>>,
    ) -> TransactionContext {
        TransactionContext {
            guard,
            numbered,
            transaction,
            retried: Mutex::default(),
        }
    }

    /// Returns the read concern of the transaction.
    pub fn read_concern(&self) -> ReadConcern {
        let options = self.guard.options(self.numbered.number);
        options.map_or(ReadConcern::Local, |options| options.read_concern)
    }

    /// Aborts the transaction if the command has failed. Counts the statements of a retryable write
    /// that were executed before.
    pub fn leave(
        &self,
        state: &State,
        outcome: Result<Reply, CommandError>,
    ) -> Result<Reply, CommandError> {
        if self.numbered.part == TransactionPart::RetryableWrite {
            return outcome.map(|reply| self.with_retried(reply));
        }
        let has_failed = match &outcome {
            Ok(reply) => reply.to_document().get("writeErrors").is_some(),
            Err(_) => true,
        };
        if self.transaction.is_some() && has_failed {
            self.guard.abort(self.numbered.number);
            state.cursors.end_transactions(self.numbered.session);
        }
        outcome.map_err(with_transient_label)
    }

    fn with_retried(&self, reply: Reply) -> Reply {
        let retried = lock(&self.retried).clone();
        if retried.is_empty() {
            reply
        } else {
            reply.with_fields(doc! { "retriedStmtIds": retried }.as_document())
        }
    }

    /// Returns the transaction of the command.
    pub fn transaction(&self) -> Option<&Arc<Transaction>> {
        self.transaction.as_ref()
    }

    /// Returns the number of the transaction.
    pub fn transaction_number(&self) -> Option<i64> {
        self.transaction.as_ref().map(|_| self.numbered.number)
    }

    /// Returns `true` for a retryable write, and `false` for a transaction.
    pub fn is_retryable_write(&self) -> bool {
        self.numbered.part == TransactionPart::RetryableWrite
    }

    /// Commits the transaction.
    pub fn commit(&self, state: &State) -> Result<(), CommandError> {
        let committed = self.guard.commit(self.numbered.number);
        state.cursors.end_transactions(self.numbered.session);
        committed
    }

    /// Aborts the transaction.
    pub fn abort(&self, state: &State) -> Result<(), CommandError> {
        self.guard.resume(self.numbered.number)?;
        self.guard.abort(self.numbered.number);
        state.cursors.end_transactions(self.numbered.session);
        Ok(())
    }

    /// Returns the stored result of the statement with this index, if the command is a retryable
    /// write that was executed before.
    pub fn stored_result(&self, place: usize) -> Result<Option<StatementResult>, CommandError> {
        let statement = self.statement(place);
        let done = self.stored_result_of(statement)?;
        if done.is_some() {
            lock(&self.retried).push(statement);
        }
        Ok(done)
    }

    /// Returns `true` if the statement with this index was executed before.
    pub fn is_done(&self, place: usize) -> Result<bool, CommandError> {
        let stored = self.stored_result_of(self.statement(place))?;
        Ok(stored.is_some())
    }

    /// Returns the stored result of a command that is a single statement.
    pub fn stored_single_result(&self) -> Result<Option<StatementResult>, CommandError> {
        self.stored_result_of(SINGLE_STATEMENT)
    }

    fn stored_result_of(&self, statement: i32) -> Result<Option<StatementResult>, CommandError> {
        if self.is_retryable_write() {
            self.guard.stored_result(self.numbered.number, statement)
        } else {
            Ok(None)
        }
    }

    /// Returns the statements with these numbers, under which a retryable write is stored.
    pub fn statements<'n>(
        &self,
        numbers: &'n [i32],
        image: RetainedImage,
    ) -> Option<Statements<'n>> {
        self.is_retryable_write().then_some(Statements {
            origin: Origin {
                session: self.numbered.session.key(),
                number: self.numbered.number,
            },
            numbers,
            image,
        })
    }

    /// Returns the statement number for an index in the command.
    pub fn statement(&self, place: usize) -> i32 {
        let place_number = i32::try_from(place).unwrap_or(i32::MAX);
        match &self.numbered.statements {
            None => place_number,
            Some(StatementNumbers::From(first)) => first.saturating_add(place_number),
            Some(StatementNumbers::Each(each)) => each.get(place).copied().unwrap_or(place_number),
        }
    }
}
