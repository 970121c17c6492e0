//! Explains why a document does not match a query document: the `errInfo` of error 121.
//!
//! Sources of the format: MongoDB's manual, "Schema Validation"; the output of failed writes; the
//! expectations of MongoDB's own tests. The query document is walked as written and its parts are
//! evaluated one by one. This need not be fast, because it happens only after a document failed
//! validation.

mod keywords;
mod leaf;
mod schema;
mod writer;

use windrow_document::{Array, ArrayBuf, Document, DocumentBuf, Value, ValueRef, doc};

use super::{Environment, ExprCondition};
use crate::Error;
use crate::expression::ExprValue;
use crate::memory::depth;
use writer::{BYTES_MAX, ReportWriter};

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
///
/// ```
/// use windrow_document::doc;
/// use windrow_mql::filter::{Environment, validation_report::report};
/// let validator = doc! { "legs": { "$gt": 1 } };
/// let document = doc! { "_id": 7, "legs": 1 };
/// let environment = Environment::default();
/// let found = report(validator.as_document(), document.as_document(), &environment).unwrap();
/// let details = found.get("details").and_then(|it| it.as_document()).unwrap();
/// assert_eq!(details.get("operatorName").and_then(|it| it.as_str()), Some("$gt"));
/// ```
pub fn report(
    query: Document<'_>,
    document: Document<'_>,
    environment: &Environment,
) -> Result<DocumentBuf, Error> {
    let id = document.get("_id").unwrap_or(ValueRef::Null);
    for is_brief in [false, true] {
        let writer = ReportWriter::new(environment, is_brief);
        let context = ReportContext {
            document,
            writer: &writer,
            negated: false,
        };
        let details = context.details(query);
        let is_too_long = writer.is_too_long();
        writer.finish()?;
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
struct ReportContext<'a> {
    document: Document<'a>,
    writer: &'a ReportWriter<'a>,
    negated: bool,
}

impl ReportContext<'_> {
    /// Returns `true` if a part of the validator is a reason for the refusal of the document. An
    /// expression that fails on the document always is.
    fn is_reason(&self, query: Document<'_>) -> bool {
        let matched = self.writer.matches(query, self.document);
        let is_reason = matched.map(|matched| matched == self.negated);
        self.writer.result(is_reason, |_| true)
    }

    /// Returns the report on a part of the validator.
    fn details(&self, query: Document<'_>) -> DocumentBuf {
        if self.negated {
            satisfied(query, self)
        } else {
            not_satisfied(query, self)
        }
    }
}

/// Why a document does not match `query`. Empty if it matches.
fn not_satisfied(query: Document<'_>, context: &ReportContext<'_>) -> DocumentBuf {
    let clauses = clauses(query);
    if let [(name, operand)] = clauses.as_slice() {
        return clause(name, operand.as_ref(), context);
    }
    let fails = |(_, (name, operand)): &(usize, &(String, Value))| {
        context.is_reason(single(name, operand.as_ref()).as_document())
    };
    let failing = clauses.iter().enumerate().filter(fails);
    let failing = failing.take_while(|_| context.writer.has_room());
    let failing = failing
        .map(|(index, (name, operand))| indexed(index, clause(name, operand.as_ref(), context)));
    let failing: ArrayBuf = failing.collect();
    if failing.as_array().is_empty() {
        DocumentBuf::new()
    } else {
        doc! { "operatorName": "$and", "clausesNotSatisfied": failing }
    }
}

/// Why a document matches `query`.
fn satisfied(query: Document<'_>, context: &ReportContext<'_>) -> DocumentBuf {
    let clauses = clauses(query);
    match clauses.as_slice() {
        [(name, operand)] => clause(name, operand.as_ref(), context),
        many => {
            let all = many.iter().enumerate();
            let all = all.take_while(|_| context.writer.has_room());
            let all = all.map(|(index, (name, operand))| {
                indexed(index, clause(name, operand.as_ref(), context))
            });
            doc! { "operatorName": "$and", "clausesSatisfied": (all.collect::<ArrayBuf>()) }
        }
    }
}

/// Returns the conditions of a query document, one operator each.
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
fn clause(name: &str, operand: ValueRef<'_>, context: &ReportContext<'_>) -> DocumentBuf {
    match (name, operand) {
        ("$jsonSchema", ValueRef::Document(rules)) => {
            if context.negated {
                doc! { "operatorName": "$jsonSchema", "reason": "schema matched" }
            } else {
                schema::details(rules, context.document, context.writer)
            }
        }
        (join, ValueRef::Array(list)) if JOINS.contains(&join) => joined(join, list, context),
        _ if name.starts_with('$') => whole(name, operand, context),
        _ => on_path(name, operand, context),
    }
}

fn joined(name: &str, list: Array<'_>, context: &ReportContext<'_>) -> DocumentBuf {
    let of_part = ReportContext {
        negated: context.negated != (name == "$nor"),
        ..*context
    };
    let parts = list.iter().filter_map(ValueRef::as_document).enumerate();
    let reasons = parts.filter(|(_, part)| of_part.is_reason(*part));
    let reasons = reasons.take_while(|_| context.writer.has_room());
    let described: ArrayBuf = reasons
        .map(|(index, part)| indexed(index, of_part.details(part)))
        .collect();
    let field = if of_part.negated {
        "clausesSatisfied"
    } else {
        "clausesNotSatisfied"
    };
    let mut found = doc! { "operatorName": name };
    found.push(field, described);
    found
}

/// Returns the report on a condition on the whole document.
fn whole(name: &str, operand: ValueRef<'_>, context: &ReportContext<'_>) -> DocumentBuf {
    let writer = context.writer;
    let mut found = doc! { "operatorName": name };
    writer.show_specified(&mut found, &single(name, operand));
    match name {
        "$expr" => {
            let evaluated = evaluated(operand, context).map(Ok);
            match writer.result(evaluated, Err) {
                Ok(result) => matched(&mut found, result, context),
                Err(error) => {
                    found.push("reason", "failed to evaluate aggregation expression");
                    found.push("details", described(&error));
                }
            }
        }
        "$sampleRate" => matched(&mut found, Some(Value::Bool(context.negated)), context),
        "$alwaysFalse" => found.push("reason", ALWAYS_FALSE),
        _ => {}
    }
    found
}

fn evaluated(operand: ValueRef<'_>, context: &ReportContext<'_>) -> Result<Option<Value>, Error> {
    let condition = ExprCondition::parse(operand, context.writer.environment)?;
    condition
        .evaluate(context.document)
        .map(ExprValue::into_value)
}

fn matched(found: &mut DocumentBuf, result: Option<Value>, context: &ReportContext<'_>) {
    let reason = if context.negated {
        "expression did match"
    } else {
        "expression did not match"
    };
    found.push("reason", reason);
    if let Some(result) = result {
        let writer = context.writer;
        writer.show(found, "expressionResult", result.as_ref());
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

/// Returns the report on a condition on a field: a document with one operator, or a value that
/// implies `$eq`.
fn on_path(path: &str, operand: ValueRef<'_>, context: &ReportContext<'_>) -> DocumentBuf {
    let operator = match operand {
        ValueRef::Document(operators) if is_operators(operators) => operators.first(),
        ValueRef::Regex { .. } => Some(("$regex", operand)),
        _ => Some(("$eq", operand)),
    };
    let Some((name, value)) = operator else {
        return DocumentBuf::new();
    };
    if name == "$not" {
        let inner = ReportContext {
            negated: !context.negated,
            ..*context
        };
        let details = inner.details(single(path, value).as_document());
        return doc! { "operatorName": "$not", "details": details };
    }
    let writer = context.writer;
    let mut found = doc! { "operatorName": name };
    writer.show_specified(&mut found, &single(path, operand));
    leaf::append_leaf(&mut found, name, value, path, context);
    found
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::filter::Filter;
    use windrow_interrupt::Interrupted;

    use crate::interrupt::with_interrupt;

    /// An interrupt used to end the report with the note that it was too large, and the write
    /// failed with 121.
    #[test]
    fn an_interrupted_report_fails() {
        let query = doc! { "$nor": [{ "a": 1 }] };
        let document = doc! { "a": 1 };
        let environment = Environment::default();
        let report = || report(query.as_document(), document.as_document(), &environment);
        let reason = || Interrupted::with_code(50, "time is over");
        let stopped = with_interrupt(Arc::new(move || Err(reason())), report);
        assert_eq!(stopped, Err(reason().into()));
    }

    #[test]
    fn the_failing_conditions_are_reported() {
        let check = |query: DocumentBuf, document: DocumentBuf, expected: DocumentBuf| {
            let filter = Filter::parse(query.as_document()).unwrap();
            assert!(!filter.matches(document.as_document()).unwrap());
            let environment = Environment::default();
            let found = report(query.as_document(), document.as_document(), &environment);
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
