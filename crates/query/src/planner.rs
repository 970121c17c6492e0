//! The planner: chooses the plan that answers a query with the least work.
//!
//! An index is a candidate if it restricts the filter or has the requested order. The number of
//! entries that each candidate would read is counted, not guessed: the number of entries of a range
//! follows from fence keys. The planner scans the collection if there is no candidate, and scans a
//! large collection if it would otherwise fetch most documents one by one. If several indexes
//! compete, the plan cache stores the winner for queries of the same shape.
//!
//! Reading order: this file, [`access_path`] (one index for a conjunction), [`order`],
//! `sort_merge`, `index_intersection`, `selectivity`, `skip_scan`, `text`, `distinct_prefix`,
//! `distinct`, `candidate_paths`, `ranking`, `cached_plans`, `hint`, `near`, `index_filter`.

pub mod access_path;
mod cached_plans;
mod candidate_paths;
mod distinct;
mod distinct_prefix;
pub(crate) mod hint;
mod index_filter;
mod index_intersection;
mod near;
pub mod order;
mod ranking;
mod selectivity;
mod skip_scan;
mod sort_merge;
mod text;

use windrow_document::Value;
use windrow_document::path::Path;
use windrow_mql::filter::{Comparison, Filter, Node};
use windrow_mql::sort::Sort;

use crate::Error;
use crate::bounds::leaf::Certainty;
use crate::find::Find;
use crate::plan::{IndexScan, KeyOutput, Plan, ProjectionKind};
use crate::restrictions::IndexFilter;
use crate::source::{Direction, Source};
use crate::text::NO_PLANS;
use access_path::{AccessPath, PlanningContext};
use cached_plans::{CacheSlot, CollectionPlans};
use index_filter::FilteredIndexes;
use order::RowOrder;
use ranking::RankedPaths;

pub use cached_plans::CacheStatus;

/// The chosen plan, and the plans that lost.
#[derive(Clone, Debug)]
pub struct PlanChoice {
    /// The plan to run.
    pub winner: Plan,
    /// The other plans, the cheapest first.
    pub rejected: Vec<Plan>,
}

impl PlanChoice {
    fn only(winner: Plan) -> PlanChoice {
        PlanChoice {
            winner,
            rejected: Vec::new(),
        }
    }
}

impl Find {
    /// Plans the query. Uses the plan cache if the source has one. Fails with 2 if no index matches
    /// the hint, with 27 or 291 if `$text`, the hint or `notablescan` leave no plan, and with 40218
    /// if the query sorts by a text score without a `$text`.
    ///
    /// ```
    /// use windrow_mql::filter::Filter;
    /// use windrow_query::{Find, NoCollection};
    /// let source = NoCollection { namespace: "a.b".to_owned() };
    /// let choice = Find::new(Filter::all()).plan(&source)?;
    /// assert_eq!(choice.winner.to_string(), r#"{"stage":"EOF"}"#);
    /// # Ok::<(), windrow_query::Error>(())
    /// ```
    pub fn plan(&self, source: &dyn Source) -> Result<PlanChoice, Error> {
        self.plan_by(source, CollectionPlans::new(source).as_ref())
    }

    /// Plans the query without the plan cache: neither reads nor writes it.
    pub fn plan_uncached(&self, source: &dyn Source) -> Result<PlanChoice, Error> {
        self.plan_by(source, None)
    }

    fn plan_by(
        &self,
        source: &dyn Source,
        plans: Option<&CollectionPlans<'_>>,
    ) -> Result<PlanChoice, Error> {
        let choice = match index_filter(self, source) {
            None => choose(self, source, plans),
            Some(filter) => {
                let source = FilteredIndexes::new(source, filter);
                choose(&without_hint(self), &source, plans)
            }
        }?;
        check_table_scans(self, &choice.winner, source)?;
        Ok(choice)
    }

    /// Returns the state of the plan cache for the query. `plan` is the plan that was chosen for
    /// it.
    pub fn cache_status(&self, source: &dyn Source, plan: &Plan) -> Result<CacheStatus, Error> {
        let plans = CollectionPlans::new(source);
        match index_filter(self, source) {
            None => CacheStatus::new(self, source, plans.as_ref(), plan),
            Some(filter) => CacheStatus::new(
                self,
                &FilteredIndexes::new(source, filter),
                plans.as_ref(),
                plan,
            ),
        }
    }
}

/// Returns the index filter for the shape of the query.
pub(crate) fn index_filter(find: &Find, source: &dyn Source) -> Option<IndexFilter> {
    let restrictions = &source.planner_settings()?.restrictions;
    if !restrictions.has_filters() {
        return None;
    }
    restrictions.filter(source.uuid()?, &find.shape())
}

/// Removes the hint, which an index filter overrides. The hint of `min` and `max` stays.
fn without_hint(find: &Find) -> Find {
    let mut free = find.clone();
    if free.min.is_none() && free.max.is_none() {
        free.hint = None;
    }
    free
}

/// The server's own databases. `notablescan` does not apply to their collections.
const OWN_DATABASES: &[&str] = &["admin", "config", "local"];

/// Fails with 291 if the server runs with `notablescan` and the plan scans the collection for a
/// filter.
fn check_table_scans(find: &Find, plan: &Plan, source: &dyn Source) -> Result<(), Error> {
    let forbids = source
        .planner_settings()
        .is_some_and(|planner_settings| planner_settings.restrictions.forbids_table_scans());
    if !forbids || matches!(find.filter.root(), Node::AlwaysTrue) {
        return Ok(());
    }
    let namespace = source.namespace();
    let is_own = namespace
        .split_once('.')
        .is_some_and(|(database, collection)| {
            OWN_DATABASES.contains(&database) || collection.starts_with("system.")
        });
    match (!is_own && scans_collection(plan), find.natural()) {
        (true, Some(_)) => {
            let message = "hint $natural is not allowed, because 'notablescan' is enabled";
            Err(Error::new(NO_PLANS, message))
        }
        (true, None) => Err(no_plan()),
        (false, _) => Ok(()),
    }
}

fn scans_collection(plan: &Plan) -> bool {
    matches!(plan, Plan::CollectionScan { .. }) || plan.inputs().into_iter().any(scans_collection)
}

fn choose(
    find: &Find,
    source: &dyn Source,
    plans: Option<&CollectionPlans<'_>>,
) -> Result<PlanChoice, Error> {
    if find.order().is_some_and(Sort::needs_text_score) && find.filter.text().is_none() {
        return Err(Error::new(
            40218,
            "query requires text score metadata, but it is not available",
        ));
    }
    if find.shows_sort_keys() && find.order().is_none() {
        let message = "cannot use sortKey $meta projection without a sort";
        return Err(Error::new(2, message));
    }
    if find.filter.text().is_some() {
        return text::plan(find, source).map(PlanChoice::only);
    }
    if !source.exists() || matches!(find.filter.root(), Node::AlwaysFalse) {
        hint::check(find, source)?;
        return Ok(PlanChoice::only(Plan::Eof));
    }
    if let Some((path, near)) = find.filter.near() {
        let scan = near::scan(find, path, near, source)?;
        let plan = Plan::Near(Box::new(scan));
        return Ok(PlanChoice::only(finish_unordered(find, plan)));
    }
    if find.min.is_some() || find.max.is_some() {
        let scan = hint::between(find, source)?;
        return Ok(PlanChoice::only(finish_range_scan(find, scan)));
    }
    if let Some(direction) = find.natural() {
        hint::check(find, source)?;
        let plan = if source.is_clustered() {
            clustered_scan(find, source, direction)?
        } else {
            collection_scan(find, direction)
        };
        return Ok(PlanChoice::only(finish_unordered(find, plan)));
    }
    if let Some(plan) = distinct::plan_by_keys(find, source)? {
        return Ok(PlanChoice::only(plan));
    }
    if find.hint.is_some() {
        return plan_by_hint(find, source);
    }
    if let Some(id) = single_id(find, source) {
        let clustered = source.is_clustered();
        let plan = Plan::IdHack { id, clustered };
        return Ok(PlanChoice::only(finish_unordered(find, plan)));
    }
    plan_by_cost(find, source, plans)
}

fn collection_scan(find: &Find, direction: Direction) -> Plan {
    let filter = (!matches!(find.filter.root(), Node::AlwaysTrue)).then(|| find.filter.clone());
    Plan::CollectionScan { direction, filter }
}

/// A scan of a clustered collection in a direction of its natural order, which is the order of its
/// `_id`s.
fn clustered_scan(find: &Find, source: &dyn Source, direction: Direction) -> Result<Plan, Error> {
    let context = PlanningContext::new(find.filter.root(), find.filter.collation_shared(), source);
    Ok(match context.uncounted().clustered(find)? {
        Some(mut path) => {
            path.set_direction(direction);
            within_clustered(find, path)
        }
        None => collection_scan(find, direction),
    })
}

/// The plan that reads the documents of a clustered collection by their `_id`s.
fn within_clustered(find: &Find, path: AccessPath) -> Plan {
    let certain = path.certain;
    match path.plan {
        Plan::IndexScan(scan) => read_clustered(find, scan, certain),
        other => other,
    }
}

/// A clustered scan, or a collection scan if there are no bounds, as MongoDB names it.
fn read_clustered(find: &Find, mut scan: IndexScan, certain: bool) -> Plan {
    if scan.range.is_none() && !scan.bounds.restricts() {
        return collection_scan(find, scan.direction);
    }
    let filter = (!matches!(find.filter.root(), Node::AlwaysTrue)).then(|| find.filter.clone());
    scan.filter = filter.clone().filter(|_| !certain);
    access_path::stored(scan, filter)
}

/// Returns the `_id` if the filter consists of one equality on `_id`.
fn single_id(find: &Find, source: &dyn Source) -> Option<Value> {
    match find.filter.root() {
        Node::Compare {
            path,
            operator: Comparison::Eq,
            value,
        } if path.to_string() == "_id" && !find.return_key => {
            // The index on `_id` compares strings by the collation of the collection.
            let alike = find.filter.collation_shared() == source.collation().as_ref()
                || !matches!(
                    value,
                    Value::String(_) | Value::Symbol(_) | Value::Document(_)
                );
            (alike && !matches!(value, Value::Array(_))).then(|| value.clone())
        }
        _ => None,
    }
}

/// Plans a query with a hint. A hinted index is used even if it does not contain all documents.
fn plan_by_hint(find: &Find, source: &dyn Source) -> Result<PlanChoice, Error> {
    let Some(index) = hint::index(find.hint.as_ref(), source)? else {
        return Ok(PlanChoice::only(scan_all(find)));
    };
    if index.definition.is_text() {
        return Ok(PlanChoice::only(scan_all(find)));
    }
    let context = PlanningContext::new(find.filter.root(), find.filter.collation_shared(), source);
    if index.definition.is_wildcard() {
        let paths = context.with_only(vec![index.number]).paths(find)?;
        let choice = RankedPaths::new(find, source, paths).into_choice(find);
        return choice.ok_or_else(no_plan);
    }
    let path = context.uncounted().scan(index.into(), find)?;
    let mut path = path.ok_or_else(no_plan)?;
    path.set_order_direction(find.order());
    Ok(PlanChoice::only(assemble(find, path)))
}

fn no_plan() -> Error {
    let message = "error processing query: planner returned error: No indexed plans available, and \
                   running with 'notablescan', or a hint that no plan can follow";
    Error::new(NO_PLANS, message)
}

/// Plans a query without restrictions: takes the cheapest candidate path, or the one in the plan
/// cache.
fn plan_by_cost(
    find: &Find,
    source: &dyn Source,
    plans: Option<&CollectionPlans<'_>>,
) -> Result<PlanChoice, Error> {
    let context = PlanningContext::new(find.filter.root(), find.filter.collation_shared(), source);
    let candidates = context.candidates(find.order())?;
    let slot = plans.map(|plans| CacheSlot::new(plans, find, &context, &candidates));
    let slot = slot.transpose()?.flatten();
    if let Some(cached) = slot.as_ref().and_then(CacheSlot::cached) {
        let cached_choice = context.cached_choice(find, &candidates, &cached)?;
        if let Some(choice) = cached_choice {
            return Ok(choice);
        }
    }
    let ranked = RankedPaths::new(find, source, context.paths_from(candidates, find)?);
    if !ranked.scan_is_cheaper(find, source) {
        if let Some(slot) = slot.filter(|_| ranked.is_independent(find)) {
            slot.store(find, &ranked);
        }
        if let Some(choice) = ranked.into_choice(find) {
            return Ok(choice);
        }
        return Ok(PlanChoice::only(scan_all(find)));
    }
    let indexed = ranked.into_choice(find).into_iter();
    let rejected = indexed.flat_map(|it| std::iter::once(it.winner).chain(it.rejected));
    Ok(PlanChoice {
        winner: scan_all(find),
        rejected: rejected.collect(),
    })
}

fn scan_all(find: &Find) -> Plan {
    finish_unordered(find, collection_scan(find, Direction::Forward))
}

/// Puts fetch, sort, skip, limit and projection on top of a candidate path.
fn assemble(find: &Find, path: AccessPath) -> Plan {
    let AccessPath {
        plan,
        covers,
        certain,
        ordered,
        ..
    } = path;
    let order = RowOrder::new(find, ordered);
    if let Plan::IndexScan(mut scan) = plan {
        if scan.index.definition.clustered {
            return finish(find, read_clustered(find, scan, certain), order);
        }
        if covers {
            scan.filter = (!certain).then(|| find.filter.clone());
            let nothing = certain
                && order == RowOrder::Requested
                && find.needed_paths().is_some_and(|paths| paths.is_empty())
                && find.projection.is_none();
            scan.output = if nothing {
                KeyOutput::Counted
            } else {
                KeyOutput::Document
            };
            distinct_prefix::skip_repeated_values(find, &mut scan, order);
            let sorted = sort(find, Plan::IndexScan(scan), order);
            let rows = window(find, sorted, order);
            return project(find, rows, RowContent::Keys);
        }
        return finish_index_scan(find, scan, certain, order);
    }
    let filter = (!certain).then(|| find.filter.clone());
    finish(find, plan.fetched(filter), order)
}

/// Fetches the documents of a scan, and completes the plan. `certain` is `true` if the scan tests
/// the complete filter.
fn finish_index_scan(find: &Find, mut scan: IndexScan, certain: bool, order: RowOrder) -> Plan {
    let mut filter = (!certain).then(|| find.filter.clone());
    if find.shows_keys() {
        scan.output = KeyOutput::Flat;
    } else if scan.filter.is_some() {
        filter = select_conditions(find, &scan, |certainty| certainty == Certainty::Document);
    }
    if filter.is_none() {
        distinct_prefix::skip_repeated_values(find, &mut scan, order);
    }
    let scan = Plan::IndexScan(scan);
    if filter.is_none() && order == RowOrder::Requested {
        let skipped = scan.skipped(find.skip);
        // The keys are enough, unless sort keys are shown. Those are computed from the documents.
        let rows = if find.return_key && !find.shows_sort_keys() {
            skipped
        } else {
            skipped.fetched(None)
        };
        return project(find, rows.limited(find.limit), RowContent::Documents);
    }
    finish(find, scan.fetched(filter), order)
}

/// The plan for a scan between `min` and `max`.
fn finish_range_scan(find: &Find, mut scan: IndexScan) -> Plan {
    let direction = order::direction(&scan.index, &scan.bounds, find.order());
    scan.direction = direction.unwrap_or(Direction::Forward);
    let order = RowOrder::new(find, direction.is_some());
    let certain = matches!(find.filter.root(), Node::AlwaysTrue);
    if scan.index.definition.clustered {
        return finish(find, read_clustered(find, scan, certain), order);
    }
    if !find.shows_keys() {
        // A range between keys does not decide any condition.
        scan.filter = select_conditions(find, &scan, |certainty| certainty != Certainty::Document);
    }
    finish_index_scan(find, scan, certain, order)
}

fn select_conditions(
    find: &Find,
    scan: &IndexScan,
    is_selected: impl Fn(Certainty) -> bool,
) -> Option<Filter> {
    let (root, collation) = (find.filter.root(), find.filter.collation_shared());
    access_path::select_conditions(root, collation, &scan.index, is_selected)
}

/// Puts sort, skip, limit and projection on top of rows that have their documents.
fn finish(find: &Find, plan: Plan, order: RowOrder) -> Plan {
    let rows = window(find, sort(find, plan, order), order);
    project(find, rows, RowContent::Documents)
}

/// Completes a plan whose rows come in no particular order. See [`finish`].
fn finish_unordered(find: &Find, plan: Plan) -> Plan {
    finish(find, plan, RowOrder::new(find, false))
}

/// Adds the sort that the query requests, unless the rows have its order.
fn sort(find: &Find, plan: Plan, order: RowOrder) -> Plan {
    match (find.order(), order) {
        (Some(sort), RowOrder::Other) => Plan::Sort {
            sort: sort.clone(),
            limit: find.limit.map(|limit| limit.saturating_add(find.skip)),
            allow_disk_use: find.allow_disk_use,
            input: Box::new(plan),
        },
        _ => plan,
    }
}

/// Adds skip and limit. `order` is the order before the sort. A sort applies the limit itself, so
/// after it only the skip remains.
fn window(find: &Find, plan: Plan, order: RowOrder) -> Plan {
    let skipped = plan.skipped(find.skip);
    match order {
        RowOrder::Requested => skipped.limited(find.limit),
        RowOrder::Other => skipped,
    }
}

/// What the rows of a plan contain before the projection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RowContent {
    /// The values of index keys.
    Keys,
    /// Whole documents.
    Documents,
}

fn project(find: &Find, plan: Plan, content: RowContent) -> Plan {
    let plan = match &find.projection {
        _ if find.return_key => Plan::ReturnKey {
            sort_keys: find.shown_sort_keys(),
            input: Box::new(plan),
        },
        Some(projection) if !projection.is_identity() => Plan::Project {
            kind: match (content, projection.plain_inclusion()) {
                (RowContent::Keys, _) => ProjectionKind::Covered,
                (_, Some(paths)) if paths.iter().all(is_plain) => ProjectionKind::Simple,
                _ => ProjectionKind::Default,
            },
            projection: projection.clone(),
            sort: find.sort_of_keys().cloned(),
            input: Box::new(plan),
        },
        _ => plan,
    };
    // `returnKey` shows the keys without the record id.
    if find.show_record_id && !find.return_key {
        Plan::RecordIds {
            input: Box::new(plan),
        }
    } else {
        plan
    }
}

fn is_plain(path: &Path) -> bool {
    path.components().len() == 1
}
