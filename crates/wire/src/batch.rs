//! Documents on their way into a reply.

use windrow_document::Document;

/// The elements of a BSON array, grown by one document at a time, ready to be sent as they are.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Batch {
    elements: Vec<u8>,
    count: usize,
    name: Name,
}

/// The name of the next element: its number in decimal digits, counted up as they stand.
#[derive(Debug, Clone, PartialEq)]
struct Name {
    digits: [u8; DIGITS_MAX],
    first: usize,
}

/// As many as any number of documents has that stand in one reply.
const DIGITS_MAX: usize = 8;

impl Default for Name {
    fn default() -> Name {
        Name {
            digits: [b'0'; DIGITS_MAX],
            first: DIGITS_MAX - 1,
        }
    }
}

impl Name {
    fn as_bytes(&self) -> &[u8] {
        self.digits.get(self.first..).unwrap_or_default()
    }

    fn count_up(&mut self) {
        for (place, digit) in self.digits.iter_mut().enumerate().rev() {
            self.first = self.first.min(place);
            if *digit < b'9' {
                *digit += 1;
                return;
            }
            *digit = b'0';
        }
    }
}

impl Batch {
    /// A document in a batch has its type and its number before it, and a zero.
    pub const ELEMENT_BYTES_MAX: usize = 2 + DIGITS_MAX;

    pub fn new() -> Batch {
        Batch::default()
    }

    /// Writes into this buffer, which is cleared first.
    pub fn with_buffer(mut buffer: Vec<u8>) -> Batch {
        buffer.clear();
        Batch {
            elements: buffer,
            ..Batch::default()
        }
    }

    pub fn push(&mut self, document: Document<'_>) {
        self.elements.push(windrow_document::Type::Document as u8);
        self.elements.extend_from_slice(self.name.as_bytes());
        self.elements.push(0);
        self.elements.extend_from_slice(document.as_bytes());
        self.count += 1;
        self.name.count_up();
    }

    /// Whether a document goes into a batch of at most so many bytes; the first always does.
    pub fn has_room(&self, document: Document<'_>, bytes_max: usize) -> bool {
        let bytes = self.bytes() + Batch::ELEMENT_BYTES_MAX + document.as_bytes().len();
        self.is_empty() || bytes <= bytes_max
    }

    /// Documents so far.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Bytes so far, as they will be sent.
    pub fn bytes(&self) -> usize {
        self.elements.len()
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(crate) fn elements(&self) -> &[u8] {
        &self.elements
    }

    /// Gives the buffer back for the next batch.
    pub fn into_buffer(self) -> Vec<u8> {
        self.elements
    }
}

impl<'a> FromIterator<Document<'a>> for Batch {
    fn from_iter<I: IntoIterator<Item = Document<'a>>>(documents: I) -> Batch {
        let mut batch = Batch::new();
        documents
            .into_iter()
            .for_each(|document| batch.push(document));
        batch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_named_by_their_numbers() {
        let mut name = Name::default();
        for number in 0..12_345 {
            assert_eq!(name.as_bytes(), number.to_string().as_bytes());
            name.count_up();
        }
    }
}
