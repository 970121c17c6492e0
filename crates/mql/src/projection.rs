//! Projections of `find`: which fields of a document go into the answer, and what is computed.
//!
//! A projection names what is kept (`{a: 1}`) or what is left out (`{a: 0}`); beside either stand
//! `$slice`, `$elemMatch` and `$meta`, and in one that keeps, the positional `$` and expressions.
//! Kept fields stand in the order of the document, computed ones behind them in the order of the
//! projection.
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

/// A parsed projection. Cloning shares it.
#[derive(Clone, Debug)]
pub struct Projection(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    mode: Mode,
    root: Tree,
    positional: Option<Positional>,
    environment: Environment,
    source: DocumentBuf,
}

/// What happens to fields that the projection does not name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// They are left out.
    Inclusion,
    /// They are kept.
    Exclusion,
}

impl Projection {
    /// Parses a projection for documents that the filter finds. The empty projection keeps all.
    pub fn parse(document: Document<'_>, filter: &Filter) -> Result<Projection, Error> {
        Projection::parse_with(document, filter, &Environment::default())
    }

    /// As [`Projection::parse`], with what expressions may refer to.
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
        let asks_text = needs.text_score || needs.score || needs.search;
        if asks_text && filter.text().is_none() {
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

    /// The document as the projection shows it. Errors are those of expressions, and 51246 where
    /// the positional `$` meets an array and the filter gave no place in one.
    pub fn apply(&self, input: Document<'_>, meta: &Meta) -> Result<DocumentBuf, Error> {
        let inner = &*self.0;
        let projected = apply::apply(inner, input, meta)?;
        match &inner.positional {
            Some(positional) => positional.apply(input, projected),
            None => Ok(projected),
        }
    }

    pub fn mode(&self) -> Mode {
        self.0.mode
    }

    /// Whether it has the positional `$`.
    pub fn is_positional(&self) -> bool {
        self.0.positional.is_some()
    }

    /// Whether documents go through unchanged.
    pub fn is_identity(&self) -> bool {
        self.0.mode == Mode::Exclusion && self.0.root.is_empty()
    }

    /// The paths whose values are all that is needed, where that is known; None: the whole
    /// document. A plan is covered where an index has all of them.
    pub fn needed_paths(&self) -> Option<Vec<Path>> {
        let dependencies = self.dependencies();
        let is_open = dependencies.whole || dependencies.needs_origin();
        if self.0.mode == Mode::Exclusion || self.0.positional.is_some() || is_open {
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

    /// The paths that an inclusion without anything computed keeps, in their order; None for any
    /// other projection. This is what explain calls a simple projection.
    pub fn plain_inclusion(&self) -> Option<Vec<Path>> {
        let plain = self.0.mode == Mode::Inclusion && self.0.positional.is_none();
        plain.then(|| self.0.root.plain_paths()).flatten()
    }

    /// Whether `{$meta: "textScore"}` is asked for.
    pub fn needs_text_score(&self) -> bool {
        self.dependencies().text_score
    }

    /// What of a document, and of how the query came to it, the projection reads.
    pub fn dependencies(&self) -> Dependencies {
        let mut dependencies = Dependencies::default();
        self.0.root.add_dependencies("", &mut dependencies);
        dependencies
    }

    /// The projection as it was given, for explain.
    pub fn source(&self) -> Document<'_> {
        self.0.source.as_document()
    }
}
