//! Measurement of times.

use std::time::Instant;

use crate::error::BenchError;
use crate::report::{Row, median};

/// Returns the seconds that `work` takes, and its result.
pub fn timed<T>(work: impl FnOnce() -> Result<T, BenchError>) -> Result<(f64, T), BenchError> {
    let start = Instant::now();
    let done = work()?;
    Ok((start.elapsed().as_secs_f64(), done))
}

/// Measures two alternatives in turn, so that both see the same load of a shared machine.
pub struct Pair {
    ours: Vec<f64>,
    baseline: Vec<f64>,
}

impl Pair {
    /// Runs both `rounds` times. Each is first in about half of the rounds.
    pub fn measure(
        rounds: usize,
        mut ours: impl FnMut(usize) -> Result<f64, BenchError>,
        mut baseline: impl FnMut(usize) -> Result<f64, BenchError>,
    ) -> Result<Self, BenchError> {
        let mut found = Self {
            ours: Vec::new(),
            baseline: Vec::new(),
        };
        for round in 0..rounds.max(1) {
            if round % 2 == 0 {
                found.baseline.push(baseline(round)?);
                found.ours.push(ours(round)?);
            } else {
                found.ours.push(ours(round)?);
                found.baseline.push(baseline(round)?);
            }
        }
        Ok(found)
    }

    /// Returns the medians as a row of the report.
    pub fn row(&self, name: impl Into<String>, unit: &'static str) -> Row {
        Row::new(name, unit, median(&self.ours), Some(median(&self.baseline)))
    }
}

/// The latencies of many operations.
#[derive(Clone, Debug, Default)]
pub struct Latencies {
    /// Sorted.
    microseconds: Vec<f64>,
}

impl Latencies {
    /// Creates latencies from microseconds in any order.
    pub fn new(mut microseconds: Vec<f64>) -> Self {
        microseconds.sort_by(f64::total_cmp);
        Self { microseconds }
    }

    /// The number of operations.
    pub fn count(&self) -> usize {
        self.microseconds.len()
    }

    /// Returns the quantile `part` in microseconds.
    pub fn at(&self, part: f64) -> f64 {
        let place = (self.count() as f64 * part) as usize;
        let last = self.count().saturating_sub(1);
        let found = self.microseconds.get(place.min(last));
        found.copied().unwrap_or(f64::NAN)
    }

    /// The longest latency in microseconds.
    pub fn longest(&self) -> f64 {
        self.at(1.0)
    }
}

/// Returns the median of the microseconds of `count` calls. Each call receives its index.
pub fn median_us(
    count: usize,
    mut work: impl FnMut(usize) -> Result<(), BenchError>,
) -> Result<f64, BenchError> {
    let time_us = |index| Ok(timed(|| work(index))?.0 * 1e6);
    let all: Result<Vec<f64>, BenchError> = (0..count).map(time_us).collect();
    Ok(Latencies::new(all?).at(0.5))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_found() {
        let some = Latencies::new((1..=100).rev().map(f64::from).collect());
        let check = |part, expected| assert_eq!(some.at(part), expected, "{part}");
        check(0.0, 1.0);
        check(0.5, 51.0);
        check(0.99, 100.0);
        check(1.0, 100.0);
        assert!(Latencies::default().longest().is_nan());
    }

    #[test]
    fn alternatives_are_measured_in_turn() {
        let order = std::cell::RefCell::new(String::new());
        let noted = |name: char, value: f64| {
            order.borrow_mut().push(name);
            Ok(value)
        };
        let pair = Pair::measure(
            3,
            |round| noted('o', round as f64),
            |round| noted('b', 10.0 + round as f64),
        );
        let row = pair.unwrap().row("both", "s");
        assert_eq!((row.ours, row.baseline), (1.0, Some(11.0)));
        assert_eq!(order.into_inner(), "boobbo");
    }
}
