//! The records of a build, divided into ranges.
//!
//! A worker of the server takes range after range from the front. Followers get several ranges at
//! once from the back: first large parts, then smaller ones, so that all end at about the same
//! time.

use std::collections::VecDeque;

use parking_lot::Mutex;

use crate::catalog::rows;
use crate::core::Core;
use crate::generation::BEHIND_ALL;
use crate::index::Index;

/// Bounds are stored in catalog rows, which are small, so longer ones are truncated.
const PLACE_BYTES_MAX: usize = 256;
/// A share has at least so many ranges, if there are so many.
const SHARE_RANGES_MIN: usize = 2;

/// A range of keys, without its end.
pub(super) type Range = (Vec<u8>, Vec<u8>);

/// The ranges that no thread and no follower has read yet.
pub(super) struct RangeQueue {
    left: Mutex<VecDeque<Range>>,
    total: usize,
}

impl RangeQueue {
    pub fn new(ranges: Vec<Range>) -> RangeQueue {
        RangeQueue {
            total: ranges.len(),
            left: Mutex::new(ranges.into()),
        }
    }

    /// Returns the number of ranges at the beginning.
    pub fn total(&self) -> usize {
        self.total
    }

    pub fn len(&self) -> usize {
        self.left.lock().len()
    }

    pub fn pop(&self) -> Option<Range> {
        self.left.lock().pop_front()
    }

    pub fn push(&self, range: Range) {
        self.left.lock().push_back(range);
    }

    /// Removes ranges from the back that follow each other, and returns them as one. `threads` is
    /// the number of threads that build, of all servers: the share is half of what each would get.
    pub fn pop_share(&self, threads: usize) -> Option<Range> {
        let mut left = self.left.lock();
        let count = (left.len() / (2 * threads.max(1))).max(SHARE_RANGES_MIN);
        let (mut first, end) = left.pop_back()?;
        for _ in 1..count {
            match left.pop_back_if(|(_, end)| *end == first) {
                Some((start, _)) => first = start,
                None => break,
            }
        }
        Some((first, end))
    }
}

/// Returns the ranges that sections of an unfinished build cover, in order.
pub(super) fn covered(core: &Core, index: &Index) -> Vec<Range> {
    let prefix = rows::key(rows::BUILD, &[index.map.0]);
    let rows = core.storage.catalog.scan(&prefix);
    let place = |key: &[u8]| key.split_at(prefix.len()).1.to_vec();
    rows.iter()
        .map(|(key, end)| (place(key), end.to_vec()))
        .collect()
}

/// Returns the ranges that are not done, divided at the cuts, which are sorted.
pub(super) fn ranges(done: &[Range], cuts: Vec<Vec<u8>>) -> Vec<Range> {
    let mut left = Vec::new();
    let mut from = Vec::new();
    let mut cuts = cuts.into_iter().map(cut).peekable();
    let last = (BEHIND_ALL.to_vec(), Vec::new());
    for (first, done_end) in done.iter().cloned().chain([last]) {
        while let Some(cut) = cuts.next_if(|cut| *cut < first) {
            if from < cut {
                left.push((std::mem::replace(&mut from, cut.clone()), cut));
            }
        }
        if from < first {
            left.push((from.clone(), first));
        }
        from = from.max(done_end);
    }
    left
}

/// Truncates a bound to the length that fits a row.
pub(super) fn cut(mut place: Vec<u8>) -> Vec<u8> {
    place.truncate(PLACE_BYTES_MAX);
    place
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
                (from.as_bytes().to_vec(), end)
            };
            let done: Vec<Range> = done.iter().map(range).collect();
            let expected: Vec<Range> = expected.iter().map(range).collect();
            let cuts = cuts.iter().map(|cut| cut.as_bytes().to_vec()).collect();
            assert_eq!(ranges(&done, cuts), expected);
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
        let mut all: Vec<Range> = (0..96).map(|it| (number(it), number(it + 1))).collect();
        all.retain(|(first, _)| *first != number(90));
        let queue = RangeQueue::new(all);
        let (mut taken, mut sizes) = (Vec::new(), Vec::new());
        while let Some((first, end)) = queue.pop_share(3) {
            sizes.push(end[0] - first[0]);
            taken.extend(first[0]..end[0]);
            taken.extend(queue.pop().map(|(first, _)| first[0]));
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
