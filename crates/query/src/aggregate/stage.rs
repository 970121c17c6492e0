//! What pipelines are: stages, and what they are run with.

use std::fmt;
use std::sync::Arc;

use windrow_document::path::Path;
use windrow_document::{Array, DocumentBuf, ValueRef};
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
use crate::find::OneOf;
use crate::operators::{BoxOperator, Reads};
use crate::row::Interrupt;
use crate::source::{Collections, Source};
use crate::statistics::Statistics;

/// A stage with the document that it was parsed from, for explain.
#[derive(Clone, Debug)]
pub struct Stage {
    pub source: DocumentBuf,
    pub kind: Kind,
}

/// What a stage does. Those that the front of a pipeline looks into stand here themselves.
#[derive(Clone, Debug)]
pub enum Kind {
    Count(String),
    /// The query that a pipeline begins with, and what it adds to each row.
    GeoNear(Arc<GeoNear>),
    Limit(u64),
    Match(Filter),
    Redact(Redact),
    ReplaceRoot(ReplaceRoot),
    Reshape(Reshape),
    Skip(u64),
    /// With a limit: that of a stage behind it.
    Sort(Sort, Option<u64>),
    /// Rows that are no documents of the collection, but about it.
    Statistics(Statistics),
    Unwind(Unwind),
    Other(Arc<dyn Transformation>),
}

/// What a stage does that stands in a file of its own.
pub trait Transformation: fmt::Debug + Send + Sync {
    /// The operator over its input.
    fn open(&self, input: BoxOperator, setting: &Setting) -> Result<BoxOperator, Error>;

    /// See [`Kind::dependencies`].
    fn dependencies(&self) -> Dependencies;

    /// See [`Kind::ends_dependencies`].
    fn ends_dependencies(&self) -> bool {
        false
    }

    /// See [`Kind::lineage`].
    fn lineage(&self, _: &Path) -> Option<FieldLineage> {
        None
    }

    /// See [`Kind::has_lineage`].
    fn has_lineage(&self) -> bool {
        false
    }

    /// See [`Kind::keeps_rows`].
    fn keeps_rows(&self) -> bool {
        false
    }

    /// Where it needs but one row of those with the same value in a field.
    fn needs_one_of(&self) -> Option<OneOf> {
        None
    }

    /// Whether it gives its rows in an order of its own making, by chance.
    fn shuffles(&self) -> bool {
        false
    }

    /// Whether it gives each row a score, and if so, whether it says how that came about.
    fn scores(&self) -> Option<bool> {
        None
    }

    /// The operator over a collection or view, of a stage that reads it in ways of its own where it is
    /// the first.
    fn over_source(&self, _: &Arc<dyn Source>, _: &Setting) -> Option<Result<BoxOperator, Error>> {
        None
    }

    /// What explain shows of a stage with [`over_source`](Self::over_source), in place of its document.
    fn explained_over(
        &self,
        _: &Arc<dyn Source>,
        _: &Explaining<'_>,
    ) -> Result<Option<DocumentBuf>, Error> {
        Ok(None)
    }

    /// The summary of the stage's plan for logs, of a stage with [`over_source`](Self::over_source).
    fn plan_summary(&self) -> Option<String> {
        None
    }

    /// The same with the `$unwind` that stands behind it taken in, where it can do both at once.
    fn with_unwind(&self, _: &Unwind) -> Option<Arc<dyn Transformation>> {
        None
    }

    /// The same where no more than so many of its rows are asked for, if it can make use of that.
    fn with_limit(&self, _: u64) -> Option<Arc<dyn Transformation>> {
        None
    }

    /// Adds the collections of the same database that it reads.
    fn collect_collections(&self, _: &mut Vec<String>) {}

    /// What explain shows in the place of the stage's document. `reads`: see [`Operator::reads`], where
    /// the stage was run.
    ///
    /// [`Operator::reads`]: crate::operators::Operator::reads
    fn explained(
        &self,
        shown: DocumentBuf,
        _reads: Option<&Reads>,
        _how: &Explaining<'_>,
    ) -> Result<DocumentBuf, Error> {
        Ok(shown)
    }
}

/// What stages are explained with.
pub struct Explaining<'e> {
    pub setting: &'e Setting,
    pub verbosity: Verbosity,
    pub interrupt: &'e dyn Interrupt,
}

/// A parsed pipeline.
#[derive(Clone, Debug)]
pub struct Pipeline {
    pub(super) stages: Vec<Stage>,
    /// Where the documents go, if not to the client.
    pub(super) output: Option<Output>,
    pub(super) environment: Environment,
}

/// Parses a pipeline within another one, or that of a view.
pub type ParsePipeline = fn(Array<'_>, &Environment) -> Result<Pipeline, Error>;

/// What stages need besides their input.
#[derive(Clone)]
pub struct Setting {
    pub collections: Arc<dyn Collections>,
    pub database: String,
    pub environment: Environment,
    pub allow_disk_use: bool,
    /// For pipelines that are known only while another one runs.
    pub parse: ParsePipeline,
    /// How many pipelines it runs within, those of views among them.
    pub depth: usize,
}

/// So many pipelines may run within each other.
pub const NESTED_MAX: usize = 20;

/// Error 232: pipelines within each other are more than there may be.
pub fn too_nested() -> Error {
    let message = format!("Maximum number of nested sub-pipelines exceeded. Limit is {NESTED_MAX}");
    Error::new(232, message)
}

const OPTION_NOT_SUPPORTED_ON_VIEW: i32 = 167;

/// The name in the place of a collection's, where a pipeline brings its rows: none has it.
pub const NO_COLLECTION: &str = "$cmd.aggregate";

impl Setting {
    /// The same for a pipeline within this one.
    pub fn deeper(&self) -> Setting {
        Setting {
            depth: self.depth + 1,
            ..self.clone()
        }
    }

    /// The same with the metadata of the search that a pipeline within this one begins with.
    pub fn with_search_of(&self, pipeline: &Pipeline) -> Setting {
        let mut setting = self.clone();
        let own = &pipeline.environment.variables;
        if own.search().is_some() {
            let variables = setting.environment.variables.with_search_of(own);
            setting.environment.variables = Arc::new(variables);
        }
        setting
    }

    /// Another collection of the same database. Error 167 for a view that compares otherwise, 232 where views
    /// that read views are too many within each other.
    pub fn source(&self, collection: &str) -> Result<Arc<dyn Source>, Error> {
        if self.depth > NESTED_MAX {
            return Err(too_nested());
        }
        if collection == NO_COLLECTION {
            let namespace = format!("{}.{collection}", self.database);
            return Ok(Arc::new(crate::NoCollection { namespace }));
        }
        let source = self.collections.source(&self.database, collection)?;
        match source.view().is_some() && source.collation() != self.environment.collation {
            true => Err(Error::new(
                OPTION_NOT_SUPPORTED_ON_VIEW,
                format!(
                    "{} is a view whose collation is not that of the pipeline",
                    source.namespace()
                ),
            )),
            false => Ok(source),
        }
    }
}

impl Pipeline {
    /// Where the documents go, if not to the client.
    pub fn output(&self) -> Option<&Output> {
        self.output.as_ref()
    }

    /// The variables and the time that its expressions see.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// Whether it has stages.
    pub fn is_empty(&self) -> bool {
        self.stages.is_empty()
    }

    /// The collections of the same database that the stages read, besides the pipeline's own.
    pub fn other_collections(&self) -> Vec<String> {
        let mut names = Vec::new();
        self.stages
            .iter()
            .for_each(|stage| stage.collect_collections(&mut names));
        names
    }
}

impl Stage {
    pub fn new(source: DocumentBuf, kind: Kind) -> Stage {
        Stage { source, kind }
    }

    pub fn has_text(&self) -> bool {
        matches!(&self.kind, Kind::Match(filter) if filter.text().is_some())
    }

    pub fn is_geo_near(&self) -> bool {
        matches!(self.kind, Kind::GeoNear(_))
    }

    /// Error 40602 of a stage that brings rows.
    fn check_late(&self) -> Result<(), Error> {
        match (&self.kind, self.source.as_document().first()) {
            (Kind::GeoNear(_) | Kind::Statistics(_), Some((name, _))) => Err(not_first(name)),
            _ => Ok(()),
        }
    }

    /// See [`Transformation::scores`].
    pub fn scores(&self) -> Option<bool> {
        match &self.kind {
            Kind::Other(other) => other.scores(),
            _ => None,
        }
    }

    pub fn collect_collections(&self, names: &mut Vec<String>) {
        if let Kind::Other(other) = &self.kind {
            other.collect_collections(names);
        }
    }

    /// See [`Transformation::explained`].
    pub(super) fn explained(
        &self,
        reads: Option<&Reads>,
        how: &Explaining<'_>,
    ) -> Result<DocumentBuf, Error> {
        match &self.kind {
            Kind::Other(other) => other.explained(self.source.clone(), reads, how),
            _ => Ok(self.source.clone()),
        }
    }
}

impl Kind {
    pub fn of(transformation: impl Transformation + 'static) -> Kind {
        Kind::Other(Arc::new(transformation))
    }

    /// What the stage reads of its input. `whole` where that is not known.
    pub fn dependencies(&self) -> Dependencies {
        match self {
            Kind::Match(filter) => filter.dependencies(),
            Kind::Sort(sort, _) => sort_dependencies(sort),
            Kind::Reshape(reshape) => reshape.dependencies(),
            Kind::ReplaceRoot(replace) => replace.dependencies(),
            Kind::Redact(redact) => redact.dependencies(),
            Kind::Unwind(unwind) => unwind.dependencies(),
            Kind::GeoNear(_) => Dependencies {
                whole: true,
                ..Dependencies::default()
            },
            Kind::Count(_) | Kind::Limit(_) | Kind::Skip(_) | Kind::Statistics(_) => {
                Dependencies::default()
            }
            Kind::Other(other) => other.dependencies(),
        }
    }

    /// Whether nothing of the input reaches the output but by what the stage reads.
    pub fn ends_dependencies(&self) -> bool {
        match self {
            Kind::Reshape(reshape) => !reshape.keeps_unnamed_fields(),
            Kind::Count(_) | Kind::ReplaceRoot(_) | Kind::Statistics(_) => true,
            Kind::Other(other) => other.ends_dependencies(),
            _ => false,
        }
    }

    /// The lineage of a path of the stage's output. Returns `None` if it does not come from one path of
    /// the input.
    pub fn lineage(&self, path: &Path) -> Option<FieldLineage> {
        match self {
            Kind::Reshape(reshape) => reshape.lineage(path),
            Kind::ReplaceRoot(replace) => replace.lineage(path),
            Kind::Unwind(unwind) => unwind.lineage(path),
            Kind::Other(other) => other.lineage(path),
            _ => None,
        }
    }

    /// Whether filters after the stage can run before it, on the lineage of their paths.
    pub fn has_lineage(&self) -> bool {
        match self {
            Kind::Sort(..) | Kind::Reshape(_) | Kind::ReplaceRoot(_) | Kind::Unwind(_) => true,
            Kind::Other(other) => other.has_lineage(),
            _ => false,
        }
    }

    /// Whether every row gives one row, in the same order and whatever the others are.
    pub fn keeps_rows(&self) -> bool {
        match self {
            Kind::Reshape(_) | Kind::ReplaceRoot(_) => true,
            Kind::Other(other) => other.keeps_rows(),
            _ => false,
        }
    }

    /// The document of a stage that is part of another.
    pub(super) fn print(&self, name: &str, operand: ValueRef<'_>) -> DocumentBuf {
        let mut printed = DocumentBuf::new();
        match self {
            Kind::Sort(sort, _) => printed.push("$sort", sort.to_document()),
            _ => printed.push(name, operand.to_value()),
        }
        printed
    }
}

/// What a sort reads.
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

/// See [`check_behind`].
pub fn check_joint(before: &[Stage], behind: &[Stage]) -> Result<(), Error> {
    match before.is_empty() {
        true => Ok(()),
        false => check_behind(behind),
    }
}

/// Whether stages may stand behind others: `$text` and those that bring rows only as the first of all.
/// Errors: 17313, 40602.
pub fn check_behind(stages: &[Stage]) -> Result<(), Error> {
    match stages.iter().any(Stage::has_text) {
        true => Err(text_is_late()),
        false => stages.iter().try_for_each(Stage::check_late),
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
