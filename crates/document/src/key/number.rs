//! Key bytes of numbers: a common exact encoding of doubles, 64-bit integers and decimals.
//!
//! ```text
//! 10 NaN · 11 -∞ · 12 huge · 13–1A eight to one bytes · 1B small · 1C zero
//! 1D small · 1E–25 one to eight bytes · 26 huge · 27 +∞        (10–1B: bytes complemented)
//!
//! sized  1 ≤ |v| < 2^63: the integral part w as (2w + f) in 1–8 bytes, big-endian.
//!        f = 1: the first 63 bits of the fraction follow in groups of seven, each as a byte
//!        (2·bits + m). m = 1: more groups follow; after the ninth group, decimal digits and 00.
//! small  |v| < 1, and huge, |v| ≥ 2^63: the largest double ≤ |v| as (2·bits + r) in 8 bytes,
//!        big-endian. r = 1: the decimal exponent + 8192 (2 bytes, big-endian), digits, 00.
//! ```
//!
//! Only decimals have r = 1 or decimal digits. A double's fraction has at most 52 bits, and
//! trailing zero groups are omitted, so most stored numbers take few bytes.

use num_bigint::BigUint;

use crate::ValueRef;
use crate::decimal::DecimalParts;

use super::shape;

pub(super) const NAN: u8 = 0x10;
pub(super) const NEGATIVE_INFINITY: u8 = 0x11;
pub(super) const ZERO: u8 = 0x1C;
pub(super) const POSITIVE_SMALL: u8 = 0x1D;
pub(super) const POSITIVE_HUGE: u8 = 0x26;
pub(super) const POSITIVE_INFINITY: u8 = 0x27;
/// Added to decimal exponents to make them unsigned.
const EXPONENT_BIAS: i32 = 8192;

/// Appends the ascending key bytes of a number.
pub(super) fn append(key: &mut Vec<u8>, value: ValueRef<'_>) {
    match value {
        ValueRef::Int32(number) => append_whole(key, i64::from(number)),
        ValueRef::Int64(number) => append_whole(key, number),
        ValueRef::Double(number) => append_double(key, number),
        ValueRef::Decimal128(number) => match number.parts() {
            DecimalParts::NotANumber => key.push(NAN),
            DecimalParts::Infinite { negative: true } => key.push(NEGATIVE_INFINITY),
            DecimalParts::Infinite { negative: false } => key.push(POSITIVE_INFINITY),
            DecimalParts::Finite { coefficient: 0, .. } => key.push(ZERO),
            DecimalParts::Finite {
                negative,
                coefficient,
                exponent,
            } => {
                let magnitude = encode_decimal(coefficient, exponent);
                push(key, negative, &magnitude);
            }
        },
        _ => {}
    }
}

/// Returns the shape's kind of the number, if its key bytes suggest another type.
pub(super) fn shape_entry(value: ValueRef<'_>) -> Option<u8> {
    match value {
        ValueRef::Int64(number) => i32::try_from(number).is_ok().then_some(shape::INT64),
        ValueRef::Double(number) if number == 0.0 && number.is_sign_negative() => {
            Some(shape::NEGATIVE_ZERO)
        }
        ValueRef::Double(number) => {
            let suggests_whole = number.fract() == 0.0 && number.abs() < 2f64.powi(63);
            let is_least = number == -(2f64.powi(63));
            (suggests_whole || is_least).then_some(shape::DOUBLE)
        }
        _ => None,
    }
}

/// The encoding of a magnitude: the tag of the positive number, and what follows it.
struct EncodedMagnitude {
    tag: u8,
    bytes: [u8; 8],
    length: usize,
    /// The first 63 bits of the fraction, and whether decimal digits follow.
    fraction: Option<(u64, bool)>,
    rest: Vec<u8>,
}

impl EncodedMagnitude {
    fn from_whole(whole: u64, fraction: Option<(u64, bool)>) -> EncodedMagnitude {
        let marked = whole << 1 | u64::from(fraction.is_some());
        let length = 8 - marked.leading_zeros() as usize / 8;
        EncodedMagnitude {
            tag: POSITIVE_SMALL + length as u8,
            bytes: (marked << (8 * (8 - length))).to_be_bytes(),
            length,
            fraction,
            rest: Vec::new(),
        }
    }

    fn from_double(tag: u8, double: f64) -> EncodedMagnitude {
        let bytes = (double.to_bits() << 1).to_be_bytes();
        EncodedMagnitude {
            tag,
            bytes,
            length: 8,
            fraction: None,
            rest: Vec::new(),
        }
    }
}

fn push(key: &mut Vec<u8>, negative: bool, magnitude: &EncodedMagnitude) {
    let start = key.len();
    key.push(magnitude.tag);
    let (bytes, _) = magnitude.bytes.split_at(magnitude.length);
    key.extend_from_slice(bytes);
    if let Some((bits, has_digits)) = magnitude.fraction {
        push_fraction(key, bits, has_digits);
    }
    key.extend_from_slice(&magnitude.rest);
    if negative {
        key.iter_mut().skip(start).for_each(|byte| *byte = !*byte);
        if let Some(tag) = key.get_mut(start) {
            *tag = tag_complement(magnitude.tag);
        }
    }
}

/// The number of seven-bit groups in 63 bits.
pub(super) const FRACTION_GROUPS: u32 = 9;

fn push_fraction(key: &mut Vec<u8>, bits: u64, has_digits: bool) {
    for group in 1..=FRACTION_GROUPS {
        let left = 7 * (FRACTION_GROUPS - group);
        let behind = bits & ((1 << left) - 1);
        let more = behind != 0 || has_digits;
        key.push((bits >> left & 0x7F) as u8 * 2 + u8::from(more));
        if !more {
            break;
        }
    }
}

/// Returns the tag of the negative number with the same magnitude.
pub(super) fn tag_complement(tag: u8) -> u8 {
    2 * ZERO - tag
}

fn append_whole(key: &mut Vec<u8>, number: i64) {
    match number {
        0 => key.push(ZERO),
        i64::MIN => push(
            key,
            true,
            &EncodedMagnitude::from_double(POSITIVE_HUGE, 2f64.powi(63)),
        ),
        _ => push(
            key,
            number < 0,
            &EncodedMagnitude::from_whole(number.unsigned_abs(), None),
        ),
    }
}

fn append_double(key: &mut Vec<u8>, number: f64) {
    let magnitude = number.abs();
    let encoded = if number.is_nan() {
        return key.push(NAN);
    } else if magnitude == 0.0 {
        return key.push(ZERO);
    } else if magnitude.is_infinite() {
        return key.push(if number < 0.0 {
            NEGATIVE_INFINITY
        } else {
            POSITIVE_INFINITY
        });
    } else if magnitude < 1.0 {
        EncodedMagnitude::from_double(POSITIVE_SMALL, magnitude)
    } else if magnitude >= 2f64.powi(63) {
        EncodedMagnitude::from_double(POSITIVE_HUGE, magnitude)
    } else {
        let fraction = magnitude.fract();
        let bits = (fraction * 2f64.powi(63)) as u64;
        EncodedMagnitude::from_whole(magnitude as u64, (fraction != 0.0).then_some((bits, false)))
    };
    push(key, number < 0.0, &encoded);
}

fn power_of_ten(exponent: u32) -> BigUint {
    BigUint::from(10u32).pow(exponent)
}

/// Encodes coefficient · 10^exponent, which is not zero.
fn encode_decimal(coefficient: u128, exponent: i32) -> EncodedMagnitude {
    let digits = coefficient.to_string();
    let adjusted = exponent + digits.len() as i32 - 1;
    if (0..=19).contains(&adjusted) {
        let unit = power_of_ten(exponent.min(0).unsigned_abs());
        let number = BigUint::from(coefficient) * power_of_ten(exponent.max(0) as u32);
        let whole = &number / &unit;
        if let Some(whole) = u64::try_from(whole).ok().filter(|whole| *whole < 1 << 63) {
            return encode_sized_decimal(whole, &number % &unit, &unit);
        }
    }
    encode_unsized_decimal(coefficient, exponent, &digits, adjusted)
}

fn encode_sized_decimal(whole: u64, rest: BigUint, unit: &BigUint) -> EncodedMagnitude {
    if rest == BigUint::ZERO {
        return EncodedMagnitude::from_whole(whole, None);
    }
    let shifted: BigUint = &rest << 63u32;
    // The rest is less than the unit.
    let Ok(bits) = u64::try_from(&shifted / unit) else {
        unreachable!("{rest}/{unit} is no fraction");
    };
    let exact = &shifted % unit == BigUint::ZERO;
    let mut magnitude = EncodedMagnitude::from_whole(whole, Some((bits, !exact)));
    if !exact {
        let places = unit.to_string().len() - 1;
        let digits = format!("{:0>places$}", rest.to_string());
        magnitude
            .rest
            .extend_from_slice(digits.trim_end_matches('0').as_bytes());
        magnitude.rest.push(0);
    }
    magnitude
}

fn encode_unsized_decimal(
    coefficient: u128,
    exponent: i32,
    digits: &str,
    adjusted: i32,
) -> EncodedMagnitude {
    let tag = if adjusted < 0 {
        POSITIVE_SMALL
    } else {
        POSITIVE_HUGE
    };
    let text = format!("{coefficient}e{exponent}");
    let nearest: f64 = match text.parse() {
        Ok(nearest) => nearest,
        Err(error) => unreachable!("{text} is a number: {error}"),
    };
    let mut double = nearest.min(f64::MAX);
    let mut order = compare_exact(double, coefficient, exponent);
    if order == std::cmp::Ordering::Greater {
        double = f64::from_bits(double.to_bits().saturating_sub(1));
        order = std::cmp::Ordering::Less;
    }
    let mut magnitude = EncodedMagnitude::from_double(tag, double);
    if order != std::cmp::Ordering::Equal {
        if let Some(last) = magnitude.bytes.last_mut() {
            *last |= 1;
        }
        let biased = (adjusted + EXPONENT_BIAS) as u16;
        magnitude.rest.extend_from_slice(&biased.to_be_bytes());
        magnitude
            .rest
            .extend_from_slice(digits.trim_end_matches('0').as_bytes());
        magnitude.rest.push(0);
    }
    magnitude
}

/// Compares a finite, non-negative double with coefficient · 10^exponent exactly.
fn compare_exact(double: f64, coefficient: u128, exponent: i32) -> std::cmp::Ordering {
    let bits = double.to_bits();
    let (stored, fraction) = ((bits >> 52) as i32, bits & ((1 << 52) - 1));
    let (mantissa, power) = if stored == 0 {
        (fraction, -1074)
    } else {
        (fraction | 1 << 52, stored - 1075)
    };
    let binary = BigUint::from(mantissa) << power.max(0) as u32;
    let decimal = BigUint::from(coefficient) * power_of_ten(exponent.max(0) as u32);
    let left = binary * power_of_ten(exponent.min(0).unsigned_abs());
    let right = decimal << power.min(0).unsigned_abs();
    left.cmp(&right)
}
