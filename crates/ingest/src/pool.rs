//! Many files on as many workers as there are cores.

use std::io;
use std::num::NonZero;
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use crate::walk::Candidate;
use crate::worker::{Event, Worker, WorkerConfig};

/// Takes what files hold: the worker's number, the file, the event.
pub type Sink<'s, 'f, F> = dyn Fn(usize, &'f F, Event) -> ControlFlow<()> + Sync + 's;

/// Starts workers and deals files to them.
#[derive(Debug, Clone)]
pub struct WorkerPool {
    config: WorkerConfig,
    workers: usize,
}

impl WorkerPool {
    /// A pool of as many workers as there are cores.
    pub fn new(config: WorkerConfig) -> Self {
        let workers = thread::available_parallelism().map_or(1, NonZero::get);
        WorkerPool { config, workers }
    }

    /// The same with this number of workers, at least one.
    pub fn with_workers(self, workers: usize) -> Self {
        WorkerPool {
            workers: workers.max(1),
            ..self
        }
    }

    /// How many workers there are.
    pub fn workers(&self) -> usize {
        self.workers
    }

    /// Reads all `files` and tells `sink` what they hold, from as many threads as there are
    /// workers, with the number of the worker. The events of one file come in order from one worker
    /// and end with [`Event::End`]. A `sink` that blocks holds its worker up, so that no more is
    /// read than is wanted; one that answers [`ControlFlow::Break`] ends the run.
    ///
    /// # Errors
    /// If workers cannot be started. Files without an end have not been read then.
    pub fn run<'f, F>(&self, files: &'f [F], sink: &Sink<'_, 'f, F>) -> io::Result<()>
    where
        F: AsRef<Candidate> + Sync,
    {
        let dealer = Dealer::new(files);
        thread::scope(|scope| {
            for number in 0..self.workers.min(files.len()) {
                let dealer = &dealer;
                scope.spawn(move || dealer.note(self.work(number, dealer, sink)));
            }
        });
        dealer.finish()
    }

    fn work<'f, F: AsRef<Candidate>>(
        &self,
        number: usize,
        dealer: &Dealer<'f, F>,
        sink: &Sink<'_, 'f, F>,
    ) -> io::Result<()> {
        let mut worker = Worker::start(&self.config)?;
        while let Some(file) = dealer.next() {
            let mut flow = ControlFlow::Continue(());
            worker.extract(&file.as_ref().path, &mut |event| {
                if flow.is_continue() {
                    flow = sink(number, file, event);
                }
            })?;
            if flow.is_break() {
                dealer.stop();
            }
        }
        Ok(())
    }
}

impl AsRef<Candidate> for Candidate {
    fn as_ref(&self) -> &Candidate {
        self
    }
}

/// Hands out the files one by one until one worker cannot go on or its sink wants no more.
struct Dealer<'f, F> {
    files: &'f [F],
    next: AtomicUsize,
    stopped: AtomicBool,
    error: Mutex<Option<io::Error>>,
}

impl<'f, F> Dealer<'f, F> {
    fn new(files: &'f [F]) -> Self {
        let (next, stopped) = (AtomicUsize::new(0), AtomicBool::new(false));
        Dealer {
            files,
            next,
            stopped,
            error: Mutex::new(None),
        }
    }

    fn next(&self) -> Option<&'f F> {
        if self.stopped.load(Ordering::Relaxed) {
            return None;
        }
        self.files.get(self.next.fetch_add(1, Ordering::Relaxed))
    }

    fn note(&self, result: io::Result<()>) {
        if let Err(error) = result {
            self.stop();
            let mut first = self
                .error
                .lock()
                .unwrap_or_else(|poisoned| poisoned.into_inner());
            first.get_or_insert(error);
        }
    }

    fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    fn finish(self) -> io::Result<()> {
        let error = self
            .error
            .into_inner()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        error.map_or(Ok(()), Err)
    }
}
