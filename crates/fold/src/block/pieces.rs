//! Packing of the postings of one key into pieces.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use windrow_invariant::Bug;
use windrow_postings::piece::RecordPosting;
use windrow_postings::{
    GROUP, GROUPS_MAX, LengthTotals, LengthsTable, LengthsWriter, PieceWriter, PositionsWriter,
    Posting,
};

use super::{GroupBuilder, PIECE};
use crate::varint;

/// A group is written when it has this many entries, which is the room of one piece.
pub const ROWS_MAX: usize = GROUP * GROUPS_MAX;

/// Packs postings into pieces. Positions and field lengths are collected separately.
#[derive(Debug)]
pub struct PiecePacker {
    form: PostingsForm,
    section_lengths: Arc<SectionLengths>,
    /// The current field, and the writer of its lengths.
    field: Option<(Vec<u8>, LengthsWriter)>,
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

/// The field lengths of a section, which all its writers share.
#[derive(Debug, Default)]
pub struct SectionLengths {
    fields: Mutex<BTreeMap<Vec<u8>, Arc<LengthsTable>>>,
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

impl SectionLengths {
    fn table(&self, field: &[u8]) -> Arc<LengthsTable> {
        let mut fields = self.fields.lock();
        fields.entry(field.to_vec()).or_default().clone()
    }

    /// Returns the encoded lengths of the fields that have some, in the order of the fields.
    pub fn encode(&self) -> Vec<FieldLengths> {
        let fields = self.fields.lock();
        let known = fields.iter().filter(|(_, table)| !table.is_empty());
        let encoded = known.map(|(field, table)| FieldLengths {
            field: field.clone(),
            totals: table.totals(),
            pages: table.encode(),
        });
        encoded.collect()
    }
}

impl PiecePacker {
    pub fn new(form: PostingsForm, section_lengths: Arc<SectionLengths>) -> PiecePacker {
        PiecePacker {
            form,
            section_lengths,
            field: None,
            piece: PieceWriter::default(),
            positions: PositionsWriter::default(),
            block_positions: PiecePositions::default(),
            piece_bytes: Vec::new(),
        }
    }

    /// Fills a piece from the first `plain` entries, which are settled and not deleted. Returns
    /// `false` if no postings fit, because their ids are too far apart.
    pub fn fill(&mut self, group: &mut GroupBuilder, plain: usize) -> Result<bool, Bug> {
        let lengths = enter_field(
            self.form.field(&group.key),
            &mut self.field,
            &self.section_lengths,
        );
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
}

/// Returns the writer of the lengths of a field. `current` is the last field with its writer.
fn enter_field<'c>(
    field: &[u8],
    current: &'c mut Option<(Vec<u8>, LengthsWriter)>,
    section: &SectionLengths,
) -> &'c mut LengthsWriter {
    if current.as_ref().is_some_and(|(known, _)| known != field) {
        *current = None;
    }
    let open = || (field.to_vec(), LengthsWriter::new(section.table(field)));
    &mut current.get_or_insert_with(open).1
}
