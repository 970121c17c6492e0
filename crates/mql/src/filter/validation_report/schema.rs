//! Reports which keywords of a `$jsonSchema` a value does not fulfil.

use windrow_document::{Array, ArrayBuf, Document, DocumentBuf, Value, ValueRef, doc};

use super::super::Schema;
use super::super::schema::{Dependency, Items, Rules, is_encrypted, repeated};
use super::keywords::{KEYWORDS, REASONS};
use super::writer::ReportWriter;
use super::{ALWAYS_FALSE, single};

/// A schema as written and as parsed.
#[derive(Clone, Copy)]
struct ParsedSchema<'a> {
    source: Document<'a>,
    rules: &'a Rules,
}

impl<'a> ParsedSchema<'a> {
    /// Returns the operand of a keyword. If the keyword is repeated, the last one counts, as in the
    /// parsed rules.
    fn operand(self, keyword: &str) -> Option<ValueRef<'a>> {
        let same = self.source.iter().filter(|(name, _)| *name == keyword);
        same.last().map(|(_, operand)| operand)
    }

    fn from_list(schemas: Array<'a>, parsed: &'a [Rules]) -> impl Iterator<Item = Self> {
        let pairs = schemas.iter().zip(parsed);
        pairs.filter_map(|(source, rules)| {
            let source = source.as_document()?;
            Some(ParsedSchema { source, rules })
        })
    }
}

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
    let parsed = Schema::parse(ValueRef::Document(schema));
    if let Some(parsed) = writer.result(parsed.map(Some), |_| None) {
        let schema = ParsedSchema {
            source: schema,
            rules: parsed.rules(),
        };
        let rules = unsatisfied_rules(schema, ValueRef::Document(document), writer);
        found.push("schemaRulesNotSatisfied", rules);
    }
    found
}

fn push_annotations(found: &mut DocumentBuf, schema: Document<'_>) {
    for name in ["title", "description"] {
        if let Some(text) = schema.get(name) {
            found.push(name, text);
        }
    }
}

/// Returns the result of [`unsatisfied_rules`], or `None` if the value fulfils all keywords.
fn violations(
    schema: ParsedSchema<'_>,
    value: ValueRef<'_>,
    writer: &ReportWriter<'_>,
) -> Option<ArrayBuf> {
    let details = unsatisfied_rules(schema, value, writer);
    (!details.as_array().is_empty()).then_some(details)
}

/// Returns the keywords that the value does not fulfil, each with a report.
fn unsatisfied_rules(
    schema: ParsedSchema<'_>,
    value: ValueRef<'_>,
    writer: &ReportWriter<'_>,
) -> ArrayBuf {
    if writer.must_stop() {
        return ArrayBuf::new();
    }
    let given = KEYWORDS
        .iter()
        .filter_map(|keyword| Some((*keyword, schema.operand(keyword)?)));
    let failing = given.filter(|(keyword, _)| {
        has_effect(schema.source, keyword) && !is_fulfilled(schema.rules, keyword, value, writer)
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

fn is_fulfilled(
    rules: &Rules,
    keyword: &str,
    value: ValueRef<'_>,
    writer: &ReportWriter<'_>,
) -> bool {
    let accepted = rules.accept_keyword(keyword, value);
    writer.result(accepted.map_err(|error| *error), |_| false)
}

/// Returns `true` if the value fulfils all keywords of a schema.
fn accepts(rules: &Rules, value: ValueRef<'_>, writer: &ReportWriter<'_>) -> bool {
    let accepted = rules.accept(value);
    writer.result(accepted.map_err(|error| *error), |_| false)
}

fn rule(
    schema: ParsedSchema<'_>,
    keyword: &str,
    operand: ValueRef<'_>,
    value: ValueRef<'_>,
    writer: &ReportWriter<'_>,
) -> DocumentBuf {
    let mut found = doc! { "operatorName": keyword };
    let rules = schema.rules;
    match (keyword, operand, value) {
        ("properties", ValueRef::Document(named), ValueRef::Document(document)) => {
            let failing = properties(named, rules, document, writer);
            found.push("propertiesNotSatisfied", failing);
        }
        ("required", ValueRef::Array(names), ValueRef::Document(document)) => {
            writer.show_specified(&mut found, &single(keyword, operand));
            found.push("missingProperties", missing(names, document, writer));
        }
        ("patternProperties", ValueRef::Document(patterns), ValueRef::Document(document)) => {
            found.push("details", by_pattern(patterns, rules, document, writer));
        }
        ("additionalProperties", _, ValueRef::Document(document)) => {
            additional_properties(&mut found, rules, operand, document, writer);
        }
        ("dependencies", ValueRef::Document(by_name), ValueRef::Document(document)) => {
            let failing = dependencies(by_name, rules, document, writer);
            found.push("failingDependencies", failing);
        }
        ("items", _, ValueRef::Array(list)) => items(&mut found, rules, operand, list, writer),
        ("additionalItems", _, ValueRef::Array(list)) => {
            additional_items(&mut found, rules, operand, list, writer);
        }
        ("allOf" | "anyOf" | "oneOf", ValueRef::Array(schemas), _) => {
            combined(&mut found, keyword, schemas, rules, value, writer);
        }
        ("encrypt", _, _) => found.push("reason", reason_of_encrypt(value)),
        _ => plain(&mut found, schema.source, keyword, operand, value, writer),
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

fn properties(
    named: Document<'_>,
    rules: &Rules,
    document: Document<'_>,
    writer: &ReportWriter<'_>,
) -> ArrayBuf {
    let pairs = named.iter().zip(&rules.object.properties);
    let failing = pairs.filter_map(|((name, source), (_, rules))| {
        let (source, value) = (source.as_document()?, document.get(name)?);
        let schema = ParsedSchema { source, rules };
        let details = violations(schema, value, writer)?;
        let mut found = doc! { "propertyName": name };
        push_annotations(&mut found, source);
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
    rules: &Rules,
    document: Document<'_>,
    writer: &ReportWriter<'_>,
) -> ArrayBuf {
    let mut failing = Vec::new();
    for ((pattern, source), (regex, rules)) in patterns.iter().zip(&rules.object.patterns) {
        let Some(source) = source.as_document() else {
            continue;
        };
        let schema = ParsedSchema { source, rules };
        let named = document
            .iter()
            .filter(|(name, _)| writer.result(regex.is_match(name), |_| false));
        for (name, value) in named {
            let Some(details) = violations(schema, value, writer) else {
                continue;
            };
            let mut found = doc! { "propertyName": name };
            push_annotations(&mut found, source);
            found.push("regexMatched", pattern);
            found.push("details", details);
            failing.push(Value::from(found));
        }
    }
    failing.into_iter().collect()
}

fn additional_properties(
    found: &mut DocumentBuf,
    rules: &Rules,
    operand: ValueRef<'_>,
    document: Document<'_>,
    writer: &ReportWriter<'_>,
) {
    let is_covered = |name: &str| {
        let covered = rules.object.is_covered(name).map_err(|error| *error);
        writer.result(covered, |_| false)
    };
    let mut others = document.iter().filter(|(name, _)| !is_covered(name));
    let (Some(source), Some(rules)) = (operand.as_document(), rules.object.additional.rules())
    else {
        writer.show_specified(found, &single("additionalProperties", operand));
        let names: ArrayBuf = others.map(|(name, _)| ValueRef::String(name)).collect();
        let names = ValueRef::Array(names.as_array());
        writer.show(found, "additionalProperties", names);
        return;
    };
    if let Some((name, value)) = others.find(|(_, value)| !accepts(rules, *value, writer)) {
        push_annotations(found, source);
        let reason = "at least one additional property did not match the subschema";
        found.push("reason", reason);
        found.push("failingProperty", name);
        let schema = ParsedSchema { source, rules };
        found.push("details", unsatisfied_rules(schema, value, writer));
    }
}

fn dependencies(
    by_name: Document<'_>,
    rules: &Rules,
    document: Document<'_>,
    writer: &ReportWriter<'_>,
) -> ArrayBuf {
    let pairs = by_name.iter().zip(&rules.object.dependencies);
    let present = pairs.filter(|((name, _), _)| document.contains(name));
    let failing = present.filter_map(|((name, operand), (_, dependency))| {
        let (field, list) = match (operand, dependency) {
            (ValueRef::Array(names), _) => ("missingProperties", missing(names, document, writer)),
            (ValueRef::Document(source), Dependency::Rules(rules)) => {
                let schema = ParsedSchema { source, rules };
                let value = ValueRef::Document(document);
                ("details", unsatisfied_rules(schema, value, writer))
            }
            _ => return None,
        };
        if list.as_array().is_empty() {
            return None;
        }
        let mut found = doc! { "conditionalProperty": name };
        found.push(field, list);
        Some(Value::from(found))
    });
    failing.collect()
}

fn items(
    found: &mut DocumentBuf,
    rules: &Rules,
    operand: ValueRef<'_>,
    list: Array<'_>,
    writer: &ReportWriter<'_>,
) {
    match (operand, &rules.items) {
        (ValueRef::Array(schemas), Some(Items::List { first, .. })) => {
            let schemas = ParsedSchema::from_list(schemas, first);
            found.push("details", listed_items(schemas, list, writer));
        }
        (ValueRef::Document(source), Some(Items::All(rules))) => {
            let schema = ParsedSchema { source, rules };
            let reason = "At least one item did not match the sub-schema";
            failing_item(found, schema, reason, list.iter().enumerate(), writer);
        }
        _ => {}
    }
}

/// Returns the reports on elements of which each has a schema of its own.
fn listed_items<'a>(
    schemas: impl Iterator<Item = ParsedSchema<'a>>,
    list: Array<'_>,
    writer: &ReportWriter<'_>,
) -> ArrayBuf {
    let pairs = schemas.zip(list.iter()).enumerate();
    let failing = pairs.filter_map(|(index, (schema, item))| {
        let details = violations(schema, item, writer)?;
        Some(Value::from(
            doc! { "itemIndex": (index as i32), "details": details },
        ))
    });
    failing.collect()
}

/// Appends the report on the first element that the common schema does not accept.
fn failing_item<'v>(
    found: &mut DocumentBuf,
    schema: ParsedSchema<'_>,
    reason: &str,
    mut items: impl Iterator<Item = (usize, ValueRef<'v>)>,
    writer: &ReportWriter<'_>,
) {
    if let Some((index, item)) = items.find(|(_, item)| !accepts(schema.rules, *item, writer)) {
        push_annotations(found, schema.source);
        found.push("reason", reason);
        found.push("itemIndex", index as i32);
        found.push("details", unsatisfied_rules(schema, item, writer));
    }
}

fn additional_items(
    found: &mut DocumentBuf,
    rules: &Rules,
    operand: ValueRef<'_>,
    list: Array<'_>,
    writer: &ReportWriter<'_>,
) {
    let Some(Items::List { first, additional }) = &rules.items else {
        return;
    };
    let rest = list.iter().enumerate().skip(first.len());
    if let (Some(source), Some(rules)) = (operand.as_document(), additional.rules()) {
        let schema = ParsedSchema { source, rules };
        let reason = "At least one additional item did not match the sub-schema";
        failing_item(found, schema, reason, rest, writer);
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
    rules: &Rules,
    value: ValueRef<'_>,
    writer: &ReportWriter<'_>,
) {
    let parsed = match keyword {
        "allOf" => &rules.all_of,
        "anyOf" => &rules.any_of,
        _ => &rules.one_of,
    };
    let schemas = || ParsedSchema::from_list(schemas, parsed).enumerate();
    let accepting = schemas().take_while(|_| !writer.must_stop());
    let accepting = accepting.filter(|(_, schema)| accepts(schema.rules, value, writer));
    let accepting: Vec<i32> = accepting.map(|(index, _)| index as i32).collect();
    if keyword == "oneOf" && accepting.len() > 1 {
        found.push("reason", "more than one subschema matched");
        let indexes = accepting.into_iter().map(Value::Int32);
        found.push("matchingSchemaIndexes", writer.list(indexes));
        return;
    }
    let failing = schemas().filter(|(index, _)| !accepting.contains(&(*index as i32)));
    let failing = failing.map(|(index, schema)| {
        let details = unsatisfied_rules(schema, value, writer);
        Value::from(doc! { "index": (index as i32), "details": details })
    });
    found.push("schemasNotSatisfied", failing.collect::<ArrayBuf>());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::Environment;

    /// `expected`: the report on the first keyword that the document does not fulfil.
    fn check(schema: DocumentBuf, document: DocumentBuf, expected: DocumentBuf) {
        let parsed = Schema::parse(ValueRef::Document(schema.as_document())).unwrap();
        assert!(!parsed.matches(document.as_document()).unwrap());
        let environment = Environment::default();
        let writer = ReportWriter::new(&environment, false);
        let found = details(schema.as_document(), document.as_document(), &writer);
        let rule = found.get("schemaRulesNotSatisfied").unwrap();
        let rule = rule.as_array().unwrap().get(0).unwrap();
        assert_eq!(rule.as_document().unwrap().to_buf(), expected, "{schema}");
    }

    #[test]
    fn keywords_of_objects_are_reported() {
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
    }

    #[test]
    fn combinations_of_schemas_are_reported() {
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
            let source = schema.as_document();
            let parsed = Schema::parse(ValueRef::Document(source)).unwrap();
            let rules = parsed.rules();
            let found = unsatisfied_rules(ParsedSchema { source, rules }, value.as_ref(), &writer);
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
