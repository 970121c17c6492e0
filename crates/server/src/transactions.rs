//! The state of each session's transaction numbers: the open transaction, or how it ended. The
//! engine stores the results of retryable writes, and how the last number of a session ended that
//! wrote anything, also before a restart.
//!
//! One command at a time uses the state of a session; others wait. Numbers only increase: a larger
//! number ends the previous transaction.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use windrow_collection::{
    ClusterSnapshot, Engine, LastOperation, Origin, RecordedResult, StatementResult, Transaction,
};
use windrow_wire::{CommandError, ErrorCode};

use crate::common_arguments::{Api, ReadConcern};
use crate::error_labels::with_transient_label;
use crate::errors::{IntoCommandError, OrCommandError};
use crate::operations::Operation;
use crate::sessions::{SessionId, TIMEOUT};
use crate::sync::lock;

/// The states of all sessions that have used a number.
#[derive(Debug, Default)]
pub struct SessionTransactions {
    all: Mutex<HashMap<SessionId, Arc<SessionHistory>>>,
    totals: Arc<TransactionTotals>,
}

/// The total numbers of transactions.
#[derive(Debug, Default)]
struct TransactionTotals {
    started: AtomicU64,
    committed: AtomicU64,
}

/// Counts for `serverStatus`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransactionCounts {
    pub open: u64,
    /// Those of the open ones that a command is using.
    pub active: u64,
    pub started: u64,
    pub committed: u64,
    pub aborted: u64,
}

/// An idle transaction in `currentOp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdleTransaction {
    pub session: SessionId,
    pub number: i64,
    pub since: Instant,
}

/// The options that the first command of a transaction sets for all commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransactionOptions {
    pub read_concern: ReadConcern,
    pub api: Api,
}

/// The state of a session's transaction numbers.
#[derive(Debug)]
struct SessionHistory {
    state: Mutex<SessionState>,
    freed: Condvar,
}

#[derive(Debug)]
struct SessionState {
    /// `true` while a command uses it.
    in_use: bool,
    /// `true` if the open transaction must be aborted as soon as no command uses it.
    abort_when_free: bool,
    number: i64,
    stage: TransactionStage,
    used: Instant,
}

impl SessionState {
    /// Returns the state of a session whose last stored operation is `last`.
    fn after(last: Option<LastOperation>) -> SessionState {
        let (number, stage) = match last {
            None => (-1, TransactionStage::Aborted),
            Some(LastOperation::Committed(number)) => (number, TransactionStage::Committed),
            Some(LastOperation::Wrote(number)) => (number, TransactionStage::Writes),
        };
        SessionState {
            in_use: false,
            abort_when_free: false,
            number,
            stage,
            used: Instant::now(),
        }
    }
}

/// The state of the newest transaction number.
#[derive(Debug)]
enum TransactionStage {
    Writes,
    Open {
        transaction: Arc<Transaction>,
        since: Instant,
        options: TransactionOptions,
    },
    Committed,
    Aborted,
}

/// The interval at which a command that waits for another one of its session checks if it must
/// stop.
const CHECK_INTERVAL: Duration = Duration::from_millis(10);

impl SessionTransactions {
    /// Takes the state of a session as soon as no other command uses it.
    pub fn take(
        &self,
        session: SessionId,
        engine: &Arc<Engine>,
        operation: &Operation,
    ) -> Result<SessionGuard, CommandError> {
        let mut all = lock(&self.all);
        let history = all.entry(session).or_insert_with(|| {
            Arc::new(SessionHistory {
                state: Mutex::new(SessionState::after(engine.last_operation(session.key()))),
                freed: Condvar::new(),
            })
        });
        let history = Arc::clone(history);
        drop(all);
        let mut state = lock(&history.state);
        while state.in_use {
            operation.check()?;
            let waited = history.freed.wait_timeout(state, CHECK_INTERVAL);
            state = waited.unwrap_or_else(|broken| broken.into_inner()).0;
        }
        state.in_use = true;
        state.used = Instant::now();
        drop(state);
        Ok(SessionGuard {
            session,
            engine: Arc::clone(engine),
            history,
            totals: Arc::clone(&self.totals),
        })
    }

    /// Aborts the open transaction of a session, immediately or after the command that uses it.
    pub fn abort(&self, session: SessionId) {
        let history = lock(&self.all).get(&session).cloned();
        if let Some(history) = history {
            lock(&history.state).mark_for_abort();
        }
    }

    /// Removes the state of a session.
    pub fn forget(&self, session: SessionId) {
        self.abort(session);
        lock(&self.all).remove(&session);
    }

    /// Aborts transactions that were open longer than allowed, and removes the states of sessions
    /// that were not used for long. Returns the sessions of transactions that are to be aborted but
    /// are in use.
    pub fn expire(&self, limit: Duration) -> Vec<SessionId> {
        let all = self.sessions();
        let (mut busy, mut stale) = (Vec::new(), Vec::new());
        for (session, history) in all {
            let mut state = lock(&history.state);
            let is_old = |since: &Instant| since.elapsed() > limit;
            if matches!(&state.stage, TransactionStage::Open { since, .. } if is_old(since)) {
                state.mark_for_abort();
                busy.extend(state.in_use.then_some(session));
            }
            if !state.in_use && state.used.elapsed() > TIMEOUT {
                stale.push(session);
            }
        }
        stale.into_iter().for_each(|session| self.forget(session));
        busy
    }

    /// Returns all states. The table is not locked while they are read.
    fn sessions(&self) -> Vec<(SessionId, Arc<SessionHistory>)> {
        let all = lock(&self.all);
        all.iter().map(|(id, it)| (*id, it.clone())).collect()
    }

    /// Returns the open transactions that no command is using.
    pub fn idle(&self) -> Vec<IdleTransaction> {
        let idle = self
            .sessions()
            .into_iter()
            .filter_map(|(session, history)| {
                let state = lock(&history.state);
                match state.stage {
                    TransactionStage::Open { since, .. } if !state.in_use => {
                        Some(IdleTransaction {
                            session,
                            number: state.number,
                            since,
                        })
                    }
                    _ => None,
                }
            });
        idle.collect()
    }

    /// Returns the numbers of open and past transactions.
    pub fn counts(&self) -> TransactionCounts {
        let mut counts = TransactionCounts {
            started: self.totals.started.load(Relaxed),
            committed: self.totals.committed.load(Relaxed),
            ..TransactionCounts::default()
        };
        for (_, history) in self.sessions() {
            let state = lock(&history.state);
            let is_open = matches!(state.stage, TransactionStage::Open { .. });
            counts.open += u64::from(is_open);
            counts.active += u64::from(is_open && state.in_use);
        }
        let ended = counts.started.saturating_sub(counts.open);
        counts.aborted = ended.saturating_sub(counts.committed);
        counts
    }
}

impl SessionState {
    fn mark_for_abort(&mut self) {
        self.abort_when_free = true;
        if !self.in_use {
            self.abort_if_marked();
        }
    }

    fn abort_if_marked(&mut self) {
        if std::mem::take(&mut self.abort_when_free)
            && let TransactionStage::Open { transaction, .. } = &self.stage
        {
            transaction.abort();
            self.stage = TransactionStage::Aborted;
        }
    }

    /// Fails if the number is less than the newest one.
    fn check_number(&self, session: SessionId, number: i64) -> Result<(), CommandError> {
        if number >= self.number {
            return Ok(());
        }
        let message = format!(
            "Cannot start transaction {number} on session {} because a newer transaction {} has already started",
            session.to_document(),
            self.number
        );
        Err(CommandError::new(ErrorCode::TransactionTooOld, message))
    }

    /// Ends what an older number has left open.
    fn advance(&mut self, number: i64, stage: TransactionStage) {
        if let TransactionStage::Open { transaction, .. } = &self.stage {
            transaction.abort();
        }
        (self.number, self.stage) = (number, stage);
    }
}

/// The state of a session while a command uses it.
#[derive(Debug)]
pub struct SessionGuard {
    session: SessionId,
    engine: Arc<Engine>,
    history: Arc<SessionHistory>,
    totals: Arc<TransactionTotals>,
}

impl SessionGuard {
    /// Starts a transaction. `snapshot` opens its snapshot if it is not the newest. If the snapshot
    /// cannot be read, the previous transaction has ended nevertheless.
    pub fn begin(
        &self,
        number: i64,
        options: TransactionOptions,
        snapshot: impl FnOnce() -> Result<Option<Arc<ClusterSnapshot>>, CommandError>,
    ) -> Result<Arc<Transaction>, CommandError> {
        let mut state = lock(&self.history.state);
        state.check_number(self.session, number)?;
        if number == state.number {
            let message = format!("a transaction with the number {number} has been started before");
            return Err(CommandError::new(
                ErrorCode::ConflictingOperationInProgress,
                message,
            ));
        }
        let origin = self.origin(number);
        let begun = snapshot().and_then(|snapshot| match snapshot {
            None => Ok(self.engine.begin(origin)),
            Some(snapshot) => self.engine.begin_at(origin, snapshot).or_command_error(),
        });
        let transaction = match begun {
            Ok(transaction) => Arc::new(transaction),
            Err(error) => {
                state.advance(number, TransactionStage::Aborted);
                return Err(error);
            }
        };
        let stage = TransactionStage::Open {
            transaction: transaction.clone(),
            since: Instant::now(),
            options,
        };
        state.advance(number, stage);
        self.totals.started.fetch_add(1, Relaxed);
        Ok(transaction)
    }

    /// Returns the options of the open transaction with this number.
    pub fn options(&self, number: i64) -> Option<TransactionOptions> {
        let state = lock(&self.history.state);
        match state.stage {
            TransactionStage::Open { options, .. } if state.number == number => Some(options),
            _ => None,
        }
    }

    /// Returns the open transaction with this number.
    pub fn resume(&self, number: i64) -> Result<Arc<Transaction>, CommandError> {
        let state = lock(&self.history.state);
        state.check_number(self.session, number)?;
        match &state.stage {
            TransactionStage::Open { transaction, .. } if state.number == number => {
                Ok(transaction.clone())
            }
            TransactionStage::Committed if state.number == number => Err(CommandError::new(
                ErrorCode::TransactionCommitted,
                format!("Transaction {number} has been committed."),
            )),
            TransactionStage::Aborted if state.number == number => Err(no_such(format!(
                "Transaction with {{ txnNumber: {number} }} has been aborted."
            ))),
            _ => Err(no_such(format!(
                "Given transaction number {number} does not match any in-progress transactions."
            ))),
        }
    }

    /// Commits the transaction with this number, unless it was committed before.
    pub fn commit(&self, number: i64) -> Result<(), CommandError> {
        let transaction = match self.resume(number) {
            Ok(transaction) => transaction,
            Err(error) if error.code == ErrorCode::TransactionCommitted => return Ok(()),
            Err(error) => return Err(error),
        };
        let committed = transaction.commit();
        let mut state = lock(&self.history.state);
        state.stage = match committed {
            Ok(()) => {
                self.totals.committed.fetch_add(1, Relaxed);
                TransactionStage::Committed
            }
            Err(_) => TransactionStage::Aborted,
        };
        committed.map_err(|error| with_transient_label(error.into_command_error()))
    }

    /// Aborts the transaction with this number.
    pub fn abort(&self, number: i64) {
        let mut state = lock(&self.history.state);
        if let TransactionStage::Open { transaction, .. } = &state.stage
            && state.number == number
        {
            transaction.abort();
            state.stage = TransactionStage::Aborted;
        }
    }

    /// Starts a retryable write, or a retry of one.
    pub fn begin_writes(&self, number: i64) -> Result<(), CommandError> {
        let mut state = lock(&self.history.state);
        state.check_number(self.session, number)?;
        match state.stage {
            TransactionStage::Writes if state.number == number => Ok(()),
            _ if state.number == number => Err(CommandError::new(
                ErrorCode::IncompleteTransactionHistory,
                format!("the number {number} is that of a transaction, not of a retryable write"),
            )),
            _ => {
                state.advance(number, TransactionStage::Writes);
                Ok(())
            }
        }
    }

    /// Returns the stored result of a statement of the retryable write with this number, if it was
    /// executed before.
    pub fn stored_result(
        &self,
        number: i64,
        statement: i32,
    ) -> Result<Option<StatementResult>, CommandError> {
        match self.engine.recorded_result(self.origin(number), statement) {
            RecordedResult::Nothing => Ok(None),
            RecordedResult::Done(done) => Ok(Some(done)),
            RecordedResult::Unknown => Err(CommandError::new(
                ErrorCode::IncompleteTransactionHistory,
                format!("it is unknown if statement {statement} has been executed"),
            )),
        }
    }

    fn origin(&self, number: i64) -> Origin {
        Origin {
            session: self.session.key(),
            number,
        }
    }
}

impl Drop for SessionGuard {
    fn drop(&mut self) {
        let mut state = lock(&self.history.state);
        state.in_use = false;
        state.abort_if_marked();
        drop(state);
        self.history.freed.notify_all();
    }
}

fn no_such(message: String) -> CommandError {
    CommandError::new(ErrorCode::NoSuchTransaction, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Log;
    use crate::cursors::tests::with_operation;
    use crate::state::Services;

    const SESSION: SessionId = SessionId::for_tests([1; 16]);

    /// Runs actions of one session in order, each with the expected error code. 0 is success.
    fn check(steps: &[(&str, i64, i32)]) {
        let services = Services::in_memory(Arc::new(Log::to_nowhere())).unwrap();
        let sessions = SessionTransactions::default();
        with_operation(|operation| {
            for (what, number, code) in steps {
                let guard = sessions.take(SESSION, &services.engine, operation).unwrap();
                let done = match *what {
                    "begin" => guard
                        .begin(*number, TransactionOptions::default(), || Ok(None))
                        .map(drop),
                    "resume" => guard.resume(*number).map(drop),
                    "commit" => guard.commit(*number),
                    "abort" => {
                        guard.abort(*number);
                        Ok(())
                    }
                    "write" => guard.begin_writes(*number),
                    "kill" => {
                        sessions.abort(SESSION);
                        Ok(())
                    }
                    "expire" => {
                        assert_eq!(sessions.expire(Duration::ZERO), [SESSION]);
                        Ok(())
                    }
                    other => panic!("{other}"),
                };
                let found = done.map_or_else(|error| error.code.number(), |()| 0);
                assert_eq!(found, *code, "{what} {number} of {steps:?}");
            }
        });
    }

    #[test]
    fn numbers_increase_and_have_one_use() {
        check(&[
            ("begin", 1, 0),
            ("resume", 1, 0),
            ("commit", 1, 0),
            ("commit", 1, 0),
        ]);
        check(&[
            ("begin", 1, 0),
            ("commit", 1, 0),
            ("resume", 1, 256),
            ("begin", 1, 117),
        ]);
        check(&[
            ("begin", 1, 0),
            ("abort", 1, 0),
            ("resume", 1, 251),
            ("commit", 1, 251),
        ]);
        check(&[("resume", 1, 251), ("commit", 1, 251), ("begin", 1, 0)]);
        check(&[
            ("begin", 5, 0),
            ("begin", 4, 225),
            ("resume", 4, 225),
            ("resume", 5, 0),
        ]);
        check(&[
            ("begin", 1, 0),
            ("begin", 2, 0),
            ("resume", 1, 225),
            ("commit", 2, 0),
        ]);
        check(&[
            ("begin", 1, 0),
            ("write", 1, 217),
            ("write", 2, 0),
            ("write", 2, 0),
        ]);
        check(&[
            ("write", 1, 0),
            ("resume", 1, 251),
            ("begin", 1, 117),
            ("begin", 2, 0),
        ]);
    }

    #[test]
    fn killed_transactions_end_after_their_command() {
        check(&[("begin", 1, 0), ("kill", 0, 0), ("resume", 1, 251)]);
        check(&[("begin", 1, 0), ("expire", 0, 0), ("resume", 1, 251)]);
        check(&[
            ("begin", 1, 0),
            ("commit", 1, 0),
            ("kill", 0, 0),
            ("commit", 1, 0),
        ]);
    }

    #[test]
    fn transactions_are_counted() {
        let services = Services::in_memory(Arc::new(Log::to_nowhere())).unwrap();
        let sessions = SessionTransactions::default();
        with_operation(|operation| {
            let guard = sessions.take(SESSION, &services.engine, operation).unwrap();
            guard
                .begin(1, TransactionOptions::default(), || Ok(None))
                .unwrap();
            guard.commit(1).unwrap();
            guard
                .begin(2, TransactionOptions::default(), || Ok(None))
                .unwrap();
            let counts = TransactionCounts {
                open: 1,
                active: 1,
                started: 2,
                committed: 1,
                aborted: 0,
            };
            assert_eq!(sessions.counts(), counts);
            guard.abort(2);
            assert_eq!(sessions.counts().aborted, 1);
        });
    }
}
