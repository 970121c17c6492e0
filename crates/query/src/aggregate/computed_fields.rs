//! Adds the values that a stage has computed, with the semantics of `$addFields`.

use windrow_document::path::Path;
use windrow_document::{Document, DocumentBuf, Value, ValueRef};
use windrow_mql::expression::{Context, Scope, Variables};
use windrow_mql::reshape::Reshape;

use crate::Error;

/// An `$addFields` with variables: `{"d.a": "$$v0", "s": "$$v1"}`.
#[derive(Clone, Debug)]
pub(super) struct ComputedFields {
    names: Vec<String>,
    reshape: Reshape,
}

impl ComputedFields {
    /// Parses the paths. There must be at least one. Fails as `$addFields` does.
    pub fn parse<'p>(paths: impl Iterator<Item = &'p Path>) -> Result<ComputedFields, Error> {
        let (mut names, mut variables) = (Vec::new(), Variables::new());
        let mut specification = DocumentBuf::new();
        for (number, path) in paths.enumerate() {
            let name = format!("v{number}");
            specification.push(&path.to_string(), format!("$${name}"));
            variables.set(&name, None);
            names.push(name);
        }
        let specification = ValueRef::Document(specification.as_document());
        let scope = Scope::with_variables(&variables);
        let reshape = Reshape::parse_add_fields(specification, &scope)?;
        Ok(ComputedFields { names, reshape })
    }

    /// Returns the document with the values, in the order of the paths. `None` removes a field.
    pub fn apply(
        &self,
        document: Document<'_>,
        values: impl Iterator<Item = Option<Value>>,
    ) -> Result<DocumentBuf, Error> {
        let mut variables = Variables::new();
        for (name, value) in self.names.iter().zip(values) {
            variables.set(name, value);
        }
        let context = Context::new(document).with_variables(&variables);
        Ok(self.reshape.apply(document, &context)?)
    }
}
