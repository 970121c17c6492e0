//! Formats values: in the syntax of mongosh for display, in Extended JSON for programs.

use std::fmt::Write as _;

use windrow_document::json::{BASE64, to_base64};
use windrow_document::{Array, Document, ValueRef, format_uuid};

use super::date::format_date;

/// Returns a value in the syntax of mongosh, with each field on its own line.
pub fn shell_text(value: ValueRef<'_>) -> String {
    let mut text = String::new();
    write_shell(&mut text, value, Some(0));
    text
}

/// Returns a value in the syntax of mongosh, on one line.
pub fn shell_line(value: ValueRef<'_>) -> String {
    let mut text = String::new();
    write_shell(&mut text, value, None);
    text
}

fn write_shell(text: &mut String, value: ValueRef<'_>, indent: Option<usize>) {
    // Writing to a string cannot fail.
    let _ = match value {
        ValueRef::Document(document) => return write_document(text, document, indent),
        ValueRef::Array(array) => return write_array(text, array, indent),
        ValueRef::String(string) => return write_string(text, string),
        ValueRef::Int32(number) => write!(text, "{number}"),
        ValueRef::Int64(number) => write!(text, "NumberLong(\"{number}\")"),
        ValueRef::Double(number) if number.is_finite() => write!(text, "{number:?}"),
        ValueRef::Double(number) if number.is_nan() => write!(text, "NaN"),
        ValueRef::Double(number) => write!(text, "{}Infinity", if number < 0.0 { "-" } else { "" }),
        ValueRef::Decimal128(number) => write!(text, "NumberDecimal(\"{number}\")"),
        ValueRef::Bool(flag) => write!(text, "{flag}"),
        ValueRef::Null => write!(text, "null"),
        ValueRef::Undefined => write!(text, "undefined"),
        ValueRef::ObjectId(id) => write!(text, "ObjectId(\"{id}\")"),
        ValueRef::DateTime(millis) => match format_date(millis) {
            Some(date) => write!(text, "ISODate(\"{date}\")"),
            None => write!(text, "new Date({millis})"),
        },
        ValueRef::Timestamp(it) => write!(text, "Timestamp({}, {})", it.seconds, it.increment),
        ValueRef::Binary { subtype, bytes } => match <[u8; 16]>::try_from(bytes) {
            Ok(uuid) if subtype == 4 => write!(text, "UUID(\"{}\")", format_uuid(uuid)),
            _ => write!(
                text,
                "BinData({subtype}, \"{}\")",
                to_base64(bytes, BASE64, true)
            ),
        },
        ValueRef::MinKey => write!(text, "MinKey()"),
        ValueRef::MaxKey => write!(text, "MaxKey()"),
        ValueRef::Regex { pattern, options } if is_plain_regex(pattern, options) => {
            write!(text, "/{}/{options}", pattern.replace('/', "\\/"))
        }
        ValueRef::Symbol(symbol) => return write_call(text, "Symbol", symbol, None),
        ValueRef::JavaScript(code) => return write_call(text, "Code", code, None),
        ValueRef::JavaScriptWithScope { code, scope } => {
            return write_call(text, "Code", code, Some(scope));
        }
        ValueRef::DbPointer { .. } | ValueRef::Regex { .. } => write!(text, "{value}"),
    };
}

/// Returns `true` if a pattern can be written as `/pattern/options`. Its slashes can be escaped
/// only outside of character classes and escape sequences.
fn is_plain_regex(pattern: &str, options: &str) -> bool {
    let is_plain =
        |it: char| !it.is_control() && !matches!(it, '[' | '\\' | '\u{2028}' | '\u{2029}');
    let is_escaped_well = !pattern.contains('/') || pattern.chars().all(is_plain);
    // `//` would begin a comment.
    is_escaped_well
        && !pattern.is_empty()
        && !pattern.starts_with('*')
        && !pattern.contains('[')
        && pattern.chars().all(|it| !it.is_control())
        && !pattern.ends_with('\\')
        && options.bytes().all(|it| it.is_ascii_alphabetic())
}

fn write_call(text: &mut String, name: &str, argument: &str, scope: Option<Document<'_>>) {
    text.push_str(name);
    text.push('(');
    write_string(text, argument);
    if let Some(scope) = scope {
        text.push_str(", ");
        write_document(text, scope, None);
    }
    text.push(')');
}

/// Starts a line, or writes a space if the output is one line.
fn separate(text: &mut String, indent: Option<usize>) {
    match indent {
        Some(indent) => {
            text.push('\n');
            text.extend(std::iter::repeat_n("  ", indent));
        }
        None => text.push(' '),
    }
}

fn write_document(text: &mut String, document: Document<'_>, indent: Option<usize>) {
    if document.is_empty() {
        text.push_str("{}");
        return;
    }
    let inner = indent.map(|indent| indent + 1);
    text.push('{');
    for (number, (name, value)) in document.iter().enumerate() {
        text.push_str(if number == 0 { "" } else { "," });
        separate(text, inner);
        write_name(text, name);
        text.push_str(": ");
        write_shell(text, value, inner);
    }
    separate(text, indent);
    text.push('}');
}

fn write_array(text: &mut String, array: Array<'_>, indent: Option<usize>) {
    let is_flat =
        |value: ValueRef<'_>| !matches!(value, ValueRef::Document(_) | ValueRef::Array(_));
    // An array of scalars is written on one line.
    let indent = indent.filter(|_| !array.iter().all(is_flat) || array.count() > 20);
    if array.is_empty() {
        text.push_str("[]");
        return;
    }
    let inner = indent.map(|indent| indent + 1);
    text.push('[');
    for (number, value) in array.iter().enumerate() {
        text.push_str(if number == 0 { "" } else { "," });
        separate(text, inner);
        write_shell(text, value, inner);
    }
    separate(text, indent);
    text.push(']');
}

fn write_name(text: &mut String, name: &str) {
    let is_start = |it: char| it.is_ascii_alphabetic() || matches!(it, '_' | '$');
    let is_plain = name.starts_with(is_start)
        && name
            .bytes()
            .all(|it| it.is_ascii_alphanumeric() || matches!(it, b'_' | b'$'));
    if is_plain {
        text.push_str(name)
    } else {
        write_string(text, name)
    }
}

fn write_string(text: &mut String, string: &str) {
    text.push('"');
    for character in string.chars() {
        match character {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            other if is_invisible(other) => {
                let mut halves = [0; 2];
                for half in other.encode_utf16(&mut halves) {
                    // Writing to a string cannot fail.
                    let _ = write!(text, "\\u{half:04x}");
                }
            }
            other => text.push(other),
        }
    }
    text.push('"');
}

/// Returns `true` for control characters and characters that reorder text.
fn is_invisible(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
        )
}

/// A format of Extended JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonFormat {
    /// Preserves all types.
    Canonical,
    /// Plain JSON numbers, and dates in ISO 8601.
    Relaxed,
}

/// Returns a value as Extended JSON.
pub fn extended_json(value: ValueRef<'_>, format: JsonFormat) -> String {
    let mut text = String::new();
    write_extended(&mut text, value, format);
    text
}

fn write_extended(text: &mut String, value: ValueRef<'_>, format: JsonFormat) {
    let is_canonical = format == JsonFormat::Canonical;
    // Writing to a string cannot fail.
    let _ = match value {
        ValueRef::Document(document) => {
            text.push('{');
            for (number, (name, value)) in document.iter().enumerate() {
                text.push_str(if number == 0 { "" } else { "," });
                let _ = write!(text, "{}:", ValueRef::String(name));
                write_extended(text, value, format);
            }
            text.push('}');
            return;
        }
        ValueRef::Array(array) => {
            text.push('[');
            for (number, value) in array.iter().enumerate() {
                text.push_str(if number == 0 { "" } else { "," });
                write_extended(text, value, format);
            }
            text.push(']');
            return;
        }
        ValueRef::Int32(number) if is_canonical => write!(text, "{{\"$numberInt\":\"{number}\"}}"),
        ValueRef::Int64(number) if is_canonical => write!(text, "{{\"$numberLong\":\"{number}\"}}"),
        ValueRef::Double(number) if is_canonical && number.is_finite() => {
            write!(text, "{{\"$numberDouble\":\"{number:?}\"}}")
        }
        ValueRef::DateTime(millis) if !is_canonical => match format_date(millis) {
            Some(date) => write!(text, "{{\"$date\":\"{date}\"}}"),
            None => write!(text, "{value}"),
        },
        other => write!(text, "{other}"),
    };
}
