//! Marks: entries before all others of a map, which say something of records apart from its order. Their
//! keys begin with a byte that no other key does, and mostly are few.
//!
//! Every source counts its marks, those that are put and those that delete, so that what a map has of
//! them is mostly known without reading.

use crate::varint;

/// Of so many different marks is kept how often they stand there: a section's are in a row of the catalog,
/// which is small.
pub const MARKS_MAX: usize = 64;

/// How often each mark stands in a source, or in several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    counts: Vec<MarkCount>,
    /// There are others besides.
    has_more: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkCount {
    pub key: Vec<u8>,
    /// Entries that put it on a record, versions of the same with them.
    pub put: u64,
    pub deleted: u64,
}

impl Marks {
    pub fn iter(&self) -> impl Iterator<Item = &MarkCount> {
        self.counts.iter()
    }

    pub fn len(&self) -> usize {
        self.counts.len()
    }

    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Whether there are so many different ones that not all are counted.
    pub fn has_more(&self) -> bool {
        self.has_more
    }

    /// Counts an entry.
    pub fn note(&mut self, key: &[u8], deleted: bool) {
        let (put, deleted) = (u64::from(!deleted), u64::from(deleted));
        self.add(key, put, deleted);
    }

    /// Adds what another source has.
    pub fn join(&mut self, other: &Marks) {
        for mark in other.iter() {
            self.add(&mark.key, mark.put, mark.deleted);
        }
        self.has_more |= other.has_more;
    }

    pub(crate) fn add(&mut self, key: &[u8], put: u64, deleted: u64) {
        let is_full = self.counts.len() == MARKS_MAX;
        // Entries come in order: it is mostly the last.
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
    fn a_row_of_the_catalog_has_room_for_them() {
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
        joined.join(&marks);
        assert_eq!(joined, marks);
    }
}
