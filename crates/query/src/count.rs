//! `count`.

use std::sync::Arc;

use windrow_mql::filter::{Filter, Node};

use crate::Error;
use crate::bounds::range::ScanRanges;
use crate::cursor::Cursor;
use crate::find::{Find, Hint};
use crate::operators;
use crate::plan::{KeyOutput, Plan};
use crate::row::Interrupt;
use crate::source::Source;

/// The parts of a `count`.
#[derive(Clone, Debug)]
pub struct Count {
    pub filter: Filter,
    pub skip: u64,
    pub limit: Option<u64>,
    pub hint: Option<Hint>,
}

impl Count {
    /// The query that is counted: nothing of its documents is needed.
    pub fn find(&self) -> Find {
        Find {
            skip: self.skip,
            limit: self.limit,
            hint: self.hint.clone(),
            needs: Some(Vec::new()),
            ..Find::of(self.filter.clone())
        }
    }

    /// The number of documents that match, less those skipped, up to the limit.
    pub fn run(&self, source: &Arc<dyn Source>, interrupt: &dyn Interrupt) -> Result<u64, Error> {
        if matches!(self.filter.root(), Node::AlwaysTrue) && self.hint.is_none() {
            let count = source.count().saturating_sub(self.skip);
            return Ok(self.limit.map_or(count, |limit| count.min(limit)));
        }
        let plan = self.find().plan(&**source)?.winner;
        match by_fences(&plan, &**source)? {
            Some(count) => Ok(count),
            None => Cursor::of(operators::open(&plan, source)?).count(interrupt),
        }
    }
}

/// The count of a plan that does nothing but read entries, each of a record of its own, where it is known
/// without reading them.
fn by_fences(plan: &Plan, source: &dyn Source) -> Result<Option<u64>, Error> {
    let Plan::IndexScan(scan) = plan else {
        return Ok(None);
    };
    let ranges = ScanRanges::of(&scan.index.definition, &scan.bounds);
    let is_all = scan.range.is_none() && scan.filter.is_none() && ranges.is_plain();
    if !is_all || scan.output != KeyOutput::Nothing || scan.may_repeat() {
        return Ok(None);
    }
    let mut count = 0;
    for (from, to) in &ranges.ranges {
        match source.count_entries(scan.index.number, from, to)? {
            Some(entries) => count += entries,
            None => return Ok(None),
        }
    }
    source.note_use(scan.index.number);
    Ok(Some(count))
}
