//! Decodes UTF-8 byte by byte.

/// The bytes of a character that is not complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct PartialCharacter {
    bytes: [u8; 4],
    count: u8,
}

/// The result of reading a byte.
pub(super) enum Utf8Step {
    /// A character is complete.
    Character(char),
    /// More bytes are needed.
    Incomplete(PartialCharacter),
    /// The bytes are not UTF-8.
    Invalid,
}

impl PartialCharacter {
    /// Returns `true` before the first byte of a character.
    pub fn is_empty(self) -> bool {
        self.count == 0
    }

    /// Returns the bytes so far.
    pub fn bytes(&self) -> &[u8] {
        self.bytes
            .get(..usize::from(self.count))
            .unwrap_or_default()
    }

    /// Reads a byte.
    #[inline]
    pub fn read(mut self, byte: u8) -> Utf8Step {
        if self.is_empty() && byte.is_ascii() {
            return Utf8Step::Character(char::from(byte));
        }
        let (from, to) = self.range_of_next();
        let is_start = !self.is_empty() || matches!(byte, 0xC2..=0xF4);
        if !is_start || byte < from || byte > to {
            return Utf8Step::Invalid;
        }
        if let Some(slot) = self.bytes.get_mut(usize::from(self.count)) {
            *slot = byte;
        }
        self.count += 1;
        match std::str::from_utf8(self.bytes()) {
            Ok(text) => text
                .chars()
                .next()
                .map_or(Utf8Step::Invalid, Utf8Step::Character),
            Err(_) => Utf8Step::Incomplete(self),
        }
    }

    /// Returns the smallest byte that is `from` or greater and may follow.
    pub fn next_byte(self, from: u8) -> Option<u8> {
        let (least, greatest) = self.range_of_next();
        let byte = match from.max(least) {
            0x80..=0xC1 if self.is_empty() => 0xC2,
            byte => byte,
        };
        (byte <= greatest).then_some(byte)
    }

    /// Returns the smallest and the greatest byte that may follow (Unicode, table 3-7). At the
    /// start of a character, the bytes 0x80 to 0xC1 between them may not follow.
    fn range_of_next(self) -> (u8, u8) {
        match self.bytes() {
            [] => (0x00, 0xF4),
            [0xE0] => (0xA0, 0xBF),
            [0xED] => (0x80, 0x9F),
            [0xF0] => (0x90, 0xBF),
            [0xF4] => (0x80, 0x8F),
            _ => (0x80, 0xBF),
        }
    }
}
