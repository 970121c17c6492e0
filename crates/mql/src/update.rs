//! Updates of one document.
//!
//! [`Update::parse`] accepts all forms of MongoDB's updates: operators (`{$set: {…}}`), a
//! replacement document, or a pipeline. [`Update::apply`] returns the new document as BSON bytes.
//! [`Update::upsert`] returns the document to insert if no document matches.
//!
//! All operators of an update are one tree over their paths (`tree`), which is applied in one walk
//! (`apply`). Existing fields keep their positions. New fields follow in the order of their names.
//! Source: MongoDB's manual, "Update Operators Behavior". This module does not check that `_id`s
//! are unique and writes nothing.
//!
//! ```
//! use windrow_document::{Timestamp, ValueRef, doc};
//! use windrow_mql::update::{Update, UpdateContext};
//! let update = doc! { "$inc": { "n": 1 }, "$push": { "tags": "new" } };
//! let update = Update::parse(ValueRef::Document(update.as_document()), &[]).unwrap();
//! let context = UpdateContext::at(0, Timestamp { seconds: 0, increment: 1 });
//! let document = doc! { "_id": 1, "n": 1 };
//! let applied = update.apply(document.as_document(), &context).unwrap();
//! assert_eq!(applied.document, Some(doc! { "_id": 1, "n": 2, "tags": ["new"] }));
//! ```
//!
//! Reading order: `operators` (the table), `path`, `tree`, `apply`, `rewrite`, `modifier`,
//! `distinct` and the operators, `array_filter`, `replacement`, `pipeline`, `upsert`, `storable`,
//! `touched`, `description`, `difference`.

mod add_to_set;
mod apply;
mod arithmetic;
mod array_filter;
mod bit;
mod current_date;
mod description;
mod difference;
mod distinct;
mod element_filter;
mod extreme;
mod modifier;
mod operators;
mod path;
mod pipeline;
mod pop;
mod pull;
mod push;
mod rename;
mod replacement;
mod rewrite;
mod set;
mod storable;
mod touched;
mod tree;
mod upsert;

use std::cell::RefCell;
use std::sync::Arc;

use windrow_document::{Document, DocumentBuf, Timestamp, ValueRef};

pub use description::{Description, FieldPath};
pub use difference::difference;
pub use path::order as field_order;
pub use touched::Touched;
pub use upsert::check_filter as check_upsert_filter;

use crate::Error;
use crate::expression::Variables;
use crate::filter::Filter;
use description::Trace;
use difference::short_difference;
use modifier::Run;
use operators::Operators;
use pipeline::Pipeline;
use replacement::Replacement;

/// A parsed update. Clones share it.
#[derive(Clone, Debug)]
pub struct Update {
    form: Arc<Form>,
}

#[derive(Debug)]
enum Form {
    Operators(Operators),
    Replacement(Replacement),
    Pipeline(Pipeline),
}

/// The inputs of an update besides the document.
#[derive(Clone, Copy, Debug)]
pub struct UpdateContext<'a> {
    /// The filter that selected the document. The positional `$` and the collation come from it.
    pub filter: Option<&'a Filter>,
    /// The time of `$currentDate` and `$$NOW` in milliseconds since 1970, UTC. One value for a
    /// whole command.
    pub now_millis: i64,
    /// The timestamp of `$currentDate` with `$type: "timestamp"`, and of zero timestamps in
    /// replacements.
    pub timestamp: Timestamp,
    /// The variables of a pipeline: the command's `let` and the statement's `c`. They must be the
    /// variables of [`Update::parse_with`].
    pub variables: Option<&'a Variables>,
    /// `true` if zero timestamps in replacements are stored as they are.
    pub keeps_zero_timestamps: bool,
}

impl<'a> UpdateContext<'a> {
    /// A context without filter and variables. `now_millis` counts milliseconds since 1970.
    pub fn at(now_millis: i64, timestamp: Timestamp) -> UpdateContext<'a> {
        UpdateContext {
            filter: None,
            now_millis,
            timestamp,
            variables: None,
            keeps_zero_timestamps: false,
        }
    }

    /// The same context with the filter that selected the document.
    pub fn with_filter(self, filter: &'a Filter) -> UpdateContext<'a> {
        UpdateContext {
            filter: Some(filter),
            ..self
        }
    }
}

/// The result of an update of one document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// The new document. `None` if the update had no effect, so that `nModified` does not count the
    /// document. As in MongoDB, the bytes may be equal to the original (`$unset` of an element that
    /// is null).
    pub document: Option<DocumentBuf>,
    /// The fields that may differ.
    pub touched: Touched,
    /// The fields that differ, for change events. `None` if the document was replaced, or if a
    /// replacement would be shorter than the description.
    pub description: Option<Description>,
}

impl Update {
    /// Parses an update. The update of a statement is parsed before its filter, because MongoDB
    /// reports the error of the update if both are invalid.
    ///
    /// # Errors
    ///
    /// - 9: an operator is unknown, or its operand is not a document.
    /// - 40: paths conflict.
    /// - 56: a path or a name is empty.
    /// - 72: an update does not allow a stage.
    /// - 2, 14 and others: an operand is invalid.
    ///
    /// ```
    /// use windrow_document::{Timestamp, ValueRef, doc};
    /// use windrow_mql::update::{Update, UpdateContext};
    /// let source = doc! { "$set": { "items.$[big].checked": true } };
    /// let filter = doc! { "big.qty": { "$gt": 10 } };
    /// let source = ValueRef::Document(source.as_document());
    /// let update = Update::parse(source, &[filter.as_document()])?;
    /// let document = doc! { "items": [{ "qty": 5 }, { "qty": 20 }] };
    /// let context = UpdateContext::at(0, Timestamp { seconds: 1, increment: 1 });
    /// let updated = update.apply(document.as_document(), &context)?.document;
    /// let expected = doc! { "items": [{ "qty": 5 }, { "qty": 20, "checked": true }] };
    /// assert_eq!(updated, Some(expected));
    /// # Ok::<(), windrow_mql::Error>(())
    /// ```
    pub fn parse(update: ValueRef<'_>, array_filters: &[Document<'_>]) -> Result<Update, Error> {
        Update::parse_with(update, array_filters, &Variables::new())
    }

    /// As [`Update::parse`], with variables that a pipeline's expressions can read.
    pub fn parse_with(
        update: ValueRef<'_>,
        array_filters: &[Document<'_>],
        variables: &Variables,
    ) -> Result<Update, Error> {
        let form = match update {
            ValueRef::Document(document) => parse_document(document, array_filters)?,
            ValueRef::Array(_) if !array_filters.is_empty() => {
                return Err(Error::failed_to_parse(
                    "arrayFilters may not be specified for pipeline-style updates",
                ));
            }
            ValueRef::Array(stages) => Form::Pipeline(Pipeline::parse(stages, variables)?),
            _ => {
                return Err(Error::failed_to_parse(
                    "Update argument must be either an object or an array",
                ));
            }
        };
        Ok(Update {
            form: Arc::new(form),
        })
    }

    /// An update that replaces the document by this one, whatever its field names are.
    pub fn replacing(document: Document<'_>) -> Update {
        Update {
            form: Arc::new(Form::Replacement(Replacement::new(document))),
        }
    }

    /// Returns `true` for a replacement document. `multi` does not allow it.
    pub fn is_replacement(&self) -> bool {
        matches!(*self.form, Form::Replacement(_))
    }

    /// The fields that the update can change.
    pub fn touched(&self) -> Touched {
        match &*self.form {
            Form::Operators(operators) => operators.touched().clone(),
            Form::Pipeline(pipeline) => pipeline.touched().clone(),
            Form::Replacement(_) => Touched::All,
        }
    }

    /// Applies the update to a document.
    ///
    /// # Errors
    ///
    /// - 28: a path leads through a value without fields.
    /// - 2, 14: a value has the wrong type.
    /// - 66: the update would change `_id`.
    /// - 17419: the result is too large.
    /// - Errors of expressions and the error of the interrupt.
    pub fn apply(
        &self,
        original: Document<'_>,
        context: &UpdateContext<'_>,
    ) -> Result<Applied, Error> {
        let trace = RefCell::default();
        let run = Run {
            root: original,
            now_millis: context.now_millis,
            timestamp: context.timestamp,
            keeps_zero_timestamps: context.keeps_zero_timestamps,
            is_insert: false,
            collation: context.filter.and_then(Filter::collation),
            trace: &trace,
        };
        let document = self.run(&run, context)?;
        if let Some(document) = &document {
            storable::check_size(document.as_document())?;
        }
        let description = match (&*self.form, &document) {
            (Form::Operators(_), Some(_)) => Some(trace.into_inner().finish()),
            (Form::Pipeline(_), Some(new)) => short_difference(original, new.as_document()),
            (Form::Replacement(_), _) | (_, None) => None,
        };
        Ok(Applied {
            document,
            touched: self.touched(),
            description,
        })
    }

    /// The document that an upsert inserts: the equality conditions of the filter, with the update
    /// applied. It has no `_id` if neither the filter nor the update sets one. Fails as
    /// [`Update::apply`] does, and as [`Filter::equality_fields`] does.
    pub fn upsert(
        &self,
        filter: &Filter,
        context: &UpdateContext<'_>,
    ) -> Result<DocumentBuf, Error> {
        let untold = RefCell::<Trace>::default();
        let run = Run {
            root: Document::EMPTY,
            now_millis: context.now_millis,
            timestamp: context.timestamp,
            keeps_zero_timestamps: context.keeps_zero_timestamps,
            is_insert: true,
            collation: filter.collation(),
            trace: &untold,
        };
        let base = upsert::base(filter, self.is_replacement(), &run)?;
        let run = Run {
            root: base.as_document(),
            ..run
        };
        let without_filter = UpdateContext {
            filter: None,
            ..*context
        };
        let updated = self.run(&run, &without_filter)?;
        upsert::finish(updated.unwrap_or(base))
    }

    fn run(
        &self,
        run: &Run<'_>,
        context: &UpdateContext<'_>,
    ) -> Result<Option<DocumentBuf>, Error> {
        match &*self.form {
            Form::Operators(operators) => {
                let position = match context.filter.filter(|_| operators.is_positional()) {
                    Some(filter) => filter.matching_position(run.root)?.flatten(),
                    None => None,
                };
                operators.apply(run, position)
            }
            Form::Replacement(replacement) => replacement.apply(run),
            Form::Pipeline(pipeline) => pipeline.apply(run, context.variables),
        }
    }
}

fn parse_document(document: Document<'_>, array_filters: &[Document<'_>]) -> Result<Form, Error> {
    match document.first() {
        Some((name, _)) if name.starts_with('$') => {
            Ok(Form::Operators(Operators::parse(document, array_filters)?))
        }
        _ => {
            array_filter::parse(array_filters)?;
            Ok(Form::Replacement(Replacement::new(document)))
        }
    }
}
