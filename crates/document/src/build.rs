//! Builders of documents and arrays, and the macros [`doc!`](crate::doc) and
//! [`array!`](crate::array).

use crate::value::ValueRef;
use crate::{ArrayBuf, Document, DocumentBuf};

/// Writes a document field by field. A field name ends at its first zero byte, because BSON cannot
/// represent one.
///
/// ```
/// use windrow_document::{DocumentBuilder, ValueRef, doc};
///
/// let mut builder = DocumentBuilder::new();
/// builder.append("a", ValueRef::Int32(1));
/// builder.begin_document("b");
/// builder.append("c", ValueRef::Null);
/// builder.end();
/// assert_eq!(builder.finish(), doc! { "a": 1, "b": { "c": null } });
/// ```
#[derive(Clone, Debug)]
pub struct DocumentBuilder {
    bytes: Vec<u8>,
    open: Vec<usize>,
}

impl Default for DocumentBuilder {
    fn default() -> Self {
        DocumentBuilder::new()
    }
}

impl DocumentBuilder {
    /// Creates a builder of an empty document.
    pub fn new() -> DocumentBuilder {
        DocumentBuilder::with_buffer(Vec::with_capacity(64))
    }

    /// Creates a builder that writes into `buffer`. The buffer is cleared and keeps its capacity.
    pub fn with_buffer(mut buffer: Vec<u8>) -> DocumentBuilder {
        buffer.clear();
        buffer.extend_from_slice(&[0; 4]);
        DocumentBuilder {
            bytes: buffer,
            open: Vec::new(),
        }
    }

    /// Creates a builder that continues after the last field of a finished document.
    pub fn extend(mut document: Vec<u8>) -> DocumentBuilder {
        if document.pop().is_none() {
            return DocumentBuilder::new();
        }
        DocumentBuilder {
            bytes: document,
            open: Vec::new(),
        }
    }

    /// The number of bytes written so far.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns `true` if no field was written.
    pub fn is_empty(&self) -> bool {
        self.bytes.len() <= 4
    }

    fn header(&mut self, type_byte: u8, name: &str) {
        self.bytes.push(type_byte);
        let name = name.as_bytes();
        let end = memchr::memchr(0, name).unwrap_or(name.len());
        let (name, _) = name.split_at(end);
        self.bytes.extend_from_slice(name);
        self.bytes.push(0);
    }

    /// Appends a field.
    pub fn append(&mut self, name: &str, value: ValueRef<'_>) {
        self.header(value.type_of() as u8, name);
        write_value(&mut self.bytes, value);
    }

    /// Appends an element of another document under the name that it has there.
    pub fn append_element(&mut self, element: &crate::document::Element<'_>) {
        self.bytes.push(element.type_of as u8);
        self.bytes.extend_from_slice(element.name);
        self.bytes.push(0);
        self.bytes.extend_from_slice(element.bytes);
    }

    /// Appends all fields of another document.
    pub fn append_all(&mut self, document: Document<'_>) {
        self.bytes.extend_from_slice(document.element_bytes());
    }

    /// Begins a nested document, which [`end`](Self::end) completes.
    pub fn begin_document(&mut self, name: &str) {
        self.header(crate::Type::Document as u8, name);
        self.begin();
    }

    /// Begins a nested array, which [`end`](Self::end) completes. The caller appends its elements
    /// with the names "0", "1", …
    pub fn begin_array(&mut self, name: &str) {
        self.header(crate::Type::Array as u8, name);
        self.begin();
    }

    fn begin(&mut self) {
        self.open.push(self.bytes.len());
        self.bytes.extend_from_slice(&[0; 4]);
    }

    /// Completes the innermost nested document or array.
    pub fn end(&mut self) {
        if let Some(start) = self.open.pop() {
            close(&mut self.bytes, start);
        }
    }

    /// Completes everything and returns the document.
    pub fn finish(mut self) -> DocumentBuf {
        while !self.open.is_empty() {
            self.end();
        }
        close(&mut self.bytes, 0);
        DocumentBuf::from_validated(self.bytes)
    }
}

fn close(bytes: &mut Vec<u8>, start: usize) {
    bytes.push(0);
    let length = length_of(bytes.len() - start);
    if let Some(slot) = bytes.get_mut(start..start + 4) {
        slot.copy_from_slice(&length.to_le_bytes());
    }
}

/// Returns a length as BSON stores it. Callers limit values to far smaller sizes (16 MB if stored,
/// 125 MB between aggregation stages). A wrapped length would make the document appear shorter than
/// it is, so this panics instead.
fn length_of(bytes: usize) -> i32 {
    assert!(
        bytes <= i32::MAX as usize,
        "a length of {bytes} bytes exceeds the limit of BSON"
    );
    bytes as i32
}

/// Writes an array element by element.
#[derive(Clone, Debug, Default)]
pub struct ArrayBuilder {
    builder: DocumentBuilder,
    count: usize,
}

impl ArrayBuilder {
    /// Creates a builder of an empty array.
    pub fn new() -> ArrayBuilder {
        ArrayBuilder::default()
    }

    /// Appends an element.
    pub fn push(&mut self, value: ValueRef<'_>) {
        let mut digits = [0; 20];
        let name = decimal_digits(self.count, &mut digits);
        self.builder.append(name, value);
        self.count += 1;
    }

    /// The number of elements so far.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The number of bytes written so far.
    pub fn len(&self) -> usize {
        self.builder.len()
    }

    /// Returns `true` if there are no elements.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the array.
    pub fn finish(self) -> ArrayBuf {
        ArrayBuf::from_document(self.builder.finish())
    }
}

/// Formats an array index without allocating.
fn decimal_digits(mut number: usize, digits: &mut [u8; 20]) -> &str {
    let mut start = digits.len();
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
        start -= 1;
        if number == 0 {
            break;
        }
    }
    let (_, digits) = digits.split_at(start);
    match std::str::from_utf8(digits) {
        Ok(digits) => digits,
        Err(error) => unreachable!("digits are ASCII: {error}"),
    }
}

fn write_string(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend_from_slice(&length_of(text.len() + 1).to_le_bytes());
    bytes.extend_from_slice(text.as_bytes());
    bytes.push(0);
}

fn write_cstring(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend(text.bytes().take_while(|byte| *byte != 0));
    bytes.push(0);
}

/// Appends the BSON encoding of a value, without its type and name.
pub fn write_value(bytes: &mut Vec<u8>, value: ValueRef<'_>) {
    match value {
        ValueRef::Double(number) => bytes.extend_from_slice(&number.to_le_bytes()),
        ValueRef::String(text) | ValueRef::JavaScript(text) | ValueRef::Symbol(text) => {
            write_string(bytes, text);
        }
        ValueRef::Document(document) => bytes.extend_from_slice(document.as_bytes()),
        ValueRef::Array(array) => bytes.extend_from_slice(array.as_bytes()),
        ValueRef::Binary {
            subtype,
            bytes: content,
        } => {
            bytes.extend_from_slice(&length_of(content.len()).to_le_bytes());
            bytes.push(subtype);
            bytes.extend_from_slice(content);
        }
        ValueRef::ObjectId(id) => bytes.extend_from_slice(&id.0),
        ValueRef::Bool(flag) => bytes.push(u8::from(flag)),
        ValueRef::DateTime(number) | ValueRef::Int64(number) => {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        ValueRef::Regex { pattern, options } => {
            write_cstring(bytes, pattern);
            write_cstring(bytes, options);
        }
        ValueRef::DbPointer { namespace, id } => {
            write_string(bytes, namespace);
            bytes.extend_from_slice(&id.0);
        }
        ValueRef::JavaScriptWithScope { code, scope } => {
            let length = 4 + 4 + code.len() + 1 + scope.as_bytes().len();
            bytes.extend_from_slice(&length_of(length).to_le_bytes());
            write_string(bytes, code);
            bytes.extend_from_slice(scope.as_bytes());
        }
        ValueRef::Int32(number) => bytes.extend_from_slice(&number.to_le_bytes()),
        ValueRef::Timestamp(timestamp) => {
            bytes.extend_from_slice(&timestamp.bits().to_le_bytes());
        }
        ValueRef::Decimal128(number) => bytes.extend_from_slice(&number.bits().to_le_bytes()),
        ValueRef::Undefined | ValueRef::Null | ValueRef::MinKey | ValueRef::MaxKey => {}
    }
}

/// Returns the number of bytes that [`write_value`] appends.
pub fn value_len(value: ValueRef<'_>) -> usize {
    const LENGTH: usize = 4;
    const OBJECT_ID: usize = 12;
    let string = |text: &str| LENGTH + text.len() + 1;
    let cstring = |text: &str| memchr::memchr(0, text.as_bytes()).unwrap_or(text.len()) + 1;
    match value {
        ValueRef::String(text) | ValueRef::JavaScript(text) | ValueRef::Symbol(text) => {
            string(text)
        }
        ValueRef::Document(document) => document.as_bytes().len(),
        ValueRef::Array(array) => array.as_bytes().len(),
        ValueRef::Binary { bytes, .. } => LENGTH + 1 + bytes.len(),
        ValueRef::ObjectId(_) => OBJECT_ID,
        ValueRef::Bool(_) => 1,
        ValueRef::Int32(_) => 4,
        ValueRef::Double(_)
        | ValueRef::DateTime(_)
        | ValueRef::Int64(_)
        | ValueRef::Timestamp(_) => 8,
        ValueRef::Decimal128(_) => 16,
        ValueRef::Regex { pattern, options } => cstring(pattern) + cstring(options),
        ValueRef::DbPointer { namespace, .. } => string(namespace) + OBJECT_ID,
        ValueRef::JavaScriptWithScope { code, scope } => {
            LENGTH + string(code) + scope.as_bytes().len()
        }
        ValueRef::Undefined | ValueRef::Null | ValueRef::MinKey | ValueRef::MaxKey => 0,
    }
}

/// Builds a [`DocumentBuf`]. Values are anything that implements `Into<Value>`; other expressions
/// than literals need parentheses.
///
/// ```
/// use windrow_document::doc;
///
/// let count = 2;
/// let document = doc! { "name": "cake", "inner": { "a": null }, "list": [1, (count + 1)] };
/// assert_eq!(document.to_string(), r#"{"name":"cake","inner":{"a":null},"list":[1,3]}"#);
/// ```
#[macro_export]
macro_rules! doc {
    ($($name:tt : $value:tt $($rest:tt)*)?) => {{
        #[allow(unused_mut)]
        let mut document = $crate::DocumentBuf::new();
        $crate::doc_fields!(document; $($name : $value $($rest)*)?);
        document
    }};
}

/// Implements [`doc!`].
#[doc(hidden)]
#[macro_export]
macro_rules! doc_fields {
    ($document:ident;) => {};
    ($document:ident; $name:tt : null $(, $($rest:tt)*)?) => {
        $document.push($name, $crate::Value::Null);
        $($crate::doc_fields!($document; $($rest)*);)?
    };
    ($document:ident; $name:tt : { $($inner:tt)* } $(, $($rest:tt)*)?) => {
        $document.push($name, $crate::doc! { $($inner)* });
        $($crate::doc_fields!($document; $($rest)*);)?
    };
    ($document:ident; $name:tt : [ $($inner:tt)* ] $(, $($rest:tt)*)?) => {
        $document.push($name, $crate::array! [ $($inner)* ]);
        $($crate::doc_fields!($document; $($rest)*);)?
    };
    ($document:ident; $name:tt : $value:expr $(, $($rest:tt)*)?) => {
        $document.push($name, $value);
        $($crate::doc_fields!($document; $($rest)*);)?
    };
}

/// Builds an [`ArrayBuf`], with the syntax of [`doc!`] for its values.
///
/// ```
/// use windrow_document::array;
///
/// let array = array![1, "two", { "three": 3 }, [4]];
/// assert_eq!(array.as_array().count(), 4);
/// ```
#[macro_export]
macro_rules! array {
    ($($inner:tt)*) => {{
        #[allow(unused_mut)]
        let mut builder = $crate::ArrayBuilder::new();
        $crate::array_values!(builder; $($inner)*);
        builder.finish()
    }};
}

/// Implements [`array!`].
#[doc(hidden)]
#[macro_export]
macro_rules! array_values {
    ($builder:ident;) => {};
    ($builder:ident; null $(, $($rest:tt)*)?) => {
        $builder.push($crate::ValueRef::Null);
        $($crate::array_values!($builder; $($rest)*);)?
    };
    ($builder:ident; { $($inner:tt)* } $(, $($rest:tt)*)?) => {
        $builder.push($crate::Value::from($crate::doc! { $($inner)* }).as_ref());
        $($crate::array_values!($builder; $($rest)*);)?
    };
    ($builder:ident; [ $($inner:tt)* ] $(, $($rest:tt)*)?) => {
        $builder.push($crate::Value::from($crate::array! [ $($inner)* ]).as_ref());
        $($crate::array_values!($builder; $($rest)*);)?
    };
    ($builder:ident; $value:expr $(, $($rest:tt)*)?) => {
        $builder.push($crate::Value::from($value).as_ref());
        $($crate::array_values!($builder; $($rest)*);)?
    };
}

#[cfg(test)]
mod tests {
    use crate::{Document, ObjectId, Timestamp, Value, ValueRef};

    #[test]
    fn built_documents_are_valid_and_read_back() {
        let built = doc! {
            "a": 1, "b": 2i64, "c": 1.5, "d": "text", "e": null, "f": true,
            "g": { "h": [1, "x", { "y": -1 }, [null]] },
            "i": (ObjectId([7; 12])), "j": (Timestamp { seconds: 1, increment: 2 }),
            "k": (Value::Binary { subtype: 0, bytes: vec![1, 2] }),
            "l": (Value::Regex { pattern: "^a".into(), options: "i".into() }),
            "m": (Value::JavaScriptWithScope { code: "f".into(), scope: doc! { "s": 1 } }),
            "n": (Value::DbPointer { namespace: "a.b".into(), id: ObjectId([1; 12]) }),
            "o": (Value::MinKey), "p": [], "q": {},
        };
        let read = Document::from_bytes(built.as_bytes()).unwrap();
        assert_eq!(read.count(), 16);
        assert_eq!(read.get("b"), Some(ValueRef::Int64(2)));
        let copied: crate::DocumentBuf = read.iter().collect();
        assert_eq!(copied, built);
        let inner = read
            .get("g")
            .unwrap()
            .as_document()
            .unwrap()
            .get("h")
            .unwrap();
        assert_eq!(inner.as_array().unwrap().count(), 4);
        assert_eq!(
            inner.as_array().unwrap().get(1),
            Some(ValueRef::String("x"))
        );
    }

    #[test]
    fn value_len_equals_the_written_length() {
        let values = crate::array![
            1, 2i64, 1.5, "text", "", null, true, { "h": [1, { "y": -1 }] }, [], [null],
            (ObjectId([7; 12])), (Timestamp { seconds: 1, increment: 2 }), (Value::DateTime(3)),
            (Value::Decimal128(crate::Decimal128::from_bits(7))), (Value::Undefined),
            (Value::Binary { subtype: 0, bytes: vec![1, 2] }), (Value::Symbol("s".into())),
            (Value::Regex { pattern: "^a".into(), options: "i".into() }),
            (Value::JavaScript("f()".into())), (Value::MinKey), (Value::MaxKey),
            (Value::JavaScriptWithScope { code: "f".into(), scope: doc! { "s": 1 } }),
            (Value::DbPointer { namespace: "a.b".into(), id: ObjectId([1; 12]) }),
        ];
        for value in values.as_array().iter() {
            let mut bytes = Vec::new();
            super::write_value(&mut bytes, value);
            assert_eq!(super::value_len(value), bytes.len(), "{value:?}");
        }
    }

    #[test]
    fn too_large_lengths_panic() {
        assert_eq!(super::length_of(i32::MAX as usize), i32::MAX);
        assert!(std::panic::catch_unwind(|| super::length_of(1 << 31)).is_err());
    }

    #[test]
    fn array_names_are_decimal() {
        let numbers: crate::ArrayBuf = (0..123).map(Value::Int32).collect();
        let names: Vec<&str> = numbers
            .as_array()
            .as_document()
            .iter()
            .map(|(name, _)| name)
            .collect();
        assert_eq!((names[9], names[10], names[122]), ("9", "10", "122"));
    }
}
