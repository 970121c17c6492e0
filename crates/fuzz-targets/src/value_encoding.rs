//! An encoding that turns arbitrary bytes into values. A small change of the bytes is a small
//! change of the values, and most names are known to the parsers.
//!
//! ```text
//! value     kind (1 byte, modulo the number of kinds) · content of this kind
//! text      up to 159: the name with this index · 160 to 254: (less 160) · 256 + the next byte is
//!           the index of the name, modulo their number · 255: length (1 byte), bytes
//! document  count (1 byte), (text, value)*        array  count (1 byte), value*
//! number    4, 8 or 16 bytes, little-endian
//! ```
//!
//! After the end of the bytes all values are null. The names are in `names.txt`. New names are
//! appended, so that saved inputs keep their meaning.

use std::sync::LazyLock;

use windrow_document::{
    ArrayBuf, Decimal128, Document, DocumentBuf, ObjectId, Timestamp, Value, ValueRef,
};

static NAMES: LazyLock<Vec<&str>> = LazyLock::new(|| include_str!("names.txt").lines().collect());

/// The number of names that are encoded in one byte.
const SHORT_NAMES: usize = 160;
const LITERAL: u8 = 255;
const OLD_BINARY: u8 = 2;
/// Nearly the limit of BSON. Deeper documents are refused before a parser sees them.
const DEPTH_MAX: usize = 198;
/// Limits the time per input.
const VALUES_MAX: usize = 4_000;

/// The kind of a value: its first byte, modulo the number of kinds.
#[derive(Clone, Copy)]
enum ValueKind {
    Document,
    Array,
    Text,
    SmallInt,
    Int,
    Long,
    Double,
    Bool,
    Null,
    Decimal,
    DateTime,
    ObjectId,
    Regex,
    Binary,
    Timestamp,
    Undefined,
    Symbol,
    JavaScript,
    JavaScriptWithScope,
    DbPointer,
    MinKey,
    MaxKey,
    /// A document with one field, which most operators are.
    Operator,
    SpecialDouble,
}

const KINDS: [ValueKind; 24] = [
    ValueKind::Document,
    ValueKind::Array,
    ValueKind::Text,
    ValueKind::SmallInt,
    ValueKind::Int,
    ValueKind::Long,
    ValueKind::Double,
    ValueKind::Bool,
    ValueKind::Null,
    ValueKind::Decimal,
    ValueKind::DateTime,
    ValueKind::ObjectId,
    ValueKind::Regex,
    ValueKind::Binary,
    ValueKind::Timestamp,
    ValueKind::Undefined,
    ValueKind::Symbol,
    ValueKind::JavaScript,
    ValueKind::JavaScriptWithScope,
    ValueKind::DbPointer,
    ValueKind::MinKey,
    ValueKind::MaxKey,
    ValueKind::Operator,
    ValueKind::SpecialDouble,
];

const SPECIAL_DOUBLES: [f64; 12] = [
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    -0.0,
    0.1,
    f64::MAX,
    f64::MIN_POSITIVE,
    9_223_372_036_854_775_808.0,
    -9_223_372_036_854_775_808.0,
    9_007_199_254_740_993.0,
    2_147_483_648.0,
    1.5,
];

/// Decodes values from bytes.
pub struct ValueDecoder<'a> {
    bytes: &'a [u8],
    values: usize,
}

impl<'a> ValueDecoder<'a> {
    /// Starts at the first byte.
    pub fn new(bytes: &'a [u8]) -> ValueDecoder<'a> {
        ValueDecoder { bytes, values: 0 }
    }

    /// The bytes that were not decoded yet.
    pub fn rest(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the next byte; 0 after the end.
    pub fn byte(&mut self) -> u8 {
        let (first, rest) = self.bytes.split_first().unwrap_or((&0, &[]));
        self.bytes = rest;
        *first
    }

    /// Decodes the next value.
    pub fn value(&mut self) -> Value {
        self.value_at_depth(0)
    }

    /// Decodes the next value as a document. Other values become the field "a" of a document.
    pub fn document(&mut self) -> DocumentBuf {
        match self.value() {
            Value::Document(document) => document,
            other => {
                let mut document = DocumentBuf::new();
                document.push("a", other);
                document
            }
        }
    }

    /// Decodes the next value as an array. Other values become the only element of an array.
    pub fn array(&mut self) -> ArrayBuf {
        match self.value() {
            Value::Array(array) => array,
            other => [other].into_iter().collect(),
        }
    }

    fn take<const N: usize>(&mut self) -> [u8; N] {
        let mut taken = [0; N];
        taken.iter_mut().for_each(|byte| *byte = self.byte());
        taken
    }

    fn bytes(&mut self) -> &'a [u8] {
        let length = usize::from(self.byte()).min(self.bytes.len());
        let (taken, rest) = self.bytes.split_at(length);
        self.bytes = rest;
        taken
    }

    fn text(&mut self) -> String {
        let first = self.byte();
        let number = match usize::from(first) {
            short if short < SHORT_NAMES => short,
            _ if first == LITERAL => return String::from_utf8_lossy(self.bytes()).into_owned(),
            long => (long - SHORT_NAMES) * 256 + usize::from(self.byte()),
        };
        NAMES[number % NAMES.len()].to_owned()
    }

    /// Decodes a text without zero bytes, as field names require.
    fn name(&mut self) -> String {
        let mut name = self.text();
        name.retain(|letter| letter != '\0');
        name
    }

    fn value_at_depth(&mut self, depth: usize) -> Value {
        self.values += 1;
        if self.bytes.is_empty() || depth > DEPTH_MAX || self.values > VALUES_MAX {
            return Value::Null;
        }
        match KINDS[usize::from(self.byte()) % KINDS.len()] {
            ValueKind::Document => Value::Document(self.fields(depth)),
            ValueKind::Operator => Value::Document(self.field(depth, DocumentBuf::new())),
            ValueKind::Array => {
                let count = self.byte();
                Value::Array((0..count).map_while(|_| self.item(depth)).collect())
            }
            ValueKind::JavaScriptWithScope => Value::JavaScriptWithScope {
                code: self.text(),
                scope: self.fields(depth),
            },
            other => self.scalar(other),
        }
    }

    fn item(&mut self, depth: usize) -> Option<Value> {
        (!self.bytes.is_empty()).then(|| self.value_at_depth(depth + 1))
    }

    fn fields(&mut self, depth: usize) -> DocumentBuf {
        let mut document = DocumentBuf::new();
        for _ in 0..self.byte() {
            if self.bytes.is_empty() {
                break;
            }
            document = self.field(depth, document);
        }
        document
    }

    fn field(&mut self, depth: usize, mut document: DocumentBuf) -> DocumentBuf {
        let name = self.name();
        document.push(&name, self.value_at_depth(depth + 1));
        document
    }

    /// The deprecated subtype 2 contains its length a second time.
    fn binary(&mut self) -> Value {
        let (subtype, content) = (self.byte(), self.bytes());
        let bytes = match subtype {
            OLD_BINARY => [&(content.len() as u32).to_le_bytes(), content].concat(),
            _ => content.to_vec(),
        };
        Value::Binary { subtype, bytes }
    }

    fn scalar(&mut self, kind: ValueKind) -> Value {
        match kind {
            ValueKind::Text => Value::String(self.text()),
            ValueKind::SmallInt => Value::Int32(i32::from(self.byte().cast_signed())),
            ValueKind::Int => Value::Int32(i32::from_le_bytes(self.take())),
            ValueKind::Long => Value::Int64(i64::from_le_bytes(self.take())),
            ValueKind::Double => Value::Double(f64::from_le_bytes(self.take())),
            ValueKind::SpecialDouble => {
                Value::Double(SPECIAL_DOUBLES[usize::from(self.byte()) % SPECIAL_DOUBLES.len()])
            }
            ValueKind::Bool => Value::Bool(self.byte() % 2 == 1),
            ValueKind::Decimal => {
                Value::Decimal128(Decimal128::from_bits(u128::from_le_bytes(self.take())))
            }
            ValueKind::DateTime => Value::DateTime(i64::from_le_bytes(self.take())),
            ValueKind::ObjectId => Value::ObjectId(ObjectId(self.take())),
            ValueKind::Regex => Value::Regex {
                pattern: self.name(),
                options: self.name(),
            },
            ValueKind::Binary => self.binary(),
            ValueKind::Timestamp => {
                Value::Timestamp(Timestamp::from_bits(u64::from_le_bytes(self.take())))
            }
            ValueKind::Undefined => Value::Undefined,
            ValueKind::Symbol => Value::Symbol(self.text()),
            ValueKind::JavaScript => Value::JavaScript(self.text()),
            ValueKind::DbPointer => Value::DbPointer {
                namespace: self.text(),
                id: ObjectId(self.take()),
            },
            ValueKind::MinKey => Value::MinKey,
            ValueKind::MaxKey => Value::MaxKey,
            _ => Value::Null,
        }
    }
}

/// Appends bytes that [`ValueDecoder::value`] decodes as this value. Texts, documents and arrays
/// are cut to 255 bytes or elements.
pub fn encode_value(bytes: &mut Vec<u8>, value: ValueRef<'_>) {
    let kind = value_kind(value);
    bytes.push(kind as u8);
    match value {
        ValueRef::Document(document) => encode_fields(bytes, document, kind),
        ValueRef::Array(array) => {
            bytes.push(array.count().min(255) as u8);
            array
                .iter()
                .take(255)
                .for_each(|item| encode_value(bytes, item));
        }
        ValueRef::String(text) | ValueRef::Symbol(text) | ValueRef::JavaScript(text) => {
            encode_text(bytes, text);
        }
        ValueRef::Int32(small) if matches!(kind, ValueKind::SmallInt) => bytes.push(small as u8),
        ValueRef::Int32(number) => bytes.extend_from_slice(&number.to_le_bytes()),
        ValueRef::Int64(number) | ValueRef::DateTime(number) => {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        ValueRef::Double(number) => bytes.extend_from_slice(&number.to_le_bytes()),
        ValueRef::Bool(flag) => bytes.push(u8::from(flag)),
        ValueRef::Decimal128(number) => bytes.extend_from_slice(&number.bits().to_le_bytes()),
        ValueRef::ObjectId(id) => bytes.extend_from_slice(&id.0),
        ValueRef::Timestamp(timestamp) => bytes.extend_from_slice(&timestamp.bits().to_le_bytes()),
        ValueRef::Regex { pattern, options } => {
            encode_text(bytes, pattern);
            encode_text(bytes, options);
        }
        ValueRef::Binary {
            subtype,
            bytes: content,
        } => {
            bytes.push(subtype);
            let length = if subtype == OLD_BINARY { 4 } else { 0 };
            encode_bytes(bytes, content.get(length..).unwrap_or_default());
        }
        ValueRef::DbPointer { namespace, id } => {
            encode_text(bytes, namespace);
            bytes.extend_from_slice(&id.0);
        }
        ValueRef::JavaScriptWithScope { code, scope } => {
            encode_text(bytes, code);
            encode_fields(bytes, scope, ValueKind::Document);
        }
        ValueRef::Null | ValueRef::Undefined | ValueRef::MinKey | ValueRef::MaxKey => {}
    }
}

fn value_kind(value: ValueRef<'_>) -> ValueKind {
    match value {
        ValueRef::Document(document) if document.count() == 1 => ValueKind::Operator,
        ValueRef::Document(_) => ValueKind::Document,
        ValueRef::Array(_) => ValueKind::Array,
        ValueRef::String(_) => ValueKind::Text,
        ValueRef::Int32(number) if i8::try_from(number).is_ok() => ValueKind::SmallInt,
        ValueRef::Int32(_) => ValueKind::Int,
        ValueRef::Int64(_) => ValueKind::Long,
        ValueRef::Double(_) => ValueKind::Double,
        ValueRef::Bool(_) => ValueKind::Bool,
        ValueRef::Null => ValueKind::Null,
        ValueRef::Decimal128(_) => ValueKind::Decimal,
        ValueRef::DateTime(_) => ValueKind::DateTime,
        ValueRef::ObjectId(_) => ValueKind::ObjectId,
        ValueRef::Regex { .. } => ValueKind::Regex,
        ValueRef::Binary { .. } => ValueKind::Binary,
        ValueRef::Timestamp(_) => ValueKind::Timestamp,
        ValueRef::Undefined => ValueKind::Undefined,
        ValueRef::Symbol(_) => ValueKind::Symbol,
        ValueRef::JavaScript(_) => ValueKind::JavaScript,
        ValueRef::JavaScriptWithScope { .. } => ValueKind::JavaScriptWithScope,
        ValueRef::DbPointer { .. } => ValueKind::DbPointer,
        ValueRef::MinKey => ValueKind::MinKey,
        ValueRef::MaxKey => ValueKind::MaxKey,
    }
}

fn encode_fields(bytes: &mut Vec<u8>, document: Document<'_>, kind: ValueKind) {
    if !matches!(kind, ValueKind::Operator) {
        bytes.push(document.count().min(255) as u8);
    }
    for (name, value) in document.iter().take(255) {
        encode_text(bytes, name);
        encode_value(bytes, value);
    }
}

fn encode_text(bytes: &mut Vec<u8>, text: &str) {
    match NAMES.iter().position(|name| *name == text) {
        Some(number) if number < SHORT_NAMES => bytes.push(number as u8),
        Some(number) => {
            bytes.extend_from_slice(&[(SHORT_NAMES + number / 256) as u8, (number % 256) as u8]);
        }
        None => {
            bytes.push(LITERAL);
            encode_bytes(bytes, text.as_bytes());
        }
    }
}

fn encode_bytes(bytes: &mut Vec<u8>, content: &[u8]) {
    let content = &content[..content.len().min(255)];
    bytes.push(content.len() as u8);
    bytes.extend_from_slice(content);
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::doc;

    fn check(document: DocumentBuf) {
        let mut bytes = Vec::new();
        encode_value(&mut bytes, ValueRef::Document(document.as_document()));
        let mut source = ValueDecoder::new(&bytes);
        assert_eq!(source.value(), Value::Document(document));
        assert!(source.rest().is_empty());
    }

    #[test]
    fn decoding_reverses_encoding() {
        check(doc! {});
        check(doc! { "a": 1, "$set": { "nowhere a name": -1.5 } });
        check(doc! { "$dateTrunc": [1, 1_000, 5i64, "text", true, { "a": Value::Null }] });
        check(doc! {
            "binary": (Value::Binary { subtype: 4, bytes: vec![1, 2] }),
            "regex": (Value::Regex { pattern: "^a".to_owned(), options: "i".to_owned() }),
            "least": (Value::MinKey), "most": (Value::MaxKey), "none": (Value::Undefined),
        });
    }

    #[test]
    fn arbitrary_bytes_are_decoded() {
        for first in 0..=255u8 {
            let bytes = [first; 64];
            let document = ValueDecoder::new(&bytes).document();
            assert!(Document::from_bytes(document.as_bytes()).is_ok());
        }
    }
}
