//! `$redact`: an expression decides for a document and for each nested document if it is kept,
//! removed, or entered.

use windrow_document::{
    Array, ArrayBuilder, Document, DocumentBuf, DocumentBuilder, Value, ValueRef,
};

use crate::Error;
use crate::expression::{Context, Dependencies, Expression, Scope, Variables};

/// A parsed `$redact`.
///
/// ```
/// use windrow_document::{ValueRef, doc};
/// use windrow_mql::expression::{Context, Variables};
/// use windrow_mql::reshape::Redact;
/// let public = doc! { "$cond": ["$secret", "$$PRUNE", "$$DESCEND"] };
/// let public = ValueRef::Document(public.as_document());
/// let redact = Redact::parse(public, &Variables::new()).unwrap();
/// let document = doc! { "name": "heron", "nest": { "secret": true, "place": "lake" } };
/// let document = document.as_document();
/// let output = redact.apply(document, &Context::new(document)).unwrap();
/// assert_eq!(output, Some(doc! { "name": "heron" }));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Redact {
    expression: Expression,
}

const NAMES: [(&str, &str); 3] = [("DESCEND", "descend"), ("PRUNE", "prune"), ("KEEP", "keep")];

impl Redact {
    /// Parses the expression. It can read `$$DESCEND`, `$$PRUNE`, `$$KEEP` and the names in
    /// `variables`. Fails with errors of expressions.
    pub fn parse(specification: ValueRef<'_>, variables: &Variables) -> Result<Redact, Error> {
        let scope = Scope::with_variables(&with_decisions(variables));
        Ok(Redact {
            expression: Expression::parse(specification, &scope)?,
        })
    }

    /// Applies the stage. Returns `None` if the whole document is removed. Fails with 17053 if the
    /// expression returns another value than the three decisions.
    pub fn apply(
        &self,
        document: Document<'_>,
        context: &Context<'_>,
    ) -> Result<Option<DocumentBuf>, Error> {
        let empty = Variables::new();
        let variables = with_decisions(context.variables.unwrap_or(&empty));
        let context = context.with_root(document).with_variables(&variables);
        self.document(document, &context)
    }

    fn document(
        &self,
        document: Document<'_>,
        context: &Context<'_>,
    ) -> Result<Option<DocumentBuf>, Error> {
        let context = context.with_current(document);
        match self.expression.evaluate(&context)?.as_str() {
            Some("keep") => Ok(Some(document.to_buf())),
            Some("prune") => Ok(None),
            Some("descend") => self.fields(document, &context).map(Some),
            _ => {
                let message = "$redact's expression should not return anything aside from the variables $$KEEP, $$DESCEND, and $$PRUNE";
                Err(Error::new(17053, message))
            }
        }
    }

    fn fields(&self, document: Document<'_>, context: &Context<'_>) -> Result<DocumentBuf, Error> {
        let mut result = DocumentBuilder::new();
        for (name, value) in document {
            if let Some(value) = self.value(value, context)? {
                result.append(name, value.as_ref());
            }
        }
        Ok(result.finish())
    }

    fn value(&self, value: ValueRef<'_>, context: &Context<'_>) -> Result<Option<Value>, Error> {
        match value {
            ValueRef::Document(inner) => Ok(self.document(inner, context)?.map(Value::Document)),
            ValueRef::Array(array) => self.array(array, context).map(Some),
            scalar => Ok(Some(scalar.to_value())),
        }
    }

    fn array(&self, array: Array<'_>, context: &Context<'_>) -> Result<Value, Error> {
        let mut result = ArrayBuilder::new();
        for value in array {
            if let Some(value) = self.value(value, context)? {
                result.push(value.as_ref());
            }
        }
        Ok(Value::Array(result.finish()))
    }

    /// Returns the fields that the stage reads: the whole document.
    pub fn dependencies(&self) -> Dependencies {
        Dependencies {
            whole: true,
            ..self.expression.dependencies()
        }
    }
}

fn with_decisions(variables: &Variables) -> Variables {
    let mut variables = variables.clone();
    NAMES
        .iter()
        .for_each(|(name, value)| variables.set(name, Some((*value).into())));
    variables
}
