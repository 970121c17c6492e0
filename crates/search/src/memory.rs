//! Postings and terms in memory, for tests, examples and measurements. The postings are in blocks,
//! as in an index on disk.

mod index;

pub use index::MemoryIndex;

use std::sync::Arc;

use windrow_postings::{GROUP, Impact};

use crate::batch::Batch;
use crate::ids::IdSet;
use crate::postings::{Bound, END, Postings};
use crate::terms::Terms;

/// The posting of a term in a record.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MemoryPosting {
    /// The record id.
    pub id: u64,
    /// The number of times that the term occurs. At least 1.
    pub frequency: u32,
    /// The number of tokens of the field.
    pub length: u32,
    /// The score, if it does not follow from frequency and length.
    pub score: Option<f64>,
    /// The positions of the term.
    pub positions: Vec<u32>,
}

/// The postings of one term.
///
/// ```
/// use windrow_search::memory::{MemoryPosting, MemoryPostings};
/// use windrow_search::{END, Postings};
///
/// let posting = |id| MemoryPosting { id, frequency: 1, length: 8, ..MemoryPosting::default() };
/// let mut list = MemoryPostings::new([2, 3, 9].map(posting));
/// assert_eq!((list.id(), list.seek(4), list.next()), (2, 9, END));
/// ```
#[derive(Clone, Debug)]
pub struct MemoryPostings {
    content: Arc<Content>,
    at: usize,
    /// The block of the block cursor.
    block: usize,
}

/// The postings, with one list for each of their parts.
#[derive(Debug, Default)]
struct Content {
    ids: Vec<u64>,
    frequencies: Vec<u32>,
    lengths: Vec<u32>,
    scores: Vec<Option<f64>>,
    /// The end of the positions of each posting.
    position_ends: Vec<usize>,
    positions: Vec<u32>,
    bounds: Vec<Bound>,
    bound: Bound,
}

impl MemoryPostings {
    /// Creates a list. The ids must increase.
    pub fn new(postings: impl IntoIterator<Item = MemoryPosting>) -> MemoryPostings {
        let postings: Vec<MemoryPosting> = postings.into_iter().collect();
        debug_assert!(postings.is_sorted_by(|one, other| one.id < other.id));
        let mut content = Content {
            bounds: postings.chunks(GROUP).map(bound_of).collect(),
            bound: bound_of(&postings),
            ..Content::default()
        };
        for posting in postings {
            content.ids.push(posting.id);
            content.frequencies.push(posting.frequency);
            content.lengths.push(posting.length);
            content.scores.push(posting.score);
            content.positions.extend_from_slice(&posting.positions);
            content.position_ends.push(content.positions.len());
        }
        MemoryPostings {
            content: Arc::new(content),
            at: 0,
            block: 0,
        }
    }
}

fn bound_of(postings: &[MemoryPosting]) -> Bound {
    let impacts = postings.iter();
    let impacts = impacts.map(|posting| Impact::new(posting.frequency, posting.length));
    let stored = postings.iter().filter_map(|posting| posting.score);
    Bound {
        impacts: windrow_postings::impact::bounds(impacts),
        stored_score: stored.fold(0.0, f64::max),
    }
}

/// Returns the index of the first id at or after `at` that is `id` or greater. Searches in steps
/// that double, then by bisection.
fn gallop(ids: &[u64], at: usize, id: u64) -> usize {
    let mut step = 1;
    let mut low = at;
    while ids.get(low + step).is_some_and(|found| *found < id) {
        low += step;
        step *= 2;
    }
    let high = ids.len().min(low + step + 1);
    let within = ids.get(low..high).unwrap_or_default();
    low + within.partition_point(|found| *found < id)
}

impl Postings for MemoryPostings {
    #[inline]
    fn id(&self) -> u64 {
        self.content.ids.get(self.at).copied().unwrap_or(END)
    }

    #[inline]
    fn next(&mut self) -> u64 {
        self.at = self.content.ids.len().min(self.at + 1);
        self.id()
    }

    #[inline]
    fn seek(&mut self, id: u64) -> u64 {
        if self.id() < id {
            self.at = gallop(&self.content.ids, self.at, id);
        }
        self.id()
    }

    #[inline]
    fn frequency(&mut self) -> u32 {
        self.content.frequencies.get(self.at).copied().unwrap_or(1)
    }

    #[inline]
    fn length(&mut self) -> u32 {
        self.content.lengths.get(self.at).copied().unwrap_or(0)
    }

    #[inline]
    fn stored_score(&mut self) -> Option<f64> {
        self.content.scores.get(self.at).copied().flatten()
    }

    fn positions(&mut self, into: &mut Vec<u32>) {
        let ends = &self.content.position_ends;
        let start = self.at.checked_sub(1).and_then(|before| ends.get(before));
        let start = start.copied().unwrap_or(0);
        let positions = ends.get(self.at).map(|end| start..*end);
        let positions = positions.and_then(|range| self.content.positions.get(range));
        into.extend_from_slice(positions.unwrap_or_default());
    }

    fn block_end(&mut self, id: u64) -> u64 {
        let ids = &self.content.ids;
        loop {
            let end = (self.block + 1) * GROUP - 1;
            let last = ids.get(end.min(ids.len().saturating_sub(1))).copied();
            match last {
                Some(last) if last >= id => return last,
                Some(_) if end < ids.len() => self.block += 1,
                _ => {
                    self.block = self.content.bounds.len();
                    return END;
                }
            }
        }
    }

    fn block_bound(&mut self) -> Bound {
        self.content
            .bounds
            .get(self.block)
            .copied()
            .unwrap_or_default()
    }

    fn bound(&mut self) -> Bound {
        self.content.bound
    }

    fn count_at_most(&mut self) -> u64 {
        self.content.ids.len() as u64
    }

    fn count(&mut self) -> Option<u64> {
        Some(self.content.ids.len() as u64)
    }

    #[inline]
    fn read(&mut self, last: u64, batch: &mut Batch) {
        batch.clear();
        let content = &self.content;
        let end = content.ids.len().min(self.at + GROUP);
        let ids = content.ids.get(self.at..end).unwrap_or_default();
        let count = match ids.last() {
            Some(greatest) if *greatest > last => ids.partition_point(|id| *id <= last),
            _ => ids.len(),
        };
        let range = self.at..self.at + count;
        let slots = batch
            .ids
            .iter_mut()
            .zip(&mut batch.frequencies)
            .zip(&mut batch.lengths);
        let ids = content.ids.get(range.clone()).unwrap_or_default().iter();
        let frequencies = content.frequencies.get(range.clone()).unwrap_or_default();
        let lengths = content.lengths.get(range.clone()).unwrap_or_default();
        let postings = ids.zip(frequencies).zip(lengths);
        for (((id, frequency), length), posting) in slots.zip(postings) {
            ((*id, *frequency), *length) = ((*posting.0.0, *posting.0.1), *posting.1);
        }
        let scores = content
            .scores
            .get(range)
            .unwrap_or_default()
            .iter()
            .enumerate();
        let stored = scores.filter_map(|(at, score)| Some((at, (*score)?)));
        batch.stored_scores.extend(stored);
        batch.count = count;
        self.at += count;
    }

    #[inline]
    fn fill(&mut self, first: u64, bits: &mut [u64]) -> u64 {
        let end = first.saturating_add(64 * bits.len() as u64);
        let rest = self.content.ids.get(self.at..).unwrap_or_default();
        let count = rest.partition_point(|id| *id < end);
        crate::bits::set_bits(bits, first, rest.get(..count).unwrap_or_default());
        self.at += count;
        self.id()
    }
}

/// The terms of a field, each with its number of records.
///
/// ```
/// use windrow_search::Terms;
/// use windrow_search::memory::MemoryTerms;
///
/// let mut terms = MemoryTerms::new([("brew", 7), ("bread", 3)]);
/// assert_eq!(terms.records(), 3);
/// terms.seek(b"bree");
/// assert_eq!(terms.term(), Some(&b"brew"[..]));
/// ```
#[derive(Clone, Debug)]
pub struct MemoryTerms {
    /// The terms with their records.
    terms: Arc<Vec<(Vec<u8>, Vec<u64>)>>,
    at: usize,
    moves: u64,
}

impl MemoryTerms {
    /// Creates a cursor over terms, each with a number of records. The records have the ids from 0
    /// on.
    pub fn new<T: AsRef<[u8]>>(terms: impl IntoIterator<Item = (T, u64)>) -> MemoryTerms {
        let terms = terms.into_iter();
        MemoryTerms::with_records(terms.map(|(term, records)| (term, (0..records).collect())))
    }

    /// Creates a cursor over terms, each with its records.
    pub fn with_records<T: AsRef<[u8]>>(
        terms: impl IntoIterator<Item = (T, Vec<u64>)>,
    ) -> MemoryTerms {
        let terms = terms.into_iter();
        let terms = terms.map(|(term, records)| (term.as_ref().to_vec(), records));
        let mut terms: Vec<(Vec<u8>, Vec<u64>)> = terms.collect();
        terms.sort();
        MemoryTerms {
            terms: Arc::new(terms),
            at: 0,
            moves: 0,
        }
    }

    /// Returns the number of times that the cursor was moved.
    pub fn moves(&self) -> u64 {
        self.moves
    }
}

impl Terms for MemoryTerms {
    fn term(&self) -> Option<&[u8]> {
        self.terms.get(self.at).map(|(term, _)| term.as_slice())
    }

    fn next(&mut self) {
        self.moves += 1;
        self.at = self.terms.len().min(self.at + 1);
    }

    fn seek(&mut self, key: &[u8]) {
        self.moves += 1;
        let rest = self.terms.get(self.at..).unwrap_or_default();
        let mut step = 1;
        while rest
            .get(step)
            .is_some_and(|(term, _)| term.as_slice() < key)
        {
            step *= 2;
        }
        let near = rest.get(..rest.len().min(step + 1)).unwrap_or_default();
        self.at += near.partition_point(|(term, _)| term.as_slice() < key);
    }

    fn records(&mut self) -> u64 {
        let current = self.terms.get(self.at);
        current.map_or(0, |(_, records)| records.len() as u64)
    }

    fn has_few_records(&self) -> bool {
        const FEW: usize = 16;
        let current = self.terms.get(self.at);
        current.is_some_and(|(_, records)| records.len() <= FEW)
    }

    fn add_records(&mut self, set: &mut IdSet) {
        let current = self.terms.get(self.at);
        let records = current.into_iter().flat_map(|(_, records)| records);
        records.for_each(|id| {
            set.insert(*id);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_looked_at_without_moving() {
        let posting = |number: u32| MemoryPosting {
            id: u64::from(number) * 3,
            frequency: 1 + number / 128,
            length: 40,
            ..MemoryPosting::default()
        };
        let mut list = MemoryPostings::new((0..300).map(posting));
        assert_eq!(list.block_end(0), 127 * 3);
        assert_eq!(list.block_bound().impacts[0].frequency, 1);
        assert_eq!(list.block_end(127 * 3 + 1), 255 * 3);
        assert_eq!(list.block_bound().impacts[0].frequency, 2);
        assert_eq!(list.block_end(299 * 3), 299 * 3);
        assert_eq!(list.block_end(299 * 3 + 1), END);
        assert_eq!(list.block_bound(), Bound::default());
        assert_eq!(list.id(), 0);
        assert_eq!(list.seek(500), 501);
        assert_eq!(list.bound().impacts[0].frequency, 3);
        let mut bits = [0; 2];
        assert_eq!(list.fill(501, &mut bits), 501 + 129);
        assert_eq!(bits[0].count_ones() + bits[1].count_ones(), 43);
    }
}
