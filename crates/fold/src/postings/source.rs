//! The postings of one key in one source, record by record.

mod batches;

use windrow_postings::piece::Group;
use windrow_postings::{
    GROUP, Impact, LengthTotals, LengthsPage, PAGE_IDS, Positions, PositionsReader,
};
use windrow_storage::{Block, StorageError};

use super::END;
use super::extent::{bounds_from, extent_from};
use super::rows::DecodedRows;
use super::segments::{SectionLocation, Segment, SegmentCursor};

use crate::entry::RecordId;
use crate::extents::{Bounds, SourceExtent};

/// Reads the postings of one source forward.
#[derive(Clone, Debug)]
pub struct SourceList {
    /// The current segment.
    place: SegmentCursor,
    /// The segment of the look-ahead for bounds, at or behind `place`.
    look: Option<SegmentCursor>,
    unpacked: Box<UnpackedGroup>,
    /// The index of the posting in the segment or group, and the number of postings there.
    at: usize,
    count: usize,
    id: RecordId,
    lengths: Option<(u64, Option<Block>)>,
    positions: PositionsReader,
    /// The positions that were read last.
    positions_location: Option<PositionsLocation>,
    /// Computed at the first request.
    extent: Option<SourceExtent>,
    /// The list is still at the first segment.
    is_at_first_segment: bool,
    /// The number of groups that were unpacked.
    pub groups_read: u64,
}

/// The unpacked parts of a group of packed postings.
#[derive(Clone, Debug)]
struct UnpackedGroup {
    ids: [u64; GROUP],
    frequencies: [u32; GROUP],
    lengths: [u32; GROUP],
    /// The sum of the frequencies before each posting.
    sums: [u32; GROUP],
    has_sums: bool,
    has_frequencies: bool,
    /// `None` if not requested yet. `false` if the lengths are in pages of the section.
    has_lengths: Option<bool>,
    has_scores: bool,
}

/// The location of the positions of a group.
#[derive(Clone, Debug)]
struct PositionsLocation {
    /// The number of the data block.
    block: usize,
    bytes: Block,
    /// The index of the group in its piece. `None` after the list has left it.
    group: Option<usize>,
    /// The offset of the positions of the piece.
    start: usize,
    /// The number of positions of the piece before those of the group.
    before: u32,
}

/// The score bound of the postings from one id to another.
#[derive(Clone, Copy, Debug)]
pub struct SegmentBounds {
    /// The first id that may have a posting.
    pub first: RecordId,
    /// The last id for which the bound holds.
    pub last: RecordId,
    pub impacts: [Impact; 2],
    pub score: f64,
}

impl UnpackedGroup {
    /// Returns the sum of the frequencies before a posting of the group.
    #[inline]
    fn frequencies_before(&mut self, at: usize) -> u32 {
        if !self.has_sums {
            let frequencies = self.frequencies.iter();
            let mut sum = 0_u32;
            for (slot, frequency) in self.sums.iter_mut().zip(frequencies) {
                *slot = sum;
                sum = sum.saturating_add(*frequency);
            }
            self.has_sums = true;
        }
        self.sums.get(at).copied().unwrap_or(0)
    }
}

impl SourceList {
    pub fn new(place: SegmentCursor) -> Result<SourceList, StorageError> {
        let mut list = SourceList {
            place,
            look: None,
            unpacked: Box::new(UnpackedGroup {
                ids: [END.0; GROUP],
                frequencies: [0; GROUP],
                lengths: [0; GROUP],
                sums: [0; GROUP],
                has_sums: false,
                has_frequencies: false,
                has_lengths: None,
                has_scores: false,
            }),
            at: 0,
            count: 0,
            id: END,
            lengths: None,
            positions: PositionsReader::default(),
            positions_location: None,
            extent: None,
            is_at_first_segment: true,
            groups_read: 0,
        };
        list.enter(RecordId::MIN)?;
        Ok(list)
    }

    #[inline]
    pub fn id(&self) -> RecordId {
        self.id
    }

    /// Returns `true` if the current posting is deleted.
    #[inline]
    pub fn is_deleted(&self) -> bool {
        match &self.place.here {
            Segment::Rows(rows) => rows.is_deleted(self.at),
            _ => false,
        }
    }

    #[inline]
    pub fn next(&mut self) -> Result<RecordId, StorageError> {
        self.at += 1;
        if self.at < self.count {
            self.id = self.id_at(self.at);
            return Ok(self.id);
        }
        self.next_segment()
    }

    #[inline]
    fn id_at(&self, at: usize) -> RecordId {
        match &self.place.here {
            Segment::Piece { .. } => self.unpacked.ids.get(at).map_or(END, |id| RecordId(*id)),
            Segment::Rows(rows) => rows.id(at).unwrap_or(END),
            Segment::End => END,
        }
    }

    #[inline(never)]
    fn next_segment(&mut self) -> Result<RecordId, StorageError> {
        self.is_at_first_segment = false;
        let next_group = match &mut self.place.here {
            Segment::End => return Ok(END),
            Segment::Piece { group, .. } => {
                *group += 1;
                *group
            }
            Segment::Rows(_) => usize::MAX,
        };
        let groups = self.place.piece().map_or(0, |(piece, _)| piece.groups());
        if next_group >= groups {
            self.place.advance()?;
        }
        self.enter(RecordId::MIN)?;
        Ok(self.id)
    }

    #[inline]
    pub fn seek(&mut self, id: RecordId) -> Result<RecordId, StorageError> {
        if self.id >= id {
            return Ok(self.id);
        }
        match &self.place.here {
            Segment::Piece { .. } if self.unpacked.ids.last().is_some_and(|last| *last >= id.0) => {
                let ids = &self.unpacked.ids;
                self.at = first_at_least(ids, self.at, id);
                self.id = ids.get(self.at).map_or(END, |id| RecordId(*id));
                Ok(self.id)
            }
            _ => self.seek_segment(id),
        }
    }

    #[inline(never)]
    fn seek_segment(&mut self, id: RecordId) -> Result<RecordId, StorageError> {
        self.is_at_first_segment = false;
        // The look-ahead has skipped the segments before it already.
        if let Some(look) = self.look.take()
            && look.id_range().is_some_and(|ids| *ids.start() <= id)
        {
            self.place = look;
        }
        self.place.seek(id)?;
        self.enter(id)?;
        Ok(self.id)
    }

    /// Unpacks the current segment or group and moves to the first posting with this id or a
    /// greater one.
    fn enter(&mut self, id: RecordId) -> Result<(), StorageError> {
        self.positions.clear();
        if let Some(at) = &mut self.positions_location {
            at.group = None;
        }
        match &self.place.here {
            Segment::End => {
                (self.at, self.count, self.id) = (0, 0, END);
                return Ok(());
            }
            Segment::Rows(rows) => {
                self.count = rows.len();
                self.at = rows.seek(id, 0);
            }
            Segment::Piece { .. } => {
                let group = group_at(&self.place).ok_or_else(|| self.place.undecodable())?;
                let unpacked = &mut self.unpacked;
                let ids = group.ids(&mut unpacked.ids);
                let scores = group.scores().map(|mut scores| scores.next().is_some());
                let both = ids.zip(scores);
                let ((), has_scores) = both.ok_or_else(|| self.place.undecodable())?;
                unpacked.has_scores = has_scores;
                unpacked.has_frequencies = false;
                unpacked.has_sums = false;
                unpacked.has_lengths = None;
                self.count = GROUP;
                self.at = first_at_least(&self.unpacked.ids, 0, id);
                self.groups_read += 1;
            }
        }
        self.id = self.id_at(self.at);
        Ok(())
    }

    /// Returns the decoded rows if the postings here are not packed.
    #[inline]
    fn rows(&self) -> Option<&DecodedRows> {
        match &self.place.here {
            Segment::Rows(rows) => Some(rows),
            _ => None,
        }
    }

    #[inline]
    pub fn frequency(&mut self) -> Result<u32, StorageError> {
        if let Some(rows) = self.rows() {
            return Ok(rows.frequency(self.at).unwrap_or(1));
        }
        if !self.unpacked.has_frequencies {
            let frequencies = &mut self.unpacked.frequencies;
            let found = group_at(&self.place).and_then(|group| group.frequencies(frequencies));
            found.ok_or_else(|| self.place.undecodable())?;
            self.unpacked.has_frequencies = true;
        }
        Ok(self.unpacked.frequencies.get(self.at).copied().unwrap_or(1))
    }

    #[inline]
    pub fn length(&mut self) -> Result<u32, StorageError> {
        if let Some(rows) = self.rows() {
            return Ok(rows.length(self.at).unwrap_or(0));
        }
        if self.has_lengths()? {
            Ok(self.unpacked.lengths.get(self.at).copied().unwrap_or(0))
        } else {
            self.length_of(self.id)
        }
    }

    /// Returns `true` if the group has its lengths. They are unpacked then. Otherwise they are in
    /// pages of the section.
    #[inline]
    fn has_lengths(&mut self) -> Result<bool, StorageError> {
        if let Some(known) = self.unpacked.has_lengths {
            return Ok(known);
        }
        let lengths = &mut self.unpacked.lengths;
        let found = group_at(&self.place).and_then(|group| group.lengths(lengths));
        let found = found.ok_or_else(|| self.place.undecodable())?;
        self.unpacked.has_lengths = Some(found);
        Ok(found)
    }

    /// Reads the field length of a record from a page of the section.
    #[inline]
    fn length_of(&mut self, id: RecordId) -> Result<u32, StorageError> {
        self.open_lengths(id.0 / PAGE_IDS)?;
        let block = self.lengths.as_ref().and_then(|(_, block)| block.as_ref());
        let length = block.and_then(|block| LengthsPage::read(block)?.get(id.0));
        length.ok_or_else(|| self.place.undecodable())
    }

    /// Opens a page of lengths, if it is not the open one.
    #[inline]
    fn open_lengths(&mut self, page: u64) -> Result<(), StorageError> {
        match self.lengths {
            Some((number, _)) if number == page => Ok(()),
            _ => self.read_lengths(page),
        }
    }

    #[cold]
    fn read_lengths(&mut self, page: u64) -> Result<(), StorageError> {
        let Some(SectionLocation { section, .. }) = self.place.section_location() else {
            return Err(self.place.undecodable());
        };
        let field = section.field_of(self.place.key());
        self.lengths = Some((page, section.lengths_page(field, page)?));
        Ok(())
    }

    #[inline]
    pub fn stored_score(&mut self) -> Result<Option<f64>, StorageError> {
        if let Some(rows) = self.rows() {
            return Ok(rows.score(self.at));
        }
        if !self.unpacked.has_scores {
            return Ok(None);
        }
        let scores = group_at(&self.place).and_then(|group| group.scores());
        let mut scores = scores.ok_or_else(|| self.place.undecodable())?;
        let found = scores.find(|(number, _)| *number == self.at);
        Ok(found.map(|(_, score)| score))
    }

    /// Appends the positions of the posting.
    pub fn positions(&mut self, into: &mut Vec<u32>) -> Result<(), StorageError> {
        if let Some(rows) = self.rows() {
            rows.positions(self.at, into);
            return Ok(());
        }
        let frequency = self.frequency()?;
        if !self.find_positions()? {
            return Ok(());
        }
        let before = self.unpacked.frequencies_before(self.at);
        let start = into.len();
        let at = self.positions_location.as_ref();
        let read = at.and_then(|at| {
            let positions = Positions::read(at.bytes.get(at.start..)?)?;
            let first = at.before.saturating_add(before);
            self.positions.steps(&positions, first, frequency, into)
        });
        read.ok_or_else(|| self.place.undecodable())?;
        let mut last = 0_u32;
        for position in into.iter_mut().skip(start) {
            last = last.wrapping_add(*position);
            *position = last;
        }
        Ok(())
    }

    /// Finds the positions of the group. Returns `false` if it has none.
    #[inline]
    fn find_positions(&mut self) -> Result<bool, StorageError> {
        let Segment::Piece { group, .. } = self.place.here else {
            return Ok(false);
        };
        let known = self.positions_location.as_ref().and_then(|at| at.group);
        if known == Some(group) {
            return Ok(true);
        }
        self.open_positions(group)
    }

    #[inline(never)]
    fn open_positions(&mut self, number: usize) -> Result<bool, StorageError> {
        let undecodable = || self.place.undecodable();
        let (piece, _) = self.place.piece().ok_or_else(undecodable)?;
        let Some(start) = piece.positions_start() else {
            return Ok(false);
        };
        let before = piece
            .group(number)
            .ok_or_else(undecodable)?
            .positions_before();
        let location = self.place.section_location().ok_or_else(undecodable)?;
        let (section, block) = (&location.section, location.block);
        let known = self
            .positions_location
            .take()
            .filter(|at| at.block == block);
        let bytes = match known {
            Some(at) => at.bytes,
            None => section.positions(block)?.ok_or_else(undecodable)?,
        };
        self.positions_location = Some(PositionsLocation {
            block,
            bytes,
            group: Some(number),
            start: start as usize,
            before,
        });
        Ok(true)
    }

    /// Moves the look-ahead to the first segment or group that may have this id or a greater one,
    /// and returns its bound. `None` if there is none.
    pub fn bounds_from(&mut self, id: RecordId) -> Result<Option<SegmentBounds>, StorageError> {
        let Some(ids) = self.place.id_range() else {
            return Ok(None);
        };
        if *ids.end() >= id {
            // The list itself is there.
            return Ok(bounds_at(&self.place));
        }
        let is_useful = self.look.as_ref().is_some_and(|look| {
            let look_ids = look.id_range();
            look_ids.is_none_or(|look_ids| look_ids.end() >= ids.start())
        });
        if !is_useful {
            self.look = Some(self.place.clone());
        }
        let Some(look) = &mut self.look else {
            return Ok(None);
        };
        look.seek(id)?;
        Ok(bounds_at(look))
    }

    /// Returns the totals of the lengths of the field in the section.
    pub fn length_totals(&self) -> Result<LengthTotals, StorageError> {
        match self.place.section_location() {
            Some(SectionLocation { section, .. }) => {
                section.length_totals(section.field_of(self.place.key()))
            }
            None => Ok(LengthTotals::default()),
        }
    }

    /// Returns the range and size of the source. Must be called before the list is moved.
    pub fn extent(&mut self) -> Result<SourceExtent, StorageError> {
        if let Some(extent) = self.extent {
            return Ok(extent);
        }
        let extent = extent_from(&mut self.place, self.is_at_first_segment)?;
        self.extent = Some(extent);
        Ok(extent)
    }

    /// Returns the score bound of all postings, a loose one for some long lists. Must be called
    /// before the list is moved.
    pub fn bounds(&mut self) -> Result<Bounds, StorageError> {
        let extent = self.extent()?;
        bounds_from(&mut self.place, &extent)
    }
}

#[inline]
fn group_at(place: &SegmentCursor) -> Option<Group<'_>> {
    let (piece, group) = place.piece()?;
    piece.group(group)
}

fn bounds_at(segments: &SegmentCursor) -> Option<SegmentBounds> {
    let (first, last) = segments.id_range()?.into_inner();
    let (impacts, score) = segments.bound()?;
    Some(SegmentBounds {
        first,
        last,
        impacts,
        score,
    })
}

/// The number of ids that are compared without a branch.
const NEAR: usize = 8;

/// Returns the index of the first id that is not less than `id`. There must be one, not before
/// `from`.
#[inline]
fn first_at_least(ids: &[u64; GROUP], from: usize, id: RecordId) -> usize {
    let count_less = |ids: &[u64]| ids.iter().filter(|one| **one < id.0).count();
    // Most seeks move by a few postings.
    if let Some(near) = ids.get(from..from + NEAR)
        && near.last().is_some_and(|last| *last >= id.0)
    {
        return from + count_less(near);
    }
    let (chunks, _) = ids.as_chunks::<NEAR>();
    let ends_before = |[.., last]: &&[u64; NEAR]| *last < id.0;
    let chunk = chunks.iter().filter(ends_before).count();
    chunk * NEAR + chunks.get(chunk).map_or(0, |ids| count_less(ids))
}
