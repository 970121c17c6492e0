//! The traces of `windrow serve`: a thread that sends spans to an OpenTelemetry collector.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use windrow_document::doc;
use windrow_server::{Log, Severity, SpanQueue, Traces};
use windrow_web::Collector;

use super::trace_options::TraceOptions;
use crate::command_line::Failure;

/// The id of the log lines about traces. MongoDB has no such event.
const TRACES: i32 = 9_000_018;

/// The maximum time that a span waits to be batched.
const BATCH_TIME_MAX: Duration = Duration::from_millis(500);

/// The number of attempts to send a request.
const ATTEMPTS: usize = 3;

/// The time between two attempts.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Sends spans. When it is dropped, the waiting spans are sent once.
pub struct TraceExporter {
    /// The traces of the server.
    pub traces: Arc<Traces>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Starts the exporter if an endpoint is configured.
pub fn start_traces(
    log: &Arc<Log>,
    options: &TraceOptions,
) -> Result<Option<TraceExporter>, Failure> {
    let Some(endpoint) = &options.endpoint else {
        return Ok(None);
    };
    let (traces, queue) = Traces::new(options.sample_rate);
    let exporter = Exporter {
        log: log.clone(),
        traces: traces.clone(),
        queue,
        collector: Collector::new(endpoint.clone()).map_err(Failure::runtime)?,
        stop: Arc::default(),
    };
    let stop = exporter.stop.clone();
    let thread = thread::Builder::new().name("traces".into());
    let thread = thread
        .spawn(move || exporter.run())
        .map_err(Failure::runtime)?;
    Ok(Some(TraceExporter {
        traces,
        stop,
        thread: Some(thread),
    }))
}

impl Drop for TraceExporter {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic was already logged.
            let _ = thread.join();
        }
    }
}

struct Exporter {
    log: Arc<Log>,
    traces: Arc<Traces>,
    queue: SpanQueue,
    collector: Collector,
    stop: Arc<AtomicBool>,
}

impl Exporter {
    fn run(&self) {
        let mut has_failed = false;
        loop {
            let is_last = self.stop.load(Relaxed);
            let wait = if is_last {
                Duration::ZERO
            } else {
                BATCH_TIME_MAX
            };
            let Some((request, count)) = self.queue.next_request(wait) else {
                if is_last {
                    return;
                }
                continue;
            };
            let failure = self.send(&request);
            match &failure {
                None => self.traces.count_exported(count),
                Some(_) => self.traces.count_failed(count),
            }
            self.report(has_failed, failure.as_deref());
            has_failed = failure.is_some();
            if has_failed && is_last {
                return;
            }
        }
    }

    /// Sends a request, with retries. Returns the error of the last attempt.
    fn send(&self, request: &str) -> Option<String> {
        for attempt in 1.. {
            let Err(error) = self.collector.send(request.to_owned()) else {
                return None;
            };
            let is_last = attempt >= ATTEMPTS || self.stop.load(Relaxed);
            if !error.can_retry || is_last {
                return Some(error.to_string());
            }
            thread::sleep(RETRY_PAUSE);
        }
        None
    }

    /// Logs when sending begins to fail, and when it works again.
    fn report(&self, has_failed: bool, failure: Option<&str>) {
        let (severity, message) = match (has_failed, failure) {
            (false, Some(_)) => (Severity::Warning, "The collector does not take traces"),
            (true, None) => (Severity::Info, "The collector takes traces again"),
            _ => return,
        };
        let attr = doc! { "error": (failure.unwrap_or_default()) };
        self.log
            .write(severity, "NETWORK", TRACES, "traces", message, attr);
    }
}
