//! Reports on documents that a validator refuses.

mod json;

use windrow_document::{ArrayBuf, Document, DocumentBuf, Value, ValueRef, doc};
use windrow_mql::filter::{Environment, validation_report};

fn report(query: Document<'_>, document: Document<'_>) -> DocumentBuf {
    let environment = Environment {
        constants_may_fail: true,
        ..Environment::default()
    };
    validation_report::report(query, document, &environment).unwrap()
}

/// Each case is a query, a document that it does not match, and the details of the report.
fn check(cases: &[(&str, &str, &str)]) {
    for (query, document, expected) in cases {
        let [query, document, expected] = [query, document, expected].map(|text| json::parse(text));
        let [query, document] = [&query, &document].map(|one| one.as_ref().as_document().unwrap());
        let found = report(query, document);
        let found = found.get("details").map(ValueRef::to_value);
        assert_eq!(found, Some(expected), "{query} on {document}");
    }
}

#[test]
fn a_failing_expression_is_reported_with_its_error() {
    check(&[
        (
            r#"{"$expr": {"$concat": ["a", "$n"]}}"#,
            r#"{"n": 1}"#,
            r#"{"operatorName": "$expr", "specifiedAs": {"$expr": {"$concat": ["a", "$n"]}},
                "reason": "failed to evaluate aggregation expression",
                "details": {"code": 16702, "codeName": "Location16702",
                            "errmsg": "$concat only supports strings, not int"}}"#,
        ),
        (
            r#"{"$nor": [{"a": 2}, {"$expr": {"$toInt": "$a"}}]}"#,
            r#"{"a": "x"}"#,
            r#"{"operatorName": "$nor", "clausesSatisfied": [{"index": 1, "details": {
                "operatorName": "$expr", "specifiedAs": {"$expr": {"$toInt": "$a"}},
                "reason": "failed to evaluate aggregation expression",
                "details": {"code": 241, "codeName": "ConversionFailure",
                    "errmsg": "Failed to parse number 'x' in $convert with no onError value"}}}]}"#,
        ),
        (
            r#"{"$or": [{"$expr": {"$add": ["$n", "x"]}}, {"n": 2}]}"#,
            r#"{"n": 3}"#,
            r#"{"operatorName": "$or", "clausesNotSatisfied": [
                {"index": 0, "details": {
                    "operatorName": "$expr", "specifiedAs": {"$expr": {"$add": ["$n", "x"]}},
                    "reason": "failed to evaluate aggregation expression",
                    "details": {"code": 16554, "codeName": "Location16554",
                        "errmsg": "$add only supports numeric or date types, not string"}}},
                {"index": 1, "details": {
                    "operatorName": "$eq", "specifiedAs": {"n": 2},
                    "reason": "comparison failed", "consideredValue": 3}}]}"#,
        ),
    ]);
}

#[test]
fn the_result_of_an_expression_is_reported() {
    check(&[
        (
            r#"{"$expr": {"$subtract": ["$n", 3]}}"#,
            r#"{"n": 3}"#,
            r#"{"operatorName": "$expr", "specifiedAs": {"$expr": {"$subtract": ["$n", 3]}},
                "reason": "expression did not match", "expressionResult": 0}"#,
        ),
        (
            r#"{"$nor": [{"$expr": "$n"}]}"#,
            r#"{"n": {"b": 1}}"#,
            r#"{"operatorName": "$nor", "clausesSatisfied": [{"index": 0, "details": {
                "operatorName": "$expr", "specifiedAs": {"$expr": "$n"},
                "reason": "expression did match", "expressionResult": {"b": 1}}}]}"#,
        ),
        (
            r#"{"$sampleRate": 0}"#,
            "{}",
            r#"{"operatorName": "$sampleRate", "specifiedAs": {"$sampleRate": 0},
                "reason": "expression did not match", "expressionResult": false}"#,
        ),
    ]);
}

fn refused(query: &str, document: &str, reason: &str, rest: &str) {
    let query_read = json::parse(query);
    let query_read = query_read.as_ref().as_document().unwrap();
    let (_, operators) = query_read.first().unwrap();
    let name = operators.as_document().unwrap().first().unwrap().0;
    let expected = format!(
        r#"{{"operatorName": "{name}", "specifiedAs": {query}, "reason": "{reason}"{rest}}}"#
    );
    check(&[(query, document, &expected)]);
}

#[test]
fn array_elements_are_reported_as_considered_values() {
    let compared = "comparison failed";
    let query = r#"{"a": {"$gt": 9}}"#;
    refused(
        query,
        r#"{"a": [1, 2]}"#,
        compared,
        r#", "consideredValues": [1, 2]"#,
    );
    refused(
        query,
        r#"{"a": [1]}"#,
        compared,
        r#", "consideredValue": 1"#,
    );
    refused(
        query,
        r#"{"a": []}"#,
        compared,
        r#", "consideredValues": []"#,
    );
    let query = r#"{"a.b": {"$eq": 9}}"#;
    let document = r#"{"a": [{"b": [1, 2]}, {"b": 3}, {"c": 4}]}"#;
    refused(
        query,
        document,
        compared,
        r#", "consideredValues": [1, 2, 3]"#,
    );
    let many = r#"{"a": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]}"#;
    let shown = r#", "consideredValues": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9], "consideredValuesTruncated": true"#;
    refused(r#"{"a": {"$lt": 0}}"#, many, compared, shown);
    let ten = r#"{"a": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]}"#;
    let shown = r#", "consideredValues": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]"#;
    refused(r#"{"a": {"$lt": 0}}"#, ten, compared, shown);
}

#[test]
fn conditions_on_arrays_report_the_array() {
    let length = "array length was not equal to given size";
    refused(
        r#"{"a": {"$size": 2}}"#,
        r#"{"a": [1]}"#,
        length,
        r#", "consideredValue": [1]"#,
    );
    let all = "array did not contain all specified values";
    refused(
        r#"{"a": {"$all": [1, 3]}}"#,
        r#"{"a": [1, 2]}"#,
        all,
        r#", "consideredValue": [1, 2]"#,
    );
    refused(
        r#"{"a": {"$all": []}}"#,
        r#"{"a": [1]}"#,
        "expression always evaluates to false",
        "",
    );
    let element = "array did not satisfy the child predicate";
    let query = r#"{"a": {"$elemMatch": {"$gt": 9}}}"#;
    refused(
        query,
        r#"{"a": [1, 2]}"#,
        element,
        r#", "consideredValue": [1, 2]"#,
    );
}

#[test]
fn types_of_array_elements_are_reported() {
    let kind = "type did not match";
    let query = r#"{"a": {"$type": "int"}}"#;
    let shown = r#", "consideredValues": ["x", "y"], "consideredType": "string""#;
    refused(query, r#"{"a": ["x", "y"]}"#, kind, shown);
    refused(query, r#"{"a": []}"#, kind, r#", "consideredValues": []"#);
}

#[test]
fn a_wrong_type_is_reported_with_the_expected_types() {
    let refused = |operator: &str, operand: &str, value: &str, rest: &str| {
        let query = format!(r#"{{"a": {{"{operator}": {operand}}}}}"#);
        let expected = format!(
            r#"{{"operatorName": "{operator}", "specifiedAs": {query}, "reason": {rest}}}"#
        );
        check(&[(&query, &format!(r#"{{"a": {value}}}"#), &expected)]);
    };
    refused(
        "$mod",
        "[2, 1]",
        r#""x""#,
        r#""type did not match", "consideredType": "string",
            "expectedTypes": ["decimal", "double", "int", "long"], "consideredValue": "x""#,
    );
    refused(
        "$mod",
        "[2, 1]",
        r#"["x", 2]"#,
        r#""$mod did not evaluate to expected remainder", "consideredValues": ["x", 2]"#,
    );
    refused(
        "$regex",
        r#""x""#,
        "[1, 2]",
        r#""type did not match", "consideredType": "int",
            "expectedTypes": ["regex", "string", "symbol"], "consideredValues": [1, 2]"#,
    );
    refused(
        "$bitsAllSet",
        "3",
        r#""x""#,
        r#""type did not match", "consideredType": "string",
            "expectedTypes": ["binData", "decimal", "double", "int", "long"],
            "consideredValue": "x""#,
    );
    for (operator, operand) in [("$size", "1"), ("$elemMatch", r#"{"$gt": 1}"#)] {
        let expected = r#""type did not match", "consideredType": "int", "expectedType": "array",
            "consideredValue": 3"#;
        refused(operator, operand, "3", expected);
    }
    let region = r#"{"$centerSphere": [[0, 0], 0.01]}"#;
    refused(
        "$geoWithin",
        region,
        "[50, 50]",
        r#""none of the considered geometries were contained within the expression’s geometry",
            "consideredValues": [50, 50]"#,
    );
    for (value, shown) in [
        ("2", r#""consideredValue": 2"#),
        (r#"["x", "y"]"#, r#""consideredValues": ["x", "y"]"#),
    ] {
        let reason = r#""could not find a valid geometry at the given path""#;
        refused("$geoWithin", region, value, &format!("{reason}, {shown}"));
    }
}

#[test]
fn matching_negated_conditions_are_reported() {
    let pattern = r#"{"$regularExpression": {"pattern": "^S", "options": ""}}"#;
    let (query, inner) = (
        format!(r#"{{"a": {{"$not": {pattern}}}}}"#),
        format!(
            r#"{{"operatorName": "$regex", "specifiedAs": {{"a": {pattern}}},
                "reason": "regular expression did match", "consideredValue": "S"}}"#
        ),
    );
    let expected = format!(r#"{{"operatorName": "$not", "details": {inner}}}"#);
    check(&[(&query, r#"{"a": "S"}"#, &expected)]);

    let holds = |path: &str, value: i32| {
        format!(
            r#"{{"operatorName": "$eq", "specifiedAs": {{"{path}": {value}}},
                "reason": "comparison succeeded", "consideredValue": {value}}}"#
        )
    };
    let (one, two) = (holds("a", 1), holds("b", 2));
    let both = format!(r#"[{{"index": 0, "details": {one}}}, {{"index": 1, "details": {two}}}]"#);
    let second = format!(r#"[{{"index": 1, "details": {two}}}]"#);
    let within = |inner: &str, satisfied: &str| {
        format!(
            r#"{{"operatorName": "$nor", "clausesSatisfied": [{{"index": 0, "details":
                {{"operatorName": "{inner}", "clausesSatisfied": {satisfied}}}}}]}}"#
        )
    };
    check(&[
        (
            r#"{"$nor": [{"$and": [{"a": 1}, {"b": 2}]}]}"#,
            r#"{"a": 1, "b": 2}"#,
            &within("$and", &both),
        ),
        (
            r#"{"$nor": [{"a": 1, "b": 2}]}"#,
            r#"{"a": 1, "b": 2}"#,
            &within("$and", &both),
        ),
        (
            r#"{"$nor": [{"$or": [{"a": 5}, {"b": 2}]}]}"#,
            r#"{"a": 1, "b": 2}"#,
            &within("$or", &second),
        ),
        (
            r#"{"$nor": [{"$jsonSchema": {"minimum": 1}}]}"#,
            "{}",
            r#"{"operatorName": "$nor", "clausesSatisfied": [{"index": 0, "details":
                {"operatorName": "$jsonSchema", "reason": "schema matched"}}]}"#,
        ),
        (
            r#"{"a": {"$not": {"$exists": false}}}"#,
            "{}",
            r#"{"operatorName": "$not", "details": {"operatorName": "$exists",
                "specifiedAs": {"a": {"$exists": false}}, "reason": "path does not exist"}}"#,
        ),
    ]);
}

/// Each case is a schema of a field, a value, and the report on the field.
fn check_field(cases: &[(&str, &str, &str)]) {
    for (schema, value, expected) in cases {
        let query = format!(r#"{{"$jsonSchema": {{"properties": {{"a": {schema}}}}}}}"#);
        let expected = format!(
            r#"{{"operatorName": "$jsonSchema", "schemaRulesNotSatisfied": [
                {{"operatorName": "properties", "propertiesNotSatisfied": [
                    {{"propertyName": "a", "details": {expected}}}]}}]}}"#
        );
        check(&[(&query, &format!(r#"{{"a": {value}}}"#), &expected)]);
    }
}

#[test]
fn schema_keywords_are_reported_in_a_fixed_order() {
    let names = |schema: &str, document: &str| {
        let query = json::parse(&format!(r#"{{"$jsonSchema": {schema}}}"#));
        let document = json::parse(document);
        let [query, document] = [&query, &document].map(|one| one.as_ref().as_document().unwrap());
        let found = report(query, document);
        let details = found.get("details").unwrap().as_document().unwrap();
        let rules = details.get("schemaRulesNotSatisfied").unwrap();
        let rules = rules.as_array().unwrap().iter();
        let name = |rule: ValueRef<'_>| {
            let name = rule.as_document().unwrap().get("operatorName");
            name.and_then(ValueRef::as_str).unwrap().to_owned()
        };
        rules.map(name).collect::<Vec<String>>()
    };
    let schema = r#"{"enum": [1], "not": {}, "oneOf": [{"required": ["y"]}],
        "anyOf": [{"required": ["y"]}], "allOf": [{"required": ["y"]}],
        "dependencies": {"x": ["y"]}, "maxProperties": 1, "minProperties": 9, "required": ["y"],
        "patternProperties": {"^x": {"type": "string"}}, "additionalProperties": false,
        "properties": {"a": {"type": "string"}}}"#;
    let expected = [
        "properties",
        "additionalProperties",
        "patternProperties",
        "required",
        "minProperties",
        "maxProperties",
        "dependencies",
        "allOf",
        "anyOf",
        "oneOf",
        "not",
        "enum",
    ];
    assert_eq!(names(schema, r#"{"a": 1, "b": 1, "x": 1}"#), expected);
    check_field(&[(
        r#"{"minimum": 9, "maximum": 3}"#,
        "5",
        r#"[{"operatorName": "maximum", "specifiedAs": {"maximum": 3},
            "reason": "comparison failed", "consideredValue": 5},
            {"operatorName": "minimum", "specifiedAs": {"minimum": 9},
            "reason": "comparison failed", "consideredValue": 5}]"#,
    )]);
}

#[test]
fn array_keywords_are_reported() {
    let kind = |expected: &str, value: &str, found: &str| {
        format!(
            r#"{{"operatorName": "type", "specifiedAs": {{"type": "{expected}"}},
                "reason": "type did not match", "consideredValue": {value},
                "consideredType": "{found}"}}"#
        )
    };
    let (number, string) = (
        kind("number", r#""x""#, "string"),
        kind("string", "1", "int"),
    );
    check_field(&[
        (
            r#"{"uniqueItems": true}"#,
            "[1, 2, 2, 1]",
            r#"[{"operatorName": "uniqueItems", "specifiedAs": {"uniqueItems": true},
                "reason": "found a duplicate item", "consideredValue": [1, 2, 2, 1],
                "duplicatedValue": 2}]"#,
        ),
        (
            r#"{"minItems": 2}"#,
            "[1]",
            r#"[{"operatorName": "minItems", "specifiedAs": {"minItems": 2},
                "reason": "array did not match specified length", "consideredValue": [1],
                "numberOfItems": 1}]"#,
        ),
        (
            r#"{"items": [{"type": "number"}, {}, {"type": "string"}]}"#,
            r#"["x", 0, 1]"#,
            &format!(
                r#"[{{"operatorName": "items", "details": [
                    {{"itemIndex": 0, "details": [{number}]}},
                    {{"itemIndex": 2, "details": [{string}]}}]}}]"#
            ),
        ),
        (
            r#"{"items": {"type": "string", "title": "t", "description": "words"}}"#,
            r#"["x", 1, 1]"#,
            &format!(
                r#"[{{"operatorName": "items", "title": "t", "description": "words",
                    "reason": "At least one item did not match the sub-schema",
                    "itemIndex": 1, "details": [{string}]}}]"#
            ),
        ),
        (
            r#"{"items": [{}], "additionalItems": {"type": "string", "description": "words"}}"#,
            "[0, 1]",
            &format!(
                r#"[{{"operatorName": "additionalItems", "description": "words",
                    "reason": "At least one additional item did not match the sub-schema",
                    "itemIndex": 1, "details": [{string}]}}]"#
            ),
        ),
    ]);
}

/// The report used to name `additionalItems` as well, which has no effect beside a single schema
/// for all items.
#[test]
fn additional_items_beside_one_schema_are_not_reported() {
    check_field(&[(
        r#"{"items": {"minimum": 2}, "additionalItems": false}"#,
        "[1]",
        r#"[{"operatorName": "items", "reason": "At least one item did not match the sub-schema",
            "itemIndex": 0, "details": [{"operatorName": "minimum",
                "specifiedAs": {"minimum": 2}, "reason": "comparison failed",
                "consideredValue": 1}]}]"#,
    )]);
}

#[test]
fn keywords_for_other_types_are_not_reported() {
    check_field(&[
        (
            r#"{"type": "string", "minimum": 9, "enum": [2]}"#,
            "1",
            r#"[{"operatorName": "enum", "specifiedAs": {"enum": [2]},
                "reason": "value was not found in enum", "consideredValue": 1},
                {"operatorName": "type", "specifiedAs": {"type": "string"},
                "reason": "type did not match", "consideredValue": 1, "consideredType": "int"}]"#,
        ),
        (
            r#"{"bsonType": ["int"], "minimum": 9}"#,
            "1.5",
            r#"[{"operatorName": "minimum", "specifiedAs": {"minimum": 9},
                "reason": "comparison failed", "consideredValue": 1.5},
                {"operatorName": "bsonType", "specifiedAs": {"bsonType": ["int"]},
                "reason": "type did not match", "consideredValue": 1.5,
                "consideredType": "double"}]"#,
        ),
    ]);
    check(&[(
        r#"{"$jsonSchema": {"type": "string", "required": ["a"]}}"#,
        "{}",
        r#"{"operatorName": "$jsonSchema",
            "specifiedAs": {"$jsonSchema": {"type": "string", "required": ["a"]}},
            "reason": "expression always evaluates to false"}"#,
    )]);
}

#[test]
fn titles_and_descriptions_are_in_the_report() {
    check(&[(
        r#"{"$jsonSchema": {"patternProperties": {"^S": {"type": "string", "title": "S"}},
            "additionalProperties": {"type": "string", "description": "others"}}}"#,
        r#"{"S": 1, "b": 2}"#,
        r#"{"operatorName": "$jsonSchema", "schemaRulesNotSatisfied": [
            {"operatorName": "additionalProperties", "description": "others",
             "reason": "at least one additional property did not match the subschema",
             "failingProperty": "b", "details": [
                {"operatorName": "type", "specifiedAs": {"type": "string"},
                 "reason": "type did not match", "consideredValue": 2, "consideredType": "int"}]},
            {"operatorName": "patternProperties", "details": [
                {"propertyName": "S", "title": "S", "regexMatched": "^S", "details": [
                    {"operatorName": "type", "specifiedAs": {"type": "string"},
                     "reason": "type did not match", "consideredValue": 1,
                     "consideredType": "int"}]}]}]}"#,
    )]);
}

#[test]
fn long_reports_are_truncated() {
    let long = "x".repeat(7 << 20);
    let query = doc! { "$or": [{ "a": 1 }, { "a": 2 }] };
    let document = doc! { "_id": 7, "a": (long.as_str()) };
    let part = |index: i32| {
        let details = doc! { "operatorName": "$eq", "reason": "comparison failed" };
        Value::from(doc! { "index": index, "details": details })
    };
    let parts: ArrayBuf = (0..2).map(part).collect();
    let details = doc! { "operatorName": "$or", "clausesNotSatisfied": parts };
    let found = report(query.as_document(), document.as_document());
    assert_eq!(
        found,
        doc! { "failingDocumentId": 7, "truncated": true, "details": details }
    );

    let clauses = (0..400_000).map(|_| Value::from(doc! { "a": 1 }));
    let mut query = DocumentBuf::new();
    query.push("$or", clauses.collect::<ArrayBuf>());
    let document = doc! { "_id": 7, "a": 2 };
    let found = report(query.as_document(), document.as_document());
    assert_eq!(
        found,
        doc! { "failingDocumentId": 7, "note": "detailed error was too large" }
    );
}

#[test]
fn deeply_nested_reports_are_left_out() {
    let told = |branches: usize| {
        let within = |query: DocumentBuf, _| doc! { "$or": [query, { "a": 1 }] };
        let query = (0..branches).fold(doc! { "a": 0 }, within);
        report(query.as_document(), doc! { "b": 1 }.as_document())
    };
    assert!(told(62).get("details").is_some());
    let deep = doc! { "reason": "generated error was too deeply nested", "truncated": true };
    assert_eq!(told(63), deep);
}
