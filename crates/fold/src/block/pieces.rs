//! Packing of the postings of one key into pieces.

use windrow_invariant::Bug;
use windrow_postings::piece::RecordPosting;
use windrow_postings::{
    GROUP, GROUPS_MAX, LengthTotals, LengthsWriter, PieceWriter, PositionsWriter, Posting,
};

use super::{GroupBuilder, PIECE};
use crate::varint;

/// A group is written when it has this many entries, which is the room of one piece.
pub const ROWS_MAX: usize = GROUP * GROUPS_MAX;

/// Packs postings into pieces. Positions and field lengths are collected separately.
#[derive(Debug)]
pub struct PiecePacker {
    form: PostingsForm,
    field: Vec<u8>,
    lengths: LengthsWriter,
    /// The lengths of the fields before the current one.
    finished_lengths: Vec<FieldLengths>,
    piece: PieceWriter,
    positions: PositionsWriter,
    block_positions: PiecePositions,
    piece_bytes: Vec<u8>,
}

/// How the keys of an index of postings name their field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PostingsForm {
    /// All keys are terms of one field. A record has one field length.
    OneField,
    /// A key begins with the name of its field and a zero byte. A record has a length in each
    /// field.
    ByField,
}

impl PostingsForm {
    /// Returns the part of a key that names the field.
    pub fn field(self, key: &[u8]) -> &[u8] {
        match self {
            PostingsForm::OneField => &[],
            PostingsForm::ByField => {
                let end = key.iter().position(|byte| *byte == 0);
                end.and_then(|end| key.get(..=end)).unwrap_or(key)
            }
        }
    }

    /// Returns the number that a section's descriptor has for the form.
    pub(crate) fn code(self) -> u64 {
        match self {
            PostingsForm::OneField => 1,
            PostingsForm::ByField => 2,
        }
    }

    pub(crate) fn from_code(code: u64) -> Option<PostingsForm> {
        match code {
            1 => Some(PostingsForm::OneField),
            2 => Some(PostingsForm::ByField),
            _ => None,
        }
    }
}

/// The positions of the pieces of a data block, which are stored in a block of their own.
#[derive(Debug, Default)]
pub struct PiecePositions {
    /// The encoded positions.
    pub positions: Vec<u8>,
    /// The data block has pieces, which the column format cannot pack again.
    pub has_pieces: bool,
}

/// The lengths of one field in the records of a section.
#[derive(Debug)]
pub struct FieldLengths {
    /// The first bytes of the keys of the field.
    pub field: Vec<u8>,
    /// The numbers of the pages and their bytes, in ascending order.
    pub pages: Vec<(u64, Vec<u8>)>,
    /// The totals of the lengths.
    pub totals: LengthTotals,
}

impl PiecePacker {
    pub fn new(form: PostingsForm) -> PiecePacker {
        PiecePacker {
            form,
            field: Vec::new(),
            lengths: LengthsWriter::default(),
            finished_lengths: Vec::new(),
            piece: PieceWriter::default(),
            positions: PositionsWriter::default(),
            block_positions: PiecePositions::default(),
            piece_bytes: Vec::new(),
        }
    }

    /// Fills a piece from the first `plain` entries, which are settled and not deleted. Returns
    /// `false` if no postings fit, because their ids are too far apart.
    pub fn fill(&mut self, group: &mut GroupBuilder, plain: usize) -> Result<bool, Bug> {
        self.enter_field(&group.key);
        let mut taken = 0;
        let mut start = group.payloads_start;
        let mut packed = Vec::with_capacity(GROUP);
        while taken + GROUP <= plain
            && let Some(rows) = group.rows.get(taken..taken + GROUP)
        {
            packed.clear();
            let mut end = start;
            for row in rows {
                let payload = group.payload(end, row.payload_end)?;
                let posting = Posting::read(payload)
                    .ok_or_else(|| Bug::new(format!("{payload:?} is not a posting")))?;
                packed.push(RecordPosting {
                    id: row.id.0,
                    posting,
                });
                end = row.payload_end;
            }
            if packed.len() < GROUP || !self.piece.has_room(&packed) {
                break;
            }
            let lengths = &mut self.lengths;
            self.piece
                .push(&packed, |one| lengths.add(one.id, one.posting.length));
            for one in &packed {
                self.positions.push(one.posting.position_steps());
            }
            (taken, start) = (taken + GROUP, end);
        }
        group.forget(taken, start);
        Ok(taken > 0)
    }

    fn enter_field(&mut self, key: &[u8]) {
        let field = self.form.field(key);
        if self.field != field {
            self.end_field();
            self.field.extend_from_slice(field);
        }
    }

    fn end_field(&mut self) {
        let field = std::mem::take(&mut self.field);
        if !self.lengths.is_empty() {
            self.finished_lengths.push(FieldLengths {
                field,
                totals: self.lengths.totals(),
                pages: self.lengths.finish().collect(),
            });
        }
    }

    /// Writes the head of a group and the piece that was filled.
    pub fn put_piece(&mut self, bytes: &mut Vec<u8>) {
        let positions = &mut self.block_positions.positions;
        let start = (!self.positions.is_empty()).then_some(positions.len() as u32);
        if start.is_some() {
            self.positions.finish(positions);
        }
        self.piece_bytes.clear();
        self.piece.finish(start, &mut self.piece_bytes);
        varint::put(bytes, PIECE);
        varint::put(bytes, self.piece_bytes.len() as u64);
        bytes.extend_from_slice(&self.piece_bytes);
        self.block_positions.has_pieces = true;
    }

    pub fn take_positions(&mut self) -> PiecePositions {
        std::mem::take(&mut self.block_positions)
    }

    pub fn take_lengths(&mut self) -> Vec<FieldLengths> {
        self.end_field();
        std::mem::take(&mut self.finished_lengths)
    }
}
