//! The history of the server: samples of `serverStatus` in a ring buffer in memory.
//!
//! A single thread takes the samples for all pages (`sampler`). A sample is a row of numbers, one
//! for each line of the charts.

pub mod charts;

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use windrow_client::server_status::{latencies_between, number, percentile_ms};
use windrow_document::{Document, DocumentBuf};

use charts::{Source, lines};

/// The number of samples that are kept: four hours, about 1 MB.
const SAMPLES_MAX: usize = 7_200;

/// The history of the server.
#[derive(Debug, Default)]
pub struct History {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    samples: VecDeque<Sample>,
    /// The newest status. The next sample contains the difference to it.
    status: Option<(Instant, DocumentBuf)>,
    /// The newest sample as JSON, which all event streams share.
    newest: Option<Arc<str>>,
    /// The reason why the last sample failed.
    problem: Option<String>,
}

/// A sample: a number for each line of the charts. NaN if it is unknown.
#[derive(Clone, Debug, PartialEq)]
struct Sample {
    /// Milliseconds since 1970-01-01 UTC.
    millis: i64,
    values: Box<[f32]>,
}

/// The history of a period: averaged samples.
#[derive(Debug, Default)]
pub struct Window {
    rows: Vec<Sample>,
}

/// A summary of a line of a chart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// The newest value.
    pub now: f32,
    /// The average.
    pub average: f32,
    /// The maximum.
    pub highest: f32,
}

impl History {
    /// Adds a sample: the difference between this status and the one before.
    pub fn record(&self, status: DocumentBuf) {
        let now = Instant::now();
        let millis = SystemTime::now().duration_since(UNIX_EPOCH);
        let millis = millis.map_or(0, |it| i64::try_from(it.as_millis()).unwrap_or(i64::MAX));
        let mut state = self.lock();
        state.problem = None;
        if let Some((before, old)) = &state.status {
            let seconds = now.duration_since(*before).as_secs_f64().max(1e-3);
            let values = lines().map(|line| {
                let value = value(
                    line.source,
                    old.as_document(),
                    status.as_document(),
                    seconds,
                );
                value as f32
            });
            let sample = Sample {
                millis,
                values: values.collect(),
            };
            state.newest = Some(sample.to_json().into());
            if state.samples.len() >= SAMPLES_MAX {
                state.samples.pop_front();
            }
            state.samples.push_back(sample);
        }
        state.status = Some((now, status));
    }

    /// Records why a sample failed.
    pub fn record_problem(&self, problem: String) {
        let mut state = self.lock();
        state.problem = Some(problem);
        state.status = None;
    }

    /// Returns the reason why the last sample failed.
    pub fn problem(&self) -> Option<String> {
        self.lock().problem.clone()
    }

    /// Returns the newest sample as JSON.
    pub fn newest(&self) -> Option<Arc<str>> {
        self.lock().newest.clone()
    }

    /// Returns the last minutes, averaged to at most `rows_max` rows.
    pub fn window(&self, minutes: u32, rows_max: usize) -> Window {
        let state = self.lock();
        let newest = state.samples.back().map_or(0, |sample| sample.millis);
        let from = newest - i64::from(minutes) * 60_000;
        let skipped = state.samples.partition_point(|it| it.millis < from);
        let samples: Vec<&Sample> = state.samples.iter().skip(skipped).collect();
        let group = samples.len().div_ceil(rows_max.max(1)).max(1);
        let rows = samples.chunks(group).filter_map(average_samples);
        Window {
            rows: rows.collect(),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Computes a value from two consecutive statuses. A counter that decreased belongs to a restarted
/// server and counts from zero.
fn value(source: Source, old: Document<'_>, new: Document<'_>, seconds: f64) -> f64 {
    let rate = |path: &[&str]| (number(new, path) - number(old, path)).max(0.0) / seconds;
    match source {
        Source::Now(path) => number(new, path),
        Source::Scaled(path, factor) => number(new, path) * factor,
        Source::Rate(path) => rate(path),
        Source::RateOfSum(paths, factor) => {
            paths.iter().map(|path| rate(path)).sum::<f64>() * factor
        }
        Source::Latency(class, part) => {
            percentile_ms(&latencies_between(old, new, class), part).unwrap_or(f64::NAN)
        }
    }
}

/// Returns the averages of samples, with the time of the last one. Unknown numbers are skipped.
fn average_samples(samples: &[&Sample]) -> Option<Sample> {
    let last = samples.last()?;
    let average = |column: usize| {
        let values = samples.iter().filter_map(|it| it.values.get(column));
        average(values.copied())
    };
    Some(Sample {
        millis: last.millis,
        values: (0..last.values.len()).map(average).collect(),
    })
}

fn average(values: impl Iterator<Item = f32>) -> f32 {
    let present = values.filter(|value| !value.is_nan());
    let (sum, count) = present.fold((0.0, 0u32), |(sum, count), value| {
        (sum + f64::from(value), count + 1)
    });
    (sum / f64::from(count)) as f32
}

impl Sample {
    /// Returns `[milliseconds, numbers…]` as JSON; unknown numbers are null.
    fn to_json(&self) -> String {
        let mut json = format!("[{}", self.millis);
        for value in &self.values {
            // Writing to a string cannot fail.
            let _ = if value.is_finite() {
                write!(json, ",{}", rounded(*value))
            } else {
                write!(json, ",null")
            };
        }
        json.push(']');
        json
    }
}

/// Rounds a number to the precision of the charts.
fn rounded(value: f32) -> f32 {
    if value.abs() < 1000.0 {
        (value * 1000.0).round() / 1000.0
    } else {
        value.round()
    }
}

impl Window {
    /// Returns the rows as JSON.
    pub fn to_json(&self) -> String {
        let rows: Vec<String> = self.rows.iter().map(Sample::to_json).collect();
        format!("[{}]", rows.join(","))
    }

    /// Returns the summary of a column. `None` if it has no numbers.
    pub fn summary(&self, column: usize) -> Option<Summary> {
        let values = || {
            let values = self.rows.iter().filter_map(|row| row.values.get(column));
            values.copied().filter(|value| !value.is_nan())
        };
        Some(Summary {
            now: values().next_back()?,
            average: average(values()),
            highest: values().fold(f32::MIN, f32::max),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::doc;

    fn sample(millis: i64, values: &[f32]) -> Sample {
        Sample {
            millis,
            values: values.into(),
        }
    }

    #[test]
    fn samples_are_json() {
        let json = sample(5, &[0.12345, f32::NAN, 1_234_567.8]).to_json();
        assert_eq!(json, "[5,0.123,null,1234568]");
    }

    #[test]
    fn numbers_come_from_two_states() {
        let (old, new) = (
            doc! { "opcounters": { "insert": 10 }, "connections": { "current": 3 } },
            doc! { "opcounters": { "insert": 30 }, "connections": { "current": 5 } },
        );
        let value = |source| value(source, old.as_document(), new.as_document(), 2.0);
        assert_eq!(value(Source::Rate(&["opcounters", "insert"])), 10.0);
        assert_eq!(value(Source::Now(&["connections", "current"])), 5.0);
        assert_eq!(value(Source::Rate(&["none"])), 0.0);
        assert!(value(Source::Latency("reads", 0.5)).is_nan());
    }

    #[test]
    fn the_oldest_samples_go() {
        let history = History::default();
        for _ in 0..=SAMPLES_MAX + 1 {
            history.record(doc! { "connections": { "current": 1 } });
        }
        assert_eq!(history.lock().samples.len(), SAMPLES_MAX);
        let rows = history.window(240, 100).rows;
        assert_eq!(rows.len(), 100);
        assert!(history.newest().is_some());
    }

    #[test]
    fn windows_have_averages() {
        let samples = [sample(1, &[1.0, f32::NAN]), sample(2, &[3.0, 8.0])];
        let row = average_samples(&[&samples[0], &samples[1]]).unwrap();
        assert_eq!(row, sample(2, &[2.0, 8.0]));
        let window = Window {
            rows: samples.to_vec(),
        };
        let expected = Summary {
            now: 3.0,
            average: 2.0,
            highest: 3.0,
        };
        assert_eq!(window.summary(0), Some(expected));
        assert_eq!(window.summary(7), None);
    }
}
