//! Group commit. Appenders that come while a group is being written queue up; the first of them
//! leads the next group. Who comes alone writes alone: no hand-over, no allocation, one write.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::{Condvar, Mutex};

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
    turn: Arc<Turn>,
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
                turn: turn.clone(),
            });
            drop(queue);
            let (result, buffer) = self.wait(&turn);
            record = buffer;
            result
        } else {
            queue.leading = true;
            drop(queue);
            let result = self.write_alone(&mut record, publish);
            self.pass_on();
            result
        };
        record.recycle();
        result
    }

    fn wait(&self, turn: &Turn) -> (Result<Position, StorageError>, Encoded) {
        loop {
            match turn.next() {
                TurnState::Done(result, buffer) => return (result, buffer),
                TurnState::Leading => {
                    self.write_group();
                    self.pass_on();
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
    fn write_group(&self) {
        let mut writer = self.writer.lock();
        let mut group = self.queue.lock().take_group();
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
    }

    /// A publish that panics leaves memory and log apart, so that nothing may build upon it.
    fn publish(
        &self,
        position: Position,
        publish: impl FnOnce(Position),
    ) -> Result<Position, StorageError> {
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

impl Turn {
    fn lead(&self) {
        *self.state.lock() = TurnState::Leading;
        self.changed.notify_one();
    }

    fn end(&self, result: Result<Position, StorageError>, buffer: Encoded) {
        *self.state.lock() = TurnState::Done(result, buffer);
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
