//! Key bytes: an encoding of values whose bytewise order is MongoDB's order of values.
//!
//! ```text
//! MinKey 01 · undefined 02 · null 03
//! number      10–27, see the module `number`
//! string      30, the bytes with 00 → 01 01 and 01 → 01 02, 00
//! document    38, per field: type rank + 1, name, 00, value; then 00
//! array       40, values, 00
//! binary      48, length, subtype, bytes; lengths from 255 on are ff and a big-endian u32
//! ObjectId 50 · false 58 · true 59 · date 60, big-endian i64 with its sign bit flipped
//! timestamp   68, big-endian u64
//! regex 70, pattern 00 options 00 · DBPointer 78 · code 80 · code with scope 88 · MaxKey F0
//! ```
//!
//! All bytes of a descending field are complemented. No encoding is a prefix of another one, so
//! encodings can be concatenated.
//!
//! Equal values have equal key bytes, for example 1, 1.0 and NumberDecimal("1.0"). The *shape* of a
//! key restores the exact types (MongoDB calls it "type bits"). It contains an entry for each
//! number or string whose type is not the one that its key bytes suggest: whole numbers have the
//! smallest integer type that holds them, other numbers are doubles. In the common case the shape
//! is empty.
//!
//! ```text
//! shape:  (ordinal u16 | kind u8 | the decimal's 16 bytes, for kind 2)*       little-endian
//! ```
//!
//! The ordinal counts the numbers and strings of the key. After each 65,536 of them it starts again
//! at 0, and the shape gets an entry of kind 5.

mod number;
mod read;

pub use read::KeyReader;

use crate::layout::has_zero_or_one;
use crate::{Collation, Document, ValueRef};

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

/// The kinds of entries in a shape.
pub(crate) mod shape {
    pub const DOUBLE: u8 = 0;
    pub const INT64: u8 = 1;
    pub const DECIMAL: u8 = 2;
    pub const SYMBOL: u8 = 3;
    pub const NEGATIVE_ZERO: u8 = 4;
    /// No value: ordinals start again at 0.
    pub const WRAP: u8 = 5;
}

/// Appends the ascending key bytes of a value.
///
/// ```
/// use windrow_document::{ValueRef, key};
///
/// let (mut small, mut large) = (Vec::new(), Vec::new());
/// key::append(&mut small, ValueRef::Double(1.5));
/// key::append(&mut large, ValueRef::Int32(2));
/// assert!(small < large);
/// ```
pub fn append(key: &mut Vec<u8>, value: ValueRef<'_>) {
    append_with_collation(key, value, false, None);
}

/// Like [`append_with_direction`], with the collation's sort keys in place of strings. Strings
/// cannot be restored from such key bytes.
pub fn append_with_collation(
    key: &mut Vec<u8>,
    value: ValueRef<'_>,
    descending: bool,
    collation: Option<&Collation>,
) {
    let start = key.len();
    let mut writer = KeyWriter {
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

/// Appends the key bytes of a value, complemented if `descending`.
pub fn append_with_direction(key: &mut Vec<u8>, value: ValueRef<'_>, descending: bool) {
    append_with_collation(key, value, descending, None);
}

/// Appends the key bytes of a value to `key`, and its shape to `shape`. The key must be empty
/// before: [`append_component`] appends further values.
pub fn append_with_shape(
    key: &mut Vec<u8>,
    shape: &mut Vec<u8>,
    value: ValueRef<'_>,
    descending: bool,
) {
    append_component(key, shape, 0, value, descending);
}

/// Appends a value of a compound key and its shape. `ordinal` is 0 for the first value, and for
/// others the result of the previous call.
pub fn append_component(
    key: &mut Vec<u8>,
    shape: &mut Vec<u8>,
    ordinal: u32,
    value: ValueRef<'_>,
    descending: bool,
) -> u32 {
    let start = key.len();
    let mut writer = KeyWriter {
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

/// Marks a length of more than one byte.
const LONG_BINARY: u8 = 0xFF;

/// Appends the key bytes of a string given as bytes. They need not be UTF-8, for example if the
/// string was cut.
pub fn append_string_bytes(key: &mut Vec<u8>, bytes: &[u8]) {
    key.push(tag::STRING);
    escape(key, bytes);
    key.push(tag::END);
}

struct KeyWriter<'k> {
    key: &'k mut Vec<u8>,
    shape: Option<&'k mut Vec<u8>>,
    /// The number of preceding numbers and strings in the key, which entries of the shape refer to.
    ordinal: u32,
    collation: Option<&'k Collation>,
}

impl KeyWriter<'_> {
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

    /// Encodes the types without nested values.
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
                self.append_cstring(pattern.as_bytes());
                self.append_cstring(options.as_bytes());
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

    /// Appends bytes that contain no zero, and a zero byte.
    fn append_cstring(&mut self, bytes: &[u8]) {
        self.key.extend_from_slice(bytes);
        self.key.push(tag::END);
    }

    fn document(&mut self, document: Document<'_>) {
        for (name, value) in document {
            self.key.push(value.type_of().rank() + 1);
            self.append_cstring(name.as_bytes());
            self.value(value);
        }
        self.key.push(tag::END);
    }

    fn string(&mut self, text: &str, kind: Option<u8>) {
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
        self.record_type(kind, &[]);
    }

    fn number(&mut self, value: ValueRef<'_>) {
        number::append(self.key, value);
        match value {
            ValueRef::Decimal128(number) => {
                self.record_type(Some(shape::DECIMAL), &number.bits().to_le_bytes());
            }
            _ => self.record_type(number::shape_entry(value), &[]),
        }
    }

    /// Counts the number or string, and adds an entry to the shape if its type is not the one that
    /// its key bytes suggest.
    fn record_type(&mut self, kind: Option<u8>, content: &[u8]) {
        if let (Some(kind), Some(shape)) = (kind, self.shape.as_deref_mut()) {
            shape.extend_from_slice(&(self.ordinal as u16).to_le_bytes());
            shape.push(kind);
            shape.extend_from_slice(content);
        }
        self.ordinal += 1;
        if let (true, Some(shape)) = (
            self.ordinal.is_multiple_of(1 << 16),
            self.shape.as_deref_mut(),
        ) {
            shape.extend_from_slice(&[0, 0, shape::WRAP]);
        }
    }
}

/// Replaces 00 by 01 01 and 01 by 01 02. The result contains no 00 and keeps the order.
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
