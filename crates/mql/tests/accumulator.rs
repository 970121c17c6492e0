//! The results of accumulators for groups, for a whole group and for two merged halves.

mod json;

use windrow_document::{Document, DocumentBuf, Value, ValueRef};
use windrow_invariant::tolerate_bugs;
use windrow_mql::Error;
use windrow_mql::accumulator::{Accumulator, AccumulatorState};
use windrow_mql::expression::{Context, Scope};

fn parse(source: &str) -> Result<Accumulator, Error> {
    Accumulator::parse("r", json::parse(source).as_ref(), &Scope::new())
}

fn documents(values: &str) -> Vec<DocumentBuf> {
    let Value::Array(documents) = json::parse(values) else {
        panic!("an array of documents");
    };
    documents
        .iter()
        .filter_map(ValueRef::as_document)
        .map(Document::to_buf)
        .collect()
}

fn state_of(
    accumulator: &Accumulator,
    documents: &[DocumentBuf],
) -> Result<AccumulatorState, Error> {
    let mut state = accumulator.start(&Context::new(Document::EMPTY))?;
    for document in documents {
        accumulator.add(&mut state, &Context::new(document.as_document()))?;
    }
    Ok(state)
}

/// Each case is an accumulator, the documents of a group, and the result. Merging two halves of the
/// group must have the same result.
fn check(cases: &[(&str, &str, &str)]) {
    for (source, values, expected) in cases {
        let accumulator = parse(source).expect(source);
        let (documents, expected) = (documents(values), json::parse(expected));
        let whole = state_of(&accumulator, &documents).expect(source);
        assert!(whole.bytes() > 0);
        assert_eq!(whole.finish(), expected, "{source} of {values}");
        for place in 0..=documents.len() {
            let (front, back) = documents.split_at(place);
            let mut merged = state_of(&accumulator, front).expect(source);
            merged
                .merge(state_of(&accumulator, back).expect(source), None)
                .expect(source);
            assert_eq!(
                merged.finish(),
                expected,
                "{source} of {values}, cut at {place}"
            );
        }
    }
}

const VALUES: &str = r#"[{"v": 3, "w": "c"}, {"v": 1, "w": "a"}, {"w": "m"}, {"v": null, "w": "n"}, {"v": 3, "w": "d"},
    {"v": 5, "w": "e"}]"#;

#[test]
fn numbers_are_accumulated() {
    check(&[
        (r#"{"$sum": "$v"}"#, VALUES, "12"),
        (r#"{"$sum": 1}"#, VALUES, "6"),
        (
            r#"{"$sum": "$v"}"#,
            r#"[{"v": 2147483647}, {"v": 1}]"#,
            r#"{"$numberLong": "2147483648"}"#,
        ),
        (r#"{"$sum": "$v"}"#, r#"[{"v": "text"}]"#, "0"),
        (
            r#"{"$sum": "$v"}"#,
            r#"[{"v": 1}, {"v": {"$numberDecimal": "0.10"}}]"#,
            r#"{"$numberDecimal": "1.10"}"#,
        ),
        (r#"{"$avg": "$v"}"#, VALUES, r#"{"$numberDouble": "3"}"#),
        (r#"{"$avg": "$v"}"#, r#"[{"v": "text"}]"#, "null"),
        (r#"{"$count": {}}"#, VALUES, "6"),
        (
            r#"{"$stdDevPop": "$v"}"#,
            r#"[{"v": 1}, {"v": 3}]"#,
            r#"{"$numberDouble": "1"}"#,
        ),
        (r#"{"$stdDevSamp": "$v"}"#, r#"[{"v": 1}]"#, "null"),
        (
            r#"{"$median": {"input": "$v", "method": "approximate"}}"#,
            VALUES,
            r#"{"$numberDouble": "3"}"#,
        ),
        (
            r#"{"$percentile": {"input": "$v", "p": [0.1, 1], "method": "approximate"}}"#,
            VALUES,
            r#"[{"$numberDouble": "1"}, {"$numberDouble": "5"}]"#,
        ),
    ]);
}

#[test]
fn values_are_selected() {
    check(&[
        (r#"{"$min": "$v"}"#, VALUES, "1"),
        (r#"{"$max": "$v"}"#, VALUES, "5"),
        (r#"{"$max": "$v"}"#, "[{}]", "null"),
        (r#"{"$first": "$v"}"#, VALUES, "3"),
        (r#"{"$first": "$v"}"#, r#"[{}, {"v": 1}]"#, "null"),
        (r#"{"$firstN": {"n": 2, "input": "$v"}}"#, VALUES, "[3, 1]"),
        (
            r#"{"$firstN": {"n": 3, "input": "$v"}}"#,
            VALUES,
            "[3, 1, null]",
        ),
        (r#"{"$lastN": {"n": 2, "input": "$v"}}"#, VALUES, "[3, 5]"),
        (r#"{"$minN": {"n": 2, "input": "$v"}}"#, VALUES, "[1, 3]"),
        (r#"{"$maxN": {"n": 3, "input": "$v"}}"#, VALUES, "[5, 3, 3]"),
        (
            r#"{"$top": {"output": "$w", "sortBy": {"v": -1}}}"#,
            VALUES,
            r#""e""#,
        ),
        (
            r#"{"$bottom": {"output": "$w", "sortBy": {"v": -1}}}"#,
            VALUES,
            r#""n""#,
        ),
        (
            r#"{"$topN": {"n": 2, "output": "$w", "sortBy": {"v": -1}}}"#,
            VALUES,
            r#"["e", "c"]"#,
        ),
        (
            r#"{"$bottomN": {"n": 2, "output": "$w", "sortBy": {"v": 1}}}"#,
            VALUES,
            r#"["d", "e"]"#,
        ),
    ]);
}

#[test]
fn arrays_and_objects_are_accumulated() {
    check(&[
        (r#"{"$push": "$v"}"#, VALUES, "[3, 1, null, 3, 5]"),
        (r#"{"$addToSet": "$v"}"#, VALUES, "[3, 1, null, 5]"),
        (
            r#"{"$concatArrays": "$l"}"#,
            r#"[{"l": [1, [2]]}, {}, {"l": []}, {"l": [1, null]}]"#,
            "[1, [2], 1, null]",
        ),
        (
            r#"{"$setUnion": "$l"}"#,
            r#"[{"l": [1, [2], 1]}, {}, {"l": [[2], null, "a"]}, {"l": [null]}]"#,
            r#"[1, [2], null, "a"]"#,
        ),
        (r#"{"$setUnion": "$l"}"#, "[{}]", "[]"),
        (
            r#"{"$mergeObjects": "$v"}"#,
            r#"[{"v": {"a": 1, "b": 1}}, {}, {"v": {"a": 2}}]"#,
            r#"{"a": 2, "b": 1}"#,
        ),
    ]);
}

#[test]
fn the_last_value_may_be_missing() {
    let last = parse(r#"{"$last": "$v"}"#).expect("an accumulator");
    let finish = |values| {
        state_of(&last, &documents(values))
            .expect("a state")
            .finish()
    };
    assert_eq!(finish(VALUES), Value::Int32(5));
    assert_eq!(finish(r#"[{"v": 1}, {}]"#), Value::Null);
}

#[test]
fn invalid_accumulators_are_refused() {
    let cases = [
        (r#"{"$frobnicate": 1}"#, 15952),
        (r#"{"$sum": ["$a", "$b"]}"#, 40237),
        (r#"{"$setUnion": ["$a", "$b"]}"#, 40237),
        (r#"{"$sum": 1, "$avg": 1}"#, 40238),
        (r#"{"x": 1}"#, 40234),
        (r#""$a""#, 40234),
        (r#"{"$firstN": {"input": "$a"}}"#, 5787906),
        (r#"{"$firstN": {"n": 1}}"#, 5787907),
        (r#"{"$topN": {"n": 1, "output": "$a"}}"#, 5788005),
        (r#"{"$count": 1}"#, 14),
        (
            r#"{"$percentile": {"input": "$a", "p": [2], "method": "approximate"}}"#,
            7750303,
        ),
    ];
    for (source, code) in cases {
        assert_eq!(parse(source).expect_err(source).code, code, "{source}");
    }
    let named = |name: &str| {
        Accumulator::parse(name, json::parse(r#"{"$sum": 1}"#).as_ref(), &Scope::new())
    };
    assert_eq!(named("a.b").expect_err("a dot").code, 40235);
    assert_eq!(named("$a").expect_err("a dollar").code, 40236);
    let cases = [
        (r#"{"$mergeObjects": "$v"}"#, r#"[{"v": 1}]"#, 40400),
        (r#"{"$concatArrays": "$v"}"#, r#"[{"v": null}]"#, 14),
        (r#"{"$setUnion": "$v"}"#, r#"[{"v": [1]}, {"v": "a"}]"#, 14),
    ];
    for (source, values, code) in cases {
        let accumulator = parse(source).expect(source);
        let error = state_of(&accumulator, &documents(values)).expect_err(source);
        assert_eq!(error.code, code, "{source}");
    }
}

/// States of different accumulators used to be ignored when they were merged, so that their
/// documents were not counted.
#[test]
fn states_of_two_accumulators_do_not_merge() {
    let state = |source: &str| state_of(&parse(source).unwrap(), &[]).unwrap();
    let mut sum = state(r#"{"$sum": 1}"#);
    assert!(sum.merge(state(r#"{"$sum": 1}"#), None).is_ok());
    let refused = tolerate_bugs(|| sum.merge(state(r#"{"$push": 1}"#), None));
    assert_eq!(refused.unwrap_err().code, 8);
}
