//! The postings of one key in one source, segment by segment.
//!
//! A segment is a piece of packed postings or a group of [`DecodedRows`]. Moving from one to the
//! next does not unpack a piece.

use std::ops::RangeInclusive;
use std::sync::Arc;

use windrow_postings::{Impact, Piece};
use windrow_storage::{Block, Caching, Position, StorageError};

use super::buffer_lists::{BufferList, no_posting};
use super::rows::DecodedRows;
use crate::entry::RecordId;
use crate::groups::{self, BlockGroup, GroupForm};
use crate::section::Section;

/// A position among the segments of a source.
#[derive(Clone, Debug)]
pub struct SegmentCursor {
    origin: Origin,
    key: Arc<[u8]>,
    snapshot: Position,
    pub here: Segment,
    /// The last rows that were decoded in a section, for a second pass through a short list.
    decoded: Option<LocatedRows>,
    /// A group that the cursor has read has versions: other snapshots may see other postings.
    pub has_versions: bool,
}

/// Decoded rows and the location of their group.
#[derive(Clone, Debug)]
struct LocatedRows {
    block: usize,
    start: usize,
    rows: Arc<DecodedRows>,
}

/// The segment at a position.
#[derive(Clone, Debug)]
pub enum Segment {
    /// A piece in the open block, and the index of the group in it.
    Piece {
        start: usize,
        end: usize,
        last_id: RecordId,
        group: usize,
    },
    Rows(Arc<DecodedRows>),
    /// After the last segment.
    End,
}

#[derive(Clone, Debug)]
enum Origin {
    Section(SectionLocation),
    Buffer {
        list: Arc<BufferList>,
        /// The number of the next group.
        next: usize,
    },
}

/// The number of entries of a segment.
#[derive(Clone, Copy, Debug, Default)]
pub struct SegmentCounts {
    pub records: usize,
    pub deletions: usize,
}

/// A position in a section.
#[derive(Clone, Debug)]
pub struct SectionLocation {
    pub section: Arc<Section>,
    /// The number of the open block.
    pub block: usize,
    /// The open block.
    pub bytes: Block,
    /// The offset of the next group, and the end of the last group of the block.
    next: usize,
    end: usize,
}

impl SegmentCursor {
    /// Opens the segments of a section at the first one. `None` if the section does not have the
    /// key.
    pub fn in_section(
        section: &Arc<Section>,
        key: &Arc<[u8]>,
        snapshot: Position,
    ) -> Result<Option<SegmentCursor>, StorageError> {
        let mut segments = SegmentCursor {
            origin: Origin::Section(SectionLocation::open(
                section,
                section.block_of(key, RecordId::MIN)?,
            )?),
            key: key.clone(),
            snapshot,
            here: Segment::End,
            decoded: None,
            has_versions: false,
        };
        let Origin::Section(place) = &mut segments.origin else {
            return Ok(None);
        };
        let Some(group) = place.find(key, RecordId::MIN)? else {
            return Ok(None);
        };
        segments.stand_on(&group)?;
        Ok(Some(segments))
    }

    /// Opens the segments of a part of a tail at the first one.
    pub fn in_buffer(
        list: Arc<BufferList>,
        key: &Arc<[u8]>,
        snapshot: Position,
    ) -> Result<SegmentCursor, StorageError> {
        let mut segments = SegmentCursor {
            origin: Origin::Buffer { list, next: 0 },
            key: key.clone(),
            snapshot,
            here: Segment::End,
            decoded: None,
            has_versions: true,
        };
        segments.advance()?;
        Ok(segments)
    }

    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// Returns the section and its open block. `None` for a buffer.
    pub fn section_location(&self) -> Option<&SectionLocation> {
        match &self.origin {
            Origin::Section(location) => Some(location),
            Origin::Buffer { .. } => None,
        }
    }

    /// Returns the piece and the index of the group in it. `None` if the segment is not a piece.
    #[inline]
    pub fn piece(&self) -> Option<(Piece<'_>, usize)> {
        let Segment::Piece {
            start, end, group, ..
        } = self.here
        else {
            return None;
        };
        let bytes = &self.section_location()?.bytes;
        Some((Piece::read(bytes.get(start..end)?)?, group))
    }

    /// Moves to the first segment, and in a piece to the first group, that may have this id or a
    /// greater one.
    pub fn seek(&mut self, id: RecordId) -> Result<(), StorageError> {
        loop {
            match self.last_id() {
                None => return Ok(()),
                Some(last) if last >= id => return self.seek_group(id),
                Some(_) => self.leave(id)?,
            }
        }
    }

    /// Moves to the group of a piece that may have this id or a greater one.
    fn seek_group(&mut self, id: RecordId) -> Result<(), StorageError> {
        let found = self.piece().map(|(piece, from)| piece.group_of(id.0, from));
        match (found, &mut self.here) {
            (Some(Some(found)), Segment::Piece { group, .. }) => *group = found,
            (None, Segment::Rows(_)) => {}
            _ => return Err(self.undecodable()),
        }
        Ok(())
    }

    /// Moves behind the segment, toward an id.
    fn leave(&mut self, id: RecordId) -> Result<(), StorageError> {
        match &mut self.origin {
            Origin::Buffer { list, next } => *next = list.seek(id, *next),
            Origin::Section(place) => {
                if let Some(group) = place.jump(&self.key, id)? {
                    return self.stand_on(&group);
                }
            }
        }
        self.advance()
    }

    /// Moves to the next segment that is not empty.
    pub fn advance(&mut self) -> Result<(), StorageError> {
        loop {
            match &mut self.origin {
                Origin::Section(place) => match place.next_group(&self.key)? {
                    Some(group) => self.stand_on(&group)?,
                    None => self.here = Segment::End,
                },
                Origin::Buffer { list, next } => {
                    let rows = list.group(*next).cloned();
                    *next += 1;
                    self.here = rows.map_or(Segment::End, Segment::Rows);
                }
            }
            match &self.here {
                Segment::Rows(rows) if rows.is_empty() => {}
                _ => return Ok(()),
            }
        }
    }

    /// Makes a group of the open block the current segment. Moves on if no entry of it is visible.
    fn stand_on(&mut self, group: &BlockGroup) -> Result<(), StorageError> {
        let Origin::Section(place) = &self.origin else {
            return Ok(());
        };
        self.has_versions |= matches!(group.form, GroupForm::Rows(rows) if rows.has_versions);
        let here = match group.form {
            GroupForm::Piece => {
                let bytes = place.bytes.get(group.start..group.end);
                bytes.and_then(Piece::read).map(|piece| Segment::Piece {
                    start: group.start,
                    end: group.end,
                    last_id: RecordId(piece.last_id()),
                    group: 0,
                })
            }
            _ => {
                let known = self.decoded.as_ref();
                let known = known.filter(|it| (it.block, it.start) == (place.block, group.start));
                let rows = match known {
                    Some(known) => Some(known.rows.clone()),
                    None => DecodedRows::from_group(&place.bytes, group, self.snapshot),
                };
                self.decoded = rows.clone().map(|rows| LocatedRows {
                    block: place.block,
                    start: group.start,
                    rows,
                });
                rows.map(Segment::Rows)
            }
        };
        self.here = here.ok_or_else(|| self.undecodable())?;
        match &self.here {
            Segment::Rows(rows) if rows.is_empty() => self.advance(),
            _ => Ok(()),
        }
    }

    /// Takes the rows that another cursor of the same source has decoded.
    pub fn share_decoded(&mut self, other: &SegmentCursor) {
        self.decoded = other.decoded.clone();
    }

    /// Returns the range of ids that the segment, or the group in it, may have. `None` at the end.
    pub fn id_range(&self) -> Option<RangeInclusive<RecordId>> {
        match &self.here {
            Segment::End => None,
            Segment::Rows(rows) => Some(rows.first_id()?..=rows.last_id()?),
            Segment::Piece { .. } => {
                let (piece, group) = self.piece()?;
                let first = match group.checked_sub(1) {
                    None => piece.first_id(),
                    Some(before) => piece.last_id_of(before)?.saturating_add(1),
                };
                Some(RecordId(first)..=RecordId(piece.last_id_of(group)?))
            }
        }
    }

    /// Returns the score bound of the segment, or of the group in it.
    pub fn bound(&self) -> Option<([Impact; 2], f64)> {
        let group = match self.here {
            Segment::Piece { group, .. } => group,
            _ => 0,
        };
        self.bound_of(group)
    }

    /// Returns the score bound of a group of the segment. Rows are one group.
    pub fn bound_of(&self, group: usize) -> Option<([Impact; 2], f64)> {
        match &self.here {
            Segment::End => None,
            Segment::Rows(rows) => Some(rows.bound()),
            Segment::Piece { .. } => {
                let (piece, _) = self.piece()?;
                let scores = piece.group(group)?.scores()?;
                let score = scores.map(|(_, score)| score).fold(0.0, f64::max);
                Some((piece.impacts(group)?, score))
            }
        }
    }

    /// Returns the number of groups of the segment. Rows are one group.
    pub fn groups(&self) -> usize {
        match &self.here {
            Segment::End => 0,
            Segment::Rows(_) => 1,
            Segment::Piece { .. } => self.piece().map_or(0, |(piece, _)| piece.groups()),
        }
    }

    /// Returns the first id of the segment. `None` at the end.
    pub fn first_id(&self) -> Option<RecordId> {
        match &self.here {
            Segment::End => None,
            Segment::Piece { .. } => self.piece().map(|(piece, _)| RecordId(piece.first_id())),
            Segment::Rows(rows) => rows.first_id(),
        }
    }

    /// Returns the last id of the segment. `None` at the end.
    pub fn last_id(&self) -> Option<RecordId> {
        match &self.here {
            Segment::End => None,
            Segment::Piece { last_id, .. } => Some(*last_id),
            Segment::Rows(rows) => rows.last_id(),
        }
    }

    /// Returns the number of entries of the segment.
    pub fn counts(&self) -> SegmentCounts {
        match &self.here {
            Segment::End => SegmentCounts::default(),
            Segment::Rows(rows) => SegmentCounts {
                records: rows.len() - rows.deletions(),
                deletions: rows.deletions(),
            },
            Segment::Piece { .. } => SegmentCounts {
                records: self.piece().map_or(0, |(piece, _)| piece.len()),
                deletions: 0,
            },
        }
    }

    pub fn undecodable(&self) -> StorageError {
        match &self.origin {
            Origin::Section(place) => place.section.undecodable_block(place.block),
            Origin::Buffer { .. } => no_posting(),
        }
    }
}

impl SectionLocation {
    fn open(section: &Arc<Section>, block: usize) -> Result<SectionLocation, StorageError> {
        let bytes = section.read(block, Caching::Keep)?;
        let end = section.layout(&bytes, block)?.groups_end();
        Ok(SectionLocation {
            section: section.clone(),
            block,
            bytes,
            next: 0,
            end,
        })
    }

    fn undecodable(&self) -> StorageError {
        self.section.undecodable_block(self.block)
    }

    /// Finds the first group of the key in the open block that may have this id or a greater one.
    fn find(&mut self, key: &[u8], id: RecordId) -> Result<Option<BlockGroup>, StorageError> {
        let layout = self.section.layout(&self.bytes, self.block)?;
        let interval = layout.interval_of(key, id);
        let start = interval.and_then(|interval| layout.restart(interval));
        let mut at = start.ok_or_else(|| self.undecodable())?;
        let mut current: Vec<u8> = Vec::with_capacity(key.len() + 32);
        while at < self.end {
            let read = groups::read(&self.bytes, at, self.end);
            let (relative, group) = read.ok_or_else(|| self.undecodable())?;
            current.truncate(relative.shared);
            current.extend_from_slice(relative.suffix);
            at = group.end;
            match current.as_slice().cmp(key) {
                std::cmp::Ordering::Less => {}
                std::cmp::Ordering::Equal => {
                    self.next = at;
                    return Ok(Some(group));
                }
                std::cmp::Ordering::Greater => break,
            }
        }
        self.next = self.end;
        Ok(None)
    }

    /// Returns the next group if it has the same key. Opens the next block if the key continues
    /// there.
    fn next_group(&mut self, key: &[u8]) -> Result<Option<BlockGroup>, StorageError> {
        if self.next < self.end {
            let read = groups::read(&self.bytes, self.next, self.end);
            let (relative, group) = read.ok_or_else(|| self.undecodable())?;
            let behind = key.get(relative.shared..);
            if behind != Some(relative.suffix) {
                self.next = self.end;
                return Ok(None);
            }
            self.next = group.end;
            return Ok(Some(group));
        }
        let next = self.block + 1;
        if next >= self.section.block_count()? || self.section.separator(next)? != key {
            return Ok(None);
        }
        *self = SectionLocation::open(&self.section, next)?;
        self.find(key, RecordId::MIN)
    }

    /// Moves to a later block if an id is there. `None` if it is not, or may be in the open block.
    fn jump(&mut self, key: &[u8], id: RecordId) -> Result<Option<BlockGroup>, StorageError> {
        // The id is mostly in the rest of the open block.
        if self.next < self.end {
            return Ok(None);
        }
        let block = self.section.block_of(key, id)?;
        if block <= self.block || self.section.separator(block)? != key {
            return Ok(None);
        }
        *self = SectionLocation::open(&self.section, block)?;
        self.find(key, id)
    }
}
