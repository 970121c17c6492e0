//! Key bytes: a value as bytes whose plain order is MongoDB's order.
//!
//! ```text
//! MinKey 01 · undefined 02 · null 03
//! number      see [`number`]: 10–27 with the magnitude's size in the tag
//! string      30, bytes with 00 → 01 01 and 01 → 01 02, then 00
//! document    38, per field: type rank + 1, name, 00, value; then 00
//! array       40, values, 00
//! binary      48, length, subtype, bytes; the length is a byte, from 255 on ff and u32 BE
//! ObjectId 50 · false 58 · true 59 · date 60, i64 BE with its sign bit flipped
//! timestamp   68, u64 BE
//! regex 70, pattern 00 options 00 · DBPointer 78 · code 80 · code with scope 88 · MaxKey F0
//! ```
//! A descending field has every byte complemented. No encoding is a prefix of another, so encodings
//! stand one after the other. Equal values have equal bytes: 1, 1.0 and NumberDecimal("1.0") alike.
//! What tells them apart, and gives the exact value back, is the *shape*: bytes beside the key that
//! are empty in the common case (whole numbers in their smallest integer type, others double).

mod number;
mod read;

pub use read::Reader;

use crate::layout::has_zero_or_one;
use crate::{Collation, Document, Type, ValueRef};

pub(crate) mod tag {
    pub const END: u8 = 0x00;
    pub const MIN_KEY: u8 = 0x01;
    pub const UNDEFINED: u8 = 0x02;
    pub const NULL: u8 = 0x03;
    pub const NUMBER_FIRST: u8 = 0x10;
    pub const NUMBER_LAST: u8 = 0x27;
    pub const STRING: u8 = 0x30;
    pub const DOCUMENT: u8 = 0x38;
    pub const ARRAY: u8 = 0x40;
    pub const BINARY: u8 = 0x48;
    pub const OBJECT_ID: u8 = 0x50;
    pub const FALSE: u8 = 0x58;
    pub const TRUE: u8 = 0x59;
    pub const DATE_TIME: u8 = 0x60;
    pub const TIMESTAMP: u8 = 0x68;
    pub const REGEX: u8 = 0x70;
    pub const DB_POINTER: u8 = 0x78;
    pub const JAVASCRIPT: u8 = 0x80;
    pub const JAVASCRIPT_WITH_SCOPE: u8 = 0x88;
    pub const MAX_KEY: u8 = 0xF0;
}

/// The kinds of exceptions in a shape.
pub(crate) mod shape {
    pub const DOUBLE: u8 = 0;
    pub const INT64: u8 = 1;
    pub const DECIMAL: u8 = 2;
    pub const SYMBOL: u8 = 3;
    pub const NEGATIVE_ZERO: u8 = 4;
}

/// Appends the ascending key bytes of a value.
pub fn append(key: &mut Vec<u8>, value: ValueRef<'_>) {
    append_collated(key, value, false, None);
}

/// As [`append_directed`], with the sort keys of the collation in place of strings: they are not read
/// back.
pub fn append_collated(
    key: &mut Vec<u8>,
    value: ValueRef<'_>,
    descending: bool,
    collation: Option<&Collation>,
) {
    let start = key.len();
    let mut writer = Writer {
        key,
        shape: None,
        ordinal: 0,
        collation,
    };
    writer.value(value);
    if descending {
        complement(key, start);
    }
}

/// Appends the key bytes of a value, complemented where `descending`.
pub fn append_directed(key: &mut Vec<u8>, value: ValueRef<'_>, descending: bool) {
    append_collated(key, value, descending, None);
}

/// Appends the key bytes of a value, and to `shape` what gives the exact value back. `shape` holds
/// the exceptions of one key's values one after the other; each call is one value of the key.
pub fn append_with_shape(
    key: &mut Vec<u8>,
    shape: &mut Vec<u8>,
    value: ValueRef<'_>,
    descending: bool,
) {
    append_part(key, shape, 0, value, descending);
}

/// As [`append_with_shape`], for the later values of a compound key: `ordinal` is what the call
/// before returned, 0 at the first; the reader counts in the same way.
pub fn append_part(
    key: &mut Vec<u8>,
    shape: &mut Vec<u8>,
    ordinal: u32,
    value: ValueRef<'_>,
    descending: bool,
) -> u32 {
    let start = key.len();
    let mut writer = Writer {
        key,
        shape: Some(shape),
        ordinal,
        collation: None,
    };
    writer.value(value);
    let ordinal = writer.ordinal;
    if descending {
        complement(key, start);
    }
    ordinal
}

fn complement(key: &mut [u8], start: usize) {
    key.iter_mut().skip(start).for_each(|byte| *byte = !*byte);
}

/// The lowest and highest tag of a type's keys: bounds that take in exactly the values which are
/// compared with that type.
pub fn type_bounds(type_of: Type) -> (u8, u8) {
    match type_of {
        Type::MinKey => (tag::MIN_KEY, tag::MIN_KEY),
        Type::Undefined => (tag::UNDEFINED, tag::UNDEFINED),
        Type::Null => (tag::NULL, tag::NULL),
        Type::Double | Type::Int32 | Type::Int64 | Type::Decimal128 => {
            (tag::NUMBER_FIRST, tag::NUMBER_LAST)
        }
        Type::String | Type::Symbol => (tag::STRING, tag::STRING),
        Type::Document => (tag::DOCUMENT, tag::DOCUMENT),
        Type::Array => (tag::ARRAY, tag::ARRAY),
        Type::Binary => (tag::BINARY, tag::BINARY),
        Type::ObjectId => (tag::OBJECT_ID, tag::OBJECT_ID),
        Type::Bool => (tag::FALSE, tag::TRUE),
        Type::DateTime => (tag::DATE_TIME, tag::DATE_TIME),
        Type::Timestamp => (tag::TIMESTAMP, tag::TIMESTAMP),
        Type::Regex => (tag::REGEX, tag::REGEX),
        Type::DbPointer => (tag::DB_POINTER, tag::DB_POINTER),
        Type::JavaScript => (tag::JAVASCRIPT, tag::JAVASCRIPT),
        Type::JavaScriptWithScope => (tag::JAVASCRIPT_WITH_SCOPE, tag::JAVASCRIPT_WITH_SCOPE),
        Type::MaxKey => (tag::MAX_KEY, tag::MAX_KEY),
    }
}

/// Stands where a length is that takes more than a byte.
const LONG_BINARY: u8 = 0xFF;

/// Appends the key bytes of every string that begins with `prefix`, up to where they differ: the
/// lower bound of a prefix range, without the end mark.
pub fn append_string_prefix(key: &mut Vec<u8>, prefix: &str) {
    key.push(tag::STRING);
    escape(key, prefix.as_bytes());
}

/// Appends the key bytes of the string of these bytes, which need not be UTF-8: a cut term, say.
pub fn append_string_bytes(key: &mut Vec<u8>, bytes: &[u8]) {
    key.push(tag::STRING);
    escape(key, bytes);
    key.push(tag::END);
}

struct Writer<'k> {
    key: &'k mut Vec<u8>,
    shape: Option<&'k mut Vec<u8>>,
    /// How many numbers and strings came before: what an exception in the shape refers to.
    ordinal: u32,
    collation: Option<&'k Collation>,
}

impl Writer<'_> {
    fn value(&mut self, value: ValueRef<'_>) {
        match value {
            ValueRef::MinKey => self.key.push(tag::MIN_KEY),
            ValueRef::Undefined => self.key.push(tag::UNDEFINED),
            ValueRef::Null => self.key.push(tag::NULL),
            ValueRef::Double(_)
            | ValueRef::Int32(_)
            | ValueRef::Int64(_)
            | ValueRef::Decimal128(_) => self.number(value),
            ValueRef::String(text) => self.string(text, None),
            ValueRef::Symbol(text) => self.string(text, Some(shape::SYMBOL)),
            ValueRef::Document(document) => {
                self.key.push(tag::DOCUMENT);
                self.document(document);
            }
            ValueRef::Array(array) => {
                self.key.push(tag::ARRAY);
                array.iter().for_each(|value| self.value(value));
                self.key.push(tag::END);
            }
            ValueRef::Bool(flag) => self.key.push(if flag { tag::TRUE } else { tag::FALSE }),
            ValueRef::MaxKey => self.key.push(tag::MAX_KEY),
            fixed => self.fixed(fixed),
        }
    }

    /// Types of plain bytes.
    fn fixed(&mut self, value: ValueRef<'_>) {
        match value {
            ValueRef::Binary { subtype, bytes } => {
                self.key.push(tag::BINARY);
                match bytes.len() as u32 {
                    short if short < u32::from(LONG_BINARY) => self.key.push(short as u8),
                    long => {
                        self.key.push(LONG_BINARY);
                        self.key.extend_from_slice(&long.to_be_bytes());
                    }
                }
                self.key.push(subtype);
                self.key.extend_from_slice(bytes);
            }
            ValueRef::ObjectId(id) => {
                self.key.push(tag::OBJECT_ID);
                self.key.extend_from_slice(&id.0);
            }
            ValueRef::DateTime(millis) => {
                self.key.push(tag::DATE_TIME);
                self.key
                    .extend_from_slice(&(millis as u64 ^ 1 << 63).to_be_bytes());
            }
            ValueRef::Timestamp(timestamp) => {
                self.key.push(tag::TIMESTAMP);
                self.key.extend_from_slice(&timestamp.bits().to_be_bytes());
            }
            ValueRef::Regex { pattern, options } => {
                self.key.push(tag::REGEX);
                self.plain(pattern.as_bytes());
                self.plain(options.as_bytes());
            }
            ValueRef::DbPointer { namespace, id } => {
                self.key.push(tag::DB_POINTER);
                self.key
                    .extend_from_slice(&(namespace.len() as u32).to_be_bytes());
                self.key.extend_from_slice(namespace.as_bytes());
                self.key.extend_from_slice(&id.0);
            }
            ValueRef::JavaScript(code) => {
                self.key.push(tag::JAVASCRIPT);
                escape(self.key, code.as_bytes());
                self.key.push(tag::END);
            }
            ValueRef::JavaScriptWithScope { code, scope } => {
                self.key.push(tag::JAVASCRIPT_WITH_SCOPE);
                escape(self.key, code.as_bytes());
                self.key.push(tag::END);
                self.document(scope);
            }
            _ => {}
        }
    }

    /// Bytes that hold no 00, and 00.
    fn plain(&mut self, bytes: &[u8]) {
        self.key.extend_from_slice(bytes);
        self.key.push(tag::END);
    }

    fn document(&mut self, document: Document<'_>) {
        for (name, value) in document {
            self.key.push(value.type_of().rank() + 1);
            self.plain(name.as_bytes());
            self.value(value);
        }
        self.key.push(tag::END);
    }

    fn string(&mut self, text: &str, exception: Option<u8>) {
        self.key.push(tag::STRING);
        match self.collation {
            Some(collation) => {
                let mut sort_key = Vec::new();
                collation.append_sort_key(&mut sort_key, text);
                escape(self.key, &sort_key);
            }
            None => escape(self.key, text.as_bytes()),
        }
        self.key.push(tag::END);
        self.exception(exception, &[]);
    }

    fn number(&mut self, value: ValueRef<'_>) {
        number::append(self.key, value);
        match value {
            ValueRef::Decimal128(number) => {
                self.exception(Some(shape::DECIMAL), &number.bits().to_le_bytes());
            }
            _ => self.exception(number::exception(value), &[]),
        }
    }

    /// Notes that this number or string is not of the type that its bytes suggest.
    fn exception(&mut self, kind: Option<u8>, content: &[u8]) {
        if let (Some(kind), Some(shape)) = (kind, self.shape.as_deref_mut()) {
            shape.extend_from_slice(&(self.ordinal as u16).to_le_bytes());
            shape.push(kind);
            shape.extend_from_slice(content);
        }
        self.ordinal += 1;
    }
}

/// 00 → 01 01, 01 → 01 02: what is written holds no 00, and the order stays.
fn escape(key: &mut Vec<u8>, bytes: &[u8]) {
    if !has_zero_or_one(bytes) {
        key.extend_from_slice(bytes);
        return;
    }
    for byte in bytes {
        match byte {
            0 | 1 => key.extend_from_slice(&[1, byte + 1]),
            other => key.push(*other),
        }
    }
}
