//! Postings that are not packed, decoded: those of a group of rows, or of a part of a tail.

use std::sync::Arc;

use windrow_postings::{Impact, Posting};
use windrow_storage::{Block, Position};

use crate::entry::RecordId;
use crate::groups::{BlockGroup, GroupForm, take_payload};
use crate::sorted_buffer::SortedBuffer;
use crate::varint;

/// Decoded rows of one key, as a snapshot sees them: at most one for a record.
#[derive(Debug, Default)]
pub struct DecodedRows {
    rows: Vec<Row>,
    /// The positions of all rows, as payloads have them.
    positions: Vec<u8>,
    /// Bounds the scores.
    impact: Impact,
    score: f64,
    deletions: usize,
}

/// One posting.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub id: RecordId,
    /// The record does not have the term any more. The rest means nothing then.
    pub deleted: bool,
    pub frequency: u32,
    pub length: u32,
    pub score: Option<f64>,
    positions: (u32, u32),
}

/// One version of a posting that is read.
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
                let mut id = 0_u64;
                for _ in 0..group.count {
                    id = id.checked_add(varint::take(&mut rest)?)?;
                    let version = match group.has_versions {
                        true => varint::take(&mut rest)?,
                        false => 0,
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

    /// Decodes entries of a buffer, which are all of one key. Returns `None` if a payload is no posting.
    pub fn from_buffer(
        buffer: &SortedBuffer,
        numbers: std::ops::Range<usize>,
        snapshot: Position,
    ) -> Option<Arc<DecodedRows>> {
        let mut rows = DecodedRows::default();
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
        Some(Arc::new(rows))
    }

    /// Adds a version. Of one record the newest that the snapshot sees comes first and counts.
    fn add(&mut self, version: &Version<'_>, snapshot: Position) -> Option<()> {
        let is_known = self.rows.last().is_some_and(|last| last.id == version.id);
        if is_known || version.position > snapshot {
            return Some(());
        }
        if version.deleted {
            self.deletions += 1;
            self.rows.push(Row {
                id: version.id,
                deleted: true,
                frequency: 0,
                length: 0,
                score: None,
                positions: (0, 0),
            });
            return Some(());
        }
        let posting = Posting::read(version.payload)?;
        let start = self.positions.len() as u32;
        self.positions.extend_from_slice(posting.positions);
        let own = Impact::of(posting.frequency, posting.length);
        if self.rows.len() == self.deletions {
            self.impact = own;
        }
        self.impact.frequency = self.impact.frequency.max(own.frequency);
        self.impact.length = self.impact.length.min(own.length);
        self.score = self.score.max(posting.score.unwrap_or(0.0));
        self.rows.push(Row {
            id: version.id,
            deleted: false,
            frequency: posting.frequency,
            length: posting.length,
            score: posting.score,
            positions: (start, posting.positions.len() as u32),
        });
        Some(())
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn deletions(&self) -> usize {
        self.deletions
    }

    #[inline]
    pub fn get(&self, number: usize) -> Option<&Row> {
        self.rows.get(number)
    }

    pub fn first_id(&self) -> Option<RecordId> {
        self.rows.first().map(|row| row.id)
    }

    pub fn last_id(&self) -> Option<RecordId> {
        self.rows.last().map(|row| row.id)
    }

    /// The number of the first row, from `from` on, with that id or a greater one.
    pub fn seek(&self, id: RecordId, from: usize) -> usize {
        let rows = self.rows.get(from..).unwrap_or(&[]);
        from + rows.partition_point(|row| row.id < id)
    }

    /// Bounds the scores of all rows.
    pub fn bound(&self) -> ([Impact; 2], f64) {
        ([self.impact, Impact::default()], self.score)
    }

    /// Appends the positions of a row.
    pub fn positions(&self, row: &Row, into: &mut Vec<u32>) {
        let (start, length) = (row.positions.0 as usize, row.positions.1 as usize);
        let posting = Posting {
            frequency: row.frequency,
            length: row.length,
            score: None,
            positions: self.positions.get(start..start + length).unwrap_or(&[]),
        };
        into.extend(posting.positions());
    }
}

fn payload<'a>(rest: &mut &'a [u8], has_payload: bool) -> Option<&'a [u8]> {
    match has_payload {
        true => take_payload(rest),
        false => Some(&[]),
    }
}
