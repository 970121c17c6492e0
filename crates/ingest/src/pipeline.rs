//! Measures the time that each stage of an ingestion works and waits.
//!
//! ```text
//! walk → extract (worker processes) → queue → write → make entries of indexes → fold and merge → finish
//! ```
//!
//! A slow stage makes the stage before it wait, by a full queue or by delayed writes. The cores are
//! then free for the slow stage, so no scheduling is needed.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use windrow_document::{ArrayBuf, DocumentBuf, Value, doc};

/// The counters of a stage. All times are sums over its threads.
#[derive(Debug, Default)]
pub struct StageTimes {
    threads: AtomicUsize,
    items: AtomicU64,
    busy_ns: AtomicU64,
    input_wait_ns: AtomicU64,
    output_wait_ns: AtomicU64,
    /// The sum of the bytes in the queue to the next stage, at each item that was added.
    queue_bytes: AtomicU64,
    queue_bytes_max: AtomicUsize,
    queue_count: AtomicU64,
}

impl StageTimes {
    pub(crate) fn set_threads(&self, threads: usize) {
        self.threads.store(threads, Ordering::Relaxed);
    }

    /// Counts items and the time that they took together.
    pub(crate) fn add_items(&self, count: usize, busy: Duration) {
        self.items.fetch_add(count as u64, Ordering::Relaxed);
        add(&self.busy_ns, busy);
    }

    pub(crate) fn add_input_wait(&self, wait: Duration) {
        add(&self.input_wait_ns, wait);
    }

    pub(crate) fn add_output_wait(&self, wait: Duration) {
        add(&self.output_wait_ns, wait);
    }

    /// Records the fill level of the queue to the next stage.
    pub(crate) fn record_queue(&self, bytes: usize) {
        self.queue_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.queue_count.fetch_add(1, Ordering::Relaxed);
        self.queue_bytes_max.fetch_max(bytes, Ordering::Relaxed);
    }

    fn report(&self, name: &'static str, unit: &'static str) -> StageReport {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let duration = |counter| Duration::from_nanos(get(counter));
        let queue = QueueDepth {
            bytes_mean: get(&self.queue_bytes)
                .checked_div(get(&self.queue_count))
                .unwrap_or_default(),
            bytes_max: self.queue_bytes_max.load(Ordering::Relaxed) as u64,
        };
        StageReport {
            name,
            threads: self.threads.load(Ordering::Relaxed).max(1),
            items: get(&self.items),
            unit,
            busy: duration(&self.busy_ns),
            input_wait: duration(&self.input_wait_ns),
            output_wait: duration(&self.output_wait_ns),
            queue: (get(&self.queue_count) > 0).then_some(queue),
        }
    }
}

fn add(counter: &AtomicU64, time: Duration) {
    let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    counter.fetch_add(nanos, Ordering::Relaxed);
}

/// The counters of the stages in this process.
#[derive(Debug, Default)]
pub struct PipelineTimes {
    pub(crate) walk: StageTimes,
    pub(crate) extract: StageTimes,
    pub(crate) write: StageTimes,
}

/// The time that the database worked in the background, and the time that it delayed writes.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct BackgroundTimes {
    /// Creating index entries.
    pub entries: Duration,
    /// Folding and merging sections.
    pub merges: Duration,
    /// Delaying writes.
    pub delays: Duration,
}

impl BackgroundTimes {
    /// Returns the times since earlier ones.
    pub(crate) fn since(self, before: BackgroundTimes) -> BackgroundTimes {
        BackgroundTimes {
            entries: self.entries.saturating_sub(before.entries),
            merges: self.merges.saturating_sub(before.merges),
            delays: self.delays.saturating_sub(before.delays),
        }
    }
}

/// A report about a stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageReport {
    /// The name.
    pub name: &'static str,
    /// The number of threads or worker processes.
    pub threads: usize,
    /// The number of processed items.
    pub items: u64,
    /// The unit of the items. Empty if items are not counted.
    pub unit: &'static str,
    /// The time of work, summed over the threads.
    pub busy: Duration,
    /// The time of waiting for the stage before.
    pub input_wait: Duration,
    /// The time of waiting for the stage after.
    pub output_wait: Duration,
    /// The queue to the next stage, if there is one.
    pub queue: Option<QueueDepth>,
}

/// The fill level of a queue, measured when items were added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueDepth {
    /// The mean, in bytes.
    pub bytes_mean: u64,
    /// The maximum, in bytes.
    pub bytes_max: u64,
}

impl PipelineTimes {
    /// Returns the reports of the stages in this process.
    pub fn stages(&self) -> Vec<StageReport> {
        vec![
            self.walk.report("walk", "files"),
            self.extract.report("extract", "files"),
            self.write.report("write", "documents"),
        ]
    }
}

/// A report about the stages of an ingestion.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PipelineReport {
    /// The stages in the order of the work.
    pub stages: Vec<StageReport>,
    /// The time from start to end.
    pub elapsed: Duration,
}

impl PipelineReport {
    pub(crate) fn new(
        times: &PipelineTimes,
        background: Option<BackgroundTimes>,
        finishing: Duration,
        elapsed: Duration,
    ) -> PipelineReport {
        let delays = background.unwrap_or_default().delays;
        let mut write = times.write.report("write", "documents");
        write.output_wait = delays.min(write.busy);
        write.busy -= write.output_wait;
        let mut stages = vec![
            times.walk.report("walk", "files"),
            times.extract.report("extract", "files"),
            write,
        ];
        if let Some(background) = background {
            stages.push(background_stage("index", background.entries));
            stages.push(background_stage("merge", background.merges));
        }
        stages.push(background_stage("finish", finishing));
        PipelineReport { stages, elapsed }
    }

    /// Returns the stages with times in milliseconds (`busy_ms`), as stored in `files.runs`.
    pub(crate) fn stages_in_milliseconds(&self) -> ArrayBuf {
        let millis = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        self.encode_stages("_ms", &|time| Value::Int64(millis(time)))
    }

    /// Returns the stages with times in seconds (`busy`).
    pub fn stages_in_seconds(&self) -> ArrayBuf {
        self.encode_stages("", &|time| Value::Double(time.as_secs_f64()))
    }

    fn encode_stages(&self, suffix: &str, time: &dyn Fn(Duration) -> Value) -> ArrayBuf {
        let encode = |stage: &StageReport| Value::Document(stage.encode(suffix, time));
        self.stages.iter().map(encode).collect()
    }
}

impl StageReport {
    /// `suffix` is the end of the names of the time fields.
    fn encode(&self, suffix: &str, time: &dyn Fn(Duration) -> Value) -> DocumentBuf {
        let whole = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let mut document = doc! {
            "stage": (self.name),
            "threads": (whole(self.threads as u64)),
            "items": (whole(self.items)),
        };
        let times = [
            ("busy", self.busy),
            ("input_wait", self.input_wait),
            ("output_wait", self.output_wait),
        ];
        for (name, duration) in times {
            document.push(&format!("{name}{suffix}"), time(duration));
        }
        if let Some(queue) = self.queue {
            document.push("queue_bytes_mean", whole(queue.bytes_mean));
            document.push("queue_bytes_max", whole(queue.bytes_max));
        }
        document
    }
}

/// Returns the report of a background stage of the database, which has one thread.
fn background_stage(name: &'static str, busy: Duration) -> StageReport {
    StageReport {
        name,
        threads: 1,
        items: 0,
        unit: "",
        busy,
        input_wait: Duration::ZERO,
        output_wait: Duration::ZERO,
        queue: None,
    }
}
