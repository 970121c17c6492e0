//! Parsing and formatting of decimals.

use std::fmt;

use num_bigint::BigUint;

use super::{DIGITS, Decimal128, DecimalParts, EXPONENT_MIN, SIGN};

/// A parsed decimal.
enum Notation {
    Finite(Digits),
    /// An infinity or NaN.
    Special(Decimal128),
}

/// The number (-1)^negative · coefficient · 10^exponent, possibly with more digits.
struct Digits {
    negative: bool,
    /// The leading digits, at most [`COEFFICIENT_DIGITS`].
    coefficient: u128,
    exponent: i32,
    /// A digit other than zero follows the coefficient.
    inexact: bool,
}

/// The number of decimal digits that always fit into a `u128`.
const COEFFICIENT_DIGITS: usize = 38;

impl Decimal128 {
    /// Parses "1.50", "-1E+3", "Infinity", "NaN" and the like, ignoring case. More than 34 digits
    /// are rounded half to even. Returns `None` if the text is not a number.
    pub fn parse(text: &str) -> Option<Decimal128> {
        match parse_notation(text)? {
            Notation::Special(number) => Some(number),
            Notation::Finite(digits) => Some(Decimal128::from_parts(
                digits.negative,
                BigUint::from(digits.coefficient),
                digits.exponent,
                digits.inexact,
            )),
        }
    }

    /// Like [`Decimal128::parse`], with the rules of MongoDB's `$toDecimal`: digits after the 34th
    /// are cut off. Also returns `None` if the number is out of range, including a number that
    /// loses digits because its last digit is below 1E-6176.
    pub fn parse_truncated(text: &str) -> Option<Decimal128> {
        let Digits {
            negative,
            mut coefficient,
            exponent,
            inexact,
        } = match parse_notation(text)? {
            Notation::Special(number) => return Some(number),
            Notation::Finite(digits) => digits,
        };
        let digits = coefficient.checked_ilog10().map_or(0, |log| log + 1);
        let excess = digits.saturating_sub(DIGITS);
        let unit = 10u128.pow(excess);
        let inexact = inexact || coefficient % unit != 0;
        coefficient /= unit;
        let exponent = exponent.saturating_add(excess as i32);
        let below = EXPONENT_MIN.saturating_sub(exponent);
        if below <= 0 {
            let number = Decimal128::from_clamped(negative, coefficient, exponent);
            return (!number.is_infinite()).then_some(number);
        }
        if coefficient == 0 {
            return Some(Decimal128::pack(negative, 0, EXPONENT_MIN));
        }
        let unit = 10u128.checked_pow(below as u32)?;
        let exact = !inexact && coefficient % unit == 0;
        exact.then(|| Decimal128::pack(negative, coefficient / unit, EXPONENT_MIN))
    }
}

fn parse_notation(text: &str) -> Option<Notation> {
    let (negative, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let special = match rest.to_ascii_lowercase().as_str() {
        "infinity" | "inf" => Some(Decimal128::infinite(negative)),
        "nan" if negative => Some(Decimal128(SIGN | Decimal128::NAN.0)),
        "nan" => Some(Decimal128::NAN),
        _ => None,
    };
    if let Some(number) = special {
        return Some(Notation::Special(number));
    }
    let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, parse_exponent(exponent)?),
        None => (rest, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = || whole.bytes().chain(fraction.bytes());
    if digits().next().is_none() || !digits().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let significant = || digits().skip_while(|byte| *byte == b'0');
    let leading = significant().take(COEFFICIENT_DIGITS);
    let coefficient = leading.fold(0, |sum, digit| sum * 10 + u128::from(digit - b'0'));
    let inexact = significant()
        .skip(COEFFICIENT_DIGITS)
        .any(|byte| byte != b'0');
    let dropped = significant().count().saturating_sub(COEFFICIENT_DIGITS);
    let exponent = exponent
        .saturating_sub_unsigned(u32::try_from(fraction.len()).ok()?)
        .saturating_add_unsigned(u32::try_from(dropped).ok()?);
    Some(Notation::Finite(Digits {
        negative,
        coefficient,
        exponent,
        inexact,
    }))
}

fn parse_exponent(text: &str) -> Option<i32> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let magnitude = digits
        .parse::<i32>()
        .unwrap_or(i32::MAX / 4)
        .min(i32::MAX / 4);
    Some(if text.starts_with('-') {
        -magnitude
    } else {
        magnitude
    })
}

impl fmt::Display for Decimal128 {
    /// Formats in the notation "to-scientific-string" of the General Decimal Arithmetic
    /// specification (<https://speleotrove.com/decimal/daconvs.html>).
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (negative, coefficient, exponent) = match self.parts() {
            DecimalParts::NotANumber => return formatter.write_str("NaN"),
            DecimalParts::Infinite { negative: true } => return formatter.write_str("-Infinity"),
            DecimalParts::Infinite { negative: false } => return formatter.write_str("Infinity"),
            DecimalParts::Finite {
                negative,
                coefficient,
                exponent,
            } => (negative, coefficient, exponent),
        };
        if negative {
            formatter.write_str("-")?;
        }
        let digits = coefficient.to_string();
        let adjusted = exponent + digits.len() as i32 - 1;
        if exponent > 0 || adjusted < -6 {
            let (first, rest) = digits.split_at(1);
            let point = if rest.is_empty() { "" } else { "." };
            return write!(formatter, "{first}{point}{rest}E{adjusted:+}");
        }
        let places = exponent.unsigned_abs() as usize;
        if places == 0 {
            return formatter.write_str(&digits);
        }
        let padded = format!("{digits:0>width$}", width = places + 1);
        let (whole, fraction) = padded.split_at(padded.len() - places);
        write!(formatter, "{whole}.{fraction}")
    }
}
