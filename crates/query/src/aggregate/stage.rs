//! Pipelines, their stages, and the environment in which they run.

use std::fmt;
use std::sync::Arc;

use windrow_document::path::Path;
use windrow_document::{Array, DocumentBuf, ValueRef};
use windrow_interrupt::Interrupt;
use windrow_mql::FieldLineage;
use windrow_mql::expression::Dependencies;
use windrow_mql::filter::{Environment, Filter};
use windrow_mql::reshape::{Redact, ReplaceRoot, Reshape};
use windrow_mql::sort::{Sort, SortField};

use super::geo_near::GeoNear;
use super::output::Output;
use super::unwind::Unwind;
use crate::Error;
use crate::explain::Verbosity;
use crate::find::DistinctRows;
use crate::operators::{BoxOperator, ReadCounters};
use crate::source::{Collections, Source};
use crate::statistics::Statistics;

/// A stage, with the document that it was parsed from for explain.
#[derive(Clone, Debug)]
pub struct Stage {
    pub source: DocumentBuf,
    pub kind: StageKind,
}

/// What a stage does. Stages that the optimizer of pipelines examines have variants of their own.
#[derive(Clone, Debug)]
pub enum StageKind {
    Count(String),
    /// The query at the start of the pipeline, and the fields that it adds to each row.
    GeoNear(Arc<GeoNear>),
    Limit(u64),
    Match(Filter),
    Redact(Redact),
    ReplaceRoot(ReplaceRoot),
    Reshape(Reshape),
    Skip(u64),
    Sort {
        sort: Sort,
        /// The number of rows that later stages need, if it is known.
        limit: Option<u64>,
    },
    /// Statistics of the collection in place of its documents.
    Statistics(Statistics),
    Unwind(Unwind),
    Other(Arc<dyn Transformation>),
}

/// A stage that is defined in a file of its own.
pub trait Transformation: fmt::Debug + Send + Sync {
    /// Returns the operator on an input.
    fn open(&self, input: BoxOperator, context: &PipelineContext) -> Result<BoxOperator, Error>;

    /// See [`StageKind::dependencies`].
    fn dependencies(&self) -> Dependencies;

    /// See [`StageKind::ends_dependencies`].
    fn ends_dependencies(&self) -> bool {
        false
    }

    /// See [`StageKind::lineage`].
    fn lineage(&self, _: &Path) -> Option<FieldLineage> {
        None
    }

    /// See [`StageKind::has_lineage`].
    fn has_lineage(&self) -> bool {
        false
    }

    /// See [`StageKind::keeps_rows`].
    fn keeps_rows(&self) -> bool {
        false
    }

    /// The rows that the stage needs, if one row of those with the same value of a field is enough.
    fn needed_rows(&self) -> Option<DistinctRows> {
        None
    }

    /// Returns `true` if the stage returns its rows in random order.
    fn shuffles(&self) -> bool {
        false
    }

    /// Returns what the stage computes besides the rows, if it computes a score for each row.
    fn scores(&self) -> Option<ScoreMetadata> {
        None
    }

    /// Returns the operator on a collection or view, if the stage is the first of the pipeline and
    /// reads the source itself.
    fn over_source(
        &self,
        _: &Arc<dyn Source>,
        _: &PipelineContext,
    ) -> Option<Result<BoxOperator, Error>> {
        None
    }

    /// Returns what explain shows for a stage with [`over_source`](Self::over_source), in place of
    /// its document.
    fn explained_over(
        &self,
        _: &Arc<dyn Source>,
        _: &ExplainContext<'_>,
    ) -> Result<Option<DocumentBuf>, Error> {
        Ok(None)
    }

    /// Returns the summary of the plan for logs, for a stage with
    /// [`over_source`](Self::over_source).
    fn plan_summary(&self) -> Option<String> {
        None
    }

    /// Returns the stage combined with the `$unwind` after it, if it can do both at once.
    fn with_unwind(&self, _: &Unwind) -> Option<Arc<dyn Transformation>> {
        None
    }

    /// Returns the stage for a pipeline that does not need all its rows, if the stage can make use
    /// of that.
    fn with_rows_needed(&self, _: &RowsNeeded) -> Option<Arc<dyn Transformation>> {
        None
    }

    /// Adds the collections of the same database that the stage reads.
    fn collect_collections(&self, _: &mut Vec<String>) {}

    /// Returns what explain shows in place of the stage's document. `reads` is the result of
    /// [`Operator::reads`], if the stage was run.
    ///
    /// [`Operator::reads`]: crate::operators::Operator::reads
    fn explained(
        &self,
        shown: DocumentBuf,
        _reads: Option<&ReadCounters>,
        _how: &ExplainContext<'_>,
    ) -> Result<DocumentBuf, Error> {
        Ok(shown)
    }
}

/// The metadata of rows with a score.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScoreMetadata {
    ScoreOnly,
    /// The score, and the details from which it is computed.
    WithDetails,
}

/// The rows of a stage that the stages after it need.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowsNeeded {
    /// The number of rows at the beginning that `$skip` drops.
    pub skip: u64,
    /// Those of them that no stage reads before the `$skip`. They can be empty.
    pub unread: u64,
    /// The number of rows, with those that are dropped. `None` if all are needed.
    pub limit: Option<u64>,
}

/// The parameters of explain.
pub struct ExplainContext<'e> {
    pub context: &'e PipelineContext,
    pub verbosity: Verbosity,
    pub interrupt: &'e dyn Interrupt,
}

/// A parsed pipeline.
#[derive(Clone, Debug)]
pub struct Pipeline {
    pub(super) stages: Vec<Stage>,
    /// The collection to write to, if the pipeline writes.
    pub(super) output: Option<Output>,
    pub(super) environment: Environment,
}

/// Parses a nested pipeline, or that of a view.
pub type ParsePipeline = fn(Array<'_>, &Environment) -> Result<Pipeline, Error>;

/// What stages need in addition to their input.
#[derive(Clone)]
pub struct PipelineContext {
    pub collections: Arc<dyn Collections>,
    pub database: String,
    pub environment: Environment,
    pub allow_disk_use: bool,
    /// Parses pipelines that become known only when another one runs.
    pub parse: ParsePipeline,
    /// The number of pipelines around this one, including those of views.
    pub depth: usize,
}

/// The largest number of nested pipelines.
pub const NESTED_MAX: usize = 20;

/// The error 232 for too many nested pipelines.
pub fn too_nested() -> Error {
    let message = format!("Maximum number of nested sub-pipelines exceeded. Limit is {NESTED_MAX}");
    Error::new(232, message)
}

const OPTION_NOT_SUPPORTED_ON_VIEW: i32 = 167;

/// The collection name of pipelines that produce their own rows. No collection has this name.
pub const NO_COLLECTION: &str = "$cmd.aggregate";

impl PipelineContext {
    /// The same for a nested pipeline.
    pub fn deeper(&self) -> PipelineContext {
        PipelineContext {
            depth: self.depth + 1,
            ..self.clone()
        }
    }

    /// The same, with the search metadata of the nested pipeline.
    pub fn with_search_of(&self, pipeline: &Pipeline) -> PipelineContext {
        let mut context = self.clone();
        let own = &pipeline.environment.variables;
        if own.search().is_some() {
            let variables = context.environment.variables.with_search_of(own);
            context.environment.variables = Arc::new(variables);
        }
        context
    }

    /// Opens another collection of the same database. Fails with 167 for a view with another
    /// collation, with 232 for too many nested views.
    pub fn source(&self, collection: &str) -> Result<Arc<dyn Source>, Error> {
        if self.depth > NESTED_MAX {
            return Err(too_nested());
        }
        if collection == NO_COLLECTION {
            let namespace = format!("{}.{collection}", self.database);
            return Ok(Arc::new(crate::NoCollection { namespace }));
        }
        let source = self.collections.source(&self.database, collection)?;
        if source.view().is_some() && source.collation() != self.environment.collation {
            Err(Error::new(
                OPTION_NOT_SUPPORTED_ON_VIEW,
                format!(
                    "the view {} does not have the collation of the pipeline",
                    source.namespace()
                ),
            ))
        } else {
            Ok(source)
        }
    }
}

impl Pipeline {
    /// The collection to write to, if the pipeline writes.
    pub fn output(&self) -> Option<&Output> {
        self.output.as_ref()
    }

    /// The variables and the time of its expressions.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// Returns `true` if the pipeline has no stages.
    pub fn is_empty(&self) -> bool {
        self.stages.is_empty()
    }

    /// Returns the collections of the same database that the stages read, besides the pipeline's
    /// own.
    pub fn other_collections(&self) -> Vec<String> {
        let mut names = Vec::new();
        self.stages
            .iter()
            .for_each(|stage| stage.collect_collections(&mut names));
        names
    }
}

impl Stage {
    pub fn new(source: DocumentBuf, kind: StageKind) -> Stage {
        Stage { source, kind }
    }

    pub fn has_text(&self) -> bool {
        matches!(&self.kind, StageKind::Match(filter) if filter.text().is_some())
    }

    pub fn is_geo_near(&self) -> bool {
        matches!(self.kind, StageKind::GeoNear(_))
    }

    /// Fails with 40602 if the stage produces rows.
    fn check_late(&self) -> Result<(), Error> {
        match (&self.kind, self.source.as_document().first()) {
            (StageKind::GeoNear(_) | StageKind::Statistics(_), Some((name, _))) => {
                Err(not_first(name))
            }
            _ => Ok(()),
        }
    }

    /// See [`Transformation::scores`].
    pub fn scores(&self) -> Option<ScoreMetadata> {
        match &self.kind {
            StageKind::Other(other) => other.scores(),
            _ => None,
        }
    }

    pub fn collect_collections(&self, names: &mut Vec<String>) {
        if let StageKind::Other(other) = &self.kind {
            other.collect_collections(names);
        }
    }

    /// See [`Transformation::explained`].
    pub(super) fn explained(
        &self,
        reads: Option<&ReadCounters>,
        how: &ExplainContext<'_>,
    ) -> Result<DocumentBuf, Error> {
        match &self.kind {
            StageKind::Other(other) => other.explained(self.source.clone(), reads, how),
            _ => Ok(self.source.clone()),
        }
    }
}

impl StageKind {
    pub fn from_transformation(transformation: impl Transformation + 'static) -> StageKind {
        StageKind::Other(Arc::new(transformation))
    }

    /// A sort of all rows.
    pub fn sort(sort: Sort) -> StageKind {
        StageKind::Sort { sort, limit: None }
    }

    /// Returns the paths that the stage reads. `whole` is `true` if they are not known.
    pub fn dependencies(&self) -> Dependencies {
        match self {
            StageKind::Match(filter) => filter.dependencies(),
            StageKind::Sort { sort, .. } => sort_dependencies(sort),
            StageKind::Reshape(reshape) => reshape.dependencies(),
            StageKind::ReplaceRoot(replace) => replace.dependencies(),
            StageKind::Redact(redact) => redact.dependencies(),
            StageKind::Unwind(unwind) => unwind.dependencies(),
            StageKind::GeoNear(_) => Dependencies {
                whole: true,
                ..Dependencies::default()
            },
            StageKind::Count(_)
            | StageKind::Limit(_)
            | StageKind::Skip(_)
            | StageKind::Statistics(_) => Dependencies::default(),
            StageKind::Other(other) => other.dependencies(),
        }
    }

    /// Returns `true` if the output depends only on the paths that the stage reads.
    pub fn ends_dependencies(&self) -> bool {
        match self {
            StageKind::Reshape(reshape) => !reshape.keeps_unnamed_fields(),
            StageKind::Count(_) | StageKind::ReplaceRoot(_) | StageKind::Statistics(_) => true,
            StageKind::Other(other) => other.ends_dependencies(),
            _ => false,
        }
    }

    /// Returns the lineage of a path of the output. `None` if it does not come from one path of the
    /// input.
    pub fn lineage(&self, path: &Path) -> Option<FieldLineage> {
        match self {
            StageKind::Reshape(reshape) => reshape.lineage(path),
            StageKind::ReplaceRoot(replace) => replace.lineage(path),
            StageKind::Unwind(unwind) => unwind.lineage(path),
            StageKind::Other(other) => other.lineage(path),
            _ => None,
        }
    }

    /// Returns `true` if filters after the stage can run before it, on the lineage of their paths.
    pub fn has_lineage(&self) -> bool {
        match self {
            StageKind::Sort { .. }
            | StageKind::Reshape(_)
            | StageKind::ReplaceRoot(_)
            | StageKind::Unwind(_) => true,
            StageKind::Other(other) => other.has_lineage(),
            _ => false,
        }
    }

    /// Returns `true` if each row becomes exactly one row, in the same order, independently of the
    /// other rows.
    pub fn keeps_rows(&self) -> bool {
        match self {
            StageKind::Reshape(_) | StageKind::ReplaceRoot(_) => true,
            StageKind::Other(other) => other.keeps_rows(),
            _ => false,
        }
    }

    /// Returns the document of a stage that was part of another one.
    pub(super) fn print(&self, name: &str, operand: ValueRef<'_>) -> DocumentBuf {
        let mut printed = DocumentBuf::new();
        match self {
            StageKind::Sort { sort, .. } => printed.push("$sort", sort.to_document()),
            _ => printed.push(name, operand.to_value()),
        }
        printed
    }
}

/// Returns the paths that a sort reads.
pub(super) fn sort_dependencies(sort: &Sort) -> Dependencies {
    let mut found = Dependencies::default();
    for field in sort.pattern() {
        match field {
            SortField::Path { path, .. } => found.add(&path.to_string()),
            SortField::TextScore { .. } => found.text_score = true,
            SortField::Random { .. } => {}
        }
    }
    found
}

/// Returns the name of the first stage of a pipeline.
pub(super) fn first_stage_name(stages: Array<'_>) -> Option<&str> {
    let first = stages.get(0).and_then(ValueRef::as_document)?;
    first.first().map(|(name, _)| name)
}

/// Checks the stages after those of a view. See [`check_following`].
pub fn check_after_view(before: &[Stage], behind: &[Stage]) -> Result<(), Error> {
    if before.is_empty() {
        Ok(())
    } else {
        check_following(behind)
    }
}

/// Checks that stages may follow others. Fails with 17313 for `$text`, with 40602 for stages that
/// produce rows.
pub fn check_following(stages: &[Stage]) -> Result<(), Error> {
    if stages.iter().any(Stage::has_text) {
        Err(text_is_late())
    } else {
        stages.iter().try_for_each(Stage::check_late)
    }
}

pub(super) fn not_first(name: &str) -> Error {
    let message = format!("{name} is only valid as the first stage in a pipeline");
    Error::new(40602, message)
}

pub(super) fn text_is_late() -> Error {
    let message = "$match with $text is only allowed as the first pipeline stage";
    Error::new(17313, message)
}
