//! Reads the fields of a message without ever reading past its end.

use crate::error::WireError;

/// A reader of consecutive fields. Each method advances past one field or fails with the name of
/// the incomplete field.
pub(crate) struct FieldReader<'a> {
    bytes: &'a [u8],
    offset: usize,
}

impl<'a> FieldReader<'a> {
    /// Starts at `offset`. All offsets are relative to the start of `bytes`.
    pub fn new(bytes: &'a [u8], offset: usize) -> FieldReader<'a> {
        FieldReader { bytes, offset }
    }

    pub fn offset(&self) -> usize {
        self.offset
    }

    pub fn is_empty(&self) -> bool {
        self.offset >= self.bytes.len()
    }

    pub fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.offset..).unwrap_or_default()
    }

    pub fn take(&mut self, length: usize, what: &'static str) -> Result<&'a [u8], WireError> {
        let taken = self
            .rest()
            .get(..length)
            .ok_or(WireError::Truncated { what })?;
        self.offset += length;
        Ok(taken)
    }

    pub fn byte(&mut self, what: &'static str) -> Result<u8, WireError> {
        self.take(1, what)?
            .first()
            .copied()
            .ok_or(WireError::Truncated { what })
    }

    pub fn int32(&mut self, what: &'static str) -> Result<i32, WireError> {
        let bytes = self
            .take(4, what)?
            .first_chunk()
            .ok_or(WireError::Truncated { what })?;
        Ok(i32::from_le_bytes(*bytes))
    }

    /// Reads a zero-terminated string. The result does not include the zero byte.
    pub fn zero_terminated(&mut self, what: &'static str) -> Result<&'a str, WireError> {
        let length = self.rest().iter().position(|&byte| byte == 0);
        let text = self.take(length.ok_or(WireError::Truncated { what })?, what)?;
        self.offset += 1;
        std::str::from_utf8(text).map_err(|_| WireError::NotUtf8 { what })
    }

    /// Returns the length field of the next document or section, without advancing: the length
    /// includes its own four bytes. Fails if it is less than `least` or more than the rest of the
    /// message.
    pub fn declared_length(&self, least: usize, what: &'static str) -> Result<usize, WireError> {
        let mut lookahead = FieldReader {
            bytes: self.bytes,
            offset: self.offset,
        };
        let declared = lookahead.int32(what)?;
        let length = usize::try_from(declared).unwrap_or(0);
        if length < least || length > self.rest().len() {
            return Err(WireError::DeclaredLength {
                what,
                declared,
                remaining: self.rest().len(),
            });
        }
        Ok(length)
    }
}
