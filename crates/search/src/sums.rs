//! Adds up the scores of records list by list, in windows of record ids.

use crate::batch::Batch;
use crate::bits::{WINDOW_IDS, WINDOW_WORDS, set_bit};
use crate::matches::Matches;

/// Returns the factor that makes the sum of `count` bounds a bound of the sum of `count` scores.
/// Each addition rounds, so a sum depends on the order in which its numbers are added. The factor
/// is 1 for up to two numbers, because their order does not matter.
pub(crate) fn sum_slack(count: usize) -> f64 {
    match count {
        0..=2 => 1.0,
        _ => 1.0 + count as f64 * f64::EPSILON,
    }
}

/// The sums of the scores of the records in a window of ids.
#[derive(Debug)]
pub(crate) struct Sums {
    bits: [u64; WINDOW_WORDS],
    sums: Box<[f64]>,
    batch: Batch,
}

impl Default for Sums {
    fn default() -> Sums {
        Sums {
            bits: [0; WINDOW_WORDS],
            sums: vec![0.0; WINDOW_IDS as usize].into_boxed_slice(),
            batch: Batch::default(),
        }
    }
}

impl Sums {
    /// Reads the postings of all lists from `first` up to `last`, but at most one window of ids.
    /// Passes the id and the sum of each record to `take`. The lists must be at `first` or later,
    /// and `first` must not be `END`.
    #[inline]
    pub fn read<M: Matches>(
        &mut self,
        lists: &mut [M],
        first: u64,
        last: u64,
        mut take: impl FnMut(u64, f64),
    ) {
        let last = last.min(first.saturating_add(WINDOW_IDS - 1));
        for list in lists {
            while list.id() <= last {
                list.read(last, &mut self.batch);
                if self.batch.count == 0 {
                    break;
                }
                for (id, score) in self.batch.scored() {
                    let at = id - first;
                    if let Some(sum) = self.sums.get_mut(at as usize) {
                        *sum += score;
                        set_bit(&mut self.bits, at);
                    }
                }
            }
        }
        let words = (last - first) / 64 + 1;
        for (word, number) in self.bits.iter_mut().zip(0..words) {
            while *word != 0 {
                let at = number * 64 + u64::from(word.trailing_zeros());
                *word &= *word - 1;
                if let Some(sum) = self.sums.get_mut(at as usize) {
                    take(first + at, std::mem::take(sum));
                }
            }
        }
    }
}
