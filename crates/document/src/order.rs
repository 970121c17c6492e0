//! MongoDB's order of values, and the equality that follows from it. Types are ordered first:
//! MinKey, undefined, null, numbers, strings and symbols, documents, arrays, binary, ObjectId,
//! bool, date, timestamp, regex, DBPointer, code, code with scope, MaxKey. Numbers of all types are
//! compared by value, and NaN is less than all others. Source:
//! <https://www.mongodb.com/docs/manual/reference/bson-type-comparison-order/>.

use std::cmp::Ordering;

use crate::key;
use crate::{Array, Document, ValueRef};

impl<'a> ValueRef<'a> {
    /// Compares two values. This is a total order; `Equal` means that MongoDB considers the values
    /// equal.
    pub fn compare(self, other: ValueRef<'_>) -> Ordering {
        let ranks = self.type_of().rank().cmp(&other.type_of().rank());
        ranks.then_with(|| compare_within_rank(self, other))
    }

    /// Returns `true` if the values compare equal: 1, 1.0 and NumberDecimal("1.00") are equal.
    pub fn equals(self, other: ValueRef<'_>) -> bool {
        self.compare(other) == Ordering::Equal
    }
}

fn compare_within_rank(left: ValueRef<'_>, right: ValueRef<'_>) -> Ordering {
    use ValueRef as V;
    match (left, right) {
        (V::String(a) | V::Symbol(a), V::String(b) | V::Symbol(b)) => a.cmp(b),
        (V::JavaScript(a), V::JavaScript(b)) => a.cmp(b),
        (V::Document(a), V::Document(b)) => compare_documents(a, b),
        (V::Array(a), V::Array(b)) => compare_arrays(a, b),
        (
            V::Binary {
                subtype: s,
                bytes: a,
            },
            V::Binary {
                subtype: t,
                bytes: b,
            },
        ) => (a.len(), s, a).cmp(&(b.len(), t, b)),
        (V::ObjectId(a), V::ObjectId(b)) => a.cmp(&b),
        (V::Bool(a), V::Bool(b)) => a.cmp(&b),
        (V::DateTime(a), V::DateTime(b)) => a.cmp(&b),
        (V::Timestamp(a), V::Timestamp(b)) => a.cmp(&b),
        (
            V::Regex {
                pattern: a,
                options: c,
            },
            V::Regex {
                pattern: b,
                options: d,
            },
        ) => (a, c).cmp(&(b, d)),
        (
            V::DbPointer {
                namespace: a,
                id: c,
            },
            V::DbPointer {
                namespace: b,
                id: d,
            },
        ) => (a.len(), a, c).cmp(&(b.len(), b, d)),
        (
            V::JavaScriptWithScope { code: a, scope: c },
            V::JavaScriptWithScope { code: b, scope: d },
        ) => a.cmp(b).then_with(|| compare_documents(c, d)),
        _ if left.is_number() && right.is_number() => compare_numbers(left, right),
        _ => Ordering::Equal,
    }
}

/// Compares documents field by field: first the types' ranks, then the names, then the values. If
/// all fields are equal, the shorter document is less.
pub fn compare_documents(left: Document<'_>, right: Document<'_>) -> Ordering {
    let (mut left, mut right) = (left.iter(), right.iter());
    loop {
        let ((name, value), (other_name, other_value)) = match (left.next(), right.next()) {
            (Some(left), Some(right)) => (left, right),
            (left, right) => return left.is_some().cmp(&right.is_some()),
        };
        let ranks = value.type_of().rank().cmp(&other_value.type_of().rank());
        let order = ranks
            .then_with(|| name.cmp(other_name))
            .then_with(|| compare_within_rank(value, other_value));
        if order != Ordering::Equal {
            return order;
        }
    }
}

/// Compares arrays element by element. If all are equal, the shorter array is less.
fn compare_arrays(left: Array<'_>, right: Array<'_>) -> Ordering {
    let (mut left, mut right) = (left.iter(), right.iter());
    loop {
        let (value, other_value) = match (left.next(), right.next()) {
            (Some(left), Some(right)) => (left, right),
            (left, right) => return left.is_some().cmp(&right.is_some()),
        };
        let order = value.compare(other_value);
        if order != Ordering::Equal {
            return order;
        }
    }
}

fn compare_numbers(left: ValueRef<'_>, right: ValueRef<'_>) -> Ordering {
    use ValueRef as V;
    match (left, right) {
        (V::Int32(a), V::Int32(b)) => a.cmp(&b),
        (V::Double(a), V::Double(b)) => compare_doubles(a, b),
        (V::Decimal128(_), _) | (_, V::Decimal128(_)) => compare_number_keys(left, right),
        (V::Double(a), _) => compare_double_whole(a, whole(right)),
        (_, V::Double(b)) => compare_double_whole(b, whole(left)).reverse(),
        _ => whole(left).cmp(&whole(right)),
    }
}

fn whole(number: ValueRef<'_>) -> i64 {
    match number {
        ValueRef::Int32(number) => i64::from(number),
        ValueRef::Int64(number) => number,
        _ => 0,
    }
}

/// Compares doubles. NaN equals NaN and is less than all others; -0 equals 0.
pub fn compare_doubles(left: f64, right: f64) -> Ordering {
    left.partial_cmp(&right)
        .unwrap_or_else(|| right.is_nan().cmp(&left.is_nan()))
}

/// Compares exactly: large integers are not rounded to doubles.
fn compare_double_whole(double: f64, number: i64) -> Ordering {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if double.is_nan() || double < -LIMIT {
        return Ordering::Less;
    }
    if double >= LIMIT {
        return Ordering::Greater;
    }
    let truncated = double.trunc();
    (truncated as i64)
        .cmp(&number)
        .then_with(|| compare_doubles(double, truncated))
}

/// Key bytes are exact for all number types.
fn compare_number_keys(left: ValueRef<'_>, right: ValueRef<'_>) -> Ordering {
    let (mut left_key, mut right_key) = (Vec::new(), Vec::new());
    key::append(&mut left_key, left);
    key::append(&mut right_key, right);
    left_key.cmp(&right_key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Decimal128, ObjectId, Timestamp, Value, array, doc};

    fn decimal(text: &str) -> Value {
        Value::Decimal128(Decimal128::parse(text).unwrap())
    }

    /// Groups of equal values in ascending order.
    pub(crate) fn ascending_values() -> Vec<Vec<Value>> {
        [
            vec![
                vec![Value::MinKey],
                vec![Value::Undefined],
                vec![Value::Null],
            ],
            ascending_numbers(),
            ascending_strings(),
            ascending_containers(),
            ascending_binary_values(),
            ascending_values_after_binary(),
        ]
        .concat()
    }

    fn ascending_numbers() -> Vec<Vec<Value>> {
        vec![
            vec![f64::NAN.into(), decimal("NaN")],
            vec![f64::NEG_INFINITY.into(), decimal("-Infinity")],
            vec![decimal("-1E+6000")],
            vec![f64::MIN.into()],
            vec![(-1e19).into(), decimal("-1E19")],
            vec![i64::MIN.into(), (-(2f64.powi(63))).into()],
            vec![(i64::MIN + 1).into()],
            vec![Value::Int32(-257), (-257.0).into()],
            vec![(-2).into()],
            vec![(-1.5).into(), decimal("-1.50")],
            vec![(-1).into()],
            vec![decimal("-0.1000000000000000055511151231257828")],
            vec![decimal("-0.1")],
            vec![(-f64::MIN_POSITIVE).into()],
            vec![(-5e-324).into()],
            vec![decimal("-1E-6176")],
            vec![0.into(), (-0.0).into(), 0i64.into(), decimal("-0E+3")],
            vec![decimal("1E-6176")],
            vec![5e-324.into()],
            vec![f64::MIN_POSITIVE.into()],
            vec![decimal("0.1")],
            vec![0.1.into()],
            vec![0.5.into(), decimal("0.5")],
            vec![decimal("0.9999999999999999999999999999999999")],
            vec![1.into(), 1.0.into(), 1i64.into(), decimal("1.000")],
            vec![decimal("1.000000000000000000000000000000001")],
            vec![(1.0 + f64::EPSILON).into()],
            vec![1.5.into(), decimal("1.5")],
            vec![2.into()],
            vec![255.into()],
            vec![(255.0 + 2f64.powi(-44)).into()],
            vec![(255.0 + 1.0 / 128.0).into(), decimal("255.0078125")],
            vec![(255.0 + 1.0 / 128.0 + 1.0 / 256.0).into()],
            vec![decimal("255.3")],
            vec![255.3.into()],
            vec![(255.5 - 2f64.powi(-44)).into()],
            vec![255.5.into()],
            vec![(256.0 - 2f64.powi(-44)).into()],
            vec![256.into()],
            vec![65536.into(), 65536.0.into()],
            vec![(1i64 << 53).into(), 2f64.powi(53).into()],
            vec![((1i64 << 53) + 1).into(), decimal("9007199254740993")],
            vec![((1i64 << 53) + 2).into()],
            vec![i64::MAX.into(), decimal("9223372036854775807")],
            vec![decimal("9223372036854775807.5")],
            vec![2f64.powi(63).into(), decimal("9223372036854775808")],
            vec![decimal("18446744073709551615")],
            vec![2f64.powi(64).into(), decimal("18446744073709551616")],
            vec![decimal("18446744073709551616.5")],
            vec![f64::MAX.into()],
            vec![decimal("1E+6000")],
            vec![f64::INFINITY.into(), decimal("Infinity")],
        ]
    }

    fn ascending_strings() -> Vec<Vec<Value>> {
        vec![
            vec!["".into()],
            vec!["\0".into()],
            vec!["\0a".into()],
            vec!["a".into(), Value::Symbol("a".into())],
            vec!["a\0".into()],
            vec!["a\0b".into()],
            vec!["aa".into()],
            vec!["b".into()],
        ]
    }

    fn ascending_containers() -> Vec<Vec<Value>> {
        vec![
            vec![doc! {}.into()],
            vec![doc! { "b": 1 }.into(), doc! { "b": 1.0 }.into()],
            vec![doc! { "b": 1, "a": 1 }.into()],
            vec![doc! { "b": 2 }.into()],
            vec![doc! { "a": "x" }.into()],
            vec![array![].into()],
            vec![array![1].into()],
            vec![array![1, 2].into()],
            vec![array![2].into()],
            vec![array!["a"].into()],
        ]
    }

    fn ascending_binary_values() -> Vec<Vec<Value>> {
        let binary = |subtype, bytes| vec![Value::Binary { subtype, bytes }];
        vec![
            binary(5, vec![]),
            binary(0, vec![9]),
            binary(2, vec![1]),
            binary(0, vec![0, 0]),
            binary(0, vec![9; 254]),
            binary(0, vec![5; 255]),
            binary(0, vec![1; 256]),
        ]
    }

    fn ascending_values_after_binary() -> Vec<Vec<Value>> {
        vec![
            vec![ObjectId([1; 12]).into()],
            vec![ObjectId([2; 12]).into()],
            vec![false.into()],
            vec![true.into()],
            vec![Value::DateTime(-1)],
            vec![Value::DateTime(1)],
            vec![
                Timestamp {
                    seconds: 1,
                    increment: 9,
                }
                .into(),
            ],
            vec![
                Timestamp {
                    seconds: 2,
                    increment: 0,
                }
                .into(),
            ],
            vec![Value::Regex {
                pattern: "a".into(),
                options: "".into(),
            }],
            vec![Value::Regex {
                pattern: "a".into(),
                options: "i".into(),
            }],
            vec![Value::DbPointer {
                namespace: "z".into(),
                id: ObjectId([0; 12]),
            }],
            vec![Value::DbPointer {
                namespace: "aa".into(),
                id: ObjectId([0; 12]),
            }],
            vec![Value::JavaScript("a".into())],
            vec![Value::JavaScriptWithScope {
                code: "a".into(),
                scope: doc! {},
            }],
            vec![Value::MaxKey],
        ]
    }

    #[test]
    fn values_of_all_types_are_ordered() {
        let groups = ascending_values();
        for (rank, group) in groups.iter().enumerate() {
            for (other_rank, other_group) in groups.iter().enumerate() {
                for (one, other) in group
                    .iter()
                    .flat_map(|one| other_group.iter().map(move |other| (one, other)))
                {
                    let found = one.as_ref().compare(other.as_ref());
                    assert_eq!(found, rank.cmp(&other_rank), "{one:?} {other:?}");
                }
            }
        }
    }

    #[test]
    fn key_bytes_have_the_order_of_values() {
        let groups = ascending_values();
        let encode = |value: &Value, descending| {
            let mut bytes = Vec::new();
            key::append_with_direction(&mut bytes, value.as_ref(), descending);
            key::append(&mut bytes, ValueRef::Int32(7));
            bytes
        };
        for (rank, group) in groups.iter().enumerate() {
            for (other_rank, other_group) in groups.iter().enumerate() {
                for (one, other) in group
                    .iter()
                    .flat_map(|one| other_group.iter().map(move |other| (one, other)))
                {
                    let ascending = encode(one, false).cmp(&encode(other, false));
                    assert_eq!(ascending, rank.cmp(&other_rank), "{one:?} {other:?}");
                    let descending = encode(one, true).cmp(&encode(other, true));
                    assert_eq!(descending, other_rank.cmp(&rank), "{one:?} {other:?}");
                }
            }
        }
    }

    #[test]
    fn key_bytes_and_shape_restore_the_value() {
        for value in ascending_values().into_iter().flatten() {
            for descending in [false, true] {
                let (mut bytes, mut shape) = (Vec::new(), Vec::new());
                key::append_with_shape(&mut bytes, &mut shape, value.as_ref(), descending);
                let mut reader = key::KeyReader::new(&bytes, &shape);
                let back = reader.value(descending).unwrap();
                let same = format!("{back:?}") == format!("{value:?}");
                assert!(same, "{value:?} came back as {back:?}");
                assert!(reader.is_at_end());
            }
        }
    }
}
