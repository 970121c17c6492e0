//! Sorting by key heads: numbers of 8 bytes move, not entries.
//!
//! What all heads begin with says nothing, so the 64 bits from the first that differs are what is
//! compared. Only entries that are equal in these are compared whole.

use std::cmp::Ordering;

/// The bits of a head that are compared first, and which entry it is of.
#[derive(Clone, Copy)]
struct Digits {
    bits: u64,
    number: u32,
}

/// The numbers of entries in their order: by head, and where the 64 bits after the heads' common
/// beginning are equal, by `compare`.
pub fn in_order(
    heads: impl ExactSizeIterator<Item = u128> + Clone,
    compare: impl Fn(u32, u32) -> Ordering,
) -> impl ExactSizeIterator<Item = u32> {
    let first = heads.clone().next().unwrap_or_default();
    let differing = heads.clone().fold(0, |bits, head| bits | head ^ first);
    let common = differing.leading_zeros();
    let bits = |head: u128| (head.checked_shl(common).unwrap_or_default() >> 64) as u64;
    let mut digits: Vec<Digits> = heads
        .zip(0..)
        .map(|(head, number)| Digits {
            bits: bits(head),
            number,
        })
        .collect();
    digits.sort_unstable_by_key(|one| one.bits);
    for equal in digits.chunk_by_mut(|one, other| one.bits == other.bits) {
        if equal.len() > 1 {
            equal.sort_unstable_by(|one, other| compare(one.number, other.number));
        }
    }
    digits.into_iter().map(|one| one.number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::KeyHead;

    fn check(keys: &[&str]) {
        let heads = keys.iter().map(|key| KeyHead::of(key.as_bytes()).number());
        let compare = |one: u32, other: u32| keys[one as usize].cmp(keys[other as usize]);
        let found: Vec<&str> = in_order(heads, compare)
            .map(|number| keys[number as usize])
            .collect();
        let mut expected = keys.to_vec();
        expected.sort_unstable();
        assert_eq!(found, expected);
    }

    #[test]
    fn common_beginnings_and_ends_do_not_disturb() {
        check(&[]);
        check(&["a"]);
        check(&["same", "same", "same"]);
        check(&["b", "", "a", "ab", "a\0", "\0"]);
        check(&["common-b", "common-a", "common-", "common"]);
        let far = ["0123456789abcdefZ", "0123456789abcdefA", "0123456789abcdef"];
        check(&far);
        check(&[
            "0123456789abcdef2",
            "x",
            "0123456789abcdef1",
            "0123456789abcdee",
        ]);
    }
}
