//! Marks: entries before all others of a map, which say something of records apart from its order. Their
//! keys begin with a byte that no other key does, and are few.
//!
//! Every source counts its marks, those that are put and those that delete, so that what a map has of
//! them is mostly known without reading.

/// How often each mark stands in a source, or in several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks(Vec<MarkCount>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkCount {
    pub key: Vec<u8>,
    /// Entries that put it on a record, versions of the same with them.
    pub put: u64,
    pub deleted: u64,
}

impl Marks {
    pub fn iter(&self) -> impl Iterator<Item = &MarkCount> {
        self.0.iter()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
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
    }

    pub(crate) fn add(&mut self, key: &[u8], put: u64, deleted: u64) {
        // Entries come in order: it is mostly the last.
        match self.0.iter_mut().rfind(|mark| mark.key == key) {
            Some(mark) => {
                mark.put += put;
                mark.deleted += deleted;
            }
            None => self.0.push(MarkCount {
                key: key.to_vec(),
                put,
                deleted,
            }),
        }
    }
}
