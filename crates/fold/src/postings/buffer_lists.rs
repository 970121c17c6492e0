//! The decoded postings of a key in a buffer of a tail, and those that a buffer keeps.
//!
//! A search reads a list several times: for its size, for its score bound and for the records. It
//! decodes the entries once. The next searches for the same word find long lists decoded, as long as
//! the buffer is a part of the tail.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use windrow_postings::GROUP;
use windrow_storage::Position;

use super::rows::DecodedRows;
use crate::entry::RecordId;
use crate::sorted_buffer::SortedBuffer;

/// The postings of one key, in groups of about [`GROUP`] rows. No group is empty.
#[derive(Debug)]
pub struct BufferList {
    groups: Vec<Arc<DecodedRows>>,
}

/// The lists that a buffer keeps, by key.
#[derive(Debug, Default)]
pub struct KeptLists(Mutex<Lists>);

#[derive(Debug, Default)]
struct Lists {
    by_key: HashMap<Box<[u8]>, Arc<BufferList>>,
    /// The memory of the lists and keys.
    bytes: usize,
}

/// Shorter lists are decoded again each time.
const ENTRIES_KEPT_MIN: usize = 32;
/// The lists take at most this fraction of the memory of the buffer.
const KEPT_FRACTION: usize = 8;

impl BufferList {
    /// Returns the postings of a key that are visible at a snapshot: those that the buffer keeps, or
    /// newly decoded ones, which it then keeps. Returns `None` if a payload is not a posting.
    pub fn open(buffer: &SortedBuffer, key: &[u8], snapshot: Position) -> Option<Arc<BufferList>> {
        // All entries are visible, and one list serves all these snapshots.
        let is_constant = snapshot >= buffer.buffer().newest_position();
        if is_constant && let Some(kept) = buffer.kept_lists.get(key) {
            return Some(kept);
        }
        let numbers =
            buffer.lower_bound(key, RecordId::MIN)..buffer.upper_bound(key, RecordId::MAX);
        let is_long = numbers.len() >= ENTRIES_KEPT_MIN;
        let list = Arc::new(BufferList::decode(buffer, numbers, snapshot)?);
        if is_constant && is_long {
            let bytes_max = buffer.buffer().bytes() / KEPT_FRACTION;
            buffer.kept_lists.keep(key, &list, bytes_max);
        }
        Some(list)
    }

    fn decode(
        buffer: &SortedBuffer,
        numbers: std::ops::Range<usize>,
        snapshot: Position,
    ) -> Option<BufferList> {
        let mut groups = Vec::with_capacity(numbers.len().div_ceil(GROUP));
        let mut start = numbers.start;
        while start < numbers.end {
            let mut next = (start + GROUP).min(numbers.end);
            // Versions of one record are decoded together.
            if next < numbers.end {
                next = buffer.skip_versions(next - 1).min(numbers.end);
            }
            let rows = DecodedRows::from_buffer(buffer, start..next, snapshot)?;
            if !rows.is_empty() {
                groups.push(Arc::new(rows));
            }
            start = next;
        }
        Some(BufferList { groups })
    }

    /// Returns a group by its number.
    pub fn group(&self, number: usize) -> Option<&Arc<DecodedRows>> {
        self.groups.get(number)
    }

    /// Returns the number of the first group from `from` on that may have this id or a greater one.
    pub fn seek(&self, id: RecordId, from: usize) -> usize {
        let groups = self.groups.get(from..).unwrap_or(&[]);
        from + groups.partition_point(|group| group.last_id() < Some(id))
    }

    fn bytes(&self) -> usize {
        self.groups.iter().map(|group| group.bytes()).sum()
    }
}

impl KeptLists {
    fn get(&self, key: &[u8]) -> Option<Arc<BufferList>> {
        self.0.lock().by_key.get(key).cloned()
    }

    /// Keeps a list. If that were more than `bytes_max`, the others are dropped first.
    fn keep(&self, key: &[u8], list: &Arc<BufferList>, bytes_max: usize) {
        let bytes = list.bytes() + key.len();
        if bytes > bytes_max {
            return;
        }
        let mut lists = self.0.lock();
        if lists.bytes + bytes > bytes_max {
            *lists = Lists::default();
        }
        if lists.by_key.insert(key.into(), list.clone()).is_none() {
            lists.bytes += bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EntryBufferBuilder;
    use crate::entry::Entry;
    use windrow_postings::Posting;

    const NEWEST: Position = Position(2_000);

    /// Creates 1,000 postings of each key, of which every tenth has a newer deletion.
    fn buffer(keys: &[&[u8]]) -> SortedBuffer {
        let mut payload = Vec::new();
        let posting = Posting {
            frequency: 2,
            length: 9,
            score: None,
            positions: &[1, 3],
        };
        posting.write(&mut payload);
        let mut builder = EntryBufferBuilder::new(Position(1), 0);
        for key in keys {
            for id in 0..1_000 {
                let entry = |position, deleted, payload| Entry {
                    key,
                    id: RecordId(id),
                    position: Position(position),
                    deleted,
                    payload,
                };
                builder.add(entry(1 + id, false, payload.as_slice()));
                if id % 10 == 0 {
                    builder.add(entry(NEWEST.0, true, &[]));
                }
            }
        }
        SortedBuffer::from_buffer(&builder.finish())
    }

    fn counts(list: &BufferList) -> (usize, usize) {
        let groups = list.groups.iter();
        let all = groups.clone().map(|group| group.len()).sum::<usize>();
        (all, groups.map(|group| group.deletions()).sum())
    }

    #[test]
    fn lists_are_decoded_at_their_snapshot_and_kept_where_all_is_visible() {
        let others: Vec<[u8; 1]> = (b'b'..b'z').map(|key| [key]).collect();
        let keys = others.iter().map(|key| &key[..]).chain([&b"a"[..]]);
        let buffer = buffer(&keys.collect::<Vec<_>>());
        let newest = BufferList::open(&buffer, b"a", NEWEST).unwrap();
        assert_eq!(counts(&newest), (1_000, 100));
        let older = BufferList::open(&buffer, b"a", Position(500)).unwrap();
        assert_eq!(counts(&older), (500, 0));
        let again = BufferList::open(&buffer, b"a", Position(3_000)).unwrap();
        assert!(Arc::ptr_eq(&newest, &again));
        assert_eq!(
            counts(&BufferList::open(&buffer, b"b", NEWEST).unwrap()),
            (1_000, 100)
        );
        assert_eq!(
            counts(&BufferList::open(&buffer, b"z", NEWEST).unwrap()),
            (0, 0)
        );
    }

    #[test]
    fn groups_are_found_by_their_last_id() {
        let buffer = buffer(&[b"a"]);
        let list = BufferList::open(&buffer, b"a", NEWEST).unwrap();
        for id in 0..1_001 {
            let found = list.group(list.seek(RecordId(id), 0));
            let found = found.map(|group| group.id(group.seek(RecordId(id), 0)));
            assert_eq!(found, (id < 1_000).then_some(Some(RecordId(id))), "{id}");
        }
    }

    #[test]
    fn kept_lists_take_a_part_of_the_memory() {
        let keys: Vec<Vec<u8>> = (0..40).map(|number| vec![b'a', number]).collect();
        let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        let buffer = buffer(&keys);
        let bytes_max = buffer.buffer().bytes() / KEPT_FRACTION;
        for key in &keys {
            let list = BufferList::open(&buffer, key, NEWEST).unwrap();
            let kept = buffer.kept_lists.0.lock();
            assert!(
                kept.by_key
                    .get(*key)
                    .is_some_and(|it| Arc::ptr_eq(it, &list))
            );
            let sum: usize = kept
                .by_key
                .iter()
                .map(|(key, it)| key.len() + it.bytes())
                .sum();
            assert_eq!(kept.bytes, sum);
            assert!(sum <= bytes_max && kept.by_key.len() < keys.len());
        }
        buffer.kept_lists.keep(
            b"huge",
            &BufferList::open(&buffer, keys[0], NEWEST).unwrap(),
            99,
        );
        assert!(buffer.kept_lists.get(b"huge").is_none());
    }
}
