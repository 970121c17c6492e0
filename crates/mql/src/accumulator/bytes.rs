//! The memory of values, for limits.

use windrow_document::{Value, ValueRef};

use crate::memory::heap_bytes;

/// Returns the approximate bytes of a value in memory.
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

/// Returns the bytes of a field in a BSON document.
pub(super) fn field_bytes(name: &str, value: ValueRef<'_>) -> usize {
    let fixed = match value {
        ValueRef::Null | ValueRef::Undefined | ValueRef::MinKey | ValueRef::MaxKey => 0,
        ValueRef::Document(_) | ValueRef::Array(_) => 0,
        ValueRef::Bool(_) => 1,
        ValueRef::Regex { .. } => 2,
        ValueRef::Int32(_) => 4,
        ValueRef::String(_) | ValueRef::JavaScript(_) | ValueRef::Symbol(_) => 5,
        ValueRef::Binary { .. } => 5,
        ValueRef::Double(_) | ValueRef::Int64(_) => 8,
        ValueRef::DateTime(_) | ValueRef::Timestamp(_) => 8,
        ValueRef::JavaScriptWithScope { .. } => 9,
        ValueRef::ObjectId(_) => 12,
        ValueRef::Decimal128(_) => 16,
        ValueRef::DbPointer { namespace, .. } => namespace.len() + 17,
    };
    let kind_and_end_of_name = 2;
    name.len() + kind_and_end_of_name + fixed + heap_bytes(value)
}

#[cfg(test)]
mod tests {
    use windrow_document::{Decimal128, DocumentBuf, ObjectId, Timestamp, Value, array, doc};

    use super::*;

    #[test]
    fn field_bytes_are_the_bytes_of_the_encoding() {
        let values = [
            Value::Null,
            Value::MinKey,
            Value::Bool(true),
            Value::Int32(1),
            Value::Int64(1),
            Value::Double(1.5),
            Value::Decimal128(Decimal128::from_i64(1)),
            Value::DateTime(1),
            Value::Timestamp(Timestamp::from_bits(1)),
            Value::ObjectId(ObjectId::parse("0123456789abcdef01234567").unwrap()),
            "text".into(),
            array![1, "a"].into(),
            doc! { "a": 1 }.into(),
        ];
        for value in values {
            let mut document = DocumentBuf::new();
            document.push("name", value.as_ref());
            let bytes = DocumentBuf::new().as_bytes().len() + field_bytes("name", value.as_ref());
            assert_eq!(bytes, document.as_bytes().len(), "{value:?}");
        }
    }
}
