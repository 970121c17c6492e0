//! Formats values as relaxed Extended JSON, for logs, explain and error messages. Source:
//! <https://www.mongodb.com/docs/manual/reference/mongodb-extended-json/>.

use std::fmt::{self, Write};

use crate::{Array, Document, DocumentBuf, Value, ValueRef};

impl fmt::Display for Document<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_char('{')?;
        for (number, (name, value)) in self.iter().enumerate() {
            let comma = if number == 0 { "" } else { "," };
            formatter.write_str(comma)?;
            write_string(formatter, name)?;
            write!(formatter, ":{value}")?;
        }
        formatter.write_char('}')
    }
}

impl fmt::Display for Array<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_char('[')?;
        for (number, value) in self.iter().enumerate() {
            let comma = if number == 0 { "" } else { "," };
            write!(formatter, "{comma}{value}")?;
        }
        formatter.write_char(']')
    }
}

impl fmt::Display for DocumentBuf {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_document().fmt(formatter)
    }
}

impl fmt::Display for Value {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_ref().fmt(formatter)
    }
}

impl fmt::Display for ValueRef<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            ValueRef::Double(number) => write_double(formatter, number),
            ValueRef::String(text) => write_string(formatter, text),
            ValueRef::Document(document) => document.fmt(formatter),
            ValueRef::Array(array) => array.fmt(formatter),
            ValueRef::Binary { subtype, bytes } => {
                let text = to_base64(bytes, BASE64, true);
                write!(
                    formatter,
                    "{{\"$binary\":{{\"base64\":\"{text}\",\"subType\":\"{subtype:02x}\"}}}}"
                )
            }
            ValueRef::Undefined => formatter.write_str("{\"$undefined\":true}"),
            ValueRef::ObjectId(id) => write!(formatter, "{{\"$oid\":\"{id}\"}}"),
            ValueRef::Bool(flag) => write!(formatter, "{flag}"),
            ValueRef::DateTime(millis) => {
                write!(formatter, "{{\"$date\":{{\"$numberLong\":\"{millis}\"}}}}")
            }
            ValueRef::Null => formatter.write_str("null"),
            ValueRef::Regex { pattern, options } => {
                formatter.write_str("{\"$regularExpression\":{\"pattern\":")?;
                write_string(formatter, pattern)?;
                formatter.write_str(",\"options\":")?;
                write_string(formatter, options)?;
                formatter.write_str("}}")
            }
            ValueRef::DbPointer { namespace, id } => {
                formatter.write_str("{\"$dbPointer\":{\"$ref\":")?;
                write_string(formatter, namespace)?;
                write!(formatter, ",\"$id\":{{\"$oid\":\"{id}\"}}}}}}")
            }
            ValueRef::JavaScript(code) => write_wrapped(formatter, "$code", code),
            ValueRef::Symbol(text) => write_wrapped(formatter, "$symbol", text),
            ValueRef::JavaScriptWithScope { code, scope } => {
                formatter.write_str("{\"$code\":")?;
                write_string(formatter, code)?;
                write!(formatter, ",\"$scope\":{scope}}}")
            }
            ValueRef::Int32(number) => write!(formatter, "{number}"),
            ValueRef::Timestamp(timestamp) => write!(
                formatter,
                "{{\"$timestamp\":{{\"t\":{},\"i\":{}}}}}",
                timestamp.seconds, timestamp.increment
            ),
            ValueRef::Int64(number) => write!(formatter, "{number}"),
            ValueRef::Decimal128(number) => {
                write!(formatter, "{{\"$numberDecimal\":\"{number}\"}}")
            }
            ValueRef::MinKey => formatter.write_str("{\"$minKey\":1}"),
            ValueRef::MaxKey => formatter.write_str("{\"$maxKey\":1}"),
        }
    }
}

fn write_wrapped(formatter: &mut fmt::Formatter<'_>, name: &str, text: &str) -> fmt::Result {
    write!(formatter, "{{\"{name}\":")?;
    write_string(formatter, text)?;
    formatter.write_char('}')
}

/// Formats at most `bytes_max` bytes of a value, and appends "..." if there is more. Stops
/// formatting at the limit, so large values cost no more.
pub fn display_prefix(value: &dyn fmt::Display, bytes_max: usize) -> String {
    let mut writer = PrefixWriter {
        text: String::new(),
        bytes_max,
    };
    match write!(writer, "{value}") {
        Ok(()) => writer.text,
        // The limit was reached.
        Err(_) => writer.text + "...",
    }
}

struct PrefixWriter {
    text: String,
    bytes_max: usize,
}

impl Write for PrefixWriter {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        let remaining = self.bytes_max.saturating_sub(self.text.len());
        let fitting = more.floor_char_boundary(remaining);
        let (fitting_text, _) = more.split_at(fitting);
        self.text.push_str(fitting_text);
        if fitting == more.len() {
            Ok(())
        } else {
            Err(fmt::Error)
        }
    }
}

fn write_double(formatter: &mut fmt::Formatter<'_>, number: f64) -> fmt::Result {
    if number.is_finite() {
        return write!(formatter, "{number:?}");
    }
    let name = match number {
        number if number.is_nan() => "NaN",
        number if number > 0.0 => "Infinity",
        _ => "-Infinity",
    };
    write!(formatter, "{{\"$numberDouble\":\"{name}\"}}")
}

fn write_string(formatter: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    formatter.write_char('"')?;
    for character in text.chars() {
        match character {
            '"' => formatter.write_str("\\\"")?,
            '\\' => formatter.write_str("\\\\")?,
            '\n' => formatter.write_str("\\n")?,
            '\r' => formatter.write_str("\\r")?,
            '\t' => formatter.write_str("\\t")?,
            control if control < ' ' => write!(formatter, "\\u{:04x}", control as u32)?,
            other => formatter.write_char(other)?,
        }
    }
    formatter.write_char('"')
}

/// The digits of standard base64 (RFC 4648).
pub const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Encodes bytes in base64 with the given digits. If `padded`, the last group is filled with `=`.
pub fn to_base64(bytes: &[u8], digits: &[u8; 64], padded: bool) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let group = chunk
            .iter()
            .fold(0u32, |bits, byte| bits << 8 | u32::from(*byte));
        let group = group << (8 * (3 - chunk.len()));
        for position in 0..4 {
            let digit = digits
                .get((group >> (18 - 6 * position)) as usize & 63)
                .copied();
            match digit {
                Some(digit) if position <= chunk.len() => text.push(char::from(digit)),
                _ if padded => text.push('='),
                _ => {}
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use crate::{Value, doc};

    #[test]
    fn documents_are_formatted_as_extended_json() {
        let document = doc! {
            "a": 1, "b": 1.0, "c": "x\"\n\u{1}", "d": [true, null],
            "e": (Value::Binary { subtype: 0, bytes: b"hello".to_vec() }), "f": f64::NAN,
        };
        assert_eq!(
            document.to_string(),
            r#"{"a":1,"b":1.0,"c":"x\"\n\u0001","d":[true,null],"e":{"$binary":{"base64":"aGVsbG8=","subType":"00"}},"f":{"$numberDouble":"NaN"}}"#
        );
    }

    #[test]
    fn cut_prefixes_end_with_dots() {
        let check = |document: crate::DocumentBuf, bytes_max, expected: &str| {
            assert_eq!(super::display_prefix(&document, bytes_max), expected);
        };
        check(crate::doc! { "a": "xyz" }, 11, "{\"a\":\"xyz\"}");
        check(crate::doc! { "a": "xyz" }, 10, "{\"a\":\"xyz\"...");
        check(crate::doc! { "a": "\u{e4}\u{e4}" }, 7, "{\"a\":\"...");
        check(crate::doc! { "a": "\u{e4}\u{e4}" }, 8, "{\"a\":\"\u{e4}...");
    }
}
