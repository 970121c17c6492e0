//! The values of expressions. `check` evaluates each case on one document.

mod arrays;
mod constants;
mod conversions;
mod dates;
#[path = "../json/mod.rs"]
mod json;

use windrow_document::{DocumentBuf, Value, ValueRef};
use windrow_mql::expression::{Context, Expression, Scope, Variables};
use windrow_mql::{Error, Meta};

/// The document that cases are evaluated on.
const DOCUMENT: &str = r#"{
    "_id": 1, "int": 7, "zero": 0, "text": "mongo", "null": null, "list": [5, 3, 8, 3, 1],
    "empty": [], "object": {"a": 1, "b.c": 2, "$d": 3}, "people": [
        {"name": "Ann", "age": 30}, {"name": "Bob", "age": 25}, {"name": "Cid", "age": 30}],
    "date": {"$date": {"$numberLong": "1563080767089"}}
}"#;

fn evaluate(expression: &str) -> Result<Option<Value>, Error> {
    let Value::Document(document) = json::parse(DOCUMENT) else {
        panic!("a document");
    };
    let source = json::parse(expression);
    let mut variables = Variables::new();
    variables.set("outer", Some(Value::Int32(42)));
    let parsed = Expression::parse(source.as_ref(), &Scope::with_variables(&variables))?;
    let meta = Meta {
        text_score: Some(1.5),
        ..Meta::default()
    };
    let context = Context::new(document.as_document())
        .with_variables(&variables)
        .with_now(1_700_000_000_000)
        .with_meta(&meta);
    Ok(parsed.evaluate(&context)?.into_value())
}

/// Each case is an expression and its value ("missing" for no value).
fn check(cases: &[(&str, &str)]) {
    for (expression, expected) in cases {
        let found = evaluate(expression).unwrap_or_else(|error| panic!("{expression}: {error}"));
        let expected = (*expected != "missing").then(|| json::parse(expected));
        assert_eq!(found, expected, "{expression}");
    }
}

/// Each case is an expression and the number of its error.
fn refuse(cases: &[(&str, i32)]) {
    for (expression, code) in cases {
        match evaluate(expression) {
            Err(error) => assert_eq!(error.code, *code, "{expression}: {error}"),
            Ok(found) => panic!("{expression} gave {found:?}"),
        }
    }
}

#[test]
fn computed_strings_are_shorter_than_16_mib() {
    let half = "x".repeat(8 << 20);
    let one = "x".repeat((8 << 20) - 1);
    let concat = |one: &str, other: &str| {
        let source = format!(r#"{{"$concat": ["{one}", "{other}"]}}"#);
        evaluate(&format!(r#"{{"$strLenBytes": {source}}}"#)).map_err(|error| error.code)
    };
    assert_eq!(concat(&half, &one), Ok(Some(Value::Int32((16 << 20) - 1))));
    assert_eq!(concat(&half, &half), Err(16493));
    let text = format!(
        r#"{{"$convert": {{"input": {{"$binary": {{"base64": "{}", "subType": "00"}}}},
        "to": "string", "format": "hex", "onError": "long"}}}}"#,
        "AAAA".repeat((8 << 20) / 3 + 1)
    );
    assert_eq!(evaluate(&text), Ok(Some(Value::from("long"))));
    let whole = format!(r#""{half}{half}""#);
    assert_eq!(evaluate(&whole).map_err(|error| error.code), Err(16493));
}

#[test]
fn arithmetic_widens_and_overflows() {
    check(&[
        (r#"{"$add": ["$int", 1.5]}"#, "8.5"),
        (
            r#"{"$add": [2147483647, 1]}"#,
            r#"{"$numberLong": "2147483648"}"#,
        ),
        (
            r#"{"$add": [{"$numberLong": "9223372036854775807"}, 1]}"#,
            "9.223372036854776e18",
        ),
        (r#"{"$add": ["$missing", 1]}"#, "null"),
        (
            r#"{"$add": ["$date", 11]}"#,
            r#"{"$date": {"$numberLong": "1563080767100"}}"#,
        ),
        (r#"{"$add": [0.1, 0.2, 0.3]}"#, "0.6000000000000001"),
        (r#"{"$sum": [0.1, 0.2, 0.3]}"#, "0.6"),
        (
            r#"{"$add": [1e308, 1e308, -1e308]}"#,
            r#"{"$numberDouble": "Infinity"}"#,
        ),
        (
            r#"{"$add": [{"$numberLong": "9007199254740993"}, 0.5, 1]}"#,
            r#"{"$numberDouble": "9007199254740992"}"#,
        ),
        (
            r#"{"$add": ["$date", 0.4, 0.4, 0.4]}"#,
            r#"{"$date": {"$numberLong": "1563080767089"}}"#,
        ),
        (
            r#"{"$add": [0.4, 0.4, "$date", 0.4]}"#,
            r#"{"$date": {"$numberLong": "1563080767090"}}"#,
        ),
        (
            r#"{"$subtract": ["$date", "$date"]}"#,
            r#"{"$numberLong": "0"}"#,
        ),
        (
            r#"{"$multiply": [65536, 65536]}"#,
            r#"{"$numberLong": "4294967296"}"#,
        ),
        (r#"{"$divide": [7, 2]}"#, "3.5"),
        (r#"{"$mod": [-7, 3]}"#, "-1"),
        (r#"{"$mod": [7, {"$numberDouble": "4"}]}"#, "3"),
        (
            r#"{"$subtract": ["$date", {"$numberDecimal": "1.5"}]}"#,
            r#"{"$date": {"$numberLong": "1563080767087"}}"#,
        ),
        (
            r#"{"$subtract": ["$date", 2.5]}"#,
            r#"{"$date": {"$numberLong": "1563080767086"}}"#,
        ),
        (
            r#"{"$add": ["$date", {"$numberDecimal": "2.5"}]}"#,
            r#"{"$date": {"$numberLong": "1563080767091"}}"#,
        ),
        (
            r#"{"$sum": [{"$numberDouble": "-Infinity"}, {"$numberDecimal": "1"}]}"#,
            r#"{"$numberDecimal": "-Infinity"}"#,
        ),
    ]);
    refuse(&[
        (r#"{"$add": ["$date", "$date"]}"#, 16612),
        (r#"{"$add": ["$date", 1e300]}"#, 15),
        (r#"{"$divide": ["$int", "$zero"]}"#, 16608),
        (r#"{"$subtract": ["$date", {"$numberDouble": "NaN"}]}"#, 15),
        (r#"{"$mod": ["$int", "$zero"]}"#, 16610),
    ]);
}

#[test]
fn numbers_are_rounded() {
    check(&[
        (r#"{"$round": [2.5, 0]}"#, r#"{"$numberDouble": "2"}"#),
        (
            r#"{"$round": [1234.5678, -2]}"#,
            r#"{"$numberDouble": "1200"}"#,
        ),
        (r#"{"$trunc": [1234.5678, 2]}"#, "1234.56"),
        (
            r#"{"$round": [{"$numberDecimal": "1.298"}, 100]}"#,
            r#"{"$numberDecimal": "1.298000000000000000000000000000000"}"#,
        ),
        (
            r#"{"$round": [{"$numberDecimal": "0"}, 100]}"#,
            r#"{"$numberDecimal": "0E-100"}"#,
        ),
    ]);
    refuse(&[
        (r#"{"$round": ["$int", "$text"]}"#, 16004),
        (r#"{"$round": ["$int", {"$numberDouble": "NaN"}]}"#, 31109),
        (r#"{"$trunc": ["$int", 0.5]}"#, 51082),
    ]);
}

#[test]
fn sigmoids_are_computed() {
    check(&[
        (r#"{"$sigmoid": 0}"#, "0.5"),
        (r#"{"$sigmoid": "$null"}"#, "null"),
        (r#"{"$sigmoid": {"$numberDouble": "-Infinity"}}"#, "0.0"),
        (
            r#"{"$sigmoid": {"$numberDecimal": "-1"}}"#,
            r#"{"$numberDecimal": "0.2689414213699951207488407581781638"}"#,
        ),
        (
            r#"{"$sigmoid": {"$numberDecimal": "0"}}"#,
            r#"{"$numberDecimal": "0.5"}"#,
        ),
        (
            r#"{"$sigmoid": {"$numberDecimal": "-Infinity"}}"#,
            r#"{"$numberDecimal": "0E-6176"}"#,
        ),
    ]);
    refuse(&[(r#"{"$sigmoid": ["$int"]}"#, 14)]);
}

#[test]
fn powers_and_logarithms_are_computed() {
    check(&[
        (r#"{"$pow": [2, 10]}"#, "1024"),
        (r#"{"$pow": [2, -1]}"#, "0.5"),
        (
            r#"{"$pow": [{"$numberDecimal": "1.5"}, 2]}"#,
            r#"{"$numberDecimal": "2.250000000000000000000000000000000"}"#,
        ),
        (
            r#"{"$pow": [{"$numberDecimal": "0"}, 2]}"#,
            r#"{"$numberDecimal": "0E-6176"}"#,
        ),
        (
            r#"{"$type": {"$log": [{"$numberDecimal": "NaN"}, 10]}}"#,
            r#""double""#,
        ),
        (r#"{"$log": [100, 10]}"#, r#"{"$numberDouble": "2"}"#),
    ]);
    refuse(&[(r#"{"$pow": ["$zero", -1]}"#, 28764)]);
}

#[test]
fn bits_are_combined() {
    check(&[
        (r#"{"$bitAnd": [12, 10]}"#, "8"),
        (
            r#"{"$bitOr": [12, {"$numberLong": "10"}]}"#,
            r#"{"$numberLong": "14"}"#,
        ),
        (r#"{"$bitXor": [12, 10]}"#, "6"),
        (r#"{"$bitNot": 5}"#, "-6"),
        (r#"{"$bitAnd": []}"#, "-1"),
    ]);
    refuse(&[
        (r#"{"$bitNot": 12.5}"#, 14),
        (r#"{"$bitNot": {"$numberDecimal": "12"}}"#, 14),
        (r#"{"$bitNot": "12"}"#, 28765),
        (r#"{"$bitAnd": [1.5]}"#, 14),
    ]);
}

#[test]
fn byte_positions_are_cut_to_integers() {
    check(&[(
        r#"{"$substrBytes": ["$text", {"$numberDecimal": "1.5"}, {"$numberDecimal": "NaN"}]}"#,
        r#""ngo""#,
    )]);
    refuse(&[
        (
            r#"{"$substrBytes": ["$text", {"$numberDouble": "-Infinity"}, 1]}"#,
            31109,
        ),
        (
            r#"{"$substrBytes": ["$text", {"$numberDecimal": "-0.6"}, 1]}"#,
            50752,
        ),
    ]);
}

#[test]
fn exponents_of_decimals_are_limited() {
    refuse(&[
        (r#"{"$toDecimal": "1E-9000"}"#, 241),
        (r#"{"$toDecimal": "1E6145"}"#, 241),
        (r#"{"$toDecimal": "15E-6177"}"#, 241),
    ]);
}

#[test]
fn names_and_argument_counts_are_checked() {
    refuse(&[
        (r#"{"$abs": [1, 2]}"#, 16020),
        (r#"{"$frobnicate": 1}"#, 168),
    ]);
}

#[test]
fn fields_of_objects_are_read_and_set() {
    check(&[
        (
            r#"{"$getField": {"field": "b.c", "input": "$object"}}"#,
            "2",
        ),
        (
            r#"{"$getField": {"field": {"$literal": "$d"}, "input": "$object"}}"#,
            "3",
        ),
        (r#"{"$getField": "int"}"#, "7"),
        (
            r#"{"$getField": {"field": "x", "input": "$object"}}"#,
            "missing",
        ),
        (r#"{"$getField": {"field": "x", "input": "$null"}}"#, "null"),
        (
            r#"{"$setField": {"field": "b.c", "input": "$object", "value": 9}}"#,
            r#"{"a": 1, "b.c": 9, "$d": 3}"#,
        ),
        (
            r#"{"$setField": {"field": "new", "input": {"a": 1}, "value": "$int"}}"#,
            r#"{"a": 1, "new": 7}"#,
        ),
        (
            r#"{"$setField": {"field": "a", "input": "$object", "value": "$$REMOVE"}}"#,
            r#"{"b.c": 2, "$d": 3}"#,
        ),
        (
            r#"{"$unsetField": {"field": {"$literal": "$d"}, "input": "$object"}}"#,
            r#"{"a": 1, "b.c": 2}"#,
        ),
        (
            r#"{"$unsetField": {"field": "a", "input": "$null"}}"#,
            "null",
        ),
    ]);
    refuse(&[
        (
            r#"{"$setField": {"field": "a", "input": "$int", "value": 1}}"#,
            4161105,
        ),
        (r#"{"$setField": {"field": "a", "value": 1}}"#, 4161109),
        (
            r#"{"$setField": {"field": "a\u0000", "input": "$object", "value": 1}}"#,
            9534700,
        ),
        (
            r#"{"$unsetField": {"field": {"$literal": "\u0000"}, "input": "$object"}}"#,
            9534700,
        ),
        (
            r#"{"$unsetField": {"field": {}, "input": "$object"}}"#,
            4161107,
        ),
        (
            r#"{"$getField": {"field": 5, "input": "$object"}}"#,
            3041704,
        ),
    ]);
}

#[test]
fn objects_are_merged_and_converted() {
    check(&[
        (
            r#"{"$mergeObjects": [{"a": 1, "b": 2}, null, {"a": 3}]}"#,
            r#"{"a": 3, "b": 2}"#,
        ),
        (r#"{"$objectToArray": {"a": 1}}"#, r#"[{"k": "a", "v": 1}]"#),
        (
            r#"{"$arrayToObject": [[["a", 1], ["a", 2]]]}"#,
            r#"{"a": 2}"#,
        ),
    ]);
    refuse(&[(r#"{"$objectToArray": 1}"#, 40390)]);
}

#[test]
fn points_of_percentiles_are_constant_expressions() {
    check(&[
        (
            r#"{"$percentile": {"input": [1, 2, 3], "p": {"$concatArrays": [[0.5], [{"$add": [0, 1]}]]}, "method": "approximate"}}"#,
            "[2.0, 3.0]",
        ),
        (
            r#"{"$toString": {"$median": {"input": {"$numberDouble": "NaN"}, "method": "approximate"}}}"#,
            r#""NaN""#,
        ),
        (
            r#"{"$median": {"input": [{"$numberDouble": "NaN"}], "method": "approximate"}}"#,
            "null",
        ),
    ]);
    refuse(&[
        (r#"{"$percentile": 5}"#, 7436200),
        (r#"{"$median": 5}"#, 7436201),
        (
            r#"{"$percentile": {"input": [1], "p": ["$int"], "method": "approximate"}}"#,
            7750300,
        ),
        (
            r#"{"$percentile": {"input": [1], "p": 0.5, "method": "approximate"}}"#,
            7750301,
        ),
        (
            r#"{"$percentile": {"input": [1], "p": ["x"], "method": "approximate"}}"#,
            7750302,
        ),
        (
            r#"{"$percentile": {"input": [1], "p": [{"$numberDouble": "NaN"}], "method": "approximate"}}"#,
            7750303,
        ),
        (
            r#"{"$percentile": {"input": [1], "p": [0.5], "method": 5}}"#,
            14,
        ),
        (
            r#"{"$percentile": {"input": [1], "p": [0.5], "method": "x"}}"#,
            2,
        ),
    ]);
}

#[test]
fn code_point_matches_may_reach_beyond_the_end() {
    check(&[
        (r#"{"$indexOfCP": ["abc", "bc", 0, 2]}"#, "1"),
        (r#"{"$indexOfCP": ["abc", "c", 0, 2]}"#, "-1"),
        (r#"{"$indexOfBytes": ["abc", "bc", 0, 2]}"#, "-1"),
    ]);
}

#[test]
fn variables_of_the_server() {
    check(&[(r#""$$USER_ROLES""#, "[]")]);
    refuse(&[
        (r#""$$CLUSTER_TIME""#, 10_071_200),
        (r#""$$ROOT.""#, 40353),
        (r#"{"$let": {"vars": {"a-b": 1}, "in": 1}}"#, 9),
    ]);
}

#[test]
fn names_of_set_fields_must_be_constant() {
    refuse(&[
        (
            r#"{"$setField": {"field": {"$concat": ["a", "b"]}, "input": {}, "value": 1}}"#,
            4161106,
        ),
        (
            r#"{"$setField": {"field": 5, "input": {}, "value": 1}}"#,
            4161107,
        ),
        (
            r#"{"$setField": {"field": "$text", "input": {}, "value": 1}}"#,
            4161108,
        ),
        (r#"{"$setField": {"field": null, "value": 1}}"#, 4161109),
        (r#"{"$setField": {"field": "a"}}"#, 4161103),
        (
            r#"{"$unsetField": {"field": "a", "input": {}, "value": 1}}"#,
            4161101,
        ),
        (r#"{"$unsetField": {"input": {}}}"#, 4161102),
        (r#"{"$unsetField": 5}"#, 4161100),
    ]);
}

#[test]
fn variables_and_metadata_are_read() {
    check(&[
        (r#""$$outer""#, "42"),
        (
            r#"{"$let": {"vars": {"x": "$int"}, "in": {"$multiply": ["$$x", "$$x"]}}}"#,
            "49",
        ),
        (
            r#"{"$let": {"vars": {"CURRENT": "$object"}, "in": "$a"}}"#,
            "1",
        ),
        (
            r#"{"$map": {"input": [1, 2], "as": "x", "in":
                {"$map": {"input": [10, 20], "as": "y", "in": {"$add": ["$$x", "$$y"]}}}}}"#,
            "[[11, 21], [12, 22]]",
        ),
        (
            r#""$$NOW""#,
            r#"{"$date": {"$numberLong": "1700000000000"}}"#,
        ),
        (r#""$$REMOVE""#, "missing"),
        (r#"{"$meta": "textScore"}"#, "1.5"),
        (r#"{"$literal": "$int"}"#, r#""$int""#),
        (
            r#"{"$and": [{"$gte": [{"$rand": {}}, 0]}, {"$lt": [{"$rand": {}}, 1]}]}"#,
            "true",
        ),
    ]);
    refuse(&[
        (r#""$$nothing""#, 17276),
        (r#"{"$meta": "nothing"}"#, 17308),
    ]);
}

fn parse(source: &str) -> Expression {
    Expression::parse(json::parse(source).as_ref(), &Scope::new()).expect(source)
}

#[test]
fn values_within_the_document_are_not_copied() {
    let document: DocumentBuf = windrow_document::doc! { "a": { "b": "text" } };
    let path = parse(r#"{"$ifNull": ["$a.x", "$a.b"]}"#);
    let context = Context::new(document.as_document());
    let found = path.evaluate(&context).expect("a value");
    let Some(ValueRef::String(text)) = found.as_ref() else {
        panic!("{found:?}");
    };
    assert!(document.as_bytes().as_ptr_range().contains(&text.as_ptr()));
}

#[test]
fn the_message_of_too_few_arguments_contains_their_number() {
    for (source, found) in [(r#"{"$ifNull": []}"#, 0), (r#"{"$ifNull": ["$int"]}"#, 1)] {
        let error = evaluate(source).unwrap_err();
        let message = format!("$ifNull needs at least two arguments, had: {found}");
        assert_eq!((error.code, error.message), (16020, message));
    }
}

#[test]
fn missing_values_compare_as_undefined() {
    const UNDEFINED: &str = r#"{"$literal": {"$undefined": true}}"#;
    let compare = |operator: &str, one: &str, other: &str| {
        let found = evaluate(&format!(r#"{{"{operator}": [{one}, {other}]}}"#));
        found.unwrap().unwrap()
    };
    for (one, other) in [(UNDEFINED, r#""$nope""#), (r#""$$REMOVE""#, UNDEFINED)] {
        let found = ["$eq", "$lte", "$gte", "$ne", "$lt", "$gt"].map(|it| compare(it, one, other));
        let expected = [true, true, true, false, false, false].map(Value::Bool);
        assert_eq!(found, expected, "{one} {other}");
        assert_eq!(compare("$cmp", one, other), Value::Int32(0));
    }
    for one in [UNDEFINED, r#""$nope""#] {
        assert_eq!(compare("$cmp", one, "null"), Value::Int32(-1));
        let least = r#"{"$minKey": 1}"#;
        assert_eq!(compare("$cmp", one, least), Value::Int32(1));
    }
}
