//! A batch of documents for a reply.

use windrow_document::Document;

/// The documents of `firstBatch` or `nextBatch`, encoded as the elements of a BSON array while they
/// are added. A reply sends them without another copy.
///
/// ```
/// use windrow_document::doc;
/// use windrow_wire::{Batch, Reply};
///
/// let document = doc! { "_id": 1 };
/// let mut batch = Batch::new();
/// batch.push(document.as_document());
/// let reply = Reply::first_batch("shop.orders", 0, batch);
/// let cursor = doc! { "firstBatch": [{ "_id": 1 }], "id": 0i64, "ns": "shop.orders" };
/// assert_eq!(reply.to_document(), doc! { "cursor": cursor, "ok": 1.0 });
/// ```
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Batch {
    elements: Vec<u8>,
    count: usize,
    next_key: DecimalCounter,
}

/// A decimal counter: the key of the next array element. Counting in digits avoids formatting a
/// number for each document.
#[derive(Debug, Clone, PartialEq)]
struct DecimalCounter {
    digits: [u8; DIGITS_MAX],
    first: usize,
}

/// More digits than the number of documents in a reply can have.
const DIGITS_MAX: usize = 8;

impl Default for DecimalCounter {
    fn default() -> DecimalCounter {
        DecimalCounter {
            digits: [b'0'; DIGITS_MAX],
            first: DIGITS_MAX - 1,
        }
    }
}

impl DecimalCounter {
    fn as_bytes(&self) -> &[u8] {
        debug_assert!(self.first < DIGITS_MAX, "a counter without digits");
        self.digits.get(self.first..).unwrap_or_default()
    }

    fn increment(&mut self) {
        for (index, digit) in self.digits.iter_mut().enumerate().rev() {
            self.first = self.first.min(index);
            if *digit < b'9' {
                *digit += 1;
                return;
            }
            *digit = b'0';
        }
        debug_assert!(
            false,
            "more documents than a key of {DIGITS_MAX} digits can count"
        );
    }
}

impl Batch {
    /// Bytes that an element adds to its document: the type, the key and the key's zero byte.
    pub const ELEMENT_BYTES_MAX: usize = 2 + DIGITS_MAX;

    /// Creates an empty batch.
    pub fn new() -> Batch {
        Batch::default()
    }

    /// Creates an empty batch that writes into `buffer`. The buffer is cleared and keeps its
    /// capacity.
    pub fn with_buffer(mut buffer: Vec<u8>) -> Batch {
        buffer.clear();
        Batch {
            elements: buffer,
            ..Batch::default()
        }
    }

    /// Appends a copy of the document.
    pub fn push(&mut self, document: Document<'_>) {
        self.elements.push(windrow_document::Type::Document as u8);
        self.elements.extend_from_slice(self.next_key.as_bytes());
        self.elements.push(0);
        self.elements.extend_from_slice(document.as_bytes());
        self.count += 1;
        self.next_key.increment();
    }

    /// Returns `true` if the document fits into a batch of `bytes_max` bytes. An empty batch has
    /// room for every document, otherwise a large document could never be returned.
    pub fn has_room(&self, document: Document<'_>, bytes_max: usize) -> bool {
        let bytes = self.bytes() + Batch::ELEMENT_BYTES_MAX + document.as_bytes().len();
        self.is_empty() || bytes <= bytes_max
    }

    /// Returns the number of documents.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns the size of the encoded elements in bytes.
    pub fn bytes(&self) -> usize {
        self.elements.len()
    }

    /// Returns `true` if the batch has no documents.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(crate) fn elements(&self) -> &[u8] {
        &self.elements
    }

    /// Returns the buffer for reuse by the next batch.
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
    fn the_counter_matches_formatted_numbers() {
        let mut counter = DecimalCounter::default();
        for number in 0..12_345 {
            assert_eq!(counter.as_bytes(), number.to_string().as_bytes());
            counter.increment();
        }
    }
}
