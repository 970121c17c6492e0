//! Packing the entries of one key, if they are postings and there are many.

use windrow_postings::piece::Packed;
use windrow_postings::{GROUP, GROUPS_MAX, LengthsWriter, PieceWriter, PositionsWriter, Posting};

use super::{GroupBuilder, PIECE};
use crate::varint;

/// A group of entries is written when it has so many: as many as one piece has room for.
pub const ROWS_MAX: usize = GROUP * GROUPS_MAX;

/// Packs postings into pieces, and collects what stands beside them.
#[derive(Debug)]
pub struct PiecePacker {
    form: PostingsForm,
    field: Vec<u8>,
    lengths: LengthsWriter,
    lengths_before: Vec<FieldLengths>,
    piece: PieceWriter,
    positions: PositionsWriter,
    aside: PiecePositions,
    piece_bytes: Vec<u8>,
}

/// What keys of postings look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PostingsForm {
    /// All keys are terms of one field: a record has one field length.
    OneField,
    /// A key begins with the name of its field and a zero byte: a record has a length for each field.
    ByField,
}

impl PostingsForm {
    /// The part of a key that tells the field.
    pub fn field(self, key: &[u8]) -> &[u8] {
        match self {
            PostingsForm::OneField => &[],
            PostingsForm::ByField => {
                let end = key.iter().position(|byte| *byte == 0);
                end.and_then(|end| key.get(..=end)).unwrap_or(key)
            }
        }
    }

    /// The number that the catalog has for it.
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

/// What a data block has beside it.
#[derive(Debug, Default)]
pub struct PiecePositions {
    /// The positions of its pieces.
    pub positions: Vec<u8>,
    /// Whether it has pieces.
    pub has_pieces: bool,
}

/// The field lengths of a field.
#[derive(Debug)]
pub struct FieldLengths {
    /// The first bytes of the keys.
    pub field: Vec<u8>,
    /// The pages and their numbers, in order.
    pub pages: Vec<(u64, Vec<u8>)>,
    /// How many records there are, and the sum of their lengths.
    pub totals: (u64, u64),
}

impl PiecePacker {
    pub fn new(form: PostingsForm) -> PiecePacker {
        PiecePacker {
            form,
            field: Vec::new(),
            lengths: LengthsWriter::default(),
            lengths_before: Vec::new(),
            piece: PieceWriter::default(),
            positions: PositionsWriter::default(),
            aside: PiecePositions::default(),
            piece_bytes: Vec::new(),
        }
    }

    /// Takes as many of the first `plain` entries as a piece has room for. They have no versions. Returns
    /// `false` if it took none: their ids are too far from each other.
    pub fn fill(&mut self, group: &mut GroupBuilder, plain: usize) -> bool {
        self.enter_field(&group.key);
        let mut taken = 0;
        let mut start = group.payloads_start;
        let mut packed = Vec::with_capacity(GROUP);
        while taken + GROUP <= plain
            && let Some(bodies) = group.bodies.get(taken..taken + GROUP)
        {
            packed.clear();
            let mut end = start;
            for body in bodies {
                let payload = group.payload(end, body.payload_end);
                let Some(posting) = payload.and_then(Posting::read) else {
                    debug_assert!(false, "{payload:?} is no posting");
                    break;
                };
                packed.push(Packed {
                    id: body.id.0,
                    posting,
                });
                end = body.payload_end;
            }
            if packed.len() < GROUP || !self.piece.has_room(&packed) {
                break;
            }
            let lengths = &mut self.lengths;
            self.piece
                .push(&packed, |one| lengths.note(one.id, one.posting.length));
            for one in &packed {
                self.positions.push(one.posting.position_steps());
            }
            (taken, start) = (taken + GROUP, end);
        }
        group.forget(taken, start);
        taken > 0
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
            self.lengths_before.push(FieldLengths {
                field,
                totals: self.lengths.totals(),
                pages: self.lengths.finish().collect(),
            });
        }
    }

    /// Puts the head of a group that is a piece, and the piece that was filled.
    pub fn put_piece(&mut self, bytes: &mut Vec<u8>) {
        let positions = &mut self.aside.positions;
        let start = (!self.positions.is_empty()).then_some(positions.len() as u32);
        if start.is_some() {
            self.positions.finish(positions);
        }
        self.piece_bytes.clear();
        self.piece.finish(start, &mut self.piece_bytes);
        varint::put(bytes, PIECE);
        varint::put(bytes, self.piece_bytes.len() as u64);
        bytes.extend_from_slice(&self.piece_bytes);
        self.aside.has_pieces = true;
    }

    pub fn take_aside(&mut self) -> PiecePositions {
        std::mem::take(&mut self.aside)
    }

    pub fn take_lengths(&mut self) -> Vec<FieldLengths> {
        self.end_field();
        std::mem::take(&mut self.lengths_before)
    }
}
