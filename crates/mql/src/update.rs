//! Updates: what becomes of a document.
//!
//! [`Update::parse`] takes any of the forms that MongoDB has: operators (`{$set: {…}}`), a
//! replacement document, or a pipeline. [`Update::apply`] makes the new document out of BSON bytes,
//! [`Update::upsert`] the one to insert where none matched.
//!
//! Operators become one tree over their paths (`tree`), which is applied in one walk (`apply`).
//! Fields that are there stay where they are; new ones follow in the order of their names, as the
//! manual's "Update Operators Behavior" says. Not here: unique `_id`s, `multi`, writing.
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
//! Reading order: `operators` (the table), `path`, `tree`, `apply`, `rewrite`,
//! `modifier`, `distinct` and the operators, `array_filter`, `replacement`, `pipeline`, `upsert`, `storable`,
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

/// A parsed update. Cloning shares it.
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

/// What an update needs to know besides the document.
#[derive(Clone, Copy, Debug)]
pub struct UpdateContext<'a> {
    /// The filter that chose the document: for the positional `$`, and for how strings are compared.
    pub filter: Option<&'a Filter>,
    /// `$currentDate` and `$$NOW`: milliseconds since 1970, UTC; one value for a whole command.
    pub now_millis: i64,
    /// `$currentDate` with `$type: "timestamp"`, and zero timestamps in replacements.
    pub timestamp: Timestamp,
    /// Of a pipeline: the command's `let` and the statement's `c`, as given to
    /// [`Update::parse_with`].
    pub variables: Option<&'a Variables>,
    /// Zero timestamps in replacements stay what they are.
    pub keeps_zero_timestamps: bool,
}

impl<'a> UpdateContext<'a> {
    /// A context without filter and variables.
    pub fn at(now_millis: i64, timestamp: Timestamp) -> UpdateContext<'a> {
        UpdateContext {
            filter: None,
            now_millis,
            timestamp,
            variables: None,
            keeps_zero_timestamps: false,
        }
    }

    pub fn with_filter(self, filter: &'a Filter) -> UpdateContext<'a> {
        UpdateContext {
            filter: Some(filter),
            ..self
        }
    }
}

/// What an update did to a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// None where it had no effect: `nModified` does not count the document. The bytes may be those
    /// of the original all the same (`$unset` of an element that is null), as in MongoDB.
    pub document: Option<DocumentBuf>,
    /// Which fields may differ.
    pub touched: Touched,
    /// Which fields do, as change events tell it; None where the document was replaced, or might as
    /// well have been.
    pub description: Option<Description>,
}

impl Update {
    /// Parses an update. Errors carry MongoDB's codes: 9 for operators that are unknown or have no
    /// document, 2, 14 and others for bad operands, 40 for paths in conflict, 56 for empty names,
    /// 72 for stages that updates do not allow. A statement's update is parsed before its filter:
    /// where both are wrong, MongoDB reports the update.
    pub fn parse(update: ValueRef<'_>, array_filters: &[Document<'_>]) -> Result<Update, Error> {
        Update::parse_with(update, array_filters, &Variables::new())
    }

    /// The same, with variables that a pipeline's expressions may name.
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

    /// The update that puts this document in the place of another, whatever its names are.
    pub fn replacing(document: Document<'_>) -> Update {
        Update {
            form: Arc::new(Form::Replacement(Replacement::new(document))),
        }
    }

    /// Whether the update is a replacement document, which `multi` does not allow.
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

    /// The document after the update. Errors carry MongoDB's codes: 28 where a path leads through a
    /// value without fields, 2 and 14 where a value has the wrong type, 66 where `_id` would
    /// change, 17419 where the result is too large.
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

    /// The document that an upsert inserts: the filter's equalities, updated. It has no `_id` where
    /// neither filter nor update gives one.
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
