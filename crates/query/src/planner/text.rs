//! The plan for a filter with `$text`, with other indexes for the conditions beside it.

use windrow_document::Value;
use windrow_mql::filter::{Comparison, Node};
use windrow_mql::sort::{Sort, SortField};

use super::access_path::{AccessPath, FETCH_COST, PlanningContext};
use super::order::RowOrder;
use super::{RowContent, finish_unordered, project, sort};
use crate::Error;
use crate::find::Find;
use crate::plan::Plan;
use crate::source::Source;
use crate::text::{NO_PLANS, TextScan};

/// Returns the plan for a filter with `$text`. Fails with 27 without a text index, with 291 if
/// `$text` leaves no plan, and with 2 or 51173 if it is combined with a hint or an order that it
/// does not support.
pub fn plan(find: &Find, source: &dyn Source) -> Result<Plan, Error> {
    crate::text::text_index(source)?;
    if find.hint.is_some() {
        return Err(Error::new(2, "text and hint not allowed in same query"));
    }
    if find.min.is_some() || find.max.is_some() {
        return Err(Error::new(
            51173,
            "When using min()/max() a hint of which index to use must be provided",
        ));
    }
    if find.natural().is_some() {
        return Err(Error::new(
            2,
            "text expression not allowed with $natural sort order",
        ));
    }
    let root = find.filter.root();
    let Some(query) = conjunct_text(root) else {
        return text_in_or(find, source);
    };
    let mut scan = TextScan::plan(query, root, &find.filter, source)?;
    if sorts_by_score_alone(find.order()) {
        scan.best = find.limit.map(|limit| limit.saturating_add(find.skip));
    }
    let rest = rest_of(root, &scan);
    let mut within = None;
    if !rest.is_empty() {
        let path = path_within(&scan, &Node::And(rest), find, source)?;
        let is_answered = path.as_ref().is_some_and(|path| path.certain);
        scan.filter = (!is_answered).then(|| find.filter.clone());
        within = path.map(|path| Box::new(path.plan));
    }
    if !scan.must_fetch() && sorts_by_score_alone(find.order()) {
        scan.fetches = false;
        let sorted = sort(find, Plan::Text { scan, within }, RowOrder::Other);
        let rows = sorted.skipped(find.skip).fetched(None);
        return Ok(project(find, rows, RowContent::Documents));
    }
    Ok(finish_unordered(find, Plan::Text { scan, within }))
}

fn conjunct_text(root: &Node) -> Option<&windrow_mql::filter::TextQuery> {
    match root {
        Node::Text(query) => Some(query),
        Node::And(children) => children.iter().find_map(conjunct_text),
        _ => None,
    }
}

/// Returns the conditions besides the text and the equalities that the index decides. Equalities
/// with null and arrays are tested again.
fn rest_of(root: &Node, scan: &TextScan) -> Vec<Node> {
    let answered = |node: &Node| match node {
        Node::Text(_) => true,
        Node::Compare {
            path,
            operator: Comparison::Eq,
            value,
        } => {
            let fields = scan.definition.fields.iter().zip(&scan.prefix);
            let plain = !matches!(value, Value::Null | Value::Array(_));
            plain
                && fields
                    .into_iter()
                    .any(|(field, known)| field.path == *path && known == value)
        }
        _ => false,
    };
    let nodes = match root {
        Node::And(children) => children.as_slice(),
        other => std::slice::from_ref(other),
    };
    let rest = nodes.iter().filter(|node| !answered(node));
    rest.cloned().collect()
}

/// A search for the best records reads this many times the documents that it would read if the
/// matches were evenly distributed.
const BEST_READ: f64 = 2.0;

/// Returns the path by which other indexes answer the conditions beside the text. `None` if they
/// cannot, or if reading their entries costs more than the documents that they save.
fn path_within(
    scan: &TextScan,
    rest: &Node,
    find: &Find,
    source: &dyn Source,
) -> Result<Option<AccessPath>, Error> {
    if scan.has_suffix() || rest.text().is_some() {
        return Ok(None);
    }
    let path = PlanningContext::new(rest, find.filter.collation_shared(), source).best()?;
    let Some(path) = path.filter(|path| reads_keys_alone(&path.plan)) else {
        return Ok(None);
    };
    let total = source.count() as f64;
    let mut found = 0.0;
    for term in scan.query.terms() {
        let mut postings = source.posting_list(scan.number, &scan.term_key(term))?;
        found += postings.count_at_most() as f64;
    }
    let selectivity = (path.documents / total.max(1.0)).clamp(f64::MIN_POSITIVE, 1.0);
    let rows_needed = scan.best.map_or(f64::INFINITY, |best| best as f64);
    let fetched = (BEST_READ * rows_needed / selectivity)
        .min(found)
        .min(total);
    let saved = FETCH_COST * fetched * (1.0 - selectivity);
    Ok((path.entries <= saved).then_some(path))
}

/// Returns `true` if the rows of a plan come from index entries without documents.
fn reads_keys_alone(plan: &Plan) -> bool {
    match plan {
        Plan::Eof => true,
        Plan::IndexScan(scan) => !scan.index.definition.clustered,
        Plan::Or(inputs) | Plan::AndSorted(inputs) => inputs.iter().all(reads_keys_alone),
        _ => false,
    }
}

fn sorts_by_score_alone(order: Option<&Sort>) -> bool {
    order.is_some_and(|order| matches!(order.pattern(), [SortField::TextScore { .. }]))
}

/// Plans a `$text` in a branch of an `$or`. Other indexes answer the other branches.
fn text_in_or(find: &Find, source: &dyn Source) -> Result<Plan, Error> {
    let no_plan = || {
        Error::new(
            NO_PLANS,
            "error processing query: planner returned error: Failed to produce a solution for TEXT under \
             OR - other non-TEXT clauses under OR have to be indexed as well.",
        )
    };
    let branches = match find.filter.root() {
        Node::Or(branches) => branches,
        Node::And(children) => {
            let or = children.iter().find_map(|child| match child {
                Node::Or(branches) if branches.iter().any(|one| conjunct_text(one).is_some()) => {
                    Some(branches)
                }
                _ => None,
            });
            or.ok_or_else(no_plan)?
        }
        _ => return Err(no_plan()),
    };
    // The text comes first, so that records found by several branches keep their score.
    let mut branches: Vec<&Node> = branches.iter().collect();
    branches.sort_by_key(|branch| conjunct_text(branch).is_none());
    let mut inputs = Vec::with_capacity(branches.len());
    for branch in branches {
        inputs.push(match conjunct_text(branch) {
            Some(query) => Plan::Text {
                scan: TextScan::plan(query, branch, &find.filter, source)?,
                within: None,
            },
            None => {
                let path = PlanningContext::new(branch, find.filter.collation_shared(), source)
                    .best()?
                    .ok_or_else(no_plan)?;
                path.into_rows()
            }
        });
    }
    let matching = Plan::Or(inputs).fetched(Some(find.filter.clone()));
    Ok(finish_unordered(find, matching))
}
