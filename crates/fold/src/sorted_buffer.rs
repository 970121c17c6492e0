//! Sorted entries in memory.

use std::cmp::Ordering;

use bytes::Bytes;
use windrow_storage::Position;

use crate::entry::{Entry, KeyHead, RecordId, compare_keys};
use crate::entry_buffer::{BufferSlot, EntryBuffer};

/// The number of interpolation steps before a binary search for an id.
const GUESSES: u32 = 4;

/// Immutable entries in order.
#[derive(Debug)]
pub struct SortedBuffer(EntryBuffer);

impl SortedBuffer {
    /// Sorts a copy of the entries.
    pub fn from_buffer(buffer: &EntryBuffer) -> SortedBuffer {
        let as_they_are = || buffer.pick(0..buffer.len() as u32);
        let ordered = buffer.in_order().unwrap_or_else(as_they_are);
        debug_assert_eq!(ordered.len(), buffer.len());
        SortedBuffer(ordered)
    }

    /// Sorts the entries in place.
    pub fn from_owned(buffer: EntryBuffer) -> SortedBuffer {
        SortedBuffer(buffer.into_order())
    }

    /// Wraps entries that are sorted already. Returns unsorted ones as the error.
    pub fn try_from_sorted(buffer: EntryBuffer) -> Result<SortedBuffer, EntryBuffer> {
        if buffer.is_in_order() {
            Ok(SortedBuffer(buffer))
        } else {
            Err(buffer)
        }
    }

    /// Wraps entries without a check, for tests of unsorted input.
    #[cfg(test)]
    pub(crate) fn unsorted(buffer: EntryBuffer) -> SortedBuffer {
        SortedBuffer(buffer)
    }

    /// Returns the entries as a buffer.
    pub fn buffer(&self) -> &EntryBuffer {
        &self.0
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns `true` if there are no entries.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the entry with this number in the order.
    #[inline]
    pub fn get(&self, number: usize) -> Option<Entry<'_>> {
        self.0.get(number)
    }

    /// Returns the head of an entry's key as a number, see [`KeyHead::number`].
    #[inline]
    pub fn head(&self, number: usize) -> u128 {
        self.0.head(number)
    }

    /// Returns the payload of an entry as a view of a shared buffer.
    pub fn payload(&self, number: usize) -> Bytes {
        self.0.payload(number)
    }

    /// Returns the number of the first entry at or after an entry key.
    pub fn lower_bound(&self, key: &[u8], id: RecordId) -> usize {
        self.bound(key, id, Ordering::Less)
    }

    /// Returns the number of the first entry after an entry key.
    pub fn upper_bound(&self, key: &[u8], id: RecordId) -> usize {
        self.bound(key, id, Ordering::Equal)
    }

    /// Compares the key of an entry with a key whose head is `head`.
    #[inline]
    fn compare_slot(&self, slot: &BufferSlot, head: u128, key: &[u8]) -> Ordering {
        let heads = slot.key.head().cmp(&head);
        heads.then_with(|| compare_keys(self.0.key(slot), key))
    }

    /// Returns the number of the first entry after `number` that is not a version of the same
    /// entry.
    pub fn skip_versions(&self, number: usize) -> usize {
        self.gallop(number, |_| true)
    }

    /// Returns the number of the first entry after `number` that is visible at the snapshot or not
    /// a version of the same entry.
    pub fn skip_newer(&self, number: usize, snapshot: Position) -> usize {
        self.gallop(number, |slot| self.0.position(slot) > snapshot)
    }

    /// Returns the number of the newest version of the entry at `number`.
    pub fn first_version(&self, number: usize) -> usize {
        let slots = self.0.slots();
        let slot = &slots[number];
        let (mut step, mut known) = (1, number);
        while let Some(other) = known.checked_sub(step).and_then(|it| slots.get(it)) {
            if !self.is_same_place(slot, other) {
                break;
            }
            (known, step) = (known - step, 2 * step);
        }
        let from = known.saturating_sub(step);
        let between = &slots[from..known];
        from + between.partition_point(|other| !self.is_same_place(slot, other))
    }

    #[inline]
    fn is_same_place(&self, one: &BufferSlot, other: &BufferSlot) -> bool {
        let is_same = || self.compare_slot(one, other.key.head(), self.0.key(other));
        one.id == other.id && is_same().is_eq()
    }

    /// Returns the number of the first entry after `number` that is not a version of the same entry
    /// or for which `holds` is false. `holds` must be true for a prefix of the versions. The search
    /// doubles its steps: most entries have few versions, and some have thousands.
    fn gallop(&self, number: usize, holds: impl Fn(&BufferSlot) -> bool) -> usize {
        let slots = self.0.slots();
        let slot = &slots[number];
        let should_continue = |other: &BufferSlot| self.is_same_place(slot, other) && holds(other);
        let (mut step, mut known) = (1, number);
        while slots.get(known + step).is_some_and(should_continue) {
            (known, step) = (known + step, 2 * step);
        }
        let end = (known + step).min(slots.len());
        let between = &slots[known + 1..end];
        known + 1 + between.partition_point(should_continue)
    }

    fn bound(&self, key: &[u8], id: RecordId, before: Ordering) -> usize {
        let head = KeyHead::new(key).number();
        let order = |slot: &BufferSlot| {
            let keys = self.compare_slot(slot, head, key);
            keys.then(slot.id.cmp(&id))
        };
        let (Some(first), Some(last)) = (self.0.slots().first(), self.0.slots().last()) else {
            return 0;
        };
        // Many buffers cover a narrow range of ids, above all those of documents.
        if order(last) <= before {
            return self.0.slots().len();
        }
        if order(first) > before {
            return 0;
        }
        let (mut low, mut high) = (0, self.0.slots().len() - 1);
        if self
            .compare_slot(first, last.key.head(), self.0.key(last))
            .is_eq()
        {
            (low, high) = self.near_id(id, |slot| order(slot) <= before);
        }
        let between = &self.0.slots()[low + 1..high];
        low + 1 + between.partition_point(|slot| order(slot) <= before)
    }

    /// Narrows a search for an id by interpolation, in a buffer with one key such as that of
    /// documents by record. Returns the numbers of two entries between which the bound is.
    /// `is_before` must be true for the first entry and false for the last.
    fn near_id(&self, id: RecordId, is_before: impl Fn(&BufferSlot) -> bool) -> (usize, usize) {
        let (mut low, mut high) = (0, self.0.slots().len().saturating_sub(1));
        let id_of = |number: usize| self.0.slots()[number].id.0;
        for _ in 0..GUESSES {
            if high - low < 2 {
                break;
            }
            let (from, to) = (id_of(low), id_of(high));
            let (offset, width) = (id.0.saturating_sub(from), to.saturating_sub(from).max(1));
            let slots = u128::from(offset) * (high - low) as u128 / u128::from(width);
            let guess = (low + slots as usize).clamp(low + 1, high - 1);
            if is_before(&self.0.slots()[guess]) {
                low = guess
            } else {
                high = guess
            }
        }
        (low, high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry_buffer::{EntryBufferBuilder, SharedPayload};

    fn put(key: &[u8], id: u64, position: u64) -> Entry<'_> {
        Entry {
            key,
            id: RecordId(id),
            position: Position(position),
            deleted: false,
            payload: b"p",
        }
    }

    fn sorted(entries: &[Entry<'_>]) -> SortedBuffer {
        let mut builder = EntryBufferBuilder::new(Position(5), 0);
        entries.iter().for_each(|entry| builder.add(*entry));
        SortedBuffer::from_buffer(&builder.finish())
    }

    fn all(sorted: &SortedBuffer) -> Vec<(Vec<u8>, RecordId, Position)> {
        (0..sorted.len())
            .map(|number| sorted.get(number).unwrap())
            .map(|entry| (entry.key.to_vec(), entry.id, entry.position))
            .collect()
    }

    #[test]
    fn entries_are_ordered_by_key_id_and_newest_position() {
        let keys: Vec<Vec<u8>> = (0..500u32)
            .map(|n| format!("common{}", n * 7919 % 83).into_bytes())
            .collect();
        let entries: Vec<Entry<'_>> = keys
            .iter()
            .enumerate()
            .map(|(n, key)| put(key, n as u64 % 5, 5 + n as u64))
            .collect();
        let mut expected: Vec<_> = entries
            .iter()
            .map(|entry| (entry.key.to_vec(), entry.id, entry.position))
            .collect();
        expected.sort_by(|a, b| (&a.0, a.1, b.2).cmp(&(&b.0, b.1, a.2)));
        assert_eq!(all(&sorted(&entries)), expected);
        let parts = [&entries[..123], &entries[123..300], &entries[300..]];
        let [one, two, three] = parts.map(sorted);
        for sorted_buffers in [[&one, &two, &three], [&three, &one, &two]] {
            let joined = EntryBuffer::join(sorted_buffers.into_iter().map(SortedBuffer::buffer));
            assert_eq!(all(&SortedBuffer::from_buffer(&joined)), expected);
        }
    }

    #[test]
    fn bounds_are_found() {
        let sorted = sorted(&[
            put(b"a", 1, 5),
            put(b"b", 1, 5),
            put(b"b", 3, 5),
            put(b"c", 1, 5),
        ]);
        let cases: [(&[u8], u64, usize); 6] = [
            (b"", 0, 0),
            (b"a", 2, 1),
            (b"b", 1, 1),
            (b"b", 2, 2),
            (b"bb", 0, 3),
            (b"d", 0, 4),
        ];
        for (key, id, expected) in cases {
            assert_eq!(sorted.lower_bound(key, RecordId(id)), expected);
        }
    }

    /// Ids without gaps, with even and uneven gaps, and with few and many versions.
    #[test]
    fn bounds_are_found_among_the_ids_of_one_key() {
        let uneven = |n: u64| n * n * n + n % 3;
        let ids: [Vec<u64>; 6] = [
            vec![7],
            vec![7, 7, 7],
            (100..1100).collect(),
            (0..500).map(|n| n * 17).collect(),
            (0..300).map(uneven).collect(),
            (0..300).map(|n| n / 4).chain([u64::MAX]).collect(),
        ];
        for ids in ids {
            let positions = (5..).zip(&ids);
            let entries: Vec<_> = positions.map(|(at, id)| put(b"", *id, at)).collect();
            let sorted = sorted(&entries);
            let near = ids
                .iter()
                .flat_map(|id| [id.saturating_sub(1), *id, id.saturating_add(1)]);
            for id in near {
                let below = ids.iter().filter(|one| **one < id).count();
                let up_to = ids.iter().filter(|one| **one <= id).count();
                let bound = RecordId(id);
                assert_eq!(sorted.lower_bound(b"", bound), below, "{id} in {ids:?}");
                assert_eq!(sorted.upper_bound(b"", bound), up_to, "{id} in {ids:?}");
                assert_eq!(sorted.lower_bound(b"a", bound), ids.len());
            }
        }
    }

    #[test]
    fn versions_are_skipped() {
        let counts = [1usize, 2, 3, 7, 1, 40, 5, 300, 1];
        let key = |place: usize| format!("a key longer than its head, {}", place / 2).into_bytes();
        let mut builder = EntryBufferBuilder::new(Position(5), 0);
        for (place, count) in counts.iter().enumerate() {
            let key = key(place);
            (0..*count as u64).for_each(|n| builder.add(put(&key, place as u64 % 2, 10 + 2 * n)));
        }
        let sorted = SortedBuffer::from_buffer(&builder.finish());
        let mut first = 0;
        for count in counts {
            for number in first..first + count {
                assert_eq!(sorted.skip_versions(number), first + count);
                assert_eq!(sorted.first_version(number), first);
                for snapshot in [0, 9, 10, 11, 14, 15, 60, 600, 1000].map(Position) {
                    let is_newer = |at: &usize| sorted.get(*at).unwrap().position > snapshot;
                    let seen = (number + 1..first + count).find(|at| !is_newer(at));
                    let expected = seen.unwrap_or(first + count);
                    assert_eq!(sorted.skip_newer(number, snapshot), expected);
                }
            }
            first += count;
        }
        assert_eq!(first, sorted.len());
    }

    #[test]
    fn payloads_belong_to_keys_of_all_lengths() {
        let buffer = Bytes::from_static(b"0123456789");
        let key = |length: usize| vec![b'k'; length];
        let mut builder = EntryBufferBuilder::new(Position(1), 0);
        let arena = builder.share(buffer.clone());
        for length in (0..30).rev() {
            let (offset, payload) = (length as u32 % 7, [length as u8]);
            let shared = SharedPayload {
                arena,
                offset,
                length: 3,
            };
            builder.add_shared(&key(length), RecordId(1), Position(2), shared);
            let own = Entry {
                payload: &payload,
                ..put(&[], 2, 2)
            };
            let key = key(length);
            builder.add(Entry { key: &key, ..own });
        }
        let sorted = SortedBuffer::from_buffer(&builder.finish());
        for number in 0..sorted.len() {
            let (entry, length) = (sorted.get(number).unwrap(), number / 2);
            assert_eq!(entry.key, key(length));
            let offset = length % 7;
            let expected = match entry.id.0 {
                1 => buffer[offset..offset + 3].to_vec(),
                _ => vec![length as u8],
            };
            assert_eq!(entry.payload, expected, "{length}");
        }
    }

    #[test]
    fn shared_payloads_are_not_copied() {
        let buffer = Bytes::from_static(b"0123456789");
        let shared_buffer = |position: u64, keys: [&[u8]; 3]| {
            let mut builder = EntryBufferBuilder::new(Position(1), 0);
            builder.add(put(b"a long key with an own payload", 1, position));
            let arena = builder.share(buffer.clone());
            for (key, offset) in keys.into_iter().zip([4, 1, 0]) {
                let length = 3;
                let payload = SharedPayload {
                    arena,
                    offset,
                    length,
                };
                builder.add_shared(key, RecordId(9), Position(position), payload);
            }
            builder.finish()
        };
        let one = shared_buffer(2, [b"", b"short", b"longer than sixteen bytes"]);
        let other = shared_buffer(3, [b"b", b"t", b"longer than sixteen bytes, too"]);
        let merged = SortedBuffer::from_buffer(&EntryBuffer::join([&one, &other].into_iter()));
        let found: Vec<(Vec<u8>, Vec<u8>)> = (0..merged.len())
            .map(|number| {
                let entry = merged.get(number).unwrap();
                assert_eq!(merged.payload(number), entry.payload);
                (entry.key.to_vec(), entry.payload.to_vec())
            })
            .collect();
        let expected: [(&[u8], &[u8]); 8] = [
            (b"", b"456"),
            (b"a long key with an own payload", b"p"),
            (b"a long key with an own payload", b"p"),
            (b"b", b"456"),
            (b"longer than sixteen bytes", b"012"),
            (b"longer than sixteen bytes, too", b"012"),
            (b"short", b"123"),
            (b"t", b"123"),
        ];
        let expected = expected.map(|(key, payload)| (key.to_vec(), payload.to_vec()));
        assert_eq!(found, expected);
    }
}
