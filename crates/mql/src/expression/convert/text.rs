//! Conversions of strings to numbers, and of all types to strings.

use windrow_document::{Decimal128, Type, ValueRef};

use super::binary;
use super::target::ConversionTarget;
use super::{failure, unsupported};
use crate::Error;
use crate::expression::date;
use crate::expression::number::double_text;

fn not_a_number(text: &str) -> Error {
    failure(format!(
        "Failed to parse number '{text}' in $convert with no onError value"
    ))
}

/// Parses decimal digits with an optional sign.
pub(super) fn to_whole(text: &str) -> Result<i64, Error> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number = if plain { text.parse().ok() } else { None };
    number.ok_or_else(|| not_a_number(text))
}

/// Returns `true` if the text itself means infinity, so that an infinite result is no overflow.
fn names_infinity(text: &str) -> bool {
    text.to_ascii_lowercase().contains("inf")
}

/// Returns `true` if the mantissa has a digit other than zero.
fn has_digits(text: &str) -> bool {
    text.bytes()
        .take_while(|byte| !matches!(byte, b'e' | b'E'))
        .any(|byte| matches!(byte, b'1'..=b'9'))
}

/// Parses the notations of C, except hexadecimal ones. Fails for numbers out of range.
pub(super) fn to_double(text: &str) -> Result<f64, Error> {
    let number: f64 = text.parse().map_err(|_| not_a_number(text))?;
    let lost = number.is_infinite() && !names_infinity(text)
        || has_digits(text) && number.abs() < f64::MIN_POSITIVE;
    if lost {
        Err(not_a_number(text))
    } else {
        Ok(number)
    }
}

/// Parses a decimal. Digits after the 34th are cut off. Fails for numbers out of range.
pub(super) fn to_decimal(text: &str) -> Result<Decimal128, Error> {
    Decimal128::parse_truncated(text).ok_or_else(|| not_a_number(text))
}

pub(super) fn to_string(source: ValueRef<'_>, target: &ConversionTarget) -> Result<String, Error> {
    Ok(match source {
        ValueRef::Bool(flag) => flag.to_string(),
        ValueRef::Int32(number) => number.to_string(),
        ValueRef::Int64(number) => number.to_string(),
        ValueRef::Double(number) => double_text(number),
        ValueRef::Decimal128(number) => number.to_string(),
        ValueRef::ObjectId(id) => id.to_string(),
        ValueRef::DateTime(millis) => date::to_iso_text(millis)?,
        ValueRef::Binary { bytes, subtype } => binary::to_text(bytes, subtype, target)?,
        _ => return Err(unsupported(source, Type::String)),
    })
}
