//! Projections as MongoDB documents them.

use windrow_document::{DocumentBuf, Value, doc};
use windrow_mql::Meta;
use windrow_mql::filter::Filter;
use windrow_mql::projection::Projection;

fn parse(projection: &DocumentBuf, filter: DocumentBuf) -> Result<Projection, windrow_mql::Error> {
    let filter = Filter::parse(filter.as_document()).unwrap();
    Projection::parse(projection.as_document(), &filter)
}

fn check_found_by(
    filter: DocumentBuf,
    projection: DocumentBuf,
    input: DocumentBuf,
    expected: DocumentBuf,
) {
    let parsed = parse(&projection, filter).unwrap();
    let output = parsed.apply(input.as_document(), &Meta::default()).unwrap();
    assert_eq!(output, expected, "{projection} of {input}");
}

fn check(projection: DocumentBuf, input: DocumentBuf, expected: DocumentBuf) {
    check_found_by(doc! {}, projection, input, expected);
}

fn check_refused(projection: DocumentBuf, code: i32) {
    match parse(&projection, doc! { "a": 1 }) {
        Ok(_) => panic!("{projection} was taken"),
        Err(error) => assert_eq!(error.code, code, "{projection}: {error}"),
    }
}

#[test]
fn inclusions_keep_fields() {
    let input = || doc! { "_id": 1, "a": 1, "b": { "c": 2, "d": 3 }, "e": [{ "f": 1, "g": 2 }, 5, [{ "f": 2 }]] };
    check(doc! {}, input(), input());
    check(doc! { "a": 1 }, input(), doc! { "_id": 1, "a": 1 });
    check(doc! { "a": true, "_id": 0 }, input(), doc! { "a": 1 });
    check(doc! { "_id": 1 }, input(), doc! { "_id": 1 });
    check(
        doc! { "b.c": 1, "x.y": 1 },
        input(),
        doc! { "_id": 1, "b": { "c": 2 } },
    );
    check(
        doc! { "b": { "c": 1 } },
        input(),
        doc! { "_id": 1, "b": { "c": 2 } },
    );
    check(
        doc! { "e.f": 1 },
        input(),
        doc! { "_id": 1, "e": [{ "f": 1 }, [{ "f": 2 }]] },
    );
}

#[test]
fn exclusions_drop_fields() {
    let input = || doc! { "_id": 1, "a": [{ "b": 1, "c": 2 }, 5], "d": 3 };
    check(
        doc! { "d": 0 },
        input(),
        doc! { "_id": 1, "a": [{ "b": 1, "c": 2 }, 5] },
    );
    check(
        doc! { "a.b": 0, "_id": 0 },
        input(),
        doc! { "a": [{ "c": 2 }, 5], "d": 3 },
    );
    check(
        doc! { "_id": 1, "a": 0 },
        input(),
        doc! { "_id": 1, "d": 3 },
    );
}

#[test]
fn slices_do_not_enter_nested_arrays() {
    let nested = || doc! { "_id": 1, "a": [[{ "b": [1, 2], "c": 3 }], { "b": [4, 5] }] };
    let cut = || doc! { "_id": 1, "a": [[{ "b": [1, 2], "c": 3 }], { "b": [4] }] };
    check(doc! { "a.b": { "$slice": 1 } }, nested(), cut());
    check(doc! { "a": { "b": { "$slice": [0, 1] } } }, nested(), cut());
    check(
        doc! { "a.b": { "$slice": 1 }, "a.c": 0 },
        nested(),
        doc! { "_id": 1, "a": [[{ "b": [1, 2] }], { "b": [4] }] },
    );
    check(
        doc! { "a.b": { "$slice": 1 }, "_id": 1 },
        nested(),
        doc! { "_id": 1, "a": [[{ "b": [1, 2] }], { "b": [4] }] },
    );
    check(
        doc! { "a.b.c": { "$slice": 1 } },
        doc! { "a": [{ "b": [{ "c": [1, 2] }, [{ "c": [1, 2] }]] }] },
        doc! { "a": [{ "b": [{ "c": [1] }, [{ "c": [1, 2] }]] }] },
    );
}

#[test]
fn slices_reduce_arrays() {
    let input = || doc! { "_id": 1, "a": [1, 2, 3], "b": 1 };
    check(
        doc! { "a": { "$slice": 2 } },
        input(),
        doc! { "_id": 1, "a": [1, 2], "b": 1 },
    );
    check(
        doc! { "a": { "$slice": [(-2), 1] }, "b": 0 },
        input(),
        doc! { "_id": 1, "a": [2] },
    );
    check(
        doc! { "a": { "$slice": 1 }, "_id": 1 },
        input(),
        doc! { "_id": 1, "a": [1] },
    );
    check(
        doc! { "b": 1, "a": { "$elemMatch": { "$gt": 1 } } },
        input(),
        doc! { "_id": 1, "b": 1, "a": [2] },
    );
    check(
        doc! { "a": { "$elemMatch": { "$gt": 3 } } },
        input(),
        doc! { "_id": 1 },
    );
}

#[test]
fn the_positional_operator_selects_the_matched_element() {
    let input = || doc! { "_id": 1, "a": [3, 5, 8], "b": [30, 50, 80] };
    check_found_by(
        doc! { "a": 5 },
        doc! { "a.$": 1 },
        input(),
        doc! { "_id": 1, "a": [5] },
    );
    check_found_by(
        doc! { "a": 5 },
        doc! { "b.$": 1 },
        input(),
        doc! { "_id": 1, "b": [50] },
    );
    let written_order = doc! { "a": { "$gt": 3, "$lt": 8 } };
    check_found_by(
        written_order,
        doc! { "a.$": 1 },
        input(),
        doc! { "_id": 1, "a": [3] },
    );
    // A disjunction of equalities on one path records the index as `$in` does.
    check_found_by(
        doc! { "$or": [{ "a": 8 }, { "a": 5 }] },
        doc! { "b.$": 1 },
        input(),
        doc! { "_id": 1, "b": [50] },
    );
    for filter in [doc! {}, doc! { "$or": [{ "a": 8 }, { "b": 50 }] }] {
        let nowhere = parse(&doc! { "a.$": 1 }, filter).unwrap();
        let error = nowhere
            .apply(input().as_document(), &Meta::default())
            .unwrap_err();
        assert_eq!(error.code, 51246);
    }
}

#[test]
fn fields_are_computed() {
    let input = || doc! { "_id": 1, "a": 5, "b": { "c": 1 }, "l": [{ "x": 1 }, 7] };
    check(doc! { "w": "$a" }, input(), doc! { "_id": 1, "w": 5 });
    check(
        doc! { "b": { "e": "$a", "c": 1 } },
        input(),
        doc! { "_id": 1, "b": { "c": 1, "e": 5 } },
    );
    check(
        doc! { "l.w": "$a" },
        input(),
        doc! { "_id": 1, "l": [{ "w": 5 }, { "w": 5 }] },
    );
    check(
        doc! { "a": "text", "b": 1 },
        input(),
        doc! { "_id": 1, "b": { "c": 1 }, "a": "text" },
    );
    check(doc! { "_id": "$a" }, input(), doc! { "_id": 5 });
}

#[test]
fn contradictory_projections_are_refused() {
    for (projection, code) in [
        (doc! { "a": 1, "b": 0 }, 31254),
        (doc! { "a": 0, "b": 1 }, 31253),
        (doc! { "a": 0, "w": "$b" }, 31310),
        (doc! { "a": 0, "w": { "$add": ["$b", 1] } }, 31252),
        (doc! { "a": 1, "a.b": 1 }, 31249),
        (doc! { "a.b": 1, "a": 1 }, 31250),
        (doc! { "a": {} }, 51270),
        (doc! { "": 1 }, 40352),
        (doc! { "a.": 1 }, 40353),
        (doc! { "a..b": 1 }, 15998),
        (doc! { "$a": 1 }, 16410),
        (doc! { "a": { "$bogus": 1 } }, 31325),
        (doc! { "w": { "$add": [1, { "$bogus": 1 }] } }, 168),
        (doc! { "a.b": { "$elemMatch": {} } }, 31275),
        (doc! { "a": { "$elemMatch": 1 } }, 31274),
        (doc! { "a": { "$elemMatch": { "$jsonSchema": {} } } }, 2),
        (doc! { "a.$": 1, "b.$": 1 }, 31276),
        (doc! { "a.$": "$b" }, 31308),
        (doc! { "a.$": { "$slice": 1 } }, 31271),
        (doc! { ".$": 1 }, 5_392_900),
        (doc! { "a.$": 0 }, 31395),
        (doc! { "a.$.b": 1 }, 31394),
        (doc! { "a.$": 1, "b": { "$elemMatch": {} } }, 31255),
    ] {
        check_refused(projection, code);
    }
}

#[test]
fn inclusions_have_needed_paths() {
    let needed = |projection: DocumentBuf| {
        let paths = parse(&projection, doc! {}).unwrap().needed_paths();
        paths.map(|paths| paths.iter().map(ToString::to_string).collect::<Vec<_>>())
    };
    assert_eq!(
        needed(doc! { "a.b": 1, "_id": 0 }),
        Some(vec!["a.b".to_owned()])
    );
    assert_eq!(
        needed(doc! { "w": "$a" }),
        Some(vec!["_id".to_owned(), "a".to_owned()])
    );
    assert_eq!(needed(doc! { "a": 0 }), None);
    assert_eq!(needed(doc! { "w": "$$ROOT" }), None);
    let plain = parse(&doc! { "a": 1, "w": (Value::Null) }, doc! {})
        .unwrap()
        .plain_inclusion();
    assert_eq!(plain, None);
}
