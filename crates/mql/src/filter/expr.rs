//! `$expr`: an aggregation expression as a condition.

use std::sync::Arc;

use windrow_document::{Collation, Document, Value, ValueRef};

use super::compare::Comparison;
use super::walk::MatchResult;
use crate::Error;
use crate::expression::{Context, ExprValue, Expression, Scope, Variables};

/// The variables and the collation of a filter.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Environment {
    /// The `let` of a command.
    pub variables: Arc<Variables>,
    /// `$$NOW` in milliseconds since 1970. One value for a whole command.
    pub now: i64,
    /// The collation of string comparisons. `None` compares bytes.
    pub collation: Option<Arc<Collation>>,
    /// `true` if an expression that fails for constant operands may be parsed, as in a validator.
    /// It then fails for every document.
    pub constants_may_fail: bool,
}

/// The operand of `$expr` with the environment that it was parsed in.
#[derive(Clone, Debug, PartialEq)]
pub struct ExprCondition {
    /// The parsed expression.
    pub expression: Expression,
    /// The operand as written, for explain.
    source: Arc<Value>,
    environment: Environment,
}

impl ExprCondition {
    /// Returns `true` if the `let` defines `CURRENT`, so that field paths do not start at the
    /// document.
    pub(super) fn redefines_current(&self) -> bool {
        self.environment.variables.get("CURRENT").is_some()
    }

    pub(super) fn parse(
        operand: ValueRef<'_>,
        environment: &Environment,
    ) -> Result<ExprCondition, Error> {
        let scope = Scope::with_variables(&environment.variables)
            .with_failing_constants(environment.constants_may_fail);
        Ok(ExprCondition {
            expression: Expression::parse(operand, &scope)?,
            source: Arc::new(operand.to_value()),
            environment: environment.clone(),
        })
    }

    /// Returns the operand of `$expr` as written.
    pub fn source(&self) -> ValueRef<'_> {
        (*self.source).as_ref()
    }

    pub(super) fn matches(&self, document: Document<'_>) -> MatchResult {
        Ok(self.evaluate(document).map_err(Box::new)?.is_truthy())
    }

    pub(super) fn evaluate<'c>(&'c self, document: Document<'c>) -> Result<ExprValue<'c>, Error> {
        self.expression.evaluate(&self.context(document))
    }

    fn context<'c>(&'c self, document: Document<'c>) -> Context<'c> {
        Context::new(document)
            .with_variables(&self.environment.variables)
            .with_now(self.environment.now)
            .with_collation(self.environment.collation.as_deref())
    }

    /// Comparisons of fields with constants that are true for every document that matches.
    pub fn comparisons(&self) -> Vec<FieldComparison> {
        let mut found = Vec::new();
        self.collect(&self.expression, &mut found);
        found
    }

    fn collect(&self, expression: &Expression, found: &mut Vec<FieldComparison>) {
        let Some((name, arguments)) = expression.as_call() else {
            return;
        };
        if name == "$and" {
            arguments.iter().for_each(|one| self.collect(one, found));
        }
        let (Some(operator), [one, other]) = (Comparison::from_name(name), arguments) else {
            return;
        };
        let forward = self.comparison(one, operator, other);
        found.extend(forward.or_else(|| self.comparison(other, operator.mirrored(), one)));
    }

    fn comparison(
        &self,
        field: &Expression,
        operator: Comparison,
        value: &Expression,
    ) -> Option<FieldComparison> {
        let path = field
            .field_path()
            .filter(|_| value.is_independent_of_document())?;
        let context = self.context(Document::EMPTY);
        let value = value.evaluate(&context).ok()?.into_value()?;
        Some(FieldComparison {
            path,
            operator,
            value,
        })
    }
}

/// A comparison of a field with a value as expressions compare: by MongoDB's order over all types,
/// arrays as whole values, and a missing field less than everything but MinKey.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldComparison {
    /// The dotted path. It never contains an array index.
    pub path: String,
    /// The comparison.
    pub operator: Comparison,
    /// The constant.
    pub value: Value,
}
