//! Updates do what the manual's pages of the operators say.

use windrow_document::{Decimal128, Document, DocumentBuf, Timestamp, Value, ValueRef, array, doc};
use windrow_mql::Error;
use windrow_mql::filter::Filter;
use windrow_mql::update::{Update, UpdateContext};

const NOW: Timestamp = Timestamp {
    seconds: 1_700_000_000,
    increment: 7,
};

fn context() -> UpdateContext<'static> {
    UpdateContext::at(1_700_000_000_123, NOW)
}

fn apply(
    original: &DocumentBuf,
    filter: &DocumentBuf,
    update: impl Into<Value>,
    array_filters: &[DocumentBuf],
) -> Result<Option<DocumentBuf>, Error> {
    let array_filters: Vec<Document<'_>> =
        array_filters.iter().map(DocumentBuf::as_document).collect();
    let update = Update::parse(update.into().as_ref(), &array_filters)?;
    let filter = Filter::parse(filter.as_document())?;
    let applied = update.apply(original.as_document(), &context().with_filter(&filter))?;
    if let Some(document) = &applied.document {
        Document::from_bytes(document.as_bytes()).expect("valid bytes");
    }
    Ok(applied.document)
}

/// The document after the update, or the same where nothing was done, or the error's code.
fn check(original: DocumentBuf, update: DocumentBuf, expected: Result<DocumentBuf, i32>) {
    check_all(original, doc! {}, update, &[], expected);
}

fn check_all(
    original: DocumentBuf,
    filter: DocumentBuf,
    update: impl Into<Value>,
    array_filters: &[DocumentBuf],
    expected: Result<DocumentBuf, i32>,
) {
    let update = update.into();
    let result = apply(&original, &filter, update.clone(), array_filters);
    let result = result.map(|document| document.unwrap_or_else(|| original.clone()));
    assert_eq!(
        result.map_err(|error| error.code),
        expected,
        "{update} on {original}"
    );
}

/// Whether `nModified` counts the document.
fn check_modified(original: DocumentBuf, update: DocumentBuf, expected: bool) {
    let result = apply(&original, &doc! {}, update.clone(), &[]).unwrap();
    assert_eq!(result.is_some(), expected, "{update} on {original}");
}

fn decimal(text: &str) -> Value {
    Value::Decimal128(Decimal128::parse(text).unwrap())
}

#[test]
fn fields_keep_their_places_and_new_ones_follow_in_order_of_name() {
    check(
        doc! { "_id": 1, "m": 1, "n": 2 },
        doc! { "$set": { "z": 1, "b": 2, "m": 3 }, "$inc": { "a": 4, "n": 1 } },
        Ok(doc! { "_id": 1, "m": 3, "n": 3, "a": 4, "b": 2, "z": 1 }),
    );
    // Names that are numbers: in the order of the numbers.
    check(
        doc! { "_id": 1 },
        doc! { "$set": { "10": 1, "9": 2, "a": 3 } },
        Ok(doc! { "_id": 1, "9": 2, "10": 1, "a": 3 }),
    );
    check(
        doc! { "_id": 1 },
        doc! { "$set": { "a.b.c": 1, "a.b.d": 2, "a.e": 3 } },
        Ok(doc! { "_id": 1, "a": { "b": { "c": 1, "d": 2 }, "e": 3 } }),
    );
}

#[test]
fn paths_lead_into_documents_and_arrays() {
    let original = || doc! { "_id": 1, "n": 5, "o": { "x": 1 }, "a": [1, { "x": 2 }], "u": null };
    let cases = [
        (
            doc! { "$set": { "o.y": 1 } },
            Ok(doc! { "_id": 1, "n": 5, "o": { "x": 1, "y": 1 }, "a": [1, { "x": 2 }], "u": null }),
        ),
        (
            doc! { "$set": { "a.0": 9 } },
            Ok(doc! { "_id": 1, "n": 5, "o": { "x": 1 }, "a": [9, { "x": 2 }], "u": null }),
        ),
        (
            doc! { "$set": { "a.1.x": 9 } },
            Ok(doc! { "_id": 1, "n": 5, "o": { "x": 1 }, "a": [1, { "x": 9 }], "u": null }),
        ),
        (
            doc! { "$set": { "a.3": 9 } },
            Ok(
                doc! { "_id": 1, "n": 5, "o": { "x": 1 }, "a": [1, { "x": 2 }, null, 9], "u": null },
            ),
        ),
        (
            doc! { "$unset": { "a.0": "" } },
            Ok(doc! { "_id": 1, "n": 5, "o": { "x": 1 }, "a": [null, { "x": 2 }], "u": null }),
        ),
        (
            doc! { "$unset": { "o.x": "", "u": "" } },
            Ok(doc! { "_id": 1, "n": 5, "o": {}, "a": [1, { "x": 2 }] }),
        ),
        (doc! { "$set": { "n.x": 1 } }, Err(28)),
        (doc! { "$set": { "u.x": 1 } }, Err(28)),
        (doc! { "$set": { "a.x": 1 } }, Err(28)),
        (doc! { "$set": { "a.0.x": 1 } }, Err(28)),
        (doc! { "$pop": { "n.x": 1 } }, Err(28)),
        (doc! { "$set": { "a.1600000": 1 } }, Err(34)),
        (doc! { "$unset": { "n.x": "", "a.x": "" } }, Ok(original())),
        (doc! { "$setOnInsert": { "n.x": 1 } }, Ok(original())),
        (doc! { "$pop": { "o.y.z": 1 } }, Ok(original())),
    ];
    cases
        .into_iter()
        .for_each(|(update, expected)| check(original(), update, expected));
}

#[test]
fn paths_that_meet_conflict() {
    let cases = [
        doc! { "$set": { "a": 1 }, "$inc": { "a": 1 } },
        doc! { "$set": { "a": 1 }, "$unset": { "a.b": 1 } },
        doc! { "$set": { "a.b.c": 1, "a": 1 } },
        doc! { "$rename": { "b": "c" }, "$set": { "b": 1 } },
        doc! { "$rename": { "b": "c" }, "$set": { "c.d": 1 } },
        doc! { "$setOnInsert": { "b": 1 }, "$inc": { "b": 1 } },
        doc! { "$set": { "a.$[].x": 1, "a.0.y": 1 } },
    ];
    cases
        .into_iter()
        .for_each(|update| check(doc! { "_id": 1, "a": [{}] }, update, Err(40)));
    check(
        doc! { "a": 1 },
        doc! { "$set": { "a": 2, "ab": 1 } },
        Ok(doc! { "a": 2, "ab": 1 }),
    );
}

#[test]
fn malformed_updates_have_their_codes() {
    let cases = [
        (doc! { "$bogus": { "a": 1 } }, 9),
        (doc! { "$set": { "a": 1 }, "b": 1 }, 9),
        (doc! { "$set": 1 }, 9),
        (doc! { "$set": [{ "a": 1 }] }, 9),
        (doc! { "$set": { "": 1 } }, 56),
        (doc! { "$set": { "a..b": 1 } }, 56),
        (doc! { "$inc": { "a": "1" } }, 14),
        (doc! { "$mul": { "a": null } }, 14),
        (doc! { "$pop": { "a": 2 } }, 9),
        (doc! { "$pullAll": { "a": 1 } }, 2),
        (doc! { "$pull": { "a": { "$bogus": 1 } } }, 2),
        (doc! { "$pull": { "a": { "$eq": 1 } } }, 2),
        (doc! { "$addToSet": { "a": { "$each": 1 } } }, 14),
        (
            doc! { "$addToSet": { "a": { "$each": [1], "$slice": 1 } } },
            2,
        ),
        (doc! { "$push": { "a": { "$each": 1 } } }, 2),
        (doc! { "$push": { "a": { "$each": [1], "$bogus": 1 } } }, 2),
        (
            doc! { "$push": { "a": { "$each": [1], "$slice": 1.5 } } },
            2,
        ),
        (doc! { "$push": { "a": { "$each": [1], "$sort": 2 } } }, 2),
        (doc! { "$push": { "a": { "$each": [1], "$sort": {} } } }, 2),
        (
            doc! { "$push": { "a": { "$each": [1], "$sort": { "a..b": 1 } } } },
            2,
        ),
        (
            doc! { "$push": { "a": { "$each": [1], "$position": "1" } } },
            2,
        ),
        (doc! { "$currentDate": { "a": 1 } }, 2),
        (doc! { "$currentDate": { "a": { "$type": "time" } } }, 2),
        (doc! { "$bit": { "a": 1 } }, 2),
        (doc! { "$bit": { "a": {} } }, 2),
        (doc! { "$bit": { "a": { "nor": 1 } } }, 2),
        (doc! { "$bit": { "a": { "or": 1.0 } } }, 2),
        (doc! { "$rename": { "a": 1 } }, 2),
        (doc! { "$rename": { "a": "a" } }, 2),
        (doc! { "$rename": { "a": "a.b" } }, 2),
        (doc! { "$rename": { "a": "" } }, 56),
        (doc! { "$rename": { "a.$[]": "b" } }, 2),
        (doc! { "$set": { "a.$[i]": 1 } }, 2),
    ];
    for (update, code) in cases {
        let result = Update::parse(ValueRef::Document(update.as_document()), &[]);
        assert_eq!(result.unwrap_err().code, code, "{update}");
    }
    assert_eq!(Update::parse(ValueRef::Int32(5), &[]).unwrap_err().code, 9);
}

/// Since 5.0: manual, "Update Operators Behavior".
#[test]
fn empty_operands_change_nothing() {
    check_modified(
        doc! { "_id": 1, "a": 1 },
        doc! { "$set": {}, "$unset": {} },
        false,
    );
}

#[test]
fn a_document_is_modified_where_bytes_or_operators_say_so() {
    let cases = [
        (doc! { "a": 1 }, doc! { "$set": { "a": 1 } }, false),
        (doc! { "a": 1 }, doc! { "$set": { "a": 1.0 } }, true),
        (doc! { "a": 0.0 }, doc! { "$set": { "a": (-0.0) } }, true),
        (
            doc! { "a": { "x": 1, "y": 2 } },
            doc! { "$set": { "a": { "y": 2, "x": 1 } } },
            true,
        ),
        (doc! { "a": 1 }, doc! { "$inc": { "a": 0 } }, false),
        (doc! { "a": 1 }, doc! { "$max": { "a": 1i64 } }, false),
        (doc! { "a": 1 }, doc! { "$min": { "a": 2 } }, false),
        (doc! { "a": [1] }, doc! { "$addToSet": { "a": 1.0 } }, false),
        (doc! { "a": [1] }, doc! { "$pull": { "a": 2 } }, false),
        (doc! { "a": [] }, doc! { "$pop": { "a": 1 } }, false),
        (doc! { "a": [null] }, doc! { "$unset": { "a.0": "" } }, true),
        (
            doc! { "a": [1] },
            doc! { "$push": { "a": { "$each": [] } } },
            false,
        ),
        (
            doc! { "a": [1] },
            doc! { "$push": { "a": { "$each": [], "$sort": 1 } } },
            true,
        ),
        (
            doc! { "a": 6 },
            doc! { "$bit": { "a": { "or": 2 } } },
            false,
        ),
        (doc! { "a": 1 }, doc! { "$rename": { "b": "a" } }, false),
        (doc! { "_id": 1, "a": 1 }, doc! { "_id": 1, "a": 1 }, false),
        (doc! { "_id": 1, "a": 1 }, doc! { "a": 1 }, true),
    ];
    cases.into_iter().for_each(|(original, update, modified)| {
        check_modified(original, update, modified);
    });
}

#[test]
fn numbers_grow_into_wider_types() {
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
fn push_inserts_then_sorts_then_cuts() {
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
fn sets_take_what_they_do_not_have() {
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
fn pulls_take_what_matches() {
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

#[test]
fn renames_move_a_value_to_the_end() {
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
fn dates_are_the_commands_own() {
    check(
        doc! {},
        doc! { "$currentDate": { "a": true, "b": { "$type": "date" }, "c": { "$type": "timestamp" } } },
        Ok(doc! {
            "a": (Value::DateTime(1_700_000_000_123)), "b": (Value::DateTime(1_700_000_000_123)),
            "c": NOW,
        }),
    );
}

#[test]
fn the_dollar_stands_for_the_place_that_matched() {
    let cases = [
        (
            doc! { "_id": 1, "a": [1, 2, 3] },
            doc! { "a": 2 },
            doc! { "$set": { "a.$": 9 } },
            Ok(doc! { "_id": 1, "a": [1, 9, 3] }),
        ),
        (
            doc! { "a": [{ "m": 1 }, { "m": 2, "n": 1 }] },
            doc! { "a.m": 2 },
            doc! { "$set": { "a.$.m": 8, "a.$.n": 9 } },
            Ok(doc! { "a": [{ "m": 1 }, { "m": 8, "n": 9 }] }),
        ),
        (
            doc! { "a": [1, 2] },
            doc! { "a": 2 },
            doc! { "$unset": { "a.$": "" } },
            Ok(doc! { "a": [1, null] }),
        ),
        (
            doc! { "a": [1, 5, 9] },
            doc! { "a": { "$elemMatch": { "$gt": 2 } } },
            doc! { "$inc": { "a.$": 1 } },
            Ok(doc! { "a": [1, 6, 9] }),
        ),
        (
            doc! { "a": [{ "x": 1 }] },
            doc! { "a.x": 1 },
            doc! { "$set": { "a.$.y": 1, "a.0.z": 2 } },
            Ok(doc! { "a": [{ "x": 1, "y": 1, "z": 2 }] }),
        ),
        (
            doc! { "a": [1] },
            doc! { "a": 1 },
            doc! { "$set": { "a.$": 1, "a.0": 2 } },
            Err(40),
        ),
        (
            doc! { "a": 1 },
            doc! { "a": 1 },
            doc! { "$set": { "b.$": 1 } },
            Err(2),
        ),
    ];
    for (original, filter, update, expected) in cases {
        check_all(original, filter, update, &[], expected);
    }
}

#[test]
fn brackets_stand_for_all_elements_or_those_of_a_filter() {
    let grades = || doc! { "g": [{ "n": 80, "m": [1, 2] }, { "n": 90, "m": [2] }] };
    let cases: Vec<(DocumentBuf, Vec<DocumentBuf>, Result<DocumentBuf, i32>)> = vec![
        (
            doc! { "$inc": { "g.$[].n": 1 } },
            vec![],
            Ok(doc! { "g": [{ "n": 81, "m": [1, 2] }, { "n": 91, "m": [2] }] }),
        ),
        (
            doc! { "$mul": { "g.$[].m.$[]": 2 } },
            vec![],
            Ok(doc! { "g": [{ "n": 80, "m": [2, 4] }, { "n": 90, "m": [4] }] }),
        ),
        (
            doc! { "$set": { "g.$[e].n": 0 } },
            vec![doc! { "e.n": { "$gt": 85 } }],
            Ok(doc! { "g": [{ "n": 80, "m": [1, 2] }, { "n": 0, "m": [2] }] }),
        ),
        (
            doc! { "$set": { "g.$[e].m.$[i]": 0 } },
            vec![doc! { "e.n": 80 }, doc! { "i": { "$gte": 2 } }],
            Ok(doc! { "g": [{ "n": 80, "m": [1, 0] }, { "n": 90, "m": [2] }] }),
        ),
        (
            doc! { "$set": { "g.$[].x": 1, "g.$[e].y": 2 } },
            vec![doc! { "$or": [{ "e.n": 80 }, { "e.n": 70 }] }],
            Ok(
                doc! { "g": [{ "n": 80, "m": [1, 2], "x": 1, "y": 2 }, { "n": 90, "m": [2], "x": 1 }] },
            ),
        ),
        (
            doc! { "$set": { "g.$[].n": 1, "g.$[e].n": 2 } },
            vec![doc! { "e.n": 80 }],
            Err(40),
        ),
        (doc! { "$set": { "g.$[].n.$[]": 1 } }, vec![], Err(2)),
        (doc! { "$set": { "missing.$[]": 1 } }, vec![], Err(2)),
        (doc! { "$set": { "a": 1 } }, vec![doc! { "e": 1 }], Err(9)),
        (
            doc! { "$set": { "g.$[e]": 1 } },
            vec![doc! { "e": 1 }, doc! { "e.x": 1 }],
            Err(9),
        ),
        (
            doc! { "$set": { "g.$[e]": 1 } },
            vec![doc! { "e": 1, "f": 1 }],
            Err(9),
        ),
        (doc! { "$set": { "g.$[e]": 1 } }, vec![doc! {}], Err(9)),
        (
            doc! { "$set": { "g.$[E]": 1 } },
            vec![doc! { "E": 1 }],
            Err(2),
        ),
        (
            doc! { "$set": { "g.$[e]": 1 } },
            vec![doc! { "$expr": { "$eq": ["$e", 1] } }],
            Err(224),
        ),
    ];
    for (update, filters, expected) in cases {
        check_all(grades(), doc! {}, update, &filters, expected);
    }
}

#[test]
fn replacements_keep_the_id_in_front() {
    let original = || doc! { "_id": 1, "a": 1 };
    let cases = [
        (doc! { "b": 2 }, Ok(doc! { "_id": 1, "b": 2 })),
        (doc! { "b": 2, "_id": 1 }, Ok(doc! { "_id": 1, "b": 2 })),
        (doc! { "_id": 1.0, "b": 2 }, Ok(doc! { "_id": 1.0, "b": 2 })),
        (doc! {}, Ok(doc! { "_id": 1 })),
        (doc! { "_id": 2 }, Err(66)),
        (doc! { "_id": [1] }, Err(53)),
        (doc! { "_id": { "$x": 1 } }, Err(52)),
        (doc! { "b": 1, "$set": { "a": 1 } }, Err(52)),
        // Since 5.0: manual, "Dollar-Prefixed Field Names".
        (
            doc! { "b": { "$c": 1 } },
            Ok(doc! { "_id": 1, "b": { "$c": 1 } }),
        ),
        (
            doc! { "t": (Timestamp::from_bits(0)), "o": { "t": (Timestamp::from_bits(0)) } },
            Ok(doc! { "_id": 1, "t": NOW, "o": { "t": (Timestamp::from_bits(0)) } }),
        ),
    ];
    cases
        .into_iter()
        .for_each(|(update, expected)| check(original(), update, expected));
}

#[test]
fn the_id_stays_as_it_is() {
    let cases = [
        (
            doc! { "$set": { "_id": 1, "a": 2 } },
            Ok(doc! { "_id": 1, "a": 2 }),
        ),
        (doc! { "$set": { "_id": 2 } }, Err(66)),
        (doc! { "$set": { "_id": 1.0 } }, Err(66)),
        (doc! { "$unset": { "_id": "" } }, Err(66)),
        (doc! { "$inc": { "_id": 1 } }, Err(66)),
        (doc! { "$rename": { "a": "_id" } }, Err(66)),
        (doc! { "$push": { "_id": 1 } }, Err(2)),
        (doc! { "$set": { "$x": 1 } }, Err(52)),
    ];
    for (update, expected) in cases {
        check(doc! { "_id": 1, "a": 1 }, update, expected);
    }
    check(
        doc! { "_id": { "x": 1 } },
        doc! { "$set": { "_id.y": 1 } },
        Err(66),
    );
}

#[test]
fn documents_neither_nest_too_deep_nor_grow_too_large() {
    let path = vec!["d"; 200].join(".");
    let mut set = DocumentBuf::new();
    set.push(&path, 1);
    check(doc! { "_id": 1 }, doc! { "$set": set }, Err(15));
    let large = "x".repeat(9 * 1024 * 1024);
    let original = doc! { "_id": 1, "a": (large.clone()) };
    check(original, doc! { "$set": { "b": large } }, Err(17419));
}

fn check_upsert(filter: DocumentBuf, update: impl Into<Value>, expected: Result<DocumentBuf, i32>) {
    let update = update.into();
    let parsed = Update::parse(update.as_ref(), &[]).unwrap();
    let result = Filter::parse(filter.as_document())
        .and_then(|filter| parsed.upsert(&filter, &context()))
        .map_err(|error| error.code);
    assert_eq!(result, expected, "{filter} {update}");
}

#[test]
fn upserts_begin_with_what_the_filter_says() {
    let set = || doc! { "$set": { "done": 1 } };
    let cases = [
        (
            doc! { "x": 1, "_id": 7 },
            set(),
            Ok(doc! { "_id": 7, "x": 1, "done": 1 }),
        ),
        (
            doc! { "z": 1, "b": 2 },
            set(),
            Ok(doc! { "b": 2, "z": 1, "done": 1 }),
        ),
        (
            doc! { "x.y": 1, "x.z": 2 },
            set(),
            Ok(doc! { "x": { "y": 1, "z": 2 }, "done": 1 }),
        ),
        (
            doc! { "x": { "$gt": 1 }, "y": { "$in": [3] } },
            set(),
            Ok(doc! { "y": 3, "done": 1 }),
        ),
        (
            doc! { "$and": [{ "x": 1 }, { "y": { "$eq": 2 } }] },
            set(),
            Ok(doc! { "x": 1, "y": 2, "done": 1 }),
        ),
        (
            doc! { "$or": [{ "x": 1 }] },
            set(),
            Ok(doc! { "x": 1, "done": 1 }),
        ),
        (doc! { "x": { "$all": [1, 2] } }, set(), Err(54)),
        (
            doc! { "_id.x": 1 },
            set(),
            Ok(doc! { "_id": { "x": 1 }, "done": 1 }),
        ),
        (doc! { "_id": [1] }, set(), Err(53)),
        (
            doc! { "k": 1 },
            doc! { "$setOnInsert": { "_id": 5 } },
            Ok(doc! { "_id": 5, "k": 1 }),
        ),
        (doc! { "_id": 7 }, doc! { "$set": { "_id": 8 } }, Err(66)),
        (
            doc! { "k": 1 },
            doc! { "$inc": { "k": 2 } },
            Ok(doc! { "k": 3 }),
        ),
        (doc! { "k": 1 }, doc! { "$inc": { "k.x": 2 } }, Err(28)),
        (doc! { "k": 1 }, doc! { "$set": { "k.$": 2 } }, Err(2)),
        (doc! { "k": 1 }, doc! { "b": 1 }, Ok(doc! { "b": 1 })),
        (
            doc! { "_id": 3, "k": 1 },
            doc! { "b": 1 },
            Ok(doc! { "_id": 3, "b": 1 }),
        ),
        (doc! { "_id": 3 }, doc! { "_id": 4 }, Err(66)),
        // Since 5.0: manual, "Dollar-Prefixed Field Names".
        (
            doc! { "k": 1 },
            doc! { "$set": { "$x": 1 } },
            Ok(doc! { "k": 1, "$x": 1 }),
        ),
    ];
    cases
        .into_iter()
        .for_each(|(filter, update, expected)| check_upsert(filter, update, expected));
}

#[test]
fn pipelines_compute() {
    let original = || doc! { "_id": 1, "a": 1, "o": { "x": 1 } };
    let cases = [
        (
            array![{ "$set": { "b": { "$add": ["$a", 1] } } }],
            Ok(doc! { "_id": 1, "a": 1, "o": { "x": 1 }, "b": 2 }),
        ),
        (
            array![{ "$set": { "b": "$a" } }, { "$unset": ["a", "o.x"] }],
            Ok(doc! { "_id": 1, "o": {}, "b": 1 }),
        ),
        (
            array![{ "$project": { "_id": 0, "a": 1 } }],
            Ok(doc! { "_id": 1, "a": 1 }),
        ),
        (
            array![{ "$replaceWith": "$o" }],
            Ok(doc! { "_id": 1, "x": 1 }),
        ),
        (
            array![{ "$replaceRoot": { "newRoot": { "k": "$a", "_id": 1 } } }],
            Ok(doc! { "_id": 1, "k": 1 }),
        ),
        (
            array![{ "$set": { "t": "$$NOW" } }, { "$unset": "o" }],
            Ok(doc! { "_id": 1, "a": 1, "t": (Value::DateTime(1_700_000_000_123)) }),
        ),
        (array![{ "$replaceWith": { "_id": 2 } }], Err(66)),
        (array![{ "$match": {} }], Err(72)),
        (array![{ "$bogus": {} }], Err(40324)),
        (array![{ "$set": { "a": 1 }, "$unset": "b" }], Err(40323)),
        (array![1], Err(14)),
    ];
    for (pipeline, expected) in cases {
        check_all(original(), doc! {}, pipeline, &[], expected);
    }
    check_upsert(
        doc! { "k": 4 },
        array![{ "$set": { "b": "$k" } }],
        Ok(doc! { "k": 4, "b": 4 }),
    );
}
