//! The records of a build, divided into ranges.
//!
//! A worker of the server takes range after range from the front. Followers get several ranges at
//! once from the back: first large parts, then smaller ones, so that all end at about the same
//! time.

use std::collections::VecDeque;

use parking_lot::Mutex;

use crate::catalog::rows::RecordRange;
use crate::generation::BEHIND_ALL;

/// Bounds are stored in catalog rows, which are small, so longer ones are truncated.
const BOUND_BYTES_MAX: usize = 256;
/// The minimal number of ranges of a share, if there are as many.
const SHARE_RANGES_MIN: usize = 2;

/// The ranges that no thread and no follower has read yet.
pub(super) struct RangeQueue {
    queue: Mutex<VecDeque<RecordRange>>,
    total: usize,
}

impl RangeQueue {
    pub fn new(ranges: Vec<RecordRange>) -> RangeQueue {
        RangeQueue {
            total: ranges.len(),
            queue: Mutex::new(ranges.into()),
        }
    }

    /// Returns the number of ranges at the beginning.
    pub fn total(&self) -> usize {
        self.total
    }

    pub fn len(&self) -> usize {
        self.queue.lock().len()
    }

    pub fn pop(&self) -> Option<RecordRange> {
        self.queue.lock().pop_front()
    }

    pub fn push(&self, range: RecordRange) {
        self.queue.lock().push_back(range);
    }

    /// Removes ranges from the back that follow each other, and returns them as one. `threads` is
    /// the number of threads that build, of all servers: the share is half of what each would get.
    pub fn pop_share(&self, threads: usize) -> Option<RecordRange> {
        let mut queue = self.queue.lock();
        let count = (queue.len() / (2 * threads.max(1))).max(SHARE_RANGES_MIN);
        let mut share = queue.pop_back()?;
        for _ in 1..count {
            match queue.pop_back_if(|range| range.end == share.first) {
                Some(range) => share.first = range.first,
                None => break,
            }
        }
        Some(share)
    }
}

/// Returns the ranges that are not built, divided at the split keys, which are sorted.
pub(super) fn unbuilt_ranges(built: &[RecordRange], split_keys: Vec<Vec<u8>>) -> Vec<RecordRange> {
    let mut ranges = Vec::new();
    let mut from = Vec::new();
    let mut bounds = split_keys.into_iter().map(truncate_bound).peekable();
    let last = RecordRange {
        first: BEHIND_ALL.to_vec(),
        end: Vec::new(),
    };
    for RecordRange { first, end } in built.iter().cloned().chain([last]) {
        while let Some(bound) = bounds.next_if(|bound| *bound < first) {
            if from < bound {
                ranges.push(RecordRange {
                    first: std::mem::replace(&mut from, bound.clone()),
                    end: bound,
                });
            }
        }
        if from < first {
            ranges.push(RecordRange {
                first: from.clone(),
                end: first,
            });
        }
        from = from.max(end);
    }
    ranges
}

/// Truncates a bound to the length that fits a row.
pub(super) fn truncate_bound(mut bound: Vec<u8>) -> Vec<u8> {
    bound.truncate(BOUND_BYTES_MAX);
    bound
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_cover_the_rest() {
        let check = |done: &[(&str, &str)], cuts: &[&str], expected: &[(&str, &str)]| {
            let range = |(from, end): &(&str, &str)| {
                let end = match *end {
                    "END" => BEHIND_ALL.to_vec(),
                    end => end.as_bytes().to_vec(),
                };
                RecordRange {
                    first: from.as_bytes().to_vec(),
                    end,
                }
            };
            let done: Vec<RecordRange> = done.iter().map(range).collect();
            let expected: Vec<RecordRange> = expected.iter().map(range).collect();
            let cuts = cuts.iter().map(|cut| cut.as_bytes().to_vec()).collect();
            assert_eq!(unbuilt_ranges(&done, cuts), expected);
        };
        check(&[], &[], &[("", "END")]);
        check(&[], &["", "b", "d"], &[("", "b"), ("b", "d"), ("d", "END")]);
        let left = [("c", "d"), ("d", "e"), ("g", "END")];
        check(&[("", "c"), ("e", "g")], &["b", "d", "f", "g"], &left);
        check(&[("", "END")], &["b"], &[]);
        check(
            &[("b", "e"), ("c", "d")],
            &["c"],
            &[("", "b"), ("e", "END")],
        );
    }

    /// Shares and single ranges together are the whole, and no share jumps over a gap.
    #[test]
    fn shares_shrink_and_cover_everything() {
        let number = |number: u8| vec![number];
        let mut all: Vec<RecordRange> = (0..96)
            .map(|it| RecordRange {
                first: number(it),
                end: number(it + 1),
            })
            .collect();
        all.retain(|range| range.first != number(90));
        let queue = RangeQueue::new(all);
        let (mut taken, mut sizes) = (Vec::new(), Vec::new());
        while let Some(RecordRange { first, end }) = queue.pop_share(3) {
            sizes.push(end[0] - first[0]);
            taken.extend(first[0]..end[0]);
            taken.extend(queue.pop().map(|range| range.first[0]));
        }
        assert_eq!(&sizes[..3], [5, 14, 12], "{sizes:?}");
        assert!(
            sizes[3..].is_sorted_by(|one, other| one >= other),
            "{sizes:?}"
        );
        taken.sort_unstable();
        let expected: Vec<u8> = (0..96).filter(|it| *it != 90).collect();
        assert_eq!(taken, expected);
    }
}
