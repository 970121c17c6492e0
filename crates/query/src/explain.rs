//! Plans and what they did, in the words and shapes that MongoDB's tools read.

use std::sync::Arc;
use std::time::Instant;

use windrow_document::{ArrayBuf, DocumentBuf, DocumentBuilder, Value, ValueRef};

use crate::Error;
use crate::choose::{self, Choice};
use crate::find::Find;
use crate::operators::{self, Counters, Operator};
use crate::plan::Plan;
use crate::print::{number, print, print_plan};
use crate::row::Interrupt;
use crate::source::Source;

/// How much explain tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verbosity {
    QueryPlanner,
    ExecutionStats,
    /// The same as `ExecutionStats`: plans are not raced.
    AllPlansExecution,
}

impl Verbosity {
    /// Error 2 for an unknown name.
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

    /// Whether the command runs, so that there is something to count.
    pub fn runs(self) -> bool {
        self != Verbosity::QueryPlanner
    }
}

/// What a command adds around the plan of its query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrapping {
    None,
    /// A pipeline of which the query is the whole.
    Pipeline,
    Count,
    Delete,
    Update,
}

impl Find {
    /// `{queryPlanner, executionStats}` of this query, run to its end where the verbosity says so.
    pub fn explain(
        &self,
        source: &Arc<dyn Source>,
        verbosity: Verbosity,
        wrapping: Wrapping,
        interrupt: &dyn Interrupt,
    ) -> Result<DocumentBuf, Error> {
        let started = Instant::now();
        let choice = self.plan_anew(&**source)?;
        let millis = started.elapsed().as_millis() as i64;
        let mut builder = DocumentBuilder::new();
        builder.append("explainVersion", ValueRef::String("1"));
        let planner = planner(self, &**source, &choice, (wrapping, millis))?;
        builder.append("queryPlanner", ValueRef::Document(planner.as_document()));
        if verbosity.runs() {
            let stats = execution(&choice, source, verbosity, wrapping, interrupt)?;
            builder.append("executionStats", ValueRef::Document(stats.as_document()));
        }
        Ok(builder.finish())
    }
}

fn planner(
    find: &Find,
    source: &dyn Source,
    choice: &Choice,
    (wrapping, millis): (Wrapping, i64),
) -> Result<DocumentBuf, Error> {
    let mut builder = DocumentBuilder::new();
    builder.append("namespace", ValueRef::String(&source.namespace()));
    let is_set = choose::index_filter(find, source).is_some();
    builder.append("indexFilterSet", ValueRef::Bool(is_set));
    builder.append(
        "parsedQuery",
        ValueRef::Document(find.filter.to_document().as_document()),
    );
    let standing = find.standing(source, &choice.winner)?;
    let shape = standing.shape.hash();
    builder.append("queryHash", ValueRef::String(&shape));
    builder.append("planCacheShapeHash", ValueRef::String(&shape));
    let key = standing.key.text();
    builder.append("planCacheKey", ValueRef::String(&key));
    builder.append("optimizationTimeMillis", number(millis));
    if wrapping == Wrapping::Pipeline {
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
    let winner = wrapped(&choice.winner, wrapping, None);
    builder.begin_document("winningPlan");
    builder.append("isCached", ValueRef::Bool(standing.is_cached));
    for (name, value) in winner.as_document() {
        builder.append(name, value);
    }
    builder.end();
    let rejected: ArrayBuf = choice
        .rejected
        .iter()
        .map(|plan| Value::Document(print_plan(plan)))
        .collect();
    builder.append("rejectedPlans", ValueRef::Array(rejected.as_array()));
    Ok(builder.finish())
}

fn execution(
    choice: &Choice,
    source: &Arc<dyn Source>,
    verbosity: Verbosity,
    wrapping: Wrapping,
    interrupt: &dyn Interrupt,
) -> Result<DocumentBuf, Error> {
    let started = Instant::now();
    let mut operator = operators::open(&choice.winner, source)?;
    let mut count = 0i64;
    while operator.next(interrupt)?.is_some() {
        count += 1;
    }
    let millis = started.elapsed().as_millis() as i64;
    let totals = totals(&*operator);
    let mut builder = DocumentBuilder::new();
    builder.append("executionSuccess", ValueRef::Bool(true));
    let returned = match wrapping {
        Wrapping::None | Wrapping::Pipeline => count,
        _ => 0,
    };
    builder.append("nReturned", number(returned));
    builder.append("executionTimeMillis", number(millis));
    builder.append("totalKeysExamined", number(totals.keys_examined as i64));
    builder.append(
        "totalDocsExamined",
        number(totals.documents_examined as i64),
    );
    let stages = wrapped(&choice.winner, wrapping, Some((&*operator, count)));
    builder.append("executionStages", ValueRef::Document(stages.as_document()));
    if verbosity == Verbosity::AllPlansExecution {
        builder.append(
            "allPlansExecution",
            ValueRef::Array(ArrayBuf::new().as_array()),
        );
    }
    Ok(builder.finish())
}

fn totals(operator: &dyn Operator) -> Counters {
    let mut sum = operator.counters();
    for input in operator.inputs() {
        let below = totals(input);
        sum.keys_examined += below.keys_examined;
        sum.documents_examined += below.documents_examined;
    }
    sum
}

/// The plan with the command's own stage on top.
fn wrapped(plan: &Plan, wrapping: Wrapping, run: Option<(&dyn Operator, i64)>) -> DocumentBuf {
    let inner = print(plan, run.map(|(operator, _)| operator));
    let (name, counted) = match wrapping {
        Wrapping::None | Wrapping::Pipeline => return inner,
        Wrapping::Count => ("COUNT", "nCounted"),
        Wrapping::Delete => ("DELETE", "nWouldDelete"),
        Wrapping::Update => ("UPDATE", "nWouldModify"),
    };
    let mut builder = DocumentBuilder::new();
    builder.append("stage", ValueRef::String(name));
    if let Some((_, count)) = run {
        builder.append("nReturned", ValueRef::Int32(0));
        builder.append("works", number(count + 1));
        builder.append("advanced", ValueRef::Int32(0));
        builder.append("needTime", number(count));
        builder.append("isEOF", ValueRef::Int32(1));
        builder.append(counted, number(count));
    }
    builder.append("inputStage", ValueRef::Document(inner.as_document()));
    builder.finish()
}
