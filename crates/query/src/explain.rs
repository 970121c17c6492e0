//! Explains queries: prints plans and counters as the documents that MongoDB's tools read.

use std::sync::Arc;
use std::time::Instant;

use windrow_document::{ArrayBuf, DocumentBuf, DocumentBuilder, Value, ValueRef, doc};
use windrow_interrupt::Interrupt;
use windrow_mql::projection::Projection;

use crate::Error;
use crate::find::Find;
use crate::operators::{self, Operator, totals};
use crate::plan::Plan;
use crate::planner::{self, PlanChoice};
use crate::print::{number, print, print_plan};
use crate::source::Source;

/// The verbosity of explain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verbosity {
    /// Only the plan.
    QueryPlanner,
    /// The plan and the counters of a run.
    ExecutionStats,
    /// The same as `ExecutionStats`, because plans do not compete by running.
    AllPlansExecution,
}

impl Verbosity {
    /// Parses the name of a verbosity. Fails with 2 if it is unknown.
    pub fn parse(name: &str) -> Result<Verbosity, Error> {
        match name {
            "queryPlanner" => Ok(Verbosity::QueryPlanner),
            "executionStats" => Ok(Verbosity::ExecutionStats),
            "allPlansExecution" => Ok(Verbosity::AllPlansExecution),
            _ => Err(Error::new(
                2,
                "verbosity string must be one of {'queryPlanner', 'executionStats', 'allPlansExecution'}",
            )),
        }
    }

    /// Returns `true` if the command is run.
    pub fn runs(self) -> bool {
        self != Verbosity::QueryPlanner
    }
}

/// The command around the query. It adds a stage of its own to the plan.
#[derive(Clone, Debug)]
pub enum ExplainedCommand {
    /// No stage: a `find`.
    None,
    /// A pipeline that consists only of the query.
    Pipeline,
    /// A `count`.
    Count,
    /// A delete.
    Delete {
        /// The document that the command returns.
        returns: ReturnedDocument,
    },
    /// An update.
    Update {
        /// The update inserts a document if none matches.
        upserts: bool,
        /// The document that the command returns.
        returns: ReturnedDocument,
    },
    /// A write that returns a projection of its document.
    Projected(Projection, Box<ExplainedCommand>),
}

/// The document that a write returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReturnedDocument {
    /// No document.
    None,
    /// The document before the write.
    Before,
    /// The document after the write.
    After,
}

/// Plans are left out if the reply would have more bytes, so that it stays a document that can be
/// sent.
const PLANS_BYTES_MAX: usize = 10 << 20;

/// Returns the plan, or a warning if the reply becomes too large with it.
fn fitting(plan: DocumentBuf, bytes_before: usize) -> DocumentBuf {
    if bytes_before + plan.as_document().as_bytes().len() <= PLANS_BYTES_MAX {
        return plan;
    }
    doc! { "warning": "stats tree exceeded BSON size limit for explain" }
}

impl Find {
    /// Returns `{queryPlanner, executionStats}` of the query. Runs the query if the verbosity
    /// requires it. Fails as [`Find::plan`] and the operators do.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use windrow_mql::filter::Filter;
    /// use windrow_query::{ExplainedCommand, Find, NoCollection, Source, Uninterrupted, Verbosity};
    /// let source: Arc<dyn Source> = Arc::new(NoCollection { namespace: "a.b".to_owned() });
    /// let find = Find::new(Filter::all());
    /// let command = ExplainedCommand::None;
    /// let explained = find.explain(&source, Verbosity::QueryPlanner, &command, &Uninterrupted)?;
    /// assert!(explained.get("queryPlanner").is_some());
    /// # Ok::<(), windrow_query::Error>(())
    /// ```
    pub fn explain(
        &self,
        source: &Arc<dyn Source>,
        verbosity: Verbosity,
        command: &ExplainedCommand,
        interrupt: &dyn Interrupt,
    ) -> Result<DocumentBuf, Error> {
        let started = Instant::now();
        let choice = self.plan_uncached(&**source)?;
        let millis = started.elapsed().as_millis() as i64;
        let mut builder = DocumentBuilder::new();
        builder.append("explainVersion", ValueRef::String("1"));
        let planner = planner(self, &**source, &choice, command, millis)?;
        builder.append("queryPlanner", ValueRef::Document(planner.as_document()));
        if verbosity.runs() {
            let execution = Execution {
                plan: &choice.winner,
                verbosity,
                command,
                bytes_before: builder.len(),
            };
            let stats = execution.run(source, interrupt)?;
            builder.append("executionStats", ValueRef::Document(stats.as_document()));
        }
        Ok(builder.finish())
    }
}

fn planner(
    find: &Find,
    source: &dyn Source,
    choice: &PlanChoice,
    command: &ExplainedCommand,
    millis: i64,
) -> Result<DocumentBuf, Error> {
    let mut builder = DocumentBuilder::new();
    builder.append("namespace", ValueRef::String(&source.namespace()));
    let is_set = planner::index_filter(find, source).is_some();
    builder.append("indexFilterSet", ValueRef::Bool(is_set));
    builder.append(
        "parsedQuery",
        ValueRef::Document(find.filter.to_document().as_document()),
    );
    if let Some(collation) = find.filter.collation() {
        builder.append("collation", ValueRef::Document(collation.specification()));
    }
    let cache_status = find.cache_status(source, &choice.winner)?;
    let shape = cache_status.shape.hash();
    builder.append("queryHash", ValueRef::String(&shape));
    builder.append("planCacheShapeHash", ValueRef::String(&shape));
    let key = cache_status.key.text();
    builder.append("planCacheKey", ValueRef::String(&key));
    builder.append("optimizationTimeMillis", number(millis));
    if matches!(command, ExplainedCommand::Pipeline) {
        builder.append("optimizedPipeline", ValueRef::Bool(true));
    }
    for name in [
        "maxIndexedOrSolutionsReached",
        "maxIndexedAndSolutionsReached",
        "maxScansToExplodeReached",
        "prunedSimilarIndexes",
    ] {
        builder.append(name, ValueRef::Bool(false));
    }
    let winner = fitting(wrapped(&choice.winner, command, None), builder.len());
    builder.begin_document("winningPlan");
    builder.append("isCached", ValueRef::Bool(cache_status.is_cached));
    for (name, value) in winner.as_document() {
        builder.append(name, value);
    }
    builder.end();
    let mut bytes = builder.len();
    let rejected: ArrayBuf = choice
        .rejected
        .iter()
        .map(|plan| {
            let plan = without_own_limit(plan, command).unwrap_or(plan);
            let shown = fitting(print_plan(plan), bytes);
            bytes += shown.as_document().as_bytes().len();
            Value::Document(shown)
        })
        .collect();
    builder.append("rejectedPlans", ValueRef::Array(rejected.as_array()));
    Ok(builder.finish())
}

/// A run of a plan for explain.
struct Execution<'e> {
    plan: &'e Plan,
    verbosity: Verbosity,
    command: &'e ExplainedCommand,
    /// The size of the explanation before this part.
    bytes_before: usize,
}

impl Execution<'_> {
    /// Runs the plan to its end. Returns its counters.
    fn run(
        &self,
        source: &Arc<dyn Source>,
        interrupt: &dyn Interrupt,
    ) -> Result<DocumentBuf, Error> {
        let started = Instant::now();
        let mut operator = operators::open(self.plan, source)?;
        let mut count = 0i64;
        while operator.next(interrupt)?.is_some() {
            count += 1;
        }
        let millis = started.elapsed().as_millis() as i64;
        let totals = totals(&*operator);
        let mut builder = DocumentBuilder::new();
        builder.append("executionSuccess", ValueRef::Bool(true));
        builder.append("nReturned", number(self.command.returned(count)));
        builder.append("executionTimeMillis", number(millis));
        builder.append("totalKeysExamined", number(totals.keys_examined as i64));
        builder.append(
            "totalDocsExamined",
            number(totals.documents_examined as i64),
        );
        let run = Some(FinishedRun {
            operator: &*operator,
            returned: count,
        });
        let stages = fitting(wrapped(self.plan, self.command, run), self.bytes_before);
        builder.append("executionStages", ValueRef::Document(stages.as_document()));
        if self.verbosity == Verbosity::AllPlansExecution {
            builder.append(
                "allPlansExecution",
                ValueRef::Array(ArrayBuf::new().as_array()),
            );
        }
        Ok(builder.finish())
    }
}

impl ExplainedCommand {
    /// Returns the number of documents that the command returns if the query finds `found`.
    fn returned(&self, found: i64) -> i64 {
        match self {
            ExplainedCommand::Projected(_, write) => write.returned(found),
            ExplainedCommand::None | ExplainedCommand::Pipeline => found,
            ExplainedCommand::Count
            | ExplainedCommand::Delete {
                returns: ReturnedDocument::None,
            }
            | ExplainedCommand::Update {
                returns: ReturnedDocument::None,
                ..
            } => 0,
            ExplainedCommand::Update {
                upserts: true,
                returns: ReturnedDocument::After,
            } => found.max(1),
            ExplainedCommand::Delete { .. } | ExplainedCommand::Update { .. } => found,
        }
    }

    fn is_write(&self) -> bool {
        match self {
            ExplainedCommand::Projected(_, write) => write.is_write(),
            other => matches!(
                other,
                ExplainedCommand::Delete { .. } | ExplainedCommand::Update { .. }
            ),
        }
    }

    /// Returns the command's own stage if the query finds `found` documents.
    fn stage(&self, found: i64) -> Option<CommandStage> {
        let (name, counters) = match self {
            ExplainedCommand::None | ExplainedCommand::Pipeline => return None,
            ExplainedCommand::Projected(..) => ("PROJECTION_DEFAULT", Vec::new()),
            ExplainedCommand::Count => ("COUNT", vec![("nCounted", found)]),
            ExplainedCommand::Delete { .. } => ("DELETE", vec![("nWouldDelete", found)]),
            ExplainedCommand::Update { upserts, .. } => {
                let upserted = i64::from(*upserts && found == 0);
                let counters = vec![
                    ("nMatched", found),
                    ("nWouldModify", found),
                    ("nWouldUpsert", upserted),
                ];
                ("UPDATE", counters)
            }
        };
        Some(CommandStage { name, counters })
    }
}

/// The stage of a command, as explain shows it.
struct CommandStage {
    name: &'static str,
    /// The counters, by their names.
    counters: Vec<(&'static str, i64)>,
}

/// A plan that was run to its end.
#[derive(Clone, Copy)]
struct FinishedRun<'o> {
    operator: &'o dyn Operator,
    /// The number of rows returned.
    returned: i64,
}

/// Returns the input of the limit of a write of one document. The write stops by itself.
fn without_own_limit<'a>(plan: &'a Plan, command: &ExplainedCommand) -> Option<&'a Plan> {
    match plan {
        Plan::Limit { input, .. } if command.is_write() => Some(input),
        _ => None,
    }
}

/// Prints the plan with the command's own stage on top.
fn wrapped(plan: &Plan, command: &ExplainedCommand, run: Option<FinishedRun<'_>>) -> DocumentBuf {
    let operator = run.map(|run| run.operator);
    let found = run.map_or(0, |run| run.returned);
    let Some(CommandStage { name, counters }) = command.stage(found) else {
        return print(plan, operator);
    };
    let inner = match (command, without_own_limit(plan, command)) {
        (ExplainedCommand::Projected(_, write), _) => wrapped(plan, write, run),
        (_, Some(input)) => {
            let inputs = operator.map(Operator::inputs).unwrap_or_default();
            print(input, inputs.into_iter().next())
        }
        (_, None) => print(plan, operator),
    };
    let mut builder = DocumentBuilder::new();
    builder.append("stage", ValueRef::String(name));
    if run.is_some() {
        let returned = number(command.returned(found));
        builder.append("nReturned", returned);
        builder.append("works", number(found + 1));
        builder.append("advanced", returned);
        builder.append("needTime", number(found));
        builder.append("isEOF", ValueRef::Int32(1));
        for (name, count) in counters {
            builder.append(name, number(count));
        }
    }
    if let ExplainedCommand::Projected(fields, _) = command {
        builder.append("transformBy", ValueRef::Document(fields.source()));
    }
    builder.append("inputStage", ValueRef::Document(inner.as_document()));
    builder.finish()
}
