//! Aggregation: pipelines are parsed once and run as chains of operators.
//!
//! The stages at the start of a pipeline that form a query (`$match`, `$sort`, `$skip`, `$limit`)
//! are planned like a `find`. Each later stage is an operator on rows.
//!
//! ```
//! use std::sync::Arc;
//! use windrow_document::{array, doc};
//! use windrow_mql::filter::Environment;
//! use windrow_query::{Aggregate, NoCollection, Pipeline, Source, Uninterrupted};
//! let stages = array![{ "$match": { "n": 1 } }, { "$count": "found" }];
//! let pipeline = Pipeline::parse(stages.as_array(), &Environment::default()).unwrap();
//! let nothing = NoCollection { namespace: "a.b".to_owned() };
//! let source: Arc<dyn Source> = Arc::new(nothing.clone());
//! let mut cursor = Aggregate::new(pipeline).open(&source, &Arc::new(nothing)).unwrap();
//! assert!(cursor.next(&Uninterrupted).unwrap().is_none());
//! ```
//!
//! Reading order: `stage` (pipelines and stages), `filter_pushdown` (moves filters towards the
//! start), `query_pushdown` (the order of stages, and the query at the start), `chain` (runs the
//! stages), `explain`, one file for each stage, `parse` (the table of stages).

mod boundaries;
mod bucket;
mod bucket_auto;
mod chain;
mod computed_fields;
mod densify;
mod documents;
mod events;
mod explain;
mod facet;
mod fill;
mod filter_pushdown;
mod geo_near;
mod granularity;
mod graph_lookup;
mod group;
mod group_key;
mod group_spill;
mod group_stage;
mod group_table;
mod lookup;
mod operand;
mod origin;
pub mod output;
mod parse;
mod path_values;
mod query_pushdown;
mod rank_fusion;
mod rows;
mod sample;
mod search;
mod stage;
mod statistics;
mod transform;
mod union;
mod unwind;
mod window_fields;

use std::sync::Arc;

use windrow_document::{ArrayBuf, DocumentBuf, Value, doc};
use windrow_interrupt::Interrupt;
use windrow_mql::filter::Filter;

use crate::Error;
use crate::cursor::Cursor;
use crate::explain::{ExplainedCommand, Verbosity};
use crate::find::{Find, Hint};
use crate::source::{Collections, Source};
pub use events::EventPipeline;
pub(crate) use path_values::visit;
use stage::{ExplainContext, PipelineContext};
pub use stage::{ParsePipeline, Pipeline};

/// The parsed request of an `aggregate`.
#[derive(Clone, Debug)]
pub struct Aggregate {
    /// The pipeline.
    pub pipeline: Pipeline,
    /// The index to use for the query at the start.
    pub hint: Option<Hint>,
    /// Operators may use files beyond their memory limits.
    pub allow_disk_use: bool,
}

impl Aggregate {
    /// Returns a request without hint and without files.
    pub fn new(pipeline: Pipeline) -> Aggregate {
        Aggregate {
            pipeline,
            hint: None,
            allow_disk_use: false,
        }
    }

    /// Opens a cursor before the first row. `source` is the pipeline's own collection;
    /// `collections` are the collections that its stages can read. Fails if a stage cannot run on
    /// the source, and as [`Find::plan`] does.
    pub fn open<C: Collections + 'static>(
        &self,
        source: &Arc<dyn Source>,
        collections: &Arc<C>,
    ) -> Result<Cursor, Error> {
        let context = self.context(&**source, collections.clone());
        self.pipeline
            .over_source(source, self.hint.clone(), &context)
    }

    fn context(&self, source: &dyn Source, collections: Arc<dyn Collections>) -> PipelineContext {
        let namespace = source.namespace();
        let database = namespace.split('.').next().unwrap_or_default();
        PipelineContext {
            collections,
            database: database.to_owned(),
            environment: self.pipeline.environment.clone(),
            allow_disk_use: self.allow_disk_use,
            parse: Pipeline::parse_inner,
            depth: 0,
        }
    }

    /// Explains the pipeline: the query at the start like a `find`, then the stages. Runs them if
    /// the verbosity requires it.
    pub fn explain<C: Collections + 'static>(
        &self,
        source: &Arc<dyn Source>,
        collections: &Arc<C>,
        verbosity: Verbosity,
        interrupt: &dyn Interrupt,
    ) -> Result<DocumentBuf, Error> {
        let context = self.context(&**source, collections.clone());
        let over = self.pipeline.collection_stages(source, &context)?;
        let begins_with_query =
            statistics::first(&over.stages).is_none() && !self.pipeline.begins_with_search();
        if self.pipeline.output.is_none() && begins_with_query {
            let (find, rest) =
                query_pushdown::split(&over.stages, &**over.source, self.hint.clone(), &context)?;
            if rest.is_empty() {
                return find.explain(
                    over.source,
                    verbosity,
                    &ExplainedCommand::Pipeline,
                    interrupt,
                );
            }
        }
        let how = ExplainContext {
            context: &context,
            verbosity,
            interrupt,
        };
        let stages = self.pipeline.explained(source, self.hint.clone(), &how)?;
        Ok(explanation(stages))
    }

    /// Explains the pipeline after a stage that produces its own documents. `source` contains the
    /// documents of that stage.
    pub fn explain_after_first<C: Collections + 'static>(
        &self,
        first: DocumentBuf,
        source: &Arc<dyn Source>,
        collections: &Arc<C>,
        verbosity: Verbosity,
        interrupt: &dyn Interrupt,
    ) -> Result<DocumentBuf, Error> {
        let context = self.context(&**source, collections.clone());
        let open = || Ok(Find::new(Filter::all()).open(source)?.into_operator());
        let how = ExplainContext {
            context: &context,
            verbosity,
            interrupt,
        };
        let stages = self
            .pipeline
            .explain_after(first, &self.pipeline.stages, &open, &how)?;
        Ok(explanation(stages))
    }
}

fn explanation(stages: Vec<DocumentBuf>) -> DocumentBuf {
    let stages: ArrayBuf = stages.into_iter().map(Value::Document).collect();
    doc! { "explainVersion": "1", "stages": stages }
}

impl Collections for crate::NoCollection {
    fn source(&self, database: &str, collection: &str) -> Result<Arc<dyn Source>, Error> {
        Ok(Arc::new(crate::NoCollection {
            namespace: format!("{database}.{collection}"),
        }))
    }
}
