//! Decimals as text.

use std::fmt;

use num_bigint::BigUint;

use super::{Decimal128, Parts, SIGN};

impl Decimal128 {
    /// Parses the usual notations: "1.50", "-1E+3", "Infinity", "NaN". More than 34 digits are
    /// rounded. None where it is no number.
    pub fn parse(text: &str) -> Option<Decimal128> {
        let (negative, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        match rest.to_ascii_lowercase().as_str() {
            "infinity" | "inf" => return Some(Decimal128::infinite(negative)),
            "nan" if negative => return Some(Decimal128(SIGN | Decimal128::NAN.0)),
            "nan" => return Some(Decimal128::NAN),
            _ => {}
        }
        let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, parse_exponent(exponent)?),
            None => (rest, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = format!("{whole}{fraction}");
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let coefficient = BigUint::parse_bytes(digits.as_bytes(), 10)?;
        let exponent = exponent.saturating_sub(fraction.len() as i32);
        Some(Decimal128::rounded(negative, coefficient, exponent, false))
    }
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
    /// The notation of the General Decimal Arithmetic specification ("to-scientific-string").
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (negative, coefficient, exponent) = match self.parts() {
            Parts::NotANumber => return formatter.write_str("NaN"),
            Parts::Infinite { negative: true } => return formatter.write_str("-Infinity"),
            Parts::Infinite { negative: false } => return formatter.write_str("Infinity"),
            Parts::Finite {
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
