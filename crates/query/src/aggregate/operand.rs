//! Parses parts of operands that several stages have in common.

use std::fmt::Display;

use windrow_document::decimal::Rounding;
use windrow_document::path::Path;
use windrow_document::{Document, ValueRef, doc};
use windrow_mql::expression::{Expression, Scope};
use windrow_mql::filter::Environment;
use windrow_mql::sort::Sort;

use crate::Error;

pub(super) fn scope(environment: &Environment) -> Scope {
    Scope::with_variables(&environment.variables)
}

pub(super) fn expression(
    operand: ValueRef<'_>,
    environment: &Environment,
) -> Result<Expression, Error> {
    Ok(Expression::parse(operand, &scope(environment))?)
}

/// Returns `true` if the operand is an expression that begins with a dollar sign.
pub(super) fn is_expression(operand: ValueRef<'_>) -> bool {
    match operand {
        ValueRef::String(text) => text.starts_with('$'),
        ValueRef::Document(document) => document
            .first()
            .is_some_and(|(name, _)| name.starts_with('$')),
        _ => false,
    }
}

/// The error for an unknown field. `field` is the complete path, as in the next functions.
pub(super) fn unknown_field(field: impl Display) -> Error {
    let message = format!("BSON field '{field}' is an unknown field.");
    Error::new(40415, message)
}

pub(super) fn missing_field(field: impl Display) -> Error {
    let message = format!("BSON field '{field}' is missing but a required field");
    Error::new(40414, message)
}

pub(super) fn duplicate_field(field: impl Display) -> Error {
    let message = format!("BSON field '{field}' is a duplicate field");
    Error::new(40413, message)
}

pub(super) fn wrong_type(field: impl Display, found: ValueRef<'_>) -> Error {
    let found = found.type_of().name();
    let message = format!("BSON field '{field}' is the wrong type '{found}'");
    Error::new(14, message)
}

/// Returns the values of the named fields. Fails with 40415 for other fields.
pub(super) fn fields<'v, const N: usize>(
    within: &str,
    document: Document<'v>,
    names: [&str; N],
) -> Result<[Option<ValueRef<'v>>; N], Error> {
    let mut found = [None; N];
    for (name, value) in document {
        let position = names.iter().position(|known| *known == name);
        let slot = position.and_then(|position| found.get_mut(position));
        *slot.ok_or_else(|| unknown_field(format_args!("{within}.{name}")))? = Some(value);
    }
    Ok(found)
}

/// Truncates a number to an integer; NaN becomes 0. In builds with debug assertions, panics if the
/// value is not a number.
pub(super) fn whole(number: ValueRef<'_>) -> i64 {
    debug_assert!(number.is_number(), "{number} is not a number");
    match number.as_whole() {
        Some(whole) => whole,
        None => number.as_f64().unwrap_or_default() as i64,
    }
}

/// Truncates a number to an integer, but rounds a decimal, half to even.
pub(super) fn nearest(number: ValueRef<'_>) -> i64 {
    match number {
        ValueRef::Decimal128(decimal) => whole(ValueRef::Decimal128(
            decimal.to_places(0, Rounding::HalfEven),
        )),
        other => whole(other),
    }
}

/// Returns `true` if the truncated number fits in 64 bits. NaN counts as 0. In builds with debug
/// assertions, panics if the value is not a number.
pub(super) fn fits(number: ValueRef<'_>) -> bool {
    debug_assert!(number.is_number(), "{number} is not a number");
    // As a double, the largest 64-bit integer would be too large.
    if number.as_whole().is_some() {
        return true;
    }
    let number = number.as_f64().unwrap_or_default();
    number.is_nan() || (-(2f64.powi(63))..2f64.powi(63)).contains(&number)
}

/// The largest number of components of a path.
const PATH_NAMES_MAX: usize = 200;
const OVERFLOW: i32 = 15;
const NULL_BYTE: i32 = 16411;

/// Parses a path that a stage can write to. Fails with the codes of all paths: 40352, 40353, 15998,
/// 16410, 16411 for a null byte, 15 for more than 200 names.
pub(super) fn check_path(text: &str) -> Result<Path, Error> {
    if text.contains('\0') {
        let message = "FieldPath field names may not contain null bytes.";
        return Err(Error::new(NULL_BYTE, message));
    }
    if text.split('.').count() > PATH_NAMES_MAX {
        let message = format!("FieldPath has more than {PATH_NAMES_MAX} names");
        return Err(Error::new(OVERFLOW, message));
    }
    let mut specification = doc! {};
    specification.push(text, 1);
    match text {
        "$natural" => Err(Error::new(
            16410,
            "FieldPath field names may not start with '$'",
        )),
        _ => {
            Sort::parse(specification.as_document())?;
            Ok(Path::parse(text))
        }
    }
}
