//! The documents that filters match, as MongoDB documents it.

mod schema;

use windrow_document::{DocumentBuf, Value, ValueRef, array, doc};
use windrow_mql::filter::{EqualityScope, Filter, Node};

/// Checks that each document of `found` matches and none of `not_found`.
fn check(filter: DocumentBuf, found: &[DocumentBuf], not_found: &[DocumentBuf]) {
    let parsed = Filter::parse(filter.as_document()).unwrap();
    let cases = found
        .iter()
        .map(|one| (one, true))
        .chain(not_found.iter().map(|one| (one, false)));
    for (document, expected) in cases {
        let matched = parsed.matches(document.as_document()).unwrap();
        assert_eq!(matched, expected, "{filter} on {document}");
    }
}

fn check_refused(filter: DocumentBuf, code: i32) {
    match Filter::parse(filter.as_document()) {
        Ok(parsed) => panic!("{filter} was taken for {parsed}"),
        Err(error) => assert_eq!(error.code, code, "{filter}: {error}"),
    }
}

fn regex(pattern: &str, options: &str) -> Value {
    Value::Regex {
        pattern: pattern.into(),
        options: options.into(),
    }
}

/// `(*UCP)` at the start of a pattern gives letters, digits, spaces and words their Unicode
/// meaning.
#[test]
fn patterns_can_enable_unicode_properties() {
    let cases = [
        (r"^\w+$", "größe_٣"),
        (r"^\d$", "٣"),
        (r"^\s$", "\u{2003}"),
        (r"\bé\b", "a é b"),
        (r"é\Bt\B", "étés"),
        (r"^[\w-]+$", "é-ü"),
        ("^[[:alpha:]]$", "é"),
        ("^[[:upper:]][[:lower:]]$", "Éé"),
        ("^[[:alnum:]]$", "٣"),
        ("^[[:space:]]$", "\u{2003}"),
        ("^[[:blank:]]$", "\u{2003}"),
        ("^[[:graph:]]$", "é"),
        ("^[[:print:]]$", "\u{2003}"),
        ("^[[:punct:]]{2}$", "«×"),
        ("^[[:word:]]$", "é"),
        (r"^(?=\w)é$", "é"),
    ];
    for (pattern, text) in cases {
        let plain = doc! { "a": (regex(pattern, "")) };
        check(plain, &[], &[doc! { "a": text }]);
        let unicode = format!("(*UCP){pattern}");
        check(
            doc! { "a": (regex(&unicode, "")) },
            &[doc! { "a": text }],
            &[],
        );
    }
    check(
        doc! { "a": (regex("(*UTF)(*UCP)(*NO_JIT)^[[:^alpha:]]$", "")) },
        &[doc! { "a": "7" }],
        &[doc! { "a": "é" }, doc! { "a": "a" }],
    );
    check(
        doc! { "a": (regex("(*UCP)^[[:graph:]]$", "")) },
        &[doc! { "a": "\u{200D}" }],
        &[doc! { "a": "\u{2066}" }, doc! { "a": " " }],
    );
}

#[test]
fn comparisons_stay_within_a_type() {
    check(
        doc! { "a": { "$gt": 1 } },
        &[doc! { "a": 1.5 }, doc! { "a": 2i64 }, doc! { "a": [0, 3] }],
        &[
            doc! { "a": 1 },
            doc! { "a": "2" },
            doc! { "a": null },
            doc! {},
            doc! { "a": f64::NAN },
        ],
    );
    check(
        doc! { "a": { "$lte": "b" } },
        &[doc! { "a": "a" }, doc! { "a": "b" }],
        &[doc! { "a": "c" }, doc! { "a": 1 }],
    );
    check(
        doc! { "a": { "$gt": (Value::MinKey) } },
        &[doc! { "a": 1 }, doc! {}],
        &[doc! { "a": (Value::MinKey) }],
    );
}

#[test]
fn null_matches_missing_but_not_undefined() {
    // Since MongoDB 8.0 null does not match undefined. Source: release notes, compatibility changes
    // in 8.0.
    check(
        doc! { "a": null },
        &[doc! { "a": null }, doc! {}, doc! { "a": [null] }],
        &[
            doc! { "a": 0 },
            doc! { "a": [] },
            doc! { "a": (Value::Undefined) },
        ],
    );
    check(
        doc! { "a.b": null },
        &[doc! { "a": 5 }, doc! { "a": [{}] }],
        &[doc! { "a": [5] }],
    );
    check(
        doc! { "a": { "$ne": null } },
        &[doc! { "a": 0 }],
        &[doc! {}],
    );
    check(
        doc! { "a": { "$in": [null, 1] } },
        &[doc! {}, doc! { "a": 1 }],
        &[doc! { "a": 2 }],
    );
}

#[test]
fn paths_lead_through_arrays() {
    check(
        doc! { "a.b": 1 },
        &[doc! { "a": { "b": [2, 1] } }, doc! { "a": [{ "b": 1 }] }],
        &[doc! { "a": [[{ "b": 1 }]] }, doc! { "a": 1 }],
    );
    check(
        doc! { "a.0": 1 },
        &[
            doc! { "a": [1, 2] },
            doc! { "a": { "0": 1 } },
            doc! { "a": [{ "0": 1 }] },
        ],
        &[doc! { "a": [2, 1] }, doc! { "a": [[1]] }],
    );
    check(
        doc! { "a.0.b": 1 },
        &[doc! { "a": [{ "b": 1 }] }],
        &[doc! { "a": [{}, { "b": 1 }] }],
    );
    check(
        doc! { "a": [1, 2] },
        &[doc! { "a": [1.0, 2] }, doc! { "a": [[1, 2]] }],
        &[doc! { "a": [2, 1] }],
    );
}

#[test]
fn negations_match_missing_values() {
    check(
        doc! { "a": { "$not": { "$gt": 1 } } },
        &[doc! {}, doc! { "a": 1 }],
        &[doc! { "a": [0, 2] }],
    );
    check(
        doc! { "a": { "$nin": [1] } },
        &[doc! {}, doc! { "a": 2 }],
        &[doc! { "a": [1] }],
    );
    check(
        doc! { "$nor": [{ "a": 1 }, { "b": 1 }] },
        &[doc! { "a": 2 }],
        &[doc! { "b": 1 }],
    );
    check(
        doc! { "a": { "$exists": false } },
        &[doc! {}],
        &[doc! { "a": null }],
    );
}

#[test]
fn array_operators_test_whole_arrays() {
    check(
        doc! { "a": { "$elemMatch": { "$gt": 1, "$lt": 4 } } },
        &[doc! { "a": [0, 3] }],
        &[doc! { "a": [0, 5] }, doc! { "a": 3 }, doc! { "a": [[3]] }],
    );
    check(
        doc! { "a": { "$elemMatch": { "b": 1, "c": { "$gt": 1 } } } },
        &[doc! { "a": [{ "b": 1, "c": 2 }] }],
        &[
            doc! { "a": [{ "b": 1 }, { "c": 2 }] },
            doc! { "a": { "b": 1, "c": 2 } },
        ],
    );
    check(
        doc! { "a": { "$all": [1, 2] } },
        &[doc! { "a": [2, 3, 1] }],
        &[doc! { "a": [1] }],
    );
    // A document that does not start with an operator is a value.
    check(
        doc! { "a": { "$all": [{ "$unknown": 1 }] } },
        &[doc! { "a": [{ "$unknown": 1 }] }],
        &[doc! { "a": [{ "unknown": 1 }] }],
    );
    check(
        doc! { "a": { "$all": [] } },
        &[],
        &[doc! { "a": [] }, doc! {}],
    );
    check(
        doc! { "a": { "$size": 1 } },
        &[doc! { "a": [[]] }],
        &[doc! { "a": [] }, doc! { "a": 1 }],
    );
    check(
        doc! { "a": { "$type": "array" } },
        &[doc! { "a": [] }],
        &[doc! { "a": 1 }],
    );
    check(
        doc! { "a": { "$type": ["number", "null"] } },
        &[doc! { "a": 1i64 }],
        &[doc! {}],
    );
}

#[test]
fn modulo_truncates_toward_zero() {
    check(
        doc! { "a": { "$mod": [4, 1.9] } },
        &[doc! { "a": 5 }, doc! { "a": 5.9 }],
        &[
            doc! { "a": -5 },
            doc! { "a": f64::NAN },
            doc! { "a": f64::INFINITY },
            doc! { "a": "5" },
        ],
    );
    check_refused(doc! { "a": { "$mod": [0, 1] } }, 2);
    // Since MongoDB 5.1. Source: MongoDB's manual, `$mod`.
    check_refused(doc! { "a": { "$mod": [f64::NAN, 1] } }, 2);
    check_refused(doc! { "a": { "$mod": [2, 1e30] } }, 2);
    check_refused(doc! { "a": { "$mod": [2] } }, 2);
}

#[test]
fn bits_are_tested() {
    let binary = Value::Binary {
        subtype: 0,
        bytes: vec![0, 1],
    };
    check(
        doc! { "a": { "$bitsAllSet": [1, 3] } },
        &[doc! { "a": 10 }, doc! { "a": -1 }],
        &[doc! { "a": 2 }, doc! { "a": 10.5 }, doc! { "a": "x" }],
    );
    check(
        doc! { "a": { "$bitsAnySet": 256 } },
        &[doc! { "a": (binary) }],
        &[doc! { "a": 255 }],
    );
    check(
        doc! { "a": { "$bitsAllClear": 5 } },
        &[doc! { "a": 2 }],
        &[doc! { "a": 1 }],
    );
    check(
        doc! { "a": { "$bitsAnyClear": 5 } },
        &[doc! { "a": 1 }],
        &[doc! { "a": 7 }],
    );
    check_refused(doc! { "a": { "$bitsAllSet": (-1) } }, 9);
    check_refused(doc! { "a": { "$bitsAllSet": "1" } }, 2);
}

#[test]
fn regular_expressions_are_those_of_pcre() {
    let cases: [(&str, &str, &[&str], &[&str]); 14] = [
        ("^ab", "", &["ab", "abc"], &["b", "AB"]),
        ("^AB", "i", &["ab"], &["b"]),
        ("b$", "", &["ab", "ab\n"], &["ab\n\n", "b\nc"]),
        ("b$", "m", &["b\nc"], &["bc"]),
        ("a b # c", "x", &["ab"], &["a b"]),
        ("a.b", "s", &["a\nb"], &["ab"]),
        (r"^\w+$", "", &["ab_1"], &["é"]),
        (r"\bab\b", "", &["x ab", "éab"], &["xab"]),
        (r"(a)\1", "", &["aa"], &["ab"]),
        ("a(?!b)", "", &["ac"], &["ab"]),
        ("(?<=a)b", "", &["ab"], &["cb"]),
        (r"\Qa.b\E", "", &["a.b"], &["axb"]),
        ("[[:digit:]]{2}", "", &["a12"], &["1a2"]),
        ("a{,2}|[a&&b]", "", &["a{,2}", "&"], &["c"]),
    ];
    for (pattern, options, found, not_found) in cases {
        let documents = |texts: &[&str]| {
            texts
                .iter()
                .map(|text| doc! { "a": *text })
                .collect::<Vec<_>>()
        };
        let operators = doc! { "a": { "$regex": pattern, "$options": options } };
        check(operators, &documents(found), &documents(not_found));
        check(
            doc! { "a": (regex(pattern, options)) },
            &documents(found),
            &documents(not_found),
        );
    }
    check(
        doc! { "a": { "$in": [(regex("^x", "")), "b"] } },
        &[doc! { "a": "xy" }, doc! { "a": "b" }],
        &[doc! { "a": "c" }],
    );
    check_refused(doc! { "a": (regex("(", "")) }, 51091);
    check_refused(doc! { "a": { "$regex": "a", "$options": "g" } }, 51108);
    check_refused(
        doc! { "a": { "$regex": (regex("a", "i")), "$options": "m" } },
        51075,
    );
    check_refused(
        doc! { "a": { "$options": "m", "$regex": (regex("a", "i")) } },
        51074,
    );
    check_refused(doc! { "a": { "$options": "i" } }, 2);
}

#[test]
fn expressions_are_conditions() {
    check(
        doc! { "$expr": { "$gt": ["$a", "$b"] } },
        &[doc! { "a": 2, "b": 1 }, doc! { "a": 1 }],
        &[doc! { "a": 1, "b": 1 }],
    );
    check_refused(doc! { "a": { "$elemMatch": { "$expr": true } } }, 2);
}

#[test]
fn geospatial_conditions_are_evaluated() {
    let within = || doc! { "$geoWithin": { "$center": [[0, 0], 5] } };
    check(
        doc! { "a.p": within() },
        &[
            doc! { "a": { "p": [3, 4] } },
            doc! { "a": { "p": [[9, 9], [1, 1]] } },
            doc! { "a": [{ "p": { "x": 9, "y": 9 } }, { "p": { "x": 1, "y": 1 } }] },
            doc! { "a": { "p": { "type": "Point", "coordinates": [1, 1] } } },
        ],
        &[
            doc! { "a": { "p": [3, 5] } },
            doc! { "a": { "p": 1 } },
            doc! { "a": 1 },
        ],
    );
    check(
        doc! { "p": { "$not": (within()) } },
        &[doc! { "p": [9, 9] }, doc! {}, doc! { "p": "x" }],
        &[doc! { "p": [1, 1] }],
    );
    check(
        doc! { "p": { "$elemMatch": (within()) } },
        &[doc! { "p": [[9, 9], [1, 1]] }],
        &[doc! { "p": [1, 1] }],
    );
    check(
        doc! { "p": { "$within": { "$box": [[0, 0], [1, 1]] }, "$exists": true } },
        &[doc! { "p": [1, 1] }],
        &[doc! { "p": [1, 2] }],
    );
    check_refused(doc! { "p": { "$geoWithin": 1 } }, 2);
    check_refused(
        doc! { "p": { "$geoIntersects": { "$box": [[0, 0], [1, 1]] } } },
        2,
    );
}

#[test]
fn near_is_allowed_once_at_the_top_level() {
    let near = || doc! { "$near": [0, 0], "$maxDistance": 5 };
    let filter = doc! { "a": 1, "p": near() };
    let parsed = Filter::parse(filter.as_document()).unwrap();
    assert_eq!(
        parsed
            .near()
            .map(|(path, near)| (path.to_string(), near.max)),
        Some(("p".into(), 5.0))
    );
    assert_eq!(
        parsed.to_document(),
        doc! { "$and": [{ "a": { "$eq": 1 } }, { "p": near() }] }
    );
    assert_eq!(
        parsed.without_near().map_err(|error| error.code),
        Err(5_626_500)
    );
    check_refused(doc! { "$or": [{ "p": near() }, { "a": 1 }] }, 2);
    check_refused(doc! { "$nor": [{ "p": near() }] }, 2);
    check_refused(doc! { "p": { "$not": (near()) } }, 2);
    check_refused(doc! { "p": { "$elemMatch": (near()) } }, 2);
    check_refused(doc! { "p": near(), "q": near() }, 2);
    check_refused(doc! { "p": near(), "$text": { "$search": "x" } }, 2);
    check_refused(doc! { "p": { "$maxDistance": 5, "$near": [0, 0] } }, 2);
    check_refused(doc! { "p": { "$near": [0, 0], "$gt": 5 } }, 2);
    check_refused(doc! { "p": { "$near": ["a", "b"] } }, 2);
    check_refused(
        doc! { "p": { "$near": [0, 0], "$maxDistance": (-1) } },
        16896,
    );
    check_refused(
        doc! { "p": { "$near": [0, 0], "$maxDistance": "5" } },
        16895,
    );
    check_refused(
        doc! { "p": { "$near": [0, 0], "$minDistance": (-1) } },
        16894,
    );
    let within = |distance: &str, value: Value| {
        let mut near = doc! { "$geometry": { "type": "Point", "coordinates": [0, 0] } };
        near.push(distance, value);
        doc! { "p": { "$near": near } }
    };
    check_refused(within("$maxDistance", (-1).into()), 2);
    check_refused(within("$minDistance", "5".into()), 2);
    check_refused(within("$foo", 5.into()), 2);
    check_refused(doc! { "p": { "$near": [] } }, 2);
    check_refused(doc! { "p": { "$near": 5 } }, 2);
    check_refused(doc! { "p": { "$nearSphere": [0, 91] } }, 2);
    let polygon = doc! { "type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 0]]] };
    check_refused(doc! { "p": { "$near": { "$geometry": polygon } } }, 2);
}

#[test]
fn unknown_operators_are_refused_by_name() {
    for (filter, code) in [
        (doc! { "$bogus": 1 }, 2),
        (doc! { "a": { "$bogus": 1 } }, 2),
        (doc! { "a": { "$gt": 1, "b": 1 } }, 2),
        (doc! { "$where": "true" }, 2),
        (doc! { "$and": [] }, 2),
        (doc! { "$or": [1] }, 2),
        (doc! { "a": { "$not": 1 } }, 2),
        (doc! { "a": { "$ne": (regex("a", "")) } }, 2),
        (doc! { "a": (Value::Undefined) }, 2),
        (doc! { "a": { "$type": "bogus" } }, 2),
        (doc! { "a": { "$type": null } }, 14),
        (doc! { "$alwaysTrue": 0 }, 9),
        (doc! { "$text": { "$search": 1 } }, 14),
        (doc! { "$text": { "search": "x" } }, 4),
        (
            doc! { "$and": [{ "$text": { "$search": "x" } }, { "$text": { "$search": "y" } }] },
            2,
        ),
    ] {
        check_refused(filter, code);
    }
}

#[test]
fn the_tree_is_in_normal_form() {
    let cases = [
        (doc! {}, doc! {}),
        (
            doc! { "b": 1, "a": { "$gt": 1, "$lt": 5 } },
            doc! { "$and": [{ "b": { "$eq": 1 } }, { "a": { "$lt": 5 } }, { "a": { "$gt": 1 } }] },
        ),
        (
            doc! { "a": { "$ne": 1 } },
            doc! { "a": { "$not": { "$eq": 1 } } },
        ),
        (doc! { "a": { "$in": [1] } }, doc! { "a": { "$eq": 1 } }),
        (
            doc! { "a": { "$in": [2, 1, 2] } },
            doc! { "a": { "$in": [1, 2] } },
        ),
        (doc! { "$or": [{ "a": 1 }] }, doc! { "a": { "$eq": 1 } }),
        (
            doc! { "$and": [{ "$and": [{ "a": 1 }, { "b": 1 }] }, { "c": 1 }] },
            doc! { "$and": [{ "a": { "$eq": 1 } }, { "b": { "$eq": 1 } }, { "c": { "$eq": 1 } }] },
        ),
        (
            doc! { "a": { "$not": { "$gt": 1, "$lt": 2 } } },
            doc! { "a": { "$not": { "$lt": 2, "$gt": 1 } } },
        ),
        (
            doc! { "a": { "$exists": false } },
            doc! { "a": { "$not": { "$exists": true } } },
        ),
    ];
    for (filter, expected) in cases {
        let parsed = Filter::parse(filter.as_document()).unwrap();
        assert_eq!(parsed.to_document(), expected, "{filter}");
    }
}

#[test]
fn equality_fields_are_those_of_an_upsert() {
    let filter = doc! { "a": 1, "$and": [{ "b.c": { "$eq": 2 } }, { "d": { "$gt": 1 } }], "e": { "$in": [3] } };
    let filter = Filter::parse(filter.as_document()).unwrap();
    let fields = filter.equality_fields(EqualityScope::AllFields).unwrap();
    let found: Vec<(String, ValueRef<'_>)> = fields
        .into_iter()
        .map(|(path, value)| (path.to_string(), value))
        .collect();
    let expected = [("a", 1), ("b.c", 2), ("e", 3)];
    let expected: Vec<_> = expected
        .iter()
        .map(|(path, value)| (path.to_string(), ValueRef::Int32(*value)))
        .collect();
    assert_eq!(found, expected);
    let twice = Filter::parse(doc! { "$and": [{ "a": 1 }, { "a.b": 1 }] }.as_document()).unwrap();
    assert_eq!(
        twice
            .equality_fields(EqualityScope::AllFields)
            .unwrap_err()
            .code,
        54
    );
    assert!(
        twice
            .equality_fields(EqualityScope::OnlyId)
            .unwrap()
            .is_empty()
    );
}

#[test]
fn filters_match_single_values() {
    let operators = Filter::parse_operators(doc! { "$gt": 1, "$lt": 4 }.as_document()).unwrap();
    assert!(operators.matches_value(ValueRef::Int32(2)).unwrap());
    assert!(!operators.matches_value(ValueRef::Int32(4)).unwrap());
    let identified = Filter::parse(doc! { "x.a": 1 }.as_document()).unwrap();
    let element = doc! { "a": [0, 1] };
    assert!(
        identified
            .matches_value(ValueRef::Document(element.as_document()))
            .unwrap()
    );
    let list = array![1, 2];
    let whole = Filter::parse(doc! { "x": [1, 2] }.as_document()).unwrap();
    assert!(
        whole
            .matches_value(ValueRef::Array(list.as_array()))
            .unwrap()
    );
}

#[test]
fn text_is_found_in_the_tree() {
    let filter = doc! { "a": 1, "$text": { "$search": "cake", "$language": "none" } };
    let filter = Filter::parse(filter.as_document()).unwrap();
    assert_eq!(filter.text().map(|text| text.search.as_str()), Some("cake"));
    assert!(matches!(filter.root(), Node::And(children) if children.len() == 2));
    assert!(filter.matches(doc! { "a": 1 }.as_document()).unwrap());
}
