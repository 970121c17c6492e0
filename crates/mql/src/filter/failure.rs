//! Explains why a document does not match a query document: the `errInfo` of error 121.
//!
//! Sources of the format: MongoDB's manual, "Schema Validation"; the output of failed writes; the
//! expectations of MongoDB's own tests. The query document is walked as written and its parts are
//! evaluated one by one. This need not be fast, because it happens only after a document failed
//! validation.

mod leaf;
mod schema;
mod telling;

use windrow_document::{Array, ArrayBuf, Document, DocumentBuf, Value, ValueRef, doc};

use super::{Environment, ExprCondition};
use crate::Error;
use crate::expression::Computed;
use crate::memory::depth;
use telling::{BYTES_MAX, Telling};

/// Operators that combine query documents.
const JOINS: &[&str] = &["$and", "$or", "$nor"];

const ALWAYS_FALSE: &str = "expression always evaluates to false";

/// MongoDB's maximum nesting depth of a report.
const DEPTH_MAX: usize = 190;

/// Names of the error codes that expressions fail with. Other codes are named `Location` and their
/// number.
const CODE_NAMES: &[(i32, &str)] = &[
    (2, "BadValue"),
    (9, "FailedToParse"),
    (14, "TypeMismatch"),
    (15, "Overflow"),
    (146, "ExceededMemoryLimit"),
    (168, "InvalidPipelineOperator"),
    (241, "ConversionFailure"),
];

/// Returns why a document does not match `query`: `{failingDocumentId, details}`. If the details
/// are too long, they are `truncated` and contain no values. If they are still too long, a `note`
/// replaces them. If they nest too deeply, the report contains only this fact. Fails if it is
/// interrupted or meets a bug.
pub fn information(
    query: Document<'_>,
    document: Document<'_>,
    environment: &Environment,
) -> Result<DocumentBuf, Error> {
    let id = document.get("_id").unwrap_or(ValueRef::Null);
    for is_brief in [false, true] {
        let telling = Telling::new(environment, is_brief);
        let asked = Asked {
            document,
            telling: &telling,
            negated: false,
        };
        let details = asked.details(query);
        let is_too_long = telling.is_too_long();
        telling.finish()?;
        if is_too_long || details.as_bytes().len() > BYTES_MAX {
            continue;
        }
        let mut found = doc! { "failingDocumentId": id };
        if is_brief {
            found.push("truncated", true);
        }
        found.push("details", details);
        return Ok(
            if depth(ValueRef::Document(found.as_document())) > DEPTH_MAX {
                doc! { "reason": "generated error was too deeply nested", "truncated": true }
            } else {
                found
            },
        );
    }
    Ok(doc! { "failingDocumentId": id, "note": "detailed error was too large" })
}

/// The state of a report: the document, and whether the condition is negated. Within a negated
/// condition the report says why the document matches.
#[derive(Clone, Copy)]
struct Asked<'a> {
    document: Document<'a>,
    telling: &'a Telling<'a>,
    negated: bool,
}

impl Asked<'_> {
    /// Returns `true` if a part of the validator is a reason for the refusal of the document. An
    /// expression that fails on the document always is.
    fn concerns(&self, query: Document<'_>) -> bool {
        let matched = self.telling.matches(query, self.document);
        let concerns = matched.map(|matched| matched == self.negated);
        self.telling.result(concerns, |_| true)
    }

    /// The report on a part of the validator.
    fn details(&self, query: Document<'_>) -> DocumentBuf {
        match self.negated {
            true => satisfied(query, self),
            false => not_satisfied(query, self),
        }
    }
}

/// Why a document does not match `query`. Empty if it matches.
fn not_satisfied(query: Document<'_>, asked: &Asked<'_>) -> DocumentBuf {
    let clauses = clauses(query);
    if let [(name, operand)] = clauses.as_slice() {
        return clause(name, operand.as_ref(), asked);
    }
    let fails = |(_, (name, operand)): &(usize, &(String, Value))| {
        asked.concerns(single(name, operand.as_ref()).as_document())
    };
    let failing = clauses.iter().enumerate().filter(fails);
    let failing = failing.take_while(|_| asked.telling.has_room());
    let failing = failing
        .map(|(index, (name, operand))| indexed(index, clause(name, operand.as_ref(), asked)));
    let failing: ArrayBuf = failing.collect();
    match failing.as_array().is_empty() {
        true => DocumentBuf::new(),
        false => doc! { "operatorName": "$and", "clausesNotSatisfied": failing },
    }
}

/// Why a document matches `query`.
fn satisfied(query: Document<'_>, asked: &Asked<'_>) -> DocumentBuf {
    let clauses = clauses(query);
    match clauses.as_slice() {
        [(name, operand)] => clause(name, operand.as_ref(), asked),
        many => {
            let all = many.iter().enumerate();
            let all = all.take_while(|_| asked.telling.has_room());
            let all = all.map(|(index, (name, operand))| {
                indexed(index, clause(name, operand.as_ref(), asked))
            });
            doc! { "operatorName": "$and", "clausesSatisfied": (all.collect::<ArrayBuf>()) }
        }
    }
}

/// The conditions of a query document, one operator each.
fn clauses(query: Document<'_>) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    for (name, operand) in query {
        match operand {
            _ if name == "$comment" => {}
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
    let is_operator = |name: &str| name.starts_with('$') && !matches!(name, "$ref" | "$id" | "$db");
    document.first().is_some_and(|(name, _)| is_operator(name))
}

fn single(name: &str, value: ValueRef<'_>) -> DocumentBuf {
    let mut one = DocumentBuf::new();
    one.push(name, value);
    one
}

fn indexed(index: usize, details: DocumentBuf) -> Value {
    doc! { "index": (index as i32), "details": details }.into()
}

/// Why one clause does not hold or, within a negation, why it holds.
fn clause(name: &str, operand: ValueRef<'_>, asked: &Asked<'_>) -> DocumentBuf {
    match (name, operand) {
        ("$jsonSchema", ValueRef::Document(rules)) => match asked.negated {
            true => doc! { "operatorName": "$jsonSchema", "reason": "schema matched" },
            false => schema::details(rules, asked.document, asked.telling),
        },
        (join, ValueRef::Array(list)) if JOINS.contains(&join) => joined(join, list, asked),
        _ if name.starts_with('$') => whole(name, operand, asked),
        _ => on_path(name, operand, asked),
    }
}

fn joined(name: &str, list: Array<'_>, asked: &Asked<'_>) -> DocumentBuf {
    let of_part = Asked {
        negated: asked.negated != (name == "$nor"),
        ..*asked
    };
    let parts = list.iter().filter_map(ValueRef::as_document).enumerate();
    let concerned = parts.filter(|(_, part)| of_part.concerns(*part));
    let concerned = concerned.take_while(|_| asked.telling.has_room());
    let described: ArrayBuf = concerned
        .map(|(index, part)| indexed(index, of_part.details(part)))
        .collect();
    let field = match of_part.negated {
        true => "clausesSatisfied",
        false => "clausesNotSatisfied",
    };
    let mut found = doc! { "operatorName": name };
    found.push(field, described);
    found
}

/// The report on a condition on the whole document.
fn whole(name: &str, operand: ValueRef<'_>, asked: &Asked<'_>) -> DocumentBuf {
    let telling = asked.telling;
    let mut found = doc! { "operatorName": name };
    telling.show_specified(&mut found, &single(name, operand));
    match name {
        "$expr" => {
            let evaluated = evaluated(operand, asked).map(Ok);
            match telling.result(evaluated, Err) {
                Ok(result) => matched(&mut found, result, asked),
                Err(error) => {
                    found.push("reason", "failed to evaluate aggregation expression");
                    found.push("details", described(&error));
                }
            }
        }
        "$sampleRate" => matched(&mut found, Some(Value::Bool(asked.negated)), asked),
        "$alwaysFalse" => found.push("reason", ALWAYS_FALSE),
        _ => {}
    }
    found
}

fn evaluated(operand: ValueRef<'_>, asked: &Asked<'_>) -> Result<Option<Value>, Error> {
    let condition = ExprCondition::parse(operand, asked.telling.environment)?;
    condition.evaluate(asked.document).map(Computed::into_value)
}

fn matched(found: &mut DocumentBuf, result: Option<Value>, asked: &Asked<'_>) {
    let reason = match asked.negated {
        true => "expression did match",
        false => "expression did not match",
    };
    found.push("reason", reason);
    if let Some(result) = result {
        let telling = asked.telling;
        telling.show(found, "expressionResult", result.as_ref());
    }
}

fn described(error: &Error) -> DocumentBuf {
    let named = CODE_NAMES.iter().find(|(code, _)| *code == error.code);
    let name = named.map_or_else(
        || format!("Location{}", error.code),
        |(_, name)| (*name).to_owned(),
    );
    doc! { "code": (error.code), "codeName": name, "errmsg": (error.message.as_str()) }
}

/// The report on a condition on a field: a document with one operator, or a value that implies
/// `$eq`.
fn on_path(path: &str, operand: ValueRef<'_>, asked: &Asked<'_>) -> DocumentBuf {
    let operator = match operand {
        ValueRef::Document(operators) if is_operators(operators) => operators.first(),
        ValueRef::Regex { .. } => Some(("$regex", operand)),
        _ => Some(("$eq", operand)),
    };
    let Some((name, value)) = operator else {
        return DocumentBuf::new();
    };
    if name == "$not" {
        let inner = Asked {
            negated: !asked.negated,
            ..*asked
        };
        let details = inner.details(single(path, value).as_document());
        return doc! { "operatorName": "$not", "details": details };
    }
    let telling = asked.telling;
    let mut found = doc! { "operatorName": name };
    telling.show_specified(&mut found, &single(path, operand));
    leaf::tell(&mut found, (name, value), path, asked);
    found
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::filter::Filter;
    use crate::interrupt::with_interrupt;

    /// An interrupt had ended the report with a note that it was too large, and the write had
    /// failed with 121.
    #[test]
    fn an_interrupted_report_fails() {
        let query = doc! { "$nor": [{ "a": 1 }] };
        let document = doc! { "a": 1 };
        let environment = Environment::default();
        let report = || information(query.as_document(), document.as_document(), &environment);
        let stopped = Error::new(50, "time is over");
        let ask = Arc::new({
            let stopped = stopped.clone();
            move || Err(stopped.clone())
        });
        assert_eq!(with_interrupt(ask, report), Err(stopped));
    }

    #[test]
    fn the_failing_conditions_are_reported() {
        let check = |query: DocumentBuf, document: DocumentBuf, expected: DocumentBuf| {
            let filter = Filter::parse(query.as_document()).unwrap();
            assert!(!filter.matches(document.as_document()).unwrap());
            let environment = Environment::default();
            let found = information(query.as_document(), document.as_document(), &environment);
            let found = found.unwrap();
            let expected = doc! { "failingDocumentId": null, "details": expected };
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
