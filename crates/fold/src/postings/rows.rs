//! Decoded postings: those of a group of rows, or of a buffer of a tail.

use std::sync::Arc;

use windrow_postings::{Impact, Posting};
use windrow_storage::{Block, Position};

use super::batch::PostingBatch;
use crate::entry::RecordId;
use crate::groups::{BlockGroup, GroupForm, take_payload};
use crate::sorted_buffer::SortedBuffer;
use crate::varint;

/// The postings of one key that are visible at a snapshot, at most one for a record.
#[derive(Debug, Default)]
pub struct DecodedRows {
    /// The record ids. They are bare numbers, as those of unpacked postings.
    ids: Vec<u64>,
    frequencies: Vec<u32>,
    lengths: Vec<u32>,
    /// The stored scores, each with the index of its posting.
    scores: Vec<(usize, f64)>,
    /// The indexes of the deleted postings, in increasing order. Their frequencies and lengths have
    /// no meaning.
    deleted: Vec<usize>,
    /// The encoded positions of all rows, and the end of those of each row.
    positions: Vec<u8>,
    position_ends: Vec<u32>,
    /// Bounds the scores of all rows.
    impact: Impact,
    score: f64,
}

/// One version of a posting.
struct Version<'a> {
    id: RecordId,
    position: Position,
    deleted: bool,
    payload: &'a [u8],
}

impl DecodedRows {
    /// Decodes a group of rows. Returns `None` if it is damaged.
    pub fn from_group(
        block: &Block,
        group: &BlockGroup,
        snapshot: Position,
    ) -> Option<Arc<DecodedRows>> {
        let mut rest = block.get(group.start..group.end)?;
        let mut rows = DecodedRows::default();
        match group.form {
            GroupForm::Piece => return None,
            GroupForm::One { id, has_payload } => rows.add(
                &Version {
                    id,
                    position: Position::ZERO,
                    deleted: false,
                    payload: payload(&mut rest, has_payload)?,
                },
                snapshot,
            )?,
            GroupForm::Rows(group) => {
                // Each row has at least a byte.
                rows.reserve((group.count as usize).min(rest.len()));
                let mut id = 0_u64;
                for _ in 0..group.count {
                    id = id.checked_add(varint::take(&mut rest)?)?;
                    let version = if group.has_versions {
                        varint::take(&mut rest)?
                    } else {
                        0
                    };
                    let version = Version {
                        id: RecordId(id),
                        position: Position(version >> 1),
                        deleted: version & 1 != 0,
                        payload: payload(&mut rest, group.has_payloads)?,
                    };
                    rows.add(&version, snapshot)?;
                }
            }
        }
        Some(Arc::new(rows))
    }

    /// Decodes entries of a buffer, which have one key. Returns `None` if a payload is not a
    /// posting.
    pub fn from_buffer(
        buffer: &SortedBuffer,
        numbers: std::ops::Range<usize>,
        snapshot: Position,
    ) -> Option<DecodedRows> {
        let mut rows = DecodedRows::default();
        rows.reserve(numbers.len());
        for number in numbers {
            let entry = buffer.get(number)?;
            let version = Version {
                id: entry.id,
                position: entry.position,
                deleted: entry.deleted,
                payload: entry.payload,
            };
            rows.add(&version, snapshot)?;
        }
        Some(rows)
    }

    fn reserve(&mut self, rows: usize) {
        self.ids.reserve(rows);
        self.frequencies.reserve(rows);
        self.lengths.reserve(rows);
        self.position_ends.reserve(rows);
    }

    /// Adds a version. The first visible version of a record is the newest and counts.
    fn add(&mut self, version: &Version<'_>, snapshot: Position) -> Option<()> {
        if self.ids.last() == Some(&version.id.0) || version.position > snapshot {
            return Some(());
        }
        if version.deleted {
            self.deleted.push(self.ids.len());
            self.push(version.id, 0, 0);
            return Some(());
        }
        let posting = Posting::read(version.payload)?;
        self.positions.extend_from_slice(posting.positions);
        let own = Impact::new(posting.frequency, posting.length);
        if self.ids.len() == self.deleted.len() {
            self.impact = own;
        }
        self.impact.frequency = self.impact.frequency.max(own.frequency);
        self.impact.length = self.impact.length.min(own.length);
        if let Some(score) = posting.score {
            self.score = self.score.max(score);
            self.scores.push((self.ids.len(), score));
        }
        self.push(version.id, posting.frequency, posting.length);
        Some(())
    }

    fn push(&mut self, id: RecordId, frequency: u32, length: u32) {
        self.ids.push(id.0);
        self.frequencies.push(frequency);
        self.lengths.push(length);
        self.position_ends.push(self.positions.len() as u32);
    }

    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Returns the number of deleted postings.
    pub fn deletions(&self) -> usize {
        self.deleted.len()
    }

    /// Returns the memory of the postings, in bytes.
    pub fn bytes(&self) -> usize {
        size_of::<DecodedRows>()
            + self.ids.capacity() * size_of::<u64>()
            + (self.frequencies.capacity() + self.lengths.capacity()) * size_of::<u32>()
            + self.position_ends.capacity() * size_of::<u32>()
            + self.scores.capacity() * size_of::<(usize, f64)>()
            + self.deleted.capacity() * size_of::<usize>()
            + self.positions.capacity()
    }

    #[inline]
    pub fn id(&self, row: usize) -> Option<RecordId> {
        self.ids.get(row).copied().map(RecordId)
    }

    #[inline]
    pub fn frequency(&self, row: usize) -> Option<u32> {
        self.frequencies.get(row).copied()
    }

    #[inline]
    pub fn length(&self, row: usize) -> Option<u32> {
        self.lengths.get(row).copied()
    }

    #[inline]
    pub fn is_deleted(&self, row: usize) -> bool {
        !self.deleted.is_empty() && self.deleted.binary_search(&row).is_ok()
    }

    /// Returns the stored score of a row, if it has one.
    #[inline]
    pub fn score(&self, row: usize) -> Option<f64> {
        let found = self.scores.binary_search_by_key(&row, |(row, _)| *row);
        found.ok().and_then(|at| Some(self.scores.get(at)?.1))
    }

    pub fn first_id(&self) -> Option<RecordId> {
        self.id(0)
    }

    pub fn last_id(&self) -> Option<RecordId> {
        self.ids.last().copied().map(RecordId)
    }

    /// Returns the index of the first row from `from` on with this id or a greater one.
    pub fn seek(&self, id: RecordId, from: usize) -> usize {
        let ids = self.ids.get(from..).unwrap_or(&[]);
        from + ids.partition_point(|one| *one < id.0)
    }

    /// Returns the score bound of all rows.
    pub fn bound(&self) -> ([Impact; 2], f64) {
        ([self.impact, Impact::default()], self.score)
    }

    /// Returns the ids of all rows. Returns none if some rows are deleted.
    #[inline]
    pub fn ids_without_deletions(&self) -> &[u64] {
        if self.deleted.is_empty() {
            &self.ids
        } else {
            &[]
        }
    }

    /// Passes the rows from `from` up to the record `last`, at most `most`, to `take`. Returns
    /// their number, which is 0 if postings are deleted.
    pub fn read_batch(
        &self,
        from: usize,
        last: RecordId,
        most: usize,
        take: impl FnOnce(&PostingBatch<'_>),
    ) -> Option<usize> {
        let rest = self.ids_without_deletions().get(from..)?;
        let rest = rest.get(..most).unwrap_or(rest);
        let count = rest.partition_point(|id| *id <= last.0);
        if count == 0 {
            return Some(0);
        }
        let first_score = self.scores.partition_point(|(row, _)| *row < from);
        let scores = self.scores.get(first_score..).unwrap_or(&[]).iter();
        let scores: Vec<(usize, f64)> = scores
            .filter_map(|(row, score)| Some((row.checked_sub(from)?, *score)))
            .take_while(|(row, _)| *row < count)
            .collect();
        take(&PostingBatch {
            ids: rest.get(..count)?,
            frequencies: self.frequencies.get(from..from + count)?,
            lengths: self.lengths.get(from..from + count)?,
            scores: &scores,
        });
        Some(count)
    }

    /// Appends the positions of a row.
    pub fn positions(&self, row: usize, into: &mut Vec<u32>) {
        let end_of = |row: usize| self.position_ends.get(row).map(|end| *end as usize);
        let start = row.checked_sub(1).and_then(end_of).unwrap_or(0);
        let encoded = end_of(row).and_then(|end| self.positions.get(start..end));
        let posting = Posting {
            frequency: 1,
            length: 0,
            score: None,
            positions: encoded.unwrap_or(&[]),
        };
        into.extend(posting.positions());
    }
}

fn payload<'a>(rest: &mut &'a [u8], has_payload: bool) -> Option<&'a [u8]> {
    if has_payload {
        take_payload(rest)
    } else {
        Some(&[])
    }
}
