//! A pool of worker processes.

use std::io;
use std::num::NonZero;
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use windrow_extract::FilePart;

use crate::file_event::FileEvent;
use crate::pipeline::StageTimes;
use crate::walk::FileEntry;
use crate::worker::{Worker, WorkerConfig};

/// Receives the events of files, with the number of the worker and the file.
pub type EventSink<'s, 'f, F> = dyn Fn(usize, &'f F, FileEvent) -> ControlFlow<()> + Sync + 's;

/// Starts worker processes and distributes files to them.
#[derive(Debug, Clone)]
pub struct WorkerPool {
    config: WorkerConfig,
    workers: usize,
}

impl WorkerPool {
    /// Creates a pool with a worker for each core.
    pub fn new(config: WorkerConfig) -> Self {
        let workers = thread::available_parallelism().map_or(1, NonZero::get);
        WorkerPool { config, workers }
    }

    /// Sets the number of workers, at least 1.
    pub fn with_workers(self, workers: usize) -> Self {
        WorkerPool {
            workers: workers.max(1),
            ..self
        }
    }

    /// Returns the number of workers.
    pub fn workers(&self) -> usize {
        self.workers
    }

    /// Reads all `files` and calls `sink` with their events, from a thread for each worker.
    ///
    /// The events of a file are sent in order by a single worker and end with [`FileEvent::End`]. A
    /// sink that blocks also blocks its worker, so that output does not accumulate. If the sink
    /// returns [`ControlFlow::Break`], no further file is read.
    ///
    /// # Errors
    /// Fails if a worker cannot be started. Files without an [`FileEvent::End`] were not read.
    pub fn run<'f, F>(&self, files: &'f [F], sink: &EventSink<'_, 'f, F>) -> io::Result<()>
    where
        F: ReadTask,
    {
        self.run_timed(files, &StageTimes::default(), sink)
    }

    /// As [`run`](Self::run). Adds what the workers do to `times`.
    pub(crate) fn run_timed<'f, F>(
        &self,
        files: &'f [F],
        times: &StageTimes,
        sink: &EventSink<'_, 'f, F>,
    ) -> io::Result<()>
    where
        F: ReadTask,
    {
        // Removed after the workers have exited.
        let temporary = self.create_temporary_folder()?;
        let config = WorkerConfig {
            temporary: temporary.as_ref().map(|folder| folder.path().to_path_buf()),
            ..self.config.clone()
        };
        let queue = FileQueue::new(files);
        let workers = self.workers.min(files.len());
        times.set_threads(workers);
        thread::scope(|scope| {
            for number in 0..workers {
                let (queue, config) = (&queue, &config);
                scope.spawn(move || queue.record(work(config, number, queue, times, sink)));
            }
        });
        queue.finish()
    }

    /// Creates the folder for the files of programs, if there are programs.
    fn create_temporary_folder(&self) -> io::Result<Option<TempDir>> {
        if self.config.programs.is_empty() {
            return Ok(None);
        }
        let folder = tempfile::Builder::new()
            .prefix("windrow-workers-")
            .tempdir();
        folder.map(Some)
    }
}

/// Reads files in a worker until the queue is empty.
fn work<'f, F: ReadTask>(
    config: &WorkerConfig,
    number: usize,
    queue: &FileQueue<'f, F>,
    times: &StageTimes,
    sink: &EventSink<'_, 'f, F>,
) -> io::Result<()> {
    let mut worker = Worker::start(config)?;
    while let Some(file) = queue.next() {
        let (started, mut in_sink) = (Instant::now(), Duration::ZERO);
        let mut flow = ControlFlow::Continue(());
        let entry = file.file();
        worker.extract(
            &entry.path,
            &entry.languages,
            file.file_part(),
            &mut |event| {
                if flow.is_continue() {
                    let sent = Instant::now();
                    flow = sink(number, file, event);
                    in_sink += sent.elapsed();
                }
            },
        )?;
        times.add_items(1, started.elapsed().saturating_sub(in_sink));
        if flow.is_break() {
            queue.stop();
        }
    }
    Ok(())
}

/// A file to read, or a part of one.
pub trait ReadTask: Sync {
    /// The file.
    fn file(&self) -> &FileEntry;

    /// The part of the members of a mailbox or archive to extract.
    fn file_part(&self) -> FilePart {
        FilePart::WHOLE
    }
}

impl ReadTask for FileEntry {
    fn file(&self) -> &FileEntry {
        self
    }
}

/// Distributes files until a worker fails or a sink returns [`ControlFlow::Break`].
struct FileQueue<'f, F> {
    files: &'f [F],
    next: AtomicUsize,
    stopped: AtomicBool,
    error: Mutex<Option<io::Error>>,
}

impl<'f, F> FileQueue<'f, F> {
    fn new(files: &'f [F]) -> Self {
        FileQueue {
            files,
            next: AtomicUsize::new(0),
            stopped: AtomicBool::new(false),
            error: Mutex::new(None),
        }
    }

    fn next(&self) -> Option<&'f F> {
        if self.stopped.load(Ordering::Relaxed) {
            return None;
        }
        self.files.get(self.next.fetch_add(1, Ordering::Relaxed))
    }

    fn record(&self, result: io::Result<()>) {
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
