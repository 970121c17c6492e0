//! `$planCacheStats`: what is remembered of the plans of a collection's queries.

use windrow_collection::Namespace;
use windrow_document::{ArrayBuf, DocumentBuf, Value, ValueRef, doc};
use windrow_query::CachedPlan;
use windrow_query::plan_cache::{Candidate, Details};
use windrow_wire::{CommandError, ErrorCode};

use super::given::Describe;
use crate::clock;
use crate::context::Context;
use crate::errors::refuse;
use crate::queries;

const ALL_HOSTS_OF_ONE: i32 = 4_503_200;
const NO_BOOL: i32 = 13_111;
const NO_COLLECTION: i32 = 50_933;

/// Refuses what the stage does not take, with codes of its own.
fn check(wanted: ValueRef<'_>) -> Result<(), CommandError> {
    let refuse_form = |message: &str| refuse(ErrorCode::FailedToParse, message);
    let Some(options) = wanted.as_document() else {
        return refuse_form("$planCacheStats value must be an object");
    };
    match (options.count(), options.first()) {
        (0, _) => Ok(()),
        (1, Some(("allHosts", ValueRef::Bool(false)))) => Ok(()),
        (1, Some(("allHosts", ValueRef::Bool(true)))) => refuse(
            ALL_HOSTS_OF_ONE,
            "$planCacheStats stage supports allHosts parameter only for sharded clusters",
        ),
        (1, Some(("allHosts", _))) => {
            refuse(NO_BOOL, "allHosts of $planCacheStats must be true or false")
        }
        _ => refuse_form("$planCacheStats takes allHosts alone"),
    }
}

/// One document a plan. Errors: 9, 13111 and 4503200 for wrong options, and when it runs 50933 where there
/// is no collection.
pub fn describe<'c>(
    context: &'c Context<'_>,
    namespace: &'c Namespace,
    wanted: ValueRef<'_>,
) -> Result<Describe<'c>, CommandError> {
    check(wanted)?;
    Ok(Box::new(|| collect(context, namespace)))
}

fn collect(context: &Context<'_>, namespace: &Namespace) -> Result<Vec<DocumentBuf>, CommandError> {
    if context
        .state
        .services
        .engine
        .collection(namespace)
        .is_none()
    {
        let message = format!("{namespace} does not exist");
        return refuse(NO_COLLECTION, message);
    }
    let (source, name) = (queries::source(context, namespace)?, namespace.to_string());
    let plans = context.state.guidance.plans.list(&name, &source.indexes());
    let describe = |plan: &CachedPlan| {
        let restrictions = &context.state.guidance.restrictions;
        let mut shown = of_plan(plan);
        let is_set = restrictions.filter(&name, &plan.shape).is_some();
        shown.push("indexFilterSet", is_set);
        shown.push("estimatedSizeBytes", plan.bytes as i64);
        shown.push("host", &context.state.host);
        shown
    };
    Ok(plans.iter().map(describe).collect())
}

fn of_plan(plan: &CachedPlan) -> DocumentBuf {
    let shape = plan.shape.hash();
    let mut shown = doc! {
        "version": "1", "queryHash": (shape.as_str()), "planCacheShapeHash": (shape.as_str()),
        "planCacheKey": (plan.key.text()), "isActive": (plan.is_active),
        "works": (plan.remembered.works as i64), "timeOfCreation": (clock::date(plan.created)),
    };
    let details = plan.details.as_deref().map(of_details).unwrap_or_default();
    for (name, value) in details.iter() {
        shown.push(name, value);
    }
    shown
}

fn of_details(details: &Details) -> DocumentBuf {
    let all = || details.candidates.iter();
    let chosen = all().next();
    let plan = chosen.map(|chosen| chosen.plan.clone()).unwrap_or_default();
    let counted: ArrayBuf = all().map(of_candidate).collect();
    let least = chosen.map_or(0.0, |chosen| chosen.works);
    // Of nothing to do any plan makes the best.
    let score = |one: &Candidate| Value::from(1.0 + least.max(1.0) / one.works.max(1.0));
    let scores: ArrayBuf = all().map(score).collect();
    doc! {
        "createdFromQuery": (details.query.to_document()), "cachedPlan": plan, "creationExecStats": counted,
        "candidatePlanScores": scores,
    }
}

/// Plans are counted, not tried: nothing was returned, and no time was spent.
fn of_candidate(candidate: &Candidate) -> Value {
    doc! {
        "nReturned": 0, "executionTimeMillisEstimate": 0,
        "totalKeysExamined": (candidate.keys as i64),
        "totalDocsExamined": (candidate.documents as i64),
        "executionStages": (candidate.plan.clone()),
    }
    .into()
}

#[cfg(test)]
mod tests {
    use super::super::options;
    use super::*;

    #[test]
    fn options_are_checked_as_mongodb_does() {
        let check = |wanted: Value, expected| options::tests::check(check, &wanted, expected);
        check(doc! {}.into(), None);
        check(doc! { "allHosts": false }.into(), None);
        check(doc! { "allHosts": true }.into(), Some(ALL_HOSTS_OF_ONE));
        check(doc! { "allHosts": 1 }.into(), Some(NO_BOOL));
        check(doc! { "allhosts": true }.into(), Some(9));
        check(doc! { "allHosts": false, "x": 1 }.into(), Some(9));
        check(Value::Null, Some(9));
    }
}
