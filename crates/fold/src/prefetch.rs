//! Explicit prefetching of memory.

/// Reads one byte of each location. The loads overlap, so that the processor waits for many cache
/// misses at once and not for one after the other.
pub fn load(read: impl Iterator<Item = u8>) {
    std::hint::black_box(read.fold(0, |all, one| all ^ one));
}
