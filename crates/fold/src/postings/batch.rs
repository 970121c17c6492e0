//! Several postings that are passed together.

/// Consecutive postings of one group.
#[derive(Clone, Copy, Debug)]
pub struct PostingBatch<'l> {
    /// The record ids. They are bare numbers, as they are unpacked.
    pub ids: &'l [u64],
    /// The number of occurrences of the term in each record.
    pub frequencies: &'l [u32],
    /// The number of tokens of the field in each record.
    pub lengths: &'l [u32],
    /// The stored scores, each with the index of its posting.
    pub scores: &'l [(usize, f64)],
}
