//! Ranges of index keys, and set operations on lists of them.

/// A range of keys, both ends inclusive.
pub type KeyRange = (u64, u64);

/// Sorts the ranges and joins those that overlap or are adjacent.
pub(crate) fn joined(mut ranges: Vec<KeyRange>) -> Vec<KeyRange> {
    ranges.sort_unstable();
    let mut found: Vec<KeyRange> = Vec::with_capacity(ranges.len());
    for (from, to) in ranges {
        match found.last_mut() {
            Some((_, end)) if end.checked_add(1).is_none_or(|next| next >= from) => {
                *end = (*end).max(to);
            }
            _ => found.push((from, to)),
        }
    }
    found
}

/// Returns the union of two lists, sorted and disjoint.
pub fn added(mut ranges: Vec<KeyRange>, more: &[KeyRange]) -> Vec<KeyRange> {
    ranges.extend_from_slice(more);
    joined(ranges)
}

/// Returns the keys of `ranges` that are not in `others`. `others` must be sorted and disjoint.
pub fn without(ranges: &[KeyRange], others: &[KeyRange]) -> Vec<KeyRange> {
    let mut found = Vec::new();
    for (from, to) in ranges {
        let first = others.partition_point(|(_, end)| end < from);
        let mut start = Some(*from);
        let met = others.get(first..).unwrap_or_default().iter();
        for (low, high) in met.take_while(|(low, _)| low <= to) {
            if let Some(open) = start
                && let Some(last) = low.checked_sub(1).filter(|last| *last >= open)
            {
                found.push((open, last));
            }
            start = high.checked_add(1);
        }
        found.extend(start.filter(|start| start <= to).map(|start| (start, *to)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_taken_out_of_ranges() {
        let check = |ranges: &[KeyRange], others: &[KeyRange], expected: &[KeyRange]| {
            assert_eq!(without(ranges, others), expected, "{ranges:?} {others:?}");
        };
        check(&[(1, 9)], &[], &[(1, 9)]);
        check(&[(1, 9)], &[(0, 9)], &[]);
        check(&[(1, 9)], &[(3, 4), (6, 6)], &[(1, 2), (5, 5), (7, 9)]);
        check(&[(1, 9), (20, 30)], &[(5, 25)], &[(1, 4), (26, 30)]);
        check(&[(0, u64::MAX)], &[(0, 5), (9, u64::MAX)], &[(6, 8)]);
        check(&[(5, 5)], &[(5, 5)], &[]);
    }

    #[test]
    fn ranges_that_meet_are_one() {
        assert_eq!(
            added(vec![(1, 3), (10, 12)], &[(4, 5), (11, 20)]),
            vec![(1, 5), (10, 20)]
        );
        let all = added(vec![(5, u64::MAX)], &[(0, 7)]);
        assert_eq!(all, vec![(0, u64::MAX)]);
    }
}
