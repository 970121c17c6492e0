//! A sorted stretch of entries in memory.
//!
//! A slot of 48 bytes holds what most entries are, with the first 16 bytes of the key. Longer keys
//! and payloads stand in arenas that are shared and never moved, so sorting and merging move slots
//! alone, and a document in a log record is an entry without being copied.

mod spare;

use std::cmp::Ordering;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use crate::entry::{Entry, KeyHead, compare_keys};
use crate::marks::Marks;
use crate::order::Order;

/// An entry: a key longer than its head stands at `offset` of the arena, the payload right behind.
/// Behind a long key of a payload that is shared stand its arena, counted from this one, and its
/// offset there, u32 LE each.
#[derive(Clone, Copy, Debug)]
struct Slot {
    head: KeyHead,
    id: u64,
    /// Relative to the chunk's base position.
    position: u32,
    arena: u32,
    offset: u32,
    key_length: u32,
    /// The top bit says "deleted", the next one that the payload is not where the key is.
    payload_length: u32,
}

/// So often it is guessed where an id stands, before it is searched for.
const GUESSES: u32 = 4;

impl Slot {
    /// How many bytes of the key stand in the arena: all or none.
    fn key_bytes_in_arena(&self) -> u32 {
        if self.key_length as usize > KeyHead::BYTES {
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

/// Entries in order, immutable. Cheap to read from many threads.
#[derive(Debug)]
pub struct Chunk {
    slots: Vec<Slot>,
    arenas: Vec<Bytes>,
    base: u64,
    /// The newest position among the entries.
    newest: u64,
    /// Bytes of keys and payloads, and of the slots.
    bytes: usize,
    /// Counted when they are asked for first.
    marks: OnceLock<Marks>,
}

impl Chunk {
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

    pub fn newest_position(&self) -> u64 {
        self.newest
    }

    /// Its marks, whose keys begin with this byte.
    pub fn marks(&self, first: u8) -> &Marks {
        self.marks.get_or_init(|| {
            let mut marks = Marks::default();
            let entries = (0..self.len()).map_while(|number| self.get(number));
            for entry in entries.take_while(|entry| entry.key.first() == Some(&first)) {
                marks.note(entry.key, entry.deleted);
            }
            marks
        })
    }

    fn arena_bytes(&self, slot: &Slot, from: u32, length: u32) -> &[u8] {
        let start = (slot.offset + from) as usize;
        let arena = self.arenas.get(slot.arena as usize);
        arena
            .and_then(|arena| arena.get(start..start + length as usize))
            .unwrap_or_default()
    }

    #[inline]
    fn key<'a>(&'a self, slot: &'a Slot) -> &'a [u8] {
        match slot.head.key(slot.key_length as usize) {
            Some(key) => key,
            None => self.arena_bytes(slot, 0, slot.key_length),
        }
    }

    /// The entry of that number in order.
    #[inline]
    pub fn get(&self, number: usize) -> Option<Entry<'_>> {
        let slot = self.slots.get(number)?;
        let payload = match slot.payload_bytes() {
            0 => &[],
            _ if slot.payload_length & ELSEWHERE != 0 => self.payload_of(slot),
            length => self.arena_bytes(slot, slot.key_bytes_in_arena(), length),
        };
        Some(Entry {
            key: self.key(slot),
            id: slot.id,
            position: self.base + u64::from(slot.position),
            deleted: slot.payload_length & DELETED != 0,
            payload,
        })
    }

    /// The keys of all entries, in order.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &[u8]> {
        self.slots.iter().map(|slot| self.key(slot))
    }

    /// The first bytes of an entry's key as a number.
    #[inline]
    pub fn prefix(&self, number: usize) -> u64 {
        self.slots.get(number).map_or(0, |slot| slot.head.prefix())
    }

    /// The payload of an entry as a shared view.
    pub fn payload(&self, number: usize) -> Bytes {
        let Some(slot) = self.slots.get(number) else {
            return Bytes::new();
        };
        let (arena, start) = self.payload_place(slot);
        let end = start + slot.payload_bytes() as usize;
        let arena = self.arenas.get(arena);
        arena.map_or_else(Bytes::new, |arena| arena.slice(start..end))
    }

    /// In which arena a payload stands, and where.
    fn payload_place(&self, slot: &Slot) -> (usize, usize) {
        let own = (
            slot.arena as usize,
            (slot.offset + slot.key_bytes_in_arena()) as usize,
        );
        if slot.payload_length & ELSEWHERE == 0 {
            return own;
        }
        let reference = self.arena_bytes(slot, slot.key_length, REFERENCE_BYTES);
        let number = |bytes: &[u8; 4]| u32::from_le_bytes(*bytes) as usize;
        match (reference.first_chunk(), reference.last_chunk()) {
            (Some(arena), Some(start)) => (own.0 + number(arena), number(start)),
            _ => own,
        }
    }

    /// The number of the first entry at or after a place.
    pub fn lower_bound(&self, key: &[u8], id: u64) -> usize {
        self.bound(key, id, Ordering::Less)
    }

    /// The number of the first entry after a place.
    pub fn upper_bound(&self, key: &[u8], id: u64) -> usize {
        self.bound(key, id, Ordering::Equal)
    }

    /// Orders an entry's key and a key with this head.
    #[inline]
    fn compare_slot(&self, slot: &Slot, head: u128, key: &[u8]) -> Ordering {
        let heads = slot.head.number().cmp(&head);
        heads.then_with(|| compare_keys(self.key(slot), key))
    }

    fn bound(&self, key: &[u8], id: u64, before: Ordering) -> usize {
        let head = KeyHead::of(key).number();
        let order = |slot: &Slot| {
            let keys = self.compare_slot(slot, head, key);
            keys.then(slot.id.cmp(&id))
        };
        let (Some(first), Some(last)) = (self.slots.first(), self.slots.last()) else {
            return 0;
        };
        // Many chunks hold a narrow range, of documents above all.
        if order(last) <= before {
            return self.slots.len();
        }
        if order(first) > before {
            return 0;
        }
        let (mut low, mut high) = (0, self.slots.len() - 1);
        if self
            .compare_slot(first, last.head.number(), self.key(last))
            .is_eq()
        {
            (low, high) = self.near_id(id, |slot| order(slot) <= before);
        }
        let between = self.slots.get(low + 1..high).unwrap_or_default();
        low + 1 + between.partition_point(|slot| order(slot) <= before)
    }

    /// In a chunk of one key, as documents by record have it, ids tell about where to look: the numbers of
    /// two entries between which the bound is. `is_before`: of the first entry, not of the last.
    fn near_id(&self, id: u64, is_before: impl Fn(&Slot) -> bool) -> (usize, usize) {
        let (mut low, mut high) = (0, self.slots.len().saturating_sub(1));
        let id_of = |number: usize| self.slots.get(number).map_or(0, |slot| slot.id);
        for _ in 0..GUESSES {
            if high - low < 2 {
                break;
            }
            let (from, to) = (id_of(low), id_of(high));
            let (gone, all) = (id.saturating_sub(from), to.saturating_sub(from).max(1));
            let share = u128::from(gone) * (high - low) as u128 / u128::from(all);
            let guess = (low + share as usize).clamp(low + 1, high - 1);
            match self.slots.get(guess).is_some_and(&is_before) {
                true => low = guess,
                false => high = guess,
            }
        }
        (low, high)
    }

    /// Chunks as one. Of equal places and positions all stay.
    pub fn merge(chunks: &[Arc<Chunk>]) -> Chunk {
        let base = chunks.iter().map(|chunk| chunk.base).min();
        let count = chunks.iter().map(|chunk| chunk.len()).sum();
        let mut merged = Chunk {
            slots: spare::take(count),
            arenas: Vec::new(),
            base: base.unwrap_or_default(),
            newest: 0,
            bytes: 0,
            marks: OnceLock::new(),
        };
        for chunk in chunks {
            let later = (chunk.base - merged.base) as u32;
            let shift = merged.arenas.len() as u32;
            merged.slots.extend(chunk.slots.iter().map(|slot| Slot {
                position: later + slot.position,
                arena: shift + slot.arena,
                ..*slot
            }));
            merged.arenas.extend(chunk.arenas.iter().cloned());
            merged.newest = merged.newest.max(chunk.newest);
            merged.bytes += chunk.bytes;
        }
        merged.sort();
        merged
    }

    fn sort(&mut self) {
        let order = Order {
            entries: &self.slots,
            head: |slot: &Slot| slot.head.number(),
            key: |slot| self.key(slot),
            compare: |a: &Slot, b: &Slot| self.compare_slots(a, b),
        };
        let Some(numbers) = order.numbers() else {
            return;
        };
        let mut slots = spare::take(self.slots.len());
        slots.extend(numbers.filter_map(|number| self.slots.get(number as usize)));
        spare::give(std::mem::replace(&mut self.slots, slots));
    }

    /// The newest version of an entry comes first.
    fn compare_slots(&self, a: &Slot, b: &Slot) -> Ordering {
        let heads = a.head.number().cmp(&b.head.number());
        let keys = heads.then_with(|| compare_keys(self.key(a), self.key(b)));
        let places = keys.then(a.id.cmp(&b.id)).then(b.position.cmp(&a.position));
        places.then_with(|| self.payload_of(a).cmp(self.payload_of(b)))
    }

    fn payload_of(&self, slot: &Slot) -> &[u8] {
        let (arena, start) = self.payload_place(slot);
        let arena = self.arenas.get(arena);
        let found = arena.and_then(|arena| arena.get(start..start + slot.payload_bytes() as usize));
        found.unwrap_or_default()
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        spare::give(std::mem::take(&mut self.slots));
    }
}

/// Where a payload stands: in a buffer that [`ChunkBuilder::share`] took in.
#[derive(Clone, Copy, Debug)]
pub struct SharedPayload {
    pub arena: u32,
    pub offset: u32,
    pub length: u32,
}

/// Collects entries in any order; [`finish`](Self::finish) sorts them.
#[derive(Debug)]
pub struct ChunkBuilder {
    slots: Vec<Slot>,
    arena: Vec<u8>,
    shared: Vec<Bytes>,
    base: u64,
    newest: u64,
    bytes: usize,
}

impl ChunkBuilder {
    /// `base`: no entry is from before this position, nor 2^32 or more after it. `entries`: about
    /// how many are expected.
    pub fn new(base: u64, entries: usize) -> ChunkBuilder {
        ChunkBuilder {
            slots: spare::take(entries),
            arena: Vec::new(),
            shared: Vec::new(),
            base,
            newest: base,
            bytes: 0,
        }
    }

    pub fn len(&self) -> usize {
        self.slots.len()
    }

    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Memory taken so far, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether the arena has no room for much more: an arena is addressed with 32 bits.
    pub fn is_full(&self) -> bool {
        self.arena.len() > 3 << 30
    }

    /// Adds an entry; key and payload are copied.
    #[inline]
    pub fn add(&mut self, entry: Entry<'_>) {
        let offset = self.arena.len() as u32;
        if entry.key.len() > KeyHead::BYTES {
            self.arena.extend_from_slice(entry.key);
        }
        self.arena.extend_from_slice(entry.payload);
        let deleted = if entry.deleted { DELETED } else { 0 };
        let slot = Slot {
            head: KeyHead::of(entry.key),
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
    pub fn add_shared(&mut self, key: &[u8], id: u64, position: u64, payload: SharedPayload) {
        let mut slot = Slot {
            head: KeyHead::of(key),
            id,
            position: 0,
            arena: payload.arena,
            offset: payload.offset,
            key_length: key.len() as u32,
            payload_length: payload.length,
        };
        if key.len() > KeyHead::BYTES {
            (slot.arena, slot.offset) = (0, self.arena.len() as u32);
            slot.payload_length |= ELSEWHERE;
            self.arena.extend_from_slice(key);
            self.arena.extend_from_slice(&payload.arena.to_le_bytes());
            self.arena.extend_from_slice(&payload.offset.to_le_bytes());
        }
        self.push(position, slot);
    }

    fn push(&mut self, position: u64, mut slot: Slot) {
        slot.position = (position - self.base) as u32;
        self.newest = self.newest.max(position);
        let payload = match slot.payload_length & ELSEWHERE {
            0 if slot.arena == 0 => slot.payload_bytes(),
            0 => 0,
            _ => REFERENCE_BYTES,
        };
        self.bytes += (slot.key_bytes_in_arena() + payload) as usize + size_of::<Slot>();
        self.slots.push(slot);
    }

    /// Sorts and hands out the chunk.
    pub fn finish(self) -> Chunk {
        let own = Bytes::from(self.arena);
        let mut chunk = Chunk {
            slots: self.slots,
            arenas: std::iter::once(own).chain(self.shared).collect(),
            base: self.base,
            newest: self.newest,
            bytes: self.bytes,
            marks: OnceLock::new(),
        };
        chunk.sort();
        chunk
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(key: &[u8], id: u64, position: u64) -> Entry<'_> {
        Entry {
            key,
            id,
            position,
            deleted: false,
            payload: b"p",
        }
    }

    fn chunk(entries: &[Entry<'_>]) -> Chunk {
        let mut builder = ChunkBuilder::new(5, 0);
        entries.iter().for_each(|entry| builder.add(*entry));
        builder.finish()
    }

    fn all(chunk: &Chunk) -> Vec<(Vec<u8>, u64, u64)> {
        (0..chunk.len())
            .map(|number| chunk.get(number).unwrap())
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
        assert_eq!(all(&chunk(&entries)), expected);
        let parts = [&entries[..123], &entries[123..300], &entries[300..]];
        let [one, two, three] = parts.map(|part| Arc::new(chunk(part)));
        assert_eq!(all(&Chunk::merge(&[one.clone(), two.clone()])).len(), 300);
        for chunks in [[&one, &two, &three], [&three, &one, &two]] {
            assert_eq!(all(&Chunk::merge(&chunks.map(Arc::clone))), expected);
        }
    }

    #[test]
    fn bounds_are_found() {
        let chunk = chunk(&[
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
            assert_eq!(chunk.lower_bound(key, id), expected);
        }
    }

    /// Ids without gaps, with even and uneven ones, with versions, few and many.
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
            let chunk = chunk(&entries);
            let near = ids
                .iter()
                .flat_map(|id| [id.saturating_sub(1), *id, id.saturating_add(1)]);
            for id in near {
                let below = ids.iter().filter(|one| **one < id).count();
                let up_to = ids.iter().filter(|one| **one <= id).count();
                assert_eq!(chunk.lower_bound(b"", id), below, "{id} in {ids:?}");
                assert_eq!(chunk.upper_bound(b"", id), up_to, "{id} in {ids:?}");
                assert_eq!(chunk.lower_bound(b"a", id), ids.len());
            }
        }
    }

    #[test]
    fn shared_payloads_are_not_copied() {
        let buffer = Bytes::from_static(b"0123456789");
        let chunk_of = |position: u64, keys: [&[u8]; 3]| {
            let mut builder = ChunkBuilder::new(1, 0);
            builder.add(put(b"a long key with an own payload", 1, position));
            let arena = builder.share(buffer.clone());
            for (key, offset) in keys.into_iter().zip([4, 1, 0]) {
                let length = 3;
                let payload = SharedPayload {
                    arena,
                    offset,
                    length,
                };
                builder.add_shared(key, 9, position, payload);
            }
            builder.finish()
        };
        let one = chunk_of(2, [b"", b"short", b"longer than sixteen bytes"]);
        let other = chunk_of(3, [b"b", b"t", b"longer than sixteen bytes, too"]);
        let merged = Chunk::merge(&[Arc::new(one), Arc::new(other)]);
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
