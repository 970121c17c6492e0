//! Joins: finds documents of a collection whose field equals a value of a row.

use std::sync::Arc;

use windrow_document::{Array, ArrayBuf, Document, DocumentBuf, Value, ValueRef, doc};
use windrow_index::Definition;
use windrow_interrupt::Interrupt;
use windrow_mql::filter::Filter;

use super::Equality;
use super::table::{JoinTable, TableRows};
use crate::Error;
use crate::aggregate::chain::matching;
use crate::aggregate::path_values::visit;
use crate::aggregate::stage::PipelineContext;
use crate::operators::ReadCounters;
use crate::row::Row;
use crate::source::Source;

/// Finds the documents of the other collection for each row.
pub struct Join {
    equality: Equality,
    source: Arc<dyn Source>,
    method: Option<JoinMethod>,
}

enum JoinMethod {
    /// A query for each row, because there is an index, or a table would be too large.
    Query,
    Table(JoinTable),
}

/// The documents found for a row.
pub enum JoinResult {
    /// Documents from a table, in natural order.
    Records(Vec<Row>),
    /// The documents have to be queried from the collection.
    Query {
        /// The condition on the documents.
        condition: DocumentBuf,
        /// The parsed condition.
        filter: Filter,
    },
}

impl Join {
    pub fn new(equality: Equality, source: Arc<dyn Source>) -> Join {
        Join {
            equality,
            source,
            method: None,
        }
    }

    /// Returns the documents whose field equals that of the row. Adds the counters of the reads to
    /// `reads`.
    pub fn matching(
        &mut self,
        row: Document<'_>,
        context: &PipelineContext,
        reads: &mut ReadCounters,
        interrupt: &dyn Interrupt,
    ) -> Result<JoinResult, Error> {
        let condition = self.condition(row);
        let filter = Filter::parse_with(condition.as_document(), &context.environment)?;
        if self.method.is_none() {
            self.method = Some(self.choose(context, reads, interrupt)?);
        }
        if let Some(JoinMethod::Table(table)) = &self.method
            && let Some(found) = table.matching(&filter, &*self.source, reads, interrupt)?
        {
            return Ok(JoinResult::Records(found));
        }
        Ok(JoinResult::Query { condition, filter })
    }

    /// Returns the pipeline with the condition inserted after its first stage, which is
    /// `$documents`.
    pub fn with_condition(&self, stages: Array<'_>, row: Document<'_>) -> ArrayBuf {
        let matching = doc! { "$match": (self.condition(row)) };
        let mut stages = stages.iter().map(ValueRef::to_value);
        let first = stages.next();
        first
            .into_iter()
            .chain([Value::Document(matching)])
            .chain(stages)
            .collect()
    }

    /// Returns the condition on the other collection. A missing value counts as null. Regular
    /// expressions are compared as values.
    fn condition(&self, row: Document<'_>) -> DocumentBuf {
        let mut values: Vec<ValueRef<'_>> = Vec::new();
        let path = self.equality.local.components();
        visit(ValueRef::Document(row), path, &mut |value| {
            values.push(value)
        });
        if values.is_empty() {
            values.push(ValueRef::Null);
        }
        let has_regex = values
            .iter()
            .any(|value| matches!(value, ValueRef::Regex { .. }));
        let foreign = self.equality.foreign.to_string();
        let equals = |value: ValueRef<'_>| {
            let mut condition = doc! {};
            condition.push("$eq", value.to_value());
            let mut filter = DocumentBuf::new();
            filter.push(&foreign, condition);
            filter
        };
        match values.as_slice() {
            [value] => equals(*value),
            _ if has_regex => {
                let branches: ArrayBuf = values
                    .into_iter()
                    .map(|value| Value::Document(equals(value)))
                    .collect();
                doc! { "$or": (Value::Array(branches)) }
            }
            _ => {
                let list: ArrayBuf = values.into_iter().collect();
                let mut filter = DocumentBuf::new();
                filter.push(&foreign, doc! { "$in": (Value::Array(list)) });
                filter
            }
        }
    }

    fn choose(
        &self,
        context: &PipelineContext,
        reads: &mut ReadCounters,
        interrupt: &dyn Interrupt,
    ) -> Result<JoinMethod, Error> {
        let leads = |definition: &Arc<Definition>| {
            definition
                .fields
                .first()
                .is_some_and(|first| first.path == self.equality.foreign)
                && !definition.sparse
                && definition.partial.is_none()
                && !definition.is_text()
                && !definition.is_geo()
                && !definition.hidden
                && definition.collation == context.environment.collation
        };
        if self.source.indexes().iter().any(leads) {
            return Ok(JoinMethod::Query);
        }
        let mut documents = matching(Document::EMPTY, Filter::all(), &self.source, context)?;
        let collation = context.environment.collation.as_deref();
        let rows = TableRows {
            cursor: &mut documents,
            are_stored: self.source.view().is_none(),
        };
        let table = JoinTable::read(&self.equality, rows, collation, interrupt)?;
        documents.add_reads(reads);
        Ok(table.map_or(JoinMethod::Query, JoinMethod::Table))
    }
}
