//! The decoded postings of a key in a part of a tail, and those that the part keeps.
//!
//! A search reads a list several times: for its size, for its score bound and for the records. It
//! decodes the entries once. The next searches for the same word find long lists decoded, as long
//! as the part belongs to the tail.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use windrow_postings::GROUP;
use windrow_storage::{Position, StorageError};

use super::rows::DecodedRows;
use crate::entry::RecordId;
use crate::sorted_buffer::SortedBuffer;

/// The postings of one key, in groups of about [`GROUP`] rows. No group is empty.
#[derive(Debug)]
pub struct BufferList {
    groups: Vec<Arc<DecodedRows>>,
}

/// A cache of the decoded lists of a part of a tail, by key.
#[derive(Debug, Default)]
pub struct ListCache(Mutex<Lists>);

#[derive(Debug, Default)]
struct Lists {
    by_key: HashMap<Box<[u8]>, Arc<BufferList>>,
    /// The memory of the lists and keys.
    bytes: usize,
}

/// Shorter lists are not cached.
const ROWS_CACHED_MIN: usize = 32;
/// The lists take at most this fraction of the memory of the entries.
const CACHE_FRACTION: usize = 8;

impl BufferList {
    /// Decodes the postings of a key that are visible at a snapshot. Fails if a payload is not a
    /// posting.
    pub fn decode(
        buffer: &SortedBuffer,
        key: &[u8],
        snapshot: Position,
    ) -> Result<BufferList, StorageError> {
        let end = buffer.upper_bound(key, RecordId::MAX);
        let mut start = buffer.lower_bound(key, RecordId::MIN);
        let mut groups = Vec::with_capacity((end - start).div_ceil(GROUP));
        while start < end {
            let mut next = (start + GROUP).min(end);
            // Versions of one record are decoded together.
            if next < end {
                next = buffer.skip_versions(next - 1).min(end);
            }
            let rows = DecodedRows::from_buffer(buffer, start..next, snapshot);
            let rows = rows.ok_or_else(no_posting)?;
            if !rows.is_empty() {
                groups.push(Arc::new(rows));
            }
            start = next;
        }
        Ok(BufferList { groups })
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

    fn rows(&self) -> usize {
        self.groups.iter().map(|group| group.len()).sum()
    }

    fn bytes(&self) -> usize {
        self.groups.iter().map(|group| group.bytes()).sum()
    }
}

/// The error of a payload in memory that is not a posting.
pub fn no_posting() -> StorageError {
    windrow_invariant::Bug::new("the payload of an entry in memory is not a posting").into()
}

impl ListCache {
    /// Returns the list of a key, if it is cached.
    pub fn get(&self, key: &[u8]) -> Option<Arc<BufferList>> {
        self.0.lock().by_key.get(key).cloned()
    }

    /// Caches a list if it is long. `entry_bytes` is the memory of the entries. If the lists would
    /// take too large a part of it, all others are dropped.
    pub fn insert(&self, key: &[u8], list: &Arc<BufferList>, entry_bytes: usize) {
        let bytes_max = entry_bytes / CACHE_FRACTION;
        let bytes = list.bytes() + key.len();
        if list.rows() < ROWS_CACHED_MIN || bytes > bytes_max {
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

    /// Creates 1,000 postings of a key, of which every tenth has a newer deletion.
    fn buffer(key: &[u8]) -> SortedBuffer {
        let mut payload = Vec::new();
        let posting = Posting {
            frequency: 2,
            length: 9,
            score: None,
            positions: &[1, 3],
        };
        posting.write(&mut payload);
        let mut builder = EntryBufferBuilder::new(Position(1), 0);
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
        SortedBuffer::from_buffer(&builder.finish())
    }

    fn decoded(key: &[u8], snapshot: Position) -> BufferList {
        BufferList::decode(&buffer(b"a"), key, snapshot).unwrap()
    }

    fn counts(list: &BufferList) -> (usize, usize) {
        let deletions = list.groups.iter().map(|group| group.deletions()).sum();
        (list.rows(), deletions)
    }

    #[test]
    fn lists_are_decoded_at_their_snapshot() {
        assert_eq!(counts(&decoded(b"a", NEWEST)), (1_000, 100));
        assert_eq!(counts(&decoded(b"a", Position(500))), (500, 0));
        assert_eq!(counts(&decoded(b"b", NEWEST)), (0, 0));
    }

    #[test]
    fn groups_are_found_by_their_last_id() {
        let list = decoded(b"a", NEWEST);
        for id in 0..1_001 {
            let found = list.group(list.seek(RecordId(id), 0));
            let found = found.map(|group| group.id(group.seek(RecordId(id), 0)));
            assert_eq!(found, (id < 1_000).then_some(Some(RecordId(id))), "{id}");
        }
    }

    #[test]
    fn cached_lists_take_a_part_of_the_memory() {
        let list = Arc::new(decoded(b"a", NEWEST));
        let entry_bytes = 10 * CACHE_FRACTION * list.bytes();
        let cache = ListCache::default();
        for number in 0..40 {
            let key = [number];
            cache.insert(&key, &list, entry_bytes);
            assert!(cache.get(&key).is_some_and(|it| Arc::ptr_eq(&it, &list)));
            let lists = cache.0.lock();
            let sum: usize = lists.by_key.values().map(|it| 1 + it.bytes()).sum();
            assert_eq!(lists.bytes, sum);
            assert!(sum <= entry_bytes / CACHE_FRACTION && lists.by_key.len() < 10);
        }
        cache.insert(b"large", &list, CACHE_FRACTION * list.bytes());
        assert!(cache.get(b"large").is_none());
        let short = Arc::new(decoded(b"a", Position(20)));
        cache.insert(b"short", &short, entry_bytes);
        assert!(cache.get(b"short").is_none());
    }
}
