//! Averages and standard deviations: `$avg`, `$stdDevPop` and `$stdDevSamp`, in expressions and in
//! groups.

use windrow_document::{Decimal128, Value};

use super::number::Number;
use super::summation::Sum;

/// A sum and the number of its summands.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Average {
    sum: Sum,
    count: i64,
}

impl Average {
    pub fn add(&mut self, number: Number) {
        self.sum.add(number);
        self.count += 1;
    }

    pub fn merge(&mut self, other: &Average) {
        self.sum.add_sum(&other.sum);
        self.count += other.count;
    }

    /// Returns the average: a double, or a decimal if one of the numbers was a decimal. Null if
    /// there are no numbers.
    pub fn finish(self) -> Value {
        if self.count == 0 {
            return Value::Null;
        }
        if self.sum.is_decimal() {
            let count = Decimal128::from_i64(self.count);
            return Value::Decimal128(self.sum.decimal().divide(count));
        }
        Value::Double(self.sum.double() / self.count as f64)
    }

    /// Returns the average in a sliding window. The sum of whole numbers is exact, so it does not
    /// depend on the order in which numbers enter and leave the window.
    pub fn finish_sliding(self) -> Value {
        match self.sum.number() {
            Number::Int(sum) if self.count > 0 => Value::Double(f64::from(sum) / self.count as f64),
            Number::Long(sum) if self.count > 0 => Value::Double(sum as f64 / self.count as f64),
            _ => self.finish(),
        }
    }
}

/// What numbers are of their population, for deviations and covariances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coverage {
    /// The whole population.
    Population,
    /// A sample, from which the deviation of the population is estimated.
    Sample,
}

impl Coverage {
    /// Returns what the sum of products or squares of this many numbers is divided by.
    pub fn divisor(self, count: i64) -> i64 {
        match self {
            Coverage::Population => count,
            Coverage::Sample => count - 1,
        }
    }
}

/// The mean and the sum of squared differences from it, updated number by number. Source: B. P.
/// Welford, "Note on a method for calculating corrected sums of squares and products" (1962).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deviation {
    coverage: Coverage,
    count: i64,
    mean: f64,
    squares: f64,
}

impl Deviation {
    pub fn new(coverage: Coverage) -> Deviation {
        Deviation {
            coverage,
            count: 0,
            mean: 0.0,
            squares: 0.0,
        }
    }

    pub fn add(&mut self, number: f64) {
        self.count += 1;
        let delta = number - self.mean;
        if delta != 0.0 {
            self.mean += delta / self.count as f64;
            self.squares += delta * (number - self.mean);
        }
    }

    /// If one of the two is empty, the other is copied, because computing it again would round it
    /// again.
    pub fn merge(&mut self, other: &Deviation) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            let coverage = self.coverage;
            *self = Deviation { coverage, ..*other };
            return;
        }
        let (one, two) = (self.count as f64, other.count as f64);
        let delta = other.mean - self.mean;
        if delta != 0.0 {
            self.mean = (one * self.mean + two * other.mean) / (one + two);
            self.squares += delta * delta * (one * two / (one + two));
        }
        self.squares += other.squares;
        self.count += other.count;
    }

    /// Returns the standard deviation in a sliding window.
    pub fn finish_sliding(self) -> Value {
        if !self.squares.is_finite() {
            return Value::Null;
        }
        if self.coverage == Coverage::Population && self.count == 1 {
            return Value::Int32(0);
        }
        self.finish().map_or(Value::Null, Value::Double)
    }

    /// Returns the standard deviation, or `None` if there are too few numbers.
    pub fn finish(self) -> Option<f64> {
        let divisor = self.coverage.divisor(self.count);
        (divisor > 0).then(|| (self.squares / divisor as f64).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deviation_of(numbers: &[f64]) -> Deviation {
        let mut deviation = Deviation::new(Coverage::Population);
        numbers.iter().for_each(|number| deviation.add(*number));
        deviation
    }

    fn merged(one: &[f64], other: &[f64]) -> Option<f64> {
        let mut deviation = deviation_of(one);
        deviation.merge(&deviation_of(other));
        deviation.finish()
    }

    #[test]
    fn merging_with_an_empty_deviation_changes_nothing() {
        for numbers in [
            &[0.1; 3][..],
            &[0.1; 7],
            &[1e200],
            &[1e200, 1e200],
            &[1.5, 3.25, 0.1],
        ] {
            let expected = deviation_of(numbers).finish();
            assert_eq!(merged(&[], numbers), expected, "{numbers:?}");
            assert_eq!(merged(numbers, &[]), expected, "{numbers:?}");
        }
        assert_eq!(merged(&[], &[]), None);
    }

    #[test]
    fn merged_parts_of_equal_numbers_have_no_deviation() {
        let mut all = deviation_of(&[]);
        for _ in 0..50 {
            all.merge(&deviation_of(&[0.1]));
            all.merge(&deviation_of(&[]));
        }
        assert_eq!(all.finish(), Some(0.0));
    }

    #[test]
    fn a_merged_sample_deviation_is_a_sample_deviation() {
        let mut sample = Deviation::new(Coverage::Sample);
        sample.merge(&deviation_of(&[1.0]));
        assert_eq!(sample.finish(), None);
        sample.merge(&deviation_of(&[3.0]));
        assert_eq!(sample.finish(), Some(2.0_f64.sqrt()));
    }
}
