//! Reading blocks, whose bytes `block` describes: where one can be entered, and the entries from there on.
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)
)]

use std::cmp::Ordering;

use windrow_postings::payload::put_position_step;
use windrow_postings::{GROUP, LengthsPage, PAGE_IDS, Piece, Positions, PositionsReader, Posting};
use windrow_storage::Block;

use crate::block::{LONE, LONE_WITH_PAYLOAD, LONG, PIECE, PLAIN};
use crate::entry::{Entry, KeyHead, compare_keys};
use crate::varint;

/// So many entries are decoded at once where only some may be read.
const ENTRIES_AHEAD: usize = 16;

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

    /// Where the groups end.
    pub(crate) fn groups_end(&self) -> usize {
        self.groups.len()
    }

    /// Where a stretch begins.
    pub(crate) fn restart(&self, stretch: usize) -> Option<usize> {
        let bytes = self.restarts.get(4 * stretch..)?.first_chunk::<4>()?;
        Some(u32::from_le_bytes(*bytes) as usize)
    }

    /// The bytes of a stretch.
    pub(crate) fn stretch(&self, stretch: usize) -> Option<&'a [u8]> {
        let start = self.restart(stretch)?;
        match self.restart(stretch + 1) {
            Some(end) => self.groups.get(start..end),
            None => self.groups.get(start..),
        }
    }

    /// The key and the piece of packed postings with which a stretch begins. `Some(None)` if it begins
    /// otherwise, `None` if the block is damaged.
    pub(crate) fn piece_of(&self, stretch: usize) -> Option<Option<(&'a [u8], Piece<'a>)>> {
        let mut bytes = self.stretch(stretch)?;
        let (_, length) = take_lengths(&mut bytes)?;
        let key = varint::take_bytes(&mut bytes, length)?;
        if varint::take(&mut bytes)? != PIECE {
            return Some(None);
        }
        let length = varint::take(&mut bytes)?;
        let piece = Piece::read(varint::take_bytes(&mut bytes, length)?)?;
        Some(Some((key, piece)))
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
    let id = match (head, head & 3) {
        (PIECE, _) => {
            let length = varint::take(&mut bytes)?;
            Piece::read(varint::take_bytes(&mut bytes, length)?)?.first_id()
        }
        (_, LONE | LONE_WITH_PAYLOAD) => head >> 2,
        _ => varint::take(&mut bytes)?,
    };
    Some((key, id))
}

/// A stretch of a block, decoded as far as it is read. Recycled from stretch to stretch.
#[derive(Debug, Default)]
pub struct Stretch {
    keys: Vec<u8>,
    key_ends: Vec<u32>,
    slots: Vec<Slot>,
    /// The bytes of the block that are not decoded yet.
    left: std::ops::Range<usize>,
    /// The last key's group, as far as it is not decoded yet.
    group: Rest,
    /// The payloads of packed postings.
    unpacked: Vec<u8>,
    beside: Beside,
    positions: PositionsReader,
}

/// What stands beside a piece of packed postings: parts of its payloads.
#[derive(Clone, Debug, Default)]
pub(crate) struct Beside {
    /// The positions of the block.
    pub positions: Option<Block>,
    /// Pages of field lengths, by their numbers.
    pub lengths: Vec<(u64, Block)>,
}

impl Beside {
    /// The length of a record's field. None if it does not stand here.
    fn length(&self, id: u64) -> Option<u32> {
        let page = id / PAGE_IDS;
        let (_, block) = self.lengths.iter().find(|(number, _)| *number == page)?;
        LengthsPage::read(block)?.get(id)
    }
}

/// What is left of a group of several entries.
#[derive(Clone, Copy, Debug, Default)]
struct Rest {
    count: u64,
    /// The last one's.
    id: u64,
    payloads: bool,
    versions: bool,
    /// Where the piece ends in the block and how long it is, if the group is one. Then `count` is what is
    /// left of its postings.
    piece: Option<(usize, usize)>,
}

/// An entry of a stretch; the payload stands at these bytes of the block, or of what was unpacked.
#[derive(Clone, Copy, Debug)]
struct Slot {
    id: u64,
    version: u64,
    group: u32,
    payload_start: u32,
    payload_length: u32,
}

/// In the start of a payload: it was unpacked.
const UNPACKED: u32 = 1 << 31;

impl Stretch {
    /// Sets what stands beside the stretch that is decoded next.
    pub(crate) fn set_beside(&mut self, beside: Beside) {
        self.beside = beside;
        self.positions.clear();
    }

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
        self.unpacked.clear();
        (self.left, self.group) = (0..0, Rest::default());
    }

    /// Decodes a stretch of a block in place of what was there. None where the bytes are damaged.
    pub fn decode(&mut self, block: &[u8], number: usize) -> Option<()> {
        self.enter(block, number)?;
        self.decode_up_to(block, usize::MAX)
    }

    /// Decodes from a place on, and no more than is likely to be read: [`decode_next`](Self::decode_next)
    /// goes on.
    pub fn decode_from(&mut self, block: &[u8], number: usize, key: &[u8], id: u64) -> Option<()> {
        self.enter(block, number)?;
        self.skip_to(block, key, id)
    }

    /// As [`decode_from`](Self::decode_from) in the stretch that is open; None, too, where the place may
    /// lie before what is left of it.
    pub fn go_on_from(&mut self, block: &[u8], key: &[u8], id: u64) -> Option<()> {
        let last = self.slots.last()?;
        let is_behind = compare_keys(self.key(last.group), key)
            .then(last.id.cmp(&id))
            .is_lt();
        if !is_behind || self.is_decoded() {
            return None;
        }
        self.forget_read();
        self.skip_to(block, key, id)
    }

    /// Decodes what comes next; false at the stretch's end.
    pub fn decode_next(&mut self, block: &[u8]) -> Option<bool> {
        if self.is_decoded() {
            return Some(false);
        }
        self.forget_read();
        self.decode_up_to(block, ENTRIES_AHEAD)?;
        Some(true)
    }

    fn is_decoded(&self) -> bool {
        self.left.is_empty() && self.group.count == 0
    }

    fn enter(&mut self, block: &[u8], number: usize) -> Option<()> {
        self.clear();
        let layout = Layout::read(block)?;
        let stretch = layout.stretch(number)?;
        let start = layout.restart(number)?;
        self.left = start..start + stretch.len();
        Some(())
    }

    /// Forgets all but the last key, which the next one may share bytes with.
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

    /// Decodes until there are so many entries, or the stretch ends.
    fn decode_up_to(&mut self, block: &[u8], count: usize) -> Option<()> {
        let end = self.left.end;
        let mut rest = block.get(self.left.clone())?;
        while self.slots.len() < count {
            if self.group.piece.is_some() {
                self.decode_piece(block, count, 0)?;
            } else if self.group.count > 0 {
                self.decode_group(&mut rest, end, count, 0)?;
            } else if rest.is_empty() {
                break;
            } else {
                self.decode_key(&mut rest)?;
                self.open_group(&mut rest, end)?;
            }
        }
        self.left.start = end - rest.len();
        Some(())
    }

    /// Goes past what is before a place, and decodes some of what follows.
    fn skip_to(&mut self, block: &[u8], key: &[u8], id: u64) -> Option<()> {
        let end = self.left.end;
        let mut rest = block.get(self.left.clone())?;
        loop {
            if self.group.count == 0 {
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
                        Some(_) => self.decode_piece(block, ENTRIES_AHEAD, id)?,
                        None => self.decode_group(&mut rest, end, ENTRIES_AHEAD, id)?,
                    }
                }
                Ordering::Greater => break,
            }
            if !self.slots.is_empty() {
                break;
            }
        }
        self.left.start = end - rest.len();
        self.decode_up_to(block, ENTRIES_AHEAD)
    }

    /// Puts the next key behind the last one.
    fn decode_key(&mut self, rest: &mut &[u8]) -> Option<()> {
        let (shared, length) = take_lengths(rest)?;
        let suffix = varint::take_bytes(rest, length)?;
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

    /// Decodes the head of a group, and its entry where it has but one.
    fn open_group(&mut self, rest: &mut &[u8], end: usize) -> Option<()> {
        let head = varint::take(rest)?;
        if head == PIECE {
            return self.open_piece(rest, end);
        }
        let (count, payloads, versions) = match head & 3 {
            LONE => {
                self.push(head >> 2, 0, 0, 0);
                return Some(());
            }
            LONE_WITH_PAYLOAD => return self.decode_rest(rest, end, head >> 2, true, 0),
            PLAIN => (head >> 2, false, false),
            _ => (head >> 4, head & 8 != 0, head & 4 != 0),
        };
        self.group = Rest {
            count,
            id: 0,
            payloads,
            versions,
            piece: None,
        };
        Some(())
    }

    fn open_piece(&mut self, rest: &mut &[u8], end: usize) -> Option<()> {
        let length = varint::take(rest)?;
        let bytes = varint::take_bytes(rest, length)?;
        self.group = Rest {
            count: Piece::read(bytes)?.len() as u64,
            piece: Some((end - rest.len(), bytes.len())),
            ..Rest::default()
        };
        Some(())
    }

    /// Unpacks postings of the open piece with ids from this one on, until there are so many entries:
    /// group by group.
    fn decode_piece(&mut self, block: &[u8], slots: usize, first: u64) -> Option<()> {
        let (end, length) = self.group.piece?;
        let piece = Piece::read(block.get(end - length..end)?)?;
        let done = piece.len().checked_sub(self.group.count as usize)? / GROUP;
        let mut next = piece.group_of(first, done).unwrap_or(piece.groups());
        while next < piece.groups() && self.slots.len() < slots {
            self.unpack(&piece, next)?;
            next += 1;
            // Only the first group can have ids before this one.
            self.slots.retain(|slot| slot.id >= first);
        }
        self.group.count = ((piece.groups() - next) * GROUP) as u64;
        if self.group.count == 0 {
            self.group = Rest::default();
        }
        Some(())
    }

    /// Unpacks a group of postings into payloads.
    fn unpack(&mut self, piece: &Piece<'_>, number: usize) -> Option<()> {
        let group = piece.group(number)?;
        let (mut ids, mut frequencies) = ([0; GROUP], [0; GROUP]);
        let (mut lengths, mut scores) = ([0; GROUP], [None; GROUP]);
        group.ids(&mut ids)?;
        group.frequencies(&mut frequencies)?;
        if !group.lengths(&mut lengths)? {
            for (length, id) in lengths.iter_mut().zip(&ids) {
                *length = self.beside.length(*id)?;
            }
        }
        for (number, score) in group.scores()? {
            *scores.get_mut(number)? = Some(score);
        }
        let positions = self.beside.positions.clone();
        let positions = piece.positions_start().zip(positions.as_ref());
        let positions = match positions {
            Some((start, block)) => Some(Positions::read(block.get(start as usize..)?)?),
            None if piece.positions_start().is_some() => return None,
            None => None,
        };
        let (mut next, mut steps, mut encoded) = (group.positions_before(), Vec::new(), Vec::new());
        let numbers = frequencies.into_iter().zip(lengths).zip(scores);
        for (id, ((frequency, length), score)) in ids.into_iter().zip(numbers) {
            encoded.clear();
            if let Some(positions) = &positions {
                steps.clear();
                self.positions
                    .steps(positions, next, frequency, &mut steps)?;
                steps
                    .iter()
                    .for_each(|step| put_position_step(&mut encoded, *step));
                next = next.checked_add(frequency)?;
            }
            let start = self.unpacked.len() as u32;
            let posting = Posting {
                frequency: frequency.clamp(1, windrow_postings::payload::FREQUENCY_MAX),
                length,
                score,
                positions: &encoded,
            };
            posting.write(&mut self.unpacked);
            let written = self.unpacked.len() as u32 - start;
            self.push(id, 0, start | UNPACKED, written);
        }
        Some(())
    }

    /// Decodes entries of the open group with ids from this one on, until there are so many.
    fn decode_group(
        &mut self,
        rest: &mut &[u8],
        end: usize,
        slots: usize,
        first: u64,
    ) -> Option<()> {
        let Rest {
            mut count,
            mut id,
            payloads,
            versions,
            ..
        } = self.group;
        while count > 0 && self.slots.len() < slots {
            count -= 1;
            id = id.checked_add(varint::take(rest)?)?;
            let version = if versions { varint::take(rest)? } else { 0 };
            self.decode_rest(rest, end, id, payloads, version)?;
            if id < first {
                self.slots.pop();
            }
        }
        (self.group.count, self.group.id) = (count, id);
        Some(())
    }

    /// Goes past what is left of the open group.
    fn skip_group(&mut self, rest: &mut &[u8]) -> Option<()> {
        let group = std::mem::take(&mut self.group);
        if group.piece.is_some() {
            return Some(());
        }
        if !group.payloads {
            let numbers = group.count.checked_mul(1 + u64::from(group.versions))?;
            return varint::skip(rest, numbers);
        }
        for _ in 0..group.count {
            varint::skip(rest, 1 + u64::from(group.versions))?;
            let length = varint::take(rest)?;
            varint::take_bytes(rest, length)?;
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

    /// The key of a group that was decoded.
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

    fn slot(&self, number: usize) -> &Slot {
        let slot = self.slots.get(number);
        slot.unwrap_or_else(|| not_decoded("entry", number))
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

    /// The first bytes of an entry's key: see [`KeyHead::number`].
    #[inline]
    pub fn head(&self, number: usize) -> u128 {
        KeyHead::of(self.key(self.slot(number).group)).number()
    }

    /// Where in the block the payload of an entry stands. None if it was unpacked.
    pub fn payload_range(&self, number: usize) -> Option<std::ops::Range<usize>> {
        let slot = self.slot(number);
        let start = slot.payload_start as usize;
        let range = start..start + slot.payload_length as usize;
        (slot.payload_start & UNPACKED == 0).then_some(range)
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

#[cold]
fn not_decoded(what: &str, number: usize) -> ! {
    panic!("{what} {number} of a stretch is asked for, and was not decoded");
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

    #[test]
    fn from_every_place_the_same_entries_follow() {
        let mut expected = entries();
        // A key with many entries, some of them in a group of their own.
        expected.extend((0..2000).map(|id| (b"many".to_vec(), 3 * id, 0, false, Vec::new())));
        expected.extend((0..40).map(|n| (format!("z{n}").into_bytes(), n, 0, false, Vec::new())));
        expected.sort_by(|one, other| (&one.0, one.1).cmp(&(&other.0, other.1)));
        let block = build(&expected);
        let layout = Layout::read(&block).unwrap();
        let follow = |stretch: &mut Stretch| {
            let mut found = Vec::new();
            loop {
                let decoded = (0..stretch.len()).filter_map(|at| stretch.get(&block, at));
                found.extend(decoded.map(|entry| (entry.key.to_vec(), entry.id, entry.position)));
                if !stretch.decode_next(&block).unwrap() {
                    return found;
                }
            }
        };
        let (mut stretch, mut whole) = (Stretch::default(), Stretch::default());
        for plain in expected.iter().step_by(3) {
            for (key, id) in [(&plain.0, plain.1), (&plain.0, plain.1 + 1), (&plain.0, 0)] {
                let number = layout.stretch_of(key, id).unwrap();
                whole.decode(&block, number).unwrap();
                let decoded = (0..whole.len()).filter_map(|at| whole.get(&block, at));
                let from = decoded.filter(|entry| (entry.key, entry.id) >= (key, id));
                let from: Vec<_> = from
                    .map(|entry| (entry.key.to_vec(), entry.id, entry.position))
                    .collect();
                stretch.decode_from(&block, number, key, id).unwrap();
                assert!(stretch.len() <= ENTRIES_AHEAD + 1);
                assert_eq!(follow(&mut stretch), from);
                // The same from a place before it in the same stretch.
                let first = expected.iter().find(|one| {
                    layout.stretch_of(&one.0, one.1) == Some(number) && one.0.len() == 6
                });
                if let Some(first) = first.filter(|first| (&first.0, first.1) < (key, id)) {
                    stretch
                        .decode_from(&block, number, &first.0, first.1)
                        .unwrap();
                    if stretch.go_on_from(&block, key, id).is_some() {
                        assert_eq!(follow(&mut stretch), from);
                    }
                }
            }
        }
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
