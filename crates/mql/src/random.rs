//! Random numbers for `$rand` and for the order of `{$meta: "randVal"}`.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The state of the generator. Each process starts with a different seed.
static STATE: LazyLock<AtomicU64> =
    LazyLock::new(|| AtomicU64::new(RandomState::new().hash_one(0u64)));

/// Returns a number that is uniformly distributed in [0, 1). Source: SplitMix64 from Steele, Lea
/// and Flood, "Fast Splittable Pseudorandom Number Generators" (2014).
pub(crate) fn fraction() -> f64 {
    let mut bits = STATE.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^= bits >> 31;
    (bits >> 11) as f64 / (1u64 << 53) as f64
}
