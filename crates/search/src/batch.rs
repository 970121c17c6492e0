//! Batches of postings that are read in one call.

use windrow_postings::GROUP;

/// Up to 128 postings, with one array for each of their parts. A loop over an array needs no calls
/// and few branches.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The record ids.
    pub ids: [u64; GROUP],
    /// How often the term is in each record.
    pub frequencies: [u32; GROUP],
    /// The number of tokens of the field in each record.
    pub lengths: [u32; GROUP],
    /// The stored scores, each with the index of its posting in the batch.
    pub stored_scores: Vec<(usize, f64)>,
    /// The scores of the records: see [`Matches::read`](crate::Matches::read).
    pub scores: [f64; GROUP],
    /// The number of postings.
    pub count: usize,
}

impl Default for Batch {
    fn default() -> Batch {
        Batch {
            ids: [0; GROUP],
            frequencies: [0; GROUP],
            lengths: [0; GROUP],
            stored_scores: Vec::new(),
            scores: [0.0; GROUP],
            count: 0,
        }
    }
}

impl Batch {
    /// Removes all postings.
    #[inline]
    pub fn clear(&mut self) {
        self.count = 0;
        self.stored_scores.clear();
    }

    /// Returns `true` if there is no room for another posting.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.count >= GROUP
    }

    /// Adds a record with its score.
    #[inline]
    pub(crate) fn push_scored(&mut self, id: u64, score: f64) {
        let slots = (
            self.ids.get_mut(self.count),
            self.scores.get_mut(self.count),
        );
        if let (Some(id_slot), Some(score_slot)) = slots {
            (*id_slot, *score_slot) = (id, score);
            self.count += 1;
        }
    }

    /// Adds a posting.
    #[inline]
    pub fn push(&mut self, id: u64, frequency: u32, length: u32, stored: Option<f64>) {
        let at = self.count;
        let frequencies = self.frequencies.get_mut(at);
        let slots = (self.ids.get_mut(at), frequencies, self.lengths.get_mut(at));
        if let (Some(id_slot), Some(frequency_slot), Some(length_slot)) = slots {
            (*id_slot, *frequency_slot, *length_slot) = (id, frequency, length);
            self.stored_scores.extend(stored.map(|score| (at, score)));
            self.count += 1;
        }
    }

    /// Returns the records with their scores.
    #[inline]
    pub(crate) fn scored(&self) -> impl Iterator<Item = (u64, f64)> {
        let records = self.ids.iter().zip(&self.scores).take(self.count);
        records.map(|(id, score)| (*id, *score))
    }
}
