//! Decoding of blocks, restart interval by restart interval. The format is in
//! [`block`](crate::block).
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)
)]

use std::cmp::Ordering;

mod pieces;

use windrow_postings::PositionsReader;
use windrow_storage::Position;

use crate::block_layout::BlockLayout;
use crate::entry::{Entry, EntryKey, KeyHead, RecordId, compare_keys};
use crate::groups::{GroupForm, RelativeKey, RowFormat, take_payload};
use crate::varint;
pub(crate) use pieces::PieceContext;

/// The number of entries that are decoded at once after a seek.
const ENTRIES_AHEAD: usize = 16;

/// The decoded entries of a restart interval, or of a part of it. Reused from interval to interval.
#[derive(Debug, Default)]
pub struct RestartInterval {
    keys: Vec<u8>,
    key_ends: Vec<u32>,
    slots: Vec<DecodedEntry>,
    /// The range of the block that is not decoded yet.
    remaining: std::ops::Range<usize>,
    /// The group of the last key, as far as it is not decoded yet.
    group: OpenGroup,
    /// The payloads of unpacked postings.
    unpacked: Vec<u8>,
    piece_context: PieceContext,
    positions: PositionsReader,
}

/// The rest of a group of several entries.
#[derive(Clone, Copy, Debug, Default)]
struct OpenGroup {
    /// The entries that are left.
    rows: RowFormat,
    /// The id of the last decoded entry.
    id: RecordId,
    /// The end and the length of the piece in the block, if the group is one. `rows` then counts
    /// the postings that are left.
    piece: Option<(usize, usize)>,
}

/// A decoded entry. Its payload is in the block or in `unpacked`.
#[derive(Clone, Copy, Debug)]
struct DecodedEntry {
    id: RecordId,
    version: u64,
    group: u32,
    payload_start: u32,
    payload_length: u32,
}

/// In the start of a payload: it is in `unpacked`.
const UNPACKED: u32 = 1 << 31;

impl RestartInterval {
    /// Sets the positions and field lengths of the next interval.
    pub(crate) fn set_piece_context(&mut self, context: PieceContext) {
        self.piece_context = context;
        self.positions.clear();
    }

    /// Returns the number of decoded entries.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Returns `true` if there are no decoded entries.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Removes all entries and keeps the memory.
    pub fn clear(&mut self) {
        self.keys.clear();
        self.key_ends.clear();
        self.slots.clear();
        self.unpacked.clear();
        (self.remaining, self.group) = (0..0, OpenGroup::default());
    }

    /// Decodes a whole interval of a block. Returns `None` if the bytes are damaged.
    pub fn decode(&mut self, block: &[u8], number: usize) -> Option<()> {
        self.enter(block, number)?;
        self.decode_up_to(block, usize::MAX)
    }

    /// Decodes a few entries of an interval from an entry key on.
    /// [`decode_next`](Self::decode_next) continues.
    pub fn decode_from(
        &mut self,
        block: &[u8],
        number: usize,
        key: &[u8],
        id: RecordId,
    ) -> Option<()> {
        self.enter(block, number)?;
        self.skip_to(block, key, id, ENTRIES_AHEAD)
    }

    /// Decodes the first entry of an interval at or after an entry key, and nothing else if the
    /// entries are no postings. [`decode_next`](Self::decode_next) continues.
    pub(crate) fn decode_one_from(
        &mut self,
        block: &[u8],
        number: usize,
        from: EntryKey<'_>,
    ) -> Option<()> {
        self.enter(block, number)?;
        self.skip_to(block, from.key, from.id, 1)
    }

    /// As [`decode_from`](Self::decode_from) in the open interval. Also returns `None` if the entry
    /// key may be before the rest of it.
    pub fn continue_from(&mut self, block: &[u8], key: &[u8], id: RecordId) -> Option<()> {
        let last = self.slots.last()?;
        let is_behind = compare_keys(self.key(last.group), key)
            .then(last.id.cmp(&id))
            .is_lt();
        if !is_behind || self.is_decoded() {
            return None;
        }
        self.forget_read();
        self.skip_to(block, key, id, ENTRIES_AHEAD)
    }

    /// Decodes the next entries. Returns `Some(false)` at the end of the interval.
    pub fn decode_next(&mut self, block: &[u8]) -> Option<bool> {
        if self.is_decoded() {
            return Some(false);
        }
        self.forget_read();
        self.decode_up_to(block, ENTRIES_AHEAD)?;
        Some(true)
    }

    fn is_decoded(&self) -> bool {
        self.remaining.is_empty() && self.group.rows.count == 0
    }

    fn enter(&mut self, block: &[u8], number: usize) -> Option<()> {
        self.clear();
        let layout = BlockLayout::read(block)?;
        let interval = layout.interval(number)?;
        let start = layout.restart(number)?;
        self.remaining = start..start + interval.len();
        Some(())
    }

    /// Removes all but the last key, whose prefix the next one may share.
    fn forget_read(&mut self) {
        let start = self.last_key().start;
        self.keys.drain(..start);
        self.slots.clear();
        self.unpacked.clear();
        self.key_ends.clear();
        self.key_ends.push(self.keys.len() as u32);
    }

    fn last_key(&self) -> std::ops::Range<usize> {
        let before = self.key_ends.len().checked_sub(2);
        let start = before.and_then(|before| self.key_ends.get(before));
        start.map_or(0, |start| *start as usize)..self.keys.len()
    }

    /// Decodes until there are `count` entries or the interval ends.
    fn decode_up_to(&mut self, block: &[u8], count: usize) -> Option<()> {
        let end = self.remaining.end;
        let mut rest = block.get(self.remaining.clone())?;
        while self.slots.len() < count {
            if self.group.piece.is_some() {
                self.decode_piece(block, count, RecordId::MIN)?;
            } else if self.group.rows.count > 0 {
                self.decode_group(&mut rest, end, count, RecordId::MIN)?;
            } else if rest.is_empty() {
                break;
            } else {
                self.decode_key(&mut rest)?;
                self.open_group(&mut rest, end)?;
            }
        }
        self.remaining.start = end - rest.len();
        Some(())
    }

    /// Skips the entries before an entry key and decodes `count` of those that follow.
    fn skip_to(&mut self, block: &[u8], key: &[u8], id: RecordId, count: usize) -> Option<()> {
        let end = self.remaining.end;
        let mut rest = block.get(self.remaining.clone())?;
        loop {
            if self.group.rows.count == 0 {
                if rest.is_empty() {
                    break;
                }
                self.forget_read();
                self.decode_key(&mut rest)?;
                self.open_group(&mut rest, end)?;
            }
            match compare_keys(self.keys.get(self.last_key())?, key) {
                Ordering::Less => {
                    self.slots.clear();
                    self.skip_group(&mut rest)?;
                }
                Ordering::Equal => {
                    self.slots.retain(|slot| slot.id >= id);
                    match self.group.piece {
                        Some(_) => self.decode_piece(block, count, id)?,
                        None => self.decode_group(&mut rest, end, count, id)?,
                    }
                }
                Ordering::Greater => break,
            }
            if !self.slots.is_empty() {
                break;
            }
        }
        self.remaining.start = end - rest.len();
        self.decode_up_to(block, count)
    }

    /// Decodes the next key.
    fn decode_key(&mut self, rest: &mut &[u8]) -> Option<()> {
        let RelativeKey { shared, suffix } = RelativeKey::take(rest)?;
        let last = self.last_key();
        if shared > last.len() {
            return None;
        }
        self.keys
            .extend_from_within(last.start..last.start + shared);
        self.keys.extend_from_slice(suffix);
        self.key_ends.push(u32::try_from(self.keys.len()).ok()?);
        Some(())
    }

    /// Decodes the head of a group, and its entry if it has one only.
    fn open_group(&mut self, rest: &mut &[u8], end: usize) -> Option<()> {
        match GroupForm::from_head(varint::take(rest)?) {
            GroupForm::Piece => self.open_piece(rest, end)?,
            GroupForm::One { id, has_payload } => {
                self.decode_rest(rest, end, id, has_payload, 0)?
            }
            GroupForm::Rows(rows) => {
                self.group = OpenGroup {
                    rows,
                    ..OpenGroup::default()
                };
            }
        }
        Some(())
    }

    /// Decodes entries of the open group with ids from `first` on, until there are `slots` entries.
    fn decode_group(
        &mut self,
        rest: &mut &[u8],
        end: usize,
        slots: usize,
        first: RecordId,
    ) -> Option<()> {
        let OpenGroup { rows, mut id, .. } = self.group;
        let mut count = rows.count;
        while count > 0 && self.slots.len() < slots {
            count -= 1;
            id = RecordId(id.0.checked_add(varint::take(rest)?)?);
            let version = if rows.has_versions {
                varint::take(rest)?
            } else {
                0
            };
            if id >= first {
                self.decode_rest(rest, end, id, rows.has_payloads, version)?;
            } else if rows.has_payloads {
                take_payload(rest)?;
            }
        }
        (self.group.rows.count, self.group.id) = (count, id);
        Some(())
    }

    /// Skips the rest of the open group.
    fn skip_group(&mut self, rest: &mut &[u8]) -> Option<()> {
        let group = std::mem::take(&mut self.group);
        match group.piece {
            Some(_) => Some(()),
            None => group.rows.skip(rest),
        }
    }

    /// Decodes what follows the id and version of an entry.
    #[inline]
    fn decode_rest(
        &mut self,
        rest: &mut &[u8],
        end: usize,
        id: RecordId,
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
    fn push(&mut self, id: RecordId, version: u64, payload_start: u32, payload_length: u32) {
        let group = (self.key_ends.len() - 1) as u32;
        self.slots.push(DecodedEntry {
            id,
            version,
            group,
            payload_start,
            payload_length,
        });
    }

    /// Returns the key of a decoded group.
    fn key(&self, group: u32) -> &[u8] {
        let group = group as usize;
        let start = match group.checked_sub(1) {
            None => Some(&0),
            Some(before) => self.key_ends.get(before),
        };
        let ends = start.zip(self.key_ends.get(group));
        let found = ends.and_then(|(start, end)| self.keys.get(*start as usize..*end as usize));
        found.unwrap_or_else(|| not_decoded("key", group))
    }

    fn slot(&self, number: usize) -> &DecodedEntry {
        let slot = self.slots.get(number);
        slot.unwrap_or_else(|| not_decoded("entry", number))
    }

    /// Returns the entry with this index. `block` must be the decoded block.
    #[inline]
    pub fn get<'a>(&'a self, block: &'a [u8], number: usize) -> Option<Entry<'a>> {
        let slot = self.slots.get(number)?;
        let start = slot.payload_start as usize;
        Some(Entry {
            key: self.key(slot.group),
            id: slot.id,
            position: Position(slot.version >> 1),
            deleted: slot.version & 1 != 0,
            payload: match slot.payload_start & UNPACKED {
                0 => block.get(start..start + slot.payload_length as usize)?,
                _ => {
                    let start = (slot.payload_start & !UNPACKED) as usize;
                    let unpacked = self.unpacked.get(start..)?;
                    unpacked.get(..slot.payload_length as usize)?
                }
            },
        })
    }

    /// Returns the head of an entry's key as a number, see [`KeyHead::number`].
    #[inline]
    pub fn head(&self, number: usize) -> u128 {
        KeyHead::new(self.key(self.slot(number).group)).number()
    }

    /// Returns the range of an entry's payload in the block. `None` if the payload was unpacked.
    pub fn payload_range(&self, number: usize) -> Option<std::ops::Range<usize>> {
        let slot = self.slot(number);
        let start = slot.payload_start as usize;
        let range = start..start + slot.payload_length as usize;
        (slot.payload_start & UNPACKED == 0).then_some(range)
    }

    /// Returns the index of the first entry at or after an entry key.
    pub fn lower_bound(&self, key: &[u8], id: RecordId) -> usize {
        self.bound(key, id, Ordering::Less)
    }

    /// Returns the index of the first entry after an entry key.
    pub fn upper_bound(&self, key: &[u8], id: RecordId) -> usize {
        self.bound(key, id, Ordering::Equal)
    }

    fn bound(&self, key: &[u8], id: RecordId, before: Ordering) -> usize {
        self.slots.partition_point(|slot| {
            compare_keys(self.key(slot.group), key).then(slot.id.cmp(&id)) <= before
        })
    }
}

#[cold]
fn not_decoded(what: &str, number: usize) -> ! {
    panic!("{what} {number} of a restart interval was requested but is not decoded");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::BlockBuilder;

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
            id: RecordId(*id),
            position: Position(*position),
            deleted: *deleted,
            payload,
        }
    }

    fn build(entries: &[Plain]) -> Vec<u8> {
        let (mut builder, mut raw) = (BlockBuilder::default(), Vec::new());
        let mut last: Option<&Plain> = None;
        for plain in entries {
            builder
                .push(&entry(plain), last.is_none_or(|last| last.0 != plain.0))
                .unwrap();
            last = Some(plain);
        }
        builder.finish(&mut raw).unwrap();
        assert!(builder.is_empty());
        raw
    }

    #[test]
    fn entries_round_trip_in_order() {
        let (expected, mut interval) = (entries(), RestartInterval::default());
        let block = build(&expected);
        let intervals = BlockLayout::read(&block).unwrap().intervals();
        assert_eq!(intervals, 5);
        let mut found = Vec::new();
        for number in 0..intervals {
            interval.decode(&block, number).unwrap();
            for slot in 0..interval.len() {
                let entry = interval.get(&block, slot).unwrap();
                found.push((
                    entry.key.to_vec(),
                    entry.id.0,
                    entry.position.0,
                    entry.deleted,
                    entry.payload.to_vec(),
                ));
            }
        }
        assert_eq!(found, expected);
    }

    #[test]
    fn entries_are_found_through_restarts() {
        let (expected, mut interval) = (entries(), RestartInterval::default());
        let block = build(&expected);
        let layout = BlockLayout::read(&block).unwrap();
        for plain in &expected {
            interval
                .decode(
                    &block,
                    layout.interval_of(&plain.0, RecordId(plain.1)).unwrap(),
                )
                .unwrap();
            let found = interval
                .get(&block, interval.lower_bound(&plain.0, RecordId(plain.1)))
                .unwrap();
            assert!(found.same_entry(&entry(plain)));
        }
        assert_eq!(layout.interval_of(b"", RecordId::MIN), Some(0));
        assert_eq!(layout.interval_of(b"z", RecordId::MIN), Some(4));
    }

    #[test]
    fn decoding_from_any_entry_returns_what_follows() {
        let mut expected = entries();
        // A key with many entries, some of them in a group of their own.
        expected.extend((0..2000).map(|id| (b"many".to_vec(), 3 * id, 0, false, Vec::new())));
        expected.extend((0..40).map(|n| (format!("z{n}").into_bytes(), n, 0, false, Vec::new())));
        expected.sort_by(|one, other| (&one.0, one.1).cmp(&(&other.0, other.1)));
        let block = build(&expected);
        let layout = BlockLayout::read(&block).unwrap();
        let follow = |interval: &mut RestartInterval| {
            let mut found = Vec::new();
            loop {
                let decoded = (0..interval.len()).filter_map(|at| interval.get(&block, at));
                found.extend(decoded.map(|entry| (entry.key.to_vec(), entry.id, entry.position)));
                if !interval.decode_next(&block).unwrap() {
                    return found;
                }
            }
        };
        let (mut interval, mut whole) = (RestartInterval::default(), RestartInterval::default());
        for plain in expected.iter().step_by(3) {
            for id in [plain.1, plain.1 + 1, 0] {
                let (key, id) = (&plain.0, RecordId(id));
                let number = layout.interval_of(key, id).unwrap();
                whole.decode(&block, number).unwrap();
                let decoded = (0..whole.len()).filter_map(|at| whole.get(&block, at));
                let from = decoded.filter(|entry| entry.entry_key() >= EntryKey::new(key, id));
                let from: Vec<_> = from
                    .map(|entry| (entry.key.to_vec(), entry.id, entry.position))
                    .collect();
                interval.decode_from(&block, number, key, id).unwrap();
                assert!(interval.len() <= ENTRIES_AHEAD + 1);
                assert_eq!(follow(&mut interval), from);
                // The same from an earlier entry key of the same interval.
                let first = expected.iter().find(|one| {
                    layout.interval_of(&one.0, RecordId(one.1)) == Some(number) && one.0.len() == 6
                });
                if let Some(first) = first.filter(|first| (&first.0, RecordId(first.1)) < (key, id))
                {
                    interval
                        .decode_from(&block, number, &first.0, RecordId(first.1))
                        .unwrap();
                    if interval.continue_from(&block, key, id).is_some() {
                        assert_eq!(follow(&mut interval), from);
                    }
                }
            }
        }
    }

    /// Documents have one key, the empty one. A block of them can be entered in the middle
    /// nevertheless.
    #[test]
    fn one_key_has_restarts() {
        let document = |id: u64| (Vec::new(), id, 0, false, vec![id as u8; 250]);
        let expected: Vec<Plain> = (0..100).map(document).collect();
        let (block, mut interval) = (build(&expected), RestartInterval::default());
        let layout = BlockLayout::read(&block).unwrap();
        assert_eq!(layout.intervals(), 12);
        for plain in &expected {
            let number = layout.interval_of(b"", RecordId(plain.1)).unwrap();
            interval.decode(&block, number).unwrap();
            assert!(interval.len() < 10);
            let found = interval.get(&block, interval.lower_bound(b"", RecordId(plain.1)));
            assert_eq!(found, Some(entry(plain)));
        }
    }

    #[test]
    fn damaged_blocks_do_not_panic() {
        let block = build(&entries()[..40]);
        let mut interval = RestartInterval::default();
        for at in 0..block.len() {
            for flip in [0x01, 0x80, 0xFF] {
                let mut damaged = block.clone();
                damaged[at] ^= flip;
                for number in 0..4 {
                    if interval.decode(&damaged, number).is_some() {
                        let _ = (0..interval.len())
                            .filter_map(|slot| interval.get(&damaged, slot))
                            .count();
                    }
                }
                if let Some(layout) = BlockLayout::read(&damaged) {
                    let _ = layout.interval_of(b"key005", RecordId(15));
                }
            }
        }
    }
}
