//! Packed postings as entries: their payloads are assembled again.

use windrow_postings::payload::{FREQUENCY_MAX, put_position_step};
use windrow_postings::{GROUP, LengthsPage, PAGE_IDS, Piece, Positions, Posting};
use windrow_storage::Block;

use super::{OpenGroup, RestartInterval, UNPACKED};
use crate::entry::RecordId;
use crate::groups::{RowFormat, take_payload};

/// The positions and field lengths of a piece of packed postings, which are stored apart from it.
#[derive(Clone, Debug, Default)]
pub(crate) struct PieceContext {
    /// The positions of the data block.
    pub positions: Option<Block>,
    /// The pages of field lengths, with their numbers.
    pub lengths: Vec<(u64, Block)>,
}

impl PieceContext {
    /// Returns the length of a record's field. `None` if its page is missing.
    fn length(&self, id: RecordId) -> Option<u32> {
        let page = id.0 / PAGE_IDS;
        let (_, block) = self.lengths.iter().find(|(number, _)| *number == page)?;
        LengthsPage::read(block)?.get(id.0)
    }
}

impl RestartInterval {
    pub(super) fn open_piece(&mut self, rest: &mut &[u8], end: usize) -> Option<()> {
        let bytes = take_payload(rest)?;
        self.group = OpenGroup {
            rows: RowFormat {
                count: Piece::read(bytes)?.len() as u64,
                ..RowFormat::default()
            },
            piece: Some((end - rest.len(), bytes.len())),
            ..OpenGroup::default()
        };
        Some(())
    }

    /// Unpacks groups of the open piece with ids from `first` on, until there are `slots` entries.
    pub(super) fn decode_piece(
        &mut self,
        block: &[u8],
        slots: usize,
        first: RecordId,
    ) -> Option<()> {
        let (end, length) = self.group.piece?;
        let piece = Piece::read(block.get(end - length..end)?)?;
        let done = piece.len().checked_sub(self.group.rows.count as usize)? / GROUP;
        let mut next = piece.group_of(first.0, done).unwrap_or(piece.groups());
        while next < piece.groups() && self.slots.len() < slots {
            self.unpack(&piece, next)?;
            next += 1;
            // Only the first group can have ids before `first`.
            self.slots.retain(|slot| slot.id >= first);
        }
        self.group.rows.count = ((piece.groups() - next) * GROUP) as u64;
        if self.group.rows.count == 0 {
            self.group = OpenGroup::default();
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
                *length = self.piece_context.length(RecordId(*id))?;
            }
        }
        for (number, score) in group.scores()? {
            *scores.get_mut(number)? = Some(score);
        }
        let positions = self.piece_context.positions.clone();
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
                frequency: frequency.clamp(1, FREQUENCY_MAX),
                length,
                score,
                positions: &encoded,
            };
            posting.write(&mut self.unpacked);
            let written = self.unpacked.len() as u32 - start;
            self.push(RecordId(id), 0, start | UNPACKED, written);
        }
        Some(())
    }
}
