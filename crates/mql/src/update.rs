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
//! let context = UpdateContext::new(0, Timestamp { seconds: 0, increment: 1 });
//! let document = doc! { "_id": 1, "n": 1 };
//! let applied = update.apply(document.as_document(), &context).unwrap();
//! assert_eq!(applied.document, Some(doc! { "_id": 1, "n": 2, "tags": ["new"] }));
//! ```
//!
//! Reading order: `operators` (the table), `path`, `tree`, `apply`, `rewrite`, `modifier`,
//! `distinct` and the operators, `array_filter`, `replacement`, `pipeline`, `upsert`,
//! `document_checks`, `affected_fields`, `description`, `difference`.

mod add_to_set;
mod affected_fields;
mod apply;
mod arithmetic;
mod array_filter;
mod bit;
mod current_date;
mod description;
mod difference;
mod distinct;
mod document_checks;
mod element_filter;
mod min_max;
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
mod tree;
mod upsert;

use std::cell::RefCell;
use std::sync::Arc;

use windrow_document::{Document, DocumentBuf, Timestamp, ValueRef};

pub use affected_fields::AffectedFields;
pub use description::{FieldPath, UpdateDescription};
pub use difference::difference;
pub use path::order as field_order;
pub use upsert::check_filter as check_upsert_filter;

use crate::Error;
use crate::expression::Variables;
use crate::filter::{EqualityScope, Filter};
use description::DescriptionBuilder;
use difference::short_difference;
use modifier::Execution;
use operators::Operators;
use pipeline::Pipeline;
use replacement::Replacement;

/// A parsed update. Clones share it.
#[derive(Clone, Debug)]
pub struct Update {
    kind: Arc<UpdateKind>,
}

#[derive(Debug)]
enum UpdateKind {
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
    /// Creates a context without filter and variables. `now_millis` counts milliseconds since 1970.
    pub fn new(now_millis: i64, timestamp: Timestamp) -> UpdateContext<'a> {
        UpdateContext {
            filter: None,
            now_millis,
            timestamp,
            variables: None,
            keeps_zero_timestamps: false,
        }
    }

    /// Returns the same context with the filter that selected the document.
    pub fn with_filter(self, filter: &'a Filter) -> UpdateContext<'a> {
        UpdateContext {
            filter: Some(filter),
            ..self
        }
    }
}

/// The result of an update of one document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpdateOutcome {
    /// The new document. `None` if the update had no effect, so that `nModified` does not count the
    /// document. As in MongoDB, the bytes may be equal to the original (`$unset` of an element that
    /// is null).
    pub document: Option<DocumentBuf>,
    /// The fields that may differ.
    pub affected_fields: AffectedFields,
    /// The fields that differ, for change events. `None` if the document was replaced, or if a
    /// replacement would be shorter than the description.
    pub description: Option<UpdateDescription>,
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
    /// - 72: a stage is not allowed in an update.
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
    /// let context = UpdateContext::new(0, Timestamp { seconds: 1, increment: 1 });
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
        let kind = match update {
            ValueRef::Document(document) => parse_document(document, array_filters)?,
            ValueRef::Array(_) if !array_filters.is_empty() => {
                return Err(Error::failed_to_parse(
                    "arrayFilters may not be specified for pipeline-style updates",
                ));
            }
            ValueRef::Array(stages) => UpdateKind::Pipeline(Pipeline::parse(stages, variables)?),
            _ => {
                return Err(Error::failed_to_parse(
                    "Update argument must be either an object or an array",
                ));
            }
        };
        Ok(Update {
            kind: Arc::new(kind),
        })
    }

    /// Returns an update that replaces the document by this one, whatever its field names are.
    pub fn replacement(document: Document<'_>) -> Update {
        Update {
            kind: Arc::new(UpdateKind::Replacement(Replacement::new(document))),
        }
    }

    /// Returns `true` for a replacement document. `multi` does not allow it.
    pub fn is_replacement(&self) -> bool {
        matches!(*self.kind, UpdateKind::Replacement(_))
    }

    /// Returns the fields that the update can change.
    pub fn affected_fields(&self) -> AffectedFields {
        match &*self.kind {
            UpdateKind::Operators(operators) => operators.affected_fields().clone(),
            UpdateKind::Pipeline(pipeline) => pipeline.affected_fields().clone(),
            UpdateKind::Replacement(_) => AffectedFields::All,
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
    ) -> Result<UpdateOutcome, Error> {
        let description_builder = RefCell::default();
        let execution = Execution {
            root: original,
            now_millis: context.now_millis,
            timestamp: context.timestamp,
            keeps_zero_timestamps: context.keeps_zero_timestamps,
            is_insert: false,
            collation: context.filter.and_then(Filter::collation),
            description_builder: &description_builder,
        };
        let document = self.execute(&execution, context)?;
        if let Some(document) = &document {
            document_checks::check_size(document.as_document())?;
        }
        let description = match (&*self.kind, &document) {
            (UpdateKind::Operators(_), Some(_)) => Some(description_builder.into_inner().finish()),
            (UpdateKind::Pipeline(_), Some(new)) => short_difference(original, new.as_document()),
            (UpdateKind::Replacement(_), _) | (_, None) => None,
        };
        Ok(UpdateOutcome {
            document,
            affected_fields: self.affected_fields(),
            description,
        })
    }

    /// Returns the document that an upsert inserts: the equality conditions of the filter, with the
    /// update applied. It has no `_id` if neither the filter nor the update sets one. Fails as
    /// [`Update::apply`] does, and as [`Filter::equality_fields`] does.
    pub fn upsert(
        &self,
        filter: &Filter,
        context: &UpdateContext<'_>,
    ) -> Result<DocumentBuf, Error> {
        let unused_builder = RefCell::<DescriptionBuilder>::default();
        let execution = Execution {
            root: Document::EMPTY,
            now_millis: context.now_millis,
            timestamp: context.timestamp,
            keeps_zero_timestamps: context.keeps_zero_timestamps,
            is_insert: true,
            collation: filter.collation(),
            description_builder: &unused_builder,
        };
        let scope = if self.is_replacement() {
            EqualityScope::OnlyId
        } else {
            EqualityScope::AllFields
        };
        let base = upsert::base(filter, scope, &execution)?;
        let execution = Execution {
            root: base.as_document(),
            ..execution
        };
        let without_filter = UpdateContext {
            filter: None,
            ..*context
        };
        let updated = self.execute(&execution, &without_filter)?;
        upsert::finish(updated.unwrap_or(base))
    }

    fn execute(
        &self,
        execution: &Execution<'_>,
        context: &UpdateContext<'_>,
    ) -> Result<Option<DocumentBuf>, Error> {
        match &*self.kind {
            UpdateKind::Operators(operators) => {
                let position = match context.filter.filter(|_| operators.is_positional()) {
                    Some(filter) => {
                        let found = filter.matching_position(execution.root)?;
                        found.and_then(|found| found.element)
                    }
                    None => None,
                };
                operators.apply(execution, position)
            }
            UpdateKind::Replacement(replacement) => replacement.apply(execution),
            UpdateKind::Pipeline(pipeline) => pipeline.apply(execution, context.variables),
        }
    }
}

fn parse_document(
    document: Document<'_>,
    array_filters: &[Document<'_>],
) -> Result<UpdateKind, Error> {
    match document.first() {
        Some((name, _)) if name.starts_with('$') => Ok(UpdateKind::Operators(Operators::parse(
            document,
            array_filters,
        )?)),
        _ => {
            array_filter::parse(array_filters)?;
            Ok(UpdateKind::Replacement(Replacement::new(document)))
        }
    }
}
