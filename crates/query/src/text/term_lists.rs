//! The postings of text and search indexes, as lists for crate `search`.

use std::sync::Arc;

use parking_lot::Mutex;
use windrow_collection::PostingBatch;
use windrow_interrupt::Interrupted;
use windrow_postings::{GROUP, LengthTotals};
use windrow_search::{Batch, Bound, Postings, set_bits};

use crate::Error;
use crate::source::{PostingList, RecordId, Source};

/// Opens lists of postings and collects their errors. A list that fails just ends.
#[derive(Debug, Default)]
pub struct TermLists {
    error: Arc<Mutex<Option<Error>>>,
}

impl TermLists {
    /// Opens the postings of the term with this key.
    pub fn open(&self, source: &dyn Source, index: usize, key: &[u8]) -> Result<TermList, Error> {
        let mut list = TermList {
            list: source.posting_list(index, key)?,
            error: self.error.clone(),
        };
        list.check_end(list.list.id());
        Ok(list)
    }

    /// Records another error of the search, if there is none yet.
    pub fn record_error(&self, error: Error) {
        self.error.lock().get_or_insert(error);
    }

    /// Converts the result of a search over the lists. Fails if a list has failed or the search was
    /// interrupted.
    pub fn result<T>(&self, result: Result<T, Interrupted>) -> Result<T, Error> {
        self.check()?;
        Ok(result?)
    }

    /// Fails if a list has failed. To be called at the end of a search.
    pub fn check(&self) -> Result<(), Error> {
        self.error.lock().take().map_or(Ok(()), Err)
    }
}

/// Appends a run of postings to a batch that has room for it.
fn append(run: &PostingBatch<'_>, batch: &mut Batch) {
    let (start, end) = (batch.count, batch.count + run.ids.len());
    let slots = (
        batch.ids.get_mut(start..end),
        batch.frequencies.get_mut(start..end),
        batch.lengths.get_mut(start..end),
    );
    if let (Some(ids), Some(frequencies), Some(lengths)) = slots {
        ids.copy_from_slice(run.ids);
        frequencies.copy_from_slice(run.frequencies);
        lengths.copy_from_slice(run.lengths);
        let scores = run.scores.iter().filter(|(at, _)| *at < run.ids.len());
        let placed = scores.map(|(at, score)| (start + at, *score));
        batch.stored_scores.extend(placed);
        batch.count = end;
    }
}

/// The postings of a term.
#[derive(Clone, Debug)]
pub struct TermList {
    list: PostingList,
    error: Arc<Mutex<Option<Error>>>,
}

impl TermList {
    /// Estimates the totals of the lengths of the term's field.
    pub fn length_totals(&mut self) -> LengthTotals {
        let totals = self.list.length_totals();
        self.check_end(self.list.id());
        totals
    }

    /// Records the error of the list if the list has ended with one.
    #[inline]
    fn check_end(&mut self, id: RecordId) -> u64 {
        if id == RecordId::MAX {
            self.take_list_error();
        }
        id.0
    }

    #[cold]
    fn take_list_error(&mut self) {
        if let Some(error) = self.list.take_error() {
            self.error
                .lock()
                .get_or_insert_with(|| windrow_collection::Error::from(error).into());
        }
    }
}

impl Postings for TermList {
    #[inline]
    fn id(&self) -> u64 {
        self.list.id().0
    }

    #[inline]
    fn next(&mut self) -> u64 {
        let id = self.list.next();
        self.check_end(id)
    }

    #[inline]
    fn seek(&mut self, id: u64) -> u64 {
        let id = self.list.seek(RecordId(id));
        self.check_end(id)
    }

    #[inline]
    fn frequency(&mut self) -> u32 {
        let frequency = self.list.frequency();
        self.check_end(self.list.id());
        frequency
    }

    #[inline]
    fn length(&mut self) -> u32 {
        let length = self.list.length();
        self.check_end(self.list.id());
        length
    }

    #[inline]
    fn stored_score(&mut self) -> Option<f64> {
        let score = self.list.stored_score();
        self.check_end(self.list.id());
        score
    }

    fn read(&mut self, last: u64, batch: &mut Batch) {
        batch.clear();
        let last = RecordId(last);
        while self.list.id() <= last && self.list.id() != RecordId::MAX && !batch.is_full() {
            let room = GROUP - batch.count;
            if !self.list.read_batch(last, room, |run| append(run, batch)) {
                let (frequency, length) = (self.list.frequency(), self.list.length());
                let score = self.list.stored_score();
                batch.push(self.list.id().0, frequency, length, score);
                self.list.next();
            }
        }
        self.check_end(self.list.id());
    }

    fn fill(&mut self, first: u64, bits: &mut [u64]) -> u64 {
        let end = first.saturating_add(64 * bits.len() as u64);
        let last = RecordId(end).previous();
        while self.list.id().0 < end {
            let take = |ids: &[u64]| set_bits(bits, first, ids);
            if !self.list.read_ids(last, take) {
                set_bits(bits, first, &[self.list.id().0]);
                self.list.next();
            }
        }
        self.check_end(self.list.id())
    }

    fn positions(&mut self, into: &mut Vec<u32>) {
        self.list.positions(into);
        self.check_end(self.list.id());
    }

    fn block_end(&mut self, id: u64) -> u64 {
        let end = self.list.block_end(RecordId(id));
        self.check_end(end)
    }

    fn block_bound(&mut self) -> Bound {
        let bounds = self.list.block_bounds();
        Bound {
            impacts: bounds.impacts,
            stored_score: bounds.score,
        }
    }

    fn bound(&mut self) -> Bound {
        let bounds = self.list.bounds();
        Bound {
            impacts: bounds.impacts,
            stored_score: bounds.score,
        }
    }

    fn count_at_most(&mut self) -> u64 {
        self.list.count_at_most()
    }

    fn count(&mut self) -> Option<u64> {
        self.list.count()
    }
}
