//! Sorting many settled entries in little memory: what an index build is made of.
//!
//! Entries are grouped by key as they come (`lists`): then only the keys are sorted, and an entry takes
//! few bytes. If hardly any key comes again, a table of keys costs more than it saves. Then entries are
//! sorted one by one (`slots`).

mod entry_lists;
mod entry_slots;

use windrow_storage::StorageError;

use crate::entry::RecordId;
use crate::section::{RunSink, SectionDescriptor, SectionOptions, SectionWriter};
use entry_lists::EntryLists;
use entry_slots::EntrySlots;

/// The number of bits of a record id.
const ID_BITS: u32 = 40;
/// After so many entries the sorter looks at how many different keys they have.
const ENTRIES_PER_LOOK: usize = 1 << 15;
/// If a key has fewer entries on average, entries are not grouped by key any more.
const ENTRIES_PER_KEY_MIN: usize = 2;

/// Collects entries in any order, then writes them in order. Recycled by [`write`](Self::write).
#[derive(Debug, Default)]
pub struct Sorter {
    /// All entries, if there are no slots.
    lists: EntryLists,
    /// All entries, if there are no lists.
    slots: EntrySlots,
    is_ungrouped: bool,
    /// How many entries were added before the last look, and since.
    looked: usize,
    since_look: usize,
}

impl Sorter {
    pub fn new() -> Sorter {
        Sorter::default()
    }

    pub fn is_empty(&self) -> bool {
        self.lists.is_empty() && self.slots.is_empty()
    }

    /// Bytes of memory that the entries take, and sorting them.
    pub fn bytes(&self) -> usize {
        self.lists.bytes() + self.slots.bytes()
    }

    /// Adds an entry. Record ids have at most 40 bits.
    pub fn add(&mut self, key: &[u8], id: RecordId, payload: &[u8]) {
        // A longer one would be taken for a part of the key's length, or for a smaller one.
        assert!(id.0 < 1 << ID_BITS, "record id {id}");
        if self.is_ungrouped {
            return self.slots.add(key, id, payload);
        }
        self.lists.add(key, id, payload);
        self.since_look += 1;
        if self.since_look == ENTRIES_PER_LOOK {
            self.look();
        }
    }

    /// Decides by the keys and entries so far if entries are still grouped.
    fn look(&mut self) {
        self.lists.end_batch();
        self.looked += self.since_look;
        self.since_look = 0;
        if self.lists.keys() * ENTRIES_PER_KEY_MIN > self.looked {
            let slots = &mut self.slots;
            self.lists
                .each(|key, id, payload| slots.add(key, id, payload));
            self.lists.clear();
            self.is_ungrouped = true;
        }
    }

    /// Sorts the entries and writes them as a section; of equal slots the one with the smallest
    /// payload. The sorter is empty afterwards and keeps its memory.
    pub fn write(
        &mut self,
        sink: &RunSink,
        options: SectionOptions,
    ) -> Result<Option<SectionDescriptor>, StorageError> {
        let mut writer = SectionWriter::new(sink, options);
        self.lists.write(&mut writer)?;
        self.slots.write(&mut writer)?;
        self.is_ungrouped = false;
        (self.looked, self.since_look) = (0, 0);
        writer.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::sync::Arc;
    use windrow_storage::{Compression, MemoryDisk, Position, Storage, StorageOptions};

    use crate::cursor::MergeCursor;
    use crate::section::Section;
    use crate::sections::Sections;

    /// Entries to sort.
    #[derive(Clone, Copy)]
    struct Case {
        beginning: &'static str,
        entries: u64,
        /// How many different numbers the keys have.
        keys: u64,
        ids_descend: bool,
    }

    const CASE: Case = Case {
        beginning: "common-",
        entries: 20_000,
        keys: 5_003,
        ids_descend: false,
    };

    #[test]
    fn what_goes_in_in_any_order_comes_out_in_order() {
        let mut sorter = Sorter::new();
        let beginning = "a beginning that is longer than the head of a key-";
        for case in [CASE, Case { beginning, ..CASE }] {
            for keys in [1, 40, 5_003] {
                for ids_descend in [false, true] {
                    check(
                        &mut sorter,
                        Case {
                            keys,
                            ids_descend,
                            ..case
                        },
                    );
                }
            }
        }
    }

    #[test]
    fn entries_with_different_keys_are_not_grouped() {
        let entries = ENTRIES_PER_LOOK as u64 + 1_000;
        for ids_descend in [false, true] {
            let case = Case {
                entries,
                keys: 1 << 30,
                ids_descend,
                ..CASE
            };
            check(&mut Sorter::new(), case);
        }
    }

    /// Adds the entries of a case, some of them twice, and reads what is written.
    fn check(sorter: &mut Sorter, case: Case) {
        let storage =
            Storage::open(Arc::new(MemoryDisk::new()), StorageOptions::default()).unwrap();
        let sink = RunSink::new(storage.runs.create().unwrap());
        let mut expected = BTreeMap::new();
        for number in 0..case.entries {
            let mut key =
                format!("{}{:05}", case.beginning, number * 7919 % case.keys).into_bytes();
            if number % 5 == 0 {
                key.extend_from_slice(&[b'x'; 9]);
            }
            let id = if case.ids_descend {
                case.entries - number
            } else {
                number
            };
            let length = match number {
                777 => 10_000,
                _ if number % 7 == 0 => 20,
                _ => number % 3,
            };
            let payload = vec![1; length as usize];
            // Of equal slots the smallest payload counts.
            if number % 100 == 0 {
                sorter.add(&key, RecordId(id), &[2]);
            }
            sorter.add(&key, RecordId(id), &payload);
            if number % 101 == 0 {
                sorter.add(&key, RecordId(id), &[1; 21]);
            }
            expected.insert((key, id), payload);
        }
        let is_large = case.entries > ENTRIES_PER_LOOK as u64;
        assert_eq!(sorter.is_ungrouped, is_large);
        assert!(!sorter.is_empty() && sorter.bytes() > 0);
        let options = SectionOptions {
            filter_bits: 10,
            packed: true,
            postings: None,
            with_digest: true,
            mark_byte: None,
            compression: Compression::Lz4,
            position: Position(1),
        };
        let descriptor = sorter.write(&sink, options).unwrap().unwrap();
        assert!(sorter.is_empty());
        sink.finish().unwrap();
        assert_eq!(descriptor.entries, case.entries);
        let section = Arc::new(Section::open(&storage.runs, descriptor).unwrap());
        let sections = Sections::new(vec![section]);
        let mut merge = MergeCursor::from_chains(sections.chains().iter()).unwrap();
        let mut found = Vec::new();
        while let Some(entry) = merge.current() {
            found.push(((entry.key.to_vec(), entry.id.0), entry.payload.to_vec()));
            merge.advance().unwrap();
        }
        assert!(found.into_iter().eq(expected));
    }
}
