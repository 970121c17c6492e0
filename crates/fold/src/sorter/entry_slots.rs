//! Entries that are sorted one by one.
//!
//! An entry with a key of at most 16 bytes and a payload of at most 8 bytes fits into a slot of 32
//! bytes. Sorting moves slots, and writing reads them in order. A larger entry is in the arena.
//!
//! ```text
//! arena   key length varint | key | payload length varint | payload, for each larger entry
//! ```

use std::cmp::Ordering;

use windrow_storage::{Position, StorageError};

use super::ID_BITS;
use crate::entry::{Entry, KeyHead, RecordId, same_key};
use crate::key_sort::{self, KeySort};
use crate::prefetch;
use crate::radix::RadixSort;
use crate::section::SectionWriter;
use crate::varint;

/// Entries in any order. [`write`](Self::write) empties it for reuse.
#[derive(Debug, Default)]
pub struct EntrySlots {
    arena: Vec<u8>,
    slots: Vec<EntrySlot>,
    /// The number of entries in the arena.
    in_arena: usize,
}

struct EntryBytes<'s> {
    key: &'s [u8],
    payload: &'s [u8],
}

#[derive(Clone, Copy, Debug)]
struct EntrySlot {
    head: KeyHead,
    /// The record id (40 bits), the length of the key (16 bits, all ones for an entry in the
    /// arena), and the length of the payload (8 bits).
    id_and_lengths: u64,
    /// The payload, or the offset of the entry in the arena.
    payload: [u8; 8],
}

/// The length of a key that marks an entry in the arena.
const IN_ARENA: u64 = 0xFFFF;
/// The number of entries that are prefetched together.
const PREFETCHED: usize = 64;

impl EntrySlot {
    fn id(&self) -> RecordId {
        RecordId(self.id_and_lengths & ((1 << ID_BITS) - 1))
    }

    fn key_length(&self) -> u64 {
        self.id_and_lengths >> ID_BITS & 0xFFFF
    }

    fn is_in_arena(&self) -> bool {
        self.key_length() == IN_ARENA
    }

    /// Returns the offset of the entry in the arena, if it is there.
    fn offset(&self) -> usize {
        u64::from_le_bytes(self.payload) as usize
    }

    fn payload_length(&self) -> usize {
        (self.id_and_lengths >> 56) as usize
    }
}

impl EntrySlots {
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Returns the memory of the entries and of sorting them, in bytes.
    pub fn bytes(&self) -> usize {
        let sorting = self.in_arena * key_sort::ENTRY_BYTES;
        self.arena.len() + self.slots.len() * size_of::<EntrySlot>() + sorting
    }

    /// Adds an entry. Record ids have at most 40 bits.
    pub fn add(&mut self, key: &[u8], id: RecordId, payload: &[u8]) {
        let head = KeyHead::new(key);
        let fits = key.len() <= KeyHead::BYTES && payload.len() <= 8;
        let (key_length, payload_length, content) = if fits {
            let mut content = [0; 8];
            content
                .iter_mut()
                .zip(payload)
                .for_each(|(slot, byte)| *slot = *byte);
            (key.len() as u64, payload.len() as u64, content)
        } else {
            let offset = self.arena.len() as u64;
            varint::put(&mut self.arena, key.len() as u64);
            self.arena.extend_from_slice(key);
            varint::put(&mut self.arena, payload.len() as u64);
            self.arena.extend_from_slice(payload);
            self.in_arena += 1;
            (IN_ARENA, 0, offset.to_le_bytes())
        };
        let id_and_lengths = id.0 | key_length << ID_BITS | payload_length << 56;
        self.slots.push(EntrySlot {
            head,
            id_and_lengths,
            payload: content,
        });
    }

    fn entry<'a>(&'a self, slot: &'a EntrySlot) -> Entry<'a> {
        let id = slot.id();
        let length = slot.key_length();
        let EntryBytes { key, payload } = if slot.is_in_arena() {
            let found = self.in_arena(slot);
            found.unwrap_or_else(|| not_in_arena(slot))
        } else {
            let key = slot.head.key(length as usize);
            EntryBytes {
                key: key.unwrap_or_else(|| not_in_arena(slot)),
                payload: &slot.payload[..slot.payload_length()],
            }
        };
        Entry {
            key,
            id,
            position: Position::ZERO,
            deleted: false,
            payload,
        }
    }

    /// Returns the bytes of an entry that is in the arena.
    fn in_arena(&self, slot: &EntrySlot) -> Option<EntryBytes<'_>> {
        let mut rest = self.arena.get(slot.offset()..)?;
        let length = varint::take(&mut rest)?;
        let key = varint::take_bytes(&mut rest, length)?;
        let length = varint::take(&mut rest)?;
        let payload = varint::take_bytes(&mut rest, length)?;
        Some(EntryBytes { key, payload })
    }

    fn sort(&mut self) {
        let mut slots = std::mem::take(&mut self.slots);
        let by_head = RadixSort {
            key: |slot: &EntrySlot| slot.head.number(),
            compare: |a: &EntrySlot, b: &EntrySlot| {
                let heads = a.head.number().cmp(&b.head.number());
                heads.then_with(|| self.compare_rest(a, b))
            },
            equal: |equal: &mut [EntrySlot]| self.sort_rest(equal),
        };
        by_head.sort(&mut slots);
        self.slots = slots;
    }

    /// Sorts slots with equal heads.
    fn sort_rest(&self, slots: &mut [EntrySlot]) {
        let compare = |a: &EntrySlot, b: &EntrySlot| self.compare_rest(a, b);
        if slots.iter().any(EntrySlot::is_in_arena) {
            return self.sort_long(slots);
        }
        let by_length_and_id = RadixSort {
            key: |slot: &EntrySlot| u128::from(slot.key_length() << ID_BITS | slot.id().0) << 64,
            compare,
            equal: |equal: &mut [EntrySlot]| equal.sort_unstable_by(compare),
        };
        by_length_and_id.sort(slots);
    }

    /// Sorts slots with equal heads, some of them of longer keys.
    fn sort_long(&self, slots: &mut [EntrySlot]) {
        let order = KeySort {
            entries: slots,
            head: |slot: &EntrySlot| slot.head.number(),
            key: |slot| self.entry(slot).key,
            compare: |a: &EntrySlot, b: &EntrySlot| self.compare_rest(a, b),
        };
        let numbers: Option<Vec<u32>> = order.numbers().map(Iterator::collect);
        if let Some(numbers) = numbers {
            arrange(slots, numbers);
        }
    }

    /// Prefetches entries from the arena.
    fn touch(&self, slots: &[EntrySlot]) {
        let in_arena = slots.iter().filter(|slot| slot.is_in_arena());
        prefetch::load(in_arena.filter_map(|slot| self.arena.get(slot.offset()).copied()));
    }

    /// Compares slots with equal heads.
    fn compare_rest(&self, a: &EntrySlot, b: &EntrySlot) -> Ordering {
        if a.is_in_arena() || b.is_in_arena() {
            let (a, b) = (self.entry(a), self.entry(b));
            return a
                .entry_key()
                .cmp(&b.entry_key())
                .then(a.payload.cmp(b.payload));
        }
        a.key_length()
            .cmp(&b.key_length())
            .then(a.id().cmp(&b.id()))
            .then_with(|| self.entry(a).payload.cmp(self.entry(b).payload))
    }

    /// Sorts and writes the entries. Of entries with the same key and id, the one with the smallest
    /// payload is written. The slots are empty afterwards and keep their memory.
    pub fn write(&mut self, writer: &mut SectionWriter<'_>) -> Result<(), StorageError> {
        self.sort();
        let mut last: Option<Entry<'_>> = None;
        for slots in self.slots.chunks(PREFETCHED) {
            self.touch(slots);
            for slot in slots {
                let entry = self.entry(slot);
                let new_key = last.is_none_or(|last| !same_key(last.key, entry.key));
                if new_key || last.is_none_or(|last| last.id != entry.id) {
                    writer.push(&entry, new_key)?;
                }
                last = Some(entry);
            }
        }
        self.clear();
        Ok(())
    }

    /// Removes the entries and keeps the memory.
    pub fn clear(&mut self) {
        self.arena.clear();
        self.slots.clear();
        self.in_arena = 0;
    }
}

#[cold]
fn not_in_arena(slot: &EntrySlot) -> ! {
    panic!("the arena of a sorter lacks the entry of {slot:?}");
}

/// Moves the slots into the order of these numbers, in place.
#[allow(
    clippy::indexing_slicing,
    reason = "an order has every slot's number once"
)]
fn arrange(slots: &mut [EntrySlot], mut order: Vec<u32>) {
    for first in 0..order.len() {
        let displaced = slots[first];
        let mut at = first;
        loop {
            let from = std::mem::replace(&mut order[at], at as u32) as usize;
            if from == first {
                slots[at] = displaced;
                break;
            }
            slots[at] = slots[from];
            at = from;
        }
    }
}
