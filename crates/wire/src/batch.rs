//! Documents on their way into a reply.

use windrow_document::Document;

/// The elements of a BSON array, grown by one document at a time, ready to be sent as they are.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Batch {
    elements: Vec<u8>,
    count: usize,
}

/// A document in a batch has its type and its number before it, which has at most eight digits.
const ELEMENT_BYTES_MAX: usize = 10;

impl Batch {
    pub fn new() -> Batch {
        Batch::default()
    }

    /// Writes into this buffer, which is cleared first.
    pub fn with_buffer(mut buffer: Vec<u8>) -> Batch {
        buffer.clear();
        Batch {
            elements: buffer,
            count: 0,
        }
    }

    pub fn push(&mut self, document: Document<'_>) {
        self.elements.push(windrow_document::Type::Document as u8);
        push_decimal(&mut self.elements, self.count);
        self.elements.push(0);
        self.elements.extend_from_slice(document.as_bytes());
        self.count += 1;
    }

    /// Whether a document goes into a batch of at most so many bytes; the first always does.
    pub fn has_room(&self, document: Document<'_>, bytes_max: usize) -> bool {
        let bytes = self.bytes() + ELEMENT_BYTES_MAX + document.as_bytes().len();
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

fn push_decimal(into: &mut Vec<u8>, number: usize) {
    if number >= 10 {
        push_decimal(into, number / 10);
    }
    into.push(b'0' + (number % 10) as u8);
}
