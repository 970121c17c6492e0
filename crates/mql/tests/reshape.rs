//! What `$project`, `$addFields`, `$unset`, `$replaceRoot` and `$redact` make of a document.

mod json;

use windrow_document::{Document, DocumentBuf, Value, ValueRef};
use windrow_mql::Error;
use windrow_mql::expression::{Context, Scope, Variables};
use windrow_mql::reshape::{Redact, ReplaceRoot, Reshape};

const DOCUMENT: &str = r#"{"_id": 1, "a": 1, "b": {"c": 1, "d": [{"e": 1, "f": 2}, {"e": 3}]},
    "l": [{"c": 1}, {"c": 2, "d": 5}, 7, [{"c": 3}]]}"#;

fn document(source: &str) -> DocumentBuf {
    match json::parse(source) {
        Value::Document(document) => document,
        other => panic!("{other:?} is no document"),
    }
}

/// `{$stage: specification}` applied to the document.
fn apply(stage: &str) -> Result<Option<DocumentBuf>, Error> {
    let (stage, input) = (document(stage), document(DOCUMENT));
    let (name, operand) = stage.as_document().first().expect("a stage");
    let (scope, view) = (Scope::new(), input.as_document());
    let context = Context::new(view);
    let reshape = match name {
        "$project" => Reshape::parse_project(operand, &scope)?,
        "$addFields" => Reshape::parse_add_fields(operand, &scope)?,
        "$unset" => Reshape::parse_unset(operand)?,
        "$replaceRoot" => {
            let replace = ReplaceRoot::parse_replace_root(operand, &scope)?;
            return replace.apply(view, &context).map(Some);
        }
        _ => return Redact::parse(operand, &Variables::new())?.apply(view, &context),
    };
    reshape.apply(view, &context).map(Some)
}

fn check(cases: &[(&str, &str)]) {
    for (stage, expected) in cases {
        let found = apply(stage).unwrap_or_else(|error| panic!("{stage}: {error}"));
        let expected = (*expected != "nothing").then(|| document(expected));
        assert_eq!(found, expected, "{stage}");
    }
}

#[test]
fn documents_take_their_new_shape() {
    check(&[
        (r#"{"$project": {"a": 1}}"#, r#"{"_id": 1, "a": 1}"#),
        (
            r#"{"$project": {"_id": 0, "l.c": 1}}"#,
            r#"{"l": [{"c": 1}, {"c": 2}, [{"c": 3}]]}"#,
        ),
        (
            r#"{"$project": {"b.d.e": 1}}"#,
            r#"{"_id": 1, "b": {"d": [{"e": 1}, {"e": 3}]}}"#,
        ),
        (
            r#"{"$project": {"x": "$a", "b": {"c": 1}}}"#,
            r#"{"_id": 1, "b": {"c": 1}, "x": 1}"#,
        ),
        (
            r#"{"$project": {"_id": 0, "l": {"c": 1, "n": "$a"}}}"#,
            r#"{"l": [{"c": 1, "n": 1}, {"c": 2, "n": 1}, {"n": 1}, [{"c": 3, "n": 1}]]}"#,
        ),
        (
            r#"{"$project": {"b": 0, "l.c": 0}}"#,
            r#"{"_id": 1, "a": 1, "l": [{}, {"d": 5}, 7, [{}]]}"#,
        ),
        (
            r#"{"$project": {"l": 0, "b": 0, "_id": 1}}"#,
            r#"{"_id": 1, "a": 1}"#,
        ),
        (
            r#"{"$project": {"c": {"$meta": "indexKey"}, "_id": 0, "b": 0, "l": 0}}"#,
            r#"{"a": 1}"#,
        ),
        (
            r#"{"$project": {"_id": 0, "c": {"$meta": "recordId"}}}"#,
            "{}",
        ),
        (
            r#"{"$addFields": {"a": "$b.c", "b.x": 5, "n.m": "$a", "l": "$$REMOVE"}}"#,
            r#"{"_id": 1, "a": 1, "b": {"c": 1, "d": [{"e": 1, "f": 2}, {"e": 3}], "x": 5}, "n": {"m": 1}}"#,
        ),
        (
            r#"{"$addFields": {"l": {"x": 1}, "b": 0, "a": 0}}"#,
            r#"{"_id": 1, "a": 0, "b": 0,
                "l": [{"c": 1, "x": 1}, {"c": 2, "d": 5, "x": 1}, {"x": 1}, [{"c": 3, "x": 1}]]}"#,
        ),
        (
            r#"{"$unset": ["l", "b.d", "b.c"]}"#,
            r#"{"_id": 1, "a": 1, "b": {}}"#,
        ),
        (
            r#"{"$replaceRoot": {"newRoot": {"x": "$b.c"}}}"#,
            r#"{"x": 1}"#,
        ),
        (r#"{"$redact": "$$PRUNE"}"#, "nothing"),
        (
            r#"{"$redact": {"$cond": [{"$eq": ["$c", 1]}, "$$PRUNE", "$$DESCEND"]}}"#,
            r#"{"_id": 1, "a": 1, "l": [{"c": 2, "d": 5}, 7, [{"c": 3}]]}"#,
        ),
    ]);
}

#[test]
fn wrong_shapes_are_refused() {
    let cases = [
        (r#"{"$project": 1}"#, 15969),
        (r#"{"$project": {}}"#, 51272),
        (r#"{"$project": {"a": 1, "b": 0}}"#, 31254),
        (r#"{"$project": {"a": 0, "b": 1}}"#, 31253),
        (r#"{"$project": {"a": 0, "b": "$a"}}"#, 31310),
        (r#"{"$project": {"a": 1, "a.b": 1}}"#, 31249),
        (r#"{"$project": {"a.b": 1, "a": 1}}"#, 31250),
        (r#"{"$project": {"a": {}}}"#, 51270),
        (r#"{"$project": {"a": {"$frobnicate": 1}}}"#, 31325),
        (r#"{"$addFields": {"a": {"$frobnicate": 1}}}"#, 168),
        (r#"{"$addFields": {"a": 1, "a.b": 1}}"#, 40176),
        (r#"{"$addFields": {"a": {}}}"#, 40180),
        (r#"{"$unset": 1}"#, 31002),
        (r#"{"$unset": ["a", "a"]}"#, 31250),
        (r#"{"$replaceRoot": {"newRoot": "$a"}}"#, 40228),
        (r#"{"$replaceRoot": {"newRoot": "$b", "x": 1}}"#, 40415),
        (r#"{"$redact": 1}"#, 17053),
    ];
    for (stage, code) in cases {
        match apply(stage) {
            Err(error) => assert_eq!(error.code, code, "{stage}: {error}"),
            Ok(found) => panic!("{stage} gave {found:?}"),
        }
    }
}

#[test]
fn dependencies_and_changes() {
    let parse = |source: &str| {
        let specification = document(source);
        Reshape::parse_project(
            ValueRef::Document(specification.as_document()),
            &Scope::new(),
        )
        .expect(source)
    };
    let inclusion = parse(r#"{"a": 1, "b.c": 1, "x": {"$add": ["$y", "$z.w"]}}"#);
    let paths: Vec<String> = inclusion.dependencies().paths.into_iter().collect();
    assert_eq!(paths, ["_id", "a", "b.c", "y", "z.w"]);
    assert!(!inclusion.keeps_rest());
    assert_eq!(inclusion.changed_paths(), ["x"]);
    let exclusion = parse(r#"{"a": 0, "b.c": 0}"#);
    assert!(exclusion.keeps_rest());
    assert_eq!(exclusion.changed_paths(), ["a", "b.c"]);
    let input = Document::EMPTY;
    assert_eq!(
        inclusion
            .apply(input, &Context::new(input))
            .expect("a document")
            .as_document()
            .count(),
        1
    );
}
