use twox_hash::XxHash3_64;

/// XXH3-64 of `bytes`. The seed says where the bytes belong, so that bytes of another place, or
/// of an earlier use of the same file, do not pass.
pub(crate) fn checksum(seed: u64, bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot_with_seed(seed, bytes)
}

/// A seed that depends on two numbers; any change of either changes it.
pub(crate) fn seed_of(first: u64, second: u64) -> u64 {
    let mixed = first.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ second.rotate_left(32);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}
