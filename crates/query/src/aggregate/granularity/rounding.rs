//! Rounding to a series of preferred numbers, in doubles and in decimals.
//!
//! A power of ten is multiplied or divided by ten until the series includes the number, so that
//! the digits of a boundary are those that MongoDB returns.

use std::cmp::Ordering;

use windrow_document::{Decimal128, ValueRef};
use windrow_invariant::Bug;

/// A type of numbers that can be rounded.
pub(super) trait Number: Copy {
    fn from_integer(number: i32) -> Self;
    /// A power of ten between 1 and the one that scales a series to the number. Starting here
    /// instead of at 1 results in the same digits.
    fn first_scale(self) -> Self;
    /// Converts a number of a series.
    fn from_double(number: f64) -> Self;
    fn multiply(self, other: Self) -> Self;
    fn divide(self, other: Self) -> Self;
    fn compare(self, other: Self) -> Ordering;
    fn to_text(self) -> String;
}

impl Number for f64 {
    fn from_integer(number: i32) -> f64 {
        f64::from(number)
    }

    /// The rounding errors of all steps add up, so none is skipped.
    fn first_scale(self) -> f64 {
        1.0
    }

    fn from_double(number: f64) -> f64 {
        number
    }

    fn multiply(self, other: f64) -> f64 {
        self * other
    }

    fn divide(self, other: f64) -> f64 {
        self / other
    }

    fn compare(self, other: f64) -> Ordering {
        self.total_cmp(&other)
    }

    fn to_text(self) -> String {
        format!("{self:e}")
    }
}

impl Number for Decimal128 {
    fn from_integer(number: i32) -> Decimal128 {
        Decimal128::from_i64(i64::from(number))
    }

    /// Skips up to 6,176 steps. The numbers of a series have up to three digits.
    fn first_scale(self) -> Decimal128 {
        let exponent = match self.magnitude().unwrap_or(0) {
            magnitude if magnitude > 4 => magnitude - 4,
            magnitude if magnitude < 0 => magnitude,
            _ => 0,
        };
        Decimal128::power_of_ten(exponent)
    }

    fn from_double(number: f64) -> Decimal128 {
        Decimal128::from_f64(number)
    }

    fn multiply(self, other: Decimal128) -> Decimal128 {
        Decimal128::multiply(self, other)
    }

    fn divide(self, other: Decimal128) -> Decimal128 {
        Decimal128::divide(self, other)
    }

    fn compare(self, other: Decimal128) -> Ordering {
        ValueRef::Decimal128(self).compare(ValueRef::Decimal128(other))
    }

    fn to_text(self) -> String {
        self.to_string()
    }
}

/// A series and the power of ten by which its numbers are multiplied.
struct Scaled<N> {
    series: Vec<N>,
    first: N,
    last: N,
    scale: N,
}

impl<N: Number> Scaled<N> {
    fn new(series: &[f64], number: N) -> Result<Scaled<N>, Bug> {
        let series: Vec<N> = series.iter().copied().map(N::from_double).collect();
        let (Some(&first), Some(&last)) = (series.first(), series.last()) else {
            return Err(Bug::new("a series of preferred numbers is empty"));
        };
        let scale = number.first_scale();
        Ok(Scaled {
            series,
            first,
            last,
            scale,
        })
    }

    fn first(&self) -> N {
        self.first.multiply(self.scale)
    }

    fn last(&self) -> N {
        self.last.multiply(self.scale)
    }

    fn scale_up(&mut self) {
        self.scale = self.scale.multiply(N::from_integer(10));
    }

    fn scale_down(&mut self) {
        self.scale = self.scale.divide(N::from_integer(10));
    }

    /// Returns `true` if the power of ten underflows to zero.
    fn is_scaled_to_zero(&self) -> bool {
        self.scale.compare(N::from_integer(0)) == Ordering::Equal
    }

    fn numbers(&self) -> impl DoubleEndedIterator<Item = N> {
        let scale = self.scale;
        self.series.iter().map(move |one| one.multiply(scale))
    }
}

/// The smallest number above `number` that is a number of the series times a power of ten.
pub(super) fn above<N: Number>(series: &[f64], number: N) -> Result<N, Bug> {
    let mut scaled = Scaled::new(series, number)?;
    while number.compare(scaled.last()).is_ge() {
        scaled.scale_up();
    }
    while number.compare(scaled.first()).is_lt() {
        let smallest = scaled.first();
        scaled.scale_down();
        if number.compare(scaled.last()).is_ge() {
            return Ok(smallest);
        }
    }
    let found = scaled.numbers().find(|one| number.compare(*one).is_lt());
    found.ok_or_else(|| outside(number, &scaled))
}

/// The largest number below `number` that is a number of the series times a power of ten. Below the
/// smallest one that the type can represent it is zero.
pub(super) fn below<N: Number>(series: &[f64], number: N) -> Result<N, Bug> {
    let mut scaled = Scaled::new(series, number)?;
    while number.compare(scaled.first()).is_le() {
        scaled.scale_down();
    }
    if scaled.is_scaled_to_zero() {
        return Ok(N::from_integer(0));
    }
    while number.compare(scaled.last()).is_gt() {
        let largest = scaled.last();
        scaled.scale_up();
        if number.compare(scaled.first()).is_le() {
            return Ok(largest);
        }
    }
    let mut from_last = scaled.numbers().rev();
    let found = from_last.find(|one| number.compare(*one).is_gt());
    drop(from_last);
    found.ok_or_else(|| outside(number, &scaled))
}

fn outside<N: Number>(number: N, scaled: &Scaled<N>) -> Bug {
    let (number, first, last) = (
        number.to_text(),
        scaled.first().to_text(),
        scaled.last().to_text(),
    );
    Bug::new(format!(
        "{number} is not in the range of its series, {first} to {last}"
    ))
}
