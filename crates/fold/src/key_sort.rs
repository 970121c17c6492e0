//! Sorting entries by the bytes of their keys. The sort moves records of 16 bytes, not entries.
//!
//! The common prefix of all keys does not tell them apart. The sort key is the 64 bits from the
//! first bit that differs. Entries with equal sort keys are sorted by the bytes that follow, in the
//! same way. A group of few such entries is sorted by whole comparisons.

use std::cmp::Ordering;

use crate::entry::{common_prefix, key_prefix};

/// 64 bits of a key, and the number of its entry.
#[derive(Clone, Copy)]
struct Digits {
    bits: u64,
    number: u32,
}

/// Memory that a sort takes for each entry, in bytes.
pub const ENTRY_BYTES: usize = size_of::<Digits>() + size_of::<u32>();

/// If the entries consist of ascending runs with at least this many entries on average, the runs
/// are merged by a stable sort.
const MERGED_ENTRIES_MIN: usize = 64;
/// Groups of at most this many entries with equal bits are sorted by whole comparisons.
const COMPARED_MAX: usize = 48;
/// The bytes that follow are taken at most this often; longer common parts are compared whole.
const ROUNDS_MAX: u32 = 16;

/// Entries to sort, and the functions that read and compare them.
pub struct KeySort<'e, T, H, K, C> {
    pub entries: &'e [T],
    /// Returns the number of an entry's [`KeyHead`](crate::entry::KeyHead).
    pub head: H,
    pub key: K,
    /// Compares two entries by their keys, then by everything else.
    pub compare: C,
}

impl<'e, T, H, K, C> KeySort<'e, T, H, K, C>
where
    H: Fn(&T) -> u128,
    K: Fn(&'e T) -> &'e [u8],
    C: Fn(&T, &T) -> Ordering,
{
    /// Returns the numbers of the entries in sorted order, or `None` if they are in order already.
    pub fn numbers(self) -> Option<impl ExactSizeIterator<Item = u32>> {
        let in_order = |one: &T, other: &T| (self.compare)(one, other) != Ordering::Greater;
        let first = self.entries.first()?;
        if self.entries.is_sorted_by(in_order) {
            return None;
        }
        let first_head = (self.head)(first);
        let heads = self.entries.iter().map(&self.head);
        let differing = heads.clone().fold(0, |bits, head| bits | head ^ first_head);
        let common = differing.leading_zeros();
        // If all heads are equal, all 128 bits are common and none are left.
        let bits = |head: u128| (head.checked_shl(common).unwrap_or_default() >> 64) as u64;
        let digits = heads.zip(0..).map(|(head, number)| Digits {
            bits: bits(head),
            number,
        });
        let mut digits: Vec<Digits> = digits.collect();
        let falls = |pair: &&[Digits]| matches!(pair, [one, other] if one.bits > other.bits);
        let falls = digits.windows(2).filter(falls).count();
        if falls * MERGED_ENTRIES_MIN < digits.len() {
            digits.sort_by_key(|one| one.bits)
        } else {
            digits.sort_unstable_by_key(|one| one.bits)
        }
        self.sort_equal(&mut digits, ROUNDS_MAX);
        debug_assert!(
            digits.is_sorted_by(|one, other| self.compare(one, other).is_le()),
            "the sort left entries unsorted"
        );
        Some(digits.into_iter().map(|one| one.number))
    }

    fn entry(&self, digits: &Digits) -> &'e T {
        &self.entries[digits.number as usize]
    }

    fn compare(&self, one: &Digits, other: &Digits) -> Ordering {
        (self.compare)(self.entry(one), self.entry(other))
    }

    /// Sorts each group of entries with equal bits.
    fn sort_equal(&self, digits: &mut [Digits], rounds: u32) {
        for equal in digits.chunk_by_mut(|one, other| one.bits == other.bits) {
            if equal.len() > COMPARED_MAX && rounds > 0 && self.take_following(equal) {
                equal.sort_unstable_by_key(|one| one.bits);
                self.sort_equal(equal, rounds - 1);
            } else if equal.len() > 1 {
                equal.sort_by(|one, other| self.compare(one, other));
            }
        }
    }

    /// Replaces the bits by those after the common prefix of these keys. Returns `false` if they
    /// are all equal: the keys are equal, or differ only in trailing zeros.
    fn take_following(&self, digits: &mut [Digits]) -> bool {
        let key = |one: &Digits| (self.key)(self.entry(one));
        let Some(first) = digits.first().map(key) else {
            return false;
        };
        let common = digits.iter().map(|one| common_prefix(first, key(one)));
        let common = common.min().unwrap_or(first.len());
        for one in &mut *digits {
            one.bits = key_prefix(&key(one)[common..]);
        }
        let bits = digits.first().map(|one| one.bits);
        digits.iter().any(|one| Some(one.bits) != bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::KeyHead;

    fn check(keys: &[&str]) {
        fn bytes<'k>(key: &'k &str) -> &'k [u8] {
            key.as_bytes()
        }
        let order = KeySort {
            entries: keys,
            head: |key: &&str| KeyHead::new(key.as_bytes()).number(),
            key: bytes,
            compare: |one: &&str, other: &&str| one.cmp(other),
        };
        let found = match order.numbers() {
            Some(numbers) => numbers.map(|number| keys[number as usize]).collect(),
            None => keys.to_vec(),
        };
        let mut expected = keys.to_vec();
        expected.sort_unstable();
        assert_eq!(found, expected);
    }

    #[test]
    fn keys_with_common_prefixes_and_suffixes_are_sorted() {
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
    /// The groups are too large to be sorted by whole comparisons: keys of many lengths, with
    /// common prefixes of many lengths, equal keys, and trailing zeros.
    #[test]
    fn long_keys_are_sorted_by_the_bytes_after_their_common_prefix() {
        let number = |n: u32| n.wrapping_mul(2_654_435_761);
        for length in [0, 10, 16, 17, 40] {
            let beginning = "b".repeat(length);
            let keys: Vec<String> = (0..2_000)
                .map(|n| match n % 4 {
                    0 => format!("{beginning}{}", number(n)),
                    1 => format!("{beginning}{beginning}{}", number(n) % 7),
                    2 => format!("{beginning}{}", "c".repeat(n as usize % 300)),
                    _ => format!("{beginning}{}", "\0".repeat(n as usize % 20)),
                })
                .collect();
            check(&keys.iter().map(String::as_str).collect::<Vec<_>>());
        }
    }
}
