//! How large a decimal is, and what follows from that for the digits of its functions.

use windrow_document::Decimal128;
use windrow_document::decimal::DecimalParts;

use super::fixed::{Scale, to_decimal};

/// Bits behind the point for results of about 1: 34 digits are 113, the rest is spare.
pub const BITS: u32 = 320;

/// About the binary logarithm of a finite number that is not 0.
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

/// A scale at which a small number keeps its digits, also where it is squared.
pub fn scale_for(number: Decimal128) -> Scale {
    let small = (-magnitude_bits(number)).max(0) as u32;
    Scale {
        bits: BITS + 2 * small,
    }
}

/// Smaller numbers are their own sine, and the like, to more digits than there are: the next term of the
/// series has three times as many zeros in front. With one digit after the other of a number like 1E-6000
/// the series took seconds.
const TINY_BITS: i64 = -80;

/// The number itself, in all of its digits, where it is so small.
pub fn tiny(x: Decimal128) -> Option<Decimal128> {
    let magnitude = magnitude_bits(x);
    let scale = Scale {
        bits: BITS + magnitude.min(0).unsigned_abs() as u32,
    };
    let is_tiny = magnitude < TINY_BITS && is_finite(x);
    is_tiny.then(|| to_decimal(&scale.of(x), -i64::from(scale.bits)))
}

/// 1 in all of its digits, where the number is so small: its cosine.
pub fn one_beside_tiny(x: Decimal128) -> Option<Decimal128> {
    let scale = Scale { bits: BITS };
    let is_tiny = magnitude_bits(x) < TINY_BITS && is_finite(x);
    is_tiny.then(|| to_decimal(&scale.one(), -i64::from(scale.bits)))
}

pub fn is_finite(number: Decimal128) -> bool {
    matches!(number.parts(), DecimalParts::Finite { .. })
}
