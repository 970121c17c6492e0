//! Documents that an upsert or a pipeline creates.

use super::*;

fn check_upsert(filter: DocumentBuf, update: impl Into<Value>, expected: Result<DocumentBuf, i32>) {
    let update = update.into();
    let parsed = Update::parse(update.as_ref(), &[]).unwrap();
    let result = Filter::parse(filter.as_document())
        .and_then(|filter| parsed.upsert(&filter, &context()))
        .map_err(|error| error.code);
    assert_eq!(result, expected, "{filter} {update}");
}

#[test]
fn upserts_start_with_the_equalities_of_the_filter() {
    let check = |filter, expected| {
        check_upsert(filter, doc! { "$set": { "done": 1 } }, expected);
    };
    check(
        doc! { "x": 1, "_id": 7 },
        Ok(doc! { "_id": 7, "x": 1, "done": 1 }),
    );
    check(
        doc! { "z": 1, "b": 2 },
        Ok(doc! { "b": 2, "z": 1, "done": 1 }),
    );
    check(
        doc! { "x.y": 1, "x.z": 2 },
        Ok(doc! { "x": { "y": 1, "z": 2 }, "done": 1 }),
    );
    check(
        doc! { "x": { "$gt": 1 }, "y": { "$in": [3] } },
        Ok(doc! { "y": 3, "done": 1 }),
    );
    check(
        doc! { "$and": [{ "x": 1 }, { "y": { "$eq": 2 } }] },
        Ok(doc! { "x": 1, "y": 2, "done": 1 }),
    );
    check(doc! { "$or": [{ "x": 1 }] }, Ok(doc! { "x": 1, "done": 1 }));
    check(doc! { "x": { "$all": [1, 2] } }, Err(54));
    check(
        doc! { "_id.x": 1 },
        Ok(doc! { "_id": { "x": 1 }, "done": 1 }),
    );
    check(doc! { "_id": [1] }, Err(53));
    check(
        doc! { "$or": [{ "x": 1 }, { "x": 1 }] },
        Ok(doc! { "x": 1, "done": 1 }),
    );
    check(
        doc! { "$or": [{ "x": 1 }, { "x": 2 }] },
        Ok(doc! { "done": 1 }),
    );
}

#[test]
fn updates_apply_to_the_equalities_of_the_filter() {
    check_upsert(
        doc! { "_id": 7, "x": 1, "x.y": 2 },
        doc! { "k": 1 },
        Ok(doc! { "_id": 7, "k": 1 }),
    );
    check_upsert(doc! { "_id.x": 1 }, doc! { "k": 1 }, Err(111));
    check_upsert(
        doc! { "$and": [{ "_id": 1 }, { "_id": 2 }] },
        doc! { "k": 1 },
        Err(54),
    );
    check_upsert(
        doc! { "k": 1 },
        doc! { "$setOnInsert": { "_id": 5 } },
        Ok(doc! { "_id": 5, "k": 1 }),
    );
    check_upsert(doc! { "_id": 7 }, doc! { "$set": { "_id": 8 } }, Err(66));
    check_upsert(
        doc! { "k": 1 },
        doc! { "$inc": { "k": 2 } },
        Ok(doc! { "k": 3 }),
    );
    check_upsert(doc! { "k": 1 }, doc! { "$inc": { "k.x": 2 } }, Err(28));
    check_upsert(doc! { "k": 1 }, doc! { "$set": { "k.$": 2 } }, Err(2));
    check_upsert(doc! { "k": 1 }, doc! { "b": 1 }, Ok(doc! { "b": 1 }));
    check_upsert(
        doc! { "_id": 3, "k": 1 },
        doc! { "b": 1 },
        Ok(doc! { "_id": 3, "b": 1 }),
    );
    check_upsert(doc! { "_id": 3 }, doc! { "_id": 4 }, Err(66));
    // Since MongoDB 5.0. Source: MongoDB's manual, "Dollar-Prefixed Field Names".
    check_upsert(
        doc! { "k": 1 },
        doc! { "$set": { "$x": 1 } },
        Ok(doc! { "k": 1, "$x": 1 }),
    );
}

#[test]
fn pipelines_compute_documents() {
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
