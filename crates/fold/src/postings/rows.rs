//! Decoded postings: those of a group of rows, or of a buffer of a tail.

use std::sync::Arc;

use windrow_postings::{Impact, Posting};
use windrow_storage::{Block, Position};

use crate::entry::RecordId;
use crate::groups::{BlockGroup, GroupForm, take_payload};
use crate::sorted_buffer::SortedBuffer;
use crate::varint;

/// The postings of one key that are visible at a snapshot, at most one for a record.
#[derive(Debug, Default)]
pub struct DecodedRows {
    rows: Vec<Row>,
    /// The encoded positions of all rows.
    positions: Vec<u8>,
    /// Bounds the scores of all rows.
    impact: Impact,
    score: f64,
    deletions: usize,
}

/// One posting.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub id: RecordId,
    /// The posting is deleted. The other fields have no meaning then.
    pub deleted: bool,
    pub frequency: u32,
    pub length: u32,
    pub score: Option<f64>,
    positions: (u32, u32),
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
                rows.rows.reserve((group.count as usize).min(rest.len()));
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

    /// Adds a version. The first visible version of a record is the newest and counts.
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

    /// Returns the index of the first row from `from` on with this id or a greater one.
    pub fn seek(&self, id: RecordId, from: usize) -> usize {
        let rows = self.rows.get(from..).unwrap_or(&[]);
        from + rows.partition_point(|row| row.id < id)
    }

    /// Returns the score bound of all rows.
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
    if has_payload {
        take_payload(rest)
    } else {
        Some(&[])
    }
}
