//! The subset of BSON that the workloads need (<https://bsonspec.org/spec.html>). A [`Writer`]
//! appends a document to a reusable buffer; a [`Document`] reads a document in place. There is no
//! validation except for bounds: the input is a server's reply, and a wrong one ends the run.

/// Appends the elements of a document. [`document`] writes its length when it is complete.
pub struct Writer<'a> {
    out: &'a mut Vec<u8>,
}

/// Appends the document whose elements `fill` writes.
pub fn document(out: &mut Vec<u8>, fill: impl FnOnce(&mut Writer)) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    fill(&mut Writer { out });
    out.push(0);
    let length = (out.len() - start) as u32;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

/// Returns a document in its own buffer, for commands.
pub fn build_document(fill: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut out = Vec::new();
    document(&mut out, fill);
    out
}

impl Writer<'_> {
    fn name(&mut self, kind: u8, name: &str) {
        self.out.push(kind);
        self.out.extend_from_slice(name.as_bytes());
        self.out.push(0);
    }

    /// Appends a double.
    pub fn double(&mut self, name: &str, value: f64) {
        self.name(0x01, name);
        self.out.extend_from_slice(&value.to_le_bytes());
    }

    /// Appends a string.
    pub fn string(&mut self, name: &str, value: &str) {
        self.string_by(name, |out| out.extend_from_slice(value.as_bytes()));
    }

    /// Appends a string whose UTF-8 bytes `fill` appends, without an intermediate buffer.
    pub fn string_by(&mut self, name: &str, fill: impl FnOnce(&mut Vec<u8>)) {
        self.name(0x02, name);
        let start = self.out.len();
        self.out.extend_from_slice(&[0; 4]);
        fill(self.out);
        self.out.push(0);
        let length = (self.out.len() - start - 4) as u32;
        self.out[start..start + 4].copy_from_slice(&length.to_le_bytes());
    }

    /// Appends a document whose elements `fill` writes.
    pub fn document(&mut self, name: &str, fill: impl FnOnce(&mut Writer)) {
        self.name(0x03, name);
        document(self.out, fill);
    }

    /// Appends an array. `fill` writes the elements with the names "0", "1", …
    pub fn array(&mut self, name: &str, fill: impl FnOnce(&mut Writer)) {
        self.name(0x04, name);
        document(self.out, fill);
    }

    /// Appends an ObjectId.
    pub fn object_id(&mut self, name: &str, value: [u8; 12]) {
        self.name(0x07, name);
        self.out.extend_from_slice(&value);
    }

    /// Appends binary data of subtype 4.
    pub fn uuid(&mut self, name: &str, value: [u8; 16]) {
        self.name(0x05, name);
        self.out.extend_from_slice(&16u32.to_le_bytes());
        self.out.push(4);
        self.out.extend_from_slice(&value);
    }

    /// Appends binary data of subtype 0.
    pub fn binary(&mut self, name: &str, value: &[u8]) {
        self.name(0x05, name);
        self.out
            .extend_from_slice(&(value.len() as u32).to_le_bytes());
        self.out.push(0);
        self.out.extend_from_slice(value);
    }

    /// Appends a boolean.
    pub fn boolean(&mut self, name: &str, value: bool) {
        self.name(0x08, name);
        self.out.push(u8::from(value));
    }

    /// Appends a date in milliseconds since 1970.
    pub fn date(&mut self, name: &str, value: i64) {
        self.name(0x09, name);
        self.out.extend_from_slice(&value.to_le_bytes());
    }

    /// Appends null.
    pub fn null(&mut self, name: &str) {
        self.name(0x0A, name);
    }

    /// Appends the fields of a complete document.
    pub fn append_fields(&mut self, document: &[u8]) {
        let end = document.len().saturating_sub(1);
        self.out
            .extend_from_slice(document.get(4..end).unwrap_or_default());
    }

    /// Appends a 32-bit integer.
    pub fn int32(&mut self, name: &str, value: i32) {
        self.name(0x10, name);
        self.out.extend_from_slice(&value.to_le_bytes());
    }

    /// Appends a 64-bit integer.
    pub fn int64(&mut self, name: &str, value: i64) {
        self.name(0x12, name);
        self.out.extend_from_slice(&value.to_le_bytes());
    }
}

/// A document, read in place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Document<'a>(&'a [u8]);

/// A value, read in place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// A double.
    Double(f64),
    /// A string.
    String(&'a str),
    /// A document.
    Document(Document<'a>),
    /// An array, as a document with the names "0", "1", …
    Array(Document<'a>),
    /// An ObjectId.
    ObjectId(&'a [u8]),
    /// Binary data of any subtype.
    Binary(&'a [u8]),
    /// A boolean.
    Boolean(bool),
    /// A 32-bit integer.
    Int32(i32),
    /// A 64-bit integer.
    Int64(i64),
    /// A value of another type, with its type byte.
    Other(u8),
}

impl Value<'_> {
    /// Returns the value of a number.
    pub fn number(&self) -> Option<f64> {
        match self {
            Value::Double(value) => Some(*value),
            Value::Int32(value) => Some(f64::from(*value)),
            Value::Int64(value) => Some(*value as f64),
            _ => None,
        }
    }
}

impl<'a> Document<'a> {
    /// Returns the document at the start of `bytes`, or `None` if they are too short for its
    /// length.
    pub fn from_prefix(bytes: &'a [u8]) -> Option<Self> {
        let length = u32::from_le_bytes(bytes.get(..4)?.try_into().ok()?) as usize;
        (length >= 5).then_some(Self(bytes.get(..length)?))
    }

    /// The encoding of the document.
    pub fn bytes(&self) -> &'a [u8] {
        self.0
    }

    /// Iterates over the elements. Ends at the first invalid one.
    pub fn iter(&self) -> Elements<'a> {
        Elements(self.0.get(4..self.0.len() - 1).unwrap_or_default())
    }

    /// Returns the value at a dotted path.
    pub fn get(&self, path: &str) -> Option<Value<'a>> {
        let (first, rest) = path
            .split_once('.')
            .map_or((path, None), |(a, b)| (a, Some(b)));
        let (_, value) = self.iter().find(|(name, _)| *name == first)?;
        match (rest, value) {
            (None, value) => Some(value),
            (Some(rest), Value::Document(inner) | Value::Array(inner)) => inner.get(rest),
            _ => None,
        }
    }

    /// Returns the number at a dotted path.
    pub fn number(&self, path: &str) -> Option<f64> {
        self.get(path)?.number()
    }
}

/// An iterator over the elements of a document.
pub struct Elements<'a>(&'a [u8]);

impl<'a> Elements<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn name(&mut self) -> Option<&'a str> {
        let end = self.0.iter().position(|byte| *byte == 0)?;
        let taken = self.take(end + 1)?;
        std::str::from_utf8(&taken[..end]).ok()
    }

    fn string(&mut self) -> Option<&'a str> {
        let length = u32::from_le_bytes(self.take(4)?.try_into().ok()?) as usize;
        let taken = self.take(length)?;
        std::str::from_utf8(taken.strip_suffix(&[0])?).ok()
    }

    fn binary(&mut self) -> Option<&'a [u8]> {
        let length = u32::from_le_bytes(self.take(4)?.try_into().ok()?) as usize;
        self.take(1)?;
        self.take(length)
    }

    fn inner(&mut self) -> Option<Document<'a>> {
        let inner = Document::from_prefix(self.0)?;
        self.take(inner.0.len())?;
        Some(inner)
    }

    fn value(&mut self, kind: u8) -> Option<Value<'a>> {
        Some(match kind {
            0x01 => Value::Double(f64::from_le_bytes(self.take(8)?.try_into().ok()?)),
            0x02 => Value::String(self.string()?),
            0x03 => Value::Document(self.inner()?),
            0x04 => Value::Array(self.inner()?),
            0x05 => Value::Binary(self.binary()?),
            0x07 => Value::ObjectId(self.take(12)?),
            0x08 => Value::Boolean(self.take(1)? != [0]),
            0x10 => Value::Int32(i32::from_le_bytes(self.take(4)?.try_into().ok()?)),
            0x12 => Value::Int64(i64::from_le_bytes(self.take(8)?.try_into().ok()?)),
            _ => {
                self.skip(kind)?;
                Value::Other(kind)
            }
        })
    }

    fn skip(&mut self, kind: u8) -> Option<()> {
        match kind {
            0x06 | 0x0A | 0x7F | 0xFF => {}
            0x09 | 0x11 => {
                self.take(8)?;
            }
            0x0B => {
                self.name()?;
                self.name()?;
            }
            0x13 => {
                self.take(16)?;
            }
            _ => return None,
        }
        Some(())
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = (&'a str, Value<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let kind = self.take(1)?[0];
        let name = self.name()?;
        let value = self.value(kind)?;
        Some((name, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_equal_the_specification() {
        let check =
            |fill: fn(&mut Writer), expected: &[u8]| assert_eq!(build_document(fill), expected);
        check(|_| {}, b"\x05\0\0\0\0");
        check(
            |writer| writer.string("hello", "world"),
            b"\x16\0\0\0\x02hello\0\x06\0\0\0world\0\0",
        );
        check(
            |writer| {
                writer.array("BSON", |list| {
                    list.string("0", "awesome");
                    list.double("1", 5.05);
                    list.int32("2", 1986);
                });
            },
            b"\x31\0\0\0\x04BSON\0\x26\0\0\0\x020\0\x08\0\0\0awesome\0\x011\0\x33\x33\x33\x33\x33\
              \x33\x14\x40\x102\0\xc2\x07\0\0\0\0",
        );
    }

    #[test]
    fn reading_reverses_writing() {
        let bytes = build_document(|writer| {
            writer.int32("a", -3);
            writer.int64("b", 1 << 40);
            writer.date("when", 0);
            writer.boolean("yes", true);
            writer.object_id("_id", [7; 12]);
            writer.uuid("uuid", [8; 16]);
            writer.document("in", |inner| inner.double("x", 0.5));
        });
        let read = Document::from_prefix(&bytes).unwrap();
        let check = |path: &str, expected: Option<Value>| assert_eq!(read.get(path), expected);
        check("a", Some(Value::Int32(-3)));
        check("b", Some(Value::Int64(1 << 40)));
        check("when", Some(Value::Other(0x09)));
        check("yes", Some(Value::Boolean(true)));
        check("_id", Some(Value::ObjectId(&[7; 12])));
        check("uuid", Some(Value::Binary(&[8; 16])));
        check("in.x", Some(Value::Double(0.5)));
        check("in.y", None);
        check("a.x", None);
    }

    #[test]
    fn truncated_documents_are_refused() {
        for bytes in [
            &b""[..],
            b"\x05\0\0",
            b"\x06\0\0\0\0",
            b"\x04\0\0\0",
            b"\0\0\0\0\0",
        ] {
            assert_eq!(Document::from_prefix(bytes), None, "{bytes:?}");
        }
        let cut = Document::from_prefix(b"\x0a\0\0\0\x02a\0\xff\0\0").unwrap();
        assert_eq!(cut.iter().count(), 0);
    }
}
