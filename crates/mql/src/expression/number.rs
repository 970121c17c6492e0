//! Numbers of the four BSON types, and the common type of two numbers.

use num_bigint::BigUint;
use windrow_document::decimal::Rounding;
use windrow_document::{Decimal128, ValueRef};

use super::ExprValue;
use crate::Error;

/// A number of one of the four BSON types.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Number {
    Int(i32),
    Long(i64),
    Double(f64),
    Decimal(Decimal128),
}

/// Two numbers converted to their common type.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pair {
    Int(i32, i32),
    Long(i64, i64),
    Double(f64, f64),
    Decimal(Decimal128, Decimal128),
}

impl Number {
    /// Returns the number in a value, or `None` if the value is not a number.
    pub fn from_value(value: ValueRef<'_>) -> Option<Number> {
        Some(match value {
            ValueRef::Int32(number) => Number::Int(number),
            ValueRef::Int64(number) => Number::Long(number),
            ValueRef::Double(number) => Number::Double(number),
            ValueRef::Decimal128(number) => Number::Decimal(number),
            _ => return None,
        })
    }

    /// Returns an int if the number fits, otherwise a long.
    pub fn int_or_long(number: i64) -> Number {
        i32::try_from(number).map_or(Number::Long(number), Number::Int)
    }

    pub fn to_f64(self) -> f64 {
        match self {
            Number::Int(number) => f64::from(number),
            Number::Long(number) => number as f64,
            Number::Double(number) => number,
            Number::Decimal(number) => number.to_f64(),
        }
    }

    /// Converts to decimal. Doubles are rounded to 15 digits, as in MongoDB's arithmetic of doubles
    /// with decimals.
    pub fn to_decimal(self) -> Decimal128 {
        match self {
            Number::Int(number) => Decimal128::from_i64(i64::from(number)),
            Number::Long(number) => Decimal128::from_i64(number),
            Number::Double(number) => Decimal128::from_f64(number),
            Number::Decimal(number) => number,
        }
    }

    /// Truncates to a whole number. Saturates outside of the range; NaN is 0.
    pub fn to_i64(self) -> i64 {
        match self {
            Number::Int(number) => i64::from(number),
            Number::Long(number) => number,
            Number::Double(number) => number as i64,
            Number::Decimal(number) => match number.to_i64_truncated() {
                Some((whole, _)) => whole,
                None if number.is_nan() => 0,
                None if number.is_negative() => i64::MIN,
                None => i64::MAX,
            },
        }
    }

    /// Rounds to a whole number: doubles half away from zero, decimals half to even. `None` if the
    /// result does not fit, and for NaN.
    pub fn rounded_to_i64(self) -> Option<i64> {
        let whole = |number: Decimal128| number.to_i64_truncated().map(|(whole, _)| whole);
        match self {
            Number::Double(number) => whole(exact_decimal(number.round())),
            Number::Decimal(number) => whole(number.to_places(0, Rounding::HalfEven)),
            number => Some(number.to_i64()),
        }
    }

    /// Converts to a long as MongoDB does for integer operands. A double is truncated, and fails
    /// with 31109 if it does not fit. A decimal is rounded half to even; NaN and a decimal that
    /// does not fit become the smallest long.
    pub fn coerced_to_i64(self) -> Result<i64, Error> {
        const LIMIT: f64 = 9_223_372_036_854_775_808.0;
        match self {
            Number::Double(number) if !(-LIMIT..LIMIT).contains(&number) => {
                let message = format!("Can't coerce out of range value {number} to long");
                Err(Error::new(31109, message))
            }
            Number::Decimal(_) => Ok(self.rounded_to_i64().unwrap_or(i64::MIN)),
            number => Ok(number.to_i64()),
        }
    }

    pub fn is_zero(self) -> bool {
        match self {
            Number::Int(number) => number == 0,
            Number::Long(number) => number == 0,
            Number::Double(number) => number == 0.0,
            Number::Decimal(number) => number.is_zero(),
        }
    }

    pub fn to_value_ref(self) -> ValueRef<'static> {
        match self {
            Number::Int(number) => ValueRef::Int32(number),
            Number::Long(number) => ValueRef::Int64(number),
            Number::Double(number) => ValueRef::Double(number),
            Number::Decimal(number) => ValueRef::Decimal128(number),
        }
    }

    /// Converts both numbers to their common type, the wider of int, long, double and decimal.
    pub fn pair(self, other: Number) -> Pair {
        use Number::{Decimal, Double, Int, Long};
        match (self, other) {
            (Decimal(_), _) | (_, Decimal(_)) => {
                Pair::Decimal(self.to_decimal(), other.to_decimal())
            }
            (Double(_), _) | (_, Double(_)) => Pair::Double(self.to_f64(), other.to_f64()),
            (Int(one), Int(two)) => Pair::Int(one, two),
            (Int(_) | Long(_), Int(_) | Long(_)) => Pair::Long(self.to_i64(), other.to_i64()),
        }
    }
}

impl From<Number> for ExprValue<'_> {
    fn from(number: Number) -> Self {
        ExprValue::Borrowed(number.to_value_ref())
    }
}

/// Converts a double to decimal with all of its digits up to 34, as sums need it.
pub(crate) fn exact_decimal(number: f64) -> Decimal128 {
    if !number.is_finite() || number == 0.0 {
        return if number == 0.0 {
            Decimal128::ZERO
        } else {
            Decimal128::from_f64(number)
        };
    }
    let bits = number.to_bits();
    let raw_exponent = (bits >> 52 & 0x7FF) as i32;
    let fraction = bits & ((1 << 52) - 1);
    let (mantissa, exponent) = match raw_exponent {
        0 => (fraction, -1074),
        _ => (fraction | 1 << 52, raw_exponent - 1075),
    };
    let zeros = mantissa.trailing_zeros() as i32;
    let (mantissa, exponent) = (BigUint::from(mantissa >> zeros), exponent + zeros);
    if exponent >= 0 {
        return Decimal128::from_parts(number < 0.0, mantissa << exponent.unsigned_abs(), 0, false);
    }
    let coefficient = mantissa * BigUint::from(5u32).pow(exponent.unsigned_abs());
    Decimal128::from_parts(number < 0.0, coefficient, exponent, false)
}

/// Formats a double with six significant digits as MongoDB's `$toString` does: "2.5", "1e+30",
/// "0.333333".
pub(crate) fn double_text(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 {
            "Infinity"
        } else {
            "-Infinity"
        }
        .to_owned();
    }
    let whole = number as i64;
    if whole as f64 == number
        && whole.unsigned_abs() < 1_000_000
        && (whole != 0 || number.is_sign_positive())
    {
        return whole.to_string();
    }
    let scientific = format!("{number:.5e}");
    let parts = scientific.split_once('e');
    let parts = parts.and_then(|(mantissa, exponent)| Some((mantissa, exponent.parse().ok()?)));
    let Some((mantissa, exponent)): Option<(&str, i32)> = parts else {
        unreachable!("{scientific} is not in scientific notation");
    };
    if !(-4..6).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", without_zeros(mantissa), exponent.abs());
    }
    let places = (5 - exponent).unsigned_abs() as usize;
    without_zeros(&format!("{number:.places$}")).to_owned()
}

/// Removes trailing zeros after the decimal point, and the point if nothing follows it.
fn without_zeros(text: &str) -> &str {
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        text
    }
}
