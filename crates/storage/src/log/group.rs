//! Group commit. Appenders that come while a group is being written queue up; the first of them
//! leads the next group. Who comes alone writes alone: no hand-over, no allocation, one write.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::{Condvar, Mutex};
use windrow_invariant::Bug;

use super::record::{Encoded, Kind};
use super::{Position, Shared};
use crate::error::StorageError;

/// A group takes no further record past this.
const GROUP_BYTES_MAX: usize = 8 << 20;

/// `leading` is true while some thread writes, or was told to.
#[derive(Default)]
pub(crate) struct Queue {
    leading: bool,
    waiting: VecDeque<Pending>,
}

struct Pending {
    record: Encoded,
    publish: Box<dyn FnOnce(Position) + Send>,
    turn: Promise,
}

/// A queued appender's turn, which gets a result in any case: dropped without one, as by a panic of the
/// leader, it says that the log refuses writes. Otherwise the appender would wait for ever.
struct Promise(Option<Arc<Turn>>);

/// Leads a group. Dropped before its [end](Leadership::end), by a panic, it makes the log refuse writes
/// and lets the next one lead.
struct Leadership<'l> {
    shared: &'l Shared,
    has_ended: bool,
}

/// Where a queued appender waits.
#[derive(Default)]
struct Turn {
    state: Mutex<TurnState>,
    changed: Condvar,
}

#[derive(Default)]
enum TurnState {
    #[default]
    Waiting,
    Leading,
    Done(Result<Position, StorageError>, Encoded),
}

impl Shared {
    pub(crate) fn append<P>(
        &self,
        kind: Kind,
        payload: &[&[u8]],
        publish: P,
    ) -> Result<Position, StorageError>
    where
        P: FnOnce(Position) + Send + 'static,
    {
        let mut record = Encoded::new(kind, payload)?;
        let mut queue = self.queue.lock();
        let result = if queue.leading {
            let turn = Arc::new(Turn::default());
            let publish = Box::new(publish);
            queue.waiting.push_back(Pending {
                record,
                publish,
                turn: Promise(Some(turn.clone())),
            });
            drop(queue);
            let (result, buffer) = self.wait(&turn);
            record = buffer;
            result
        } else {
            queue.leading = true;
            drop(queue);
            let leadership = self.lead();
            let result = self.write_alone(&mut record, publish);
            leadership.end();
            result
        };
        record.recycle();
        result
    }

    fn lead(&self) -> Leadership<'_> {
        Leadership {
            shared: self,
            has_ended: false,
        }
    }

    fn wait(&self, turn: &Arc<Turn>) -> (Result<Position, StorageError>, Encoded) {
        loop {
            match turn.next() {
                TurnState::Done(result, buffer) => return (result, buffer),
                TurnState::Leading => {
                    let leadership = self.lead();
                    let written = self.write_group(turn);
                    leadership.end();
                    if let Err(bug) = written {
                        return (Err(bug.into()), Encoded::default());
                    }
                }
                TurnState::Waiting => {}
            }
        }
    }

    fn write_alone(
        &self,
        record: &mut Encoded,
        publish: impl FnOnce(Position),
    ) -> Result<Position, StorageError> {
        let mut writer = self.writer.lock();
        let position = Position(writer.write(self, &mut [record])?);
        self.publish(position, publish)
    }

    /// Writes what is queued, up to the limit; the caller's own record is first in the queue.
    fn write_group(&self, own: &Arc<Turn>) -> Result<(), Bug> {
        let mut writer = self.writer.lock();
        let mut group = self.queue.lock().take_group();
        if !group.first().is_some_and(|first| first.turn.is_of(own)) {
            let bug =
                Bug::new("the leader of a group of log records is not the first in the queue");
            self.refuse(bug.to_string());
            return Err(bug);
        }
        let mut records: Vec<&mut Encoded> = group.iter_mut().map(|one| &mut one.record).collect();
        match writer.write(self, &mut records) {
            Ok(first) => {
                for (pending, position) in group.into_iter().zip(first..) {
                    let result = self.publish(Position(position), pending.publish);
                    pending.turn.end(result, pending.record);
                }
            }
            Err(error) => {
                for pending in group {
                    pending.turn.end(Err(error.clone()), pending.record);
                }
            }
        }
        Ok(())
    }

    /// A publish that panics leaves memory and log apart, so that nothing may build upon it.
    fn publish(
        &self,
        position: Position,
        publish: impl FnOnce(Position),
    ) -> Result<Position, StorageError> {
        debug_assert_eq!(self.written.load(Ordering::Relaxed) + 1, position.0);
        let panicked = catch_unwind(AssertUnwindSafe(|| publish(position))).is_err();
        // In one order with the timer's look at `dirty` and `written`: see there.
        self.written.store(position.0, Ordering::SeqCst);
        self.wake_timer();
        self.wake_followers();
        if panicked {
            self.refuse(format!(
                "what record {position} changes could not be put into memory"
            ));
            self.check_not_refusing()?;
        }
        Ok(position)
    }

    fn pass_on(&self) {
        let mut queue = self.queue.lock();
        debug_assert!(queue.leading, "a group ends that nobody leads");
        match queue.waiting.front() {
            Some(next) => next.turn.lead(),
            None => queue.leading = false,
        }
    }
}

impl Queue {
    fn take_group(&mut self) -> Vec<Pending> {
        let mut bytes = 0;
        let fits = |pending: &&Pending| {
            bytes += pending.record.len();
            bytes <= GROUP_BYTES_MAX
        };
        let count = self.waiting.iter().take_while(fits).count().max(1);
        self.waiting
            .drain(..count.min(self.waiting.len()))
            .collect()
    }
}

impl Leadership<'_> {
    fn end(mut self) {
        self.has_ended = true;
    }
}

impl Drop for Leadership<'_> {
    fn drop(&mut self) {
        if !self.has_ended {
            self.shared.refuse("a write panicked".to_owned());
        }
        self.shared.pass_on();
    }
}

impl Promise {
    fn is_of(&self, turn: &Arc<Turn>) -> bool {
        self.0.as_ref().is_some_and(|own| Arc::ptr_eq(own, turn))
    }

    fn lead(&self) {
        if let Some(turn) = &self.0 {
            turn.change(TurnState::Leading);
        }
    }

    fn end(mut self, result: Result<Position, StorageError>, buffer: Encoded) {
        if let Some(turn) = self.0.take() {
            turn.change(TurnState::Done(result, buffer));
        }
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        if let Some(turn) = self.0.take() {
            let because = "the write that the record was part of did not end".to_owned();
            let result = Err(StorageError::RefusingWrites { because });
            turn.change(TurnState::Done(result, Encoded::default()));
        }
    }
}

impl Turn {
    /// A turn changes to leading once at most, then to its result. The leader's own result comes after
    /// it took note of leading.
    fn change(&self, to: TurnState) {
        let mut state = self.state.lock();
        debug_assert!(matches!(*state, TurnState::Waiting), "a turn ends twice");
        *state = to;
        self.changed.notify_one();
    }

    fn next(&self) -> TurnState {
        let mut state = self.state.lock();
        while matches!(*state, TurnState::Waiting) {
            self.changed.wait(&mut state);
        }
        std::mem::take(&mut *state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LogOptions, MemoryDisk, Storage, StorageOptions};
    use std::sync::atomic::AtomicUsize;

    /// A leader that panicked left all who waited for its group, and all later appenders, waiting for
    /// ever.
    #[test]
    fn a_leader_that_panics_keeps_nobody_waiting() {
        static CALLS: AtomicUsize = AtomicUsize::new(0);
        let options = LogOptions {
            sync_interval: None,
            clock: || match CALLS.fetch_add(1, Ordering::SeqCst) {
                0 => 1,
                _ => panic!("a test breaks the clock"),
            },
            ..LogOptions::default()
        };
        let options = StorageOptions {
            log: options,
            ..StorageOptions::default()
        };
        let storage = Storage::open(Arc::new(MemoryDisk::new()), options).unwrap();
        let log = &storage.log;
        let append = || log.append(&[b"a record"], |_| {});
        let queued = |count: usize| {
            while log.shared.queue.lock().waiting.len() < count {
                std::thread::yield_now();
            }
        };
        std::thread::scope(|scope| {
            let writer = log.shared.writer.lock();
            let first = scope.spawn(append);
            while !log.shared.queue.lock().leading {
                std::thread::yield_now();
            }
            let leader = scope.spawn(append);
            queued(1);
            let member = scope.spawn(append);
            queued(2);
            drop(writer);
            assert_eq!(first.join().unwrap().unwrap(), Position(1));
            assert!(leader.join().is_err());
            let refused = member.join().unwrap();
            assert!(matches!(refused, Err(StorageError::RefusingWrites { .. })));
        });
        assert!(matches!(append(), Err(StorageError::RefusingWrites { .. })));
    }
}
