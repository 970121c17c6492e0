//! Sums as in MongoDB: the rounding error of doubles is carried along, whole numbers are exact.
//!
//! Source: T. J. Dekker, "A floating-point technique for extending the available precision" (1971).
//! A sum is a pair of doubles, the second of which holds the rounding error of the first.

use windrow_document::{Decimal128, Type, Value};

use super::number::{Number, exact_decimal};

/// A sum of doubles and longs with a precision of about 106 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct DoubleDouble {
    sum: f64,
    rest: f64,
    /// The ordinary sum. It is used for infinities and NaN, for which the pair is wrong.
    plain: f64,
}

const LONG_LIMIT: f64 = 9_223_372_036_854_775_808.0;

fn two_sum(one: f64, other: f64) -> (f64, f64) {
    let sum = one + other;
    let back = sum - one;
    (sum, (one - (sum - back)) + (other - back))
}

impl DoubleDouble {
    /// Adds a double. The rounding error of earlier additions is added to it first.
    pub fn add_double(&mut self, number: f64) {
        self.plain += number;
        let (number, rest) = two_sum(number, self.rest);
        let (sum, error) = two_sum(self.sum, number);
        self.sum = sum;
        self.rest = rest + error;
    }

    /// Adds a long as two halves, each of which is exact as a double.
    pub fn add_long(&mut self, number: i64) {
        let high = number / (1 << 32) * (1 << 32);
        self.add_double((number - high) as f64);
        self.add_double(high as f64);
    }

    pub fn add(&mut self, other: &DoubleDouble) {
        let plain = self.plain + other.plain;
        self.add_double(other.sum);
        self.add_double(other.rest);
        self.plain = plain;
    }

    /// Returns the first double of the pair. The rounding error of the last addition is ignored, as
    /// in MongoDB.
    pub fn double(&self) -> f64 {
        if self.sum.is_nan() {
            self.plain
        } else {
            self.sum
        }
    }

    pub fn decimal(&self) -> Decimal128 {
        // The rounding error of an infinity is NaN.
        if !self.sum.is_finite() {
            return exact_decimal(self.plain);
        }
        exact_decimal(self.sum).add(exact_decimal(self.rest))
    }

    /// Returns the sum as a long, with fractions rounded, or `None` if it does not fit.
    pub fn long(&self) -> Option<i64> {
        let (sum, rest) = two_sum(self.sum, self.rest);
        if !(-LONG_LIMIT..=LONG_LIMIT).contains(&sum) {
            return None;
        }
        let whole = sum.round();
        let rest = ((sum - whole) + rest).round();
        i64::try_from(whole as i128 + rest as i128).ok()
    }
}

/// A sum of numbers of all types. It records the widest type of a summand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sum {
    /// The sum of whole numbers while there is no other number and the sum is small, which is the
    /// common case.
    whole: i64,
    /// The sum of doubles, and of whole numbers from the first double on.
    binary: DoubleDouble,
    decimal: Decimal128,
    widest: Type,
}

/// Up to here a double represents every whole number.
const WHOLE_MAX: i64 = 1 << 53;

impl Default for Sum {
    fn default() -> Sum {
        Sum {
            whole: 0,
            binary: DoubleDouble::default(),
            decimal: Decimal128::ZERO,
            widest: Type::Int32,
        }
    }
}

impl Sum {
    /// Returns the sum of a whole number that is added `times` times. `None` for other numbers, and
    /// if the product overflows.
    pub fn from_repeated(number: &Value, times: u64) -> Option<Sum> {
        let mut sum = Sum::default();
        let number = match number {
            Value::Int32(number) => i64::from(*number),
            Value::Int64(number) => {
                sum.widen(Type::Int64);
                *number
            }
            _ => return None,
        };
        let times = i64::try_from(times).ok()?;
        sum.add_whole(number.checked_mul(times)?);
        Some(sum)
    }

    pub fn add(&mut self, number: Number) {
        match number {
            Number::Int(number) => self.add_whole(i64::from(number)),
            Number::Long(number) => {
                self.widen(Type::Int64);
                self.add_whole(number);
            }
            Number::Double(number) => {
                self.widen(Type::Double);
                self.flush();
                self.binary.add_double(number);
            }
            Number::Decimal(number) => {
                self.widest = Type::Decimal128;
                self.decimal = self.decimal.add(number);
            }
        }
    }

    fn add_whole(&mut self, number: i64) {
        let sum = self.whole.saturating_add(number);
        if self.binary == DoubleDouble::default() && sum.unsigned_abs() < WHOLE_MAX as u64 {
            self.whole = sum;
        } else {
            self.flush();
            self.binary.add_long(number);
        }
    }

    /// Adds the whole numbers to the binary sum, before the number that comes next.
    fn flush(&mut self) {
        if self.whole != 0 {
            self.binary.add_long(self.whole);
            self.whole = 0;
        }
    }

    pub fn add_sum(&mut self, other: &Sum) {
        self.widen(other.widest);
        let mut other = *other;
        self.flush();
        other.flush();
        self.binary.add(&other.binary);
        self.decimal = self.decimal.add(other.decimal);
    }

    fn widen(&mut self, kind: Type) {
        let width = |kind| match kind {
            Type::Int32 => 0,
            Type::Int64 => 1,
            Type::Double => 2,
            _ => 3,
        };
        if width(kind) > width(self.widest) {
            self.widest = kind;
        }
    }

    /// Returns the sum of all numbers that are not decimals.
    fn binary(&self) -> DoubleDouble {
        let mut all = *self;
        all.flush();
        all.binary
    }

    pub fn is_decimal(&self) -> bool {
        self.widest == Type::Decimal128
    }

    pub fn decimal(&self) -> Decimal128 {
        self.decimal.add(self.binary().decimal())
    }

    pub fn double(&self) -> f64 {
        self.binary().double()
    }

    /// Returns the sum as a long, if it is one and fits.
    pub fn long(&self) -> Option<i64> {
        if self.is_decimal() {
            Number::Decimal(self.decimal()).rounded_to_i64()
        } else if self.whole != 0 {
            Some(self.whole)
        } else {
            self.binary.long()
        }
    }

    /// Returns the sum as the widest type of a summand. If it overflows, it is a double.
    pub fn number(&self) -> Number {
        if self.is_decimal() {
            return Number::Decimal(self.decimal());
        }
        match (self.widest, self.long()) {
            (Type::Int64, Some(sum)) => Number::Long(sum),
            (Type::Int32, Some(sum)) => Number::int_or_long(sum),
            _ => Number::Double(self.double()),
        }
    }

    pub fn value(&self) -> Value {
        self.number().to_value_ref().to_value()
    }
}
