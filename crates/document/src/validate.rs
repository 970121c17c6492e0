//! Validation of BSON from outside: structure, UTF-8 and nesting, in one pass.

use std::fmt;

use crate::layout::{find_zero, value_length};
use crate::value::Type;

/// The maximal nesting of documents and arrays. It bounds the recursion of all code that
/// reads validated documents. MongoDB's `maxBSONDepth` has the same default.
pub const DEPTH_MAX: usize = 200;

/// Why bytes are not valid BSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BsonError {
    /// A wrong length, terminator or type byte.
    Structure {
        /// Its position in bytes.
        offset: usize,
        /// What is wrong.
        what: &'static str,
    },
    /// A string or name that is not UTF-8.
    Utf8 {
        /// Its position in bytes.
        offset: usize,
    },
    /// More than [`DEPTH_MAX`] levels of nesting.
    Depth,
}

impl fmt::Display for BsonError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BsonError::Structure { offset, what } => {
                write!(formatter, "invalid BSON at byte {offset}: {what}")
            }
            BsonError::Utf8 { offset } => {
                write!(formatter, "invalid UTF-8 in BSON at byte {offset}")
            }
            BsonError::Depth => {
                write!(
                    formatter,
                    "BSON exceeded the maximum nested depth of {DEPTH_MAX}"
                )
            }
        }
    }
}

impl std::error::Error for BsonError {}

/// Fails if `bytes` are not exactly one valid document.
pub fn document(bytes: &[u8]) -> Result<(), BsonError> {
    Validator { bytes }.document(0, bytes.len(), 0)
}

struct Validator<'a> {
    bytes: &'a [u8],
}

impl Validator<'_> {
    fn error<T>(&self, offset: usize, what: &'static str) -> Result<T, BsonError> {
        Err(BsonError::Structure { offset, what })
    }

    fn length(&self, offset: usize, end: usize) -> Result<usize, BsonError> {
        let chunk = self
            .bytes
            .get(offset..end)
            .and_then(|rest| rest.first_chunk::<4>());
        match chunk.map(|chunk| i32::from_le_bytes(*chunk)) {
            Some(length) if length >= 0 => Ok(length as usize),
            Some(_) => self.error(offset, "negative length"),
            None => self.error(offset, "truncated length"),
        }
    }

    /// Validates the document that occupies `start..end`.
    fn document(&self, start: usize, end: usize, depth: usize) -> Result<(), BsonError> {
        if depth >= DEPTH_MAX {
            return Err(BsonError::Depth);
        }
        if self.length(start, end)? != end - start || end - start < 5 {
            return self.error(start, "length of a document");
        }
        if self.bytes.get(end - 1) != Some(&0) {
            return self.error(end - 1, "terminator of a document");
        }
        let (mut offset, end) = (start + 4, end - 1);
        while offset < end {
            offset = self.element(offset, end, depth)?;
        }
        Ok(())
    }

    /// Validates the element at `offset` and returns the offset of the next one.
    fn element(&self, offset: usize, end: usize, depth: usize) -> Result<usize, BsonError> {
        let Some(type_of) = self
            .bytes
            .get(offset)
            .and_then(|byte| Type::from_byte(*byte))
        else {
            return self.error(offset, "unknown type");
        };
        let name_offset = offset + 1;
        let value_offset = self.cstring(name_offset, end)?;
        let rest = self.bytes.get(value_offset..end).unwrap_or_default();
        let length = match value_length(type_of, rest) {
            Some(length) if length <= rest.len() => length,
            _ => return self.error(value_offset, "length of a value"),
        };
        self.value(type_of, value_offset, value_offset + length, depth)?;
        Ok(value_offset + length)
    }

    fn value(
        &self,
        type_of: Type,
        offset: usize,
        end: usize,
        depth: usize,
    ) -> Result<(), BsonError> {
        match type_of {
            Type::String | Type::JavaScript | Type::Symbol => self.string(offset, end),
            Type::Document | Type::Array => self.document(offset, end, depth + 1),
            Type::Bool if !matches!(self.bytes.get(offset), Some(0 | 1)) => {
                self.error(offset, "value of a bool")
            }
            Type::Binary => self.binary(offset, end),
            Type::Regex => {
                let options = self.cstring(offset, end)?;
                self.cstring(options, end).map(drop)
            }
            Type::DbPointer => self.string(offset, end - 12),
            Type::JavaScriptWithScope => {
                let code_end = offset + 4 + self.length(offset + 4, end)? + 4;
                if end - offset < 14 || code_end > end {
                    return self.error(offset, "length of code with scope");
                }
                self.string(offset + 4, code_end)?;
                self.document(code_end, end, depth + 1)
            }
            _ => Ok(()),
        }
    }

    /// The deprecated binary subtype 2 contains its length a second time.
    fn binary(&self, offset: usize, end: usize) -> Result<(), BsonError> {
        let has_inner_length = self.bytes.get(offset + 4) == Some(&2);
        if has_inner_length && self.length(offset + 5, end) != Ok((end - offset).saturating_sub(9))
        {
            return self.error(offset, "inner length of binary data of subtype 2");
        }
        Ok(())
    }

    /// Validates a length-prefixed string that occupies `offset..end`.
    fn string(&self, offset: usize, end: usize) -> Result<(), BsonError> {
        let length = self.length(offset, end)?;
        if length < 1 || offset + 4 + length != end || self.bytes.get(end - 1) != Some(&0) {
            return self.error(offset, "length of a string");
        }
        self.validate_utf8(offset + 4, end - 1)
    }

    /// Validates a zero-terminated string before `end`. Returns the offset after it.
    fn cstring(&self, offset: usize, end: usize) -> Result<usize, BsonError> {
        let rest = self.bytes.get(offset..end).unwrap_or_default();
        let Some(length) = find_zero(rest) else {
            return self.error(offset, "name without end");
        };
        self.validate_utf8(offset, offset + length)?;
        Ok(offset + length + 1)
    }

    fn validate_utf8(&self, offset: usize, end: usize) -> Result<(), BsonError> {
        let text = self.bytes.get(offset..end).unwrap_or_default();
        let valid = if text.len() < 64 {
            text.is_ascii() || std::str::from_utf8(text).is_ok()
        } else {
            simdutf8::basic::from_utf8(text).is_ok()
        };
        if valid {
            Ok(())
        } else {
            Err(BsonError::Utf8 { offset })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DocumentBuf, doc};

    fn check(bytes: &[u8], expected: Result<(), BsonError>) {
        assert_eq!(document(bytes), expected, "{bytes:?}");
    }

    #[test]
    fn errors_name_the_offset_and_cause() {
        let structure = |offset, what| Err(BsonError::Structure { offset, what });
        check(&[], structure(0, "truncated length"));
        check(&[5, 0, 0, 0, 0], Ok(()));
        check(&[4, 0, 0, 0], structure(0, "length of a document"));
        check(&[6, 0, 0, 0, 0], structure(0, "length of a document"));
        check(&[5, 0, 0, 0, 1], structure(4, "terminator of a document"));
        check(&[255, 255, 255, 255, 0], structure(0, "negative length"));
        check(
            &[8, 0, 0, 0, 0x20, b'a', 0, 0],
            structure(4, "unknown type"),
        );
        check(
            &[8, 0, 0, 0, 0x10, b'a', b'b', 0],
            structure(5, "name without end"),
        );
        check(
            &[9, 0, 0, 0, 0x10, b'a', 0, 1, 0],
            structure(7, "length of a value"),
        );
        check(
            &[9, 0, 0, 0, 0x08, b'a', 0, 2, 0],
            structure(7, "value of a bool"),
        );
        check(
            &[8, 0, 0, 0, 0x0A, 0xFF, 0, 0],
            Err(BsonError::Utf8 { offset: 5 }),
        );
        let mut text = doc! { "a": "b\u{e9}" }.into_bytes();
        text[12] = b'x';
        check(&text, Err(BsonError::Utf8 { offset: 11 }));
    }

    #[test]
    fn truncated_and_corrupted_documents_never_panic() {
        let good = doc! { "a": { "b": [1, "two", null] }, "c": 1.5, "d": true, "e": "text" };
        let bytes = good.into_bytes();
        for length in 0..bytes.len() {
            assert!(document(&bytes[..length]).is_err());
        }
        for offset in 0..bytes.len() {
            for flip in [1u8, 0x80, 0xFF] {
                let mut damaged = bytes.clone();
                damaged[offset] ^= flip;
                let document = DocumentBuf::from_validated(damaged);
                let _ = format!("{document:?}");
            }
        }
    }

    #[test]
    fn depth_is_limited() {
        let mut nested = doc! {};
        for _ in 1..DEPTH_MAX {
            nested = doc! { "a": nested };
        }
        check(nested.as_bytes(), Ok(()));
        check(doc! { "a": nested }.as_bytes(), Err(BsonError::Depth));
    }
}
