//! Little-endian integers and texts at an offset.

use encoding_rs::{UTF_16LE, WINDOWS_1252};

pub(crate) fn u8_at(bytes: &[u8], offset: usize) -> Option<u8> {
    bytes.get(offset).copied()
}

pub(crate) fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    let rest = bytes.get(offset..)?.first_chunk()?;
    Some(u16::from_le_bytes(*rest))
}

pub(crate) fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    let rest = bytes.get(offset..)?.first_chunk()?;
    Some(u32::from_le_bytes(*rest))
}

pub(crate) fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    let rest = bytes.get(offset..)?.first_chunk()?;
    Some(u64::from_le_bytes(*rest))
}

/// Like [`u32_at`], for lengths and offsets.
pub(crate) fn length_at(bytes: &[u8], offset: usize) -> Option<usize> {
    usize::try_from(u32_at(bytes, offset)?).ok()
}

/// Returns `length` bytes from `offset` on.
pub(crate) fn slice_at(bytes: &[u8], offset: usize, length: usize) -> Option<&[u8]> {
    bytes.get(offset..offset.checked_add(length)?)
}

pub(crate) fn decode_utf16(bytes: &[u8]) -> String {
    UTF_16LE.decode_without_bom_handling(bytes).0.into_owned()
}

/// Decodes the low bytes of UTF-16 code units, or Windows-1252.
pub(crate) fn decode_latin(bytes: &[u8]) -> String {
    WINDOWS_1252
        .decode_without_bom_handling(bytes)
        .0
        .into_owned()
}
