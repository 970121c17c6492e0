//! `$documents`: rows that are part of the pipeline.

use windrow_document::{Array, Document, ValueRef};
use windrow_mql::expression::{Context, Dependencies, Expression};
use windrow_mql::filter::Environment;

use super::operand;
use super::rows::Rows;
use super::stage::{PipelineContext, StageKind, Transformation, first_stage_name};
use crate::Error;
use crate::operators::BoxOperator;
use crate::row::Row;

/// Returns `true` if the pipeline begins with `$documents`.
pub(super) fn begins(stages: Array<'_>) -> bool {
    first_stage_name(stages) == Some("$documents")
}

/// The expression that returns the documents.
#[derive(Clone, Debug)]
struct Documents(Expression);

/// Parses an expression that returns an array of documents.
pub(super) fn parse(
    operand: ValueRef<'_>,
    environment: &Environment,
) -> Result<Vec<StageKind>, Error> {
    Ok(vec![StageKind::from_transformation(Documents(
        operand::expression(operand, environment)?,
    ))])
}

impl Transformation for Documents {
    fn open(&self, input: BoxOperator, context: &PipelineContext) -> Result<BoxOperator, Error> {
        // There are no stages before this one.
        drop(input);
        Ok(Box::new(rows(&self.0, &context.environment)?))
    }

    fn dependencies(&self) -> Dependencies {
        Dependencies::default()
    }

    fn ends_dependencies(&self) -> bool {
        true
    }
}

/// Returns the rows. Fails with 5858203 if the expression does not return an array, with 40228 if
/// an element is not a document.
fn rows(expression: &Expression, environment: &Environment) -> Result<Rows, Error> {
    let context = Context::new(Document::EMPTY)
        .with_variables(&environment.variables)
        .with_now(environment.now)
        .with_collation(environment.collation.as_deref());
    let value = expression.evaluate(&context)?;
    let Some(array) = value.as_ref().and_then(ValueRef::as_array) else {
        let message = "error during aggregation: $documents must evaluate to an array";
        return Err(Error::new(5858203, message));
    };
    let row = |element: ValueRef<'_>| match element {
        ValueRef::Document(document) => Ok(Row::new(document.to_buf())),
        _ => Err(Error::new(
            40228,
            "each element of the array of $documents must be an object",
        )),
    };
    Ok(Rows::new(array.iter().map(row).collect::<Result<_, _>>()?))
}
