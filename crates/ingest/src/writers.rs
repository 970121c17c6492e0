//! The stage that writes documents to the store.

use std::io;
use std::ops::ControlFlow;
use std::thread;
use std::time::Instant;

use parking_lot::Mutex;
use windrow_invariant::Bug;

use crate::byte_queue::ByteQueue;
use crate::changes::ReadJob;
use crate::file_event::FileEvent;
use crate::pipeline::PipelineTimes;
use crate::progress::Progress;
use crate::store::{Store, StoreError};
use crate::store_writer::{BatchLimits, StoreWriter};
use crate::worker_pool::WorkerPool;

/// The options of the stage that writes documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriterOptions {
    /// The number of writer threads. The default, which is also the maximum, is the number of
    /// workers.
    pub threads: Option<usize>,
    /// The maximum number of bytes that wait for each writer thread. 0 disables the threads: the
    /// thread of each worker then writes the documents itself.
    pub queue_bytes: usize,
}

impl Default for WriterOptions {
    fn default() -> Self {
        WriterOptions {
            threads: None,
            queue_bytes: 8 << 20,
        }
    }
}

/// A writer for each worker, and the first error.
pub(crate) struct Writers<'s, 'w> {
    writers: Vec<Mutex<StoreWriter<'s, 'w>>>,
    error: Mutex<Option<StoreError>>,
    times: &'s PipelineTimes,
}

impl<'s, 'w> Writers<'s, 'w> {
    pub fn new(store: &'s dyn Store, progress: &'s Progress, workers: usize) -> Self {
        let writer = |_| Mutex::new(StoreWriter::new(store, progress, BatchLimits::default()));
        Writers {
            writers: (0..workers).map(writer).collect(),
            error: Mutex::default(),
            times: &progress.pipeline,
        }
    }

    /// Handles an event of a worker. Returns `Break` after an error of the store.
    pub fn handle(&self, worker: usize, job: &ReadJob<'w>, event: FileEvent) -> ControlFlow<()> {
        let started = Instant::now();
        let is_document = matches!(event, FileEvent::Document(_));
        let result = match self.writers.get(worker) {
            Some(writer) => writer.lock().handle(job, event),
            None => Err(Bug::new(format!("worker {worker} has no writer")).into()),
        };
        let times = &self.times.write;
        times.add_items(usize::from(is_document), started.elapsed());
        match result {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.error.lock().get_or_insert(error);
                ControlFlow::Break(())
            }
        }
    }

    /// Writes the remaining documents, unless an error occurred.
    pub fn flush(&self) {
        let started = Instant::now();
        for writer in &self.writers {
            if self.error.lock().is_some() {
                return;
            }
            if let Err(error) = writer.lock().flush() {
                self.error.lock().get_or_insert(error);
            }
        }
        self.times.write.add_items(0, started.elapsed());
    }

    pub fn into_error(self) -> Option<StoreError> {
        self.error.into_inner()
    }
}

/// An event of a worker in the queue of a writer thread.
pub(crate) struct QueuedEvent<'f, 'w> {
    worker: usize,
    job: &'f ReadJob<'w>,
    event: FileEvent,
}

/// The queues of the writer threads. All events of a worker use the same queue, so they stay in
/// order.
pub(crate) struct WriterQueues<'f, 'w> {
    pub queues: Vec<ByteQueue<QueuedEvent<'f, 'w>>>,
}

impl<'f, 'w> WriterQueues<'f, 'w> {
    /// Reads files in the workers, and writes their documents in a thread for each queue.
    pub fn run(
        &self,
        jobs: &'f [ReadJob<'w>],
        pool: &WorkerPool,
        writers: &Writers<'_, 'w>,
        times: &PipelineTimes,
    ) -> io::Result<()> {
        times.write.set_threads(self.queues.len());
        thread::scope(|scope| {
            for queue in &self.queues {
                scope.spawn(move || write_queue(queue, writers, times));
            }
            // Also closes the queues after a panic. The writers would otherwise wait for ever.
            let _closing = CloseOnDrop(&self.queues);
            pool.run_timed(jobs, &times.extract, &|worker, job, event| {
                self.push(worker, job, event, times)
            })
        })
    }

    fn push(
        &self,
        worker: usize,
        job: &'f ReadJob<'w>,
        event: FileEvent,
        times: &PipelineTimes,
    ) -> ControlFlow<()> {
        let queue = worker.checked_rem(self.queues.len());
        let Some(queue) = queue.and_then(|number| self.queues.get(number)) else {
            return ControlFlow::Break(());
        };
        let bytes = match &event {
            FileEvent::Document(document) => document.text.len() + EVENT_BYTES,
            _ => EVENT_BYTES,
        };
        let event = QueuedEvent { worker, job, event };
        if queue.push(event, bytes, &times.extract) {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    }
}

/// The estimated size of an event without its text, in bytes.
const EVENT_BYTES: usize = 1 << 10;

/// Writes events until the queue is closed. Closes the queue after an error, so that no further
/// files are read.
fn write_queue<'w>(
    queue: &ByteQueue<QueuedEvent<'_, 'w>>,
    writers: &Writers<'_, 'w>,
    times: &PipelineTimes,
) {
    let _closing = CloseOnDrop(std::slice::from_ref(queue));
    while let Some(QueuedEvent { worker, job, event }) = queue.pop(&times.write) {
        if writers.handle(worker, job, event).is_break() {
            return;
        }
    }
}

/// Closes queues on drop.
struct CloseOnDrop<'q, T>(&'q [ByteQueue<T>]);

impl<T> Drop for CloseOnDrop<'_, T> {
    fn drop(&mut self) {
        self.0.iter().for_each(ByteQueue::close);
    }
}
