//! Which keywords of a `$jsonSchema` a value does not fulfil.

use windrow_document::{Array, ArrayBuf, Document, DocumentBuf, Value, ValueRef, doc};

use super::super::{Regex, Schema};
use super::single;

/// What is said of a keyword about one value.
const REASONS: &[(&str, &str)] = &[
    ("bsonType", "type did not match"),
    ("enum", "value was not found in enum"),
    ("maxItems", "array did not match specified length"),
    ("maxLength", "specified string length was not satisfied"),
    (
        "maxProperties",
        "specified number of properties was not satisfied",
    ),
    ("maximum", "comparison failed"),
    ("minItems", "array did not match specified length"),
    ("minLength", "specified string length was not satisfied"),
    (
        "minProperties",
        "specified number of properties was not satisfied",
    ),
    ("minimum", "comparison failed"),
    (
        "multipleOf",
        "considered value is not a multiple of the specified value",
    ),
    ("not", "child expression matched"),
    ("pattern", "regular expression did not match"),
    ("type", "type did not match"),
    ("uniqueItems", "found a duplicate item"),
];

/// The details of `$jsonSchema`.
pub fn details(schema: Document<'_>, document: Document<'_>) -> DocumentBuf {
    let mut found = doc! { "operatorName": "$jsonSchema" };
    push_annotations(&mut found, schema);
    let rules = rules(schema, ValueRef::Document(document));
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

/// The keywords that are not fulfilled, each with what is wrong.
fn rules(schema: Document<'_>, value: ValueRef<'_>) -> ArrayBuf {
    let failing = schema
        .iter()
        .filter(|(keyword, _)| !is_fulfilled(schema, keyword, value));
    failing
        .map(|(keyword, operand)| Value::from(rule(schema, keyword, operand, value)))
        .collect()
}

/// Whether one keyword of a schema holds. Those that belong together stay together.
fn is_fulfilled(schema: Document<'_>, keyword: &str, value: ValueRef<'_>) -> bool {
    let beside: &[&str] = match keyword {
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
        } else if beside.contains(&name) {
            push_beside(&mut part, name, operand);
        }
    }
    accepts(part.as_document(), value)
}

/// What only says which fields or elements are meant is taken without its rules.
fn push_beside(part: &mut DocumentBuf, name: &str, operand: ValueRef<'_>) {
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

/// Whether a schema accepts a value that need not be a document: it is tried as a field.
fn accepts(schema: Document<'_>, value: ValueRef<'_>) -> bool {
    let wrapped = doc! { "properties": { "value": (schema.to_buf()) } };
    let Ok(schema) = Schema::parse(ValueRef::Document(wrapped.as_document())) else {
        return false;
    };
    let document = single("value", value);
    schema.matches(document.as_document()).unwrap_or(false)
}

fn rule(
    schema: Document<'_>,
    keyword: &str,
    operand: ValueRef<'_>,
    value: ValueRef<'_>,
) -> DocumentBuf {
    let mut found = doc! { "operatorName": keyword };
    match (keyword, operand, value) {
        ("properties", ValueRef::Document(named), ValueRef::Document(document)) => {
            found.push("propertiesNotSatisfied", properties(named, document));
        }
        ("required", ValueRef::Array(names), ValueRef::Document(document)) => {
            found.push("specifiedAs", single(keyword, operand));
            found.push("missingProperties", missing(names, document));
        }
        ("patternProperties", ValueRef::Document(patterns), ValueRef::Document(document)) => {
            found.push("details", by_pattern(patterns, document));
        }
        ("additionalProperties", _, ValueRef::Document(document)) => {
            additional_properties(&mut found, schema, operand, document);
        }
        ("dependencies", ValueRef::Document(rules), ValueRef::Document(document)) => {
            found.push("failingDependencies", dependencies(rules, document));
        }
        ("items", _, ValueRef::Array(list)) => items(&mut found, operand, list),
        ("additionalItems", _, ValueRef::Array(list)) => {
            additional_items(&mut found, schema, operand, list);
        }
        ("allOf" | "anyOf" | "oneOf", ValueRef::Array(schemas), _) => {
            combined(&mut found, keyword, schemas, value);
        }
        _ => plain(&mut found, schema, keyword, operand, value),
    }
    found
}

fn plain(
    found: &mut DocumentBuf,
    schema: Document<'_>,
    keyword: &str,
    operand: ValueRef<'_>,
    value: ValueRef<'_>,
) {
    let known = REASONS.iter().find(|(name, _)| *name == keyword);
    let reason = known.map_or("value was not accepted", |(_, reason)| reason);
    if keyword == "not" {
        found.push("reason", reason);
        return;
    }
    let mut specified = single(keyword, operand);
    let exclusive = match keyword {
        "maximum" => schema
            .get("exclusiveMaximum")
            .map(|is| ("exclusiveMaximum", is)),
        "minimum" => schema
            .get("exclusiveMinimum")
            .map(|is| ("exclusiveMinimum", is)),
        _ => None,
    };
    if let Some((name, is)) = exclusive {
        specified.push(name, is);
    }
    found.push("specifiedAs", specified);
    found.push("reason", reason);
    match (keyword, value) {
        ("minProperties" | "maxProperties", ValueRef::Document(document)) => {
            found.push("numberOfProperties", document.count() as i32);
        }
        _ => found.push("consideredValue", value),
    }
    if matches!(keyword, "bsonType" | "type") {
        found.push("consideredType", value.type_of().name());
    }
}

fn properties(named: Document<'_>, document: Document<'_>) -> ArrayBuf {
    let failing = named.iter().filter_map(|(name, schema)| {
        let (schema, value) = (schema.as_document()?, document.get(name)?);
        let details = rules(schema, value);
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

fn missing(names: Array<'_>, document: Document<'_>) -> ArrayBuf {
    let is_missing =
        |name: &ValueRef<'_>| name.as_str().is_some_and(|name| !document.contains(name));
    names.iter().filter(is_missing).collect()
}

fn by_pattern(patterns: Document<'_>, document: Document<'_>) -> ArrayBuf {
    let mut found = Vec::new();
    for (pattern, schema) in patterns {
        let (Ok(regex), Some(schema)) = (Regex::new(pattern, ""), schema.as_document()) else {
            continue;
        };
        for (name, value) in document {
            let details = rules(schema, value);
            if regex.is_match(name).unwrap_or(false) && !details.as_array().is_empty() {
                found.push(Value::from(doc! {
                    "propertyName": name, "regexMatched": pattern, "details": details,
                }));
            }
        }
    }
    found.into_iter().collect()
}

fn additional_properties(
    found: &mut DocumentBuf,
    schema: Document<'_>,
    operand: ValueRef<'_>,
    document: Document<'_>,
) {
    let is_named = |name: &str| {
        let within = |keyword: &str| schema.get(keyword).and_then(ValueRef::as_document);
        let mut patterns = within("patternProperties").into_iter().flatten();
        within("properties").is_some_and(|named| named.contains(name))
            || patterns.any(|(pattern, _)| {
                let regex = Regex::new(pattern, "");
                regex.is_ok_and(|regex| regex.is_match(name).unwrap_or(false))
            })
    };
    let mut others = document.iter().filter(|(name, _)| !is_named(name));
    let Some(rest) = operand.as_document() else {
        found.push("specifiedAs", single("additionalProperties", operand));
        let names: ArrayBuf = others.map(|(name, _)| ValueRef::String(name)).collect();
        found.push("additionalProperties", names);
        return;
    };
    if let Some((name, value)) = others.find(|(_, value)| !accepts(rest, *value)) {
        let reason = "at least one additional property did not match the subschema";
        found.push("reason", reason);
        found.push("failingProperty", name);
        found.push("details", rules(rest, value));
    }
}

fn dependencies(rules_by_name: Document<'_>, document: Document<'_>) -> ArrayBuf {
    let present = rules_by_name
        .iter()
        .filter(|(name, _)| document.contains(name));
    let failing = present.filter_map(|(name, dependency)| {
        let mut found = doc! { "conditionalProperty": name };
        let (field, list) = match dependency {
            ValueRef::Array(names) => ("missingProperties", missing(names, document)),
            other => {
                let schema = other.as_document()?;
                ("details", rules(schema, ValueRef::Document(document)))
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

fn items(found: &mut DocumentBuf, operand: ValueRef<'_>, list: Array<'_>) {
    let of_place = |place: usize| match operand {
        ValueRef::Array(schemas) => schemas.get(place).and_then(ValueRef::as_document),
        other => other.as_document(),
    };
    let mut places = list.iter().enumerate();
    let failing = places.find_map(|(place, item)| {
        let schema = of_place(place).filter(|schema| !accepts(*schema, item))?;
        Some((place, rules(schema, item)))
    });
    if let Some((place, details)) = failing {
        found.push("reason", "At least one item did not match the sub-schema");
        found.push("itemIndex", place as i32);
        found.push("details", details);
    }
}

fn additional_items(
    found: &mut DocumentBuf,
    schema: Document<'_>,
    operand: ValueRef<'_>,
    list: Array<'_>,
) {
    let listed = schema.get("items").and_then(ValueRef::as_array);
    let listed = listed.map_or(0, |schemas| schemas.count());
    let mut rest = list.iter().enumerate().skip(listed);
    let Some(rules_of_rest) = operand.as_document() else {
        found.push("specifiedAs", single("additionalItems", operand));
        found.push("reason", "found additional items");
        let items: ArrayBuf = rest.map(|(_, item)| item).collect();
        found.push("additionalItems", items);
        return;
    };
    if let Some((place, item)) = rest.find(|(_, item)| !accepts(rules_of_rest, *item)) {
        let reason = "At least one additional item did not match the sub-schema";
        found.push("reason", reason);
        found.push("itemIndex", place as i32);
        found.push("details", rules(rules_of_rest, item));
    }
}

fn combined(found: &mut DocumentBuf, keyword: &str, schemas: Array<'_>, value: ValueRef<'_>) {
    let schemas = || schemas.iter().filter_map(ValueRef::as_document).enumerate();
    let accepting = schemas().filter(|(_, schema)| accepts(*schema, value));
    let accepting: Vec<i32> = accepting.map(|(index, _)| index as i32).collect();
    if keyword == "oneOf" && accepting.len() > 1 {
        found.push("reason", "more than one subschema matched");
        found.push(
            "matchingSchemaIndexes",
            accepting
                .into_iter()
                .map(Value::Int32)
                .collect::<ArrayBuf>(),
        );
        return;
    }
    let failing = schemas().filter(|(index, _)| !accepting.contains(&(*index as i32)));
    let failing = failing.map(|(index, schema)| {
        Value::from(doc! { "index": (index as i32), "details": (rules(schema, value)) })
    });
    found.push("schemasNotSatisfied", failing.collect::<ArrayBuf>());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_keyword_is_told() {
        let check = |schema: DocumentBuf, document: DocumentBuf, expected: DocumentBuf| {
            let parsed = Schema::parse(ValueRef::Document(schema.as_document())).unwrap();
            assert!(!parsed.matches(document.as_document()).unwrap());
            let found = details(schema.as_document(), document.as_document());
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
    fn elements_and_numbers_are_told() {
        let check = |schema: DocumentBuf, value: Value, expected: DocumentBuf| {
            let found = rules(schema.as_document(), value.as_ref());
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
