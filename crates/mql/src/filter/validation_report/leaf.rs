//! Reports why an operator on a path does not hold, with the values at the path.

use windrow_document::{ArrayBuf, Document, DocumentBuf, ValueRef};
use windrow_geo::Shape;

use super::writer::ReportWriter;
use super::{ALWAYS_FALSE, ReportContext};
use crate::interrupt;

/// Maximum number of values in the report if a path leads to several.
const VALUES_MAX: usize = 10;

/// Operators that are the negation of another operator.
const NEGATIVE: &[&str] = &["$ne", "$nin"];

/// Operators that test an array as a whole.
const OF_ARRAYS: &[&str] = &["$all", "$elemMatch", "$size"];

const GEO: &[&str] = &["$geoIntersects", "$geoWithin"];

/// The reason if a condition does not hold, and the reason if it holds under a `$not`.
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
        "$geoIntersects",
        "none of the considered geometries intersected the expression’s geometry",
        "at least one of considered geometries intersected the expression’s geometry",
    ),
    (
        "$geoWithin",
        "none of the considered geometries were contained within the expression’s geometry",
        "at least one of considered geometries was contained within the expression’s geometry",
    ),
    ("$in", NOT_LISTED, LISTED),
    (
        "$mod",
        "$mod did not evaluate to expected remainder",
        "$mod did evaluate to expected remainder",
    ),
    ("$nin", LISTED, NOT_LISTED),
    ("$ne", COMPARED, NOT_COMPARED),
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
const NOT_LISTED: &str = "no matching value found in array";
const LISTED: &str = "matching value found in array";

/// The types of values that an operator can match.
const TYPES: &[(&str, &[&str])] = &[
    ("$bitsAllClear", OF_BITS),
    ("$bitsAllSet", OF_BITS),
    ("$bitsAnyClear", OF_BITS),
    ("$bitsAnySet", OF_BITS),
    ("$elemMatch", &["array"]),
    ("$mod", &["decimal", "double", "int", "long"]),
    ("$regex", &["regex", "string", "symbol"]),
    ("$size", &["array"]),
];
const OF_BITS: &[&str] = &["binData", "decimal", "double", "int", "long"];

/// Appends the report on an operator.
pub(super) fn append_leaf(
    found: &mut DocumentBuf,
    name: &str,
    operand: ValueRef<'_>,
    path: &str,
    context: &ReportContext<'_>,
) {
    let (writer, negated) = (context.writer, context.negated);
    let values_at_end = values_at_end(path, context.document);
    if name == "$exists" {
        found.push("reason", reason(name, negated == operand.is_truthy()));
        return;
    }
    if name == "$all" && operand.as_array().is_some_and(|list| list.is_empty()) {
        found.push("reason", ALWAYS_FALSE);
        return;
    }
    if values_at_end.is_empty() {
        let needs_value = negated == NEGATIVE.contains(&name);
        let missing = needs_value.then_some("field was missing");
        found.push("reason", missing.unwrap_or(reason(name, negated)));
        return;
    }
    let values = if OF_ARRAYS.contains(&name) {
        values_at_end.clone()
    } else {
        elements(&values_at_end)
    };
    match mismatched(name, &values).filter(|_| !negated) {
        Some(expected) => {
            found.push("reason", "type did not match");
            push_types(found, &values);
            push_names(found, ["expectedType", "expectedTypes"], expected);
            push_values(found, &values, writer);
        }
        None if GEO.contains(&name) && !has_shape(&values_at_end) && !has_shape(&values) => {
            found.push(
                "reason",
                "could not find a valid geometry at the given path",
            );
            push_values(found, &values, writer);
        }
        None => {
            found.push("reason", reason(name, negated));
            push_values(found, &values, writer);
            if name == "$type" {
                push_types(found, &values);
            }
        }
    }
}

fn reason(operator: &str, negated: bool) -> &'static str {
    let known = REASONS.iter().find(|(name, ..)| *name == operator);
    let (fails, holds) = known.map_or((NOT_COMPARED, COMPARED), |(_, fails, holds)| (fails, holds));
    if negated { holds } else { fails }
}

/// Returns the types that an operator can match, if no value has one of them.
fn mismatched(operator: &str, values: &[ValueRef<'_>]) -> Option<&'static [&'static str]> {
    let (_, expected) = TYPES.iter().find(|(name, _)| *name == operator)?;
    let fits = |value: &ValueRef<'_>| expected.contains(&value.type_of().name());
    (!values.is_empty() && !values.iter().any(fits)).then_some(expected)
}

fn has_shape(values: &[ValueRef<'_>]) -> bool {
    values.iter().any(|value| {
        let may_be = matches!(value, ValueRef::Document(_) | ValueRef::Array(_));
        may_be && Shape::parse_with(*value, &interrupt::count).is_ok()
    })
}

fn push_values(found: &mut DocumentBuf, values: &[ValueRef<'_>], writer: &ReportWriter<'_>) {
    if let [one] = values {
        writer.show(found, "consideredValue", *one);
        return;
    }
    let shown: ArrayBuf = values.iter().take(VALUES_MAX).copied().collect();
    writer.show(found, "consideredValues", ValueRef::Array(shown.as_array()));
    if values.len() > VALUES_MAX && found.get("consideredValues").is_some() {
        found.push("consideredValuesTruncated", true);
    }
}

fn push_types(found: &mut DocumentBuf, values: &[ValueRef<'_>]) {
    let mut names: Vec<&str> = values.iter().map(|value| value.type_of().name()).collect();
    names.sort_unstable();
    names.dedup();
    push_names(found, ["consideredType", "consideredTypes"], &names);
}

/// Appends the names under the first field if there is one name, under the second if there are
/// several.
fn push_names(found: &mut DocumentBuf, [field, fields]: [&str; 2], names: &[&str]) {
    match names {
        [] => {}
        [one] => found.push(field, *one),
        many => {
            let many = many.iter().copied().map(ValueRef::String);
            found.push(fields, many.collect::<ArrayBuf>());
        }
    }
}

/// Returns the values at the end of a path, through arrays on the path.
fn values_at_end<'a>(path: &str, document: Document<'a>) -> Vec<ValueRef<'a>> {
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

/// Returns the values, with arrays replaced by their elements.
fn elements<'a>(values_at_end: &[ValueRef<'a>]) -> Vec<ValueRef<'a>> {
    let mut found = Vec::new();
    for value in values_at_end {
        match value {
            ValueRef::Array(list) => found.extend(list.iter()),
            other => found.push(*other),
        }
    }
    found
}
