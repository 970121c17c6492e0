//! What operands of stages are made of.

use windrow_document::decimal::Rounding;
use windrow_document::path::Path;
use windrow_document::{ValueRef, doc};
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

/// An expression where only one that begins with a dollar sign may stand.
pub(super) fn is_expression(operand: ValueRef<'_>) -> bool {
    match operand {
        ValueRef::String(text) => text.starts_with('$'),
        ValueRef::Document(document) => document
            .first()
            .is_some_and(|(name, _)| name.starts_with('$')),
        _ => false,
    }
}

/// A number cut to whole; NaN is 0.
pub(super) fn whole(number: ValueRef<'_>) -> i64 {
    match number.as_whole() {
        Some(whole) => whole,
        None => number.as_f64().unwrap_or_default() as i64,
    }
}

/// The same, but for a decimal, which is rounded, of two as near to the even one.
pub(super) fn nearest(number: ValueRef<'_>) -> i64 {
    match number {
        ValueRef::Decimal128(decimal) => whole(ValueRef::Decimal128(
            decimal.to_places(0, Rounding::HalfEven),
        )),
        other => whole(other),
    }
}

/// Whether 64 bits hold the number, cut to whole. NaN is 0.
pub(super) fn fits(number: ValueRef<'_>) -> bool {
    // As a double the greatest of them would be too great.
    if number.as_whole().is_some() {
        return true;
    }
    let number = number.as_f64().unwrap_or_default();
    number.is_nan() || (-(2f64.powi(63))..2f64.powi(63)).contains(&number)
}

/// Names of fields that may lie within each other.
const PATH_NAMES_MAX: usize = 200;
const OVERFLOW: i32 = 15;
const NULL_BYTE: i32 = 16411;

/// Refuses a path that a stage cannot write to. The codes are those of every path: 40352, 40353, 15998,
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
