//! Which components of paths contain arrays.

use windrow_document::path::Path;

use crate::source::SourceIndex;

/// Returns the components of a field's path that contain arrays, as bits.
pub fn parts_with_arrays(index: &SourceIndex, field: usize) -> u32 {
    index.multikey.0.get(field).copied().unwrap_or_default()
}

/// Returns the components that the paths of two fields have in common, as bits.
pub fn common_parts(one: &Path, other: &Path) -> u32 {
    let pairs = one.components().iter().zip(other.components());
    let count = pairs.take_while(|(one, other)| one == other).count();
    1u32.checked_shl(count as u32)
        .map_or(u32::MAX, |bit| bit - 1)
}
