//! Little-endian numbers at fixed offsets. A read past the end returns `None` and never panics,
//! because the bytes come from files.

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

/// Writes a field of a header. Only for buffers whose size this crate chose.
///
/// # Panics
/// Panics if the field is not inside `bytes`. A header without one of its fields could not be read
/// back.
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
