//! Validation of BSON from outside: structure, UTF-8 and nesting, in one pass.

use std::fmt;

use crate::layout::{value_length, zero_at};
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
    Check { all: bytes }.document(0, bytes.len(), 0)
}

struct Check<'a> {
    all: &'a [u8],
}

impl Check<'_> {
    fn wrong<T>(&self, offset: usize, what: &'static str) -> Result<T, BsonError> {
        Err(BsonError::Structure { offset, what })
    }

    fn length(&self, at: usize, end: usize) -> Result<usize, BsonError> {
        let chunk = self
            .all
            .get(at..end)
            .and_then(|rest| rest.first_chunk::<4>());
        match chunk.map(|chunk| i32::from_le_bytes(*chunk)) {
            Some(length) if length >= 0 => Ok(length as usize),
            Some(_) => self.wrong(at, "negative length"),
            None => self.wrong(at, "truncated length"),
        }
    }

    /// Validates the document that occupies `start..end`.
    fn document(&self, start: usize, end: usize, depth: usize) -> Result<(), BsonError> {
        if depth >= DEPTH_MAX {
            return Err(BsonError::Depth);
        }
        if self.length(start, end)? != end - start || end - start < 5 {
            return self.wrong(start, "length of a document");
        }
        if self.all.get(end - 1) != Some(&0) {
            return self.wrong(end - 1, "terminator of a document");
        }
        let (mut at, end) = (start + 4, end - 1);
        while at < end {
            at = self.element(at, end, depth)?;
        }
        Ok(())
    }

    /// Validates the element at `at` and returns the offset of the next one.
    fn element(&self, at: usize, end: usize, depth: usize) -> Result<usize, BsonError> {
        let Some(type_of) = self.all.get(at).and_then(|byte| Type::from_byte(*byte)) else {
            return self.wrong(at, "unknown type");
        };
        let name_at = at + 1;
        let value_at = self.cstring(name_at, end)?;
        let rest = self.all.get(value_at..end).unwrap_or_default();
        let length = match value_length(type_of, rest) {
            Some(length) if length <= rest.len() => length,
            _ => return self.wrong(value_at, "length of a value"),
        };
        self.value(type_of, value_at, value_at + length, depth)?;
        Ok(value_at + length)
    }

    fn value(&self, type_of: Type, at: usize, end: usize, depth: usize) -> Result<(), BsonError> {
        match type_of {
            Type::String | Type::JavaScript | Type::Symbol => self.string(at, end),
            Type::Document | Type::Array => self.document(at, end, depth + 1),
            Type::Bool if !matches!(self.all.get(at), Some(0 | 1)) => {
                self.wrong(at, "value of a bool")
            }
            Type::Binary => self.binary(at, end),
            Type::Regex => {
                let options = self.cstring(at, end)?;
                self.cstring(options, end).map(drop)
            }
            Type::DbPointer => self.string(at, end - 12),
            Type::JavaScriptWithScope => {
                let code_end = at + 4 + self.length(at + 4, end)? + 4;
                if end - at < 14 || code_end > end {
                    return self.wrong(at, "length of code with scope");
                }
                self.string(at + 4, code_end)?;
                self.document(code_end, end, depth + 1)
            }
            _ => Ok(()),
        }
    }

    /// The deprecated binary subtype 2 contains its length a second time.
    fn binary(&self, at: usize, end: usize) -> Result<(), BsonError> {
        let is_old = self.all.get(at + 4) == Some(&2);
        if is_old && self.length(at + 5, end) != Ok((end - at).saturating_sub(9)) {
            return self.wrong(at, "length within old binary data");
        }
        Ok(())
    }

    /// Validates a length-prefixed string that occupies `at..end`.
    fn string(&self, at: usize, end: usize) -> Result<(), BsonError> {
        let length = self.length(at, end)?;
        if length < 1 || at + 4 + length != end || self.all.get(end - 1) != Some(&0) {
            return self.wrong(at, "length of a string");
        }
        self.utf8(at + 4, end - 1)
    }

    /// Validates a zero-terminated string before `end`. Returns the offset after it.
    fn cstring(&self, at: usize, end: usize) -> Result<usize, BsonError> {
        let rest = self.all.get(at..end).unwrap_or_default();
        let Some(length) = zero_at(rest) else {
            return self.wrong(at, "name without end");
        };
        self.utf8(at, at + length)?;
        Ok(at + length + 1)
    }

    fn utf8(&self, at: usize, end: usize) -> Result<(), BsonError> {
        let text = self.all.get(at..end).unwrap_or_default();
        let valid = if text.len() < 64 {
            text.is_ascii() || std::str::from_utf8(text).is_ok()
        } else {
            simdutf8::basic::from_utf8(text).is_ok()
        };
        if valid {
            Ok(())
        } else {
            Err(BsonError::Utf8 { offset: at })
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
    fn wrong_bytes_are_named() {
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
    fn every_truncation_and_flip_is_survived() {
        let good = doc! { "a": { "b": [1, "two", null] }, "c": 1.5, "d": true, "e": "text" };
        let bytes = good.into_bytes();
        for length in 0..bytes.len() {
            assert!(document(&bytes[..length]).is_err());
        }
        for at in 0..bytes.len() {
            for flip in [1u8, 0x80, 0xFF] {
                let mut damaged = bytes.clone();
                damaged[at] ^= flip;
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
