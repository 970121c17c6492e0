//! Marks: entries that sort before all others of a map and state a property of records. Their keys
//! begin with a byte that no other key begins with, and few distinct ones are common.
//!
//! Every source counts the marks that it sets and deletes. A reader therefore mostly knows the
//! marks of a map without a lookup.

use crate::varint;

/// At most this many distinct marks are counted. The counts of a section are in a row of the
/// catalog, which must be small.
pub const MARKS_MAX: usize = 64;

/// How often each mark is set and deleted in a source, or in several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    counts: Vec<MarkCount>,
    /// There are further marks, which are not counted.
    has_more: bool,
}

/// The counts of one mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkCount {
    /// The key of the mark.
    pub key: Vec<u8>,
    /// The number of entries that set it, including several versions of one.
    pub put: u64,
    /// The number of tombstones.
    pub deleted: u64,
}

impl Marks {
    /// Iterates over the counted marks.
    pub fn iter(&self) -> impl Iterator<Item = &MarkCount> {
        self.counts.iter()
    }

    /// Returns the number of distinct marks that are counted.
    pub fn len(&self) -> usize {
        self.counts.len()
    }

    /// Returns `true` if no marks are counted.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Returns `true` if there are further marks, which are not counted.
    pub fn has_more(&self) -> bool {
        self.has_more
    }

    /// Counts an entry.
    pub fn count(&mut self, key: &[u8], deleted: bool) {
        let (put, deleted) = (u64::from(!deleted), u64::from(deleted));
        self.add(key, put, deleted);
    }

    /// Adds the counts of another source.
    pub fn add_all(&mut self, other: &Marks) {
        for mark in other.iter() {
            self.add(&mark.key, mark.put, mark.deleted);
        }
        self.has_more |= other.has_more;
    }

    pub(crate) fn add(&mut self, key: &[u8], put: u64, deleted: u64) {
        let is_full = self.counts.len() == MARKS_MAX;
        // Entries arrive in order, so that it is mostly the last one.
        match self.counts.iter_mut().rfind(|mark| mark.key == key) {
            Some(mark) => {
                mark.put += put;
                mark.deleted += deleted;
            }
            None if is_full => self.has_more = true,
            None => self.counts.push(MarkCount {
                key: key.to_vec(),
                put,
                deleted,
            }),
        }
    }

    pub(crate) fn encode(&self, bytes: &mut Vec<u8>) {
        varint::put(
            bytes,
            self.counts.len() as u64 * 2 + u64::from(self.has_more),
        );
        for mark in self.iter() {
            varint::put(bytes, mark.key.len() as u64);
            bytes.extend_from_slice(&mark.key);
            varint::put(bytes, mark.put);
            varint::put(bytes, mark.deleted);
        }
    }

    pub(crate) fn decode(bytes: &mut &[u8]) -> Option<Marks> {
        let head = varint::take(bytes)?;
        let mut marks = Marks::default();
        for _ in 0..head / 2 {
            let length = varint::take(bytes)?;
            let key = varint::take_bytes(bytes, length)?;
            let (put, deleted) = (varint::take(bytes)?, varint::take(bytes)?);
            marks.add(key, put, deleted);
        }
        marks.has_more |= head % 2 == 1;
        Some(marks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoded_marks_fit_into_a_row_of_the_catalog() {
        let mut marks = Marks::default();
        for number in 0..1_000u64 {
            let key = [0, (number / 32) as u8, (number % 32) as u8];
            marks.add(&key, 1 << 40, 1 << 30);
        }
        let mut bytes = Vec::new();
        marks.encode(&mut bytes);
        assert!(bytes.len() < 1_100, "{}", bytes.len());
        let found = Marks::decode(&mut bytes.as_slice());
        assert_eq!(found.as_ref(), Some(&marks));
        assert!(marks.has_more());
        let mut joined = Marks::default();
        joined.add_all(&marks);
        assert_eq!(joined, marks);
    }
}
