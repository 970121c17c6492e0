//! A bounded queue between two stages of an ingestion.

use std::collections::VecDeque;
use std::time::Instant;

use parking_lot::{Condvar, Mutex};

use crate::pipeline::StageTimes;

/// A queue with a limit on the sum of the sizes of its items. An empty queue accepts an item of any
/// size.
pub(crate) struct ByteQueue<T> {
    state: Mutex<QueueState<T>>,
    /// Wakes the consumer.
    filled: Condvar,
    /// Wakes the producer.
    drained: Condvar,
    bytes_max: usize,
}

struct QueueState<T> {
    items: VecDeque<(T, usize)>,
    bytes: usize,
    is_closed: bool,
}

impl<T> ByteQueue<T> {
    pub fn new(bytes_max: usize) -> Self {
        ByteQueue {
            state: Mutex::new(QueueState {
                items: VecDeque::new(),
                bytes: 0,
                is_closed: false,
            }),
            filled: Condvar::new(),
            drained: Condvar::new(),
            bytes_max,
        }
    }

    /// Appends an item. Waits while the queue is full. Returns `false` and drops the item if the
    /// queue is closed. Records the waiting time and the fill level in `producer`.
    pub fn push(&self, item: T, bytes: usize, producer: &StageTimes) -> bool {
        let mut state = self.state.lock();
        if state.is_full(bytes, self.bytes_max) && !state.is_closed {
            let started = Instant::now();
            while state.is_full(bytes, self.bytes_max) && !state.is_closed {
                self.drained.wait(&mut state);
            }
            producer.add_output_wait(started.elapsed());
        }
        if state.is_closed {
            return false;
        }
        producer.record_queue(state.bytes);
        state.bytes += bytes;
        state.items.push_back((item, bytes));
        drop(state);
        self.filled.notify_one();
        true
    }

    /// Removes the oldest item. Waits while the queue is empty. Returns `None` if it is closed and
    /// empty. Records the waiting time in `consumer`.
    pub fn pop(&self, consumer: &StageTimes) -> Option<T> {
        let mut state = self.state.lock();
        if state.items.is_empty() && !state.is_closed {
            let started = Instant::now();
            while state.items.is_empty() && !state.is_closed {
                self.filled.wait(&mut state);
            }
            consumer.add_input_wait(started.elapsed());
        }
        let (item, bytes) = state.items.pop_front()?;
        state.bytes -= bytes;
        drop(state);
        self.drained.notify_one();
        Some(item)
    }

    /// Closes the queue. Further items are refused; the remaining ones can still be removed.
    pub fn close(&self) {
        self.state.lock().is_closed = true;
        self.filled.notify_all();
        self.drained.notify_all();
    }
}

impl<T> QueueState<T> {
    fn is_full(&self, bytes: usize, bytes_max: usize) -> bool {
        !self.items.is_empty() && self.bytes + bytes > bytes_max
    }
}
