//! What operands of stages are made of.

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

/// Refuses a path that a stage cannot write to. The codes are those of every path: 40352, 40353, 15998,
/// 16410.
pub(super) fn check_path(text: &str) -> Result<Path, Error> {
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
