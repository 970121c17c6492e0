//! Memory that is fetched before it is read.

/// Reads each of these bytes: the machine waits for many of them at once, where it would wait for one after
/// the other.
pub fn touch<'b>(bytes: impl Iterator<Item = &'b u8>) {
    std::hint::black_box(bytes.fold(0, |all, byte| all ^ byte));
}
