//! `$lookup`: documents of another collection for each row.
//!
//! For an equality, the other collection is queried through an index. Without an index it is read
//! once into a hash table, of its documents, or of their ids if the documents are too large. A
//! pipeline runs for each row, or only once if it does not depend on the row.

mod join;
mod parse;
mod table;

use std::sync::Arc;

use windrow_document::path::Path;
use windrow_document::{Array, ArrayBuf, DocumentBuf, Value, ValueRef};
use windrow_interrupt::Interrupt;
use windrow_mql::FieldLineage;
use windrow_mql::expression::{Dependencies, Expression, Variables};
use windrow_mql::filter::Environment;
use windrow_mql::memory::check_document;

use super::chain::matching;
use super::path_values::{with_value, with_written};
use super::rows::{ARRAY_BYTES_MAX, DocumentConsumer, each};
use super::stage::{ExplainContext, Pipeline, PipelineContext, Transformation, first_stage_name};
use super::transform::row_context;
use super::unwind::Unwind;
use crate::Error;
use crate::cursor::Cursor;
use crate::operators::{BoxOperator, Counters, Operator, ReadCounters, counted};
use crate::row::{Content, Pace, Row};
use crate::source::Source;
use join::{Join, JoinResult};

pub(super) use parse::parse;

/// A parsed `$lookup`.
#[derive(Clone, Debug)]
pub struct Lookup {
    from: String,
    into: Path,
    equality: Option<Equality>,
    variables: Vec<(String, Expression)>,
    pipeline: Option<SubPipeline>,
    /// The `$unwind` of the result that follows the stage.
    unwind: Option<Unwind>,
}

/// The fields that must be equal: one of the row, one of the other collection.
#[derive(Clone, Debug)]
pub struct Equality {
    pub local: Path,
    pub foreign: Path,
}

/// A pipeline that is parsed again for each row, with the values of the row.
#[derive(Clone, Debug)]
struct SubPipeline {
    stages: ArrayBuf,
    /// The parsed pipeline, if it is the same for every row.
    fixed: Option<Pipeline>,
    /// `true` if the result is random, and different each time.
    is_random: bool,
}

impl Transformation for Lookup {
    fn open(&self, input: BoxOperator, context: &PipelineContext) -> Result<BoxOperator, Error> {
        let operator = LookupOperator::new(self.clone(), context.deeper(), input)?;
        Ok(Box::new(operator))
    }

    fn dependencies(&self) -> Dependencies {
        let mut found = Dependencies::default();
        found.extend(
            self.equality
                .iter()
                .fold(Dependencies::default(), |mut all, one| {
                    all.add(&one.local.to_string());
                    all
                }),
        );
        self.variables
            .iter()
            .for_each(|(_, value)| found.extend(value.dependencies()));
        found
    }

    fn lineage(&self, path: &Path) -> Option<FieldLineage> {
        let by_unwind = match &self.unwind {
            Some(unwind) => unwind.lineage(path),
            None => Some(FieldLineage::unchanged(path)),
        };
        by_unwind.and(FieldLineage::outside(path, &self.into))
    }

    fn has_lineage(&self) -> bool {
        true
    }

    fn keeps_rows(&self) -> bool {
        self.unwind.is_none()
    }

    /// Takes in the `$unwind` if it unwinds the result of this stage. The array is then never
    /// built.
    fn with_unwind(&self, unwind: &Unwind) -> Option<Arc<dyn Transformation>> {
        let is_own = self.unwind.is_none() && unwind.path == self.into;
        is_own.then(|| {
            let unwind = Some(unwind.clone());
            Arc::new(Lookup {
                unwind,
                ..self.clone()
            }) as Arc<dyn Transformation>
        })
    }

    fn collect_collections(&self, names: &mut Vec<String>) {
        names.push(self.from.clone());
        if let Some(pipeline) = self.pipeline.as_ref().and_then(|one| one.fixed.as_ref()) {
            names.extend(pipeline.other_collections());
        }
    }

    fn explained(
        &self,
        mut shown: DocumentBuf,
        reads: Option<&ReadCounters>,
        _: &ExplainContext<'_>,
    ) -> Result<DocumentBuf, Error> {
        if let Some(reads) = reads {
            for (name, count) in [
                ("totalDocsExamined", reads.documents_examined),
                ("totalKeysExamined", reads.keys_examined),
                ("collectionScans", reads.collection_scans),
            ] {
                let count = i64::try_from(count).unwrap_or(i64::MAX);
                shown.push(name, Value::Int64(count));
            }
            let indexes = reads.indexes.iter();
            let indexes = indexes.map(|name| Value::String(name.clone()));
            shown.push("indexesUsed", Value::Array(indexes.collect()));
        }
        Ok(shown)
    }
}

pub(super) struct LookupOperator {
    lookup: Arc<Lookup>,
    context: PipelineContext,
    source: Arc<dyn Source>,
    join: Option<Join>,
    /// The result of a pipeline that is the same for every row.
    cached: Option<Vec<Content>>,
    /// The row whose documents are returned one by one.
    current: Option<JoinedRow>,
    input: BoxOperator,
    counters: Counters,
    /// The counters of reads from the other collection.
    reads: ReadCounters,
    pace: Pace,
}

/// A row, and the remaining documents that were found for it.
struct JoinedRow {
    row: Row,
    /// The position of the next document.
    position: usize,
    rest: std::vec::IntoIter<Content>,
}

/// Documents that were found for a row, with their total size.
struct FoundDocuments<'f> {
    from: &'f str,
    documents: Vec<Content>,
    bytes: usize,
}

impl<'f> FoundDocuments<'f> {
    /// `from` is the name of the collection, for the error.
    fn new(from: &'f str) -> FoundDocuments<'f> {
        FoundDocuments {
            from,
            documents: Vec::new(),
            bytes: 0,
        }
    }

    /// Adds a document. Fails with 4568 if the documents become too large.
    fn push(&mut self, content: Content) -> Result<(), Error> {
        self.bytes += content.as_bytes().len();
        check_found(self.from, self.bytes)?;
        self.documents.push(content.into_shared());
        Ok(())
    }
}

/// Returns `true` if the condition of an equality follows the first stage, because that produces
/// the rows: `$documents`, `$search` and `$searchMeta`.
fn condition_follows(stages: Array<'_>) -> bool {
    let name = first_stage_name(stages);
    matches!(name, Some("$documents" | "$search" | "$searchMeta"))
}

/// Fails with 4568 if the documents found for a row have more than `ARRAY_BYTES_MAX` bytes.
fn check_found(from: &str, bytes: usize) -> Result<(), Error> {
    if bytes <= ARRAY_BYTES_MAX {
        return Ok(());
    }
    let message = format!(
        "Total size of documents in {from} matching pipeline's $lookup stage exceeds {ARRAY_BYTES_MAX} bytes"
    );
    Err(Error::new(4568, message))
}

impl LookupOperator {
    pub fn new(
        lookup: Lookup,
        context: PipelineContext,
        input: BoxOperator,
    ) -> Result<LookupOperator, Error> {
        let source = context.source(&lookup.from)?;
        let join = lookup
            .equality
            .clone()
            .map(|equality| Join::new(equality, source.clone()));
        Ok(LookupOperator {
            lookup: Arc::new(lookup),
            context,
            source,
            join,
            cached: None,
            current: None,
            input,
            counters: Counters::default(),
            reads: ReadCounters::default(),
            pace: Pace::default(),
        })
    }

    /// Passes each document that is found for a row to `take`.
    fn find(
        &mut self,
        row: &Row,
        interrupt: &dyn Interrupt,
        take: &mut DocumentConsumer<'_>,
    ) -> Result<(), Error> {
        // Each row has its own cursor, which may have too few rows to check the interrupt.
        interrupt.check()?;
        let among = self.pipeline_with_condition(row);
        let join = self.join.as_mut().filter(|_| among.is_none());
        let Some(sub) = &self.lookup.pipeline else {
            let Some(join) = join else {
                return Ok(());
            };
            let found = join.matching(row.document(), &self.context, &mut self.reads, interrupt);
            return match found? {
                JoinResult::Records(rows) => rows.into_iter().try_for_each(|row| take(row.content)),
                JoinResult::Query { condition, filter } => {
                    let condition = condition.as_document();
                    let found = matching(condition, filter, &self.source, &self.context)?;
                    each(found, &mut self.reads, interrupt, take)
                }
            };
        };
        if let (Some(pipeline), true, None) = (&sub.fixed, join.is_none(), &among) {
            let found = match self.cached.take() {
                Some(found) => found,
                None => {
                    let context = self.context.with_search_of(pipeline);
                    let chain = pipeline.over_source(&self.source, None, &context)?;
                    let view = self.source.view();
                    if sub.is_random
                        || view.is_some_and(|view| parse::is_random(ValueRef::Array(view.stages)))
                    {
                        return each(chain, &mut self.reads, interrupt, take);
                    }
                    let mut found = FoundDocuments::new(&self.lookup.from);
                    let take = &mut |content| found.push(content);
                    each(chain, &mut self.reads, interrupt, take)?;
                    found.documents
                }
            };
            let found = self.cached.insert(found);
            return found.iter().cloned().try_for_each(take);
        }
        let environment = self.environment(row)?;
        let stages = among.as_ref().unwrap_or(&sub.stages).as_array();
        let pipeline = (self.context.parse)(stages, &environment)?;
        let context = PipelineContext {
            environment,
            ..self.context.clone()
        }
        .with_search_of(&pipeline);
        let join = self.join.as_mut().filter(|_| among.is_none());
        let reads = &mut self.reads;
        let joined =
            join.map(|join| join.matching(row.document(), &self.context, reads, interrupt));
        let chain = match joined.transpose()? {
            Some(JoinResult::Records(records)) => {
                Cursor::new(pipeline.over_records(records, &context)?)
            }
            Some(JoinResult::Query { condition, filter }) => pipeline
                .after_filter(condition.as_document(), filter)
                .over_source(&self.source, None, &context)?,
            None => pipeline.over_source(&self.source, None, &context)?,
        };
        each(chain, &mut self.reads, interrupt, take)
    }

    /// Returns the pipeline for a row if there is an equality whose condition follows the first
    /// stage.
    fn pipeline_with_condition(&self, row: &Row) -> Option<ArrayBuf> {
        let stages = self.lookup.pipeline.as_ref()?.stages.as_array();
        let join = self.join.as_ref().filter(|_| condition_follows(stages))?;
        Some(join.with_condition(stages, row.document()))
    }

    /// Returns the document of the row with the array. The documents are written directly into it,
    /// so that they are held in memory only once.
    fn with_found(&mut self, row: &Row, interrupt: &dyn Interrupt) -> Result<DocumentBuf, Error> {
        let lookup = Arc::clone(&self.lookup);
        with_written(row.document(), &lookup.into, |name, builder| {
            builder.begin_array(name);
            let (start, mut count) = (builder.len(), 0usize);
            self.find(row, interrupt, &mut |content| {
                let bytes = content.as_bytes().len();
                check_found(&lookup.from, builder.len() - start + bytes)?;
                check_document(builder.len() + bytes)?;
                let document = ValueRef::Document(content.as_document());
                builder.append(&count.to_string(), document);
                count += 1;
                Ok(())
            })?;
            builder.end();
            Ok(())
        })
    }

    /// Returns the next row of the current unwound row. `None` if it has no more documents.
    fn next_unwound(&mut self, unwind: &Unwind) -> Option<Row> {
        let current = self.current.as_mut()?;
        let content = current.rest.next()?;
        let value = ValueRef::Document(content.as_document());
        let content = unwind.element(&current.row, value, current.position);
        current.position += 1;
        Some(current.row.clone().with(content))
    }

    fn next_of_unwound(
        &mut self,
        unwind: &Unwind,
        interrupt: &dyn Interrupt,
    ) -> Result<Option<Row>, Error> {
        let lookup = Arc::clone(&self.lookup);
        loop {
            self.pace.step(interrupt)?;
            if let Some(row) = self.next_unwound(unwind) {
                self.counters.returned += 1;
                return Ok(Some(row));
            }
            let Some(row) = self.input.next(interrupt)? else {
                return Ok(None);
            };
            let mut found = FoundDocuments::new(&lookup.from);
            self.find(&row, interrupt, &mut |content| found.push(content))?;
            let found = found.documents;
            if found.is_empty() {
                let bare = with_value(row.document(), &self.lookup.into, None);
                if let Some(row) = unwind.empty_row(row.with(bare)) {
                    self.counters.returned += 1;
                    return Ok(Some(row));
                }
                continue;
            }
            self.current = Some(JoinedRow {
                row,
                position: 0,
                rest: found.into_iter(),
            });
        }
    }

    /// Returns the environment with the variables of `let`, computed from the row.
    fn environment(&self, row: &Row) -> Result<Environment, Error> {
        let outer = &self.context.environment;
        let mut variables: Variables = (*outer.variables).clone();
        for (name, value) in &self.lookup.variables {
            let value = value.evaluate(&row_context(row, outer))?;
            variables.set_computed(name, value.into_value())?;
        }
        Ok(Environment {
            variables: Arc::new(variables),
            ..outer.clone()
        })
    }
}

impl Operator for LookupOperator {
    fn next(&mut self, interrupt: &dyn Interrupt) -> Result<Option<Row>, Error> {
        if let Some(unwind) = &Arc::clone(&self.lookup).unwind {
            return self.next_of_unwound(unwind, interrupt);
        }
        let Some(row) = self.input.next(interrupt)? else {
            return Ok(None);
        };
        let document = self.with_found(&row, interrupt)?;
        self.counters.returned += 1;
        Ok(Some(row.with(document)))
    }

    fn reads(&self) -> Option<ReadCounters> {
        Some(self.reads.clone())
    }

    counted!(counters, input);
}
