//! A part of a tail: entries in order of arrival, which are sorted when a reader needs their order.
//!
//! A lookup of one key compares fingerprints, which takes some microseconds. Sorting takes a
//! millisecond. If writers and readers take turns, lookups therefore need no sort before the next
//! fold.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use windrow_storage::{Position, StorageError};

use crate::entry::{Entry, EntryKey, RecordId, same_key};
use crate::entry_buffer::{EntryBuffer, fingerprint};
use crate::marks::Marks;
use crate::postings::{BufferList, ListCache};
use crate::sorted_buffer::SortedBuffer;

/// Larger parts are sorted when they are created: a scan of the fingerprints would take too long.
pub const UNSORTED_MAX: usize = 64 << 10;
/// A part is sorted after this many lookups.
const LOOKUPS_MAX: u32 = 64;
/// A lookup sorts the part if a key has more than this fraction of the entries, and not only a few.
/// A copy at each lookup would cost more.
const COPIED_FRACTION: usize = 16;
const COPIED_MIN: usize = 64;
/// The number of fingerprints that are compared at once.
const FINGERPRINTS_COMPARED: usize = 256;

/// Entries of a tail.
#[derive(Debug)]
pub struct TailPart {
    entries: PartEntries,
    /// Counted at the first request.
    marks: OnceLock<Marks>,
    /// The decoded postings of frequent keys, if the entries are those of a text index.
    list_cache: ListCache,
}

#[derive(Debug)]
enum PartEntries {
    Sorted(Arc<SortedBuffer>),
    Unsorted(Box<UnsortedEntries>),
}

enum LookupForm<'p> {
    Sorted(&'p Arc<SortedBuffer>),
    Unsorted(&'p UnsortedEntries),
}

#[derive(Debug)]
struct UnsortedEntries {
    buffer: EntryBuffer,
    /// Created at the first lookup of a key.
    fingerprints: OnceLock<Vec<u32>>,
    lookups: AtomicU32,
    /// Created when a reader first needs the order.
    sorted: OnceLock<Arc<SortedBuffer>>,
}

impl From<SortedBuffer> for TailPart {
    fn from(sorted: SortedBuffer) -> TailPart {
        TailPart {
            entries: PartEntries::Sorted(Arc::new(sorted)),
            marks: OnceLock::new(),
            list_cache: ListCache::default(),
        }
    }
}

impl From<EntryBuffer> for TailPart {
    fn from(buffer: EntryBuffer) -> TailPart {
        let buffer = match SortedBuffer::try_from_sorted(buffer) {
            Ok(sorted) => return TailPart::from(sorted),
            Err(buffer) if buffer.len() > UNSORTED_MAX => {
                return TailPart::from(SortedBuffer::from_buffer(&buffer));
            }
            Err(buffer) => buffer,
        };
        let unsorted = UnsortedEntries {
            buffer,
            fingerprints: OnceLock::new(),
            lookups: AtomicU32::new(0),
            sorted: OnceLock::new(),
        };
        TailPart {
            entries: PartEntries::Unsorted(Box::new(unsorted)),
            marks: OnceLock::new(),
            list_cache: ListCache::default(),
        }
    }
}

impl TailPart {
    /// Joins the entries of several parts.
    pub fn join(parts: &[Arc<TailPart>]) -> TailPart {
        let buffer = EntryBuffer::join(parts.iter().map(|part| part.buffer()));
        let is_unsorted = parts.iter().all(|part| part.known_order().is_none());
        let joined = if is_unsorted && buffer.len() <= UNSORTED_MAX {
            TailPart::from(buffer)
        } else {
            TailPart::from(SortedBuffer::from_owned(buffer))
        };
        let known: Option<Vec<&Marks>> = parts.iter().map(|part| part.marks.get()).collect();
        if let Some(known) = known {
            joined.marks.get_or_init(|| {
                let mut marks = Marks::default();
                known.into_iter().for_each(|one| marks.add_all(one));
                marks
            });
        }
        debug_assert_eq!(
            joined.len(),
            parts.iter().map(|part| part.len()).sum::<usize>(),
            "entries were lost where parts were joined"
        );
        joined
    }

    /// Drops the unsorted entries of a part that has been sorted since.
    pub fn shed(part: &mut Arc<TailPart>) {
        if let PartEntries::Unsorted(unsorted) = &part.entries
            && let Some(sorted) = unsorted.sorted.get()
        {
            let marks = part.marks.clone();
            let entries = PartEntries::Sorted(sorted.clone());
            *part = Arc::new(TailPart {
                entries,
                marks,
                list_cache: ListCache::default(),
            });
        }
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.buffer().len()
    }

    /// Returns `true` if there are no entries.
    pub fn is_empty(&self) -> bool {
        self.buffer().is_empty()
    }

    /// Returns the memory of the entries, in bytes, without shared arenas.
    pub fn bytes(&self) -> usize {
        self.buffer().bytes()
    }

    /// Returns the newest position of the entries.
    pub fn newest_position(&self) -> Position {
        self.buffer().newest_position()
    }

    /// Returns the entries, sorted if they have been sorted.
    fn buffer(&self) -> &EntryBuffer {
        match &self.entries {
            PartEntries::Sorted(sorted) => sorted.buffer(),
            PartEntries::Unsorted(unsorted) => {
                let sorted = unsorted.sorted.get();
                sorted.map_or(&unsorted.buffer, |sorted| sorted.buffer())
            }
        }
    }

    /// Returns the entry with this number, in no particular order.
    pub fn get(&self, number: usize) -> Option<Entry<'_>> {
        self.buffer().get(number)
    }

    /// Iterates over the entries, in no particular order.
    pub fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        self.buffer().entries()
    }

    /// Returns the sorted entries if they have been sorted.
    fn known_order(&self) -> Option<&Arc<SortedBuffer>> {
        match &self.entries {
            PartEntries::Sorted(sorted) => Some(sorted),
            PartEntries::Unsorted(unsorted) => unsorted.sorted.get(),
        }
    }

    /// Returns the sorted entries. Sorts them at the first call.
    pub fn sorted(&self) -> &Arc<SortedBuffer> {
        match &self.entries {
            PartEntries::Sorted(sorted) => sorted,
            PartEntries::Unsorted(unsorted) => unsorted.sorted(),
        }
    }

    /// Returns a buffer with all entries of this key, and perhaps others. `None` if there are none.
    pub fn buffer_with_key(&self, key: &[u8]) -> Option<Arc<SortedBuffer>> {
        match self.lookup_form() {
            LookupForm::Sorted(sorted) => {
                let first = sorted.get(sorted.lower_bound(key, RecordId::MIN))?;
                (first.key == key).then(|| sorted.clone())
            }
            LookupForm::Unsorted(unsorted) => unsorted.find_key(key),
        }
    }

    /// Returns the postings of a key that are visible at a snapshot: those in the cache, or
    /// newly decoded ones. `None` if there are no entries of the key. Fails if a payload is not a
    /// posting.
    pub(crate) fn postings(
        &self,
        key: &[u8],
        snapshot: Position,
    ) -> Result<Option<Arc<BufferList>>, StorageError> {
        // All entries are visible, and one list serves all these snapshots.
        let is_constant = snapshot >= self.newest_position();
        if is_constant && let Some(list) = self.list_cache.get(key) {
            return Ok(Some(list));
        }
        let Some(buffer) = self.buffer_with_key(key) else {
            return Ok(None);
        };
        let list = Arc::new(BufferList::decode(&buffer, key, snapshot)?);
        if is_constant {
            self.list_cache.insert(key, &list, self.bytes());
        }
        Ok(Some(list))
    }

    /// Counts the entries from `from` up to, but not including, `to`.
    pub fn count(&self, from: EntryKey<'_>, to: EntryKey<'_>) -> usize {
        match self.lookup_form() {
            LookupForm::Sorted(sorted) => {
                let before = |bound: EntryKey<'_>| sorted.lower_bound(bound.key, bound.id);
                before(to).saturating_sub(before(from))
            }
            LookupForm::Unsorted(unsorted) => unsorted.buffer.count(from, to),
        }
    }

    /// Returns the entries for a lookup that works on sorted and unsorted entries. Counts the
    /// lookup.
    fn lookup_form(&self) -> LookupForm<'_> {
        match &self.entries {
            PartEntries::Sorted(sorted) => LookupForm::Sorted(sorted),
            PartEntries::Unsorted(unsorted) => match unsorted.sorted.get() {
                Some(sorted) => LookupForm::Sorted(sorted),
                None if unsorted.is_read_often() => LookupForm::Sorted(unsorted.sorted()),
                None => LookupForm::Unsorted(unsorted),
            },
        }
    }

    /// Returns the counts of the marks, whose keys begin with `first`.
    pub fn marks(&self, first: u8) -> &Marks {
        self.marks.get_or_init(|| {
            let mut marks = Marks::default();
            let mut count = |entry: Entry<'_>| marks.count(entry.key, entry.deleted);
            match self.known_order() {
                Some(sorted) => {
                    let entries = sorted.buffer().entries();
                    let begins = |entry: &Entry<'_>| entry.key.first() <= Some(&first);
                    let of_first = |entry: &Entry<'_>| entry.key.first() == Some(&first);
                    entries.take_while(begins).filter(of_first).for_each(count);
                }
                None => self.buffer().with_first_byte(first).for_each(&mut count),
            }
            marks
        })
    }
}

impl UnsortedEntries {
    fn sorted(&self) -> &Arc<SortedBuffer> {
        self.sorted
            .get_or_init(|| Arc::new(SortedBuffer::from_buffer(&self.buffer)))
    }

    fn is_read_often(&self) -> bool {
        self.lookups.fetch_add(1, Ordering::Relaxed) >= LOOKUPS_MAX
    }

    /// Finds the entries of this key by fingerprints.
    fn find_key(&self, key: &[u8]) -> Option<Arc<SortedBuffer>> {
        let fingerprints = self
            .fingerprints
            .get_or_init(|| self.buffer.fingerprints().collect());
        let key_fingerprint = fingerprint(key);
        let has_key = |number: &u32| {
            let entry = self.buffer.get(*number as usize);
            entry.is_some_and(|entry| same_key(entry.key, key))
        };
        let mut found: Vec<u32> = Vec::new();
        // Most groups do not have the fingerprint. Comparing them as a whole is vectorized.
        for (group, first) in fingerprints
            .chunks(FINGERPRINTS_COMPARED)
            .zip((0..).step_by(FINGERPRINTS_COMPARED))
        {
            if group.contains(&key_fingerprint) {
                let numbers = (first..).zip(group);
                let numbers = numbers.filter(|(_, one)| **one == key_fingerprint);
                found.extend(numbers.map(|(number, _)| number).filter(has_key));
            }
        }
        match found.len() {
            0 => None,
            // A copy at each lookup would cost more than sorting.
            many if many > self.buffer.len() / COPIED_FRACTION + COPIED_MIN => {
                Some(self.sorted().clone())
            }
            _ => Some(Arc::new(SortedBuffer::from_buffer(
                &self.buffer.pick(found.into_iter()),
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EntryBufferBuilder;

    /// Creates entries with keys of several lengths, most of which repeat. Positions begin at
    /// `first`.
    fn buffer(first: u64, entries: u64) -> EntryBuffer {
        let mut builder = EntryBufferBuilder::new(Position(first), 0);
        for number in 0..entries {
            let key = key(number * 7919 % (entries / 2 + 1));
            builder.add(Entry {
                key: &key,
                id: RecordId(number),
                position: Position(first + number),
                deleted: number % 5 == 0,
                payload: b"",
            });
        }
        builder.finish()
    }

    fn key(number: u64) -> Vec<u8> {
        let text = format!("{number}-{}", "beyond the head".repeat(number as usize % 3));
        text.into_bytes()
    }

    fn is_unsorted(part: &TailPart) -> bool {
        part.known_order().is_none()
    }

    fn all(sorted: &SortedBuffer, wanted: &[u8]) -> Vec<(RecordId, Position, bool)> {
        (0..sorted.len())
            .filter_map(|number| sorted.get(number))
            .filter(|entry| entry.key == wanted)
            .map(|entry| (entry.id, entry.position, entry.deleted))
            .collect()
    }

    #[test]
    fn lookups_agree_on_sorted_and_unsorted_parts() {
        let part = TailPart::from(buffer(1, 1_000));
        let known_order = TailPart::from(SortedBuffer::from_buffer(&buffer(1, 1_000)));
        for number in (0..LOOKUPS_MAX as u64 - 3).chain([499, 501, 70_000]) {
            let key = key(number);
            assert!(is_unsorted(&part), "{number}");
            let found = part.buffer_with_key(&key).map(|sorted| all(&sorted, &key));
            assert_eq!(found.is_some(), known_order.buffer_with_key(&key).is_some());
            assert_eq!(found.unwrap_or_default(), all(known_order.sorted(), &key));
        }
    }

    #[test]
    fn postings_are_cached_if_all_entries_are_visible() {
        let mut payload = Vec::new();
        windrow_postings::Posting {
            frequency: 1,
            length: 1,
            score: None,
            positions: &[0],
        }
        .write(&mut payload);
        let mut builder = EntryBufferBuilder::new(Position(1), 0);
        for number in 0..6_000 {
            builder.add(Entry {
                key: &key(number % 60),
                id: RecordId(number),
                position: Position(1 + number),
                deleted: false,
                payload: &payload,
            });
        }
        let part = TailPart::from(builder.finish());
        let open = |snapshot| part.postings(&key(7), Position(snapshot)).unwrap().unwrap();
        assert!(Arc::ptr_eq(&open(6_000), &open(9_000)));
        assert!(!Arc::ptr_eq(&open(5_999), &open(5_999)));
        assert_eq!(open(5_999).group(0).unwrap().len(), 100);
        assert_eq!(open(3_000).group(0).unwrap().len(), 50);
        assert!(part.postings(&key(60), Position(6_000)).unwrap().is_none());
    }

    #[test]
    fn counts_agree_on_sorted_and_unsorted_parts() {
        let part = TailPart::from(buffer(1, 1_000));
        let known_order = TailPart::from(SortedBuffer::from_buffer(&buffer(1, 1_000)));
        let (short, long) = (key(3), key(71));
        let places: [EntryKey<'_>; 7] = [
            EntryKey::first_of(b""),
            EntryKey::first_of(b"2"),
            EntryKey::first_of(&short),
            EntryKey::new(&short, RecordId(700)),
            EntryKey::first_of(&long),
            EntryKey::new(&long, RecordId::MAX),
            EntryKey::first_of(b"\xFF"),
        ];
        assert_eq!(part.count(places[0], places[6]), 1_000);
        for from in places {
            for to in places {
                assert!(is_unsorted(&part));
                assert_eq!(
                    part.count(from, to),
                    known_order.count(from, to),
                    "{from:?} {to:?}"
                );
            }
        }
    }

    #[test]
    fn parts_are_sorted_if_read_often_or_in_order_or_large() {
        let part = TailPart::from(buffer(1, 100));
        for _ in 0..=LOOKUPS_MAX {
            assert!(part.buffer_with_key(b"none").is_none());
        }
        assert!(!is_unsorted(&part));
        let part = TailPart::from(buffer(1, 100));
        assert_eq!(part.sorted().len(), 100);
        assert!(!is_unsorted(&part));
        let mut part = Arc::new(part);
        TailPart::shed(&mut part);
        assert!(matches!(part.entries, PartEntries::Sorted(_)));
        assert_eq!(part.len(), 100);
        assert!(!is_unsorted(&TailPart::from(buffer(
            1,
            UNSORTED_MAX as u64 + 1
        ))));
        assert!(!is_unsorted(&TailPart::from(buffer(1, 1))));
    }

    #[test]
    fn joined_parts_have_the_entries_and_marks_of_all() {
        let parts = [1, 101, 201].map(|first| Arc::new(TailPart::from(buffer(first, 100))));
        let marks = |part: &TailPart| part.marks(b'7').clone();
        for are_counted in [false, true] {
            if are_counted {
                parts.iter().for_each(|part| drop(marks(part)));
            }
            let joined = TailPart::join(&parts);
            assert!(is_unsorted(&joined));
            assert_eq!(joined.len(), 300);
            assert_eq!(joined.newest_position(), Position(300));
            let bytes: usize = parts.iter().map(|part| part.bytes()).sum();
            assert_eq!(joined.bytes(), bytes);
            assert_eq!(
                marks(&joined),
                marks(&TailPart::from(SortedBuffer::from_buffer(joined.buffer())))
            );
            assert!(marks(&joined).iter().any(|mark| mark.key == key(7)));
        }
        parts[1].sorted();
        assert!(!is_unsorted(&TailPart::join(&parts)));
    }
}
