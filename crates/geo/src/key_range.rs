//! Ranges of index keys, and set operations on lists of them.

/// A range of keys, both ends inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyRange {
    /// The smallest key.
    pub first: u64,
    /// The greatest key.
    pub last: u64,
}

impl KeyRange {
    /// Creates a range. It is empty if `last` is less than `first`.
    pub fn new(first: u64, last: u64) -> KeyRange {
        KeyRange { first, last }
    }

    /// Returns `true` if the key is in the range.
    pub fn contains(&self, key: u64) -> bool {
        (self.first..=self.last).contains(&key)
    }
}

/// Sorts the ranges and joins those that overlap or are adjacent.
pub(crate) fn merge(mut ranges: Vec<KeyRange>) -> Vec<KeyRange> {
    ranges.sort_unstable();
    let mut merged: Vec<KeyRange> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match merged.last_mut() {
            Some(previous) if previous.last.saturating_add(1) >= range.first => {
                previous.last = previous.last.max(range.last);
            }
            _ => merged.push(range),
        }
    }
    merged
}

/// Returns the union of two lists, sorted and disjoint.
pub fn union(mut ranges: Vec<KeyRange>, others: &[KeyRange]) -> Vec<KeyRange> {
    ranges.extend_from_slice(others);
    merge(ranges)
}

/// Returns the keys of `ranges` that are not in `others`. `others` must be sorted and disjoint.
pub fn difference(ranges: &[KeyRange], others: &[KeyRange]) -> Vec<KeyRange> {
    let mut found = Vec::new();
    for range in ranges {
        let first = others.partition_point(|other| other.last < range.first);
        // The first key that no range of `others` has passed yet. `None` after the greatest key.
        let mut start = Some(range.first);
        let overlapping = others.get(first..).unwrap_or_default().iter();
        for other in overlapping.take_while(|other| other.first <= range.last) {
            if let Some(start) = start
                && let Some(last) = other.first.checked_sub(1).filter(|last| *last >= start)
            {
                found.push(KeyRange::new(start, last));
            }
            start = other.last.checked_add(1);
        }
        let rest = start.filter(|start| *start <= range.last);
        found.extend(rest.map(|start| KeyRange::new(start, range.last)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(pairs: &[(u64, u64)]) -> Vec<KeyRange> {
        let range = |(first, last): &(u64, u64)| KeyRange::new(*first, *last);
        pairs.iter().map(range).collect()
    }

    #[test]
    fn difference_removes_the_keys_of_other_ranges() {
        let check = |pairs: &[(u64, u64)], others: &[(u64, u64)], expected: &[(u64, u64)]| {
            let found = difference(&ranges(pairs), &ranges(others));
            assert_eq!(found, ranges(expected), "{pairs:?} {others:?}");
        };
        check(&[(1, 9)], &[], &[(1, 9)]);
        check(&[(1, 9)], &[(0, 9)], &[]);
        check(&[(1, 9)], &[(3, 4), (6, 6)], &[(1, 2), (5, 5), (7, 9)]);
        check(&[(1, 9), (20, 30)], &[(5, 25)], &[(1, 4), (26, 30)]);
        check(&[(0, u64::MAX)], &[(0, 5), (9, u64::MAX)], &[(6, 8)]);
        check(&[(5, 5)], &[(5, 5)], &[]);
    }

    #[test]
    fn union_joins_adjacent_ranges() {
        let check = |pairs: &[(u64, u64)], others: &[(u64, u64)], expected: &[(u64, u64)]| {
            let found = union(ranges(pairs), &ranges(others));
            assert_eq!(found, ranges(expected), "{pairs:?} {others:?}");
        };
        check(
            &[(1, 3), (10, 12)],
            &[(4, 5), (11, 20)],
            &[(1, 5), (10, 20)],
        );
        check(&[(5, u64::MAX)], &[(0, 7)], &[(0, u64::MAX)]);
    }
}
