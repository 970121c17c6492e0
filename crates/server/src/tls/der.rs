//! DER, the encoding of certificates: the few types that are read from certificates whose signature
//! was checked before.

/// Tags of values.
pub const INTEGER: u8 = 0x02;
pub const OBJECT_ID: u8 = 0x06;
pub const UTC_TIME: u8 = 0x17;
pub const GENERALIZED_TIME: u8 = 0x18;
pub const SEQUENCE: u8 = 0x30;
pub const SET: u8 = 0x31;
/// The tag of an optional first element, in brackets in ASN.1: `[0]`.
pub const CONTEXT_0: u8 = 0xa0;

/// A value: its tag, its content, and its content with tag and length.
#[derive(Clone, Copy, Debug)]
pub struct Element<'a> {
    pub tag: u8,
    pub content: &'a [u8],
    pub encoded: &'a [u8],
}

/// Reads values one after another.
#[derive(Clone, Debug)]
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader(bytes)
    }

    /// Returns the next value, if it has this tag.
    pub fn expect(&mut self, tag: u8) -> Option<Element<'a>> {
        self.next().filter(|element| element.tag == tag)
    }

    /// Returns the content of the next value, if it has this tag.
    pub fn enter(&mut self, tag: u8) -> Option<Reader<'a>> {
        self.expect(tag).map(|element| Reader(element.content))
    }

    /// Returns `true` if everything was read. Otherwise a value follows, or bytes that are none.
    pub fn is_at_end(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the tag of the next value.
    pub fn next_tag(&self) -> Option<u8> {
        self.0.first().copied()
    }
}

/// Ends at the first malformed value. Then [`Reader::is_at_end`] returns `false`.
impl<'a> Iterator for Reader<'a> {
    type Item = Element<'a>;

    fn next(&mut self) -> Option<Element<'a>> {
        let bytes = self.0;
        let (&tag, rest) = bytes.split_first()?;
        // Tags of several bytes do not occur in certificates.
        if tag & 0x1f == 0x1f {
            return None;
        }
        let (&first, rest) = rest.split_first()?;
        // The upper bit says that the other bits are the number of bytes of the length.
        let (length, rest) = if first < 0x80 {
            (usize::from(first), rest)
        } else {
            let (length, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            if length.len() > 3 || length.first().is_none_or(|first| *first == 0) {
                return None;
            }
            let length = length
                .iter()
                .fold(0, |sum, byte| sum << 8 | usize::from(*byte));
            // A length has one encoding, the shortest.
            (Some(length).filter(|length| *length >= 0x80)?, rest)
        };
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        let encoded = bytes.get(..bytes.len() - rest.len())?;
        Some(Element {
            tag,
            content,
            encoded,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_until_the_first_malformed_one() {
        let check = |bytes: &[u8], expected: &[(u8, usize)]| {
            let found = Reader::new(bytes).map(|one| (one.tag, one.content.len()));
            assert_eq!(found.collect::<Vec<_>>(), expected, "{bytes:?}");
            let mut reader = Reader::new(bytes);
            let read: usize = reader.by_ref().map(|one| one.encoded.len()).sum();
            assert_eq!(reader.is_at_end(), read == bytes.len(), "{bytes:?}");
        };
        check(&[], &[]);
        check(&[5, 0, 2, 1, 7], &[(5, 0), (2, 1)]);
        check(&[&[4, 0x81, 200][..], &[0; 200]].concat(), &[(4, 200)]);
        check(&[&[4, 0x82, 1, 0][..], &[0; 256]].concat(), &[(4, 256)]);
        check(&[5, 0, 2, 2, 7], &[(5, 0)]);
        check(&[4, 0x80, 0, 0], &[]);
        check(&[4, 0x84, 0xff, 0xff, 0xff, 0xff], &[]);
        check(&[4, 0x89], &[]);
        check(&[4, 0x81, 1, 0], &[]);
        check(&[&[4, 0x82, 0, 200][..], &[0; 200]].concat(), &[]);
        check(&[0x1f, 1, 0], &[]);
        check(&[4], &[]);
    }
}
