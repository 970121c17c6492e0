//! `$replaceRoot` and `$replaceWith`.

use windrow_document::path::Path;
use windrow_document::{Document, DocumentBuf, Value, ValueRef};

use crate::Error;
use crate::expression::{Context, Dependencies, Expression, Scope};
use crate::field_lineage::FieldLineage;

/// A parsed `$replaceRoot` or `$replaceWith`: an expression whose value replaces the document.
///
/// ```
/// use windrow_document::{ValueRef, doc};
/// use windrow_mql::expression::{Context, Scope};
/// use windrow_mql::reshape::ReplaceRoot;
/// let stage = ReplaceRoot::parse_replace_with(ValueRef::String("$inner"), &Scope::new()).unwrap();
/// let document = doc! { "_id": 1, "inner": { "n": 2 } };
/// let document = document.as_document();
/// let output = stage.apply(document, &Context::new(document)).unwrap();
/// assert_eq!(output, doc! { "n": 2 });
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ReplaceRoot {
    new_root: Expression,
}

impl ReplaceRoot {
    /// Parses `{newRoot: expression}`.
    ///
    /// # Errors
    ///
    /// - 40229: the operand is not a document.
    /// - 40415: a field is unknown.
    /// - 40414: `newRoot` is missing.
    /// - Errors of expressions.
    pub fn parse_replace_root(
        specification: ValueRef<'_>,
        scope: &Scope,
    ) -> Result<ReplaceRoot, Error> {
        let Some(document) = specification.as_document() else {
            let found = specification.type_of().name();
            let message =
                format!("expected an object as specification for $replaceRoot stage, got {found}");
            return Err(Error::new(40229, message));
        };
        if let Some((name, _)) = document.iter().find(|(name, _)| *name != "newRoot") {
            let message = format!("BSON field '$replaceRoot.{name}' is an unknown field.");
            return Err(Error::new(40415, message));
        }
        match document.get("newRoot") {
            Some(new_root) => ReplaceRoot::parse_replace_with(new_root, scope),
            None => Err(Error::new(
                40414,
                "BSON field '$replaceRoot.newRoot' is missing but a required field",
            )),
        }
    }

    /// Parses the expression of `$replaceWith`. Fails with errors of expressions.
    pub fn parse_replace_with(
        specification: ValueRef<'_>,
        scope: &Scope,
    ) -> Result<ReplaceRoot, Error> {
        Ok(ReplaceRoot {
            new_root: Expression::parse(specification, scope)?,
        })
    }

    /// Applies the stage. Fails with 40228 if the value is not a document, and with errors of the
    /// expression.
    pub fn apply<'a>(
        &'a self,
        document: Document<'a>,
        context: &Context<'a>,
    ) -> Result<DocumentBuf, Error> {
        let new_root = self.new_root.evaluate(&context.with_root(document))?;
        let kind = new_root.type_name();
        match new_root.into_value() {
            Some(Value::Document(document)) => Ok(document),
            other => {
                let value = other.as_ref().map_or(ValueRef::Null, Value::as_ref);
                let message = format!(
                    "'newRoot' expression must evaluate to an object, but resulting value was: {value}. Type of resulting value: '{kind}'."
                );
                Err(Error::new(40228, message))
            }
        }
    }

    /// Returns the fields that the expression reads.
    pub fn dependencies(&self) -> Dependencies {
        self.new_root.dependencies()
    }

    /// Returns the lineage of a path, or `None` if it is unknown.
    pub fn lineage(&self, path: &Path) -> Option<FieldLineage> {
        // If the field is not a document, the stage fails. A filter that runs before it would hide
        // the error.
        let is_field = |path: String| !path.is_empty();
        if self.new_root.field_path().is_some_and(is_field) {
            None
        } else {
            self.new_root.lineage(path.components())
        }
    }

    /// Returns the expression of the new document.
    pub fn new_root(&self) -> &Expression {
        &self.new_root
    }
}
