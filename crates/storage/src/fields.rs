//! Little-endian numbers at fixed places. Reading past the end is `None`, never a panic.

pub(crate) fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    let field = bytes.get(offset..offset.checked_add(8)?)?;
    Some(u64::from_le_bytes(field.try_into().ok()?))
}

pub(crate) fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    let field = bytes.get(offset..offset.checked_add(4)?)?;
    Some(u32::from_le_bytes(field.try_into().ok()?))
}

pub(crate) fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    let field = bytes.get(offset..offset.checked_add(2)?)?;
    Some(u16::from_le_bytes(field.try_into().ok()?))
}

/// Writes a field of a header that our own code sized.
///
/// # Panics
/// Panics if the field lies outside of `bytes`: what lacks a part of its header cannot be read back.
pub(crate) fn put(bytes: &mut [u8], offset: usize, field: &[u8]) {
    let end = offset + field.len();
    let Some(place) = bytes.get_mut(offset..end) else {
        panic!(
            "a field ends at byte {end} of a header of {} bytes",
            bytes.len()
        );
    };
    place.copy_from_slice(field);
}
