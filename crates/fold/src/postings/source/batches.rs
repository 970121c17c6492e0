//! Reads several postings of one group at once.

use windrow_postings::{LengthsPage, PAGE_IDS};
use windrow_storage::StorageError;

use super::{SourceList, group_at};
use crate::entry::RecordId;
use crate::postings::batch::PostingBatch;
use crate::postings::segments::Segment;

impl SourceList {
    /// Passes postings of the current group to `take`, from the current one up to the record
    /// `last`, at most `most`, and moves behind them. Returns their number, which is 0 if postings
    /// of the group are deleted.
    pub fn read_batch(
        &mut self,
        last: RecordId,
        most: usize,
        take: impl FnOnce(&PostingBatch<'_>),
    ) -> Result<usize, StorageError> {
        if self.id > last {
            return Ok(0);
        }
        let count = match &self.place.here {
            Segment::End => 0,
            Segment::Rows(rows) => rows.read_batch(self.at, last, most, take).unwrap_or(0),
            Segment::Piece { .. } => self.read_packed(last, most, take)?,
        };
        self.pass(count)?;
        Ok(count)
    }

    /// Passes the ids of postings of the current group to `take`, from the current one up to the
    /// record `last`, and moves behind them. Returns their number, which is 0 if postings of the
    /// group are deleted.
    #[inline]
    pub fn read_ids(
        &mut self,
        last: RecordId,
        take: impl FnOnce(&[u64]),
    ) -> Result<usize, StorageError> {
        let ids = match &self.place.here {
            Segment::End => &[],
            Segment::Rows(rows) => rows.ids_without_deletions(),
            Segment::Piece { .. } => self.unpacked.ids.as_slice(),
        };
        let rest = ids.get(self.at..).unwrap_or(&[]);
        let count = rest.partition_point(|id| *id <= last.0);
        take(rest.get(..count).unwrap_or(&[]));
        self.pass(count)?;
        Ok(count)
    }

    /// Moves behind `count` postings of the current group.
    #[inline]
    fn pass(&mut self, count: usize) -> Result<(), StorageError> {
        self.at += count;
        if self.at < self.count {
            self.id = self.id_at(self.at);
        } else if count > 0 {
            self.next_segment()?;
        }
        Ok(())
    }

    /// Passes postings of the unpacked group to `take`. Returns their number.
    fn read_packed(
        &mut self,
        last: RecordId,
        most: usize,
        take: impl FnOnce(&PostingBatch<'_>),
    ) -> Result<usize, StorageError> {
        self.frequency()?;
        if !self.has_lengths()? {
            self.unpack_lengths()?;
        }
        let scores = if self.unpacked.has_scores {
            self.scores_from(self.at)?
        } else {
            Vec::new()
        };
        let unpacked = &self.unpacked;
        let rest = unpacked.ids.get(self.at..).unwrap_or(&[]);
        let count = rest.partition_point(|id| *id <= last.0).min(most);
        let within = self.at..self.at + count;
        let run = (
            rest.get(..count),
            unpacked.frequencies.get(within.clone()),
            unpacked.lengths.get(within),
        );
        let (Some(ids), Some(frequencies), Some(lengths)) = run else {
            return Ok(0);
        };
        take(&PostingBatch {
            ids,
            frequencies,
            lengths,
            scores: &scores,
        });
        Ok(count)
    }

    /// Returns the stored scores of the group from a posting on, each with its index relative to
    /// that.
    fn scores_from(&self, first: usize) -> Result<Vec<(usize, f64)>, StorageError> {
        let scores = group_at(&self.place).and_then(|group| group.scores());
        let scores = scores.ok_or_else(|| self.place.undecodable())?;
        let behind = |(number, score): (usize, f64)| Some((number.checked_sub(first)?, score));
        Ok(scores.filter_map(behind).collect())
    }

    /// Reads the lengths of all postings of the group from the section's pages.
    fn unpack_lengths(&mut self) -> Result<(), StorageError> {
        let mut at = 0;
        while let Some(&id) = self.unpacked.ids.get(at) {
            let number = id / PAGE_IDS;
            self.open_lengths(number)?;
            let page = self.lengths.as_ref();
            let page = page.and_then(|(_, block)| LengthsPage::read(block.as_ref()?));
            let page = page.ok_or_else(|| self.place.undecodable())?;
            let unpacked = &mut *self.unpacked;
            let slots = unpacked.ids.iter().zip(&mut unpacked.lengths).skip(at);
            for (id, length) in slots.take_while(|(id, _)| **id / PAGE_IDS == number) {
                let found = page.get(*id);
                *length = found.ok_or_else(|| self.place.undecodable())?;
                at += 1;
            }
        }
        self.unpacked.has_lengths = Some(true);
        Ok(())
    }
}
