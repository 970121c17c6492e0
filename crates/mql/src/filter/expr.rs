//! `$expr`: an aggregation expression as a condition.

use std::sync::Arc;

use windrow_document::{Collation, Document, Value, ValueRef};

use super::walk::Outcome;
use crate::Error;
use crate::expression::{Context, Expression, Scope, Variables};

/// What expressions in a filter may refer to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Environment {
    /// A command's `let`.
    pub variables: Arc<Variables>,
    /// `$$NOW`, milliseconds since 1970: one value for a whole command.
    pub now: i64,
    /// How strings are compared; None: by their bytes.
    pub collation: Option<Arc<Collation>>,
}

/// An expression with the values that it was parsed with.
#[derive(Clone, Debug, PartialEq)]
pub struct ExprCondition {
    pub expression: Expression,
    /// As it was written, for explain.
    source: Arc<Value>,
    environment: Environment,
}

impl ExprCondition {
    pub(super) fn parse(
        operand: ValueRef<'_>,
        environment: &Environment,
    ) -> Result<ExprCondition, Error> {
        let scope = Scope::with_variables(&environment.variables);
        Ok(ExprCondition {
            expression: Expression::parse(operand, &scope)?,
            source: Arc::new(operand.to_value()),
            environment: environment.clone(),
        })
    }

    /// The operand of `$expr`.
    pub fn source(&self) -> ValueRef<'_> {
        (*self.source).as_ref()
    }

    pub(super) fn matches(&self, document: Document<'_>) -> Outcome {
        let context = Context::new(document)
            .with_variables(&self.environment.variables)
            .with_now(self.environment.now)
            .with_collation(self.environment.collation.as_deref());
        let value = self.expression.evaluate(&context).map_err(Box::new)?;
        Ok(value.is_truthy())
    }
}
