//! How much memory values take, for limits.

use windrow_document::{Value, ValueRef};

/// About the bytes that a value takes.
pub(super) fn value_bytes(value: ValueRef<'_>) -> usize {
    let heap = match value {
        ValueRef::String(text) | ValueRef::JavaScript(text) | ValueRef::Symbol(text) => text.len(),
        ValueRef::Document(document) => document.as_bytes().len(),
        ValueRef::Array(array) => array.as_bytes().len(),
        ValueRef::Binary { bytes, .. } => bytes.len(),
        _ => 0,
    };
    size_of::<Value>() + heap
}
