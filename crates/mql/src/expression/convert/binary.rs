//! Conversions between binary data and strings or numbers, as in MongoDB 8.

use windrow_document::json::{BASE64, to_base64};
use windrow_document::{Type, Value, ValueRef, format_uuid};

use super::target::{BinaryFormat, ConversionTarget};
use super::{failure, unsupported};
use crate::Error;
use crate::expression::tree::check_length;

const BASE64_URL: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The subtype of UUIDs.
const UUID: u8 = 4;
const UUID_BYTES: usize = 16;

/// Returns the format of the conversion. Fails with 4341115 if it is missing.
fn format(target: &ConversionTarget) -> Result<BinaryFormat, Error> {
    target.format.ok_or_else(|| {
        let message = "Format must be specified when converting between 'binData' and 'string'";
        Error::new(4341115, message)
    })
}

pub(super) fn to_binary(source: ValueRef<'_>, target: &ConversionTarget) -> Result<Value, Error> {
    let bytes = match source {
        ValueRef::Binary { bytes, subtype } if subtype == target.subtype => bytes.to_vec(),
        ValueRef::String(text) => {
            let bytes = match (format(target)?, target.subtype == UUID) {
                (BinaryFormat::Uuid, true) => from_uuid(text),
                (BinaryFormat::Hex, false) => from_hex(text),
                (BinaryFormat::Utf8, false) => Some(text.as_bytes().to_vec()),
                (BinaryFormat::Base64Url, false) => from_base64(text, BASE64_URL),
                (BinaryFormat::Base64, false) if text.len() % 4 == 0 => from_base64(text, BASE64),
                _ => None,
            };
            bytes.ok_or_else(|| {
                let format = target.format;
                failure(format!(
                    "Input string '{text}' is not binary data of subtype {} in the format {format:?}",
                    target.subtype
                ))
            })?
        }
        // A UUID has 16 bytes, so no number can be converted to one.
        _ if target.subtype == UUID => return Err(unsupported(source, Type::Binary)),
        ValueRef::Int32(number) => in_order(number.to_le_bytes(), target),
        ValueRef::Int64(number) => in_order(number.to_le_bytes(), target),
        ValueRef::Double(number) => in_order(number.to_le_bytes(), target),
        _ => return Err(unsupported(source, Type::Binary)),
    };
    Ok(Value::Binary {
        subtype: target.subtype,
        bytes,
    })
}

fn in_order<const N: usize>(mut bytes: [u8; N], target: &ConversionTarget) -> Vec<u8> {
    if target.is_big_endian {
        bytes.reverse();
    }
    bytes.to_vec()
}

/// Converts 1, 2, 4 or 8 bytes to a signed number.
pub(super) fn to_whole(bytes: &[u8], target: &ConversionTarget) -> Result<i64, Error> {
    if !matches!(bytes.len(), 1 | 2 | 4 | 8) {
        return Err(failure(format!(
            "Failed to convert BinData of {} bytes to a number",
            bytes.len()
        )));
    }
    let mut ordered = bytes.to_vec();
    if !target.is_big_endian {
        ordered.reverse();
    }
    let negative = ordered.first().is_some_and(|byte| byte & 0x80 != 0);
    let start = if negative { -1i64 } else { 0 };
    Ok(ordered
        .iter()
        .fold(start, |number, byte| number << 8 | i64::from(*byte)))
}

/// Converts 4 or 8 bytes to a floating-point number.
pub(super) fn to_double(bytes: &[u8], target: &ConversionTarget) -> Result<f64, Error> {
    let mut ordered = bytes.to_vec();
    if target.is_big_endian {
        ordered.reverse();
    }
    if let Ok(bytes) = <[u8; 8]>::try_from(ordered.as_slice()) {
        return Ok(f64::from_le_bytes(bytes));
    }
    match <[u8; 4]>::try_from(ordered.as_slice()) {
        Ok(bytes) => Ok(f64::from(f32::from_le_bytes(bytes))),
        Err(_) => Err(failure(format!(
            "Failed to convert BinData of {} bytes to double",
            bytes.len()
        ))),
    }
}

pub(super) fn to_text(
    bytes: &[u8],
    subtype: u8,
    target: &ConversionTarget,
) -> Result<String, Error> {
    match format(target)? {
        BinaryFormat::Auto if subtype == UUID && bytes.len() == UUID_BYTES => to_uuid(bytes),
        BinaryFormat::Uuid if subtype == UUID => to_uuid(bytes),
        BinaryFormat::Uuid => Err(failure(
            "Only BinData of subtype 4 can be written as a UUID",
        )),
        BinaryFormat::Hex => within_limit(bytes.iter().map(|byte| format!("{byte:02X}")).collect()),
        BinaryFormat::Utf8 => String::from_utf8(bytes.to_vec())
            .map_err(|_| failure("BinData does not represent a valid UTF-8 string")),
        BinaryFormat::Base64Url => within_limit(to_base64(bytes, BASE64_URL, false)),
        BinaryFormat::Base64 | BinaryFormat::Auto => within_limit(to_base64(bytes, BASE64, true)),
    }
}

/// A string that is too long is a conversion failure, so `onError` applies.
fn within_limit(text: String) -> Result<String, Error> {
    check_length(text.len()).map_err(|error| failure(error.message))?;
    Ok(text)
}

fn to_uuid(bytes: &[u8]) -> Result<String, Error> {
    let bytes = <[u8; UUID_BYTES]>::try_from(bytes).map_err(|_| {
        let message = format!("A UUID has {UUID_BYTES} bytes, not {}", bytes.len());
        failure(message)
    })?;
    Ok(format_uuid(bytes))
}

fn from_uuid(text: &str) -> Option<Vec<u8>> {
    let dashes: Vec<usize> = text.match_indices('-').map(|(index, _)| index).collect();
    let formed = text.len() == 36 && dashes == [8, 13, 18, 23];
    if formed {
        from_hex(&text.replace('-', ""))
    } else {
        None
    }
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16);
    pairs
        .iter()
        .map(|[high, low]| Some((digit(*high)? << 4 | digit(*low)?) as u8))
        .collect()
}

fn from_base64(text: &str, digits: &[u8; 64]) -> Option<Vec<u8>> {
    let plain = text.trim_end_matches('=');
    if plain.len() % 4 == 1 || text.len() - plain.len() > 2 {
        return None;
    }
    let (mut bits, mut count, mut bytes) = (0u32, 0, Vec::new());
    for byte in plain.bytes() {
        let digit = digits.iter().position(|digit| *digit == byte)?;
        bits = bits << 6 | digit as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    Some(bytes)
}
