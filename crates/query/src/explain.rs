//! Plans and what they did, in the words and shapes that MongoDB's tools read.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use windrow_document::{ArrayBuf, DocumentBuf, DocumentBuilder, Value, ValueRef, doc};
use windrow_geo::Cells;
use windrow_mql::filter::Filter;

use crate::Error;
use crate::choose::{self, Choice};
use crate::find::Find;
use crate::near::NearScan;
use crate::operators::{self, Counters, Operator};
use crate::plan::{ClusteredScan, IndexScan, Plan, ProjectionKind};
use crate::row::Interrupt;
use crate::source::{Direction, Source};
use crate::text::TextScan;

/// Bytes that a sort may hold, as explain says it.
const SORT_BYTES: i64 = operators::SORT_BYTES_MAX as i64;

/// How much explain tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verbosity {
    QueryPlanner,
    ExecutionStats,
    /// The same as `ExecutionStats`: plans are not raced.
    AllPlansExecution,
}

impl Verbosity {
    /// Error 9 for an unknown name.
    pub fn parse(name: &str) -> Result<Verbosity, Error> {
        match name {
            "queryPlanner" => Ok(Verbosity::QueryPlanner),
            "executionStats" => Ok(Verbosity::ExecutionStats),
            "allPlansExecution" => Ok(Verbosity::AllPlansExecution),
            _ => Err(Error::new(
                9,
                "verbosity string must be one of {'queryPlanner', 'executionStats', 'allPlansExecution'}",
            )),
        }
    }

    pub(crate) fn runs(self) -> bool {
        self != Verbosity::QueryPlanner
    }
}

/// What a command adds around the plan of its query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrapping {
    None,
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
        let choice = self.plan(&**source)?;
        let millis = started.elapsed().as_millis() as i64;
        let mut builder = DocumentBuilder::new();
        builder.append("explainVersion", ValueRef::String("1"));
        let planner = planner(self, &**source, &choice, (wrapping, millis));
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
) -> DocumentBuf {
    let mut builder = DocumentBuilder::new();
    builder.append("namespace", ValueRef::String(&source.namespace()));
    let is_set = choose::index_filter(find, source).is_some();
    builder.append("indexFilterSet", ValueRef::Bool(is_set));
    builder.append(
        "parsedQuery",
        ValueRef::Document(find.filter.to_document().as_document()),
    );
    let shape = find.shape().hash();
    // Plans are chosen anew for each query, so that its shape is all that tells them apart.
    for name in ["queryHash", "planCacheShapeHash", "planCacheKey"] {
        builder.append(name, ValueRef::String(&shape));
    }
    builder.append("optimizationTimeMillis", number(millis));
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
    builder.append("isCached", ValueRef::Bool(false));
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
    builder.finish()
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
    let returned = if wrapping == Wrapping::None { count } else { 0 };
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
        Wrapping::None => return inner,
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

/// The plan as `winningPlan` shows it.
pub fn print_plan(plan: &Plan) -> DocumentBuf {
    print(plan, None)
}

fn number(value: i64) -> ValueRef<'static> {
    i32::try_from(value).map_or(ValueRef::Int64(value), ValueRef::Int32)
}

fn print(plan: &Plan, run: Option<&dyn Operator>) -> DocumentBuf {
    let mut builder = DocumentBuilder::new();
    builder.append("stage", ValueRef::String(name(plan)));
    let before = matches!(
        plan,
        Plan::Fetch { .. } | Plan::CollectionScan { .. } | Plan::ClusteredScan(_)
    );
    if before {
        append_details(plan, &mut builder);
    }
    let counters = run.map(Operator::counters);
    if let Some(counters) = counters {
        append_counters(plan, &counters, &mut builder);
    }
    if !before {
        append_details(plan, &mut builder);
    }
    let operators = run.map(Operator::inputs).unwrap_or_default();
    let inputs = plan.inputs();
    let mut printed = inputs
        .iter()
        .enumerate()
        .map(|(number, input)| Value::Document(print(input, operators.get(number).copied())));
    match plan {
        Plan::Or(_) | Plan::SortMerge { .. } | Plan::AndSorted(_) => {
            let list: ArrayBuf = printed.collect();
            builder.append("inputStages", ValueRef::Array(list.as_array()));
        }
        _ => {
            if let Some(input) = printed.next() {
                builder.append("inputStage", input.as_ref());
            }
        }
    }
    if let Plan::Text(scan) = plan {
        append_terms(scan, counters, &mut builder);
    }
    builder.finish()
}

fn name(plan: &Plan) -> &'static str {
    match plan {
        Plan::Eof => "EOF",
        Plan::CollectionScan { .. } => "COLLSCAN",
        Plan::IdHack {
            clustered: false, ..
        } => "IDHACK",
        Plan::IdHack {
            clustered: true, ..
        }
        | Plan::ClusteredScan(_) => "CLUSTERED_IXSCAN",
        Plan::IndexScan(_) => "IXSCAN",
        Plan::Text(_) => "TEXT_MATCH",
        Plan::Near(scan) => match scan.cells {
            Cells::Sphere(_) => "GEO_NEAR_2DSPHERE",
            Cells::Plane(_) => "GEO_NEAR_2D",
        },
        Plan::Or(_) => "OR",
        Plan::SortMerge { .. } => "SORT_MERGE",
        Plan::AndSorted(_) => "AND_SORTED",
        Plan::Fetch { .. } => "FETCH",
        Plan::Sort { .. } => "SORT",
        Plan::Skip { .. } => "SKIP",
        Plan::Limit { .. } => "LIMIT",
        Plan::Projection {
            kind: ProjectionKind::Covered,
            ..
        } => "PROJECTION_COVERED",
        Plan::Projection {
            kind: ProjectionKind::Simple,
            ..
        } => "PROJECTION_SIMPLE",
        Plan::Projection {
            kind: ProjectionKind::Default,
            ..
        } => "PROJECTION_DEFAULT",
        Plan::ReturnKey { .. } => "RETURN_KEY",
        Plan::RecordIds { .. } => "RECORD_IDS",
    }
}

fn direction_name(direction: Direction) -> &'static str {
    match direction {
        Direction::Forward => "forward",
        Direction::Backward => "backward",
    }
}

fn append_filter(filter: Option<&Filter>, builder: &mut DocumentBuilder) {
    if let Some(filter) = filter {
        builder.append(
            "filter",
            ValueRef::Document(filter.to_document().as_document()),
        );
    }
}

fn append_details(plan: &Plan, builder: &mut DocumentBuilder) {
    match plan {
        Plan::CollectionScan { direction, filter } => {
            append_filter(filter.as_ref(), builder);
            builder.append("direction", ValueRef::String(direction_name(*direction)));
        }
        Plan::Fetch { filter, .. } => append_filter(filter.as_ref(), builder),
        Plan::IndexScan(scan) => append_scan(scan, builder),
        Plan::Text(scan) => append_text(scan, builder),
        Plan::Near(scan) => append_near(scan, builder),
        Plan::Sort { sort, limit, .. } => {
            builder.append(
                "sortPattern",
                ValueRef::Document(sort.to_document().as_document()),
            );
            builder.append("memLimit", number(SORT_BYTES));
            if let Some(limit) = limit {
                builder.append("limitAmount", number(*limit as i64));
            }
            let kind = if sort.needs_text_score() {
                "default"
            } else {
                "simple"
            };
            builder.append("type", ValueRef::String(kind));
        }
        Plan::Skip { amount, .. } => builder.append("skipAmount", number(*amount as i64)),
        Plan::Limit { amount, .. } => builder.append("limitAmount", number(*amount as i64)),
        Plan::Projection { projection, .. } => {
            builder.append("transformBy", ValueRef::Document(projection.source()));
        }
        Plan::IdHack {
            id,
            clustered: true,
        } => append_one_id(id, builder),
        Plan::ClusteredScan(scan) => append_clustered(scan, builder),
        Plan::SortMerge { sort, .. } => {
            let pattern = sort.to_document();
            builder.append("sortPattern", ValueRef::Document(pattern.as_document()));
        }
        Plan::Eof | Plan::IdHack { .. } | Plan::Or(_) | Plan::AndSorted(_) => {}
        Plan::ReturnKey { .. } | Plan::RecordIds { .. } => {}
    }
}

fn append_near(scan: &NearScan, builder: &mut DocumentBuilder) {
    let definition = &scan.index.definition;
    append_filter(scan.filter.as_ref(), builder);
    builder.append("keyPattern", ValueRef::Document(definition.key_pattern()));
    builder.append("indexName", ValueRef::String(&definition.name));
    builder.append("indexVersion", ValueRef::Int32(2));
}

fn append_scan(scan: &IndexScan, builder: &mut DocumentBuilder) {
    let definition = &scan.index.definition;
    append_filter(scan.filter.as_ref(), builder);
    builder.append("keyPattern", ValueRef::Document(definition.key_pattern()));
    builder.append("indexName", ValueRef::String(&definition.name));
    builder.append("isMultiKey", ValueRef::Bool(scan.index.multikey.any()));
    builder.begin_document("multiKeyPaths");
    for (number, field) in definition.fields.iter().enumerate() {
        let parts = crate::bounds::parts_with_arrays(&scan.index, number);
        let paths = field.path.components().iter().enumerate().scan(
            String::new(),
            |path, (part, component)| {
                let dot = if part == 0 { "" } else { "." };
                *path = format!("{path}{dot}{}", component.name());
                Some((part, path.clone()))
            },
        );
        let met = paths
            .filter(|(part, _)| parts >> part & 1 == 1)
            .map(|(_, path)| Value::from(path));
        let list: ArrayBuf = met.collect();
        builder.append(&field.path.to_string(), ValueRef::Array(list.as_array()));
    }
    builder.end();
    builder.append("isUnique", ValueRef::Bool(definition.unique));
    builder.append("isSparse", ValueRef::Bool(definition.sparse));
    builder.append("isPartial", ValueRef::Bool(definition.partial.is_some()));
    builder.append("indexVersion", ValueRef::Int32(2));
    builder.append(
        "direction",
        ValueRef::String(direction_name(scan.direction)),
    );
    append_bounds(scan, builder);
}

fn append_clustered(clustered: &ClusteredScan, builder: &mut DocumentBuilder) {
    append_filter(clustered.answers.as_ref(), builder);
    let scan = &clustered.scan;
    let direction = direction_name(scan.direction);
    builder.append("direction", ValueRef::String(direction));
    let intervals = scan.bounds.fields.first().map(|field| field.as_slice());
    let intervals = intervals.unwrap_or_default();
    if let (Some(first), Some(last)) = (intervals.first(), intervals.last()) {
        builder.append("minRecord", first.low.as_ref());
        builder.append("maxRecord", last.high.as_ref());
    }
}

fn append_one_id(id: &Value, builder: &mut DocumentBuilder) {
    let filter = doc! { "_id": { "$eq": (id.clone()) } };
    builder.append("filter", ValueRef::Document(filter.as_document()));
    builder.append("direction", ValueRef::String("forward"));
    builder.append("minRecord", id.as_ref());
    builder.append("maxRecord", id.as_ref());
}

fn append_bounds(scan: &IndexScan, builder: &mut DocumentBuilder) {
    builder.begin_document("indexBounds");
    let fields = scan.index.definition.fields.iter().zip(&scan.bounds.fields);
    for (field, intervals) in fields.filter(|_| scan.range.is_none()) {
        let descends = field.kind == windrow_index::KeyKind::Descending;
        let downward = descends != (scan.direction == Direction::Backward);
        let mut printed: Vec<Value> = intervals
            .as_slice()
            .iter()
            .map(|one| one.print(downward).into())
            .collect();
        if downward {
            printed.reverse();
        }
        let list: ArrayBuf = printed.into_iter().collect();
        builder.append(&field.path.to_string(), ValueRef::Array(list.as_array()));
    }
    builder.end();
}

fn append_text(scan: &TextScan, builder: &mut DocumentBuilder) {
    append_filter(scan.filter.as_ref(), builder);
    builder.begin_document("indexPrefix");
    for (field, value) in scan.definition.fields.iter().zip(&scan.prefix) {
        builder.append(&field.path.to_string(), value.as_ref());
    }
    builder.end();
    builder.append("indexName", ValueRef::String(&scan.definition.name));
    builder.begin_document("parsedTextQuery");
    let mut list = |name: &str, texts: &[String]| {
        let texts: ArrayBuf = texts.iter().map(Value::from).collect();
        builder.append(name, ValueRef::Array(texts.as_array()));
    };
    list("terms", scan.query.terms());
    list("negatedTerms", scan.query.negated_terms());
    list("phrases", scan.query.phrases());
    list("negatedPhrases", scan.query.negated_phrases());
    builder.end();
    let version = scan.definition.specification.get("textIndexVersion");
    builder.append("textIndexVersion", version.unwrap_or(ValueRef::Int32(3)));
}

/// The scans of the terms, which are part of the same step.
fn append_terms(scan: &TextScan, counters: Option<Counters>, builder: &mut DocumentBuilder) {
    builder.begin_document("inputStage");
    builder.append("stage", ValueRef::String("TEXT_OR"));
    if let Some(counters) = counters {
        builder.append("docsExamined", number(counters.documents_examined as i64));
    }
    builder.begin_array("inputStages");
    for place in 0..scan.query.terms().len() {
        builder.begin_document(&place.to_string());
        builder.append("stage", ValueRef::String("IXSCAN"));
        builder.append(
            "keyPattern",
            ValueRef::Document(scan.definition.key_pattern()),
        );
        builder.append("indexName", ValueRef::String(&scan.definition.name));
        builder.append("isMultiKey", ValueRef::Bool(true));
        builder.append("direction", ValueRef::String("forward"));
        builder.end();
    }
    builder.end();
    builder.end();
}

fn append_counters(plan: &Plan, counters: &Counters, builder: &mut DocumentBuilder) {
    let mut add = |name: &str, value: u64| builder.append(name, number(value as i64));
    add("nReturned", counters.returned);
    add("executionTimeMillisEstimate", 0);
    add("works", counters.works);
    add("advanced", counters.returned);
    let end = u64::from(counters.at_end);
    add(
        "needTime",
        counters.works.saturating_sub(counters.returned + end),
    );
    add("needYield", 0);
    add("saveState", 0);
    add("restoreState", 0);
    add("isEOF", end);
    match plan {
        Plan::CollectionScan { .. }
        | Plan::ClusteredScan(_)
        | Plan::IdHack {
            clustered: true, ..
        } => add("docsExamined", counters.documents_examined),
        Plan::Fetch { .. } => {
            add("docsExamined", counters.documents_examined);
            add("alreadyHasObj", 0);
        }
        Plan::IdHack { .. } => {
            add("keysExamined", counters.keys_examined);
            add("docsExamined", counters.documents_examined);
        }
        Plan::IndexScan(_) => {
            add("keysExamined", counters.keys_examined);
            add("seeks", counters.seeks.max(1));
            add("dupsTested", counters.duplicates_tested);
            add("dupsDropped", counters.duplicates_dropped);
        }
        Plan::Text(_) => add("keysExamined", counters.keys_examined),
        Plan::Or(_) | Plan::SortMerge { .. } => {
            add("dupsTested", counters.duplicates_tested);
            add("dupsDropped", counters.duplicates_dropped);
        }
        Plan::Sort { .. } => {
            add("totalDataSizeSorted", counters.bytes_sorted);
            builder.append("usedDisk", ValueRef::Bool(false));
        }
        _ => {}
    }
}

/// As explain shows it, in one line.
impl fmt::Display for Plan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        print_plan(self).fmt(formatter)
    }
}
