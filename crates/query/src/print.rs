//! Prints plans as the documents that MongoDB's tools read, with or without the counters of a run.

use std::fmt;

use windrow_document::{ArrayBuf, DocumentBuf, DocumentBuilder, Value, ValueRef, doc};
use windrow_geo::Cells;
use windrow_mql::filter::Filter;

use crate::bounds::key_ends::KeyEnds;
use crate::near::NearScan;
use crate::operators::{Counters, Operator, SORT_BYTES_MAX};
use crate::plan::{ClusteredScan, IndexScan, Plan, ProjectionKind};
use crate::source::Direction;
use crate::text::TextScan;

/// The memory limit of a sort, as explain shows it.
const SORT_BYTES: i64 = SORT_BYTES_MAX as i64;

/// Bounds with more bytes than this are left out of the output.
const BOUNDS_BYTES_MAX: usize = 4 << 20;

/// The plan as `winningPlan` shows it.
pub fn print_plan(plan: &Plan) -> DocumentBuf {
    print(plan, None)
}

/// The plan with the counters of each operator, as `executionStages` shows it.
pub fn print_run(plan: &Plan, operator: &dyn Operator) -> DocumentBuf {
    print(plan, Some(operator))
}

pub(crate) fn number(value: i64) -> ValueRef<'static> {
    i32::try_from(value).map_or(ValueRef::Int64(value), ValueRef::Int32)
}

fn count(value: u64) -> ValueRef<'static> {
    number(i64::try_from(value).unwrap_or(i64::MAX))
}

/// Prints the plan, with the counters if there is a run.
pub(crate) fn print(plan: &Plan, run: Option<&dyn Operator>) -> DocumentBuf {
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
        Plan::Text { scan, .. } => {
            let terms = Value::Document(terms(scan, counters));
            match printed.next() {
                None => builder.append("inputStage", terms.as_ref()),
                Some(within) => {
                    let list: ArrayBuf = [terms, within].into_iter().collect();
                    builder.append("inputStages", ValueRef::Array(list.as_array()));
                }
            }
        }
        _ => {
            if let Some(input) = printed.next() {
                builder.append("inputStage", input.as_ref());
            }
        }
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
        Plan::IndexScan(scan) => scan.stage(),
        Plan::Text { .. } => "TEXT_MATCH",
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
        Plan::Project {
            kind: ProjectionKind::Covered,
            ..
        } => "PROJECTION_COVERED",
        Plan::Project {
            kind: ProjectionKind::Simple,
            ..
        } => "PROJECTION_SIMPLE",
        Plan::Project {
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
        Plan::Text { scan, .. } => append_text(scan, builder),
        Plan::Near(scan) => append_near(scan, builder),
        Plan::Sort { sort, limit, .. } => {
            builder.append(
                "sortPattern",
                ValueRef::Document(sort.to_document().as_document()),
            );
            builder.append("memLimit", number(SORT_BYTES));
            if let Some(limit) = limit {
                builder.append("limitAmount", count(*limit));
            }
            let kind = if sort.needs_metadata() {
                "default"
            } else {
                "simple"
            };
            builder.append("type", ValueRef::String(kind));
        }
        Plan::Skip { amount, .. } => builder.append("skipAmount", count(*amount)),
        Plan::Limit { amount, .. } => builder.append("limitAmount", count(*amount)),
        Plan::Project { projection, .. } => {
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
    if let Some(collation) = &definition.collation {
        builder.append("collation", ValueRef::Document(collation.specification()));
    }
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
    if let Some(ends) = scan.counted_ends() {
        append_ends(&ends, builder);
        return;
    }
    builder.append(
        "direction",
        ValueRef::String(direction_name(scan.direction)),
    );
    append_bounds(scan, builder);
}

fn append_ends(ends: &KeyEnds, builder: &mut DocumentBuilder) {
    builder.begin_document("indexBounds");
    builder.append("startKey", ValueRef::Document(ends.first.as_document()));
    builder.append("startKeyInclusive", ValueRef::Bool(ends.includes_first));
    builder.append("endKey", ValueRef::Document(ends.last.as_document()));
    builder.append("endKeyInclusive", ValueRef::Bool(ends.includes_last));
    builder.end();
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
    let mut bounds = DocumentBuilder::new();
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
        bounds.append(&field.path.to_string(), ValueRef::Array(list.as_array()));
    }
    let bounds = bounds.finish();
    if builder.len() + bounds.as_document().as_bytes().len() <= BOUNDS_BYTES_MAX {
        builder.append("indexBounds", ValueRef::Document(bounds.as_document()));
    } else {
        let warning = "index bounds omitted due to BSON size limit for explain";
        builder.append("warning", ValueRef::String(warning));
    }
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
    if let Some(best) = scan.best {
        builder.append("limitAmount", number(best as i64));
    }
    let version = scan.definition.specification.get("textIndexVersion");
    builder.append("textIndexVersion", version.unwrap_or(ValueRef::Int32(3)));
}

/// The scans of the terms. They are part of the same operator.
fn terms(scan: &TextScan, counters: Option<Counters>) -> DocumentBuf {
    let mut builder = DocumentBuilder::new();
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
    builder.finish()
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
        Plan::IndexScan(scan) if scan.stage() != "IXSCAN" => {
            add("keysExamined", counters.keys_examined);
        }
        Plan::IndexScan(_) => {
            add("keysExamined", counters.keys_examined);
            add("seeks", counters.seeks.max(1));
            add("dupsTested", counters.duplicates_tested);
            add("dupsDropped", counters.duplicates_dropped);
        }
        Plan::Text { scan, .. } => {
            add("keysExamined", counters.keys_examined);
            if scan.best.is_some() {
                add("keysSkipped", counters.keys_skipped);
            }
        }
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

/// The plan as explain shows it, in one line.
impl fmt::Display for Plan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        print_plan(self).fmt(formatter)
    }
}
