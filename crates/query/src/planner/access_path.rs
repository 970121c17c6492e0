//! A way to find the documents of a conjunction by one index, and its cost.

use std::sync::Arc;

use windrow_document::Collation;
use windrow_document::path::Path;
use windrow_mql::filter::{Filter, Node};
use windrow_mql::sort::{Sort, SortField};

use super::{order, selectivity};
use crate::Error;
use crate::bounds::leaf::Certainty;
use crate::bounds::range::ScanRanges;
use crate::bounds::wildcard::{self, CandidateIndex};
use crate::bounds::{IndexBounds, Predicate, Predicates, has_all, parts_with_arrays, predicates};
use crate::find::Find;
use crate::plan::{ClusteredScan, IndexScan, KeyOutput, Plan};
use crate::source::{Direction, Source, SourceIndex, approximate_count_all};

/// In smaller collections no keys are sampled, because all paths are cheap.
const SAMPLED_MIN: u64 = 10_000;

// Costs, in index entries read in sequence. They were measured on the engine's cursors. A fetch by
// record id is a search in the map of documents and usually opens another block.
pub(super) const FETCH_COST: f64 = 20.0;
/// Reading the next document of a collection scan.
const SCAN_COST: f64 = 4.0;
/// Making a document of a key, and testing it: 2 for numbers, 4 for strings of 20 bytes.
const KEY_TEST_COST: f64 = 2.5;
/// Reading a document beside its key.
const CLUSTERED_COST: f64 = 0.5;
const SEEK_COST: f64 = 6.0;
const SORT_COST: f64 = 0.5;
/// The planner assumes that this fraction of the documents that do not match comes before the first
/// match, up to a maximum.
const FRACTION_IN_FRONT: f64 = 0.1;
const IN_FRONT_MAX: f64 = 2_000.0;
/// The counts include documents deleted lately. So at least this fraction of all documents is
/// assumed not to match.
const UNMATCHED_MIN: f64 = 0.05;

/// The conjunction of a filter, on a collection.
#[derive(Clone)]
pub struct PlanningContext<'s> {
    pub(super) root: &'s Node,
    pub(super) predicates: Predicates,
    pub(super) source: &'s dyn Source,
    /// The indexes that may be used, if a hint or the plan cache restricts them.
    pub(super) only: Option<Vec<usize>>,
    /// If `false`, entries are not counted. There is nothing to compare then.
    counts: bool,
}

/// A candidate path with its cost.
#[derive(Clone, Debug)]
pub struct AccessPath {
    /// The plan for rows without documents.
    pub plan: Plan,
    /// The estimated number of entries that are read.
    pub entries: f64,
    /// The estimated number of documents that are found.
    pub documents: f64,
    /// The number of seeks.
    pub seeks: f64,
    /// The keys contain all values that the query needs.
    pub covers: bool,
    /// The plan tests the complete filter.
    pub certain: bool,
    /// The rows come in the requested order.
    pub ordered: bool,
}

impl AccessPath {
    /// A path without rows, to which others are added.
    pub fn empty(certain: bool) -> AccessPath {
        AccessPath {
            plan: Plan::Eof,
            entries: 0.0,
            documents: 0.0,
            seeks: 0.0,
            covers: false,
            certain,
            ordered: false,
        }
    }

    /// Adds the work of another path.
    pub fn add(&mut self, other: &AccessPath) {
        self.entries += other.entries;
        self.documents += other.documents;
        self.seeks += other.seeks;
        self.certain &= other.certain;
    }

    /// Returns the cost of the path, if `matching` of `total` documents match. A limit ends a path
    /// early if its rows are ordered.
    pub fn cost(&self, find: &Find, matching: f64, total: f64) -> f64 {
        let sorts = !self.ordered && find.order().is_some();
        let fraction = fraction_read(find, sorts, matching.min(self.documents), total);
        let fetch = match &self.plan {
            Plan::IndexScan(scan) if scan.index.definition.clustered => CLUSTERED_COST,
            _ if self.covers => 0.25,
            _ => FETCH_COST,
        };
        let test = match &self.plan {
            Plan::IndexScan(scan) if scan.filter.is_some() => KEY_TEST_COST,
            _ => 0.0,
        };
        let read = fraction * ((1.0 + test) * self.entries + fetch * self.documents);
        read + SEEK_COST * self.seeks + sort_cost(sorts, self.documents)
    }

    /// Sets the direction of the scan.
    pub fn set_direction(&mut self, direction: Direction) {
        if let Plan::IndexScan(scan) = &mut self.plan {
            scan.direction = direction;
        }
    }

    /// Returns the plan for the rows. The remaining conditions still have to be tested.
    pub fn into_rows(self) -> Plan {
        match self.plan {
            Plan::IndexScan(scan) if scan.index.definition.clustered => stored(scan, None),
            other => other,
        }
    }

    /// Sets the direction that gives the requested order, if there is one.
    pub fn set_order_direction(&mut self, order: Option<&Sort>) {
        if let Plan::IndexScan(scan) = &mut self.plan
            && let Some(direction) = order::direction(&scan.index, &scan.bounds, order)
        {
            scan.direction = direction;
            self.ordered = true;
        }
    }
}

/// The plan that reads the documents of a clustered collection within the bounds. `answers` is the
/// filter that the scan answers.
pub fn stored(mut scan: IndexScan, answers: Option<Filter>) -> Plan {
    scan.output = KeyOutput::Stored;
    Plan::ClusteredScan(ClusteredScan { scan, answers })
}

/// Returns the cost of reading all `total` documents of a collection, of which about `matching`
/// match. `is_exact` is `true` if the entries of an index are exactly the documents that match. A
/// scan that ends at a limit may first read many documents that do not match, such as the finished
/// jobs of a queue. The index would avoid them at little more cost, so a part of them is added in
/// this case.
pub fn scan_cost(find: &Find, matching: f64, total: f64, is_exact: bool) -> f64 {
    let sorts = find.order().is_some();
    let even = fraction_read(find, sorts, matching, total) * total;
    let others = (total - matching).max(total * UNMATCHED_MIN);
    let in_front = if is_exact {
        (others * FRACTION_IN_FRONT).min(IN_FRONT_MAX)
    } else {
        0.0
    };
    (even + in_front).min(total) * SCAN_COST + sort_cost(sorts, matching)
}

/// Returns the fraction of a path that is read before the limit is reached. It is 1 if the rows have
/// to be sorted.
fn fraction_read(find: &Find, sorts: bool, matching: f64, total: f64) -> f64 {
    let rows_needed = find.limit.filter(|_| !sorts);
    let rows_needed = rows_needed.map_or(f64::INFINITY, |limit| (limit + find.skip) as f64);
    (rows_needed / matching.max(1.0).min(total.max(1.0))).min(1.0)
}

fn sort_cost(sorts: bool, documents: f64) -> f64 {
    if sorts {
        SORT_COST * documents * documents.max(2.0).log2()
    } else {
        0.0
    }
}

impl<'s> PlanningContext<'s> {
    /// Collects the predicates of a conjunction. `root` is the root of the filter.
    pub fn new(
        root: &'s Node,
        collation: Option<&Arc<Collation>>,
        source: &'s dyn Source,
    ) -> PlanningContext<'s> {
        PlanningContext {
            root,
            predicates: predicates(root, collation),
            source,
            only: None,
            counts: true,
        }
    }

    /// The same, without counting entries.
    pub fn uncounted(self) -> PlanningContext<'s> {
        PlanningContext {
            counts: false,
            ..self
        }
    }

    /// The same, restricted to these indexes.
    pub fn with_only(self, indexes: Vec<usize>) -> PlanningContext<'s> {
        PlanningContext {
            only: Some(indexes),
            ..self
        }
    }

    pub(super) fn may_use(&self, index: usize) -> bool {
        let only = self.only.as_ref();
        only.is_none_or(|only| only.contains(&index))
    }

    /// Returns `true` if the index contains all documents that match.
    pub fn has_all(&self, index: &SourceIndex) -> bool {
        has_all(index, self.root, &self.predicates)
    }

    /// Returns the path by the `_id`s of a clustered collection. `None` if the collection has no
    /// index.
    pub fn clustered(&self, find: &Find) -> Result<Option<AccessPath>, Error> {
        let Some(definition) = self.source.indexes().into_iter().next() else {
            return Ok(None);
        };
        let index = SourceIndex {
            number: 0,
            multikey: self.source.multikey(0)?,
            definition,
        };
        self.scan(index.into(), find)
    }

    /// Returns the indexes that may be used and can help.
    pub(super) fn candidates(&self, order: Option<&Sort>) -> Result<Vec<CandidateIndex>, Error> {
        let mut found = Vec::new();
        for (number, definition) in self.source.indexes().into_iter().enumerate() {
            if !self.may_use(number) || definition.hidden || definition.is_text() {
                continue;
            }
            if definition.is_wildcard() {
                let all = wildcard::expand(self.source, number, &definition, &self.predicates)?;
                found.extend(all.into_iter().filter(|one| self.has_all(&one.index)));
                continue;
            }
            let Some(first) = definition.fields.first().map(|field| &field.path) else {
                continue;
            };
            let helps = self.predicates.list.iter().any(|one| one.path == *first)
                || self
                    .predicates
                    .geo_predicates
                    .iter()
                    .any(|one| one.path == *first)
                || order.is_some_and(|order| starts_with(order, first));
            if !helps {
                continue;
            }
            let multikey = self.source.multikey(number)?;
            let index = SourceIndex {
                number,
                definition,
                multikey,
            };
            if self.has_all(&index) {
                found.push(index.into());
            }
        }
        Ok(found)
    }

    /// Returns the scan of an index within the tightest bounds. `None` if the index does not
    /// contain the values.
    pub fn scan(
        &self,
        candidate: CandidateIndex,
        find: &Find,
    ) -> Result<Option<AccessPath>, Error> {
        let CandidateIndex { index, paths } = candidate;
        let mut bounds = IndexBounds::new(&index, &self.predicates);
        if let Some(paths) = paths
            && !paths.restrict(&index, &mut bounds)
        {
            return Ok(None);
        }
        let ranges = ScanRanges::new(&index.definition, &bounds);
        let entries = if self.counts {
            self.count(index.number, &ranges)?
        } else {
            0.0
        };
        let checked = ranges.checks.iter().flatten().count() as i32;
        let filter = self.filter_of_keys(&index, find);
        let selectivity = match &filter {
            Some(_) => self.sampled_selectivity(&index, &ranges, entries)?,
            None => None,
        };
        let covers = self.covers(&index, &bounds, find);
        Ok(Some(AccessPath {
            entries,
            documents: entries * selectivity.unwrap_or(0.5f64.powi(checked)),
            seeks: ranges.ranges.len() as f64,
            covers,
            certain: bounds.certainty == Certainty::Exact,
            ordered: false,
            plan: Plan::IndexScan(IndexScan {
                index,
                direction: Direction::Forward,
                bounds,
                range: None,
                filter,
                output: KeyOutput::Nothing,
                distinct_prefix: None,
            }),
        }))
    }

    /// Returns the conditions to test on keys, so that documents that do not match are not fetched.
    fn filter_of_keys(&self, index: &SourceIndex, find: &Find) -> Option<Filter> {
        let needs_test =
            |one: &Predicate| one.extent.certainty == Certainty::Key && has_plain(index, &one.path);
        if find.shows_keys() || !self.predicates.list.iter().any(needs_test) {
            return None;
        }
        self.select(index, |certainty| certainty == Certainty::Key)
    }

    fn select(
        &self,
        index: &SourceIndex,
        is_selected: impl Fn(Certainty) -> bool,
    ) -> Option<Filter> {
        let collation = self.predicates.collation.as_ref();
        select_conditions(self.root, collation, index, is_selected)
    }

    /// Estimates the fraction of the entries that match by their keys. `None` if sampling is not
    /// worthwhile.
    fn sampled_selectivity(
        &self,
        index: &SourceIndex,
        ranges: &ScanRanges,
        entries: f64,
    ) -> Result<Option<f64>, Error> {
        if self.source.count() < SAMPLED_MIN {
            return Ok(None);
        }
        let by_key = |certainty| certainty != Certainty::Document;
        let filter = self.select(index, by_key);
        let estimate =
            |filter| selectivity::estimate(self.source, index, ranges, entries as u64, &filter);
        filter.map(estimate).transpose().map(Option::flatten)
    }

    fn count(&self, index: usize, ranges: &ScanRanges) -> Result<f64, Error> {
        approximate_count_all(self.source, index, &ranges.ranges)
    }

    /// Returns `true` if the keys contain all values that the query needs, and decide the filter.
    fn covers(&self, index: &SourceIndex, bounds: &IndexBounds, find: &Find) -> bool {
        if index.definition.collation.is_some() || index.definition.clustered {
            return false;
        }
        let decides_filter = match bounds.certainty {
            Certainty::Exact => true,
            Certainty::Key => has_all_plain(index, &self.predicates),
            Certainty::Document => false,
        };
        let Some(mut paths) = find
            .needed_paths()
            .filter(|_| decides_filter && !find.return_key)
        else {
            return false;
        };
        paths.extend(find.order().into_iter().flat_map(sorted_paths));
        paths.iter().all(|path| has_plain(index, path))
    }
}

/// Selects the conditions of a conjunction by what an entry within the index bounds proves about
/// them. The other conditions are tested on the document made of the key.
pub fn select_conditions(
    conjunction: &Node,
    collation: Option<&Arc<Collation>>,
    index: &SourceIndex,
    is_selected: impl Fn(Certainty) -> bool,
) -> Option<Filter> {
    let makes_documents = !index.definition.clustered && index.definition.has_plain_keys();
    Filter::select_conditions(conjunction, collation, |condition| {
        let predicates = predicates(condition, collation);
        is_selected(if makes_documents && has_all_plain(index, &predicates) {
            IndexBounds::new(index, &predicates).certainty
        } else {
            Certainty::Document
        })
    })
}

fn has_all_plain(index: &SourceIndex, predicates: &Predicates) -> bool {
    let mut list = predicates.list.iter();
    list.all(|predicate| has_plain(index, &predicate.path))
}

fn starts_with(order: &Sort, first: &Path) -> bool {
    // A sorted field after fields that are fixed by the filter needs no check here: the filter then
    // makes the index a candidate.
    matches!(order.pattern().first(), Some(SortField::Path { path, .. }) if path == first)
}

/// The paths by which the rows are sorted.
pub fn sorted_paths(order: &Sort) -> impl Iterator<Item = Path> + '_ {
    order.pattern().iter().filter_map(|field| match field {
        SortField::Path { path, .. } => Some(path.clone()),
        SortField::TextScore { .. } | SortField::Random { .. } => None,
    })
}

/// Returns `true` if the path is a field of the index that never contained an array, and no other
/// field is a prefix or an extension of it. Only then has the document made of a key the value at
/// this path. Numeric components may have been array positions, and would become field names.
pub fn has_plain(index: &SourceIndex, path: &Path) -> bool {
    let fields = &index.definition.fields;
    if path.components().iter().any(|part| part.index().is_some()) {
        return false;
    }
    let is_field = fields.iter().enumerate().any(|(number, field)| {
        let is_value = field.kind.is_plain();
        field.path == *path && is_value && parts_with_arrays(index, number) == 0
    });
    is_field
        && fields
            .iter()
            .all(|field| field.path == *path || !field.path.overlaps(path))
}
