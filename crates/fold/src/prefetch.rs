//! Memory that is fetched before it is read.

/// Reads what each of these reads from memory: the machine waits for many of them at once, where it would
/// wait for one after the other.
pub fn touch(read: impl Iterator<Item = u8>) {
    std::hint::black_box(read.fold(0, |all, one| all ^ one));
}
