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

/// Entries by their numbers.
pub struct Order<K, C> {
    pub key: K,
    /// Orders two entries, by their keys and all else.
    pub compare: C,
}

impl<'k, K: Fn(u32) -> &'k [u8], C: Fn(u32, u32) -> Ordering> Order<K, C> {
    /// The numbers of entries in their order, from what [`KeyHead`](crate::entry::KeyHead) has of each.
    /// None where they are in order as they stand.
    pub fn of(
        &self,
        heads: impl ExactSizeIterator<Item = u128> + Clone,
    ) -> Option<impl ExactSizeIterator<Item = u32>> {
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
        if digits.is_sorted_by(|one, other| self.compare(one, other) != Ordering::Greater) {
            return None;
        }
        let falls = |pair: &&[Digits]| matches!(pair, [one, other] if one.bits > other.bits);
        let falls = digits.windows(2).filter(falls).count();
        match falls * MERGED_ENTRIES_MIN < digits.len() {
            true => digits.sort_by_key(|one| one.bits),
            false => digits.sort_unstable_by_key(|one| one.bits),
        }
        self.sort_equal(&mut digits, ROUNDS_MAX);
        Some(digits.into_iter().map(|one| one.number))
    }

    fn compare(&self, one: &Digits, other: &Digits) -> Ordering {
        let bits = one.bits.cmp(&other.bits);
        bits.then_with(|| (self.compare)(one.number, other.number))
    }

    /// Sorts those that are equal in the bits by which all are sorted.
    fn sort_equal(&self, digits: &mut [Digits], rounds: u32) {
        for equal in digits.chunk_by_mut(|one, other| one.bits == other.bits) {
            if equal.len() > COMPARED_MAX && rounds > 0 && self.take_following(equal) {
                equal.sort_unstable_by_key(|one| one.bits);
                self.sort_equal(equal, rounds - 1);
            } else if equal.len() > 1 {
                equal.sort_by(|one, other| (self.compare)(one.number, other.number));
            }
        }
    }

    /// Takes what follows what all of these keys begin with; false where all go on alike: equal keys, and
    /// those that differ in zeros at their ends.
    fn take_following(&self, digits: &mut [Digits]) -> bool {
        let key = |one: &Digits| (self.key)(one.number);
        let first = digits.first().map_or(&[][..], key);
        let common = digits.iter().map(|one| common_prefix(first, key(one)));
        let common = common.min().unwrap_or_default();
        for one in &mut *digits {
            one.bits = key_prefix(key(one).get(common..).unwrap_or_default());
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
        let heads = keys.iter().map(|key| KeyHead::of(key.as_bytes()).number());
        let compare = |one: u32, other: u32| keys[one as usize].cmp(keys[other as usize]);
        let order = Order {
            key: |number: u32| keys[number as usize].as_bytes(),
            compare,
        };
        let found: Vec<&str> = match order.of(heads) {
            Some(order) => order.map(|number| keys[number as usize]).collect(),
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
