//! Scales published times to this machine: the reference is `std::stable_sort` of W1's words, which
//! took 5.4 s on the machine of the published figures (`M`).

use std::io::Write;

use crate::corpus::words::Words;
use crate::error::BenchError;
use crate::options::Options;
use crate::rival;

/// The duration of the sort and the number of words on the machine of `M`.
const PUBLISHED_SECONDS: f64 = 5.4;
const PUBLISHED_WORDS: f64 = 15_005_719.0;
const DOCUMENTS: u64 = 600_000;

/// The result of a sort.
pub struct SortResult {
    /// The number of words.
    pub words: f64,
    /// The duration in seconds.
    pub seconds: f64,
}

/// Writes the bodies as lines.
pub fn write_bodies(
    input: &mut impl Write,
    documents: u64,
    body: &dyn Fn(u64, &mut Vec<u8>),
) -> std::io::Result<()> {
    let mut line = Vec::new();
    for number in 0..documents {
        line.clear();
        body(number, &mut line);
        line.push(b'\n');
        input.write_all(&line)?;
    }
    Ok(())
}

/// Sorts the words of `bodies` with `std::stable_sort`. Returns `None` if the baseline is not
/// compiled.
pub fn stable_sort(
    options: &Options,
    documents: u64,
    body: &dyn Fn(u64, &mut Vec<u8>),
) -> Result<Option<SortResult>, BenchError> {
    let figures = rival::run(options, "stable_sort", &[], |input| {
        write_bodies(input, documents, body)
    })?;
    let Some(figures) = figures else {
        return Ok(None);
    };
    let found = SortResult {
        words: figures.get("words")?,
        seconds: figures.get("seconds")?,
    };
    eprintln!("  {:.0} words in {:.2} s", found.words, found.seconds);
    Ok(Some(found))
}

/// How much slower this machine is than that of `M`: the factors of all sorts so far. The mean is
/// used.
pub struct Calibration(Vec<f64>);

impl Calibration {
    /// Runs the sort once. Call [`sort_again`](Self::sort_again) after the measurement.
    pub fn begin(options: &Options) -> Result<Self, BenchError> {
        let mut begun = Self(Vec::new());
        begun.sort_again(options)?;
        Ok(begun)
    }

    /// Runs the sort once more.
    pub fn sort_again(&mut self, options: &Options) -> Result<(), BenchError> {
        eprintln!("std::stable_sort of W1's words, to scale what is published");
        let words = Words { seed: options.seed };
        let body = |number: u64, out: &mut Vec<u8>| words.body(number, out);
        let documents = options.calibration.unwrap_or(DOCUMENTS);
        let sorted = stable_sort(options, documents, &body)?;
        self.0.extend(sorted.map(|item| factor(&item)));
        Ok(())
    }

    /// Scales a published time to this machine. Returns `None` if the sort is not compiled.
    pub fn time(&self, published: f64) -> Option<f64> {
        Some(published * self.mean()?)
    }

    /// Scales a published rate to this machine.
    pub fn rate(&self, published: f64) -> Option<f64> {
        Some(published / self.mean()?)
    }

    fn mean(&self) -> Option<f64> {
        let sum: f64 = self.0.iter().sum();
        (!self.0.is_empty()).then(|| sum / self.0.len() as f64)
    }
}

/// The factor of a sort. The time of fewer words is extrapolated by n log n.
fn factor(sorted: &SortResult) -> f64 {
    let steps = |words: f64| words * words.max(2.0).log2();
    sorted.seconds / steps(sorted.words) * steps(PUBLISHED_WORDS) / PUBLISHED_SECONDS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_figures_are_scaled_by_the_sort() {
        let factor_of = |words, seconds| factor(&SortResult { words, seconds });
        assert!((factor_of(PUBLISHED_WORDS, 5.4) - 1.0).abs() < 1e-9);
        let some = Calibration(vec![1.0, factor_of(PUBLISHED_WORDS, 16.2)]);
        let (time, rate) = (some.time(10.0).unwrap(), some.rate(10.0).unwrap());
        assert!((time - 20.0).abs() < 1e-9 && (rate - 5.0).abs() < 1e-9);
        assert_eq!(Calibration(Vec::new()).time(1.0), None);
    }
}
