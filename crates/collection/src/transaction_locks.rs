//! The locks of open transactions: documents they have changed, unique keys they have added or
//! removed, and collections they use.
//!
//! No mutex is held while a transaction is open. A transaction that meets another's lock fails with
//! a write conflict. A single write waits for the other transaction to end, and releases all its
//! own locks and claims first, so it cannot take part in a deadlock.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use windrow_fold::RecordId;
use windrow_interrupt::{Interrupt, Interrupted, Uninterrupted};
use windrow_invariant::Bug;

use crate::error::Error;
use crate::ids::MapId;

/// Controls how an operation waits for others: the interrupt ends the wait.
pub trait WaitControl: Interrupt {
    /// Called with `true` when a wait begins, and with `false` when it ends.
    fn set_waiting(&self, _waits: bool) {}
}

impl WaitControl for Uninterrupted {}

impl<F: Fn() -> Result<(), Interrupted>> WaitControl for F {}

/// Runs `wait`, and marks the operation as waiting meanwhile.
pub fn while_waiting<T>(wait_control: &dyn WaitControl, wait: impl FnOnce() -> T) -> T {
    wait_control.set_waiting(true);
    let waited = wait();
    wait_control.set_waiting(false);
    waited
}

/// The interval at which a waiting thread checks for an interrupt.
const CHECK_INTERVAL: Duration = Duration::from_millis(10);

/// An object that a transaction can lock in a collection.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum LockTarget {
    Document(RecordId),
    /// A unique key of a map.
    Key(MapId, Vec<u8>),
}

/// A transaction, as others see it that wait for its end.
#[derive(Debug, Default)]
pub struct TransactionWaiter {
    has_ended: Mutex<bool>,
    changed: Condvar,
}

impl TransactionWaiter {
    pub fn end(&self) {
        *self.has_ended.lock() = true;
        self.changed.notify_all();
    }

    /// Waits for the end of the transaction. Fails if the wait is interrupted.
    pub fn wait(&self, wait_control: &dyn WaitControl) -> Result<(), Error> {
        while_waiting(wait_control, || {
            let mut has_ended = self.has_ended.lock();
            while !*has_ended {
                wait_control.check()?;
                self.changed.wait_for(&mut has_ended, CHECK_INTERVAL);
            }
            Ok(())
        })
    }
}

/// The locks in one collection.
#[derive(Debug, Default)]
pub struct TransactionLocks {
    /// The number of locks. While it is 0, writers do not take the mutex.
    count: AtomicUsize,
    holders: Mutex<HashMap<LockTarget, Arc<TransactionWaiter>>>,
}

/// The result of a lock request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockOutcome {
    Acquired,
    AlreadyHeld,
    HeldByOther,
}

impl TransactionLocks {
    /// Returns `true` if any lock is held. Called with the document's lock or the key's claim,
    /// which a transaction also has while it adds a lock.
    #[inline]
    pub fn any(&self) -> bool {
        self.count.load(Ordering::Acquire) > 0
    }

    pub fn take(&self, what: &LockTarget, by: &Arc<TransactionWaiter>) -> LockOutcome {
        let mut holders = self.holders.lock();
        match holders.get(what) {
            Some(holder) if Arc::ptr_eq(holder, by) => LockOutcome::AlreadyHeld,
            Some(_) => LockOutcome::HeldByOther,
            None => {
                holders.insert(what.clone(), by.clone());
                self.count.store(holders.len(), Ordering::Release);
                LockOutcome::Acquired
            }
        }
    }

    /// Returns the holder of a lock.
    pub fn holder(&self, what: &LockTarget) -> Option<Arc<TransactionWaiter>> {
        self.holders.lock().get(what).cloned()
    }

    /// Releases locks of a transaction.
    pub fn release(&self, targets: &[LockTarget], by: &Arc<TransactionWaiter>) {
        let mut holders = self.holders.lock();
        for target in targets {
            let is_own = holders
                .get(target)
                .is_some_and(|holder| Arc::ptr_eq(holder, by));
            if is_own {
                holders.remove(target);
            } else {
                // Removing another transaction's lock would let two writers change one document.
                drop(Bug::new(format!(
                    "a transaction releases {target:?}, which it has not locked"
                )));
            }
        }
        if holders.is_empty() {
            holders.shrink_to_fit();
        }
        self.count.store(holders.len(), Ordering::Release);
    }
}

/// How long a transaction waits for a change of a collection's definition.
const USE_WAIT: Duration = Duration::from_millis(5);

/// Excludes transactions from changes of a collection's definition: either transactions use the
/// collection, or it can be changed.
#[derive(Debug, Default)]
pub struct DdlBarrier {
    state: Mutex<BarrierState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct BarrierState {
    transactions: usize,
    /// The number of threads that change the collection or wait to do so.
    changing: usize,
}

impl DdlBarrier {
    /// Begins the use by a transaction. Fails if a thread changes the collection or waits to do so,
    /// because otherwise it might wait for ever.
    pub fn begin(&self) -> Result<(), Error> {
        let until = Instant::now() + USE_WAIT;
        let mut state = self.state.lock();
        while state.changing > 0 {
            if self.changed.wait_until(&mut state, until).timed_out() {
                return Err(Error::LockTimeout);
            }
        }
        state.transactions += 1;
        Ok(())
    }

    pub fn end(&self) {
        let mut state = self.state.lock();
        // An underflow would block changes of the collection for ever.
        assert!(state.transactions > 0, "a use ends that has not begun");
        state.transactions -= 1;
        drop(state);
        self.changed.notify_all();
    }

    /// Waits until no transaction uses the collection, and prevents new uses until the guard is
    /// dropped.
    pub fn exclude(&self, wait_control: &dyn WaitControl) -> Result<DdlGuard<'_>, Error> {
        let mut state = self.state.lock();
        state.changing += 1;
        let exclusion = DdlGuard(self);
        if state.transactions == 0 {
            return Ok(exclusion);
        }
        let waited = while_waiting(wait_control, || {
            while state.transactions > 0 {
                wait_control.check()?;
                self.changed.wait_for(&mut state, CHECK_INTERVAL);
            }
            Ok(())
        });
        // The guard locks the state when it is dropped.
        drop(state);
        waited.map(|()| exclusion)
    }
}

/// Prevents the use of a collection by transactions until it is dropped.
#[derive(Debug)]
pub struct DdlGuard<'u>(&'u DdlBarrier);

impl Drop for DdlGuard<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        debug_assert!(state.changing > 0);
        state.changing -= 1;
        drop(state);
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stopped() -> Result<(), Interrupted> {
        Err(Interrupted::new("stopped"))
    }

    #[test]
    fn a_lock_has_one_holder() {
        let (locks, one, other) = (TransactionLocks::default(), Arc::default(), Arc::default());
        let key = LockTarget::Key(MapId(1), b"k".to_vec());
        assert!(!locks.any());
        assert_eq!(locks.take(&key, &one), LockOutcome::Acquired);
        assert_eq!(locks.take(&key, &one), LockOutcome::AlreadyHeld);
        assert_eq!(locks.take(&key, &other), LockOutcome::HeldByOther);
        assert_eq!(
            locks.take(&LockTarget::Key(MapId(2), b"k".to_vec()), &other),
            LockOutcome::Acquired
        );
        locks.release(std::slice::from_ref(&key), &one);
        assert!(locks.any() && locks.holder(&key).is_none());
        assert_eq!(locks.take(&key, &other), LockOutcome::Acquired);
    }

    #[test]
    fn a_wait_ends_with_the_holder_or_an_interrupt() {
        let waiter = TransactionWaiter::default();
        assert!(matches!(waiter.wait(&stopped), Err(Error::Interrupted(_))));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| waiter.wait(&Uninterrupted));
            std::thread::sleep(Duration::from_millis(20));
            assert!(!waiting.is_finished());
            waiter.end();
            assert!(waiting.join().unwrap().is_ok());
        });
    }

    #[test]
    fn ddl_waits_for_transactions_which_time_out() {
        let uses = DdlBarrier::default();
        uses.begin().unwrap();
        assert!(matches!(uses.exclude(&stopped), Err(Error::Interrupted(_))));
        uses.end();
        let exclusion = uses.exclude(&stopped).unwrap();
        assert!(matches!(uses.begin(), Err(Error::LockTimeout)));
        drop(exclusion);
        uses.begin().unwrap();
    }
}
