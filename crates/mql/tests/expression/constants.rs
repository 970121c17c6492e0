//! Constants, and what is known about expressions after parsing.

use windrow_document::{Document, Value};
use windrow_mql::expression::{Context, Expression, Scope, Variables};

use super::{check, json, parse, refuse};

/// Constants longer than 64 KB used to be computed again for each document.
#[test]
fn a_long_constant_is_computed_once() {
    let source = json::parse(r#"{"$size": [{"$concatArrays": [{"$range": [0, 9000]}, "$list"]}]}"#);
    let size = Expression::parse(source.as_ref(), &Scope::new()).unwrap();
    assert!(size.constant().is_none());
    for source in [
        r#"{"$range": [0, 9000]}"#,
        r#"[{"$range": [0, 9000]}]"#,
        r#"{"a": {"$range": [0, 9000]}}"#,
        r#"{"$reverseArray": {"$range": [0, 9000]}}"#,
        r#"{"a": {"$reverseArray": [[1, [{"$range": [0, 9000]}]]]}}"#,
    ] {
        let expression = parse(source);
        let copy = expression.clone();
        let bytes = |one: &Expression| match one.constant() {
            Some(Value::Array(array)) => array.as_array().as_bytes().as_ptr_range(),
            Some(Value::Document(document)) => document.as_bytes().as_ptr_range(),
            other => panic!("{other:?}"),
        };
        assert_eq!(bytes(&expression), bytes(&copy), "{source}");
        assert_eq!(expression, copy);
    }
    let size = parse(r#"{"$size": [[{"$range": [0, 9000]}]]}"#);
    assert_eq!(size.constant(), Some(&Value::Int32(1)));
}

/// A stage stores no constant that is larger than its expression.
#[test]
fn the_points_of_a_percentile_are_not_a_long_computed_array() {
    let percentile = |points: &str| {
        format!(r#"{{"$percentile": {{"input": 1, "method": "approximate", "p": {points}}}}}"#)
    };
    let long = r#"{"$map": {"input": {"$range": [0, 9000]}, "in": 1}}"#;
    refuse(&[(&percentile(long), 146)]);
    let short = r#"{"$map": {"input": {"$range": [0, 2]}, "in": 1}}"#;
    check(&[(&percentile(short), "[1.0, 1.0]")]);
}

#[test]
fn constants_are_evaluated_while_parsing() {
    let folded = parse(r#"{"$add": [1, {"$multiply": [2, 3]}]}"#);
    assert_eq!(folded.constant(), Some(&Value::Int32(7)));
    assert_eq!(parse(r#"{"$add": ["$a", 1]}"#).constant(), None);
    assert_eq!(parse(r#"{"$rand": {}}"#).constant(), None);
    refuse(&[(r#"{"$cond": ["$null", {"$divide": [1, 0]}, 1]}"#, 16608)]);
}

#[test]
fn dependencies_are_the_paths_that_are_read() {
    let found = parse(
        r#"{"$cond": [{"$gt": ["$a.b", 1]}, {"$map": {"input": "$list", "in": "$$this.x"}}, {"$meta": "textScore"}]}"#,
    )
    .dependencies();
    assert_eq!(found.paths.into_iter().collect::<Vec<_>>(), ["a.b", "list"]);
    assert!(found.text_score && !found.whole);
    assert!(parse(r#"{"$type": "$$ROOT"}"#).dependencies().whole);
    assert_eq!(parse(r#""$a.b""#).field_path().as_deref(), Some("a.b"));
}

#[test]
fn constants_compare_with_the_collation() {
    let settings = json::parse(r#"{"locale": "en", "strength": 2}"#);
    let collation = windrow_mql::collation::parse(settings.as_ref().as_document().unwrap());
    let collation = collation.unwrap().unwrap();
    let check = |source: &str, expected: &str| {
        let parsed = Expression::parse(json::parse(source).as_ref(), &Scope::new()).expect(source);
        let context = Context::new(Document::EMPTY);
        let context = context.with_collation(Some(&*collation));
        let found = parsed.evaluate(&context).expect(source).into_value();
        assert_eq!(found, Some(json::parse(expected)), "{source}");
    };
    check(r#"{"$eq": ["a", "A"]}"#, "true");
    check(r#"{"$cmp": ["B", "a"]}"#, "1");
    check(r#"{"$max": ["B", "a"]}"#, r#""B""#);
    check(r#"{"$in": ["A", ["a"]]}"#, "true");
    check(r#"{"$indexOfArray": [["a", "b"], "B"]}"#, "1");
    check(r#"{"$setUnion": [["a"], ["A", "b"]]}"#, r#"["a", "b"]"#);
    check(r#"{"$setDifference": [["a", "b"], ["A"]]}"#, r#"["b"]"#);
    check(
        r#"{"$sortArray": {"input": ["b", "C", "a"], "sortBy": 1}}"#,
        r#"["a", "b", "C"]"#,
    );
    check(
        r#"{"$maxN": {"input": ["b", "C", "a"], "n": 2}}"#,
        r#"["C", "b"]"#,
    );
    check(r#"{"$cond": [{"$eq": ["a", "A"]}, 1, 2]}"#, "1");
}

/// A variable of a command's `let` has one value. A variable of a `$lookup` has another one for
/// each document.
#[test]
fn variables_of_a_command_are_constants() {
    let mut variables = Variables::new();
    let points = json::parse("[0.5, 0.9]");
    variables.set_constant("ps", Some(points.clone())).unwrap();
    variables
        .set_constant("p", Some(Value::Double(0.9)))
        .unwrap();
    variables
        .set_constant("later", Some(Value::Double(0.9)))
        .unwrap();
    variables.set("later", Some(Value::Double(0.9)));
    let scope = Scope::with_variables(&variables);
    let constant = |source: &str| {
        let expression = Expression::parse(json::parse(source).as_ref(), &scope).unwrap();
        expression.to_constant(&scope).unwrap()
    };
    assert_eq!(constant(r#""$$ps""#), Some(points.clone()));
    let joined = r#"{"$concatArrays": [[0.5], ["$$p"]]}"#;
    assert_eq!(constant(joined), Some(points));
    assert_eq!(constant(r#"["$$later"]"#), None);
    let shadowed = r#"{"$let": {"vars": {"p": "$a"}, "in": ["$$p"]}}"#;
    assert_eq!(constant(shadowed), None);
}

/// Stages do not store large constants, because each stage would have its own copy.
#[test]
fn long_variables_of_a_command_are_not_constants() {
    let mut variables = Variables::new();
    let long = Some(Value::from("x".repeat(2000)));
    variables.set_constant("long", long).unwrap();
    let scope = Scope::with_variables(&variables);
    let expression = Expression::parse(Value::from("$$long").as_ref(), &scope).unwrap();
    assert_eq!(expression.to_constant(&scope).unwrap_err().code, 146);
}
