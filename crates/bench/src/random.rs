//! The random numbers of all corpora. The same seed yields the same documents on every machine.
//! SplitMix64: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA
//! 2014.

/// A generator of random numbers.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Creates a generator.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Creates a generator for one of many independent streams of the same seed.
    pub fn stream(seed: u64, number: u64) -> Self {
        let mut stream = Self(seed ^ number.wrapping_mul(0xD6E8_FEB8_6659_FD93));
        Self(stream.next())
    }

    /// Returns the next 64 random bits.
    #[allow(
        clippy::should_implement_trait,
        reason = "an endless source, not an iterator"
    )]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.0)
    }

    /// Returns a number below `end`. The bias is negligible if `end` is far below 2^64.
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }

    /// Returns a number from `first` to `last`, both inclusive.
    pub fn between(&mut self, first: u64, last: u64) -> u64 {
        first + self.below(last - first + 1)
    }

    /// Appends `count` letters a–z. A random number yields twelve letters.
    pub fn letters(&mut self, count: usize, into: &mut Vec<u8>) {
        let mut left = count;
        while left > 0 {
            let mut bits = self.next();
            for _ in 0..left.min(12) {
                let wide = u128::from(bits) * 26;
                into.push(b'a' + (wide >> 64) as u8);
                bits = wide as u64;
            }
            left -= left.min(12);
        }
    }
}

/// The finalizer of SplitMix64, a bijection.
pub fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_splitmix64() {
        let mut random = Random::new(0);
        let found = [random.next(), random.next(), random.next()];
        assert_eq!(
            found,
            [
                0xE220_A839_7B1D_CDAF,
                0x6E78_9E6A_A1B9_65F4,
                0x06C4_5D18_8009_454F
            ]
        );
    }

    #[test]
    fn bounds_are_inclusive() {
        let mut random = Random::new(1);
        let drawn: Vec<u64> = (0..1000).map(|_| random.between(4, 12)).collect();
        assert_eq!(
            (drawn.iter().min(), drawn.iter().max()),
            (Some(&4), Some(&12))
        );
    }

    #[test]
    fn letters_are_a_to_z() {
        let mut letters = Vec::new();
        Random::new(1).letters(10_000, &mut letters);
        assert_eq!(letters.len(), 10_000);
        let mut kinds = letters.clone();
        kinds.sort_unstable();
        kinds.dedup();
        assert!(kinds.iter().all(u8::is_ascii_lowercase));
        assert_eq!(kinds.len(), 26);
    }
}
