//! Rewrites the expressions of `$expr`. A comparison of a field with an encrypted constant becomes
//! one of the tags of the document:
//!
//! ```text
//! {$eq: ["$ssn", P]}    {$gt: [{$size: {$setIntersection: [its tags, [tags of P]]}}, 0]}
//! {$ne: ["$ssn", P]}    {$eq: [{$size: {$setIntersection: [its tags, [tags of P]]}}, 0]}
//! ```

use windrow_document::{Array, ArrayBuf, Document, DocumentBuf, Value, ValueRef, array, doc};
use windrow_queryable_encryption::SAFE_CONTENT;
use windrow_wire::{CommandError, ErrorCode};

use super::operands::{TagFinder, is_equality, is_range};
use crate::errors::refuse;

/// MongoDB's error codes.
const TWO_CONSTANTS: ErrorCode = ErrorCode(6_334_100);
const MIXED_LIST: ErrorCode = ErrorCode(6_334_102);
const NO_FIELD: ErrorCode = ErrorCode(6_672_413);
const NO_FIELD_IN_LIST: ErrorCode = ErrorCode(6_672_417);

/// Rewrites an expression.
pub fn rewrite(
    finder: &mut TagFinder<'_>,
    expression: ValueRef<'_>,
) -> Result<Value, CommandError> {
    match expression {
        ValueRef::Document(inner) => document(finder, inner),
        ValueRef::Array(list) => Ok(Value::Array(all(finder, list)?)),
        other => Ok(other.to_value()),
    }
}

fn all(finder: &mut TagFinder<'_>, list: Array<'_>) -> Result<ArrayBuf, CommandError> {
    let rewritten = list.iter().map(|expression| rewrite(finder, expression));
    rewritten.collect()
}

fn document(finder: &mut TagFinder<'_>, expression: Document<'_>) -> Result<Value, CommandError> {
    if let (1, Some((operator, ValueRef::Array(operands)))) =
        (expression.count(), expression.first())
    {
        let operands: Vec<ValueRef<'_>> = operands.iter().map(constant).collect();
        let rewritten = match (operator, operands.as_slice()) {
            ("$eq" | "$ne", [left, right]) => {
                comparison(finder, operator, [*left, *right], is_equality)?
            }
            ("$gt" | "$gte" | "$lt" | "$lte", [left, right]) => {
                comparison(finder, operator, [*left, *right], is_range)?
            }
            ("$in", [field, ValueRef::Array(list)]) => membership(finder, *field, *list)?,
            _ => None,
        };
        if let Some(rewritten) = rewritten {
            return Ok(rewritten);
        }
    }
    let mut rewritten = DocumentBuf::new();
    for (name, value) in expression {
        rewritten.push(name, rewrite(finder, value)?);
    }
    Ok(Value::from(rewritten))
}

/// Returns the constant in `{$literal: constant}`.
fn constant(value: ValueRef<'_>) -> ValueRef<'_> {
    match value.as_document().map(|it| (it.count(), it.first())) {
        Some((1, Some(("$literal" | "$const", constant)))) => constant,
        _ => value,
    }
}

/// Rewrites a comparison if one side is encrypted.
fn comparison(
    finder: &mut TagFinder<'_>,
    operator: &str,
    [left, right]: [ValueRef<'_>; 2],
    is_encrypted: fn(ValueRef<'_>) -> bool,
) -> Result<Option<Value>, CommandError> {
    let (operand, field) = match (is_encrypted(left), is_encrypted(right)) {
        (false, false) => return Ok(None),
        (true, true) => {
            let message = "two encrypted operands cannot be compared with each other";
            return refuse(TWO_CONSTANTS, message);
        }
        (true, false) => (left, right),
        (false, true) => (right, left),
    };
    if !is_path(field) {
        let message = "an encrypted operand can only be compared with the path of a field";
        return refuse(NO_FIELD, message);
    }
    let tags = finder.tags(operand)?;
    Ok(Some(tags.map_or(Value::Bool(true), |tags| {
        has_tags(tags, operator != "$ne")
    })))
}

/// Rewrites `$in` if the list is encrypted.
fn membership(
    finder: &mut TagFinder<'_>,
    field: ValueRef<'_>,
    list: Array<'_>,
) -> Result<Option<Value>, CommandError> {
    let operands: Vec<ValueRef<'_>> = list.iter().map(constant).collect();
    let count = operands.iter().filter(|it| is_equality(**it)).count();
    if count == 0 {
        return Ok(None);
    }
    if count != operands.len() {
        let message = "the list of $in has encrypted and plain values";
        return refuse(MIXED_LIST, message);
    }
    if !is_path(field) {
        let message = "$in finds encrypted values only if its first operand is the path of a field";
        return refuse(NO_FIELD_IN_LIST, message);
    }
    let mut all = Vec::new();
    for operand in operands {
        all.extend(finder.tags(operand)?.unwrap_or_default());
    }
    Ok(Some(has_tags(all, true)))
}

fn is_path(value: ValueRef<'_>) -> bool {
    value.as_str().is_some_and(|text| text.starts_with('$'))
}

/// Returns the expression that the document has one of the tags, or none if `expected` is `false`.
fn has_tags(tags: Vec<Value>, expected: bool) -> Value {
    let operator = if expected { "$gt" } else { "$eq" };
    let own = doc! { "$ifNull": [(format!("${SAFE_CONTENT}")), []] };
    let tags = doc! { "$literal": (Value::Array(tags.into_iter().collect())) };
    let common = doc! { "$size": { "$setIntersection": [own, tags] } };
    Value::from(doc! { operator: (Value::Array(array![common, 0])) })
}
