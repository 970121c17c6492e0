//! An in-place radix sort by the most significant byte. A common prefix of the keys is skipped at
//! once, and equal keys are not compared.

use std::array;
use std::cmp::Ordering;

/// Groups of at most this many values are sorted by comparisons.
const COMPARED_MAX: usize = 48;
const KEY_BYTES: u32 = 16;

/// The functions of a sort.
pub struct RadixSort<K, C, E> {
    /// Returns the bytes of the key as a big-endian number.
    pub key: K,
    /// Compares two values: by the key, then by everything else.
    pub compare: C,
    /// Sorts values with equal keys.
    pub equal: E,
}

impl<K, C, E> RadixSort<K, C, E> {
    pub fn sort<T: Copy>(&self, values: &mut [T])
    where
        K: Fn(&T) -> u128,
        C: Fn(&T, &T) -> Ordering,
        E: Fn(&mut [T]),
    {
        self.sort_from(values, 0);
    }

    /// Sorts values whose keys are equal in the first `byte` bytes.
    fn sort_from<T: Copy>(&self, values: &mut [T], byte: u32)
    where
        K: Fn(&T) -> u128,
        C: Fn(&T, &T) -> Ordering,
        E: Fn(&mut [T]),
    {
        if values.len() <= COMPARED_MAX {
            return values.sort_unstable_by(&self.compare);
        }
        if byte == KEY_BYTES {
            return (self.equal)(values);
        }
        let mut byte = byte;
        let mut counts = self.counts(values, byte);
        if counts.contains(&values.len()) {
            let differing = self.differing(values);
            if differing == 0 {
                return (self.equal)(values);
            }
            byte = differing.leading_zeros() / 8;
            counts = self.counts(values, byte);
        }
        self.distribute(values, byte, &counts);
        let mut rest = values;
        for count in counts {
            let (bucket, behind) = rest.split_at_mut(count);
            if count > 1 {
                self.sort_from(bucket, byte + 1);
            }
            rest = behind;
        }
    }

    /// Counts the values of a byte.
    #[allow(clippy::indexing_slicing, reason = "a digit is a byte")]
    fn counts<T>(&self, values: &[T], byte: u32) -> [usize; 256]
    where
        K: Fn(&T) -> u128,
    {
        let mut counts = [0; 256];
        for value in values {
            counts[self.digit(value, byte)] += 1;
        }
        counts
    }

    /// Returns the bits in which the keys differ.
    fn differing<T>(&self, values: &[T]) -> u128
    where
        K: Fn(&T) -> u128,
    {
        let first = values.first().map_or(0, &self.key);
        let bits = values.iter().map(|value| (self.key)(value) ^ first);
        bits.fold(0, |all, bits| all | bits)
    }

    #[inline]
    fn digit<T>(&self, value: &T, byte: u32) -> usize
    where
        K: Fn(&T) -> u128,
    {
        ((self.key)(value) >> (8 * (KEY_BYTES - 1 - byte))) as usize & 0xFF
    }

    /// Distributes the values into buckets by a byte. Each value is swapped with the one at the
    /// next free index of its bucket, bucket by bucket, until all are in place. A swapped value is
    /// not followed at once, so that several cache misses overlap.
    #[allow(
        clippy::indexing_slicing,
        reason = "a digit is a byte; the places of all buckets are those of the values"
    )]
    fn distribute<T: Copy>(&self, values: &mut [T], byte: u32, counts: &[usize; 256])
    where
        K: Fn(&T) -> u128,
    {
        let mut next = [0; 256];
        let mut ends = [0; 256];
        let mut end = 0;
        for ((count, next), bucket_end) in counts.iter().zip(&mut next).zip(&mut ends) {
            *next = end;
            end += count;
            *bucket_end = end;
        }
        let mut open: [usize; 256] = array::from_fn(|bucket| bucket);
        let mut open_count = open.len();
        while open_count > 0 {
            let mut still_open = 0;
            for nth in 0..open_count {
                let bucket = open[nth];
                for place in next[bucket]..ends[bucket] {
                    let digit = self.digit(&values[place], byte);
                    values.swap(place, next[digit]);
                    next[digit] += 1;
                }
                if next[bucket] < ends[bucket] {
                    open[still_open] = bucket;
                    still_open += 1;
                }
            }
            open_count = still_open;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sorts pairs of a key and a rest.
    fn check(mut values: Vec<(u128, u32)>) {
        let radix = RadixSort {
            key: |value: &(u128, u32)| value.0,
            compare: Ord::cmp,
            equal: |equal: &mut [(u128, u32)]| {
                assert!(equal.iter().all(|it| it.0 == equal[0].0));
                equal.sort_unstable_by_key(|it| it.1);
            },
        };
        let mut expected = values.clone();
        expected.sort_unstable();
        radix.sort(&mut values);
        assert_eq!(values, expected);
    }

    #[test]
    fn keys_of_many_distributions_are_sorted() {
        let scattered = |number: u32| u128::from(number.wrapping_mul(2_654_435_761));
        let numbers = || 0..5_000u32;
        check(Vec::new());
        check(numbers().map(|it| (7, it ^ 0x155)).collect());
        for shift in [0, 3, 64, 96] {
            let key = |it| scattered(it) << shift;
            check(numbers().map(|it| (key(it), it)).collect());
            check(numbers().map(|it| (key(it % 10), it)).collect());
            check(numbers().map(|it| (key(it) | 1 << 127, it)).collect());
        }
        let both_ends = |it| scattered(it % 3) << 96 | scattered(it % 50) & 0xFF;
        check(numbers().map(|it| (both_ends(it), it)).collect());
        check(numbers().rev().map(|it| (u128::from(it), it)).collect());
    }
}
