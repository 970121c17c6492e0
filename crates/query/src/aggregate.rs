//! Aggregation: pipelines, parsed once, that run as chains of operators.
//!
//! What stands at the front of a pipeline and is a query (`$match`, `$sort`, `$skip`, `$limit`) is
//! planned like one; everything behind it is an operator on rows.
//!
//! ```
//! use std::sync::Arc;
//! use windrow_document::{array, doc};
//! use windrow_mql::filter::{Environment, Filter};
//! use windrow_query::{Aggregate, NoCollection, Pipeline, Source, Uninterrupted};
//! let stages = array![{ "$match": { "n": 1 } }, { "$count": "found" }];
//! let pipeline = Pipeline::parse(stages.as_array(), &Environment::default()).unwrap();
//! let nothing = NoCollection { namespace: "a.b".to_owned() };
//! let source: Arc<dyn Source> = Arc::new(nothing.clone());
//! let mut cursor = Aggregate::of(pipeline).open(&source, &Arc::new(nothing)).unwrap();
//! assert!(cursor.next(&Uninterrupted).unwrap().is_none());
//! ```
//! Reading order: [`stage`] (the table of stages), `front` (what becomes a query), then one file a
//! stage.

mod bucket;
mod bucket_auto;
mod densify;
mod documents;
mod facet;
mod fill;
mod front;
mod granularity;
mod graph_lookup;
mod group;
mod group_key;
mod group_spill;
mod lookup;
pub mod output;
mod place;
mod sample;
pub mod stage;
mod transform;
mod union;
mod unwind;
mod window_fields;

use std::borrow::Cow;
use std::sync::Arc;

use windrow_document::{Array, ArrayBuf, Document, DocumentBuf, DocumentBuilder, Value, ValueRef};
use windrow_mql::filter::{Environment, Filter};

use crate::Error;
use crate::cursor::Cursor;
use crate::explain::{Verbosity, Wrapping};
use crate::find::{Find, Hint};
use crate::operators::{BoxOperator, Counters, Operator};
use crate::row::{Content, Interrupt, Row};
use crate::source::{Collections, Source};
use output::Output;
pub(crate) use place::visit;
use stage::{Kind, Stage};

/// A parsed pipeline.
#[derive(Clone, Debug)]
pub struct Pipeline {
    stages: Vec<Stage>,
    /// Where the documents go, if not to the client.
    output: Option<Output>,
    environment: Environment,
}

/// The parts of an `aggregate`.
#[derive(Clone, Debug)]
pub struct Aggregate {
    pub pipeline: Pipeline,
    pub hint: Option<Hint>,
    pub allow_disk_use: bool,
}

/// Pipelines within pipelines.
const NESTED_MAX: usize = 20;

/// How many pipelines lie within each other in the stages, at most.
fn nesting(stages: Array<'_>) -> usize {
    let operands = stages
        .iter()
        .filter_map(ValueRef::as_document)
        .filter_map(Document::first);
    let within = operands.filter_map(|(name, operand)| {
        let operand = operand.as_document()?;
        match name {
            "$lookup" | "$unionWith" => Some(1 + nesting(operand.get("pipeline")?.as_array()?)),
            "$facet" => operand
                .iter()
                .filter_map(|(_, inner)| inner.as_array())
                .map(nesting)
                .max(),
            _ => None,
        }
    });
    within.max().unwrap_or(0)
}

/// What stages need besides their input.
#[derive(Clone)]
pub(crate) struct Setting {
    pub collections: Arc<dyn Collections>,
    pub database: String,
    pub environment: Environment,
    pub allow_disk_use: bool,
}

/// A collection, and the stages that run over it.
type OverBase<'s> = (&'s Arc<dyn Source>, Cow<'s, [Stage]>);

impl Setting {
    /// Another collection of the same database.
    pub fn source(&self, collection: &str) -> Result<Arc<dyn Source>, Error> {
        if collection == documents::NO_COLLECTION {
            let namespace = format!("{}.{collection}", self.database);
            return Ok(Arc::new(crate::NoCollection { namespace }));
        }
        self.collections.source(&self.database, collection)
    }
}

impl Pipeline {
    /// Parses the stages. `environment` holds the command's `let` and its time. Errors: 40324 for a
    /// stage that there is not, 238 for one that is not supported yet, 40323 for a stage of several
    /// fields, 14 for what is no document, 232 for more than 20 pipelines within each
    /// other, 17313 for `$text` behind the first stage, 40218 for a text
    /// score without `$text`, and those of the stages.
    pub fn parse(stages: Array<'_>, environment: &Environment) -> Result<Pipeline, Error> {
        if nesting(stages) > NESTED_MAX {
            return Err(Error::new(
                232,
                format!("Maximum number of nested sub-pipelines exceeded. Limit is {NESTED_MAX}"),
            ));
        }
        let pipeline = Pipeline::parse_inner(stages, environment)?;
        stage::check_scores(&pipeline.stages)?;
        Ok(pipeline)
    }

    /// Parses a pipeline on rows whose text scores are not its own matter.
    pub(crate) fn parse_inner(
        stages: Array<'_>,
        environment: &Environment,
    ) -> Result<Pipeline, Error> {
        let (stages, output) = output::split(stages, environment)?;
        let parsed = stage::parse_all(stages.as_array(), environment)?;
        Ok(Pipeline {
            stages: front::ordered(parsed, environment)?,
            output,
            environment: environment.clone(),
        })
    }

    /// Where the documents go, if not to the client.
    pub fn output(&self) -> Option<&Output> {
        self.output.as_ref()
    }

    /// The variables and the time that its expressions see.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// The collections of the same database that the stages read, besides the pipeline's own.
    pub fn other_collections(&self) -> Vec<String> {
        let mut names = Vec::new();
        self.stages
            .iter()
            .for_each(|stage| stage.collect_collections(&mut names));
        names
    }

    /// Whether it has stages.
    pub fn is_empty(&self) -> bool {
        self.stages.is_empty()
    }

    /// The chain of operators over a collection or view.
    pub(crate) fn over_source(
        &self,
        source: &Arc<dyn Source>,
        hint: Option<Hint>,
        setting: &Setting,
    ) -> Result<BoxOperator, Error> {
        let (source, stages) = self.over_base(source)?;
        let (find, rest) = front::split(&stages);
        let find = Find {
            hint,
            allow_disk_use: setting.allow_disk_use,
            ..find
        };
        let front = find.open(source)?.into_operator();
        stage::chain(rest, front, setting)
    }

    /// The stages as they run over a collection: behind those of the view that the source is.
    fn over_base<'s>(&'s self, source: &'s Arc<dyn Source>) -> Result<OverBase<'s>, Error> {
        let Some(view) = source.view() else {
            return Ok((source, Cow::Borrowed(&self.stages)));
        };
        // A view knows no variables of who reads it.
        let environment = Environment {
            now: self.environment.now,
            ..Environment::default()
        };
        let mut stages = Pipeline::parse_inner(view.stages, &environment)?.stages;
        stage::check_joint(&stages, &self.stages)?;
        stages.extend(self.stages.iter().cloned());
        Ok((view.base, front::ordered(stages, &self.environment)?.into()))
    }

    /// The chain of operators over rows that are there already.
    pub(crate) fn over_rows(
        &self,
        rows: BoxOperator,
        setting: &Setting,
    ) -> Result<BoxOperator, Error> {
        stage::chain(&self.stages, rows, setting)
    }
}

impl Aggregate {
    pub fn of(pipeline: Pipeline) -> Aggregate {
        Aggregate {
            pipeline,
            hint: None,
            allow_disk_use: false,
        }
    }

    /// A cursor at the start. `source` is the pipeline's own collection, `collections` are those that
    /// its stages may reach.
    pub fn open<C: Collections + 'static>(
        &self,
        source: &Arc<dyn Source>,
        collections: &Arc<C>,
    ) -> Result<Cursor, Error> {
        let setting = self.setting(&**source, collections.clone());
        let operator = self
            .pipeline
            .over_source(source, self.hint.clone(), &setting)?;
        Ok(Cursor::of(operator))
    }

    fn setting(&self, source: &dyn Source, collections: Arc<dyn Collections>) -> Setting {
        let namespace = source.namespace();
        let database = namespace.split('.').next().unwrap_or_default();
        Setting {
            collections,
            database: database.to_owned(),
            environment: self.pipeline.environment.clone(),
            allow_disk_use: self.allow_disk_use,
        }
    }

    /// The plan of the front as `find` explains it, and behind it the stages, run where the verbosity
    /// says so.
    pub fn explain<C: Collections + 'static>(
        &self,
        source: &Arc<dyn Source>,
        collections: &Arc<C>,
        verbosity: Verbosity,
        interrupt: &dyn Interrupt,
    ) -> Result<DocumentBuf, Error> {
        let setting = self.setting(&**source, collections.clone());
        let (source, stages) = self.pipeline.over_base(source)?;
        let (find, rest) = front::split(&stages);
        let find = Find {
            hint: self.hint.clone(),
            allow_disk_use: self.allow_disk_use,
            ..find
        };
        let cursor = find.explain(source, verbosity, Wrapping::None, interrupt)?;
        let output = self.pipeline.output.as_ref();
        if let Some(output) = output.filter(|_| verbosity.runs()) {
            return Err(output.not_run_by_explain());
        }
        if rest.is_empty() && output.is_none() {
            return Ok(cursor);
        }
        let counts = match verbosity.runs() {
            true => run_counted(&find, rest, source, &setting, interrupt)?,
            false => Vec::new(),
        };
        Ok(print_stages(&cursor, rest, output, &counts))
    }
}

/// How many rows the front and each stage gave.
fn run_counted(
    find: &Find,
    rest: &[Stage],
    source: &Arc<dyn Source>,
    setting: &Setting,
    interrupt: &dyn Interrupt,
) -> Result<Vec<u64>, Error> {
    let mut chain = find.open(source)?.into_operator();
    for stage in rest {
        chain = stage::chain(std::slice::from_ref(stage), chain, setting)?;
    }
    while chain.next(interrupt)?.is_some() {}
    let mut counts = vec![chain.counters().returned];
    let mut inputs = chain.inputs();
    while let Some(input) = inputs.first().copied() {
        counts.push(input.counters().returned);
        inputs = input.inputs();
    }
    counts.truncate(rest.len() + 1);
    counts.reverse();
    Ok(counts)
}

/// The documents of a collection or view that match; `document` is what the filter was parsed from.
pub(crate) fn matching(
    document: Document<'_>,
    filter: Filter,
    source: &Arc<dyn Source>,
    setting: &Setting,
) -> Result<Cursor, Error> {
    if source.view().is_none() {
        return Find::of(filter).open(source);
    }
    // A view's own filters join with it by their documents.
    let mut printed = DocumentBuf::new();
    printed.push("$match", document);
    let stage = Stage::new(printed, Kind::Match(filter));
    let pipeline = Pipeline {
        stages: vec![stage],
        output: None,
        environment: setting.environment.clone(),
    };
    Ok(Cursor::of(pipeline.over_source(source, None, setting)?))
}

fn print_stages(
    cursor: &DocumentBuf,
    rest: &[Stage],
    output: Option<&Output>,
    counts: &[u64],
) -> DocumentBuf {
    let front: DocumentBuf = cursor
        .iter()
        .filter(|(name, _)| *name != "explainVersion")
        .collect();
    let mut first = DocumentBuf::new();
    first.push("$cursor", front);
    let mut printed = vec![first];
    printed.extend(rest.iter().map(|stage| stage.source.clone()));
    printed.extend(output.map(|output| output.source.clone()));
    for (document, count) in printed.iter_mut().zip(counts) {
        let count = i64::try_from(*count).unwrap_or(i64::MAX);
        document.push(
            "nReturned",
            i32::try_from(count).map_or(Value::Int64(count), Value::Int32),
        );
        document.push("executionTimeMillisEstimate", 0);
    }
    let list: ArrayBuf = printed.into_iter().map(Value::Document).collect();
    let mut builder = DocumentBuilder::new();
    builder.append("explainVersion", ValueRef::String("1"));
    builder.append("stages", ValueRef::Array(list.as_array()));
    builder.finish()
}

/// Rows that are there already.
pub(crate) struct Rows {
    rows: std::vec::IntoIter<Row>,
    counters: Counters,
}

impl Rows {
    pub fn new(rows: Vec<Row>) -> Rows {
        Rows {
            rows: rows.into_iter(),
            counters: Counters::default(),
        }
    }
}

impl Operator for Rows {
    fn next(&mut self, _: &dyn Interrupt) -> Result<Option<Row>, Error> {
        let row = self.rows.next();
        self.counters.note(&row);
        Ok(row)
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}

/// Documents of a whole chain, for stages that hold them.
pub(crate) fn collect(
    mut operator: BoxOperator,
    interrupt: &dyn Interrupt,
    bytes_max: usize,
) -> Result<Vec<Content>, Error> {
    let (mut found, mut bytes) = (Vec::new(), 0);
    while let Some(row) = operator.next(interrupt)? {
        bytes += row.content.as_bytes().len();
        if bytes > bytes_max {
            return Err(Error::new(
                4568,
                "Total size of documents exceeds maximum document size",
            ));
        }
        found.push(row.content);
    }
    Ok(found)
}

/// No document is longer than this when it leaves.
pub(crate) const DOCUMENT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Refuses a document that is too long for a reply. Error 10334.
pub(crate) fn check_size(document: Document<'_>) -> Result<(), Error> {
    match document.as_bytes().len() {
        bytes if bytes > DOCUMENT_BYTES_MAX => Err(Error::new(
            10334,
            format!("BSONObj size: {bytes} is invalid. Size must be between 0 and 16793600(16MB)"),
        )),
        _ => Ok(()),
    }
}

impl Collections for crate::NoCollection {
    fn source(&self, database: &str, collection: &str) -> Result<Arc<dyn Source>, Error> {
        Ok(Arc::new(crate::NoCollection {
            namespace: format!("{database}.{collection}"),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::{array, doc};

    #[test]
    fn pipelines_nest_to_a_limit() {
        let check = |depth: usize, name: &str, expected: Option<i32>| {
            let mut stages = array![{ "$match": {} }];
            for _ in 0..depth {
                let mut stage = doc! {};
                let operand = match name {
                    "$lookup" => doc! { "from": "c", "as": "r", "pipeline": stages },
                    _ => doc! { "coll": "c", "pipeline": stages },
                };
                stage.push(name, operand);
                stages = [Value::Document(stage)].into_iter().collect();
            }
            let parsed = Pipeline::parse(stages.as_array(), &Environment::default());
            assert_eq!(
                parsed.err().and_then(|error| error.code()),
                expected,
                "{depth} {name}"
            );
        };
        check(20, "$lookup", None);
        check(21, "$lookup", Some(232));
        check(20, "$unionWith", None);
        check(21, "$unionWith", Some(232));
    }
}
