//! Entries that are sorted one by one.
//!
//! An entry with a key of at most 16 bytes and a payload of at most 8 is 32 bytes and stands in one
//! place: sorting moves it, and writing reads it in order. A larger one has its key and payload in the
//! arena.
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
use crate::radix::Radix;
use crate::section::SectionWriter;
use crate::varint;

/// Entries in any order. Recycled by [`write`](Self::write).
#[derive(Debug, Default)]
pub struct Places {
    arena: Vec<u8>,
    places: Vec<Place>,
    /// How many of the entries stand in the arena.
    in_arena: usize,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    head: KeyHead,
    /// The record id, of 40 bits; the key's length, of 16, its largest value for one in the arena;
    /// the payload's length, of 8.
    id_and_lengths: u64,
    /// The payload, or where in the arena the entry stands.
    payload: [u8; 8],
}

/// A key's length that says "in the arena".
const IN_ARENA: u64 = 0xFFFF;
/// So many entries are touched before the first of them is read.
const TOUCHED: usize = 64;

impl Place {
    fn id(&self) -> RecordId {
        RecordId(self.id_and_lengths & ((1 << ID_BITS) - 1))
    }

    fn key_length(&self) -> u64 {
        self.id_and_lengths >> ID_BITS & 0xFFFF
    }

    fn is_in_arena(&self) -> bool {
        self.key_length() == IN_ARENA
    }

    /// Where in the arena the entry stands, if it does.
    fn offset(&self) -> usize {
        u64::from_le_bytes(self.payload) as usize
    }

    fn payload_length(&self) -> usize {
        (self.id_and_lengths >> 56) as usize
    }
}

impl Places {
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Bytes of memory that the entries take, and sorting them.
    pub fn bytes(&self) -> usize {
        let sorting = self.in_arena * key_sort::ENTRY_BYTES;
        self.arena.len() + self.places.len() * size_of::<Place>() + sorting
    }

    /// Adds an entry. Record ids have at most 40 bits.
    pub fn add(&mut self, key: &[u8], id: RecordId, payload: &[u8]) {
        let head = KeyHead::of(key);
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
        self.places.push(Place {
            head,
            id_and_lengths,
            payload: content,
        });
    }

    fn entry<'a>(&'a self, place: &'a Place) -> Entry<'a> {
        let id = place.id();
        let length = place.key_length();
        let (key, payload) = if place.is_in_arena() {
            let found = self.in_arena(place);
            found.unwrap_or_else(|| not_in_arena(place))
        } else {
            let key = place.head.key(length as usize);
            let key = key.unwrap_or_else(|| not_in_arena(place));
            (key, &place.payload[..place.payload_length()])
        };
        Entry {
            key,
            id,
            position: Position::ZERO,
            deleted: false,
            payload,
        }
    }

    fn in_arena(&self, place: &Place) -> Option<(&[u8], &[u8])> {
        let mut rest = self.arena.get(place.offset()..)?;
        let length = varint::take(&mut rest)?;
        let key = varint::take_bytes(&mut rest, length)?;
        let length = varint::take(&mut rest)?;
        Some((key, varint::take_bytes(&mut rest, length)?))
    }

    fn sort(&mut self) {
        let mut places = std::mem::take(&mut self.places);
        let by_head = Radix {
            key: |place: &Place| place.head.number(),
            compare: |a: &Place, b: &Place| {
                let heads = a.head.number().cmp(&b.head.number());
                heads.then_with(|| self.compare_rest(a, b))
            },
            equal: |equal: &mut [Place]| self.sort_rest(equal),
        };
        by_head.sort(&mut places);
        self.places = places;
    }

    /// Sorts places with equal heads.
    fn sort_rest(&self, places: &mut [Place]) {
        let compare = |a: &Place, b: &Place| self.compare_rest(a, b);
        if places.iter().any(Place::is_in_arena) {
            return self.sort_long(places);
        }
        let by_length_and_id = Radix {
            key: |place: &Place| u128::from(place.key_length() << ID_BITS | place.id().0) << 64,
            compare,
            equal: |equal: &mut [Place]| equal.sort_unstable_by(compare),
        };
        by_length_and_id.sort(places);
    }

    /// Sorts places with equal heads, some of them of longer keys.
    fn sort_long(&self, places: &mut [Place]) {
        let order = KeySort {
            entries: places,
            head: |place: &Place| place.head.number(),
            key: |place| self.entry(place).key,
            compare: |a: &Place, b: &Place| self.compare_rest(a, b),
        };
        let numbers: Option<Vec<u32>> = order.numbers().map(Iterator::collect);
        if let Some(numbers) = numbers {
            arrange(places, numbers);
        }
    }

    /// Fetches these entries from the arena.
    fn touch(&self, places: &[Place]) {
        let in_arena = places.iter().filter(|place| place.is_in_arena());
        prefetch::touch(in_arena.filter_map(|place| self.arena.get(place.offset()).copied()));
    }

    /// Orders places with equal heads.
    fn compare_rest(&self, a: &Place, b: &Place) -> Ordering {
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

    /// Sorts the entries and writes them; of equal places the one with the smallest payload. Forgets them
    /// and keeps the memory.
    pub fn write(&mut self, writer: &mut SectionWriter<'_>) -> Result<(), StorageError> {
        self.sort();
        let mut last: Option<Entry<'_>> = None;
        for places in self.places.chunks(TOUCHED) {
            self.touch(places);
            for place in places {
                let entry = self.entry(place);
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

    /// Forgets the entries and keeps the memory.
    pub fn clear(&mut self) {
        self.arena.clear();
        self.places.clear();
        self.in_arena = 0;
    }
}

#[cold]
fn not_in_arena(place: &Place) -> ! {
    panic!("an entry of a sorter stands nowhere: {place:?}");
}

/// Puts places where the order has their numbers.
#[allow(
    clippy::indexing_slicing,
    reason = "an order has every place's number once"
)]
fn arrange(places: &mut [Place], mut order: Vec<u32>) {
    for first in 0..order.len() {
        let displaced = places[first];
        let mut at = first;
        loop {
            let from = std::mem::replace(&mut order[at], at as u32) as usize;
            if from == first {
                places[at] = displaced;
                break;
            }
            places[at] = places[from];
            at = from;
        }
    }
}
