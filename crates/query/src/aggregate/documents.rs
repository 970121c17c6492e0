//! `$documents`: rows that the pipeline brings along.

use windrow_document::{Array, Document, ValueRef};
use windrow_mql::expression::{Context, Expression};
use windrow_mql::filter::Environment;

use super::Rows;
use super::stage::{self, Kind};
use crate::Error;
use crate::row::Row;

/// The name in the place of a collection's, where a pipeline brings its rows: none has it.
pub(super) const NO_COLLECTION: &str = "$cmd.aggregate";

/// Whether a pipeline brings its rows.
pub(super) fn begins(stages: Array<'_>) -> bool {
    let first = stages.get(0).and_then(ValueRef::as_document);
    first
        .and_then(Document::first)
        .is_some_and(|(name, _)| name == "$documents")
}

/// Parses an expression that gives an array of documents.
pub(super) fn parse(operand: ValueRef<'_>, environment: &Environment) -> Result<Vec<Kind>, Error> {
    Ok(vec![Kind::Documents(stage::expression(
        operand,
        environment,
    )?)])
}

/// The rows. Errors: 5858203 where the expression gives no array, 5858204 for what is no document in it.
pub(super) fn rows(expression: &Expression, environment: &Environment) -> Result<Rows, Error> {
    let context = Context::new(Document::EMPTY)
        .with_variables(&environment.variables)
        .with_now(environment.now);
    let value = expression.evaluate(&context)?;
    let Some(array) = value.as_ref().and_then(ValueRef::as_array) else {
        let message = "error during aggregation: $documents must evaluate to an array";
        return Err(Error::new(5858203, message));
    };
    let row = |element: ValueRef<'_>| match element {
        ValueRef::Document(document) => Ok(Row::of(document.to_buf())),
        _ => Err(Error::new(
            5858204,
            "each element of the array of $documents must be an object",
        )),
    };
    Ok(Rows::new(array.iter().map(row).collect::<Result<_, _>>()?))
}
