//! Field operators and array operators of updates.

use super::*;

#[test]
fn numbers_overflow_into_wider_types() {
    let int_max = i64::from(i32::MAX);
    let cases = [
        (
            doc! { "$inc": { "a": 1 } },
            Value::Int32(i32::MAX),
            Ok(Value::Int64(int_max + 1)),
        ),
        (doc! { "$inc": { "a": 1 } }, Value::Int64(i64::MAX), Err(2)),
        (
            doc! { "$inc": { "a": 0.5 } },
            Value::Int32(1),
            Ok(Value::Double(1.5)),
        ),
        (
            doc! { "$inc": { "a": 1i64 } },
            Value::Int32(1),
            Ok(Value::Int64(2)),
        ),
        (doc! { "$mul": { "a": 2 } }, Value::Int64(i64::MAX), Err(2)),
        (
            doc! { "$mul": { "a": 2 } },
            decimal("1.50"),
            Ok(decimal("3.00")),
        ),
        (
            doc! { "$mul": { "a": 2 } },
            Value::String("2".into()),
            Err(14),
        ),
        (doc! { "$inc": { "a": 2 } }, Value::Null, Err(14)),
        (
            doc! { "$bit": { "a": { "and": 10, "or": 1i64 } } },
            Value::Int32(13),
            Ok(Value::Int64(9)),
        ),
        (
            doc! { "$bit": { "a": { "xor": 1 } } },
            Value::Double(1.0),
            Err(2),
        ),
    ];
    for (update, value, expected) in cases {
        check(
            doc! { "a": value },
            update,
            expected.map(|value| doc! { "a": value }),
        );
    }
    check(
        doc! {},
        doc! { "$inc": { "a": 2i64 }, "$mul": { "b": 2.5 }, "$bit": { "c": { "or": 6 } } },
        Ok(doc! { "a": 2i64, "b": 0.0, "c": 6 }),
    );
}

#[test]
fn extremes_follow_the_order_over_all_types() {
    let cases = [
        (
            doc! { "$min": { "a": 1 } },
            doc! { "a": "text" },
            doc! { "a": 1 },
        ),
        (
            doc! { "$max": { "a": 1 } },
            doc! { "a": "text" },
            doc! { "a": "text" },
        ),
        (
            doc! { "$max": { "a": "b" } },
            doc! { "a": "a" },
            doc! { "a": "b" },
        ),
        (
            doc! { "$min": { "a": 1 } },
            doc! { "a": null },
            doc! { "a": null },
        ),
        (
            doc! { "$max": { "a": 1, "b": 2 } },
            doc! { "a": (f64::NAN) },
            doc! { "a": 1, "b": 2 },
        ),
    ];
    cases.into_iter().for_each(|(update, original, expected)| {
        check(original, update, Ok(expected));
    });
}

#[test]
fn push_inserts_then_sorts_then_slices() {
    let cases = [
        (doc! { "a": 9 }, array![5, 1, 4, 9]),
        (doc! { "a": [7, 8] }, array![5, 1, 4, [7, 8]]),
        (doc! { "a": { "$each": [7, 8] } }, array![5, 1, 4, 7, 8]),
        (
            doc! { "a": { "$each": [7, 8], "$position": 0 } },
            array![7, 8, 5, 1, 4],
        ),
        (
            doc! { "a": { "$each": [7, 8], "$position": (-1) } },
            array![5, 1, 7, 8, 4],
        ),
        (
            doc! { "a": { "$each": [7, 8], "$position": (-9) } },
            array![7, 8, 5, 1, 4],
        ),
        (
            doc! { "a": { "$each": [7, 8], "$position": 9 } },
            array![5, 1, 4, 7, 8],
        ),
        (doc! { "a": { "$each": [2], "$slice": 2 } }, array![5, 1]),
        (doc! { "a": { "$each": [2], "$slice": (-2) } }, array![4, 2]),
        (doc! { "a": { "$each": [2], "$slice": 0 } }, array![]),
        (
            doc! { "a": { "$slice": 3, "$sort": (-1), "$each": [2] } },
            array![5, 4, 2],
        ),
        (
            doc! { "a": { "$each": ["x", null], "$sort": 1 } },
            array![null, 1, 4, 5, "x"],
        ),
    ];
    for (push, expected) in cases {
        check(
            doc! { "a": [5, 1, 4] },
            doc! { "$push": push },
            Ok(doc! { "a": expected }),
        );
    }
    check(
        doc! { "a": [{ "x": 2, "y": 1 }, { "x": 1 }] },
        doc! { "$push": { "a": { "$each": [{ "x": 2, "y": 0 }, { "y": 5 }], "$sort": { "x": (-1), "y": 1 } } } },
        Ok(doc! { "a": [{ "x": 2, "y": 0 }, { "x": 2, "y": 1 }, { "x": 1 }, { "y": 5 }] }),
    );
    check(
        doc! {},
        doc! { "$push": { "a": { "$each": [] } } },
        Ok(doc! { "a": [] }),
    );
    check(doc! { "a": 1 }, doc! { "$push": { "a": 1 } }, Err(2));
}

#[test]
fn add_to_set_appends_values_that_are_missing() {
    let cases = [
        (
            doc! { "$addToSet": { "a": 2 } },
            Ok(array![1, { "x": 1, "y": 2 }, 2]),
        ),
        (
            doc! { "$addToSet": { "a": 1i64 } },
            Ok(array![1, { "x": 1, "y": 2 }]),
        ),
        (
            doc! { "$addToSet": { "a": { "y": 2, "x": 1 } } },
            Ok(array![1, { "x": 1, "y": 2 }, { "y": 2, "x": 1 }]),
        ),
        (
            doc! { "$addToSet": { "a": { "$each": [3, 3.0, 1] } } },
            Ok(array![1, { "x": 1, "y": 2 }, 3]),
        ),
        (doc! { "$addToSet": { "a.0": 1 } }, Err(2)),
    ];
    for (update, expected) in cases {
        let original = doc! { "a": [1, { "x": 1, "y": 2 }] };
        check(original, update, expected.map(|array| doc! { "a": array }));
    }
}

#[test]
fn pull_removes_matching_elements() {
    let original = || array![1, 5, "5", null, [5], { "x": 5, "y": 1 }, { "x": 6 }];
    let cases = [
        (
            doc! { "$pull": { "a": 5 } },
            array![1, "5", null, [5], { "x": 5, "y": 1 }, { "x": 6 }],
        ),
        (
            doc! { "$pull": { "a": null } },
            array![1, 5, "5", [5], { "x": 5, "y": 1 }, { "x": 6 }],
        ),
        (
            doc! { "$pull": { "a": { "$gte": 5 } } },
            array![1, "5", null, { "x": 5, "y": 1 }, { "x": 6 }],
        ),
        (
            doc! { "$pull": { "a": { "$eq": { "x": 6 } } } },
            array![1, 5, "5", null, [5], { "x": 5, "y": 1 }],
        ),
        (
            doc! { "$pull": { "a": { "x": 5 } } },
            array![1, 5, "5", null, [5], { "x": 6 }],
        ),
        (
            doc! { "$pull": { "a": { "x": { "$gt": 5 } } } },
            array![1, 5, "5", null, [5], { "x": 5, "y": 1 }],
        ),
        (
            doc! { "$pull": { "a": { "$in": [1, "5"] } } },
            array![5, null, [5], { "x": 5, "y": 1 }, { "x": 6 }],
        ),
        (doc! { "$pull": { "a": {} } }, array![1, 5, "5", null, [5]]),
        (
            doc! { "$pullAll": { "a": [1, { "x": 6 }, [5]] } },
            array![5, "5", null, { "x": 5, "y": 1 }],
        ),
        (
            doc! { "$pop": { "a": 1 } },
            array![1, 5, "5", null, [5], { "x": 5, "y": 1 }],
        ),
        (
            doc! { "$pop": { "a": (-1.0) } },
            array![5, "5", null, [5], { "x": 5, "y": 1 }, { "x": 6 }],
        ),
    ];
    for (update, expected) in cases {
        check(
            doc! { "a": (original()) },
            update,
            Ok(doc! { "a": expected }),
        );
    }
    check(doc! { "a": 1 }, doc! { "$pull": { "a": 1 } }, Err(2));
    check(doc! { "a": 1 }, doc! { "$pop": { "a": 1 } }, Err(14));
}

/// `$pull` used to accept `$jsonSchema`, which MongoDB allows for whole documents only.
#[test]
fn pull_refuses_a_schema() {
    let schema = || doc! { "$jsonSchema": { "required": ["x"] } };
    for condition in [
        schema(),
        doc! { "$or": [(schema())] },
        doc! { "$elemMatch": (schema()) },
        doc! { "b": { "$elemMatch": (schema()) } },
    ] {
        check(
            doc! { "a": [{ "x": 1 }] },
            doc! { "$pull": { "a": condition } },
            Err(2),
        );
    }
}

#[test]
fn rename_moves_a_value_to_the_end() {
    let original = || doc! { "_id": 1, "a": 1, "b": { "c": 2 }, "l": [1], "d": 3 };
    let cases = [
        (
            doc! { "a": "z" },
            Ok(doc! { "_id": 1, "b": { "c": 2 }, "l": [1], "d": 3, "z": 1 }),
        ),
        (
            doc! { "a": "d" },
            Ok(doc! { "_id": 1, "b": { "c": 2 }, "l": [1], "d": 1 }),
        ),
        (
            doc! { "b.c": "b.e" },
            Ok(doc! { "_id": 1, "a": 1, "b": { "e": 2 }, "l": [1], "d": 3 }),
        ),
        (
            doc! { "a": "n.m" },
            Ok(doc! { "_id": 1, "b": { "c": 2 }, "l": [1], "d": 3, "n": { "m": 1 } }),
        ),
        (
            doc! { "l": "k" },
            Ok(doc! { "_id": 1, "a": 1, "b": { "c": 2 }, "d": 3, "k": [1] }),
        ),
        (doc! { "missing": "a" }, Ok(original())),
        (doc! { "missing": "a.b.c" }, Ok(original())),
        (doc! { "l.0": "x" }, Err(2)),
        (doc! { "a": "l.0" }, Err(2)),
        (doc! { "a.x": "y" }, Err(28)),
        (doc! { "a": "d.x" }, Err(28)),
        (doc! { "_id": "x" }, Err(66)),
    ];
    cases.into_iter().for_each(|(rename, expected)| {
        check(original(), doc! { "$rename": rename }, expected);
    });
}

#[test]
fn current_dates_are_those_of_the_command() {
    check(
        doc! {},
        doc! { "$currentDate": { "a": true, "b": { "$type": "date" }, "c": { "$type": "timestamp" } } },
        Ok(doc! {
            "a": (Value::DateTime(1_700_000_000_123)), "b": (Value::DateTime(1_700_000_000_123)),
            "c": NOW,
        }),
    );
}
