//! Group commit:
//!
//! 1. An appender that finds no leader becomes the leader and writes its record alone, without an
//!    allocation or a hand-over between threads.
//! 2. An appender that finds a leader queues its record and waits for its turn.
//! 3. A leader that ends makes the first queued appender the next leader.
//! 4. That leader takes the queued records, its own first, writes them with one write, runs their
//!    publish steps, and gives each appender its result.
//!
//! Each step has a drop guard: if a leader panics, the log refuses writes, each appender of its
//! group gets an error, and the next queued appender leads.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::{Condvar, Mutex};
use windrow_invariant::Bug;

use super::record::{EncodedRecord, Kind};
use super::{Position, Shared};
use crate::error::StorageError;

/// The largest size of a group of several records, in bytes.
const GROUP_BYTES_MAX: usize = 8 << 20;

/// The records that wait for the next group.
#[derive(Default)]
pub(crate) struct Queue {
    /// True if a thread leads a group, or is chosen to lead the next one.
    leading: bool,
    waiting: VecDeque<QueuedRecord>,
}

struct QueuedRecord {
    record: EncodedRecord,
    publish: Box<dyn FnOnce(Position) + Send>,
    turn: Promise,
}

/// The leader's side of the turn of a queued appender. If it is dropped without a result, as by a
/// panic of the leader, the appender gets `RefusingWrites`. Otherwise the appender would wait
/// forever.
struct Promise(Option<Arc<Turn>>);

/// The guard of a leader. Its drop makes the first queued appender the next leader. If it is
/// dropped by a panic before [`end`](Leadership::end), it also makes the log refuse writes.
struct Leadership<'l> {
    shared: &'l Shared,
    has_ended: bool,
}

/// The state of a queued appender, which waits for its change.
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
    Done(Result<Position, StorageError>, EncodedRecord),
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
        if self.following.load(Ordering::Acquire) {
            return Err(StorageError::NotPrimary);
        }
        let record = EncodedRecord::new(kind, payload, self.keys.is_some())?;
        self.append_encoded(record, publish)
    }

    /// Appends an encoded record.
    pub(crate) fn append_encoded<P>(
        &self,
        mut record: EncodedRecord,
        publish: P,
    ) -> Result<Position, StorageError>
    where
        P: FnOnce(Position) + Send + 'static,
    {
        let mut queue = self.queue.lock();
        let result = if queue.leading {
            let turn = Arc::new(Turn::default());
            let publish = Box::new(publish);
            queue.waiting.push_back(QueuedRecord {
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

    fn wait(&self, turn: &Arc<Turn>) -> (Result<Position, StorageError>, EncodedRecord) {
        loop {
            match turn.next() {
                TurnState::Done(result, buffer) => return (result, buffer),
                TurnState::Leading => {
                    let leadership = self.lead();
                    let written = self.write_group(turn);
                    leadership.end();
                    if let Err(bug) = written {
                        return (Err(bug.into()), EncodedRecord::default());
                    }
                }
                TurnState::Waiting => {}
            }
        }
    }

    fn write_alone(
        &self,
        record: &mut EncodedRecord,
        publish: impl FnOnce(Position),
    ) -> Result<Position, StorageError> {
        let mut writer = self.writer.lock();
        let position = writer.write(self, &mut [record])?;
        self.publish(position, publish)
    }

    /// Writes the queued records up to the limit. The caller's own record is the first in the
    /// queue.
    fn write_group(&self, own: &Arc<Turn>) -> Result<(), Bug> {
        let mut writer = self.writer.lock();
        let mut group = self.queue.lock().take_group();
        if !group.first().is_some_and(|first| first.turn.is_of(own)) {
            let bug =
                Bug::new("the leader of a group of log records is not the first in the queue");
            self.refuse(bug.to_string());
            return Err(bug);
        }
        let mut records: Vec<&mut EncodedRecord> =
            group.iter_mut().map(|one| &mut one.record).collect();
        match writer.write(self, &mut records) {
            Ok(first) => {
                for (pending, position) in group.into_iter().zip((first.0..).map(Position)) {
                    let result = self.publish(position, pending.publish);
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

    /// Runs the publish step of a record and makes its position visible. If the step panics, the
    /// state in memory differs from the log, so the log refuses writes.
    fn publish(
        &self,
        position: Position,
        publish: impl FnOnce(Position),
    ) -> Result<Position, StorageError> {
        debug_assert_eq!(self.written.load(Ordering::Relaxed) + 1, position.0);
        let panicked = catch_unwind(AssertUnwindSafe(|| publish(position))).is_err();
        // `wake_timer` and `wake_followers` explain why this is sequentially consistent.
        self.written.store(position.0, Ordering::SeqCst);
        self.wake_timer();
        self.wake_followers();
        if panicked {
            self.refuse(format!(
                "the changes of record {position} could not be made in memory"
            ));
            self.check_not_refusing()?;
        }
        Ok(position)
    }

    /// Makes the first queued appender the next leader.
    fn choose_leader(&self) {
        let mut queue = self.queue.lock();
        debug_assert!(queue.leading, "a group without a leader ends");
        match queue.waiting.front() {
            Some(next) => next.turn.lead(),
            None => queue.leading = false,
        }
    }
}

impl Queue {
    fn take_group(&mut self) -> Vec<QueuedRecord> {
        let mut bytes = 0;
        let fits = |pending: &&QueuedRecord| {
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
        self.shared.choose_leader();
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

    fn end(mut self, result: Result<Position, StorageError>, buffer: EncodedRecord) {
        if let Some(turn) = self.0.take() {
            turn.change(TurnState::Done(result, buffer));
        }
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        if let Some(turn) = self.0.take() {
            let because = "the write of the record's group was not completed".to_owned();
            let result = Err(StorageError::RefusingWrites { because });
            turn.change(TurnState::Done(result, EncodedRecord::default()));
        }
    }
}

impl Turn {
    /// Changes the state and wakes the appender. A turn becomes `Leading` at most once and then
    /// `Done`. Before the leader sets its own result, it has taken the state `Leading` with `next`.
    fn change(&self, to: TurnState) {
        let mut state = self.state.lock();
        debug_assert!(matches!(*state, TurnState::Waiting), "a turn ends twice");
        *state = to;
        self.changed.notify_one();
    }

    /// Waits for a state other than `Waiting` and takes it.
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

    /// After a panic of a leader, the appenders of its group and all later appenders waited
    /// forever.
    #[test]
    fn panic_of_leader_wakes_all_appenders() {
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
