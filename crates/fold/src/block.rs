//! The blocks of a section: entries in order, each key once.
//!
//! ```text
//! block    group* | restart: u32 LE each | restart count u32 LE | entry count u32 LE
//! restart  the offset of a group whose key stands there whole: the first, then at the latest after
//!          32 groups or 512 bytes
//! group    lengths u8 | shared varint, if 15 | length varint, if 15 | key bytes | head varint | ...
//! lengths  shared << 4 | length: the key is the last one's first `shared` bytes and `length` more;
//!          15 says that the number less 15 follows
//! head     id << 2           one entry, settled, not deleted, without payload; nothing follows
//!                            (ids from 2^62 on stand in the forms with a count)
//!          id << 2 | 1       one entry, settled, not deleted: length varint | payload
//!          count << 2 | 2    so many entries, settled, not deleted, without payload: entry*
//!          count << 4 | payloads << 3 | versions << 2 | 3: entry*
//! entry    id varint (from the second on: less the last one's)
//!          with versions: position << 1 | deleted, varint      (without: settled, not deleted)
//!          with payloads: length varint | payload              (without: empty)
//! ```
//! Versions of one key and id stand in one group of one block. A key with many ids may go on in the
//! next group, after 2 KB, or in the next block.
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)
)]

use std::cmp::Ordering;

use crate::entry::{Entry, common_prefix, compare_keys, key_prefix, same_key};
use crate::varint;

/// A block is closed when it has so many bytes, before compression.
pub const BLOCK_BYTES: usize = 32 << 10;
/// After so many groups, or so many bytes, the key stands whole and the block can be entered: who looks
/// for one entry decodes no more than that.
const RESTART_GROUPS: usize = 32;
const RESTART_BYTES: usize = 512;
/// The entries of one key go on in another group after so many bytes.
const GROUP_BYTES: usize = 2 << 10;
/// A length of a key's part from which on it stands in a number of its own.
const LONG: u8 = 15;

/// The kinds of a group's head: its lowest two bits.
const LONE: u64 = 0;
const LONE_WITH_PAYLOAD: u64 = 1;
const PLAIN: u64 = 2;
const GENERAL: u64 = 3;

/// Writes entries, which come in order, into a block.
#[derive(Debug, Default)]
pub struct BlockBuilder {
    bytes: Vec<u8>,
    restarts: Vec<u32>,
    /// Since the last restart.
    groups: usize,
    entries: u32,
    last_key: Vec<u8>,
    group: Group,
}

/// The entries of the key that is being written.
#[derive(Debug, Default)]
struct Group {
    key: Vec<u8>,
    bodies: Vec<Body>,
    payloads: Vec<u8>,
    versions: bool,
}

#[derive(Clone, Copy, Debug)]
struct Body {
    id: u64,
    version: u64,
    payload_end: usize,
}

impl BlockBuilder {
    /// The number of entries.
    pub fn entries(&self) -> u32 {
        self.entries
    }

    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// About the bytes so far.
    pub fn len(&self) -> usize {
        self.bytes.len() + self.group.len()
    }

    /// Whether the block should be closed before this entry, the next in order.
    pub fn is_full_before(&self, entry: &Entry<'_>) -> bool {
        if self.len() < BLOCK_BYTES {
            return false;
        }
        let same = self
            .group
            .bodies
            .last()
            .is_some_and(|last| last.id == entry.id);
        !(same && same_key(&self.group.key, entry.key))
    }

    /// Adds the next entry in order. `new_key`: it has another key than the last.
    pub fn push(&mut self, entry: &Entry<'_>, new_key: bool) {
        if let Some(last) = self.group.bodies.last() {
            let is_long = last.id != entry.id && self.group.len() >= GROUP_BYTES;
            if new_key || is_long {
                self.end_group();
            }
        }
        if self.group.bodies.is_empty() {
            self.group.key.extend_from_slice(entry.key);
        }
        let version = entry.position << 1 | u64::from(entry.deleted);
        self.group.versions |= version != 0;
        self.group.payloads.extend_from_slice(entry.payload);
        let payload_end = self.group.payloads.len();
        self.group.bodies.push(Body {
            id: entry.id,
            version,
            payload_end,
        });
        self.entries += 1;
    }

    fn end_group(&mut self) {
        let mut shared = 0;
        let start = self.restarts.last().map(|start| *start as usize);
        let goes_on = start.is_some_and(|start| {
            self.groups < RESTART_GROUPS && self.bytes.len() - start < RESTART_BYTES
        });
        if goes_on {
            shared = common_prefix(&self.last_key, &self.group.key);
        } else {
            self.restarts.push(self.bytes.len() as u32);
            self.groups = 0;
        }
        let suffix = self.group.key.get(shared..).unwrap_or_default();
        put_lengths(&mut self.bytes, shared, suffix.len());
        self.bytes.extend_from_slice(suffix);
        self.group.write(&mut self.bytes);
        self.groups += 1;
        std::mem::swap(&mut self.last_key, &mut self.group.key);
        self.group.key.clear();
    }

    /// Hands out the block's bytes and begins a new one. `raw` is cleared first.
    pub fn finish(&mut self, raw: &mut Vec<u8>) {
        if !self.group.bodies.is_empty() {
            self.end_group();
        }
        for restart in &self.restarts {
            self.bytes.extend_from_slice(&restart.to_le_bytes());
        }
        self.bytes
            .extend_from_slice(&(self.restarts.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(&self.entries.to_le_bytes());
        raw.clear();
        std::mem::swap(raw, &mut self.bytes);
        self.restarts.clear();
        (self.groups, self.entries) = (0, 0);
        self.last_key.clear();
    }
}

fn put_lengths(bytes: &mut Vec<u8>, shared: usize, length: usize) {
    let short = |number: usize| u8::try_from(number).map_or(LONG, |number| number.min(LONG));
    bytes.push(short(shared) << 4 | short(length));
    for number in [shared, length] {
        if let Some(rest) = number.checked_sub(usize::from(LONG)) {
            varint::put(bytes, rest as u64);
        }
    }
}

/// How many bytes a key shares with the last one, and how many follow.
fn take_lengths(bytes: &mut &[u8]) -> Option<(usize, u64)> {
    let (&lengths, rest) = bytes.split_first()?;
    *bytes = rest;
    let mut long = |short: u8| match short {
        LONG => varint::take(bytes)?.checked_add(u64::from(LONG)),
        short => Some(u64::from(short)),
    };
    let shared = long(lengths >> 4)?;
    Some((usize::try_from(shared).ok()?, long(lengths & LONG)?))
}

impl Group {
    /// About the bytes that it will take.
    fn len(&self) -> usize {
        self.payloads.len() + 4 * self.bodies.len()
    }

    fn write(&mut self, bytes: &mut Vec<u8>) {
        match (self.bodies.as_slice(), self.versions) {
            ([body], _) if body.id >> 62 > 0 => self.write_many(bytes),
            ([body], false) if self.payloads.is_empty() => varint::put(bytes, body.id << 2 | LONE),
            ([body], false) => {
                varint::put(bytes, body.id << 2 | LONE_WITH_PAYLOAD);
                varint::put(bytes, self.payloads.len() as u64);
                bytes.extend_from_slice(&self.payloads);
            }
            _ => self.write_many(bytes),
        }
        self.bodies.clear();
        self.payloads.clear();
        self.versions = false;
    }

    fn write_many(&self, bytes: &mut Vec<u8>) {
        let (count, payloads) = (self.bodies.len() as u64, !self.payloads.is_empty());
        let head = if payloads || self.versions {
            count << 4 | u64::from(payloads) << 3 | u64::from(self.versions) << 2 | GENERAL
        } else {
            count << 2 | PLAIN
        };
        varint::put(bytes, head);
        let (mut last_id, mut start) = (0, 0);
        for body in &self.bodies {
            varint::put(bytes, body.id - last_id);
            last_id = body.id;
            if self.versions {
                varint::put(bytes, body.version);
            }
            if payloads {
                varint::put(bytes, (body.payload_end - start) as u64);
                bytes.extend_from_slice(self.payloads.get(start..body.payload_end).unwrap_or(&[]));
                start = body.payload_end;
            }
        }
    }
}

/// The end of a block, read: where it can be entered.
#[derive(Clone, Copy, Debug)]
pub struct Layout<'a> {
    groups: &'a [u8],
    restarts: &'a [u8],
}

impl<'a> Layout<'a> {
    /// None where the bytes are no block.
    pub fn read(block: &'a [u8]) -> Option<Layout<'a>> {
        let (rest, _entries) = block.split_last_chunk::<4>()?;
        let (rest, count) = rest.split_last_chunk::<4>()?;
        let count = u32::from_le_bytes(*count) as usize;
        let groups_end = rest.len().checked_sub(count.checked_mul(4)?)?;
        let (groups, restarts) = rest.split_at_checked(groups_end)?;
        Some(Layout { groups, restarts })
    }

    /// The number of stretches between restarts.
    pub fn stretches(&self) -> usize {
        self.restarts.len() / 4
    }

    fn restart(&self, stretch: usize) -> Option<usize> {
        let bytes = self.restarts.get(4 * stretch..)?.first_chunk::<4>()?;
        Some(u32::from_le_bytes(*bytes) as usize)
    }

    /// The bytes of a stretch.
    fn stretch(&self, stretch: usize) -> Option<&'a [u8]> {
        let start = self.restart(stretch)?;
        match self.restart(stretch + 1) {
            Some(end) => self.groups.get(start..end),
            None => self.groups.get(start..),
        }
    }

    /// The last stretch whose first entry is at or before a place; 0 where none is.
    pub fn stretch_of(&self, key: &[u8], id: u64) -> Option<usize> {
        let (mut low, mut high) = (0, self.stretches());
        while high - low > 1 {
            let middle = low.midpoint(high);
            let (first_key, first_id) = first_of(self.stretch(middle)?)?;
            if compare_keys(first_key, key).then(first_id.cmp(&id)) == Ordering::Greater {
                high = middle;
            } else {
                low = middle;
            }
        }
        Some(low)
    }
}

/// Key and id of the first entry of a stretch.
fn first_of(mut bytes: &[u8]) -> Option<(&[u8], u64)> {
    let (_, length) = take_lengths(&mut bytes)?;
    let key = varint::take_bytes(&mut bytes, length)?;
    let head = varint::take(&mut bytes)?;
    let id = match head & 3 {
        LONE | LONE_WITH_PAYLOAD => head >> 2,
        _ => varint::take(&mut bytes)?,
    };
    Some((key, id))
}

/// A stretch of a block, decoded. Recycled from stretch to stretch.
#[derive(Debug, Default)]
pub struct Stretch {
    keys: Vec<u8>,
    key_ends: Vec<u32>,
    slots: Vec<Slot>,
}

/// An entry of a stretch; the payload stands at these bytes of the block.
#[derive(Clone, Copy, Debug)]
struct Slot {
    id: u64,
    version: u64,
    group: u32,
    payload_start: u32,
    payload_length: u32,
}

impl Stretch {
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    pub fn clear(&mut self) {
        self.keys.clear();
        self.key_ends.clear();
        self.slots.clear();
    }

    /// Decodes a stretch of a block in place of what was there. None where the bytes are damaged.
    pub fn decode(&mut self, block: &[u8], number: usize) -> Option<()> {
        self.clear();
        let layout = Layout::read(block)?;
        let mut rest = layout.stretch(number)?;
        let end = layout.restart(number)? + rest.len();
        let mut last_key = 0..0;
        while !rest.is_empty() {
            let (shared, length) = take_lengths(&mut rest)?;
            let suffix = varint::take_bytes(&mut rest, length)?;
            if shared > last_key.len() {
                return None;
            }
            let start = self.keys.len();
            self.keys
                .extend_from_within(last_key.start..last_key.start + shared);
            self.keys.extend_from_slice(suffix);
            last_key = start..self.keys.len();
            self.key_ends.push(u32::try_from(self.keys.len()).ok()?);
            self.decode_group(&mut rest, end)?;
        }
        Some(())
    }

    fn decode_group(&mut self, rest: &mut &[u8], end: usize) -> Option<()> {
        let head = varint::take(rest)?;
        match head & 3 {
            LONE => {
                self.push(head >> 2, 0, 0, 0);
                Some(())
            }
            LONE_WITH_PAYLOAD => self.decode_rest(rest, end, head >> 2, true, 0),
            PLAIN => self.decode_many(rest, end, head >> 2, false, false),
            _ => self.decode_many(rest, end, head >> 4, head & 8 != 0, head & 4 != 0),
        }
    }

    fn decode_many(
        &mut self,
        rest: &mut &[u8],
        end: usize,
        count: u64,
        payloads: bool,
        versions: bool,
    ) -> Option<()> {
        let mut id = 0u64;
        for _ in 0..count {
            id = id.checked_add(varint::take(rest)?)?;
            let version = if versions { varint::take(rest)? } else { 0 };
            self.decode_rest(rest, end, id, payloads, version)?;
        }
        Some(())
    }

    /// Decodes what follows an entry's id and version.
    #[inline]
    fn decode_rest(
        &mut self,
        rest: &mut &[u8],
        end: usize,
        id: u64,
        payload: bool,
        version: u64,
    ) -> Option<()> {
        let length = if payload { varint::take(rest)? } else { 0 };
        let start = (end - rest.len()) as u32;
        varint::take_bytes(rest, length)?;
        self.push(id, version, start, length as u32);
        Some(())
    }

    #[inline]
    fn push(&mut self, id: u64, version: u64, payload_start: u32, payload_length: u32) {
        let group = (self.key_ends.len() - 1) as u32;
        self.slots.push(Slot {
            id,
            version,
            group,
            payload_start,
            payload_length,
        });
    }

    fn key(&self, group: u32) -> &[u8] {
        let group = group as usize;
        let start = group
            .checked_sub(1)
            .and_then(|last| self.key_ends.get(last));
        let start = start.map_or(0, |start| *start as usize);
        let end = self.key_ends.get(group).map_or(start, |end| *end as usize);
        self.keys.get(start..end).unwrap_or_default()
    }

    /// The entry of that number; `block` is what was decoded.
    #[inline]
    pub fn get<'a>(&'a self, block: &'a [u8], number: usize) -> Option<Entry<'a>> {
        let slot = self.slots.get(number)?;
        let start = slot.payload_start as usize;
        Some(Entry {
            key: self.key(slot.group),
            id: slot.id,
            position: slot.version >> 1,
            deleted: slot.version & 1 != 0,
            payload: block.get(start..start + slot.payload_length as usize)?,
        })
    }

    /// The first bytes of an entry's key as a number.
    #[inline]
    pub fn prefix(&self, number: usize) -> u64 {
        let slot = self.slots.get(number);
        slot.map_or(0, |slot| key_prefix(self.key(slot.group)))
    }

    /// Where in the block the payload of an entry stands.
    pub fn payload_range(&self, number: usize) -> std::ops::Range<usize> {
        self.slots.get(number).map_or(0..0, |slot| {
            let start = slot.payload_start as usize;
            start..start + slot.payload_length as usize
        })
    }

    /// The number of the first entry at or after a place.
    pub fn lower_bound(&self, key: &[u8], id: u64) -> usize {
        self.bound(key, id, Ordering::Less)
    }

    /// The number of the first entry after a place.
    pub fn upper_bound(&self, key: &[u8], id: u64) -> usize {
        self.bound(key, id, Ordering::Equal)
    }

    fn bound(&self, key: &[u8], id: u64, before: Ordering) -> usize {
        self.slots.partition_point(|slot| {
            compare_keys(self.key(slot.group), key).then(slot.id.cmp(&id)) <= before
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Plain = (Vec<u8>, u64, u64, bool, Vec<u8>);

    fn entries() -> Vec<Plain> {
        let mut entries: Vec<Plain> = Vec::new();
        for number in 0..300u64 {
            let key = format!("key{:03}", number / 3).into_bytes();
            let payload = vec![number as u8; (number % 4) as usize];
            entries.push((key.clone(), number, 2 * number, false, payload));
            if number % 10 == 0 {
                entries.push((key, number, number, true, Vec::new()));
            }
        }
        entries
    }

    fn entry(plain: &Plain) -> Entry<'_> {
        let (key, id, position, deleted, payload) = plain;
        Entry {
            key,
            id: *id,
            position: *position,
            deleted: *deleted,
            payload,
        }
    }

    fn build(entries: &[Plain]) -> Vec<u8> {
        let (mut builder, mut raw) = (BlockBuilder::default(), Vec::new());
        let mut last: Option<&Plain> = None;
        for plain in entries {
            builder.push(&entry(plain), last.is_none_or(|last| last.0 != plain.0));
            last = Some(plain);
        }
        builder.finish(&mut raw);
        assert!(builder.is_empty());
        raw
    }

    #[test]
    fn entries_come_back_in_order() {
        let (expected, mut stretch) = (entries(), Stretch::default());
        let block = build(&expected);
        let stretches = Layout::read(&block).unwrap().stretches();
        assert_eq!(stretches, 5);
        let mut found = Vec::new();
        for number in 0..stretches {
            stretch.decode(&block, number).unwrap();
            for slot in 0..stretch.len() {
                let entry = stretch.get(&block, slot).unwrap();
                found.push((
                    entry.key.to_vec(),
                    entry.id,
                    entry.position,
                    entry.deleted,
                    entry.payload.to_vec(),
                ));
            }
        }
        assert_eq!(found, expected);
    }

    #[test]
    fn places_are_found_through_restarts() {
        let (expected, mut stretch) = (entries(), Stretch::default());
        let block = build(&expected);
        let layout = Layout::read(&block).unwrap();
        for plain in &expected {
            stretch
                .decode(&block, layout.stretch_of(&plain.0, plain.1).unwrap())
                .unwrap();
            let found = stretch
                .get(&block, stretch.lower_bound(&plain.0, plain.1))
                .unwrap();
            assert!(found.same_place(&entry(plain)));
        }
        assert_eq!(layout.stretch_of(b"", 0), Some(0));
        assert_eq!(layout.stretch_of(b"z", 0), Some(4));
    }

    /// Documents have one key, the empty one: a block of them can be entered all the same.
    #[test]
    fn one_key_has_restarts() {
        let document = |id: u64| (Vec::new(), id, 0, false, vec![id as u8; 250]);
        let expected: Vec<Plain> = (0..100).map(document).collect();
        let (block, mut stretch) = (build(&expected), Stretch::default());
        let layout = Layout::read(&block).unwrap();
        assert_eq!(layout.stretches(), 12);
        for plain in &expected {
            let number = layout.stretch_of(b"", plain.1).unwrap();
            stretch.decode(&block, number).unwrap();
            assert!(stretch.len() < 10);
            let found = stretch.get(&block, stretch.lower_bound(b"", plain.1));
            assert_eq!(found, Some(entry(plain)));
        }
    }

    #[test]
    fn damaged_blocks_are_survived() {
        let block = build(&entries()[..40]);
        let mut stretch = Stretch::default();
        for at in 0..block.len() {
            for flip in [0x01, 0x80, 0xFF] {
                let mut damaged = block.clone();
                damaged[at] ^= flip;
                for number in 0..4 {
                    if stretch.decode(&damaged, number).is_some() {
                        let _ = (0..stretch.len())
                            .filter_map(|slot| stretch.get(&damaged, slot))
                            .count();
                    }
                }
                if let Some(layout) = Layout::read(&damaged) {
                    let _ = layout.stretch_of(b"key005", 15);
                }
            }
        }
    }
}
