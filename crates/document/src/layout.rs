//! How many bytes a value has, and the whole numbers that stand before and in it.

use crate::value::Type;

/// The length in bytes of the value at the front of `bytes`.
pub(crate) fn value_length(type_of: Type, bytes: &[u8]) -> Option<usize> {
    Some(match type_of {
        Type::Double | Type::DateTime | Type::Timestamp | Type::Int64 => 8,
        Type::Int32 => 4,
        Type::Bool => 1,
        Type::ObjectId => 12,
        Type::Decimal128 => 16,
        Type::Null | Type::Undefined | Type::MinKey | Type::MaxKey => 0,
        Type::String | Type::JavaScript | Type::Symbol => read_length(bytes)?.checked_add(4)?,
        Type::Document | Type::Array | Type::JavaScriptWithScope => read_length(bytes)?,
        Type::Binary => read_length(bytes)?.checked_add(5)?,
        Type::DbPointer => read_length(bytes)?.checked_add(16)?,
        Type::Regex => {
            let pattern = memchr::memchr(0, bytes)?;
            let options = memchr::memchr(0, bytes.get(pattern + 1..)?)?;
            pattern + options + 2
        }
    })
}

pub(crate) fn read_i32(bytes: &[u8]) -> Option<i32> {
    bytes.first_chunk().map(|chunk| i32::from_le_bytes(*chunk))
}

pub(crate) fn read_u64(bytes: &[u8]) -> Option<u64> {
    bytes.first_chunk().map(|chunk| u64::from_le_bytes(*chunk))
}

pub(crate) fn read_length(bytes: &[u8]) -> Option<usize> {
    usize::try_from(read_i32(bytes)?).ok()
}
