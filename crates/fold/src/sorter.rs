//! Sorting many settled entries in little memory: what an index build is made of.
//!
//! An entry takes 16 bytes beside its key and payload: the first bytes of its key, and where it
//! stands. What all keys have in common is left out of these first bytes, so that most comparisons
//! end there.
//!
//! ```text
//! arena   key length varint | key | id varint | payload length varint | payload, for each entry
//! ```

use windrow_storage::StorageError;

use crate::entry::{Entry, key_prefix};
use crate::section::{RunSink, SectionDescriptor, SectionOptions, SectionWriter};
use crate::varint;

/// Collects entries in any order, then writes them in order. Recycled by [`write`](Self::write).
#[derive(Debug, Default)]
pub struct Sorter {
    arena: Vec<u8>,
    places: Vec<Place>,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    prefix: u64,
    offset: u32,
}

impl Sorter {
    pub fn new() -> Sorter {
        Sorter::default()
    }

    pub fn len(&self) -> usize {
        self.places.len()
    }

    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Bytes of memory that the entries take.
    pub fn bytes(&self) -> usize {
        self.arena.len() + self.places.len() * size_of::<Place>()
    }

    /// Whether there is room for another entry: places are 32 bits wide.
    pub fn is_full(&self) -> bool {
        self.arena.len() > 3 << 30
    }

    pub fn add(&mut self, key: &[u8], id: u64, payload: &[u8]) {
        let offset = self.arena.len() as u32;
        varint::put(&mut self.arena, key.len() as u64);
        self.arena.extend_from_slice(key);
        varint::put(&mut self.arena, id);
        varint::put(&mut self.arena, payload.len() as u64);
        self.arena.extend_from_slice(payload);
        self.places.push(Place {
            prefix: key_prefix(key),
            offset,
        });
    }

    fn key(&self, place: &Place) -> &[u8] {
        let mut rest = self.arena.get(place.offset as usize..).unwrap_or_default();
        let length = varint::take(&mut rest).unwrap_or_default();
        varint::take_bytes(&mut rest, length).unwrap_or_default()
    }

    fn entry(&self, place: &Place) -> Entry<'_> {
        let mut rest = self.arena.get(place.offset as usize..).unwrap_or_default();
        let length = varint::take(&mut rest).unwrap_or_default();
        let key = varint::take_bytes(&mut rest, length).unwrap_or_default();
        let id = varint::take(&mut rest).unwrap_or_default();
        let length = varint::take(&mut rest).unwrap_or_default();
        let payload = varint::take_bytes(&mut rest, length).unwrap_or_default();
        Entry {
            key,
            id,
            position: 0,
            deleted: false,
            payload,
        }
    }

    /// How many bytes all keys have in common.
    fn common_length(&self) -> usize {
        let Some(first) = self.places.first().map(|place| self.key(place)) else {
            return 0;
        };
        let mut common = first.len();
        for place in &self.places {
            let key = self.key(place);
            let head = first.get(..common).unwrap_or(first);
            common = head.iter().zip(key).take_while(|(a, b)| a == b).count();
            if common == 0 {
                break;
            }
        }
        common
    }

    fn sort(&mut self) {
        let skip = self.common_length();
        let mut places = std::mem::take(&mut self.places);
        if skip > 0 {
            for place in &mut places {
                place.prefix = key_prefix(self.key(place).get(skip..).unwrap_or_default());
            }
        }
        places.sort_unstable_by(|a, b| {
            a.prefix
                .cmp(&b.prefix)
                .then_with(|| self.entry(a).compare_place(&self.entry(b)))
        });
        self.places = places;
    }

    /// Sorts the entries and writes them as a section; of equal places the first that comes. The
    /// sorter is empty afterwards and keeps its memory.
    pub fn write(
        &mut self,
        sink: &RunSink,
        options: SectionOptions,
    ) -> Result<Option<SectionDescriptor>, StorageError> {
        self.sort();
        let mut writer = SectionWriter::new(sink, options);
        let mut last: Option<Entry<'_>> = None;
        for place in &self.places {
            let entry = self.entry(place);
            if !last.is_some_and(|last| last.same_place(&entry)) {
                writer.push(&entry)?;
            }
            last = Some(entry);
        }
        let written = writer.finish();
        self.arena.clear();
        self.places.clear();
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::sync::Arc;
    use windrow_storage::{Compression, MemoryDisk, Storage, StorageOptions};

    use crate::cursor::Merge;
    use crate::section::Section;
    use crate::view::Sections;

    #[test]
    fn what_goes_in_in_any_order_comes_out_in_order() {
        let storage =
            Storage::open(Arc::new(MemoryDisk::new()), StorageOptions::default()).unwrap();
        let sink = RunSink::new(storage.runs.create().unwrap());
        let (mut sorter, mut expected) = (Sorter::new(), BTreeSet::new());
        for number in 0..20_000u64 {
            let key = format!("common-{:05}", number * 7919 % 5_003).into_bytes();
            let payload = vec![1; (number % 3) as usize];
            sorter.add(&key, number, &payload);
            expected.insert((key, number, payload));
        }
        sorter.add(b"common-00000", 0, b"");
        let options = SectionOptions {
            filter: true,
            compression: Compression::Lz4,
            position: 1,
        };
        let descriptor = sorter.write(&sink, options).unwrap().unwrap();
        assert!(sorter.is_empty());
        sink.finish().unwrap();
        assert_eq!(descriptor.entries, 20_000);
        let section = Arc::new(Section::open(&storage.runs, descriptor).unwrap());
        let sections = Sections::new(vec![section]);
        let mut merge = Merge::of_chains(sections.chains().iter()).unwrap();
        let mut found = Vec::new();
        while let Some(entry) = merge.current() {
            found.push((entry.key.to_vec(), entry.id, entry.payload.to_vec()));
            merge.advance().unwrap();
        }
        assert!(found.into_iter().eq(expected));
    }
}
