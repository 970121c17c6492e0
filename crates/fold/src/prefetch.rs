//! Prefetching: memory is loaded before it is needed.

/// Reads one byte at each place. The loads overlap, so that the processor waits for many cache misses
/// at once instead of for one after the other.
pub fn load(read: impl Iterator<Item = u8>) {
    std::hint::black_box(read.fold(0, |all, one| all ^ one));
}
