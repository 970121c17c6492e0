//! Checksums of all bytes that are stored in files, and the seeds of those checksums.

use twox_hash::XxHash3_64;

/// Returns the XXH3-64 of `bytes`. The seed identifies the place that the bytes belong to. Bytes of
/// another place, or of an earlier use of the same file, therefore fail the comparison.
pub(crate) fn checksum(seed: u64, bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot_with_seed(seed, bytes)
}

/// Returns a seed that depends on both numbers. docs/format.md has the formula: blocks on disk
/// depend on it.
pub(crate) fn seed_from(first: u64, second: u64) -> u64 {
    let mixed = first.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ second.rotate_left(32);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}
