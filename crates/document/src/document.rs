//! Documents and arrays as validated BSON, borrowed and owned.
//!
//! ```text
//! document:  length i32 | element* | 0x00          (the length includes all of it)
//! element:   type u8 | name, UTF-8 without 0x00 | 0x00 | value
//! ```
//!
//! An array is a document with the names "0", "1", … Source: <https://bsonspec.org/spec.html>.

use std::fmt;

use crate::layout::{find_zero, read_i32, read_length, read_u64, value_length};
use crate::validate::{self, BsonError};
use crate::value::{Timestamp, Type, Value, ValueRef};
use crate::{ArrayBuilder, Decimal128, DocumentBuilder, ObjectId};

/// A borrowed document, validated by [`Document::from_bytes`] or written by a builder.
///
/// ```
/// use windrow_document::{Document, ValueRef};
///
/// let bytes = b"\x0c\0\0\0\x10a\0\x07\0\0\0\0";
/// let document = Document::from_bytes(bytes).unwrap();
/// assert_eq!(document.get("a"), Some(ValueRef::Int32(7)));
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Document<'a>(&'a [u8]);

/// A borrowed array.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Array<'a>(Document<'a>);

/// An owned document.
#[derive(Clone, PartialEq, Eq)]
pub struct DocumentBuf(Vec<u8>);

/// An owned array.
#[derive(Clone, PartialEq, Eq)]
pub struct ArrayBuf(DocumentBuf);

/// The encoding of a document without fields.
const EMPTY: &[u8] = &[5, 0, 0, 0, 0];

impl<'a> Document<'a> {
    /// The document without fields.
    pub const EMPTY: Document<'static> = Document(EMPTY);

    /// Validates structure and UTF-8 of `bytes`, which must be exactly one document. See
    /// [`validate`].
    pub fn from_bytes(bytes: &'a [u8]) -> Result<Document<'a>, BsonError> {
        validate::document(bytes)?;
        Ok(Document(bytes))
    }

    /// Wraps bytes that were validated earlier, for example before they were stored in a
    /// checksummed block. Invalid bytes are memory-safe: iteration stops where they begin.
    pub fn from_validated(bytes: &'a [u8]) -> Document<'a> {
        Document(bytes)
    }

    /// The encoding.
    pub fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    /// Returns an owned copy.
    pub fn to_buf(self) -> DocumentBuf {
        DocumentBuf(self.0.to_vec())
    }

    /// Returns `true` if there are no fields.
    pub fn is_empty(self) -> bool {
        self.0.len() <= EMPTY.len()
    }

    /// Returns the value of the first field with this name.
    pub fn get(self, name: &str) -> Option<ValueRef<'a>> {
        let mut elements = self.elements();
        while let Some(element) = elements.next_raw() {
            if element.name == name.as_bytes() {
                return element.value();
            }
        }
        None
    }

    /// Returns `true` if there is a field with this name.
    pub fn contains(self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Iterates over names and values.
    pub fn iter(self) -> Fields<'a> {
        Fields(self.elements())
    }

    /// Iterates over the elements without decoding their values.
    pub fn elements(self) -> Elements<'a> {
        Elements {
            rest: self.element_bytes(),
        }
    }

    /// The bytes of all elements: those between the length and the final zero. Damaged bytes that
    /// are too short for both have no elements, as all damaged bytes end the iteration.
    pub(crate) fn element_bytes(self) -> &'a [u8] {
        match self.0 {
            [_, _, _, _, elements @ .., _] => elements,
            _ => &[],
        }
    }

    /// Counts the fields.
    pub fn count(self) -> usize {
        let mut elements = self.elements();
        std::iter::from_fn(|| elements.next_raw()).count()
    }

    /// Returns the first field.
    pub fn first(self) -> Option<(&'a str, ValueRef<'a>)> {
        self.iter().next()
    }
}

impl<'a> Array<'a> {
    /// The array without elements.
    pub const EMPTY: Array<'static> = Array(Document::EMPTY);

    /// Treats a document's encoding as an array.
    pub fn from_document(document: Document<'a>) -> Array<'a> {
        Array(document)
    }

    /// Treats the array's encoding as a document with the names "0", "1", …
    pub fn as_document(self) -> Document<'a> {
        self.0
    }

    /// The encoding.
    pub fn as_bytes(self) -> &'a [u8] {
        self.0.0
    }

    /// Returns an owned copy.
    pub fn to_buf(self) -> ArrayBuf {
        ArrayBuf(self.0.to_buf())
    }

    /// Returns `true` if there are no elements.
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// Counts the elements.
    pub fn count(self) -> usize {
        self.0.count()
    }

    /// Returns the element with this index. Takes time in proportion to the index.
    pub fn get(self, index: usize) -> Option<ValueRef<'a>> {
        let mut elements = self.0.elements();
        for _ in 0..index {
            elements.next_raw()?;
        }
        elements.next_raw()?.value()
    }

    /// Returns the offset of every `step`th element, starting with the first, and the number of
    /// elements. Random access is then possible through [`get_behind`](Self::get_after).
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

    /// Returns the element `steps` after the one at `offset`, which must be one of
    /// [`offsets`](Self::offsets).
    pub fn get_after(self, offset: u32, steps: usize) -> Option<ValueRef<'a>> {
        let end = self.as_bytes().len() - 1;
        let rest = self.as_bytes().get(offset as usize..end)?;
        Values(Elements { rest }).nth(steps)
    }

    /// Iterates over the elements.
    pub fn iter(self) -> Values<'a> {
        Values(self.0.elements())
    }
}

impl DocumentBuf {
    /// Creates a document without fields.
    pub fn new() -> DocumentBuf {
        DocumentBuf(EMPTY.to_vec())
    }

    /// Validates `bytes`, which must be exactly one document.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<DocumentBuf, BsonError> {
        validate::document(&bytes)?;
        Ok(DocumentBuf(bytes))
    }

    /// Wraps bytes that a builder wrote or that were validated earlier.
    pub fn from_validated(bytes: Vec<u8>) -> DocumentBuf {
        DocumentBuf(bytes)
    }

    /// Borrows the document.
    pub fn as_document(&self) -> Document<'_> {
        Document(&self.0)
    }

    /// The encoding.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the encoding.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// Returns the value of the first field with this name.
    pub fn get(&self, name: &str) -> Option<ValueRef<'_>> {
        self.as_document().get(name)
    }

    /// Iterates over names and values.
    pub fn iter(&self) -> Fields<'_> {
        self.as_document().iter()
    }

    /// Appends a field.
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
    /// Creates an array without elements.
    pub fn new() -> ArrayBuf {
        ArrayBuf(DocumentBuf::new())
    }

    /// Wraps a document with the names "0", "1", …
    pub fn from_document(document: DocumentBuf) -> ArrayBuf {
        ArrayBuf(document)
    }

    /// Borrows the array.
    pub fn as_array(&self) -> Array<'_> {
        Array(self.0.as_document())
    }

    /// Iterates over the elements.
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

/// A field whose value is not decoded.
#[derive(Clone, Copy, Debug)]
pub struct Element<'a> {
    /// The type of the value.
    pub type_of: Type,
    /// The field's name, without its terminating zero byte.
    pub name: &'a [u8],
    /// The encoding of the value, without type and name.
    pub bytes: &'a [u8],
}

impl<'a> Element<'a> {
    /// Decodes the value. Returns `None` if its bytes are invalid.
    pub fn value(&self) -> Option<ValueRef<'a>> {
        decode(self.type_of, self.bytes)
    }

    /// Returns the text of a string value, without checking its UTF-8 again.
    #[inline]
    pub fn string_bytes(&self) -> Option<&'a [u8]> {
        let text = self.bytes.get(4..self.bytes.len().checked_sub(1)?);
        text.filter(|_| self.type_of == Type::String)
    }

    /// Returns the name. Returns `None` if it is not valid UTF-8.
    pub fn name_str(&self) -> Option<&'a str> {
        std::str::from_utf8(self.name).ok()
    }
}

/// Iterates over the elements of a document without decoding their values.
#[derive(Clone, Copy)]
pub struct Elements<'a> {
    rest: &'a [u8],
}

impl<'a> Elements<'a> {
    /// Returns the next element, or `None` at the end or at invalid bytes.
    #[inline]
    pub fn next_raw(&mut self) -> Option<Element<'a>> {
        let (&type_byte, rest) = self.rest.split_first()?;
        let type_of = Type::from_byte(type_byte)?;
        let name_length = find_zero(rest)?;
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

/// Iterates over the names and values of a document.
#[derive(Clone)]
pub struct Fields<'a>(Elements<'a>);

impl<'a> Iterator for Fields<'a> {
    type Item = (&'a str, ValueRef<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let element = self.0.next_raw()?;
        Some((element.name_str()?, element.value()?))
    }
}

/// Iterates over the values of an array.
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

/// Decodes a value from its encoding.
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

/// The content of subtype 2 includes its inner length, so that values are written back unchanged.
fn decode_binary(bytes: &[u8]) -> Option<ValueRef<'_>> {
    Some(ValueRef::Binary {
        subtype: *bytes.get(4)?,
        bytes: bytes.get(5..)?,
    })
}

fn decode_regex(bytes: &[u8]) -> Option<ValueRef<'_>> {
    let end = find_zero(bytes)?;
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
