//! Sorting by the bytes of keys: numbers of 8 bytes move, not entries.
//!
//! What all keys begin with says nothing, so the 64 bits from the first that differs are what is sorted
//! by. Entries that are equal in these are sorted by what follows in the same way, and compared whole
//! where they are few.

use std::cmp::Ordering;

use crate::entry::{common_prefix, key_prefix};

/// What a key has at the place where it is looked at, and which entry it is of.
#[derive(Clone, Copy)]
struct Digits {
    bits: u64,
    number: u32,
}

/// Memory that sorting takes for each entry.
pub const ENTRY_BYTES: usize = size_of::<Digits>() + size_of::<u32>();

/// Stretches in order with so many entries each, on average, are merged, not sorted again.
const MERGED_ENTRIES_MIN: usize = 64;
/// So few equal ones are compared whole.
const COMPARED_MAX: usize = 48;
/// So often the bytes that follow are taken: keys that go on being equal are compared.
const ROUNDS_MAX: u32 = 16;

/// Entries that are to be sorted.
pub struct KeySort<'e, T, H, K, C> {
    pub entries: &'e [T],
    /// What [`KeyHead`](crate::entry::KeyHead) has of an entry's key.
    pub head: H,
    pub key: K,
    /// Orders two entries, by their keys and all else.
    pub compare: C,
}

impl<'e, T, H, K, C> KeySort<'e, T, H, K, C>
where
    H: Fn(&T) -> u128,
    K: Fn(&'e T) -> &'e [u8],
    C: Fn(&T, &T) -> Ordering,
{
    /// The numbers of the entries in their order. None where they are in order as they stand.
    pub fn numbers(&self) -> Option<impl ExactSizeIterator<Item = u32>> {
        let in_order = |one: &T, other: &T| (self.compare)(one, other) != Ordering::Greater;
        let first = self.entries.first()?;
        if self.entries.is_sorted_by(in_order) {
            return None;
        }
        let first_head = (self.head)(first);
        let heads = self.entries.iter().map(&self.head);
        let differing = heads.clone().fold(0, |bits, head| bits | head ^ first_head);
        let common = differing.leading_zeros();
        // Heads that are all equal have 128 bits in common, and none are left.
        let bits = |head: u128| (head.checked_shl(common).unwrap_or_default() >> 64) as u64;
        let digits = heads.zip(0..).map(|(head, number)| Digits {
            bits: bits(head),
            number,
        });
        let mut digits: Vec<Digits> = digits.collect();
        let falls = |pair: &&[Digits]| matches!(pair, [one, other] if one.bits > other.bits);
        let falls = digits.windows(2).filter(falls).count();
        match falls * MERGED_ENTRIES_MIN < digits.len() {
            true => digits.sort_by_key(|one| one.bits),
            false => digits.sort_unstable_by_key(|one| one.bits),
        }
        self.sort_equal(&mut digits, ROUNDS_MAX);
        debug_assert!(
            digits.is_sorted_by(|one, other| self.compare(one, other).is_le()),
            "entries are not in order after they were sorted"
        );
        Some(digits.into_iter().map(|one| one.number))
    }

    fn entry(&self, digits: &Digits) -> &'e T {
        &self.entries[digits.number as usize]
    }

    fn compare(&self, one: &Digits, other: &Digits) -> Ordering {
        (self.compare)(self.entry(one), self.entry(other))
    }

    /// Sorts those that are equal in the bits by which all are sorted.
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

    /// Takes what follows what all of these keys begin with; false where all go on alike: equal keys, and
    /// those that differ in zeros at their ends.
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
            head: |key: &&str| KeyHead::of(key.as_bytes()).number(),
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
    /// Enough keys that they are not all compared: of every length, with common beginnings of every
    /// length, equal ones among them, ends of zeros.
    #[test]
    fn long_keys_are_sorted_by_what_follows_their_common_beginning() {
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
