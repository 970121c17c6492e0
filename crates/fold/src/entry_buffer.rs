//! Entries in memory in order of arrival.
//!
//! A slot of 48 bytes holds an entry with a key of up to 20 bytes, such as a UUID or a few numbers.
//! Longer keys and payloads are in shared arenas, which are never moved. Sorting and merging
//! therefore move slots only, and a document in a log record becomes an entry without a copy.

mod arrange;
mod key_groups;
mod recycled_slots;
mod slot_key;

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use windrow_storage::Position;

use crate::entry::{Entry, EntryKey, KeyHead, RecordId, compare_keys, same_key};
use crate::filter;
use crate::key_sort::KeySort;
use crate::prefetch;
use arrange::arrange;
use slot_key::SlotKey;

/// One entry. A key that does not fit into the slot is at `offset` of the arena, followed by the
/// payload. If the payload is in another arena, the key is followed by the number of that arena,
/// counted from this one, and the offset there, both u32 LE.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BufferSlot {
    pub(crate) key: SlotKey,
    pub(crate) id: RecordId,
    /// Relative to the base position of the buffer.
    position: u32,
    arena: u32,
    offset: u32,
    key_length: u32,
    /// The top bit marks a tombstone. The next bit says that the payload is in another arena.
    payload_length: u32,
}

impl BufferSlot {
    /// Returns the number of key bytes in the arena: all or none.
    fn key_bytes_in_arena(&self) -> u32 {
        if self.key_length as usize > SlotKey::BYTES {
            self.key_length
        } else {
            0
        }
    }

    fn payload_bytes(&self) -> u32 {
        self.payload_length & !(DELETED | ELSEWHERE)
    }
}

const DELETED: u32 = 1 << 31;
const ELSEWHERE: u32 = 1 << 30;
/// The size of an arena number and an offset.
const REFERENCE_BYTES: u32 = 8;
/// The size of a line of the processor's caches.
const LINE_BYTES: usize = 64;
/// The processor prefetches further lines by itself.
const LINES_PREFETCHED: usize = 4;

/// Immutable entries in order of arrival, or sorted. Cheap to read from many threads.
#[derive(Debug)]
pub struct EntryBuffer {
    slots: Vec<BufferSlot>,
    arenas: Arc<[Bytes]>,
    base: Position,
    /// The newest position of the entries.
    newest: Position,
    /// The bytes of the slots, keys and payloads.
    bytes: usize,
}

impl EntryBuffer {
    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Returns `true` if there are no entries.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Returns the memory of the entries, in bytes, without shared arenas.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the newest position of the entries.
    pub fn newest_position(&self) -> Position {
        self.newest
    }

    pub(crate) fn slots(&self) -> &[BufferSlot] {
        &self.slots
    }

    #[inline]
    pub(crate) fn position(&self, slot: &BufferSlot) -> Position {
        Position(self.base.0 + u64::from(slot.position))
    }

    fn arena_bytes(&self, slot: &BufferSlot, from: u32, length: u32) -> &[u8] {
        let start = (slot.offset + from) as usize;
        &self.arenas[slot.arena as usize][start..start + length as usize]
    }

    #[inline]
    pub(crate) fn key<'a>(&'a self, slot: &'a BufferSlot) -> &'a [u8] {
        match slot.key.key(slot.key_length as usize) {
            Some(key) => key,
            None => self.arena_bytes(slot, 0, slot.key_length),
        }
    }

    /// Returns the entry with this number.
    #[inline]
    pub fn get(&self, number: usize) -> Option<Entry<'_>> {
        self.slots.get(number).map(|slot| self.entry(slot))
    }

    #[inline]
    fn entry<'a>(&'a self, slot: &'a BufferSlot) -> Entry<'a> {
        let payload = match slot.payload_bytes() {
            0 => &[],
            _ if slot.payload_length & ELSEWHERE != 0 => self.payload_of(slot),
            length => self.arena_bytes(slot, slot.key_bytes_in_arena(), length),
        };
        Entry {
            key: self.key(slot),
            id: slot.id,
            position: self.position(slot),
            deleted: slot.payload_length & DELETED != 0,
            payload,
        }
    }

    /// Iterates over the keys of all entries.
    pub fn keys(&self) -> impl Iterator<Item = &[u8]> {
        self.slots.iter().map(|slot| self.key(slot))
    }

    /// Returns the head of an entry's key as a number, see [`KeyHead::number`].
    #[inline]
    pub fn head(&self, number: usize) -> u128 {
        self.slots[number].key.head()
    }

    /// Returns the payload of an entry as a view of its arena.
    pub fn payload(&self, number: usize) -> Bytes {
        let slot = &self.slots[number];
        let PayloadLocation { arena, offset } = self.payload_location(slot);
        self.arenas[arena].slice(offset..offset + slot.payload_bytes() as usize)
    }

    fn payload_location(&self, slot: &BufferSlot) -> PayloadLocation {
        let arena = slot.arena as usize;
        if slot.payload_length & ELSEWHERE == 0 {
            return PayloadLocation {
                arena,
                offset: (slot.offset + slot.key_bytes_in_arena()) as usize,
            };
        }
        let reference = self.arena_bytes(slot, slot.key_length, REFERENCE_BYTES);
        let [distance, offset] = [0, 1].map(|number| reference.as_chunks().0[number]);
        let number = |bytes| u32::from_le_bytes(bytes) as usize;
        PayloadLocation {
            arena: arena + number(distance),
            offset: number(offset),
        }
    }

    /// Prefetches the long keys of these entries. Sorted slots point to keys in order of arrival,
    /// so that each key is a cache miss.
    pub(crate) fn prefetch_keys(&self, numbers: Range<usize>) {
        let slots = self.slots_of(numbers);
        let long = slots.iter().filter(|slot| slot.key_bytes_in_arena() > 0);
        prefetch::load(long.filter_map(|slot| self.arena_bytes(slot, 0, 1).first().copied()));
    }

    /// Prefetches the first [`LINES_PREFETCHED`] lines of the payloads of these entries. Their keys
    /// must have been prefetched.
    pub(crate) fn prefetch_payloads(&self, numbers: Range<usize>) {
        let lines = |slot| {
            let bytes = self.payload_of(slot).iter();
            bytes.step_by(LINE_BYTES).take(LINES_PREFETCHED).copied()
        };
        let slots = self.slots_of(numbers).iter();
        prefetch::load(slots.flat_map(lines));
    }

    fn slots_of(&self, numbers: Range<usize>) -> &[BufferSlot] {
        let end = numbers.end.min(self.slots.len());
        // The range may extend past the last entry.
        self.slots.get(numbers.start..end).unwrap_or_default()
    }

    /// Iterates over the entries.
    pub fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        self.slots.iter().map(|slot| self.entry(slot))
    }

    /// Iterates over the entries whose keys begin with this byte.
    pub fn with_first_byte(&self, first: u8) -> impl Iterator<Item = Entry<'_>> {
        let begins =
            move |slot: &BufferSlot| slot.key.key(1) == Some(&[first]) && slot.key_length > 0;
        let slots = self.slots.iter().filter(move |slot| begins(slot));
        slots.map(|slot| self.entry(slot))
    }

    /// Iterates over the [fingerprints](fingerprint) of the keys.
    pub(crate) fn fingerprints(&self) -> impl ExactSizeIterator<Item = u32> {
        self.slots.iter().map(|slot| self.fingerprint_of(slot))
    }

    fn fingerprint_of(&self, slot: &BufferSlot) -> u32 {
        match slot.key_bytes_in_arena() {
            0 => slot.key.fingerprint(slot.key_length as usize),
            _ => filter::hash(self.key(slot)) as u32,
        }
    }

    /// Concatenates buffers. Slots are copied, arenas are shared.
    ///
    /// # Panics
    ///
    /// Panics if positions differ by 2^32 or more.
    pub fn join<'p>(buffers: impl Iterator<Item = &'p EntryBuffer> + Clone) -> EntryBuffer {
        // Without buffers there is no base position, and none is needed.
        let base = buffers.clone().map(|buffer| buffer.base).min();
        let base = base.unwrap_or_default();
        let mut slots = recycled_slots::take(buffers.clone().map(EntryBuffer::len).sum());
        let (mut arenas, mut newest, mut bytes) = (Vec::new(), Position::ZERO, 0);
        for buffer in buffers {
            let later = (buffer.base.0 - base.0) as u32;
            let shift = arenas.len() as u32;
            slots.extend(buffer.slots.iter().map(|slot| BufferSlot {
                position: later + slot.position,
                arena: shift + slot.arena,
                ..*slot
            }));
            arenas.extend(buffer.arenas.iter().cloned());
            newest = newest.max(buffer.newest);
            bytes += buffer.bytes;
        }
        assert!(
            newest.0 < base.0 + (1 << 32),
            "positions {base} and {newest} are too far apart for one buffer"
        );
        EntryBuffer {
            slots,
            arenas: arenas.into(),
            base,
            newest,
            bytes,
        }
    }

    /// Returns the entries with these numbers.
    pub fn pick(&self, numbers: impl ExactSizeIterator<Item = u32>) -> EntryBuffer {
        let mut slots = recycled_slots::take(numbers.len());
        slots.extend(numbers.map(|number| self.slots[number as usize]));
        EntryBuffer {
            bytes: slots.len() * size_of::<BufferSlot>(),
            slots,
            arenas: self.arenas.clone(),
            base: self.base,
            newest: self.newest,
        }
    }

    /// Counts the entries from `from` up to, but not including, `to`.
    pub fn count(&self, from: EntryKey<'_>, to: EntryKey<'_>) -> usize {
        let heads = [from, to].map(|bound| KeyHead::new(bound.key).number());
        let is_before = |slot: &BufferSlot, bound: EntryKey<'_>, head: u128| {
            let heads = slot.key.head().cmp(&head);
            let keys = heads.then_with(|| compare_keys(self.key(slot), bound.key));
            keys.then(slot.id.cmp(&bound.id)).is_lt()
        };
        let between =
            |slot: &&BufferSlot| !is_before(slot, from, heads[0]) && is_before(slot, to, heads[1]);
        self.slots.iter().filter(between).count()
    }

    /// Returns `true` if the entries are sorted.
    pub fn is_in_order(&self) -> bool {
        let in_order =
            |one: &BufferSlot, other: &BufferSlot| self.compare_slots(one, other).is_le();
        self.slots.is_sorted_by(in_order)
    }

    /// Returns the entries sorted, or `None` if they are sorted already.
    pub fn in_order(&self) -> Option<EntryBuffer> {
        if self.is_in_order() {
            return None;
        }
        let mut ordered = match key_groups::numbers_in_order(self) {
            Some(numbers) => self.pick(numbers.into_iter()),
            None => self.pick(self.numbers_in_order()?),
        };
        ordered.bytes = self.bytes;
        Some(ordered)
    }

    /// Sorts the entries in place. Takes less memory than [`in_order`](Self::in_order), and more
    /// time.
    pub fn into_order(mut self) -> EntryBuffer {
        if self.is_in_order() {
            return self;
        }
        let numbers: Option<Vec<u32>> = match key_groups::numbers_in_order(&self) {
            Some(numbers) => Some(numbers.into_iter().collect()),
            None => self.numbers_in_order().map(Iterator::collect),
        };
        if let Some(numbers) = numbers {
            arrange(&mut self.slots, numbers);
        }
        self
    }

    /// Returns the numbers of the entries in sorted order, or `None` if they are sorted already.
    fn numbers_in_order(&self) -> Option<impl ExactSizeIterator<Item = u32>> {
        let order = KeySort {
            entries: &self.slots,
            head: |slot: &BufferSlot| slot.key.head(),
            key: |slot| self.key(slot),
            compare: |a: &BufferSlot, b: &BufferSlot| self.compare_slots(a, b),
        };
        order.numbers()
    }

    /// Compares entries: by key and id, then the newest version first, then by payload.
    fn compare_slots(&self, a: &BufferSlot, b: &BufferSlot) -> Ordering {
        let keys = self.compare_slot_keys(a, b);
        keys.then_with(|| self.compare_slots_of_key(a, b))
    }

    fn compare_slot_keys(&self, a: &BufferSlot, b: &BufferSlot) -> Ordering {
        let heads = a.key.head().cmp(&b.key.head());
        heads.then_with(|| compare_keys(self.key(a), self.key(b)))
    }

    /// Compares entries that have the same key.
    fn compare_slots_of_key(&self, a: &BufferSlot, b: &BufferSlot) -> Ordering {
        let places = a.id.cmp(&b.id).then(b.position.cmp(&a.position));
        places.then_with(|| self.payload_of(a).cmp(self.payload_of(b)))
    }

    fn have_same_key(&self, a: &BufferSlot, b: &BufferSlot) -> bool {
        a.key_length == b.key_length
            && a.key.head() == b.key.head()
            && same_key(self.key(a), self.key(b))
    }

    fn payload_of(&self, slot: &BufferSlot) -> &[u8] {
        let PayloadLocation { arena, offset } = self.payload_location(slot);
        &self.arenas[arena][offset..offset + slot.payload_bytes() as usize]
    }
}

/// The location of a payload.
struct PayloadLocation {
    /// The index of the arena.
    arena: usize,
    /// The offset in the arena in bytes.
    offset: usize,
}

impl Drop for EntryBuffer {
    fn drop(&mut self) {
        recycled_slots::give(std::mem::take(&mut self.slots));
    }
}

/// Returns a hash of a key with 32 bits. Different keys seldom have the same.
pub(crate) fn fingerprint(key: &[u8]) -> u32 {
    if key.len() > SlotKey::BYTES {
        filter::hash(key) as u32
    } else {
        SlotKey::new(key).fingerprint(key.len())
    }
}

/// The location of a payload in an arena that [`EntryBufferBuilder::share`] added.
#[derive(Clone, Copy, Debug)]
pub struct SharedPayload {
    /// The number of the arena, as `share` returned it.
    pub arena: u32,
    /// The offset in the arena.
    pub offset: u32,
    /// The length of the payload, in bytes.
    pub length: u32,
}

/// Collects entries in any order into an [`EntryBuffer`].
#[derive(Debug)]
pub struct EntryBufferBuilder {
    slots: Vec<BufferSlot>,
    arena: Vec<u8>,
    shared: Vec<Bytes>,
    base: Position,
    newest: Position,
    bytes: usize,
}

impl EntryBufferBuilder {
    /// Creates a builder. Positions of entries must be at least `base` and less than `base` + 2^32.
    /// `entries` is the expected number of entries.
    pub fn new(base: Position, entries: usize) -> EntryBufferBuilder {
        EntryBufferBuilder {
            slots: recycled_slots::take(entries),
            arena: Vec::new(),
            shared: Vec::new(),
            base,
            newest: base,
            bytes: 0,
        }
    }

    /// Returns the memory of the entries so far, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds an entry. Key and payload are copied.
    ///
    /// # Panics
    ///
    /// Panics if the position is out of range, or if the keys and payloads exceed 4 GiB.
    #[inline]
    pub fn add(&mut self, entry: Entry<'_>) {
        let offset = self.arena_end();
        if entry.key.len() > SlotKey::BYTES {
            self.arena.extend_from_slice(entry.key);
        }
        self.arena.extend_from_slice(entry.payload);
        let deleted = if entry.deleted { DELETED } else { 0 };
        let slot = BufferSlot {
            key: SlotKey::new(entry.key),
            id: entry.id,
            position: 0,
            arena: 0,
            offset,
            key_length: entry.key.len() as u32,
            payload_length: entry.payload.len() as u32 | deleted,
        };
        self.push(entry.position, slot);
    }

    /// Adds an arena for payloads of [`add_shared`](Self::add_shared) and returns its number.
    pub fn share(&mut self, buffer: Bytes) -> u32 {
        self.shared.push(buffer);
        self.shared.len() as u32
    }

    /// Adds an entry whose payload is in a shared arena. Only the key is copied.
    pub fn add_shared(
        &mut self,
        key: &[u8],
        id: RecordId,
        position: Position,
        payload: SharedPayload,
    ) {
        let mut slot = BufferSlot {
            key: SlotKey::new(key),
            id,
            position: 0,
            arena: payload.arena,
            offset: payload.offset,
            key_length: key.len() as u32,
            payload_length: payload.length,
        };
        if key.len() > SlotKey::BYTES {
            (slot.arena, slot.offset) = (0, self.arena_end());
            slot.payload_length |= ELSEWHERE;
            self.arena.extend_from_slice(key);
            self.arena.extend_from_slice(&payload.arena.to_le_bytes());
            self.arena.extend_from_slice(&payload.offset.to_le_bytes());
        }
        self.push(position, slot);
    }

    /// Returns the offset at which the next key or payload begins.
    #[inline]
    fn arena_end(&self) -> u32 {
        let end = self.arena.len();
        assert!(end <= u32::MAX as usize, "an arena of {end} bytes");
        end as u32
    }

    fn push(&mut self, position: Position, mut slot: BufferSlot) {
        let later = position.0.wrapping_sub(self.base.0);
        assert!(
            later <= u64::from(u32::MAX),
            "position {position} is out of the range of a buffer that begins at {}",
            self.base
        );
        slot.position = later as u32;
        debug_assert!((slot.arena as usize) <= self.shared.len());
        self.newest = self.newest.max(position);
        let payload = match slot.payload_length & ELSEWHERE {
            0 if slot.arena == 0 => slot.payload_bytes(),
            0 => 0,
            _ => REFERENCE_BYTES,
        };
        self.bytes += (slot.key_bytes_in_arena() + payload) as usize + size_of::<BufferSlot>();
        self.slots.push(slot);
    }

    /// Finishes the buffer.
    pub fn finish(mut self) -> EntryBuffer {
        release_unused(&mut self.arena);
        release_unused(&mut self.slots);
        let own = Bytes::from(self.arena);
        EntryBuffer {
            slots: self.slots,
            arenas: std::iter::once(own).chain(self.shared).collect(),
            base: self.base,
            newest: self.newest,
            bytes: self.bytes,
        }
    }
}

/// Less unused memory than this is not worth a call of the allocator, in bytes.
const UNUSED_BYTES_MIN: usize = 64 << 10;

/// Shrinks a vector that has much unused memory. It grew by doubling, or more elements were
/// expected, and tails retain it.
fn release_unused<T>(elements: &mut Vec<T>) {
    let unused = elements.capacity() - elements.len();
    if unused * size_of::<T>() >= UNUSED_BYTES_MIN {
        elements.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_sorted_in_place_equal_sorted_copies() {
        let mut builder = EntryBufferBuilder::new(Position(1), 0);
        for number in 0..5_000u64 {
            let key = format!("a key of more than twenty bytes {}", number * 17 % 50);
            builder.add(Entry {
                key: if number % 3 == 0 {
                    b"short"
                } else {
                    key.as_bytes()
                },
                id: RecordId(number * 13 % 500),
                position: Position(1 + number),
                deleted: number % 11 == 0,
                payload: &number.to_le_bytes(),
            });
        }
        let buffer = builder.finish();
        let copy = buffer.in_order().unwrap();
        let sorted = buffer.into_order();
        assert!(sorted.is_in_order());
        assert_eq!(sorted.bytes(), copy.bytes());
        assert!(sorted.entries().eq(copy.entries()));
    }
}
