//! The 64-bit hash of hashed indexes. It equals MongoDB's, so hashed keys and the order of scans
//! are the same.
//!
//! The hash is the first 8 bytes (little-endian) of an MD5 digest over these bytes of each value:
//!
//! 1. the canonical type (4 bytes), see `canonical_type` below
//! 2. the field's name and a zero byte, for fields of nested documents
//! 3. the BSON encoding; for numbers, the number truncated to a 64-bit integer
//!
//! Equal values have equal hashes. Source: the pages "Hashed Indexes" and "$toHashedIndexKey" of
//! MongoDB's manual.

use crate::build::write_value;
use crate::{Type, ValueRef};

/// The seed, which is hashed before the value. MongoDB's indexes use 0.
const SEED: i32 = 0;

/// Returns the hash of a value. A missing field has the hash of null.
pub fn hash64(value: ValueRef<'_>) -> i64 {
    let mut bytes = SEED.to_le_bytes().to_vec();
    append(&mut bytes, value, None);
    let [a, b, c, d, e, f, g, h, ..] = md5::compute(&bytes).0;
    i64::from_le_bytes([a, b, c, d, e, f, g, h])
}

fn append(bytes: &mut Vec<u8>, value: ValueRef<'_>, name: Option<&str>) {
    bytes.extend_from_slice(&canonical_type(value.type_of()).to_le_bytes());
    if let Some(name) = name {
        bytes.extend_from_slice(name.as_bytes());
        bytes.push(0);
    }
    match value {
        ValueRef::Double(_) | ValueRef::Int32(_) | ValueRef::Int64(_) | ValueRef::Decimal128(_) => {
            bytes.extend_from_slice(&whole_part(value).to_le_bytes())
        }
        ValueRef::Document(document) => append_all(bytes, document.iter()),
        ValueRef::Array(array) => {
            let names: Vec<String> = (0..array.count()).map(|index| index.to_string()).collect();
            append_all(bytes, names.iter().map(String::as_str).zip(array.iter()));
        }
        ValueRef::JavaScriptWithScope { code, scope } => {
            bytes.extend_from_slice(code.as_bytes());
            bytes.push(0);
            append_all(bytes, scope.iter());
        }
        plain => write_value(bytes, plain),
    }
}

/// Appends the fields and the end of the document, which counts as a value of type 0 without name
/// and content.
fn append_all<'a>(bytes: &mut Vec<u8>, fields: impl Iterator<Item = (&'a str, ValueRef<'a>)>) {
    fields.for_each(|(name, value)| append(bytes, value, Some(name)));
    bytes.extend_from_slice(&0i32.to_le_bytes());
}

/// Truncates a number to an integer. NaN becomes 0, too large numbers saturate.
fn whole_part(value: ValueRef<'_>) -> i64 {
    match value {
        ValueRef::Int32(number) => i64::from(number),
        ValueRef::Int64(number) => number,
        ValueRef::Double(number) => number as i64,
        ValueRef::Decimal128(number) => match number.to_i64_truncated() {
            Some((whole, _)) => whole,
            None if number.is_nan() => 0,
            None if number.is_negative() => i64::MIN,
            None => i64::MAX,
        },
        _ => 0,
    }
}

/// MongoDB's canonical type: equal for types that compare by value.
fn canonical_type(type_of: Type) -> i32 {
    match type_of {
        Type::MinKey => -1,
        Type::Undefined => 0,
        Type::Null => 5,
        Type::Double | Type::Int32 | Type::Int64 | Type::Decimal128 => 10,
        Type::String | Type::Symbol => 15,
        Type::Document => 20,
        Type::Array => 25,
        Type::Binary => 30,
        Type::ObjectId => 35,
        Type::Bool => 40,
        Type::DateTime => 45,
        Type::Timestamp => 47,
        Type::Regex => 50,
        Type::DbPointer => 55,
        Type::JavaScript => 60,
        Type::JavaScriptWithScope => 65,
        Type::MaxKey => 127,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Decimal128, Value, doc};

    #[test]
    fn hashes_equal_those_of_mongodb() {
        assert_eq!(hash64(ValueRef::String("hello")), 5_347_277_839_332_858_538);
    }

    /// A recorded scan of a hashed index returned the values in this order.
    #[test]
    fn hash_order_equals_a_recorded_scan() {
        let values: [Value; 6] = [
            2.into(),
            Value::Null,
            0.into(),
            true.into(),
            "2".into(),
            doc! { "x": 1 }.into(),
        ];
        assert!(values.map(|value| hash64(value.as_ref())).is_sorted());
    }

    #[test]
    fn equal_values_have_equal_hashes() {
        let decimal = |text: &str| Value::Decimal128(Decimal128::parse(text).unwrap());
        let check = |one: Value, other: Value, equal: bool| {
            let same = hash64(one.as_ref()) == hash64(other.as_ref());
            assert_eq!(same, equal, "{one} {other}");
        };
        check(2.into(), 2i64.into(), true);
        check(2.into(), decimal("2.00"), true);
        check(2.into(), 2.9.into(), true);
        check(0.into(), (-0.0).into(), true);
        check(decimal("1E+40"), 1e40.into(), true);
        check(
            doc! { "a": [1, { "b": 2 }] }.into(),
            doc! { "a": [1.0, { "b": 2i64 }] }.into(),
            true,
        );
        check(Value::Symbol("x".to_owned()), "x".into(), true);
        check(Value::Null, Value::Undefined, false);
        check("2".into(), 2.into(), false);
        check(doc! { "a": 1 }.into(), doc! { "b": 1 }.into(), false);
    }
}
