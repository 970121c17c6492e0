//! Deterministic random numbers: SplitMix64. Source: Steele, Lea and Flood, "Fast splittable
//! pseudorandom number generators", OOPSLA 2014.

/// A generator of random numbers.
///
/// ```
/// use windrow_simulation::random::Random;
///
/// assert_eq!(Random::new(7).below(100), Random::new(7).below(100));
/// ```
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Creates a generator. The same seed yields the same numbers.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// Returns the next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.0)
    }

    /// Returns a number below `end`, which must not be zero.
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(end)) >> 64) as u64
    }

    /// Returns `true` with the probability 1 / `times`.
    pub fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// Returns one of `all`, which must not be empty.
    pub fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        let number = self.below(all.len() as u64) as usize;
        all[number]
    }
}

/// The finalizer of SplitMix64: each bit of the result depends on each bit of the argument.
pub fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ (number >> 31)
}
