//! Any bytes as values: what a fuzzer changes in the bytes changes something in the values, and most
//! names are ones that parsers know.
//!
//! ```text
//! value     kind, 1 (modulo the number of kinds) · what the kind needs
//! text      159 and less: the name of that number; 160 to 254: less 160, times 256, and the next byte,
//!           the name of that number modulo their count; 255: length, 1 · bytes
//! document  count, 1 · (text · value)*        array  count, 1 · value*
//! number    4, 8 or 16 bytes, little-endian
//! ```
//! Where the bytes end everything is null. Names are in `names.txt`, to whose end new ones are added:
//! saved inputs mean the same for ever.

use std::sync::LazyLock;

use windrow_document::{
    ArrayBuf, Decimal128, Document, DocumentBuf, ObjectId, Timestamp, Value, ValueRef,
};

static NAMES: LazyLock<Vec<&str>> = LazyLock::new(|| include_str!("names.txt").lines().collect());

/// Names below stand in one byte.
const SHORT_NAMES: usize = 160;
const LITERAL: u8 = 255;
const OLD_BINARY: u8 = 2;
/// As deep as what a message can hold, or nearly: deeper documents are refused before anybody parses them.
const DEPTH_MAX: usize = 198;
/// More would only be slow.
const VALUES_MAX: usize = 4_000;

/// What a value's first byte says, modulo their count.
#[derive(Clone, Copy)]
enum Kind {
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
    /// A document of one field: most operators are one.
    Operator,
    SpecialDouble,
}

const KINDS: [Kind; 24] = [
    Kind::Document,
    Kind::Array,
    Kind::Text,
    Kind::SmallInt,
    Kind::Int,
    Kind::Long,
    Kind::Double,
    Kind::Bool,
    Kind::Null,
    Kind::Decimal,
    Kind::DateTime,
    Kind::ObjectId,
    Kind::Regex,
    Kind::Binary,
    Kind::Timestamp,
    Kind::Undefined,
    Kind::Symbol,
    Kind::JavaScript,
    Kind::JavaScriptWithScope,
    Kind::DbPointer,
    Kind::MinKey,
    Kind::MaxKey,
    Kind::Operator,
    Kind::SpecialDouble,
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

/// Takes values off bytes.
pub struct Source<'a> {
    bytes: &'a [u8],
    values: usize,
}

impl<'a> Source<'a> {
    pub fn new(bytes: &'a [u8]) -> Source<'a> {
        Source { bytes, values: 0 }
    }

    /// What has not been taken.
    pub fn rest(&self) -> &'a [u8] {
        self.bytes
    }

    /// The next byte; 0 at the end.
    pub fn byte(&mut self) -> u8 {
        let (first, rest) = self.bytes.split_first().unwrap_or((&0, &[]));
        self.bytes = rest;
        *first
    }

    pub fn value(&mut self) -> Value {
        self.value_at(0)
    }

    /// The next value, where it is no document one with it under the name "a".
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

    /// The next value, where it is no array one with it alone.
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

    /// A text that can be a C string.
    fn name(&mut self) -> String {
        let mut name = self.text();
        name.retain(|letter| letter != '\0');
        name
    }

    fn value_at(&mut self, depth: usize) -> Value {
        self.values += 1;
        if self.bytes.is_empty() || depth > DEPTH_MAX || self.values > VALUES_MAX {
            return Value::Null;
        }
        match KINDS[usize::from(self.byte()) % KINDS.len()] {
            Kind::Document => Value::Document(self.fields(depth)),
            Kind::Operator => Value::Document(self.field(depth, DocumentBuf::new())),
            Kind::Array => {
                let count = self.byte();
                Value::Array((0..count).map_while(|_| self.item(depth)).collect())
            }
            Kind::JavaScriptWithScope => Value::JavaScriptWithScope {
                code: self.text(),
                scope: self.fields(depth),
            },
            other => self.scalar(other),
        }
    }

    fn item(&mut self, depth: usize) -> Option<Value> {
        (!self.bytes.is_empty()).then(|| self.value_at(depth + 1))
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
        document.push(&name, self.value_at(depth + 1));
        document
    }

    /// What has the old subtype says its length twice.
    fn binary(&mut self) -> Value {
        let (subtype, content) = (self.byte(), self.bytes());
        let bytes = match subtype {
            OLD_BINARY => [&(content.len() as u32).to_le_bytes(), content].concat(),
            _ => content.to_vec(),
        };
        Value::Binary { subtype, bytes }
    }

    fn scalar(&mut self, kind: Kind) -> Value {
        match kind {
            Kind::Text => Value::String(self.text()),
            Kind::SmallInt => Value::Int32(i32::from(self.byte().cast_signed())),
            Kind::Int => Value::Int32(i32::from_le_bytes(self.take())),
            Kind::Long => Value::Int64(i64::from_le_bytes(self.take())),
            Kind::Double => Value::Double(f64::from_le_bytes(self.take())),
            Kind::SpecialDouble => {
                Value::Double(SPECIAL_DOUBLES[usize::from(self.byte()) % SPECIAL_DOUBLES.len()])
            }
            Kind::Bool => Value::Bool(self.byte() % 2 == 1),
            Kind::Decimal => {
                Value::Decimal128(Decimal128::from_bits(u128::from_le_bytes(self.take())))
            }
            Kind::DateTime => Value::DateTime(i64::from_le_bytes(self.take())),
            Kind::ObjectId => Value::ObjectId(ObjectId(self.take())),
            Kind::Regex => Value::Regex {
                pattern: self.name(),
                options: self.name(),
            },
            Kind::Binary => self.binary(),
            Kind::Timestamp => {
                Value::Timestamp(Timestamp::from_bits(u64::from_le_bytes(self.take())))
            }
            Kind::Undefined => Value::Undefined,
            Kind::Symbol => Value::Symbol(self.text()),
            Kind::JavaScript => Value::JavaScript(self.text()),
            Kind::DbPointer => Value::DbPointer {
                namespace: self.text(),
                id: ObjectId(self.take()),
            },
            Kind::MinKey => Value::MinKey,
            Kind::MaxKey => Value::MaxKey,
            _ => Value::Null,
        }
    }
}

/// Appends bytes of which [`Source::value`] makes this value, but for what is longer than 255.
pub fn put_value(bytes: &mut Vec<u8>, value: ValueRef<'_>) {
    let kind = kind_of(value);
    bytes.push(kind as u8);
    match value {
        ValueRef::Document(document) => put_fields(bytes, document, kind),
        ValueRef::Array(array) => {
            bytes.push(array.count().min(255) as u8);
            array
                .iter()
                .take(255)
                .for_each(|item| put_value(bytes, item));
        }
        ValueRef::String(text) | ValueRef::Symbol(text) | ValueRef::JavaScript(text) => {
            put_text(bytes, text);
        }
        ValueRef::Int32(small) if matches!(kind, Kind::SmallInt) => bytes.push(small as u8),
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
            put_text(bytes, pattern);
            put_text(bytes, options);
        }
        ValueRef::Binary {
            subtype,
            bytes: content,
        } => {
            bytes.push(subtype);
            let length = if subtype == OLD_BINARY { 4 } else { 0 };
            put_bytes(bytes, content.get(length..).unwrap_or_default());
        }
        ValueRef::DbPointer { namespace, id } => {
            put_text(bytes, namespace);
            bytes.extend_from_slice(&id.0);
        }
        ValueRef::JavaScriptWithScope { code, scope } => {
            put_text(bytes, code);
            put_fields(bytes, scope, Kind::Document);
        }
        ValueRef::Null | ValueRef::Undefined | ValueRef::MinKey | ValueRef::MaxKey => {}
    }
}

fn kind_of(value: ValueRef<'_>) -> Kind {
    match value {
        ValueRef::Document(document) if document.count() == 1 => Kind::Operator,
        ValueRef::Document(_) => Kind::Document,
        ValueRef::Array(_) => Kind::Array,
        ValueRef::String(_) => Kind::Text,
        ValueRef::Int32(number) if i8::try_from(number).is_ok() => Kind::SmallInt,
        ValueRef::Int32(_) => Kind::Int,
        ValueRef::Int64(_) => Kind::Long,
        ValueRef::Double(_) => Kind::Double,
        ValueRef::Bool(_) => Kind::Bool,
        ValueRef::Null => Kind::Null,
        ValueRef::Decimal128(_) => Kind::Decimal,
        ValueRef::DateTime(_) => Kind::DateTime,
        ValueRef::ObjectId(_) => Kind::ObjectId,
        ValueRef::Regex { .. } => Kind::Regex,
        ValueRef::Binary { .. } => Kind::Binary,
        ValueRef::Timestamp(_) => Kind::Timestamp,
        ValueRef::Undefined => Kind::Undefined,
        ValueRef::Symbol(_) => Kind::Symbol,
        ValueRef::JavaScript(_) => Kind::JavaScript,
        ValueRef::JavaScriptWithScope { .. } => Kind::JavaScriptWithScope,
        ValueRef::DbPointer { .. } => Kind::DbPointer,
        ValueRef::MinKey => Kind::MinKey,
        ValueRef::MaxKey => Kind::MaxKey,
    }
}

fn put_fields(bytes: &mut Vec<u8>, document: Document<'_>, kind: Kind) {
    if !matches!(kind, Kind::Operator) {
        bytes.push(document.count().min(255) as u8);
    }
    for (name, value) in document.iter().take(255) {
        put_text(bytes, name);
        put_value(bytes, value);
    }
}

fn put_text(bytes: &mut Vec<u8>, text: &str) {
    match NAMES.iter().position(|name| *name == text) {
        Some(number) if number < SHORT_NAMES => bytes.push(number as u8),
        Some(number) => {
            bytes.extend_from_slice(&[(SHORT_NAMES + number / 256) as u8, (number % 256) as u8]);
        }
        None => {
            bytes.push(LITERAL);
            put_bytes(bytes, text.as_bytes());
        }
    }
}

fn put_bytes(bytes: &mut Vec<u8>, content: &[u8]) {
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
        put_value(&mut bytes, ValueRef::Document(document.as_document()));
        let mut source = Source::new(&bytes);
        assert_eq!(source.value(), Value::Document(document));
        assert!(source.rest().is_empty());
    }

    #[test]
    fn values_come_back() {
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
    fn any_bytes_are_a_value() {
        for first in 0..=255u8 {
            let bytes = [first; 64];
            let document = Source::new(&bytes).document();
            assert!(Document::from_bytes(document.as_bytes()).is_ok());
        }
    }
}
