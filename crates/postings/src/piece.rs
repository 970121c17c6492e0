//! Pieces: the packed encoding of many postings of one term.
//!
//! ```text
//! piece     groups u8 | first id u64 LE | start of its positions u32 LE | record* | body*
//! record    last id - first id u32 LE | end of the body u16 LE | positions before u32 LE
//!           | impacts: 2 × (frequency u8, length u8) | bits of ids u8 | bits of frequencies u8
//! body      ids - first id, packed differences | frequencies - 1, packed
//!           | 1 + bits of lengths u8, or 0 if the lengths are shared | lengths, packed
//!           | count of scores u8 | (index in the group u8, score f64 LE)*
//! ```
//! A group is 128 postings. Lengths are shared if readers find them by the record id, see
//! [`lengths`](crate::lengths). All bodies together take at most 64 KB.

use crate::bits::{self, Numbers, packed_bytes};
use crate::impact::{Impact, bounds};
use crate::payload::Posting;

/// The number of postings in a group.
pub const GROUP: usize = bits::COUNT;
/// The greatest number of groups in a piece.
pub const GROUPS_MAX: usize = 16;

const HEAD_BYTES: usize = 13;
const RECORD_BYTES: usize = 16;

/// The start of the positions of a piece without positions.
const NO_POSITIONS: u32 = u32::MAX;

/// Writes a piece.
#[derive(Debug, Default)]
pub struct PieceWriter {
    first_id: Option<u64>,
    last_offset: Option<u32>,
    records: Vec<u8>,
    bodies: Vec<u8>,
    groups: u8,
    positions: u32,
}

/// A posting and its record.
#[derive(Clone, Copy, Debug)]
pub struct RecordPosting<'a> {
    /// The record id.
    pub id: u64,
    /// The posting.
    pub posting: Posting<'a>,
}

impl PieceWriter {
    /// Returns `true` if these postings can be added as the next group: the piece has room, and the
    /// ids are less than 2^32 after the first one.
    pub fn has_room(&self, postings: &[RecordPosting<'_>]) -> bool {
        let ends = postings.first().zip(postings.last());
        let first = self.first_id.or(ends.map(|(first, _)| first.id));
        let is_near = ends.zip(first).is_some_and(|((_, last), first)| {
            last.id
                .checked_sub(first)
                .is_some_and(|span| u32::try_from(span).is_ok())
        });
        usize::from(self.groups) < GROUPS_MAX && postings.len() == GROUP && is_near
    }

    /// Returns `true` if there are no groups.
    pub fn is_empty(&self) -> bool {
        self.groups == 0
    }

    /// Adds a group: 128 postings with increasing ids, for which there must be
    /// [room](Self::has_room). `has_shared_length` returns `true` if readers find the field length
    /// of the posting by its id.
    pub fn push(
        &mut self,
        postings: &[RecordPosting<'_>],
        mut has_shared_length: impl FnMut(&RecordPosting<'_>) -> bool,
    ) {
        debug_assert!(self.has_room(postings), "a group without room");
        let Some(first) = postings.first() else {
            return;
        };
        let first_id = *self.first_id.get_or_insert(first.id);
        let mut offsets: Numbers = [0; GROUP];
        let mut frequencies: Numbers = [0; GROUP];
        let mut lengths: Numbers = [0; GROUP];
        let mut are_shared = true;
        let slots = offsets.iter_mut().zip(&mut frequencies).zip(&mut lengths);
        for (packed, ((offset, frequency), length)) in postings.iter().zip(slots) {
            *offset = packed.id.wrapping_sub(first_id) as u32;
            *frequency = packed.posting.frequency.wrapping_sub(1);
            *length = packed.posting.length;
            are_shared &= has_shared_length(packed);
        }
        let id_bits = bits::pack_increasing(self.last_offset, &offsets, &mut self.bodies);
        let frequency_bits = bits::pack(&frequencies, &mut self.bodies);
        let place = self.bodies.len();
        self.bodies.push(0);
        if !are_shared {
            // Lengths that are all 0 take no bits. The 1 distinguishes them from shared lengths.
            let bits = bits::pack(&lengths, &mut self.bodies);
            if let Some(slot) = self.bodies.get_mut(place) {
                *slot = bits + 1;
            }
        }
        self.put_scores(postings);
        self.put_record(postings, offsets.last().copied(), [id_bits, frequency_bits]);
        self.last_offset = offsets.last().copied();
        self.groups += 1;
    }

    fn put_scores(&mut self, postings: &[RecordPosting<'_>]) {
        let scores = postings.iter().zip(0u8..);
        let scores = scores.filter_map(|(packed, number)| Some((number, packed.posting.score?)));
        self.bodies.push(scores.clone().count() as u8);
        for (number, score) in scores {
            self.bodies.push(number);
            self.bodies.extend_from_slice(&score.to_le_bytes());
        }
    }

    fn put_record(&mut self, postings: &[RecordPosting<'_>], last: Option<u32>, bits: [u8; 2]) {
        let impacts = postings.iter().map(|packed| {
            let Posting {
                frequency, length, ..
            } = packed.posting;
            Impact::new(frequency, length)
        });
        self.records
            .extend_from_slice(&last.unwrap_or(0).to_le_bytes());
        let end = self.bodies.len() as u16;
        self.records.extend_from_slice(&end.to_le_bytes());
        self.records
            .extend_from_slice(&self.positions.to_le_bytes());
        for impact in bounds(impacts) {
            self.records
                .extend_from_slice(&[impact.frequency, impact.length]);
        }
        self.records.extend_from_slice(&bits);
        for packed in postings {
            if !packed.posting.positions.is_empty() {
                self.positions += packed.posting.frequency;
            }
        }
    }

    /// Appends the piece. `positions_start` is the start of its positions, if it has any. The
    /// writer is empty afterwards.
    pub fn finish(&mut self, positions_start: Option<u32>, bytes: &mut Vec<u8>) {
        bytes.push(self.groups);
        bytes.extend_from_slice(&self.first_id.unwrap_or(0).to_le_bytes());
        bytes.extend_from_slice(&positions_start.unwrap_or(NO_POSITIONS).to_le_bytes());
        bytes.extend_from_slice(&self.records);
        bytes.extend_from_slice(&self.bodies);
        self.records.clear();
        self.bodies.clear();
        (self.first_id, self.last_offset) = (None, None);
        (self.groups, self.positions) = (0, 0);
    }
}

/// An encoded piece.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'a> {
    first_id: u64,
    positions_start: u32,
    records: &'a [[u8; RECORD_BYTES]],
    bodies: &'a [u8],
}

impl<'a> Piece<'a> {
    /// Reads a piece. Returns `None` if its head or its records are damaged.
    #[inline]
    pub fn read(bytes: &'a [u8]) -> Option<Piece<'a>> {
        let (head, rest) = bytes.split_first_chunk::<HEAD_BYTES>()?;
        let [groups, numbers @ ..] = head;
        let (first_id, start) = numbers.split_first_chunk::<8>()?;
        let count = usize::from(*groups);
        if !(1..=GROUPS_MAX).contains(&count) {
            return None;
        }
        let (records, bodies) = rest.split_at_checked(count * RECORD_BYTES)?;
        Some(Piece {
            first_id: u64::from_le_bytes(*first_id),
            positions_start: u32::from_le_bytes(start.try_into().ok()?),
            records: records.as_chunks().0,
            bodies,
        })
    }

    /// Returns the number of groups.
    pub fn groups(&self) -> usize {
        self.records.len()
    }

    /// Returns the number of postings.
    pub fn len(&self) -> usize {
        self.records.len() * GROUP
    }

    /// Returns `false`: a piece has at least one group.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Returns the smallest record id.
    pub fn first_id(&self) -> u64 {
        self.first_id
    }

    /// Returns the greatest record id.
    pub fn last_id(&self) -> u64 {
        self.records
            .last()
            .map_or(self.first_id, |record| self.id_of(record))
    }

    /// Returns the start of the positions of the piece, if it has any.
    pub fn positions_start(&self) -> Option<u32> {
        (self.positions_start != NO_POSITIONS).then_some(self.positions_start)
    }

    fn id_of(&self, record: &[u8; RECORD_BYTES]) -> u64 {
        self.first_id.saturating_add(u64::from(number(record, 0)))
    }

    /// Returns the last id of a group.
    #[inline]
    pub fn last_id_of(&self, group: usize) -> Option<u64> {
        Some(self.id_of(self.records.get(group)?))
    }

    /// Returns the first group from `from` on whose last id is `id` or greater. Returns `None` if
    /// there is none.
    #[inline]
    pub fn group_of(&self, id: u64, from: usize) -> Option<usize> {
        let offset = id.saturating_sub(self.first_id);
        let records = self.records.get(from..)?;
        let before = records
            .iter()
            .position(|record| u64::from(number(record, 0)) >= offset)?;
        Some(from + before)
    }

    /// Returns the impacts that bound a group. The second may have no frequency.
    #[inline]
    pub fn impacts(&self, group: usize) -> Option<[Impact; 2]> {
        let record = self.records.get(group)?;
        let [one, two, three, four] = *record.get(10..)?.first_chunk::<4>()?;
        let impact = |frequency, length| Impact { frequency, length };
        Some([impact(one, two), impact(three, four)])
    }

    /// Returns a group. Returns `None` if there is no such group or it is damaged.
    #[inline]
    pub fn group(&self, group: usize) -> Option<Group<'a>> {
        let record = self.records.get(group)?;
        let (start, before) = match group.checked_sub(1) {
            None => (0, None),
            Some(previous) => {
                let previous = self.records.get(previous)?;
                (body_end(previous)?, Some(number(previous, 0)))
            }
        };
        let [.., id_bits, frequency_bits] = *record;
        Some(Group {
            first_id: self.first_id,
            before,
            positions_before: number(record, 6),
            id_bits,
            frequency_bits,
            body: self.bodies.get(start..body_end(record)?)?,
        })
    }
}

fn number(record: &[u8; RECORD_BYTES], at: usize) -> u32 {
    let bytes = record.get(at..).and_then(<[u8]>::first_chunk);
    bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

fn body_end(record: &[u8; RECORD_BYTES]) -> Option<usize> {
    let bytes = record.get(4..)?.first_chunk()?;
    Some(usize::from(u16::from_le_bytes(*bytes)))
}

/// A group of 128 postings.
#[derive(Clone, Copy, Debug)]
pub struct Group<'a> {
    first_id: u64,
    /// The last id of the previous group minus the first id of the piece.
    before: Option<u32>,
    positions_before: u32,
    id_bits: u8,
    frequency_bits: u8,
    body: &'a [u8],
}

impl<'a> Group<'a> {
    /// Unpacks the ids. Returns `None` if the group is damaged.
    #[inline]
    pub fn ids(&self, ids: &mut [u64; GROUP]) -> Option<()> {
        let mut offsets: Numbers = [0; GROUP];
        bits::unpack_increasing(self.body, self.id_bits, self.before, &mut offsets)?;
        for (id, offset) in ids.iter_mut().zip(offsets) {
            *id = self.first_id.wrapping_add(u64::from(offset));
        }
        Some(())
    }

    /// Unpacks the frequencies. Returns `None` if the group is damaged.
    #[inline]
    pub fn frequencies(&self, frequencies: &mut Numbers) -> Option<()> {
        let packed = self.body.get(packed_bytes(self.id_bits)..)?;
        bits::unpack(packed, self.frequency_bits, frequencies)?;
        for frequency in frequencies {
            *frequency = frequency.wrapping_add(1);
        }
        Some(())
    }

    fn rest(&self) -> Option<&'a [u8]> {
        let numbers = packed_bytes(self.id_bits) + packed_bytes(self.frequency_bits);
        self.body.get(numbers..)
    }

    /// Unpacks the field lengths. Returns `Some(false)` if they are shared and not in the piece,
    /// and `None` if the group is damaged.
    #[inline]
    pub fn lengths(&self, lengths: &mut Numbers) -> Option<bool> {
        let (&bits, rest) = self.rest()?.split_first()?;
        let Some(bits) = bits.checked_sub(1) else {
            return Some(false);
        };
        bits::unpack(rest, bits, lengths)?;
        Some(true)
    }

    /// Returns the stored scores, each with the index of its posting in the group. Returns `None`
    /// if the group is damaged.
    #[inline]
    pub fn scores(&self) -> Option<impl Iterator<Item = (usize, f64)> + use<'a>> {
        let (&bits, rest) = self.rest()?.split_first()?;
        let lengths = bits.checked_sub(1).map_or(0, packed_bytes);
        let (&count, rest) = rest.get(lengths..)?.split_first()?;
        let rest = rest.get(..usize::from(count) * SCORE_BYTES)?;
        Some(rest.as_chunks::<SCORE_BYTES>().0.iter().map(|chunk| {
            let [number, score @ ..] = *chunk;
            (usize::from(number), f64::from_le_bytes(score))
        }))
    }

    /// Returns the number of positions of the piece that belong to the groups before this one.
    pub fn positions_before(&self) -> u32 {
        self.positions_before
    }
}

const SCORE_BYTES: usize = 9;

#[cfg(test)]
mod tests {
    use super::*;

    /// Postings with gaps and frequencies of that size.
    fn postings(groups: usize, gap: u64, frequency: u32) -> Vec<RecordPosting<'static>> {
        let mut id = 1 << 40;
        let packed = |number: u64| {
            id += 1 + number * 7919 % gap;
            RecordPosting {
                id,
                posting: Posting {
                    frequency: 1 + (number as u32 * 31) % frequency,
                    length: 10 + (number as u32 * 17) % 300,
                    score: number.is_multiple_of(50).then_some(number as f64 / 8.0),
                    positions: b"\x01",
                },
            }
        };
        (0..(groups * GROUP) as u64).map(packed).collect()
    }

    fn write(postings: &[RecordPosting<'_>], is_shared: bool) -> Vec<u8> {
        let (mut writer, mut bytes) = (PieceWriter::default(), Vec::new());
        for group in postings.chunks(GROUP) {
            assert!(writer.has_room(group));
            writer.push(group, |_| is_shared);
        }
        writer.finish(Some(77), &mut bytes);
        assert!(writer.is_empty());
        bytes
    }

    fn check(postings: &[RecordPosting<'_>], is_shared: bool) {
        let bytes = write(postings, is_shared);
        let piece = Piece::read(&bytes).unwrap();
        assert_eq!(piece.len(), postings.len());
        assert_eq!(piece.first_id(), postings[0].id);
        assert_eq!(piece.last_id(), postings.last().unwrap().id);
        assert_eq!(piece.positions_start(), Some(77));
        let mut positions = 0;
        for (number, expected) in postings.chunks(GROUP).enumerate() {
            let group = piece.group(number).unwrap();
            let (mut ids, mut numbers) = ([0; GROUP], [0; GROUP]);
            group.ids(&mut ids).unwrap();
            assert!(ids.iter().eq(expected.iter().map(|one| &one.id)));
            group.frequencies(&mut numbers).unwrap();
            let frequencies = expected.iter().map(|one| one.posting.frequency);
            assert!(numbers.into_iter().eq(frequencies));
            assert_eq!(group.lengths(&mut numbers), Some(!is_shared));
            if !is_shared {
                let lengths = expected.iter().map(|one| one.posting.length);
                assert!(numbers.into_iter().eq(lengths));
            }
            let scores = expected.iter().enumerate();
            let scores = scores.filter_map(|(at, one)| Some((at, one.posting.score?)));
            assert!(group.scores().unwrap().eq(scores));
            assert_eq!(group.positions_before(), positions);
            positions += expected
                .iter()
                .map(|one| one.posting.frequency)
                .sum::<u32>();
            let impacts = piece.impacts(number).unwrap();
            for one in expected {
                let own = Impact::new(one.posting.frequency, one.posting.length);
                let covers = |it: &Impact| it.frequency >= own.frequency && it.length <= own.length;
                assert!(impacts.iter().any(covers), "{impacts:?} {own:?}");
            }
            for one in expected {
                assert_eq!(piece.group_of(one.id, 0), Some(number));
            }
        }
        assert_eq!(piece.group_of(piece.last_id() + 1, 0), None);
    }

    #[test]
    fn postings_are_read_as_packed() {
        for (gap, frequency) in [(1, 1), (3, 2), (1_000, 9), (100_000, 70_000)] {
            for groups in [1, 2, GROUPS_MAX] {
                let postings = postings(groups, gap, frequency);
                check(&postings, true);
                check(&postings, false);
            }
        }
    }

    #[test]
    fn ids_that_follow_each_other_take_no_bits() {
        let bytes = write(&postings(4, 1, 1), true);
        assert!(bytes.len() < 4 * 48 + HEAD_BYTES, "{}", bytes.len());
    }

    #[test]
    fn a_piece_has_no_room_for_far_ids_or_too_many_groups() {
        let mut writer = PieceWriter::default();
        let first = postings(1, 3, 1);
        assert!(!writer.has_room(&first[1..]));
        writer.push(&first, |_| true);
        let mut far = first.clone();
        far.iter_mut().for_each(|one| one.id += 1 << 32);
        assert!(!writer.has_room(&far));
        for number in 1..GROUPS_MAX as u64 {
            let mut next = first.clone();
            next.iter_mut().for_each(|one| one.id += number << 12);
            assert!(writer.has_room(&next));
            writer.push(&next, |_| true);
        }
        let mut next = first.clone();
        next.iter_mut().for_each(|one| one.id += 17 << 12);
        assert!(!writer.has_room(&next));
    }

    #[test]
    fn damaged_pieces_do_no_harm() {
        let bytes = write(&postings(3, 50, 4), false);
        let read = |bytes: &[u8]| -> Option<()> {
            let piece = Piece::read(bytes)?;
            for number in 0..piece.groups() {
                piece.impacts(number)?;
                let group = piece.group(number)?;
                group.ids(&mut [0; GROUP])?;
                group.frequencies(&mut [0; GROUP])?;
                group.lengths(&mut [0; GROUP])?;
                group.scores()?.count();
            }
            Some(())
        };
        assert!(read(&bytes).is_some());
        for end in 0..bytes.len() {
            assert!(read(&bytes[..end]).is_none(), "cut at {end}");
        }
        for at in 0..bytes.len() {
            for flip in [0x01, 0x80, 0xFF] {
                let mut damaged = bytes.clone();
                damaged[at] ^= flip;
                read(&damaged);
            }
        }
    }
}
