//! Reports the progress of `windrow index` to programs: a line of JSON every half second.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use windrow_ingest::{Progress, StageReport};
use windrow_page::{QueueBytes, RunProgress, StageProgress};

const INTERVAL: Duration = Duration::from_millis(500);

/// Writes lines to standard error until `is_finished` is set.
pub fn show_progress_lines(progress: &Progress, is_finished: &AtomicBool) {
    let started = Instant::now();
    while !is_finished.load(Ordering::Relaxed) {
        let line = format_line(&run_progress(progress, started.elapsed()));
        // Errors are ignored: if standard error is closed, there is no reader.
        let _ = writeln!(io::stderr().lock(), "{line}");
        thread::park_timeout(INTERVAL);
    }
}

/// Returns the current counters of a run.
pub fn run_progress(progress: &Progress, elapsed: Duration) -> RunProgress {
    let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    RunProgress {
        files_total: get(&progress.files_total),
        files_read: get(&progress.files_read),
        bytes_total: get(&progress.bytes_total),
        bytes_read: get(&progress.bytes_read),
        documents: get(&progress.documents),
        failures: get(&progress.failures),
        elapsed,
        stages: progress.pipeline.stages().iter().map(stage).collect(),
        can_stop: false,
    }
}

fn stage(report: &StageReport) -> StageProgress {
    let queue = report.queue.as_ref();
    StageProgress {
        name: report.name.to_owned(),
        threads: report.threads as u64,
        items: report.items,
        busy_ms: report.busy.as_secs_f64() * 1e3,
        input_wait_ms: report.input_wait.as_secs_f64() * 1e3,
        output_wait_ms: report.output_wait.as_secs_f64() * 1e3,
        queue_bytes: queue.map(|queue| QueueBytes {
            mean: queue.bytes_mean,
            max: queue.bytes_max,
        }),
    }
}

fn format_line(progress: &RunProgress) -> String {
    let stage = |stage: &StageProgress| {
        let queue_mean = stage.queue_bytes.map(|queue| queue.mean);
        let queue_max = stage.queue_bytes.map(|queue| queue.max);
        json!({
            "stage": stage.name, "threads": stage.threads, "items": stage.items,
            "busy_ms": stage.busy_ms, "input_wait_ms": stage.input_wait_ms,
            "output_wait_ms": stage.output_wait_ms,
            "queue_bytes_mean": queue_mean, "queue_bytes_max": queue_max,
        })
    };
    let stages: Vec<Value> = progress.stages.iter().map(stage).collect();
    let line = json!({
        "files_total": progress.files_total, "files_read": progress.files_read,
        "bytes_total": progress.bytes_total, "bytes_read": progress.bytes_read,
        "documents": progress.documents, "failures": progress.failures,
        "elapsed": progress.elapsed.as_secs_f64(), "stages": stages,
    });
    line.to_string()
}

/// Parses a line. Returns `None` if it is not a progress line.
pub fn parse_line(line: &str) -> Option<RunProgress> {
    let line: Value = serde_json::from_str(line).ok()?;
    let whole = |name: &str| line.get(name)?.as_u64();
    let stages = line.get("stages")?.as_array()?.iter();
    Some(RunProgress {
        files_total: whole("files_total")?,
        files_read: whole("files_read")?,
        bytes_total: whole("bytes_total")?,
        bytes_read: whole("bytes_read")?,
        documents: whole("documents")?,
        failures: whole("failures")?,
        elapsed: Duration::try_from_secs_f64(line.get("elapsed")?.as_f64()?).ok()?,
        stages: stages.map(parse_stage).collect::<Option<_>>()?,
        can_stop: false,
    })
}

fn parse_stage(stage: &Value) -> Option<StageProgress> {
    let whole = |name: &str| stage.get(name)?.as_u64();
    let number = |name: &str| stage.get(name)?.as_f64();
    Some(StageProgress {
        name: stage.get("stage")?.as_str()?.to_owned(),
        threads: whole("threads")?,
        items: whole("items")?,
        busy_ms: number("busy_ms")?,
        input_wait_ms: number("input_wait_ms")?,
        output_wait_ms: number("output_wait_ms")?,
        queue_bytes: parse_queue(stage),
    })
}

fn parse_queue(stage: &Value) -> Option<QueueBytes> {
    Some(QueueBytes {
        mean: stage.get("queue_bytes_mean")?.as_u64()?,
        max: stage.get("queue_bytes_max")?.as_u64()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_can_be_read() {
        let stage = |queue_bytes| StageProgress {
            name: "extract".to_owned(),
            threads: 2,
            items: 5,
            busy_ms: 7.5,
            input_wait_ms: 0.25,
            output_wait_ms: 0.0,
            queue_bytes,
        };
        let progress = RunProgress {
            files_total: 10,
            files_read: 5,
            bytes_total: 1 << 40,
            bytes_read: 100,
            documents: 6,
            failures: 1,
            elapsed: Duration::from_millis(1500),
            stages: vec![stage(Some(QueueBytes { mean: 10, max: 20 })), stage(None)],
            can_stop: false,
        };
        assert_eq!(parse_line(&format_line(&progress)), Some(progress));
        for other in ["", "windrow: the folder is locked", "{}", "{\"stages\": 1}"] {
            assert_eq!(parse_line(other), None, "{other}");
        }
    }
}
