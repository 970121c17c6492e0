//! The magnitude of decimals, and the number of bits that computations need for it.

use windrow_document::Decimal128;
use windrow_document::decimal::DecimalParts;

use super::fixed::{Scale, to_decimal};

/// Fraction bits for results near 1. 34 digits need 113 bits; the others are a reserve for rounding
/// errors.
pub const BITS: u32 = 320;

/// Returns the approximate binary logarithm of a finite number other than 0.
pub fn magnitude_bits(number: Decimal128) -> i64 {
    match number.parts() {
        DecimalParts::Finite {
            coefficient,
            exponent,
            ..
        } if coefficient != 0 => {
            i64::from(coefficient.ilog2()) + i64::from(exponent) * 3_321_928 / 1_000_000
        }
        _ => 0,
    }
}

/// Returns a scale at which a small number and its square keep all digits.
pub fn scale_for(number: Decimal128) -> Scale {
    let small = (-magnitude_bits(number)).max(0) as u32;
    Scale {
        bits: BITS + 2 * small,
    }
}

/// For numbers below this magnitude, sin(x) and similar functions are x to more than 34 digits,
/// because the next term of the series is x³. Without this shortcut the series took seconds for
/// numbers such as 1E-6000.
const TINY_BITS: i64 = -80;

/// Returns the number itself with all of its digits, if it is tiny.
pub fn itself_if_tiny(x: Decimal128) -> Option<Decimal128> {
    let magnitude = magnitude_bits(x);
    let scale = Scale {
        bits: BITS + magnitude.min(0).unsigned_abs() as u32,
    };
    let is_tiny = magnitude < TINY_BITS && is_finite(x);
    is_tiny.then(|| to_decimal(&scale.to_fixed_point(x), -i64::from(scale.bits)))
}

/// Returns the number 1 with 34 digits, if x is tiny: the cosine of x.
pub fn one_if_tiny(x: Decimal128) -> Option<Decimal128> {
    let scale = Scale { bits: BITS };
    let is_tiny = magnitude_bits(x) < TINY_BITS && is_finite(x);
    is_tiny.then(|| to_decimal(&scale.one(), -i64::from(scale.bits)))
}

pub fn is_finite(number: Decimal128) -> bool {
    matches!(number.parts(), DecimalParts::Finite { .. })
}
