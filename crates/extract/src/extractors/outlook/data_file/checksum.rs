//! The checksum of pages and blocks: CRC-32 with the polynomial of zip, without inversions. Source:
//! MS-PST, section 5.3.

pub(super) fn checksum(bytes: &[u8]) -> u32 {
    // The crate inverts the checksum before and after.
    let mut hasher = crc32fast::Hasher::new_with_initial(u32::MAX);
    hasher.update(bytes);
    !hasher.finalize()
}
