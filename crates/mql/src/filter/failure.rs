//! Why a document does not match a query document: the `details` of error 121.
//!
//! Source of the shapes: MongoDB's manual, "Schema Validation", the output of failed writes. The
//! query document is walked as it was written, and its parts are tried one by one: this is done for
//! a document that has failed already, so that it need not be fast.

mod schema;

use windrow_document::{Array, ArrayBuf, Document, DocumentBuf, Value, ValueRef, doc};

use super::Filter;

/// Values that are shown where a path leads to several.
const VALUES_MAX: usize = 10;

/// Operators that join query documents.
const JOINS: &[&str] = &["$and", "$or", "$nor"];

/// What is said of an operator whose condition does not hold, and of one that holds under a `$not`.
const REASONS: &[(&str, &str, &str)] = &[
    (
        "$all",
        "array did not contain all specified values",
        "array did contain all specified values",
    ),
    ("$bitsAllClear", NOT_BITS, BITS),
    ("$bitsAllSet", NOT_BITS, BITS),
    ("$bitsAnyClear", NOT_BITS, BITS),
    ("$bitsAnySet", NOT_BITS, BITS),
    (
        "$elemMatch",
        "array did not satisfy the child predicate",
        "array did satisfy the child predicate",
    ),
    ("$exists", "path does not exist", "path does exist"),
    (
        "$in",
        "no matching value found in array",
        "matching value found in array",
    ),
    (
        "$mod",
        "$mod did not evaluate to expected remainder",
        "$mod did evaluate to expected remainder",
    ),
    (
        "$nin",
        "matching value found in array",
        "no matching value found in array",
    ),
    ("$ne", "comparison succeeded", "comparison failed"),
    (
        "$regex",
        "regular expression did not match",
        "regular expression did match",
    ),
    (
        "$size",
        "array length was not equal to given size",
        "array length was equal to given size",
    ),
    ("$type", "type did not match", "type did match"),
];
const NOT_BITS: &str = "bitwise operator failed to match";
const BITS: &str = "bitwise operator matched successfully";
const NOT_COMPARED: &str = "comparison failed";
const COMPARED: &str = "comparison succeeded";

/// Why `document` does not match `query`. Empty where it matches.
pub fn details(query: Document<'_>, document: Document<'_>) -> DocumentBuf {
    let clauses = clauses(query);
    match clauses.as_slice() {
        [(name, operand)] => clause(name, operand.as_ref(), document, false),
        many => {
            let failing = many
                .iter()
                .enumerate()
                .filter_map(|(index, (name, operand))| {
                    let single = single(name, operand.as_ref());
                    let fails = !holds(single.as_document(), document);
                    fails.then(|| indexed(index, clause(name, operand.as_ref(), document, false)))
                });
            let failing: ArrayBuf = failing.collect();
            match failing.as_array().is_empty() {
                true => DocumentBuf::new(),
                false => doc! { "operatorName": "$and", "clausesNotSatisfied": failing },
            }
        }
    }
}

/// The conditions of a query document, one operator each.
fn clauses(query: Document<'_>) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    for (name, operand) in query {
        match operand {
            ValueRef::Document(operators) if !name.starts_with('$') && is_operators(operators) => {
                for (operator, value) in operators {
                    if operator == "$options" {
                        continue;
                    }
                    let mut one = single(operator, value);
                    if let (true, Some(options)) = (operator == "$regex", operators.get("$options"))
                    {
                        one.push("$options", options);
                    }
                    found.push((name.to_owned(), Value::Document(one)));
                }
            }
            _ => found.push((name.to_owned(), operand.to_value())),
        }
    }
    found
}

fn is_operators(document: Document<'_>) -> bool {
    document
        .first()
        .is_some_and(|(name, _)| name.starts_with('$'))
}

fn single(name: &str, value: ValueRef<'_>) -> DocumentBuf {
    let mut one = DocumentBuf::new();
    one.push(name, value);
    one
}

fn indexed(index: usize, details: DocumentBuf) -> Value {
    doc! { "index": (index as i32), "details": details }.into()
}

/// Whether a part of a validator, which was parsed as a whole before, holds.
fn holds(query: Document<'_>, document: Document<'_>) -> bool {
    let matches = Filter::parse(query).and_then(|filter| filter.matches(document));
    matches.unwrap_or(false)
}

/// Why one clause fails; `negated`: why it holds where it should not.
fn clause(name: &str, operand: ValueRef<'_>, document: Document<'_>, negated: bool) -> DocumentBuf {
    match (name, operand) {
        ("$jsonSchema", ValueRef::Document(rules)) => schema::details(rules, document),
        ("$expr", _) => doc! {
            "operatorName": "$expr", "specifiedAs": (single(name, operand)),
            "reason": (if negated { "expression did match" } else { "expression did not match" }),
            "expressionResult": negated,
        },
        (join, ValueRef::Array(list)) if JOINS.contains(&join) => joined(join, list, document),
        _ if name.starts_with('$') => {
            doc! { "operatorName": name, "specifiedAs": (single(name, operand)) }
        }
        _ => on_path(name, operand, document, negated),
    }
}

fn joined(name: &str, list: Array<'_>, document: Document<'_>) -> DocumentBuf {
    let parts = list.iter().filter_map(ValueRef::as_document).enumerate();
    let is_nor = name == "$nor";
    let concerned = parts.filter(|(_, part)| holds(*part, document) == is_nor);
    let described = concerned.map(|(index, part)| {
        let details = match is_nor {
            true => satisfied(part, document),
            false => details(part, document),
        };
        indexed(index, details)
    });
    let described: ArrayBuf = described.collect();
    let mut found = doc! { "operatorName": name };
    let field = if is_nor {
        "clausesSatisfied"
    } else {
        "clausesNotSatisfied"
    };
    found.push(field, described);
    found
}

/// Why a query document holds that should not.
fn satisfied(query: Document<'_>, document: Document<'_>) -> DocumentBuf {
    let clauses = clauses(query);
    match clauses.as_slice() {
        [(name, operand)] => clause(name, operand.as_ref(), document, true),
        many => {
            let all = many.iter().enumerate();
            let all = all.map(|(index, (name, operand))| {
                indexed(index, clause(name, operand.as_ref(), document, true))
            });
            doc! { "operatorName": "$and", "clausesSatisfied": (all.collect::<ArrayBuf>()) }
        }
    }
}

/// A condition on a field: an operator with its operand, or a value that stands for `$eq`.
fn on_path(
    path: &str,
    operand: ValueRef<'_>,
    document: Document<'_>,
    negated: bool,
) -> DocumentBuf {
    let operator = match operand {
        ValueRef::Document(operators) if is_operators(operators) => operators.first(),
        ValueRef::Regex { .. } => Some(("$regex", operand)),
        _ => Some(("$eq", operand)),
    };
    let Some((name, value)) = operator else {
        return DocumentBuf::new();
    };
    if let ("$not", ValueRef::Document(inner)) = (name, value) {
        let inner = single(path, ValueRef::Document(inner));
        let details = match negated {
            true => details(inner.as_document(), document),
            false => satisfied(inner.as_document(), document),
        };
        return doc! { "operatorName": "$not", "details": details };
    }
    let mut found = doc! { "operatorName": name, "specifiedAs": (single(path, operand)) };
    let values = values(path, document);
    let expects_nothing = name == "$exists" && !value.is_truthy();
    if values.is_empty() && !(negated || expects_nothing || name == "$exists") {
        found.push("reason", "field was missing");
        return found;
    }
    found.push("reason", reason(name, negated || expects_nothing));
    if name == "$exists" {
        return found;
    }
    push_values(&mut found, &values);
    if name == "$type" {
        push_types(&mut found, &values);
    }
    found
}

fn reason(operator: &str, negated: bool) -> &'static str {
    let known = REASONS.iter().find(|(name, ..)| *name == operator);
    let (fails, holds) = known.map_or((NOT_COMPARED, COMPARED), |(_, fails, holds)| (fails, holds));
    if negated { holds } else { fails }
}

fn push_values(found: &mut DocumentBuf, values: &[ValueRef<'_>]) {
    match values {
        [] => {}
        [one] => found.push("consideredValue", *one),
        many => {
            let shown: ArrayBuf = many.iter().take(VALUES_MAX).copied().collect();
            found.push("consideredValues", shown);
        }
    }
}

fn push_types(found: &mut DocumentBuf, values: &[ValueRef<'_>]) {
    let mut names: Vec<&str> = values.iter().map(|value| value.type_of().name()).collect();
    names.sort_unstable();
    names.dedup();
    match names.as_slice() {
        [] => {}
        [one] => found.push("consideredType", *one),
        many => found.push(
            "consideredTypes",
            many.iter()
                .copied()
                .map(ValueRef::String)
                .collect::<ArrayBuf>(),
        ),
    }
}

/// The values that a path leads to, through arrays.
fn values<'a>(path: &str, document: Document<'a>) -> Vec<ValueRef<'a>> {
    let mut found = vec![ValueRef::Document(document)];
    for name in path.split('.') {
        let mut next = Vec::new();
        for value in found {
            match value {
                ValueRef::Document(inner) => next.extend(inner.get(name)),
                ValueRef::Array(list) => {
                    next.extend(list.as_document().get(name));
                    let inner = list.iter().filter_map(ValueRef::as_document);
                    next.extend(inner.filter_map(|inner| inner.get(name)));
                }
                _ => {}
            }
        }
        found = next;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_is_told() {
        let check = |query: DocumentBuf, document: DocumentBuf, expected: DocumentBuf| {
            let filter = Filter::parse(query.as_document()).unwrap();
            assert!(!filter.matches(document.as_document()).unwrap());
            let found = details(query.as_document(), document.as_document());
            assert_eq!(found, expected, "{query} {document}");
        };
        check(
            doc! { "a": { "$gt": 5 } },
            doc! { "a": 1 },
            doc! {
                "operatorName": "$gt", "specifiedAs": { "a": { "$gt": 5 } },
                "reason": "comparison failed", "consideredValue": 1,
            },
        );
        check(
            doc! { "a": 5 },
            doc! { "b": 1 },
            doc! { "operatorName": "$eq", "specifiedAs": { "a": 5 }, "reason": "field was missing" },
        );
        check(
            doc! { "a": { "$exists": true } },
            doc! { "b": 1 },
            doc! {
                "operatorName": "$exists", "specifiedAs": { "a": { "$exists": true } },
                "reason": "path does not exist",
            },
        );
        check(
            doc! { "a": { "$gt": 0, "$lt": 5 }, "b": 1 },
            doc! { "a": 9, "b": 1 },
            doc! {
                "operatorName": "$and",
                "clausesNotSatisfied": [{ "index": 1, "details": {
                    "operatorName": "$lt", "specifiedAs": { "a": { "$lt": 5 } },
                    "reason": "comparison failed", "consideredValue": 9,
                } }],
            },
        );
        check(
            doc! { "$nor": [{ "a": 1 }] },
            doc! { "a": 1 },
            doc! {
                "operatorName": "$nor",
                "clausesSatisfied": [{ "index": 0, "details": {
                    "operatorName": "$eq", "specifiedAs": { "a": 1 },
                    "reason": "comparison succeeded", "consideredValue": 1,
                } }],
            },
        );
        check(
            doc! { "a.b": { "$not": { "$type": "string" } } },
            doc! { "a": [{ "b": "x" }, { "b": 1 }] },
            doc! {
                "operatorName": "$not",
                "details": {
                    "operatorName": "$type", "specifiedAs": { "a.b": { "$type": "string" } },
                    "reason": "type did match", "consideredValues": ["x", 1],
                    "consideredTypes": ["int", "string"],
                },
            },
        );
    }
}
