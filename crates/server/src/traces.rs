//! Traces of commands for OpenTelemetry: spans in a bounded queue, which an exporter empties.
//!
//! A command never waits for the exporter. If the queue is full, its span is dropped and counted.

mod otlp;
mod trace_parent;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

use windrow_document::DocumentBuf;

use crate::random;
pub(crate) use trace_parent::TraceParent;

/// Maximum number of spans that wait for the exporter.
const QUEUE_MAX: usize = 8192;

/// Maximum number of spans in a request to the collector.
const BATCH_MAX: usize = 512;

/// A span: a command from its start to its end.
#[derive(Debug)]
pub struct Span {
    pub(crate) trace_id: u128,
    pub(crate) span_id: u64,
    pub(crate) parent_id: Option<u64>,
    /// Without values of the statement.
    pub(crate) name: String,
    /// Nanoseconds since 1970.
    pub(crate) started_nanos: u128,
    pub(crate) ended_nanos: u128,
    pub(crate) attributes: Vec<(&'static str, SpanValue)>,
    pub(crate) is_failed: bool,
}

/// The value of an attribute.
#[derive(Debug)]
pub(crate) enum SpanValue {
    Text(String),
    Number(i64),
}

/// The traces of a server.
#[derive(Debug)]
pub struct Traces {
    queue: SyncSender<Span>,
    /// The part of the commands without a parent that is traced.
    sample_rate: f64,
    random_state: AtomicU64,
    recorded: AtomicU64,
    dropped: AtomicU64,
    exported: AtomicU64,
    failed: AtomicU64,
}

/// The spans that wait for the exporter.
#[derive(Debug)]
pub struct SpanQueue {
    spans: Receiver<Span>,
}

impl Traces {
    /// Traces this part of the commands without a parent, from 0 to 1.
    pub fn new(sample_rate: f64) -> (Arc<Traces>, SpanQueue) {
        let (queue, spans) = sync_channel(QUEUE_MAX);
        let traces = Traces {
            queue,
            sample_rate,
            random_state: AtomicU64::new(random::bits()),
            recorded: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            exported: AtomicU64::new(0),
            failed: AtomicU64::new(0),
        };
        (Arc::new(traces), SpanQueue { spans })
    }

    /// Returns `true` if a command is traced: as its parent is, or by chance.
    pub(crate) fn samples(&self, parent: Option<&TraceParent>) -> bool {
        match parent {
            Some(parent) => parent.is_sampled,
            None if self.sample_rate >= 1.0 => true,
            None => {
                (self.next_random() >> 11) as f64 / (1u64 << 53) as f64 <= self.sample_rate
                    && self.sample_rate > 0.0
            }
        }
    }

    /// Returns a random number, which is not 0. It does not have to be unpredictable.
    ///
    /// Source: SplitMix64, Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators".
    pub(crate) fn next_random(&self) -> u64 {
        const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
        let state = self
            .random_state
            .fetch_add(STEP, Relaxed)
            .wrapping_add(STEP);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)).max(1)
    }

    /// Passes a span to the exporter, or drops it.
    pub(crate) fn push(&self, span: Span) {
        let counter = match self.queue.try_send(span) {
            Ok(()) => &self.recorded,
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => &self.dropped,
        };
        counter.fetch_add(1, Relaxed);
    }

    /// Counts spans that the collector has taken.
    pub fn count_exported(&self, spans: usize) {
        self.exported.fetch_add(spans as u64, Relaxed);
    }

    /// Counts spans that the collector has not taken.
    pub fn count_failed(&self, spans: usize) {
        self.failed.fetch_add(spans as u64, Relaxed);
    }

    /// Returns the counters by name: spans in the queue, dropped, exported, and refused by the
    /// collector.
    pub(crate) fn counts(&self) -> [(&'static str, u64); 4] {
        [
            ("recorded", self.recorded.load(Relaxed)),
            ("dropped", self.dropped.load(Relaxed)),
            ("exported", self.exported.load(Relaxed)),
            ("failed", self.failed.load(Relaxed)),
        ]
    }

    /// Returns the counters for `serverStatus`.
    pub(crate) fn describe(&self) -> DocumentBuf {
        let mut described = DocumentBuf::new();
        for (name, count) in self.counts() {
            described.push(name, count as i64);
        }
        described
    }
}

impl SpanQueue {
    /// Returns the next spans, as a request of the OpenTelemetry protocol in JSON, and their
    /// number. Waits for the first one up to `wait`, and as long for more of them. `None` if there
    /// are none.
    pub fn next_request(&self, wait: Duration) -> Option<(String, usize)> {
        let first = self.spans.recv_timeout(wait).ok()?;
        let deadline = Instant::now() + wait;
        let mut spans = vec![first];
        while spans.len() < BATCH_MAX {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.spans.recv_timeout(left) {
                Ok(span) => spans.push(span),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            }
        }
        Some((otlp::request(&spans).to_string(), spans.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span() -> Span {
        Span {
            trace_id: 0x0102,
            span_id: 3,
            parent_id: Some(4),
            name: "find c".to_owned(),
            started_nanos: 5,
            ended_nanos: 6,
            attributes: vec![
                ("db.system.name", SpanValue::Text("mongodb".to_owned())),
                ("server.port", SpanValue::Number(7)),
            ],
            is_failed: true,
        }
    }

    #[test]
    fn spans_are_requests_of_the_protocol() {
        let (traces, queue) = Traces::new(1.0);
        traces.push(span());
        let (request, count) = queue.next_request(Duration::from_millis(1)).unwrap();
        assert_eq!(count, 1);
        let expected = concat!(
            r#"{"traceId":"00000000000000000000000000000102","spanId":"0000000000000003","#,
            r#""parentSpanId":"0000000000000004","name":"find c","kind":2,"#,
            r#""startTimeUnixNano":"5","endTimeUnixNano":"6","attributes":["#,
            r#"{"key":"db.system.name","value":{"stringValue":"mongodb"}},"#,
            r#"{"key":"server.port","value":{"intValue":"7"}}],"status":{"code":2}}"#
        );
        assert!(request.contains(expected), "{request}");
        assert!(queue.next_request(Duration::ZERO).is_none());
    }

    #[test]
    fn a_full_queue_drops_spans() {
        let (traces, queue) = Traces::new(1.0);
        for _ in 0..QUEUE_MAX + 10 {
            traces.push(span());
        }
        let counts = traces.counts();
        assert_eq!(
            counts[..2],
            [("recorded", QUEUE_MAX as u64), ("dropped", 10)]
        );
        let (_, count) = queue.next_request(Duration::ZERO).unwrap();
        assert_eq!(count, BATCH_MAX.min(count));
    }

    #[test]
    fn parents_decide_before_chance() {
        let parent = |is_sampled| TraceParent {
            trace_id: 1,
            span_id: 2,
            is_sampled,
        };
        let (none, _queue) = Traces::new(0.0);
        assert!(!none.samples(None) && none.samples(Some(&parent(true))));
        let (all, _queue) = Traces::new(1.0);
        assert!(all.samples(None) && !all.samples(Some(&parent(false))));
        let (half, _queue) = Traces::new(0.5);
        let count = (0..1000).filter(|_| half.samples(None)).count();
        assert!((300..700).contains(&count), "{count}");
    }
}
