//! Reports which keywords of a `$jsonSchema` a value does not fulfil.

use windrow_document::{Array, ArrayBuf, Document, DocumentBuf, Value, ValueRef, doc};

use super::super::schema::{is_encrypted, repeated};
use super::super::{Regex, Schema};
use super::keywords::{KEYWORDS, REASONS};
use super::writer::ReportWriter;
use super::{ALWAYS_FALSE, single};

/// Returns the report on `$jsonSchema`.
pub fn details(
    schema: Document<'_>,
    document: Document<'_>,
    writer: &ReportWriter<'_>,
) -> DocumentBuf {
    let mut found = doc! { "operatorName": "$jsonSchema" };
    let types = stated_types(schema);
    if !types.is_empty() && !types.contains(&"object") {
        let specified = single("$jsonSchema", ValueRef::Document(schema));
        writer.show_specified(&mut found, &specified);
        found.push("reason", ALWAYS_FALSE);
        return found;
    }
    push_annotations(&mut found, schema);
    let rules = rules(schema, ValueRef::Document(document), writer);
    found.push("schemaRulesNotSatisfied", rules);
    found
}

fn push_annotations(found: &mut DocumentBuf, schema: Document<'_>) {
    for name in ["title", "description"] {
        if let Some(text) = schema.get(name) {
            found.push(name, text);
        }
    }
}

/// Returns the keywords that the value does not fulfil, each with a report.
fn rules(schema: Document<'_>, value: ValueRef<'_>, writer: &ReportWriter<'_>) -> ArrayBuf {
    if writer.must_stop() {
        return ArrayBuf::new();
    }
    let given = KEYWORDS
        .iter()
        .filter_map(|keyword| Some((*keyword, schema.get(keyword)?)));
    let failing = given.filter(|(keyword, _)| {
        has_effect(schema, keyword) && !is_fulfilled(schema, keyword, value, writer)
    });
    failing
        .take_while(|_| writer.has_room())
        .map(|(keyword, operand)| Value::from(rule(schema, keyword, operand, value, writer)))
        .collect()
}

/// Returns `true` if a keyword can fail. A keyword for other types than the only type that the
/// schema accepts is left out: the report then contains only the wrong type.
fn has_effect(schema: Document<'_>, keyword: &str) -> bool {
    let kinds: &[&str] = match keyword {
        "pattern" | "maxLength" | "minLength" => &["string"],
        "multipleOf" | "maximum" | "minimum" => &["number", "int", "long", "double", "decimal"],
        "minItems" | "maxItems" | "uniqueItems" | "items" | "additionalItems" => &["array"],
        "properties"
        | "additionalProperties"
        | "patternProperties"
        | "required"
        | "minProperties"
        | "maxProperties" => &["object"],
        _ => return true,
    };
    match stated_types(schema).as_slice() {
        [only] => kinds.contains(only),
        _ => true,
    }
}

/// Returns the type names that a schema accepts. Empty if it has no type keyword.
fn stated_types(schema: Document<'_>) -> Vec<&str> {
    if schema.contains("encrypt") {
        return vec!["binData"];
    }
    match schema.get("type").or_else(|| schema.get("bsonType")) {
        Some(ValueRef::String(name)) => vec![name],
        Some(ValueRef::Array(names)) => names.iter().filter_map(ValueRef::as_str).collect(),
        _ => Vec::new(),
    }
}

/// Returns `true` if the value fulfils one keyword of a schema. Keywords that depend on each other
/// are evaluated together.
fn is_fulfilled(
    schema: Document<'_>,
    keyword: &str,
    value: ValueRef<'_>,
    writer: &ReportWriter<'_>,
) -> bool {
    let related: &[&str] = match keyword {
        "maximum" => &["exclusiveMaximum"],
        "minimum" => &["exclusiveMinimum"],
        "additionalItems" => &["items"],
        "additionalProperties" => &["properties", "patternProperties"],
        "exclusiveMaximum" | "exclusiveMinimum" => return true,
        _ => &[],
    };
    let mut part = DocumentBuf::new();
    for (name, operand) in schema.iter() {
        if name == keyword {
            part.push(name, operand);
        } else if related.contains(&name) {
            push_related(&mut part, name, operand);
        }
    }
    accepts(part.as_document(), value, writer)
}

/// Adds a keyword that only selects fields or elements, without the schemas in it.
fn push_related(part: &mut DocumentBuf, name: &str, operand: ValueRef<'_>) {
    match (name, operand) {
        ("properties" | "patternProperties", ValueRef::Document(named)) => {
            let free = named
                .iter()
                .map(|(name, _)| (name, ValueRef::Document(Document::EMPTY)));
            part.push(name, free.collect::<DocumentBuf>());
        }
        ("items", ValueRef::Array(list)) => {
            let free = list.iter().map(|_| ValueRef::Document(Document::EMPTY));
            part.push(name, free.collect::<ArrayBuf>());
        }
        _ => part.push(name, operand),
    }
}

/// Returns `true` if a schema accepts a value. The value need not be a document: it is wrapped in a
/// field.
fn accepts(schema: Document<'_>, value: ValueRef<'_>, writer: &ReportWriter<'_>) -> bool {
    let wrapped = doc! { "properties": { "value": (schema.to_buf()) } };
    let document = single("value", value);
    let schema = Schema::parse(ValueRef::Document(wrapped.as_document()));
    let accepted = schema.and_then(|schema| {
        let matched = schema.matches(document.as_document());
        matched.map_err(|error| *error)
    });
    writer.result(accepted, |_| false)
}

/// Returns `true` if a pattern of `patternProperties` matches a field name.
fn matches_name(pattern: &str, name: &str, writer: &ReportWriter<'_>) -> bool {
    let matched = Regex::new(pattern, "").and_then(|regex| regex.is_match(name));
    writer.result(matched, |_| false)
}

fn rule(
    schema: Document<'_>,
    keyword: &str,
    operand: ValueRef<'_>,
    value: ValueRef<'_>,
    writer: &ReportWriter<'_>,
) -> DocumentBuf {
    let mut found = doc! { "operatorName": keyword };
    match (keyword, operand, value) {
        ("properties", ValueRef::Document(named), ValueRef::Document(document)) => {
            let failing = properties(named, document, writer);
            found.push("propertiesNotSatisfied", failing);
        }
        ("required", ValueRef::Array(names), ValueRef::Document(document)) => {
            writer.show_specified(&mut found, &single(keyword, operand));
            found.push("missingProperties", missing(names, document, writer));
        }
        ("patternProperties", ValueRef::Document(patterns), ValueRef::Document(document)) => {
            found.push("details", by_pattern(patterns, document, writer));
        }
        ("additionalProperties", _, ValueRef::Document(document)) => {
            additional_properties(&mut found, schema, operand, document, writer);
        }
        ("dependencies", ValueRef::Document(rules), ValueRef::Document(document)) => {
            found.push("failingDependencies", dependencies(rules, document, writer));
        }
        ("items", ValueRef::Array(schemas), ValueRef::Array(list)) => {
            found.push("details", listed_items(schemas, list, writer));
        }
        ("items", ValueRef::Document(each), ValueRef::Array(list)) => {
            let reason = "At least one item did not match the sub-schema";
            failing_item(&mut found, each, reason, list.iter().enumerate(), writer);
        }
        ("additionalItems", _, ValueRef::Array(list)) => {
            additional_items(&mut found, schema, operand, list, writer);
        }
        ("allOf" | "anyOf" | "oneOf", ValueRef::Array(schemas), _) => {
            combined(&mut found, keyword, schemas, value, writer);
        }
        ("encrypt", _, _) => found.push("reason", reason_of_encrypt(value)),
        _ => plain(&mut found, schema, keyword, operand, value, writer),
    }
    found
}

/// A report on `encrypt` shows no value: it may be one that the client forgot to encrypt.
fn reason_of_encrypt(value: ValueRef<'_>) -> &'static str {
    if is_encrypted(value) {
        "encrypted value has wrong type"
    } else {
        "value was not encrypted"
    }
}

fn plain(
    found: &mut DocumentBuf,
    schema: Document<'_>,
    keyword: &str,
    operand: ValueRef<'_>,
    value: ValueRef<'_>,
    writer: &ReportWriter<'_>,
) {
    let known = REASONS.iter().find(|(name, _)| *name == keyword);
    let reason = known.map_or("value was not accepted", |(_, reason)| reason);
    if keyword == "not" {
        found.push("reason", reason);
        return;
    }
    let mut specified = single(keyword, operand);
    let exclusive = match keyword {
        "maximum" => Some("exclusiveMaximum"),
        "minimum" => Some("exclusiveMinimum"),
        _ => None,
    };
    if let Some((name, is)) = exclusive.and_then(|name| Some((name, schema.get(name)?))) {
        specified.push(name, is);
    }
    writer.show_specified(found, &specified);
    found.push("reason", reason);
    match (keyword, value) {
        ("minProperties" | "maxProperties", ValueRef::Document(document)) => {
            found.push("numberOfProperties", document.count() as i32);
        }
        _ => writer.show(found, "consideredValue", value),
    }
    match (keyword, value) {
        ("bsonType" | "type", _) => found.push("consideredType", value.type_of().name()),
        ("minItems" | "maxItems", ValueRef::Array(list)) => {
            found.push("numberOfItems", list.count() as i32);
        }
        ("uniqueItems", ValueRef::Array(list)) => {
            if let Some(repeated) = writer.result(repeated(list), |_| None) {
                writer.show(found, "duplicatedValue", repeated);
            }
        }
        _ => {}
    }
}

fn properties(named: Document<'_>, document: Document<'_>, writer: &ReportWriter<'_>) -> ArrayBuf {
    let failing = named.iter().filter_map(|(name, schema)| {
        let (schema, value) = (schema.as_document()?, document.get(name)?);
        let details = rules(schema, value, writer);
        if details.as_array().is_empty() {
            return None;
        }
        let mut found = doc! { "propertyName": name };
        push_annotations(&mut found, schema);
        found.push("details", details);
        Some(Value::from(found))
    });
    failing.collect()
}

fn missing(names: Array<'_>, document: Document<'_>, writer: &ReportWriter<'_>) -> ArrayBuf {
    let is_missing =
        |name: &ValueRef<'_>| name.as_str().is_some_and(|name| !document.contains(name));
    writer.list(names.iter().filter(is_missing).map(ValueRef::to_value))
}

fn by_pattern(
    patterns: Document<'_>,
    document: Document<'_>,
    writer: &ReportWriter<'_>,
) -> ArrayBuf {
    let mut failing = Vec::new();
    for (pattern, schema) in patterns {
        let Some(schema) = schema.as_document() else {
            continue;
        };
        let named = document
            .iter()
            .filter(|(name, _)| matches_name(pattern, name, writer));
        for (name, value) in named {
            let details = rules(schema, value, writer);
            if details.as_array().is_empty() {
                continue;
            }
            let mut found = doc! { "propertyName": name };
            push_annotations(&mut found, schema);
            found.push("regexMatched", pattern);
            found.push("details", details);
            failing.push(Value::from(found));
        }
    }
    failing.into_iter().collect()
}

fn additional_properties(
    found: &mut DocumentBuf,
    schema: Document<'_>,
    operand: ValueRef<'_>,
    document: Document<'_>,
    writer: &ReportWriter<'_>,
) {
    let is_named = |name: &str| {
        let within = |keyword: &str| schema.get(keyword).and_then(ValueRef::as_document);
        let mut patterns = within("patternProperties").into_iter().flatten();
        within("properties").is_some_and(|named| named.contains(name))
            || patterns.any(|(pattern, _)| matches_name(pattern, name, writer))
    };
    let mut others = document.iter().filter(|(name, _)| !is_named(name));
    let Some(rest) = operand.as_document() else {
        writer.show_specified(found, &single("additionalProperties", operand));
        let names: ArrayBuf = others.map(|(name, _)| ValueRef::String(name)).collect();
        let names = ValueRef::Array(names.as_array());
        writer.show(found, "additionalProperties", names);
        return;
    };
    if let Some((name, value)) = others.find(|(_, value)| !accepts(rest, *value, writer)) {
        push_annotations(found, rest);
        let reason = "at least one additional property did not match the subschema";
        found.push("reason", reason);
        found.push("failingProperty", name);
        found.push("details", rules(rest, value, writer));
    }
}

fn dependencies(
    rules_by_name: Document<'_>,
    document: Document<'_>,
    writer: &ReportWriter<'_>,
) -> ArrayBuf {
    let present = rules_by_name
        .iter()
        .filter(|(name, _)| document.contains(name));
    let failing = present.filter_map(|(name, dependency)| {
        let mut found = doc! { "conditionalProperty": name };
        let (field, list) = match dependency {
            ValueRef::Array(names) => ("missingProperties", missing(names, document, writer)),
            other => {
                let rules = rules(other.as_document()?, ValueRef::Document(document), writer);
                ("details", rules)
            }
        };
        if list.as_array().is_empty() {
            return None;
        }
        found.push(field, list);
        Some(Value::from(found))
    });
    failing.collect()
}

/// Returns the reports on elements of which each has a schema of its own.
fn listed_items(schemas: Array<'_>, list: Array<'_>, writer: &ReportWriter<'_>) -> ArrayBuf {
    let pairs = schemas.iter().zip(list.iter()).enumerate();
    let failing = pairs.filter_map(|(index, (schema, item))| {
        let details = rules(schema.as_document()?, item, writer);
        let fails = !details.as_array().is_empty();
        fails.then(|| Value::from(doc! { "itemIndex": (index as i32), "details": details }))
    });
    failing.collect()
}

/// Appends the report on the first element that the common schema does not accept.
fn failing_item<'v>(
    found: &mut DocumentBuf,
    schema: Document<'_>,
    reason: &str,
    mut items: impl Iterator<Item = (usize, ValueRef<'v>)>,
    writer: &ReportWriter<'_>,
) {
    if let Some((index, item)) = items.find(|(_, item)| !accepts(schema, *item, writer)) {
        push_annotations(found, schema);
        found.push("reason", reason);
        found.push("itemIndex", index as i32);
        found.push("details", rules(schema, item, writer));
    }
}

fn additional_items(
    found: &mut DocumentBuf,
    schema: Document<'_>,
    operand: ValueRef<'_>,
    list: Array<'_>,
    writer: &ReportWriter<'_>,
) {
    let listed = schema.get("items").and_then(ValueRef::as_array);
    let listed = listed.map_or(0, |schemas| schemas.count());
    let rest = list.iter().enumerate().skip(listed);
    if let Some(each) = operand.as_document() {
        let reason = "At least one additional item did not match the sub-schema";
        failing_item(found, each, reason, rest, writer);
        return;
    }
    writer.show_specified(found, &single("additionalItems", operand));
    found.push("reason", "found additional items");
    let items: ArrayBuf = rest.map(|(_, item)| item).collect();
    let items = ValueRef::Array(items.as_array());
    writer.show(found, "additionalItems", items);
}

fn combined(
    found: &mut DocumentBuf,
    keyword: &str,
    schemas: Array<'_>,
    value: ValueRef<'_>,
    writer: &ReportWriter<'_>,
) {
    let schemas = || schemas.iter().filter_map(ValueRef::as_document).enumerate();
    let accepting = schemas().take_while(|_| !writer.must_stop());
    let accepting = accepting.filter(|(_, schema)| accepts(*schema, value, writer));
    let accepting: Vec<i32> = accepting.map(|(index, _)| index as i32).collect();
    if keyword == "oneOf" && accepting.len() > 1 {
        found.push("reason", "more than one subschema matched");
        let indexes = accepting.into_iter().map(Value::Int32);
        found.push("matchingSchemaIndexes", writer.list(indexes));
        return;
    }
    let failing = schemas().filter(|(index, _)| !accepting.contains(&(*index as i32)));
    let failing = failing.map(|(index, schema)| {
        let details = rules(schema, value, writer);
        Value::from(doc! { "index": (index as i32), "details": details })
    });
    found.push("schemasNotSatisfied", failing.collect::<ArrayBuf>());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::Environment;

    #[test]
    fn every_keyword_is_reported() {
        let check = |schema: DocumentBuf, document: DocumentBuf, expected: DocumentBuf| {
            let parsed = Schema::parse(ValueRef::Document(schema.as_document())).unwrap();
            assert!(!parsed.matches(document.as_document()).unwrap());
            let environment = Environment::default();
            let writer = ReportWriter::new(&environment, false);
            let found = details(schema.as_document(), document.as_document(), &writer);
            let rule = found.get("schemaRulesNotSatisfied").unwrap();
            let rule = rule.as_array().unwrap().get(0).unwrap();
            assert_eq!(rule.as_document().unwrap().to_buf(), expected, "{schema}");
        };
        check(
            doc! { "required": ["a", "b"] },
            doc! { "a": 1 },
            doc! {
                "operatorName": "required", "specifiedAs": { "required": ["a", "b"] },
                "missingProperties": ["b"],
            },
        );
        check(
            doc! { "properties": { "a": { "bsonType": "int", "description": "a number" } } },
            doc! { "a": "x" },
            doc! {
                "operatorName": "properties",
                "propertiesNotSatisfied": [{
                    "propertyName": "a", "description": "a number",
                    "details": [{
                        "operatorName": "bsonType", "specifiedAs": { "bsonType": "int" },
                        "reason": "type did not match", "consideredValue": "x",
                        "consideredType": "string",
                    }],
                }],
            },
        );
        check(
            doc! { "additionalProperties": false, "properties": { "_id": {} } },
            doc! { "_id": 1, "x": 1 },
            doc! {
                "operatorName": "additionalProperties",
                "specifiedAs": { "additionalProperties": false }, "additionalProperties": ["x"],
            },
        );
        check(
            doc! { "minProperties": 2 },
            doc! { "a": 1 },
            doc! {
                "operatorName": "minProperties", "specifiedAs": { "minProperties": 2 },
                "reason": "specified number of properties was not satisfied",
                "numberOfProperties": 1,
            },
        );
        check(
            doc! { "dependencies": { "a": ["b"] } },
            doc! { "a": 1 },
            doc! {
                "operatorName": "dependencies",
                "failingDependencies": [{ "conditionalProperty": "a", "missingProperties": ["b"] }],
            },
        );
        check(
            doc! { "anyOf": [{ "required": ["a"] }] },
            doc! { "b": 1 },
            doc! {
                "operatorName": "anyOf",
                "schemasNotSatisfied": [{ "index": 0, "details": [{
                    "operatorName": "required", "specifiedAs": { "required": ["a"] },
                    "missingProperties": ["a"],
                }] }],
            },
        );
        check(
            doc! { "not": {} },
            doc! { "b": 1 },
            doc! { "operatorName": "not", "reason": "child expression matched" },
        );
    }

    #[test]
    fn array_elements_and_numbers_are_reported() {
        let check = |schema: DocumentBuf, value: Value, expected: DocumentBuf| {
            let environment = Environment::default();
            let writer = ReportWriter::new(&environment, false);
            let found = rules(schema.as_document(), value.as_ref(), &writer);
            let first = found.as_array().get(0).unwrap().as_document().unwrap();
            assert_eq!(first.to_buf(), expected, "{schema}");
        };
        let list =
            |numbers: &[i32]| Value::Array(numbers.iter().copied().map(Value::Int32).collect());
        check(
            doc! { "items": { "maximum": 2 } },
            list(&[1, 3]),
            doc! {
                "operatorName": "items", "reason": "At least one item did not match the sub-schema",
                "itemIndex": 1,
                "details": [{
                    "operatorName": "maximum", "specifiedAs": { "maximum": 2 },
                    "reason": "comparison failed", "consideredValue": 3,
                }],
            },
        );
        check(
            doc! { "items": [{}], "additionalItems": false },
            list(&[1, 3]),
            doc! {
                "operatorName": "additionalItems", "specifiedAs": { "additionalItems": false },
                "reason": "found additional items", "additionalItems": [3],
            },
        );
        check(
            doc! { "minimum": 2, "exclusiveMinimum": true },
            Value::Int32(2),
            doc! {
                "operatorName": "minimum", "specifiedAs": { "minimum": 2, "exclusiveMinimum": true },
                "reason": "comparison failed", "consideredValue": 2,
            },
        );
        check(
            doc! { "oneOf": [{ "bsonType": "int" }, { "minimum": 1 }] },
            Value::Int32(2),
            doc! {
                "operatorName": "oneOf", "reason": "more than one subschema matched",
                "matchingSchemaIndexes": [0, 1],
            },
        );
    }
}
