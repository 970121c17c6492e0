//! Takes fields off the front of bytes from outside, never past their end.

use crate::error::WireError;

/// A place in a message. Every method either advances past a whole field or says which was cut.
pub(crate) struct Fields<'a> {
    bytes: &'a [u8],
    offset: usize,
}

impl<'a> Fields<'a> {
    /// Starts at `offset` of `bytes`; offsets that this gives out count from the start of `bytes`.
    pub fn new(bytes: &'a [u8], offset: usize) -> Fields<'a> {
        Fields { bytes, offset }
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

    /// A string that a zero byte ends; the zero is passed, and not part of what is returned.
    pub fn zero_terminated(&mut self, what: &'static str) -> Result<&'a str, WireError> {
        let length = self.rest().iter().position(|&byte| byte == 0);
        let text = self.take(length.ok_or(WireError::Truncated { what })?, what)?;
        self.offset += 1;
        std::str::from_utf8(text).map_err(|_| WireError::NotUtf8 { what })
    }

    /// The length that a document or a sequence states, of at least `least` bytes and at most what
    /// is left. Stays in front of it, since the length counts itself.
    pub fn stated_length(&self, least: usize, what: &'static str) -> Result<usize, WireError> {
        let mut ahead = Fields {
            bytes: self.bytes,
            offset: self.offset,
        };
        let stated = ahead.int32(what)?;
        let length = usize::try_from(stated).unwrap_or(0);
        if length < least || length > self.rest().len() {
            return Err(WireError::StatedLength {
                what,
                stated,
                left: self.rest().len(),
            });
        }
        Ok(length)
    }
}
