//! Projections of `find`: the fields of the result, and computed fields.
//!
//! A projection either includes fields (`{a: 1}`) or excludes them (`{a: 0}`). Both can have
//! `$slice`, `$elemMatch` and `$meta`. An inclusion can also have the positional `$` and
//! expressions. Existing fields keep the order of the document. Computed fields follow in the order
//! of the projection.
//!
//! ```
//! use windrow_document::doc;
//! use windrow_mql::{Meta, filter::Filter, projection::Projection};
//! let source = doc! { "_id": 0, "a.b": 1 };
//! let projection = Projection::parse(source.as_document(), &Filter::all()).unwrap();
//! let document = doc! { "_id": 7, "a": [{ "b": 1, "c": 2 }], "d": 3 };
//! let projected = projection.apply(document.as_document(), &Meta::default()).unwrap();
//! assert_eq!(projected, doc! { "a": [{ "b": 1 }] });
//! ```
//!
//! Reading order: `parse` (with `path`), `tree`, `apply`, `slice`, `positional`.

mod apply;
mod parse;
pub(crate) mod path;
mod positional;
mod slice;
mod tree;

use std::sync::Arc;

use windrow_document::path::Path;
use windrow_document::{Document, DocumentBuf};

use crate::expression::Dependencies;
use crate::filter::{Environment, Filter};
use crate::{Error, Meta};
use positional::Positional;
use tree::Tree;

/// A parsed projection. Clones share it.
#[derive(Clone, Debug)]
pub struct Projection(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    mode: ProjectionMode,
    root: Tree,
    positional: Option<Positional>,
    environment: Environment,
    source: DocumentBuf,
}

/// What a projection does with fields that it does not name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProjectionMode {
    /// It leaves them out.
    Inclusion,
    /// It keeps them.
    Exclusion,
}

impl Projection {
    /// Parses a projection of the documents that `filter` matches. The empty projection keeps all
    /// fields. Fails with MongoDB's error numbers.
    pub fn parse(document: Document<'_>, filter: &Filter) -> Result<Projection, Error> {
        Projection::parse_with(document, filter, &Environment::default())
    }

    /// As [`Projection::parse`], with the variables and the collation of expressions.
    pub fn parse_with(
        document: Document<'_>,
        filter: &Filter,
        environment: &Environment,
    ) -> Result<Projection, Error> {
        let parsed = parse::parse(document, filter, environment)?;
        let projection = Projection(Arc::new(Inner {
            mode: parsed.mode,
            root: parsed.root,
            positional: parsed.positional,
            environment: environment.clone(),
            source: document.to_buf(),
        }));
        let needs = projection.dependencies();
        let is_missing = |name| {
            let message = format!("query requires {name} metadata, but it is not available");
            Err(Error::new(40218, message))
        };
        let needs_text = needs.text_score || needs.score || needs.search;
        if needs_text && filter.text().is_none() {
            return is_missing("text score");
        }
        if needs.score_details {
            return is_missing("score details");
        }
        if needs.nearest && filter.near().is_none() {
            return is_missing("$geoNear distance");
        }
        Ok(projection)
    }

    /// Applies the projection.
    ///
    /// # Errors
    ///
    /// - 51246: the positional `$` is applied to an array, and the filter matched no array element.
    /// - Errors of expressions.
    pub fn apply(&self, input: Document<'_>, meta: &Meta) -> Result<DocumentBuf, Error> {
        let inner = &*self.0;
        let projected = apply::apply(inner, input, meta)?;
        match &inner.positional {
            Some(positional) => positional.apply(input, projected),
            None => Ok(projected),
        }
    }

    /// Returns what happens to fields that the projection does not name.
    pub fn mode(&self) -> ProjectionMode {
        self.0.mode
    }

    /// Returns `true` if the projection has the positional `$`.
    pub fn is_positional(&self) -> bool {
        self.0.positional.is_some()
    }

    /// Returns `true` if documents are not changed.
    pub fn is_identity(&self) -> bool {
        self.0.mode == ProjectionMode::Exclusion && self.0.root.is_empty()
    }

    /// Returns the only paths that the projection reads, or `None` if it needs the whole document.
    /// A plan is covered if an index contains all of them.
    pub fn needed_paths(&self) -> Option<Vec<Path>> {
        let dependencies = self.dependencies();
        let is_open = dependencies.whole || dependencies.needs_origin();
        if self.0.mode == ProjectionMode::Exclusion || self.0.positional.is_some() || is_open {
            return None;
        }
        Some(
            dependencies
                .paths
                .iter()
                .map(|path| Path::parse(path))
                .collect(),
        )
    }

    /// Returns the paths of an inclusion without computed fields, in their written order. `None`
    /// for other projections. Explain calls this a simple projection.
    pub fn plain_inclusion(&self) -> Option<Vec<Path>> {
        let plain = self.0.mode == ProjectionMode::Inclusion && self.0.positional.is_none();
        plain.then(|| self.0.root.plain_paths()).flatten()
    }

    /// Returns `true` if the projection reads `{$meta: "textScore"}`.
    pub fn needs_text_score(&self) -> bool {
        self.dependencies().text_score
    }

    /// Returns the fields and the metadata that the projection reads.
    pub fn dependencies(&self) -> Dependencies {
        let mut dependencies = Dependencies::default();
        self.0.root.add_dependencies("", &mut dependencies);
        dependencies
    }

    /// Returns the projection as written, for explain.
    pub fn source(&self) -> Document<'_> {
        self.0.source.as_document()
    }
}
