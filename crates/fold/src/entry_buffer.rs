//! Entries in memory, in the order in which they came.
//!
//! A slot of 48 bytes holds what most entries are, with a key of up to 20 bytes: a UUID, a few numbers. Longer keys
//! and payloads stand in arenas that are shared and never moved, so sorting and merging move slots
//! alone, and a document in a log record is an entry without being copied.

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
use slot_key::SlotKey;

/// An entry: a key longer than its beginning here stands at `offset` of the arena, the payload right behind.
/// Behind a long key of a payload that is shared stand its arena, counted from this one, and its
/// offset there, u32 LE each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BufferSlot {
    pub(crate) key: SlotKey,
    pub(crate) id: RecordId,
    /// Relative to the buffer's base position.
    position: u32,
    arena: u32,
    offset: u32,
    key_length: u32,
    /// The top bit says "deleted", the next one that the payload is not where the key is.
    payload_length: u32,
}

impl BufferSlot {
    /// How many bytes of the key stand in the arena: all or none.
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
/// Arena and offset.
const REFERENCE_BYTES: u32 = 8;
/// What a processor fetches from memory at once.
const LINE_BYTES: usize = 64;
/// Behind so many lines the processor goes on by itself.
const LINES_PREFETCHED: usize = 4;

/// Entries, immutable. Cheap to read from many threads.
#[derive(Debug)]
pub struct EntryBuffer {
    slots: Vec<BufferSlot>,
    arenas: Arc<[Bytes]>,
    base: Position,
    /// The newest position among the entries.
    newest: Position,
    /// Bytes of keys and payloads, and of the slots.
    bytes: usize,
}

impl EntryBuffer {
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Memory held, in bytes, without shared buffers.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

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

    /// The entry of that number.
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

    /// The keys of all entries.
    pub fn keys(&self) -> impl Iterator<Item = &[u8]> {
        self.slots.iter().map(|slot| self.key(slot))
    }

    /// The first bytes of an entry's key: see [`KeyHead::number`].
    #[inline]
    pub fn head(&self, number: usize) -> u128 {
        self.slots[number].key.head()
    }

    /// The payload of an entry as a shared view.
    pub fn payload(&self, number: usize) -> Bytes {
        let slot = &self.slots[number];
        let (arena, start) = self.payload_place(slot);
        self.arenas[arena].slice(start..start + slot.payload_bytes() as usize)
    }

    /// In which arena a payload stands, and where.
    fn payload_place(&self, slot: &BufferSlot) -> (usize, usize) {
        let own = (
            slot.arena as usize,
            (slot.offset + slot.key_bytes_in_arena()) as usize,
        );
        if slot.payload_length & ELSEWHERE == 0 {
            return own;
        }
        let reference = self.arena_bytes(slot, slot.key_length, REFERENCE_BYTES);
        let [arena, start] = [0, 1].map(|place| reference.as_chunks().0[place]);
        let number = |bytes| u32::from_le_bytes(bytes) as usize;
        (own.0 + number(arena), number(start))
    }

    /// Fetches the keys of these entries from memory together, as far as they do not stand in their slots:
    /// for who goes through entries whose keys stand in another order than they do.
    pub(crate) fn prefetch_keys(&self, numbers: Range<usize>) {
        let slots = self.slots_of(numbers);
        let long = slots.iter().filter(|slot| slot.key_bytes_in_arena() > 0);
        prefetch::load(long.filter_map(|slot| self.arena_bytes(slot, 0, 1).first().copied()));
    }

    /// The same with payloads, of entries whose keys were fetched: the first [`LINES_PREFETCHED`] lines of each.
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
        // What is to be fetched may lie behind the last entry.
        self.slots.get(numbers.start..end).unwrap_or_default()
    }

    pub fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        self.slots.iter().map(|slot| self.entry(slot))
    }

    /// The entries whose keys begin with this byte.
    pub fn with_first_byte(&self, first: u8) -> impl Iterator<Item = Entry<'_>> {
        let begins =
            move |slot: &BufferSlot| slot.key.key(1) == Some(&[first]) && slot.key_length > 0;
        let slots = self.slots.iter().filter(move |slot| begins(slot));
        slots.map(|slot| self.entry(slot))
    }

    /// Of each entry's key: see [`fingerprint`].
    pub(crate) fn fingerprints(&self) -> impl ExactSizeIterator<Item = u32> {
        self.slots.iter().map(|slot| self.fingerprint_of(slot))
    }

    fn fingerprint_of(&self, slot: &BufferSlot) -> u32 {
        match slot.key_bytes_in_arena() {
            0 => slot.key.fingerprint(slot.key_length as usize),
            _ => filter::hash(self.key(slot)) as u32,
        }
    }

    /// All entries of several buffers.
    pub fn join<'p>(buffers: impl Iterator<Item = &'p EntryBuffer> + Clone) -> EntryBuffer {
        // No buffers have no entries.
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
            "entries of position {newest} are joined with those of {base}"
        );
        EntryBuffer {
            slots,
            arenas: arenas.into(),
            base,
            newest,
            bytes,
        }
    }

    /// The entries of these numbers.
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

    /// How many entries lie between two places, the first included, the second not.
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

    pub fn is_in_order(&self) -> bool {
        let in_order =
            |one: &BufferSlot, other: &BufferSlot| self.compare_slots(one, other).is_le();
        self.slots.is_sorted_by(in_order)
    }

    /// The same entries in order. None where they are in order as they stand.
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

    /// Returns the numbers of the entries in order, or `None` if they are in order as they stand.
    fn numbers_in_order(&self) -> Option<impl ExactSizeIterator<Item = u32>> {
        let order = KeySort {
            entries: &self.slots,
            head: |slot: &BufferSlot| slot.key.head(),
            key: |slot| self.key(slot),
            compare: |a: &BufferSlot, b: &BufferSlot| self.compare_slots(a, b),
        };
        order.numbers()
    }

    /// The newest version of an entry comes first.
    fn compare_slots(&self, a: &BufferSlot, b: &BufferSlot) -> Ordering {
        let keys = self.compare_slot_keys(a, b);
        keys.then_with(|| self.compare_slots_of_key(a, b))
    }

    fn compare_slot_keys(&self, a: &BufferSlot, b: &BufferSlot) -> Ordering {
        let heads = a.key.head().cmp(&b.key.head());
        heads.then_with(|| compare_keys(self.key(a), self.key(b)))
    }

    /// Compares entries with the same key.
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
        let (arena, start) = self.payload_place(slot);
        &self.arenas[arena][start..start + slot.payload_bytes() as usize]
    }
}

impl Drop for EntryBuffer {
    fn drop(&mut self) {
        recycled_slots::give(std::mem::take(&mut self.slots));
    }
}

/// A number that tells most keys apart, of a short one made in two steps.
pub(crate) fn fingerprint(key: &[u8]) -> u32 {
    match key.len() > SlotKey::BYTES {
        true => filter::hash(key) as u32,
        false => SlotKey::new(key).fingerprint(key.len()),
    }
}

/// Where a payload stands: in a buffer that [`EntryBufferBuilder::share`] took in.
#[derive(Clone, Copy, Debug)]
pub struct SharedPayload {
    pub arena: u32,
    pub offset: u32,
    pub length: u32,
}

/// Collects entries in any order.
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
    /// `base`: no entry is from before this position, nor 2^32 or more after it. `entries`: about
    /// how many are expected.
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

    /// Memory taken so far, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds an entry; key and payload are copied.
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

    /// Takes part in a buffer whose bytes [`add_shared`](Self::add_shared) refers to.
    pub fn share(&mut self, buffer: Bytes) -> u32 {
        self.shared.push(buffer);
        self.shared.len() as u32
    }

    /// Adds an entry whose payload stands in a shared buffer; only the key is copied.
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

    /// Where the next key or payload goes.
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
            "an entry of position {position} comes to those from position {} on",
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

    pub fn finish(self) -> EntryBuffer {
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
