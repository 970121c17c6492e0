//! Entries that are grouped by key as they come: a hash table of keys, and a list of entries for each.
//!
//! ```text
//! list    buffer*, each twice as long as the one before, up to a limit
//! buffer   bytes of entries | the place of the next buffer u64 LE
//! entry   id varint, less the last one's, modulo 2^40 | payload length varint | payload
//! ```
//! An entry may begin in one buffer and end in the next.
//!
//! The lists of most keys are in no cache of the processor. So a batch of entries is collected first, and
//! the memory that they need is fetched for all of them at once.

use std::hash::{BuildHasher, Hasher};

use foldhash::fast::RandomState;
use windrow_storage::{Position, StorageError};

use super::ID_BITS;
use crate::entry::{Entry, KeyHead, RecordId, compare_keys};
use crate::key_sort::{self, KeySort};
use crate::prefetch;
use crate::section::SectionWriter;
use crate::varint;

/// The bytes of entries in the first buffer of a list.
const CHUNK_BYTES_MIN: usize = 16;
const CHUNK_BYTES_MAX: usize = 4 << 10;
/// The bytes of the place of the next buffer.
const LINK_BYTES: usize = 8;
const SLOTS_MIN: usize = 64;
const ID_MASK: u64 = (1 << ID_BITS) - 1;

/// Entries in lists. Recycled by [`write`](Self::write).
#[derive(Debug, Default)]
pub struct EntryLists {
    hasher: RandomState,
    /// Open addressing: the upper half of the key's hash, and the number of its list plus one in the lower
    /// half; 0 if the slot is free. The length is a power of two.
    slots: Vec<u64>,
    lists: Vec<KeyList>,
    /// The keys that are longer than a head.
    keys: Vec<u8>,
    buffers: Vec<u8>,
    batch: PendingBatch,
    /// An entry on its way into two buffers.
    added: Vec<u8>,
}

/// Entries that are not in lists yet.
#[derive(Debug, Default)]
struct PendingBatch {
    entries: Vec<PendingEntry>,
    /// The keys and payloads.
    bytes: Vec<u8>,
}

/// An entry of a batch: its key and payload are the next bytes.
#[derive(Clone, Copy, Debug)]
struct PendingEntry {
    hash: u64,
    id: RecordId,
    key_length: usize,
    payload_length: usize,
}

/// So many lists are fetched before the first of them is written.
const LISTS_PREFETCHED: usize = 32;
/// The entries of a batch.
const BATCH: usize = 64;
/// A batch with so many bytes is full, too.
const BATCH_BYTES: usize = 64 << 10;

/// A key and its entries. In one line of the processor's caches.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct KeyList {
    head: KeyHead,
    /// Where the key stands, if it is longer than the head.
    key_start: usize,
    key_length: u32,
    /// The bytes that are left in the last buffer.
    left: u16,
    /// Whether an id was not greater than the one before.
    is_unordered: bool,
    last_id: RecordId,
    first_chunk: usize,
    /// Where the next byte goes.
    end: usize,
    /// The bytes of entries in the last buffer.
    chunk_bytes: u16,
}

impl EntryLists {
    pub fn is_empty(&self) -> bool {
        self.lists.is_empty() && self.batch.entries.is_empty()
    }

    /// The number of different keys, without those of the last few entries.
    pub fn keys(&self) -> usize {
        self.lists.len()
    }

    /// Bytes of memory that the entries take, and sorting their keys.
    pub fn bytes(&self) -> usize {
        let lists = self.lists.len() * (size_of::<KeyList>() + key_sort::ENTRY_BYTES);
        let bytes = self.keys.len() + self.buffers.len() + self.batch.bytes.len();
        self.slots.len() * size_of::<u64>() + lists + bytes
    }

    /// Adds an entry. Record ids have at most 40 bits.
    pub fn add(&mut self, key: &[u8], id: RecordId, payload: &[u8]) {
        let hash = self.hash(key);
        let batch = &mut self.batch;
        batch.entries.push(PendingEntry {
            hash,
            id,
            key_length: key.len(),
            payload_length: payload.len(),
        });
        batch.bytes.extend_from_slice(key);
        batch.bytes.extend_from_slice(payload);
        if batch.entries.len() >= BATCH || batch.bytes.len() >= BATCH_BYTES {
            self.end_batch();
        }
    }

    /// Adds the entries of the batch to their lists.
    pub fn end_batch(&mut self) {
        while (self.lists.len() + self.batch.entries.len()) * 2 >= self.slots.len() {
            self.grow();
        }
        self.touch();
        let mut batch = std::mem::take(&mut self.batch);
        let mut rest = batch.bytes.as_slice();
        for pending in &batch.entries {
            let (key, behind) = rest.split_at(pending.key_length);
            let (payload, behind) = behind.split_at(pending.payload_length);
            rest = behind;
            let number = self.number(key, pending.hash);
            self.append(number, pending.id, payload);
        }
        batch.entries.clear();
        batch.bytes.clear();
        self.batch = batch;
    }

    /// Fetches the slots, the lists and the ends of the lists that the batch needs.
    fn touch(&self) {
        let mask = self.slots.len() - 1;
        let mut numbers = [0_u32; BATCH];
        for (number, pending) in numbers.iter_mut().zip(&self.batch.entries) {
            let mut at = pending.hash as usize & mask;
            while self.slots[at] != 0 && self.slots[at] >> 32 != pending.hash >> 32 {
                at = (at + 1) & mask;
            }
            *number = self.slots[at] as u32;
        }
        let mut ends = [0; BATCH];
        for (end, number) in ends.iter_mut().zip(numbers) {
            let list = self.lists.get((number as usize).wrapping_sub(1));
            *end = list.map_or(0, |list| list.end);
        }
        prefetch::load(
            ends.iter()
                .filter_map(|end| self.buffers.get(*end).copied()),
        );
    }

    fn append(&mut self, number: usize, id: RecordId, payload: &[u8]) {
        let list = &mut self.lists[number];
        let is_first = list.end == list.first_chunk;
        list.is_unordered |= id <= list.last_id && !is_first;
        let step = id.0.wrapping_sub(list.last_id.0) & ID_MASK;
        list.last_id = id;
        let head_length = varint::length(step) + varint::length(payload.len() as u64);
        let length = head_length + payload.len();
        if length > usize::from(list.left) {
            self.added.clear();
            varint::put(&mut self.added, step);
            varint::put(&mut self.added, payload.len() as u64);
            self.added.extend_from_slice(payload);
            return self.put_across(number);
        }
        let (head, content) = self.buffers[list.end..list.end + length].split_at_mut(head_length);
        let rest = varint::write(head, step);
        varint::write(rest, payload.len() as u64);
        content.copy_from_slice(payload);
        list.end += length;
        list.left -= length as u16;
    }

    /// Appends the added entry to a list whose last buffer has no room for it.
    #[cold]
    fn put_across(&mut self, number: usize) {
        let list = &mut self.lists[number];
        let mut rest = self.added.as_slice();
        while !rest.is_empty() {
            if list.left == 0 {
                let next = self.buffers.len();
                self.buffers[list.end..list.end + LINK_BYTES]
                    .copy_from_slice(&(next as u64).to_le_bytes());
                list.chunk_bytes = next_chunk_bytes(usize::from(list.chunk_bytes)) as u16;
                (list.end, list.left) = (next, list.chunk_bytes);
                let grown = next + usize::from(list.chunk_bytes) + LINK_BYTES;
                self.buffers.resize(grown, 0);
            }
            let length = rest.len().min(usize::from(list.left));
            let (part, behind) = rest.split_at(length);
            self.buffers[list.end..list.end + length].copy_from_slice(part);
            list.end += length;
            list.left -= length as u16;
            rest = behind;
        }
    }

    /// Returns the number of the list of a key. Begins one if the key is new.
    fn number(&mut self, key: &[u8], hash: u64) -> usize {
        let head = KeyHead::new(key);
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                break;
            }
            if slot >> 32 == hash >> 32 {
                let number = (slot as u32 - 1) as usize;
                if self.has_key(&self.lists[number], head, key) {
                    return number;
                }
            }
            at = (at + 1) & mask;
        }
        let number = self.lists.len();
        // A worker's share of the memory has room for far fewer.
        assert!(number < u32::MAX as usize, "{number} keys");
        self.slots[at] = hash >> 32 << 32 | (number as u64 + 1);
        self.begin(head, key);
        number
    }

    fn begin(&mut self, head: KeyHead, key: &[u8]) {
        let (key_start, first_chunk) = (self.keys.len(), self.buffers.len());
        if key.len() > KeyHead::BYTES {
            self.keys.extend_from_slice(key);
        }
        self.buffers
            .resize(first_chunk + CHUNK_BYTES_MIN + LINK_BYTES, 0);
        self.lists.push(KeyList {
            head,
            key_start,
            key_length: key.len() as u32,
            left: CHUNK_BYTES_MIN as u16,
            is_unordered: false,
            last_id: RecordId::MIN,
            first_chunk,
            end: first_chunk,
            chunk_bytes: CHUNK_BYTES_MIN as u16,
        });
    }

    #[inline]
    fn has_key(&self, list: &KeyList, head: KeyHead, key: &[u8]) -> bool {
        list.key_length as usize == key.len()
            && list.head == head
            && (key.len() <= KeyHead::BYTES || self.key(list) == key)
    }

    fn key<'l>(&'l self, list: &'l KeyList) -> &'l [u8] {
        let length = list.key_length as usize;
        match list.head.key(length) {
            Some(key) => key,
            None => &self.keys[list.key_start..list.key_start + length],
        }
    }

    fn hash(&self, key: &[u8]) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        hasher.write(key);
        hasher.finish()
    }

    /// Doubles the number of slots.
    #[cold]
    fn grow(&mut self) {
        let length = (self.slots.len() * 2).max(SLOTS_MIN);
        self.slots.clear();
        self.slots.resize(length, 0);
        let mask = length - 1;
        for (number, list) in self.lists.iter().enumerate() {
            let hash = self.hash(self.key(list));
            let mut at = hash as usize & mask;
            while self.slots[at] != 0 {
                at = (at + 1) & mask;
            }
            self.slots[at] = hash >> 32 << 32 | (number as u64 + 1);
        }
    }

    /// Calls `visit` with each entry that is in a list: the lists in the order in which they began.
    pub fn each(&self, mut visit: impl FnMut(&[u8], RecordId, &[u8])) {
        let mut bytes = Vec::new();
        for list in &self.lists {
            self.copy(list, &mut bytes);
            let key = self.key(list);
            entries(&bytes).for_each(|(id, payload)| visit(key, id, payload));
        }
    }

    /// Copies the entries of a list to one place. What was there is removed.
    fn copy(&self, list: &KeyList, bytes: &mut Vec<u8>) {
        bytes.clear();
        let (mut start, mut length) = (list.first_chunk, CHUNK_BYTES_MIN);
        let last = list.end + usize::from(list.left) - usize::from(list.chunk_bytes);
        while start != last {
            let link = start + length;
            bytes.extend_from_slice(&self.buffers[start..link]);
            let next = self.buffers[link..].first_chunk::<LINK_BYTES>();
            start = next.map_or(last, |next| u64::from_le_bytes(*next) as usize);
            length = next_chunk_bytes(length);
        }
        bytes.extend_from_slice(&self.buffers[last..list.end]);
    }

    /// Sorts the keys and writes the entries; of equal places the one with the smallest payload. Forgets
    /// them and keeps the memory.
    pub fn write(&mut self, writer: &mut SectionWriter<'_>) -> Result<(), StorageError> {
        self.end_batch();
        let order = KeySort {
            entries: &self.lists,
            head: |list: &KeyList| list.head.number(),
            key: |list| self.key(list),
            compare: |one: &KeyList, other: &KeyList| compare_keys(self.key(one), self.key(other)),
        };
        let numbers: Option<Vec<u32>> = order.numbers().map(Iterator::collect);
        let numbers = numbers.unwrap_or_else(|| (0..self.lists.len() as u32).collect());
        let mut bytes = Vec::new();
        for (at, number) in numbers.iter().enumerate() {
            if at.is_multiple_of(LISTS_PREFETCHED) {
                self.prefetch_lists(&numbers[at..]);
            }
            let list = &self.lists[*number as usize];
            self.copy(list, &mut bytes);
            let key = self.key(list);
            if list.is_unordered {
                write_unordered(key, &bytes, writer)?;
            } else {
                write_ordered(key, entries(&bytes), writer)?;
            }
        }
        self.clear();
        Ok(())
    }

    /// Fetches the first of these lists and the beginnings of their entries.
    fn prefetch_lists(&self, numbers: &[u32]) {
        let lists = numbers.iter().take(LISTS_PREFETCHED);
        let firsts = lists.map(|number| self.lists[*number as usize].first_chunk);
        prefetch::load(firsts.filter_map(|first| self.buffers.get(first).copied()));
    }

    /// Forgets the entries and keeps the memory.
    pub fn clear(&mut self) {
        self.slots.fill(0);
        self.batch.entries.clear();
        self.batch.bytes.clear();
        self.lists.clear();
        self.keys.clear();
        self.buffers.clear();
    }
}

fn next_chunk_bytes(bytes: usize) -> usize {
    (bytes * 2).min(CHUNK_BYTES_MAX)
}

/// The entries of a list that was copied to one place.
fn entries(mut bytes: &[u8]) -> impl Iterator<Item = (RecordId, &[u8])> {
    let mut id = 0_u64;
    std::iter::from_fn(move || {
        id = id.wrapping_add(varint::take(&mut bytes)?) & ID_MASK;
        let length = varint::take(&mut bytes)?;
        Some((RecordId(id), varint::take_bytes(&mut bytes, length)?))
    })
}

fn write_ordered<'e>(
    key: &[u8],
    entries: impl Iterator<Item = (RecordId, &'e [u8])>,
    writer: &mut SectionWriter<'_>,
) -> Result<(), StorageError> {
    let mut is_first = true;
    for (id, payload) in entries {
        let entry = Entry {
            key,
            id,
            position: Position::ZERO,
            deleted: false,
            payload,
        };
        writer.push(&entry, is_first)?;
        is_first = false;
    }
    Ok(())
}

#[cold]
fn write_unordered(
    key: &[u8],
    bytes: &[u8],
    writer: &mut SectionWriter<'_>,
) -> Result<(), StorageError> {
    let mut all: Vec<(RecordId, &[u8])> = entries(bytes).collect();
    all.sort_unstable();
    all.dedup_by_key(|(id, _)| *id);
    write_ordered(key, all.into_iter(), writer)
}
