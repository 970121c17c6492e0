//! The limit of operations that run at a time. Others wait in the order in which they came.
//!
//! Reads and writes need a slot. Commands that administer do not, so that a busy server can be
//! administered. An operation that continues a transaction does not either: those that have slots
//! may wait for its locks. While a cursor waits for new data, its operation gives its slot to
//! others.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, Thread};

use windrow_collection::WaitControl;
use windrow_wire::CommandError;

use crate::metrics::Kind;
use crate::operations::{CHECK_INTERVAL, Operation};
use crate::sync::lock;

/// The slots of a server.
#[derive(Debug)]
pub struct OperationSlots {
    /// The number of slots. `None` is no limit.
    limit: Option<usize>,
    slots: Mutex<Slots>,
}

#[derive(Debug, Default)]
struct Slots {
    taken: usize,
    waiting: VecDeque<Arc<Waiter>>,
}

/// An operation that waits for a slot.
#[derive(Debug)]
struct Waiter {
    has_slot: AtomicBool,
    thread: Thread,
    is_write: bool,
}

/// The number of operations that wait for a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitingOperations {
    pub readers: usize,
    pub writers: usize,
}

/// The slot of an operation. Dropping it gives it to the next operation.
#[derive(Debug)]
pub struct OperationSlot<'a> {
    slots: &'a OperationSlots,
    operation: &'a Operation,
}

impl Drop for OperationSlot<'_> {
    fn drop(&mut self) {
        self.slots.release_of(self.operation);
    }
}

impl OperationSlots {
    pub fn new(limit: Option<usize>) -> OperationSlots {
        OperationSlots {
            limit,
            slots: Mutex::default(),
        }
    }

    /// Waits for a slot. Fails if the operation must stop, for example at the end of its time.
    pub fn take<'a>(&'a self, operation: &'a Operation) -> Result<OperationSlot<'a>, CommandError> {
        self.acquire(operation)?;
        Ok(OperationSlot {
            slots: self,
            operation,
        })
    }

    /// Gives the slot of an operation to others while `wait` waits, and takes one again.
    pub fn without_slot<T>(
        &self,
        operation: &Operation,
        wait: impl FnOnce() -> Result<T, CommandError>,
    ) -> Result<T, CommandError> {
        if !self.release_of(operation) {
            return wait();
        }
        let waited = wait()?;
        self.acquire(operation)?;
        Ok(waited)
    }

    /// Returns the operations that wait for a slot now.
    pub fn waiting(&self) -> WaitingOperations {
        let slots = lock(&self.slots);
        let writers = slots.waiting.iter().filter(|it| it.is_write).count();
        WaitingOperations {
            readers: slots.waiting.len() - writers,
            writers,
        }
    }

    fn acquire(&self, operation: &Operation) -> Result<(), CommandError> {
        let Some(limit) = self.limit else {
            return Ok(());
        };
        let waiter = {
            let mut slots = lock(&self.slots);
            if slots.taken < limit {
                slots.taken += 1;
                operation.has_slot.store(true, Ordering::Relaxed);
                return Ok(());
            }
            let waiter = Arc::new(Waiter {
                has_slot: AtomicBool::new(false),
                thread: thread::current(),
                is_write: is_write(operation.kind),
            });
            slots.waiting.push_back(waiter.clone());
            waiter
        };
        operation.set_waiting(true);
        let outcome = self.wait(operation, &waiter);
        operation.set_waiting(false);
        operation.has_slot.store(outcome.is_ok(), Ordering::Relaxed);
        outcome
    }

    fn wait(&self, operation: &Operation, waiter: &Arc<Waiter>) -> Result<(), CommandError> {
        while !waiter.has_slot.load(Ordering::Acquire) {
            if let Err(error) = operation.check() {
                self.give_up(waiter);
                return Err(error);
            }
            let time_max = operation.time_left().unwrap_or(CHECK_INTERVAL);
            thread::park_timeout(time_max.min(CHECK_INTERVAL));
        }
        Ok(())
    }

    /// Ends the wait of an operation that must stop. It may have got a slot meanwhile.
    fn give_up(&self, waiter: &Arc<Waiter>) {
        let mut slots = lock(&self.slots);
        slots.waiting.retain(|one| !Arc::ptr_eq(one, waiter));
        if waiter.has_slot.load(Ordering::Acquire) {
            release(&mut slots);
        }
    }

    /// Releases the slot of an operation. Returns `false` if it has none.
    fn release_of(&self, operation: &Operation) -> bool {
        let had_slot = operation.has_slot.swap(false, Ordering::Relaxed);
        if had_slot {
            release(&mut lock(&self.slots));
        }
        had_slot
    }
}

/// Gives a slot to the operation that has waited longest.
fn release(slots: &mut Slots) {
    match slots.waiting.pop_front() {
        Some(waiter) => {
            waiter.has_slot.store(true, Ordering::Release);
            waiter.thread.unpark();
        }
        None => slots.taken -= 1,
    }
}

fn is_write(kind: Kind) -> bool {
    matches!(kind, Kind::Insert | Kind::Update | Kind::Delete)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use windrow_document::doc;
    use windrow_wire::ErrorCode;

    use super::*;
    use crate::client::Client;
    use crate::connection::request_for_tests;
    use crate::operations::{Operations, Starter};

    /// Calls `run` with a new operation.
    fn with_operation<T>(time_limit: Option<Duration>, run: impl FnOnce(&Operation) -> T) -> T {
        let operations = Operations::default();
        let request = request_for_tests(&doc! { "find": "c", "$db": "d" });
        let starter = Starter::for_tests(Kind::Query);
        let client = Client::for_tests();
        let running = operations.start(&request, &client, starter, None, time_limit);
        run(&running.operation)
    }

    fn wait_for(what: impl Fn() -> bool) {
        let began = Instant::now();
        while !what() {
            assert!(began.elapsed() < Duration::from_secs(10));
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn operations_wait_in_the_order_in_which_they_came() {
        let slots = OperationSlots::new(Some(1));
        let order = Mutex::new(Vec::new());
        thread::scope(|scope| {
            with_operation(None, |first| {
                let slot = slots.take(first).unwrap();
                for number in 0..3 {
                    let (slots, order) = (&slots, &order);
                    scope.spawn(move || {
                        with_operation(None, |operation| {
                            let _slot = slots.take(operation).unwrap();
                            lock(order).push(number);
                        });
                    });
                    wait_for(|| slots.waiting().readers == number + 1);
                }
                assert!(lock(&order).is_empty());
                drop(slot);
            });
        });
        assert_eq!(*lock(&order), [0, 1, 2]);
        assert_eq!(lock(&slots.slots).taken, 0);
    }

    #[test]
    fn a_wait_ends_with_the_time_of_the_operation() {
        let slots = OperationSlots::new(Some(1));
        with_operation(None, |first| {
            let slot = slots.take(first).unwrap();
            let limit = Some(Duration::from_millis(20));
            let error = with_operation(limit, |second| slots.take(second).map(drop).unwrap_err());
            assert_eq!(error.code, ErrorCode::MaxTimeMSExpired);
            assert_eq!(slots.waiting(), WaitingOperations::default());
            // While it waits for data, others run.
            let other = |slots: &OperationSlots| {
                let limit = Some(Duration::from_secs(10));
                with_operation(limit, |second| slots.take(second).map(drop))
            };
            slots.without_slot(first, || other(&slots)).unwrap();
            assert_eq!(lock(&slots.slots).taken, 1);
            drop(slot);
        });
        assert_eq!(lock(&slots.slots).taken, 0);
        let unlimited = OperationSlots::new(None);
        with_operation(None, |one| drop(unlimited.take(one).unwrap()));
    }
}
