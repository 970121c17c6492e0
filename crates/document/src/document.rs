//! Documents and arrays as validated BSON bytes, borrowed and owned.
//!
//! ```text
//! document:  length i32 | element* | 0x00          (length counts all of it)
//! element:   type u8 | name, UTF-8 without 0x00 | 0x00 | value
//! ```
//! An array is a document whose names are "0", "1", …

use std::fmt;

use crate::layout::{read_i32, read_length, read_u64, value_length, zero_at};
use crate::validate::{self, BsonError};
use crate::value::{Timestamp, Type, Value, ValueRef};
use crate::{ArrayBuilder, Decimal128, DocumentBuilder, ObjectId};

/// A document, borrowed: bytes that [`Document::from_bytes`] or a builder vouch for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Document<'a>(&'a [u8]);

/// An array, borrowed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Array<'a>(Document<'a>);

/// A document that owns its bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct DocumentBuf(Vec<u8>);

/// An array that owns its bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct ArrayBuf(DocumentBuf);

/// The bytes of a document without fields.
const EMPTY: &[u8] = &[5, 0, 0, 0, 0];

impl<'a> Document<'a> {
    pub const EMPTY: Document<'static> = Document(EMPTY);

    /// Validates structure and UTF-8 of all of `bytes` in one pass. See [`validate`].
    pub fn from_bytes(bytes: &'a [u8]) -> Result<Document<'a>, BsonError> {
        validate::document(bytes)?;
        Ok(Document(bytes))
    }

    /// Takes bytes that were validated before (that come from a checksummed block, say). Damaged
    /// bytes are safe: reading stops at them.
    pub fn from_validated(bytes: &'a [u8]) -> Document<'a> {
        Document(bytes)
    }

    pub fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    pub fn to_buf(self) -> DocumentBuf {
        DocumentBuf(self.0.to_vec())
    }

    pub fn is_empty(self) -> bool {
        self.0.len() <= EMPTY.len()
    }

    /// The value of the first field of that name.
    pub fn get(self, name: &str) -> Option<ValueRef<'a>> {
        let mut elements = self.elements();
        while let Some(element) = elements.next_raw() {
            if element.name == name.as_bytes() {
                return element.value();
            }
        }
        None
    }

    pub fn contains(self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Names and values in order.
    pub fn iter(self) -> Fields<'a> {
        Fields(self.elements())
    }

    /// The elements undecoded: for those who skip most of them.
    pub fn elements(self) -> Elements<'a> {
        let inner = self
            .0
            .len()
            .checked_sub(1)
            .and_then(|end| self.0.get(4..end));
        Elements {
            rest: inner.unwrap_or_default(),
        }
    }

    /// The number of fields.
    pub fn count(self) -> usize {
        let mut elements = self.elements();
        std::iter::from_fn(|| elements.next_raw()).count()
    }

    /// The first field.
    pub fn first(self) -> Option<(&'a str, ValueRef<'a>)> {
        self.iter().next()
    }
}

impl<'a> Array<'a> {
    pub const EMPTY: Array<'static> = Array(Document::EMPTY);

    /// The same bytes, taken as an array.
    pub fn from_document(document: Document<'a>) -> Array<'a> {
        Array(document)
    }

    /// The same bytes, taken as a document with the names "0", "1", …
    pub fn as_document(self) -> Document<'a> {
        self.0
    }

    pub fn as_bytes(self) -> &'a [u8] {
        self.0.0
    }

    pub fn to_buf(self) -> ArrayBuf {
        ArrayBuf(self.0.to_buf())
    }

    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// The number of elements, counted.
    pub fn count(self) -> usize {
        self.0.count()
    }

    pub fn get(self, index: usize) -> Option<ValueRef<'a>> {
        let mut elements = self.0.elements();
        for _ in 0..index {
            elements.next_raw()?;
        }
        elements.next_raw()?.value()
    }

    /// The offsets of every `step`th element, from the first one on, and the number of all elements.
    pub fn offsets(self, step: usize) -> (Vec<u32>, usize) {
        let (mut elements, mut offsets, mut count) = (self.0.elements(), Vec::new(), 0);
        let end = self.as_bytes().len() - 1;
        loop {
            let offset = end - elements.rest.len();
            if elements.next_raw().is_none() {
                return (offsets, count);
            }
            if count % step.max(1) == 0 {
                offsets.push(offset as u32);
            }
            count += 1;
        }
    }

    /// The element so many behind the one at an offset, which is one of [`offsets`](Self::offsets).
    pub fn get_behind(self, offset: u32, steps: usize) -> Option<ValueRef<'a>> {
        let end = self.as_bytes().len() - 1;
        let rest = self.as_bytes().get(offset as usize..end)?;
        Values(Elements { rest }).nth(steps)
    }

    pub fn iter(self) -> Values<'a> {
        Values(self.0.elements())
    }
}

impl DocumentBuf {
    pub fn new() -> DocumentBuf {
        DocumentBuf(EMPTY.to_vec())
    }

    /// Validates, then takes.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<DocumentBuf, BsonError> {
        validate::document(&bytes)?;
        Ok(DocumentBuf(bytes))
    }

    /// Takes bytes that a builder of this crate or a validation vouches for.
    pub fn from_validated(bytes: Vec<u8>) -> DocumentBuf {
        DocumentBuf(bytes)
    }

    pub fn as_document(&self) -> Document<'_> {
        Document(&self.0)
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    pub fn get(&self, name: &str) -> Option<ValueRef<'_>> {
        self.as_document().get(name)
    }

    pub fn iter(&self) -> Fields<'_> {
        self.as_document().iter()
    }

    /// Adds a field at the end.
    pub fn push(&mut self, name: &str, value: impl Into<Value>) {
        let mut builder = DocumentBuilder::extend(std::mem::take(&mut self.0));
        builder.append(name, value.into().as_ref());
        *self = builder.finish();
    }
}

impl Default for DocumentBuf {
    fn default() -> Self {
        DocumentBuf::new()
    }
}

impl ArrayBuf {
    pub fn new() -> ArrayBuf {
        ArrayBuf(DocumentBuf::new())
    }

    /// Takes the bytes of a document whose names are "0", "1", …
    pub fn from_document(document: DocumentBuf) -> ArrayBuf {
        ArrayBuf(document)
    }

    pub fn as_array(&self) -> Array<'_> {
        Array(self.0.as_document())
    }

    pub fn iter(&self) -> Values<'_> {
        self.as_array().iter()
    }
}

impl Default for ArrayBuf {
    fn default() -> Self {
        ArrayBuf::new()
    }
}

impl FromIterator<Value> for ArrayBuf {
    fn from_iter<I: IntoIterator<Item = Value>>(values: I) -> ArrayBuf {
        let mut builder = ArrayBuilder::new();
        values
            .into_iter()
            .for_each(|value| builder.push(value.as_ref()));
        builder.finish()
    }
}

impl<'a> FromIterator<ValueRef<'a>> for ArrayBuf {
    fn from_iter<I: IntoIterator<Item = ValueRef<'a>>>(values: I) -> ArrayBuf {
        let mut builder = ArrayBuilder::new();
        values.into_iter().for_each(|value| builder.push(value));
        builder.finish()
    }
}

impl<'a, N: AsRef<str>> FromIterator<(N, ValueRef<'a>)> for DocumentBuf {
    fn from_iter<I: IntoIterator<Item = (N, ValueRef<'a>)>>(fields: I) -> DocumentBuf {
        let mut builder = DocumentBuilder::new();
        fields
            .into_iter()
            .for_each(|(name, value)| builder.append(name.as_ref(), value));
        builder.finish()
    }
}

impl<'a> IntoIterator for Document<'a> {
    type Item = (&'a str, ValueRef<'a>);
    type IntoIter = Fields<'a>;
    fn into_iter(self) -> Fields<'a> {
        self.iter()
    }
}

impl<'a> IntoIterator for Array<'a> {
    type Item = ValueRef<'a>;
    type IntoIter = Values<'a>;
    fn into_iter(self) -> Values<'a> {
        self.iter()
    }
}

/// An element whose value has not been decoded.
#[derive(Clone, Copy, Debug)]
pub struct Element<'a> {
    pub type_of: Type,
    pub name: &'a [u8],
    /// The value's bytes, all of them and no more.
    pub bytes: &'a [u8],
}

impl<'a> Element<'a> {
    pub fn value(&self) -> Option<ValueRef<'a>> {
        decode(self.type_of, self.bytes)
    }

    /// The bytes of a string.
    #[inline]
    pub fn string_bytes(&self) -> Option<&'a [u8]> {
        let text = self.bytes.get(4..self.bytes.len().checked_sub(1)?);
        text.filter(|_| self.type_of == Type::String)
    }

    pub fn name_str(&self) -> Option<&'a str> {
        std::str::from_utf8(self.name).ok()
    }
}

/// Walks the elements of a document without decoding values.
#[derive(Clone, Copy)]
pub struct Elements<'a> {
    rest: &'a [u8],
}

impl<'a> Elements<'a> {
    /// The next element, or None at the end (or at damaged bytes).
    #[inline]
    pub fn next_raw(&mut self) -> Option<Element<'a>> {
        let (&type_byte, rest) = self.rest.split_first()?;
        let type_of = Type::from_byte(type_byte)?;
        let name_length = zero_at(rest)?;
        let name = rest.get(..name_length)?;
        let rest = rest.get(name_length + 1..)?;
        let length = value_length(type_of, rest)?;
        let bytes = rest.get(..length)?;
        self.rest = rest.get(length..)?;
        Some(Element {
            type_of,
            name,
            bytes,
        })
    }
}

/// Names and values of a document.
#[derive(Clone)]
pub struct Fields<'a>(Elements<'a>);

impl<'a> Iterator for Fields<'a> {
    type Item = (&'a str, ValueRef<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let element = self.0.next_raw()?;
        Some((element.name_str()?, element.value()?))
    }
}

/// Values of an array.
#[derive(Clone)]
pub struct Values<'a>(Elements<'a>);

impl<'a> Iterator for Values<'a> {
    type Item = ValueRef<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next_raw()?.value()
    }
}

fn string(bytes: &[u8]) -> Option<&str> {
    let length = read_length(bytes)?;
    let text = bytes.get(4..length.checked_add(3)?)?;
    std::str::from_utf8(text).ok()
}

fn object_id(bytes: &[u8]) -> Option<ObjectId> {
    bytes.first_chunk().map(|chunk| ObjectId(*chunk))
}

/// Decodes a value from exactly its bytes.
pub(crate) fn decode(type_of: Type, bytes: &[u8]) -> Option<ValueRef<'_>> {
    Some(match type_of {
        Type::Double => ValueRef::Double(f64::from_bits(read_u64(bytes)?)),
        Type::String => ValueRef::String(string(bytes)?),
        Type::Document => ValueRef::Document(Document(bytes)),
        Type::Array => ValueRef::Array(Array(Document(bytes))),
        Type::Binary => decode_binary(bytes)?,
        Type::Undefined => ValueRef::Undefined,
        Type::ObjectId => ValueRef::ObjectId(object_id(bytes)?),
        Type::Bool => ValueRef::Bool(*bytes.first()? != 0),
        Type::DateTime => ValueRef::DateTime(read_u64(bytes)? as i64),
        Type::Null => ValueRef::Null,
        Type::Regex => decode_regex(bytes)?,
        Type::DbPointer => {
            let id = object_id(bytes.get(bytes.len().checked_sub(12)?..)?)?;
            ValueRef::DbPointer {
                namespace: string(bytes)?,
                id,
            }
        }
        Type::JavaScript => ValueRef::JavaScript(string(bytes)?),
        Type::Symbol => ValueRef::Symbol(string(bytes)?),
        Type::JavaScriptWithScope => {
            let code = bytes.get(4..)?;
            let scope = code.get(read_length(code)?.checked_add(4)?..)?;
            ValueRef::JavaScriptWithScope {
                code: string(code)?,
                scope: Document(scope),
            }
        }
        Type::Int32 => ValueRef::Int32(read_i32(bytes)?),
        Type::Timestamp => ValueRef::Timestamp(Timestamp::from_bits(read_u64(bytes)?)),
        Type::Int64 => ValueRef::Int64(read_u64(bytes)? as i64),
        Type::Decimal128 => {
            let bits = bytes
                .first_chunk()
                .map(|chunk| u128::from_le_bytes(*chunk))?;
            ValueRef::Decimal128(Decimal128::from_bits(bits))
        }
        Type::MinKey => ValueRef::MinKey,
        Type::MaxKey => ValueRef::MaxKey,
    })
}

/// The bytes are kept as they came (subtype 2 with its second length), so that they go back as
/// they came.
fn decode_binary(bytes: &[u8]) -> Option<ValueRef<'_>> {
    Some(ValueRef::Binary {
        subtype: *bytes.get(4)?,
        bytes: bytes.get(5..)?,
    })
}

fn decode_regex(bytes: &[u8]) -> Option<ValueRef<'_>> {
    let end = zero_at(bytes)?;
    let pattern = std::str::from_utf8(bytes.get(..end)?).ok()?;
    let options = bytes.get(end + 1..bytes.len().checked_sub(1)?)?;
    Some(ValueRef::Regex {
        pattern,
        options: std::str::from_utf8(options).ok()?,
    })
}

impl fmt::Debug for Document<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_map().entries(self.iter()).finish()
    }
}

impl fmt::Debug for DocumentBuf {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_document().fmt(formatter)
    }
}

impl fmt::Debug for Array<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.iter()).finish()
    }
}

impl fmt::Debug for ArrayBuf {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_array().fmt(formatter)
    }
}
