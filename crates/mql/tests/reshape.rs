//! The results of `$project`, `$addFields`, `$unset`, `$replaceRoot` and `$redact`.

mod json;

use windrow_document::{Document, DocumentBuf, Value, ValueRef};
use windrow_mql::Error;
use windrow_mql::expression::{Context, Scope, Variables};
use windrow_mql::reshape::{
    Redact, RemovedFields, ReplaceRoot, Reshape, ReshapeOutput, sets_removed_field,
};

const DOCUMENT: &str = r#"{"_id": 1, "a": 1, "b": {"c": 1, "d": [{"e": 1, "f": 2}, {"e": 3}]},
    "l": [{"c": 1}, {"c": 2, "d": 5}, 7, [{"c": 3}]]}"#;

fn document(source: &str) -> DocumentBuf {
    match json::parse(source) {
        Value::Document(document) => document,
        other => panic!("{other:?} is no document"),
    }
}

/// Applies `{$stage: specification}` to a document.
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
fn stages_return_the_expected_documents() {
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
fn invalid_specifications_are_refused() {
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
fn stages_know_their_dependencies_and_changed_paths() {
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
    assert!(!inclusion.keeps_unnamed_fields());
    assert_eq!(inclusion.changed_paths(), ["x"]);
    let exclusion = parse(r#"{"a": 0, "b.c": 0}"#);
    assert!(exclusion.keeps_unnamed_fields());
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

/// Applies several `$set`s and `$unset`s.
fn apply_all(stages: &[&str], input: &str) -> DocumentBuf {
    let reshapes: Vec<Reshape> = stages
        .iter()
        .map(|stage| {
            let stage = document(stage);
            let (name, operand) = stage.as_document().first().expect("a stage");
            match name {
                "$set" => Reshape::parse_add_fields(operand, &Scope::new()),
                "$project" => Reshape::parse_project(operand, &Scope::new()),
                _ => Reshape::parse_unset(operand),
            }
        })
        .collect::<Result<_, Error>>()
        .unwrap();
    let mut reshaped = ReshapeOutput::from(document(input));
    for count in 1..=reshapes.len() {
        let (before, later) = reshapes.split_at(count);
        let records = sets_removed_field(before, later);
        let reshape = before.last().unwrap().clone();
        let reshape = reshape.recording_removed_fields(records);
        let context = Context::new(reshaped.document.as_document());
        reshaped = reshape
            .apply_after(
                reshaped.document.as_document(),
                &reshaped.removed_fields,
                &context,
            )
            .unwrap();
        assert!(
            records || reshaped.removed_fields == RemovedFields::default(),
            "{stages:?}"
        );
    }
    reshaped.document
}

/// A field that one stage removed and a later one set again used to be appended at the end. MongoDB
/// puts it back at its former position.
#[test]
fn a_field_that_is_set_again_keeps_its_position() {
    let input = r#"{"a": 1, "b": {"c": 1, "d": 2}, "e": [{"f": 1, "g": 2}, {"g": 3}], "h": 4}"#;
    let check = |stages: &[&str], expected: &str| {
        let found = apply_all(stages, input);
        assert_eq!(found, document(expected), "{stages:?}");
        assert!(Document::from_bytes(found.as_bytes()).is_ok());
    };
    let end = r#""b": {"c": 1, "d": 2}, "e": [{"f": 1, "g": 2}, {"g": 3}], "h": 4"#;
    check(
        &[r#"{"$set": {"a": "$$REMOVE"}}"#, r#"{"$set": {"a": 2}}"#],
        &format!(r#"{{"a": 2, {end}}}"#),
    );
    check(
        &[
            r#"{"$unset": "a"}"#,
            r#"{"$set": {"z": 1}}"#,
            r#"{"$set": {"a.x": 2}}"#,
        ],
        &format!(r#"{{"a": {{"x": 2}}, {end}, "z": 1}}"#),
    );
    // A field that never existed is at the position where it was first computed as missing.
    check(
        &[
            r#"{"$set": {"x": "$missing"}}"#,
            r#"{"$set": {"y": 1}}"#,
            r#"{"$set": {"x": 2}}"#,
        ],
        &format!(r#"{{"a": 1, {end}, "x": 2, "y": 1}}"#),
    );
    check(
        &[
            r#"{"$unset": ["h", "b.c", "b.d", "e.f"]}"#,
            r#"{"$set": {"i": 1, "b.z": 1, "e.z": 1}}"#,
            r#"{"$set": {"b.d": 3, "h": 5, "e.f": 6}}"#,
        ],
        r#"{"a": 1, "b": {"d": 3, "z": 1}, "e": [{"f": 6, "g": 2, "z": 1}, {"g": 3, "z": 1, "f": 6}],
            "h": 5, "i": 1}"#,
    );
    // The positions of removed fields move with a copied element.
    check(
        &[
            r#"{"$unset": ["b.c", "h"]}"#,
            r#"{"$set": {"a": "longer than before", "h": "$$REMOVE"}}"#,
            r#"{"$set": {"b.c": 7, "h": 8, "z": 1}}"#,
        ],
        r#"{"a": "longer than before", "b": {"c": 7, "d": 2},
            "e": [{"f": 1, "g": 2}, {"g": 3}], "h": 8, "z": 1}"#,
    );
    // An inclusion creates another document, which never had the field.
    check(
        &[
            r#"{"$unset": "a"}"#,
            r#"{"$project": {"h": 1, "b": 1}}"#,
            r#"{"$set": {"a": 1}}"#,
        ],
        r#"{"b": {"c": 1, "d": 2}, "h": 4, "a": 1}"#,
    );
    check(
        &[
            r#"{"$project": {"x": "$$REMOVE", "y": "$h"}}"#,
            r#"{"$set": {"x": 1}}"#,
        ],
        r#"{"x": 1, "y": 4}"#,
    );
}
