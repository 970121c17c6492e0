//! Sorting of settled entries for index builds, in little memory.
//!
//! Entries are grouped by key as they arrive (`entry_lists`). Only the keys are sorted then, and an
//! entry takes few bytes. If keys hardly repeat, a table of keys costs more than it saves, and
//! entries are sorted one by one (`entry_slots`).

mod entry_lists;
mod entry_slots;
mod numbered_lists;

use windrow_invariant::Bug;
use windrow_storage::StorageError;

use crate::entry::RecordId;
use crate::section::{RunSink, SectionDescriptor, SectionOptions, SectionWriter};
use entry_lists::EntryLists;
use entry_slots::EntrySlots;

/// The number of bits of a record id.
const ID_BITS: u32 = 40;
/// The number of entries between two decisions on grouping.
const ENTRIES_PER_LOOK: usize = 1 << 15;
/// Entries are no longer grouped if keys have fewer entries than this on average.
const ENTRIES_PER_KEY_MIN: usize = 2;

/// The number of a key, for entries whose key was added before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyNumber {
    /// Equal numbers of the same generation stand for the same key.
    pub generation: u64,
    /// The number. Numbers of a generation have few gaps.
    pub number: u32,
}

/// Collects entries in any order and writes them as a section. [`write`](Self::write) empties it
/// for reuse.
///
/// ```
/// use std::sync::Arc;
/// use windrow_fold::{Position, RecordId, RunSink, SectionOptions, Sorter};
/// use windrow_storage::{Compression, MemoryDisk, Storage, StorageOptions};
///
/// let storage = Storage::open(Arc::new(MemoryDisk::new()), StorageOptions::default())?;
/// let run = RunSink::new(storage.runs.create()?);
/// let mut sorter = Sorter::new();
/// sorter.add(b"b", RecordId(1), b"");
/// sorter.add(b"a", RecordId(2), b"");
/// let options = SectionOptions {
///     filter_bits: 10,
///     with_digest: true,
///     mark_byte: None,
///     compression: Compression::Lz4,
///     packed: false,
///     postings: None,
///     position: Position(1),
/// };
/// let descriptor = sorter.write(&run, options)?.expect("there are entries");
/// run.finish()?;
/// assert_eq!(descriptor.first_key, b"a");
/// # Ok::<(), windrow_fold::StorageError>(())
/// ```
#[derive(Debug, Default)]
pub struct Sorter {
    /// All entries while they are grouped.
    lists: EntryLists,
    /// All entries once they are not grouped.
    slots: EntrySlots,
    is_ungrouped: bool,
    /// Entries were lost when they were ungrouped. [`write`](Self::write) fails with it.
    bug: Option<Bug>,
    /// The number of entries before and since the last decision.
    looked: usize,
    since_look: usize,
}

impl Sorter {
    /// Creates an empty sorter.
    pub fn new() -> Sorter {
        Sorter::default()
    }

    /// Returns `true` if there are no entries.
    pub fn is_empty(&self) -> bool {
        self.lists.is_empty() && self.slots.is_empty()
    }

    /// Returns the memory of the entries and of sorting them, in bytes.
    pub fn bytes(&self) -> usize {
        self.lists.bytes() + self.slots.bytes()
    }

    /// Adds an entry.
    ///
    /// # Panics
    ///
    /// Panics if the record id has more than 40 bits.
    pub fn add(&mut self, key: &[u8], id: RecordId, payload: &[u8]) {
        self.add_with(key, None, id, payload);
    }

    /// Adds an entry, and the number of its key for [`add_known`](Self::add_known).
    ///
    /// # Panics
    ///
    /// Panics if the record id has more than 40 bits.
    pub fn add_numbered(&mut self, number: KeyNumber, key: &[u8], id: RecordId, payload: &[u8]) {
        self.add_with(key, Some(number), id, payload);
    }

    /// Adds an entry with the key of this number. Returns `false` if the key is not known.
    ///
    /// ```
    /// use windrow_fold::{KeyNumber, RecordId, Sorter};
    ///
    /// let mut sorter = Sorter::new();
    /// let number = KeyNumber { generation: 1, number: 0 };
    /// assert!(!sorter.add_known(number, RecordId(1), b""));
    /// sorter.add_numbered(number, b"key", RecordId(1), b"");
    /// ```
    ///
    /// # Panics
    ///
    /// Panics if the record id has more than 40 bits.
    pub fn add_known(&mut self, number: KeyNumber, id: RecordId, payload: &[u8]) -> bool {
        check_id(id);
        let is_added = !self.is_ungrouped && self.lists.add_known(number, id, payload);
        if is_added {
            self.count();
        }
        is_added
    }

    fn add_with(&mut self, key: &[u8], number: Option<KeyNumber>, id: RecordId, payload: &[u8]) {
        check_id(id);
        if self.is_ungrouped {
            return self.slots.add(key, id, payload);
        }
        self.lists.add(key, number, id, payload);
        self.count();
    }

    /// Counts an entry that was grouped.
    fn count(&mut self) {
        self.since_look += 1;
        if self.since_look == ENTRIES_PER_LOOK {
            self.look();
        }
    }

    /// Decides by the number of distinct keys so far if entries stay grouped.
    fn look(&mut self) {
        self.lists.end_batch();
        self.looked += self.since_look;
        self.since_look = 0;
        if self.lists.keys() * ENTRIES_PER_KEY_MIN > self.looked {
            let slots = &mut self.slots;
            let moved = self
                .lists
                .each(|key, id, payload| slots.add(key, id, payload));
            self.bug = moved.err();
            self.lists.clear();
            self.is_ungrouped = true;
        }
    }

    /// Sorts the entries and writes them as a section. Of entries with the same key and id, the one
    /// with the smallest payload is written. The sorter is empty afterwards and keeps its memory.
    ///
    /// # Errors
    ///
    /// Fails with a bug if an entry was lost.
    pub fn write(
        &mut self,
        sink: &RunSink,
        options: SectionOptions,
    ) -> Result<Option<SectionDescriptor>, StorageError> {
        if let Some(bug) = self.bug.take() {
            return Err(bug.into());
        }
        let mut writer = SectionWriter::new(sink, options);
        self.lists.write(&mut writer)?;
        self.slots.write(&mut writer)?;
        self.is_ungrouped = false;
        (self.looked, self.since_look) = (0, 0);
        writer.finish()
    }
}

/// Panics if a record id has too many bits. They would overwrite the length of the key.
fn check_id(id: RecordId) {
    assert!(id.0 < 1 << ID_BITS, "record id {id}");
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
        /// The number of distinct keys.
        keys: u64,
        ids_descend: bool,
    }

    const OPTIONS: SectionOptions = SectionOptions {
        filter_bits: 10,
        packed: true,
        postings: None,
        with_digest: true,
        mark_byte: None,
        compression: Compression::Lz4,
        position: Position(1),
    };

    const CASE: Case = Case {
        beginning: "common-",
        entries: 20_000,
        keys: 5_003,
        ids_descend: false,
    };

    #[test]
    fn entries_are_written_in_order() {
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

    #[test]
    fn entries_with_numbers_equal_entries_with_keys() {
        let key = |number: u64| format!("key {number}").into_bytes();
        let number = |generation, of: u64| KeyNumber {
            generation,
            number: of as u32,
        };
        let (mut sorter, mut other) = (Sorter::new(), Sorter::new());
        let mut known = 0;
        for of in 0..30_000 {
            // The numbers of a later generation stand for other keys.
            let generation = of / 10_000;
            let one = of * 7919 % 501;
            let id = RecordId(of);
            let number = number(generation, (one + generation) % 501);
            if sorter.add_known(number, id, b"p") {
                known += 1;
            } else {
                sorter.add_numbered(number, &key(one), id, b"p");
            }
            other.add(&key(one), id, b"p");
        }
        assert!(known > 20_000);
        // A number without a bound takes no memory, and is not known.
        let large = number(2, u64::from(u32::MAX));
        sorter.add_numbered(large, b"large", RecordId(1), b"");
        other.add(b"large", RecordId(1), b"");
        assert!(sorter.bytes() < other.bytes() + (1 << 20));
        assert!(!sorter.add_known(large, RecordId(2), b""));
        assert!(written(&mut sorter) == written(&mut other));
        assert!(
            !sorter.add_known(number(2, 0), RecordId(1), b""),
            "after a write"
        );
    }

    #[test]
    fn numbers_of_ungrouped_entries_are_not_known() {
        let mut sorter = Sorter::new();
        for one in 0..ENTRIES_PER_LOOK as u32 {
            let number = KeyNumber {
                generation: 0,
                number: one,
            };
            let key = one.to_be_bytes();
            assert!(!sorter.add_known(number, RecordId(1), b""));
            sorter.add_numbered(number, &key, RecordId(1), b"");
        }
        assert!(sorter.is_ungrouped);
        let first = KeyNumber {
            generation: 0,
            number: 0,
        };
        assert!(!sorter.add_known(first, RecordId(2), b""));
    }

    /// Writes the entries and returns them.
    fn written(sorter: &mut Sorter) -> Vec<(Vec<u8>, u64, Vec<u8>)> {
        let storage =
            Storage::open(Arc::new(MemoryDisk::new()), StorageOptions::default()).unwrap();
        let sink = RunSink::new(storage.runs.create().unwrap());
        let descriptor = sorter.write(&sink, OPTIONS).unwrap().unwrap();
        sink.finish().unwrap();
        let section = Arc::new(Section::open(&storage.runs, descriptor).unwrap());
        let sections = Sections::new(vec![section]);
        let mut merge = MergeCursor::from_chains(sections.chains().iter()).unwrap();
        let mut found = Vec::new();
        while let Some(entry) = merge.current() {
            found.push((entry.key.to_vec(), entry.id.0, entry.payload.to_vec()));
            merge.advance().unwrap();
        }
        found
    }

    /// Adds the entries of a case, some of them twice, and compares what is written.
    fn check(sorter: &mut Sorter, case: Case) {
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
            // The entry with the smallest payload counts.
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
        let found = written(sorter);
        assert!(sorter.is_empty());
        assert_eq!(found.len() as u64, case.entries);
        let found = found.into_iter();
        let found = found.map(|(key, id, payload)| ((key, id), payload));
        assert!(found.eq(expected));
    }
}
