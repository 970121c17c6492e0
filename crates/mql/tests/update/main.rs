//! Updates as described by MongoDB's manual.

mod operators;
mod upsert;

use windrow_document::{Decimal128, Document, DocumentBuf, Timestamp, Value, ValueRef, array, doc};
use windrow_mql::Error;
use windrow_mql::filter::Filter;
use windrow_mql::update::{Update, UpdateContext};

const NOW: Timestamp = Timestamp {
    seconds: 1_700_000_000,
    increment: 7,
};

fn context() -> UpdateContext<'static> {
    UpdateContext::new(1_700_000_000_123, NOW)
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

/// Checks the document after the update (the original if nothing changed), or the error number.
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

/// Checks if `nModified` counts the document.
fn check_modified(original: DocumentBuf, update: DocumentBuf, expected: bool) {
    let result = apply(&original, &doc! {}, update.clone(), &[]).unwrap();
    assert_eq!(result.is_some(), expected, "{update} on {original}");
}

fn decimal(text: &str) -> Value {
    Value::Decimal128(Decimal128::parse(text).unwrap())
}

#[test]
fn fields_keep_their_positions_and_new_ones_follow_by_name() {
    check(
        doc! { "_id": 1, "m": 1, "n": 2 },
        doc! { "$set": { "z": 1, "b": 2, "m": 3 }, "$inc": { "a": 4, "n": 1 } },
        Ok(doc! { "_id": 1, "m": 3, "n": 3, "a": 4, "b": 2, "z": 1 }),
    );
    // Names that are numbers sort by value.
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
fn overlapping_paths_conflict() {
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
fn invalid_updates_fail_with_their_codes() {
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
        (doc! { "$pull": { "a": { "$not": { "$eq": 1 } } } }, 2),
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

/// Since MongoDB 5.0. Source: MongoDB's manual, "Update Operators Behavior".
#[test]
fn empty_operands_change_nothing() {
    check_modified(
        doc! { "_id": 1, "a": 1 },
        doc! { "$set": {}, "$unset": {} },
        false,
    );
}

#[test]
fn documents_count_as_modified_by_bytes_or_operators() {
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
fn the_positional_operator_is_the_matched_index() {
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

fn check_grades(
    update: DocumentBuf,
    filters: Vec<DocumentBuf>,
    expected: Result<DocumentBuf, i32>,
) {
    let grades = doc! { "g": [{ "n": 80, "m": [1, 2] }, { "n": 90, "m": [2] }] };
    check_all(grades, doc! {}, update, &filters, expected);
}

#[test]
fn brackets_select_all_elements_or_those_of_a_filter() {
    check_grades(
        doc! { "$inc": { "g.$[].n": 1 } },
        vec![],
        Ok(doc! { "g": [{ "n": 81, "m": [1, 2] }, { "n": 91, "m": [2] }] }),
    );
    check_grades(
        doc! { "$mul": { "g.$[].m.$[]": 2 } },
        vec![],
        Ok(doc! { "g": [{ "n": 80, "m": [2, 4] }, { "n": 90, "m": [4] }] }),
    );
    check_grades(
        doc! { "$set": { "g.$[e].n": 0 } },
        vec![doc! { "e.n": { "$gt": 85 } }],
        Ok(doc! { "g": [{ "n": 80, "m": [1, 2] }, { "n": 0, "m": [2] }] }),
    );
    check_grades(
        doc! { "$set": { "g.$[e].m.$[i]": 0 } },
        vec![doc! { "e.n": 80 }, doc! { "i": { "$gte": 2 } }],
        Ok(doc! { "g": [{ "n": 80, "m": [1, 0] }, { "n": 90, "m": [2] }] }),
    );
    check_grades(
        doc! { "$set": { "g.$[].x": 1, "g.$[e].y": 2 } },
        vec![doc! { "$or": [{ "e.n": 80 }, { "e.n": 70 }] }],
        Ok(doc! { "g": [{ "n": 80, "m": [1, 2], "x": 1, "y": 2 }, { "n": 90, "m": [2], "x": 1 }] }),
    );
    check_grades(
        doc! { "$set": { "g.$[].n": 1, "g.$[e].n": 2 } },
        vec![doc! { "e.n": 80 }],
        Err(40),
    );
    check_grades(doc! { "$set": { "g.$[].n.$[]": 1 } }, vec![], Err(2));
    check_grades(doc! { "$set": { "missing.$[]": 1 } }, vec![], Err(2));
    check_grades(
        doc! { "$set": { "g.$[E]": 1 } },
        vec![doc! { "E": 1 }],
        Err(2),
    );
}

#[test]
fn array_filters_are_checked() {
    let check = |filters, expected| {
        check_grades(doc! { "$set": { "g.$[e]": 1 } }, filters, Err(expected));
    };
    check_grades(doc! { "$set": { "a": 1 } }, vec![doc! { "e": 1 }], Err(9));
    check(vec![doc! { "e": 1 }, doc! { "e.x": 1 }], 9);
    check(vec![doc! { "e": 1, "f": 1 }], 9);
    check(vec![doc! {}], 9);
    check(vec![doc! { "$expr": { "$eq": ["$e", 1] } }], 224);
    check(vec![doc! { "e": { "$expr": 1 } }], 2);
    check(vec![doc! { "$and": [{ "$text": { "$search": "x" } }] }], 2);
    check(
        vec![doc! { "e": { "$elemMatch": { "$jsonSchema": {} } } }],
        2,
    );
    check(vec![doc! { "e": { "$near": [1, 1] } }], 5_626_500);
}

#[test]
fn replacements_keep_the_id_first() {
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
        // Since MongoDB 5.0. Source: MongoDB's manual, "Dollar-Prefixed Field Names".
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
fn the_id_cannot_change() {
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
fn documents_have_a_maximum_depth_and_size() {
    let path = vec!["d"; 200].join(".");
    let mut set = DocumentBuf::new();
    set.push(&path, 1);
    check(doc! { "_id": 1 }, doc! { "$set": set }, Err(15));
    let large = "x".repeat(9 * 1024 * 1024);
    let original = doc! { "_id": 1, "a": (large.clone()) };
    check(original, doc! { "$set": { "b": large } }, Err(17419));
}
