//! Operators run plans. Each returns one row at a time.
//!
//! Each step of a [`Plan`] becomes one [`Operator`]; [`open`] builds the tree. An operator owns
//! what it reads from, so a cursor can wait between two batches for any time.

mod and;
mod collection_scan;
mod document_prefetch;
mod fetch;
pub(crate) mod id_set;
mod index_scan;
pub(crate) mod key_document;
mod keyed_row;
mod merge;
mod near;
mod operator;
mod or;
mod parallel;
mod project;
mod reads;
mod skip_limit;
mod sort;
pub(crate) mod sorter;
mod spill;
mod tasks;
mod text;

use std::sync::Arc;

use windrow_interrupt::Interrupt;
use windrow_mql::projection::Projection;

use crate::Error;
use crate::plan::{ClusteredScan, KeyOutput, Plan};
use crate::row::Row;
use crate::source::Source;

pub(crate) use document_prefetch::PrefetchedDocuments;
pub(crate) use keyed_row::KeyedRow;
pub use operator::{BoxOperator, Counters, Operator, Part};
pub(crate) use operator::{counted, parts_over, totals};
pub(crate) use parallel::{RowConsumer, count_rows, fold_alone, fold_parts, threads};
pub use reads::ReadCounters;
pub(crate) use skip_limit::{Limit, Skip};
pub(crate) use sort::Sort as SortOperator;
pub(crate) use sorter::{
    MemoryLimit, SORT_BYTES_MAX, SortedRows, Sorter, bytes_max, is_over_memory, over_memory,
};
pub(crate) use tasks::run_tasks;

/// Builds the operators of a plan. Records the use of the indexes and the collection scans.
pub fn open(plan: &Plan, source: &Arc<dyn Source>) -> Result<BoxOperator, Error> {
    record_use(plan, &**source);
    let input = |plan: &Plan| open(plan, source);
    let all = |plans: &[Plan]| plans.iter().map(input).collect::<Result<Vec<_>, _>>();
    Ok(match plan {
        Plan::Eof => Box::new(Eof::default()),
        Plan::CollectionScan { direction, filter } => Box::new(
            collection_scan::CollectionScan::new(source, *direction, filter.clone())?,
        ),
        Plan::IdHack { id, .. } => Box::new(fetch::IdHack::new(source.clone(), id.clone())),
        Plan::IndexScan(scan) | Plan::ClusteredScan(ClusteredScan { scan, .. }) => {
            Box::new(index_scan::IndexScanOperator::new(source, scan)?)
        }
        Plan::Text { scan, within } => {
            let within = within.as_deref().map(input).transpose()?;
            Box::new(text::TextScanOperator::new(source.clone(), scan, within))
        }
        Plan::Near(scan) => Box::new(near::NearScanOperator::new(source.clone(), scan)),
        Plan::Or(inputs) => Box::new(or::Or::new(all(inputs)?)),
        Plan::SortMerge { sort, inputs } => {
            Box::new(merge::SortMerge::new(sort.clone(), all(inputs)?))
        }
        Plan::AndSorted(inputs) => Box::new(and::AndSorted::new(all(inputs)?)),
        Plan::Fetch {
            filter,
            input: from,
        } => Box::new(fetch::Fetch::new(
            source.clone(),
            filter.clone(),
            input(from)?,
        )),
        Plan::Sort {
            sort,
            limit,
            allow_disk_use,
            input: from,
        } => Box::new(sort::Sort::new(
            sort.clone(),
            *limit,
            *allow_disk_use,
            input(from)?,
        )),
        Plan::Skip {
            amount,
            input: from,
        } => Box::new(skip_limit::Skip::new(*amount, input(from)?)),
        Plan::Limit {
            amount,
            input: from,
        } => Box::new(skip_limit::Limit::new(*amount, input(from)?)),
        Plan::Project {
            projection,
            sort,
            input: from,
            ..
        } => Box::new(project::Project::new(
            projection.clone(),
            sort.clone(),
            is_whole_key(projection, from),
            input(from)?,
        )),
        Plan::ReturnKey {
            sort_keys,
            input: from,
        } => Box::new(project::ReturnKey::new(sort_keys.clone(), input(from)?)),
        Plan::RecordIds { input: from } => Box::new(project::RecordIds::new(input(from)?)),
    })
}

/// Returns `true` if the projection keeps exactly the fields of the index keys below it. The rows
/// then need no projection.
fn is_whole_key(projection: &Projection, input: &Plan) -> bool {
    let (Plan::IndexScan(scan), Some(included)) = (input, projection.plain_inclusion()) else {
        return false;
    };
    let fields = &scan.index.definition.fields;
    if let KeyOutput::Field(number) = scan.output {
        let field = fields.get(number).map(|field| &field.path);
        return included.iter().eq(field);
    }
    scan.output == KeyOutput::Document
        && included.len() == fields.len()
        && fields.iter().all(|field| included.contains(&field.path))
}

/// Records the use of the index, or the collection scan, in the statistics.
fn record_use(plan: &Plan, source: &dyn Source) {
    match plan {
        Plan::CollectionScan { .. } => source.record_scan(),
        Plan::IdHack { .. } => source.record_use(0),
        Plan::IndexScan(scan) => source.record_use(scan.index.number),
        Plan::Text { scan, .. } => source.record_use(scan.number),
        Plan::Near(scan) => source.record_use(scan.index.number),
        _ => {}
    }
}

/// No rows.
#[derive(Default)]
struct Eof {
    counters: Counters,
}

impl Operator for Eof {
    fn next(&mut self, _: &dyn Interrupt) -> Result<Option<Row>, Error> {
        self.counters.works += 1;
        self.counters.at_end = true;
        Ok(None)
    }

    counted!(counters);
}
