//! Entries grouped by key: a hash table of keys, and a list of entries for each.
//!
//! ```text
//! list    chunk*, each twice as long as the one before, up to a limit
//! chunk   bytes of entries | offset of the next chunk u64 LE
//! entry   id minus the last id, modulo 2^40, varint | payload length varint | payload
//! ```
//! An entry may begin in one chunk and end in the next.
//!
//! The lists of most keys are not in the processor's caches. Entries are therefore collected in a
//! batch, and the memory that they need is prefetched for all of them at once.

use std::hash::{BuildHasher, Hasher};

use foldhash::fast::RandomState;
use windrow_invariant::Bug;
use windrow_storage::{Position, StorageError};

use super::numbered_lists::NumberedLists;
use super::{ID_BITS, KeyNumber};
use crate::entry::{Entry, KeyHead, RecordId, compare_keys};
use crate::key_sort::{self, KeySort};
use crate::prefetch;
use crate::section::SectionWriter;
use crate::varint;

/// The bytes of entries in the first chunk of a list.
const CHUNK_BYTES_MIN: usize = 16;
const CHUNK_BYTES_MAX: usize = 4 << 10;
/// The size of the link to the next chunk.
const LINK_BYTES: usize = 8;
const SLOTS_MIN: usize = 64;
const ID_MASK: u64 = (1 << ID_BITS) - 1;

/// Entries in lists. [`write`](Self::write) empties it for reuse.
#[derive(Debug, Default)]
pub struct EntryLists {
    hasher: RandomState,
    /// A hash table with open addressing. A slot has the upper half of the key's hash, and in the
    /// lower half the number of its list plus one, or 0 if it is free. The length is a power of
    /// two.
    slots: Vec<u64>,
    lists: Vec<KeyList>,
    /// The keys that do not fit into a head.
    keys: Vec<u8>,
    chunks: Vec<u8>,
    numbered: NumberedLists,
    batch: PendingBatch,
    /// An entry that is divided between two chunks.
    added: Vec<u8>,
}

/// Entries that are not in lists yet.
#[derive(Debug, Default)]
struct PendingBatch {
    entries: Vec<PendingEntry>,
    /// The keys, if their lists are not known, and payloads of the entries, one after the other.
    bytes: Vec<u8>,
}

/// An entry of a batch. Its key and payload are the next bytes.
#[derive(Clone, Copy, Debug)]
struct PendingEntry {
    list: PendingList,
    id: RecordId,
    payload_length: u32,
}

/// The list of an entry of a batch.
#[derive(Clone, Copy, Debug)]
enum PendingList {
    /// The number of the list.
    Known(u32),
    /// The list of this key.
    OfKey {
        hash: u64,
        key_length: u32,
        number: Option<KeyNumber>,
    },
}

/// The number of lists that are prefetched together.
const LISTS_PREFETCHED: usize = 32;
/// The largest number of entries of a batch.
const BATCH: usize = 64;
/// The largest number of bytes of a batch.
const BATCH_BYTES: usize = 64 << 10;

/// A key and its entries. It fits into one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct KeyList {
    head: KeyHead,
    /// The offset of the key, if it does not fit into the head.
    key_start: usize,
    key_length: u32,
    /// The bytes that are left in the last chunk.
    bytes_left: u16,
    /// An id was not greater than the one before.
    is_unordered: bool,
    last_id: RecordId,
    first_chunk: usize,
    /// The offset of the next byte.
    end: usize,
    /// The bytes of entries in the last chunk.
    chunk_bytes: u16,
}

impl EntryLists {
    pub fn is_empty(&self) -> bool {
        self.lists.is_empty() && self.batch.entries.is_empty()
    }

    /// Returns the number of distinct keys, without those of the current batch.
    pub fn keys(&self) -> usize {
        self.lists.len()
    }

    /// Returns the memory of the entries and of sorting their keys, in bytes.
    pub fn bytes(&self) -> usize {
        let lists = self.lists.len() * (size_of::<KeyList>() + key_sort::ENTRY_BYTES);
        let bytes = self.keys.len() + self.chunks.len() + self.batch.bytes.len();
        self.slots.len() * size_of::<u64>() + self.numbered.bytes() + lists + bytes
    }

    /// Adds an entry, whose key may have a number. Record ids have at most 40 bits.
    pub fn add(&mut self, key: &[u8], number: Option<KeyNumber>, id: RecordId, payload: &[u8]) {
        let list = PendingList::OfKey {
            hash: self.hash(key),
            key_length: key.len() as u32,
            number,
        };
        self.batch.bytes.extend_from_slice(key);
        self.add_pending(list, id, payload);
    }

    /// Adds an entry with the key of this number. Returns `false` if its list is not known.
    #[inline]
    pub fn add_known(&mut self, number: KeyNumber, id: RecordId, payload: &[u8]) -> bool {
        let list = self.numbered.list(number);
        if let Some(list) = list {
            self.add_pending(PendingList::Known(list), id, payload);
        }
        list.is_some()
    }

    #[inline]
    fn add_pending(&mut self, list: PendingList, id: RecordId, payload: &[u8]) {
        let batch = &mut self.batch;
        batch.entries.push(PendingEntry {
            list,
            id,
            payload_length: payload.len() as u32,
        });
        batch.bytes.extend_from_slice(payload);
        if batch.entries.len() >= BATCH || batch.bytes.len() >= BATCH_BYTES {
            self.end_batch();
        }
    }

    /// Moves the entries of the batch to their lists.
    pub fn end_batch(&mut self) {
        while (self.lists.len() + self.batch.entries.len()) * 2 >= self.slots.len() {
            self.grow();
        }
        self.touch();
        let mut batch = std::mem::take(&mut self.batch);
        let mut rest = batch.bytes.as_slice();
        for pending in &batch.entries {
            let list = match pending.list {
                PendingList::Known(list) => list as usize,
                PendingList::OfKey {
                    hash,
                    key_length,
                    number,
                } => {
                    let (key, behind) = rest.split_at(key_length as usize);
                    rest = behind;
                    let list = self.number(key, hash);
                    if let Some(number) = number {
                        self.numbered.set(number, list as u32);
                    }
                    list
                }
            };
            let (payload, behind) = rest.split_at(pending.payload_length as usize);
            rest = behind;
            self.append(list, pending.id, payload);
        }
        batch.entries.clear();
        batch.bytes.clear();
        self.batch = batch;
    }

    /// Prefetches the slots, the lists and the ends of the lists that the batch needs.
    fn touch(&self) {
        let mask = self.slots.len() - 1;
        let mut numbers = [u32::MAX; BATCH];
        for (number, pending) in numbers.iter_mut().zip(&self.batch.entries) {
            *number = match pending.list {
                PendingList::Known(list) => list,
                PendingList::OfKey { hash, .. } => {
                    let mut at = hash as usize & mask;
                    while self.slots[at] != 0 && self.slots[at] >> 32 != hash >> 32 {
                        at = (at + 1) & mask;
                    }
                    (self.slots[at] as u32).wrapping_sub(1)
                }
            };
        }
        let mut ends = [0; BATCH];
        for (end, number) in ends.iter_mut().zip(numbers) {
            let list = self.lists.get(number as usize);
            *end = list.map_or(0, |list| list.end);
        }
        prefetch::load(ends.iter().filter_map(|end| self.chunks.get(*end).copied()));
    }

    fn append(&mut self, number: usize, id: RecordId, payload: &[u8]) {
        let list = &mut self.lists[number];
        let is_first = list.end == list.first_chunk;
        list.is_unordered |= id <= list.last_id && !is_first;
        let step = id.0.wrapping_sub(list.last_id.0) & ID_MASK;
        list.last_id = id;
        let head_length = varint::length(step) + varint::length(payload.len() as u64);
        let length = head_length + payload.len();
        if length > usize::from(list.bytes_left) {
            self.added.clear();
            varint::put(&mut self.added, step);
            varint::put(&mut self.added, payload.len() as u64);
            self.added.extend_from_slice(payload);
            return self.put_across(number);
        }
        let (head, content) = self.chunks[list.end..list.end + length].split_at_mut(head_length);
        let rest = varint::write(head, step);
        varint::write(rest, payload.len() as u64);
        content.copy_from_slice(payload);
        list.end += length;
        list.bytes_left -= length as u16;
    }

    /// Appends the divided entry to a list whose last chunk has no room for all of it.
    #[cold]
    fn put_across(&mut self, number: usize) {
        let list = &mut self.lists[number];
        let mut rest = self.added.as_slice();
        while !rest.is_empty() {
            if list.bytes_left == 0 {
                let next = self.chunks.len();
                self.chunks[list.end..list.end + LINK_BYTES]
                    .copy_from_slice(&(next as u64).to_le_bytes());
                list.chunk_bytes = next_chunk_bytes(usize::from(list.chunk_bytes)) as u16;
                (list.end, list.bytes_left) = (next, list.chunk_bytes);
                let grown = next + usize::from(list.chunk_bytes) + LINK_BYTES;
                self.chunks.resize(grown, 0);
            }
            let length = rest.len().min(usize::from(list.bytes_left));
            let (part, behind) = rest.split_at(length);
            self.chunks[list.end..list.end + length].copy_from_slice(part);
            list.end += length;
            list.bytes_left -= length as u16;
            rest = behind;
        }
    }

    /// Returns the number of the list of a key. Creates one for a new key.
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
        // The memory of a worker has room for far fewer.
        assert!(number < u32::MAX as usize, "{number} keys");
        self.slots[at] = hash >> 32 << 32 | (number as u64 + 1);
        self.begin(head, key);
        number
    }

    fn begin(&mut self, head: KeyHead, key: &[u8]) {
        let (key_start, first_chunk) = (self.keys.len(), self.chunks.len());
        if key.len() > KeyHead::BYTES {
            self.keys.extend_from_slice(key);
        }
        self.chunks
            .resize(first_chunk + CHUNK_BYTES_MIN + LINK_BYTES, 0);
        self.lists.push(KeyList {
            head,
            key_start,
            key_length: key.len() as u32,
            bytes_left: CHUNK_BYTES_MIN as u16,
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

    /// Calls `visit` for each entry that is in a list, list by list.
    pub fn each(&self, mut visit: impl FnMut(&[u8], RecordId, &[u8])) -> Result<(), Bug> {
        let mut bytes = Vec::new();
        for list in &self.lists {
            self.copy(list, &mut bytes)?;
            let key = self.key(list);
            for entry in entries(&bytes) {
                let (id, payload) = entry?;
                visit(key, id, payload);
            }
        }
        Ok(())
    }

    /// Replaces `bytes` by the entries of a list.
    fn copy(&self, list: &KeyList, bytes: &mut Vec<u8>) -> Result<(), Bug> {
        bytes.clear();
        let (mut start, mut length) = (list.first_chunk, CHUNK_BYTES_MIN);
        let last = list.end + usize::from(list.bytes_left) - usize::from(list.chunk_bytes);
        while start != last {
            let link = start + length;
            bytes.extend_from_slice(&self.chunks[start..link]);
            let next = self.chunks[link..].first_chunk::<LINK_BYTES>();
            let next = next.ok_or_else(|| broken_list(list))?;
            start = u64::from_le_bytes(*next) as usize;
            length = next_chunk_bytes(length);
        }
        bytes.extend_from_slice(&self.chunks[last..list.end]);
        Ok(())
    }

    /// Sorts the keys and writes the entries. Of entries with the same key and id, the one with the
    /// smallest payload is written. The lists are empty afterwards and keep their memory.
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
            self.copy(list, &mut bytes)?;
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

    /// Prefetches the first chunks of the next lists.
    fn prefetch_lists(&self, numbers: &[u32]) {
        let lists = numbers.iter().take(LISTS_PREFETCHED);
        let firsts = lists.map(|number| self.lists[*number as usize].first_chunk);
        prefetch::load(firsts.filter_map(|first| self.chunks.get(first).copied()));
    }

    /// Removes the entries and keeps the memory.
    pub fn clear(&mut self) {
        self.slots.fill(0);
        self.numbered.clear();
        self.batch.entries.clear();
        self.batch.bytes.clear();
        self.lists.clear();
        self.keys.clear();
        self.chunks.clear();
    }
}

fn next_chunk_bytes(bytes: usize) -> usize {
    (bytes * 2).min(CHUNK_BYTES_MAX)
}

/// Iterates over the encoded entries of a list. A decoding error is the last item: the entries
/// behind it would be missing in the section.
fn entries(mut bytes: &[u8]) -> impl Iterator<Item = Result<(RecordId, &[u8]), Bug>> {
    let mut id = 0_u64;
    std::iter::from_fn(move || {
        if bytes.is_empty() {
            return None;
        }
        let entry = take_entry(&mut bytes, &mut id);
        Some(entry.ok_or_else(|| {
            let left = std::mem::take(&mut bytes).len();
            Bug::new(format!(
                "{left} bytes of a list of entries cannot be decoded"
            ))
        }))
    })
}

fn take_entry<'b>(bytes: &mut &'b [u8], id: &mut u64) -> Option<(RecordId, &'b [u8])> {
    *id = id.wrapping_add(varint::take(bytes)?) & ID_MASK;
    let length = varint::take(bytes)?;
    Some((RecordId(*id), varint::take_bytes(bytes, length)?))
}

#[cold]
fn broken_list(list: &KeyList) -> Bug {
    Bug::new(format!(
        "a chunk of a list of entries has no link: {list:?}"
    ))
}

/// Writes the entries of one key.
fn write_ordered<'e>(
    key: &[u8],
    entries: impl Iterator<Item = Result<(RecordId, &'e [u8]), Bug>>,
    writer: &mut SectionWriter<'_>,
) -> Result<(), StorageError> {
    let mut is_first = true;
    for entry in entries {
        let (id, payload) = entry?;
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
    let mut all = entries(bytes).collect::<Result<Vec<_>, Bug>>()?;
    all.sort_unstable();
    all.dedup_by_key(|(id, _)| *id);
    write_ordered(key, all.into_iter().map(Ok), writer)
}
