//! `$planCacheStats`: what is remembered of the plans of a collection's queries.

use windrow_collection::Namespace;
use windrow_document::{ArrayBuf, DocumentBuf, Value, ValueRef, doc};
use windrow_query::CachedPlan;
use windrow_query::plan_cache::{Candidate, Details};
use windrow_wire::{CommandError, ErrorCode};

use crate::clock;
use crate::context::Context;
use crate::queries;

const ALL_HOSTS_OF_ONE: ErrorCode = ErrorCode(4_503_200);

/// Refuses what the stage does not take.
fn check(wanted: ValueRef<'_>) -> Result<(), CommandError> {
    let Some(options) = wanted.as_document() else {
        let message = "$planCacheStats value must be an object";
        return Err(CommandError::new(ErrorCode::FailedToParse, message));
    };
    for (name, value) in options {
        match (name, value.as_bool()) {
            ("allHosts", Some(false)) => {}
            ("allHosts", Some(true)) => {
                let message =
                    "$planCacheStats stage supports allHosts parameter only for sharded clusters";
                return Err(CommandError::new(ALL_HOSTS_OF_ONE, message));
            }
            ("allHosts", None) => {
                let message = "BSON field '$planCacheStats.allHosts' is the wrong type";
                return Err(CommandError::new(ErrorCode::TypeMismatch, message));
            }
            _ => {
                let message = format!("BSON field '$planCacheStats.{name}' is an unknown field.");
                return Err(CommandError::new(ErrorCode::IDLUnknownField, message));
            }
        }
    }
    Ok(())
}

/// One document a plan. Error 4503200 for what only sharded clusters have.
pub fn describe(
    context: &Context<'_>,
    namespace: &Namespace,
    wanted: ValueRef<'_>,
) -> Result<Vec<DocumentBuf>, CommandError> {
    check(wanted)?;
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
    let mut query = doc! {
        "query": (details.query.clone()), "sort": (details.sort.clone()),
        "projection": (details.projection.clone()),
    };
    if let Some(collation) = &details.collation {
        query.push("collation", collation.clone());
    }
    let all = || details.candidates.iter();
    let chosen = all().next();
    let plan = chosen.map(|chosen| chosen.plan.clone()).unwrap_or_default();
    let counted: ArrayBuf = all().map(of_candidate).collect();
    let least = chosen.map_or(0.0, |chosen| chosen.works);
    // Of nothing to do any plan makes the best.
    let score = |one: &Candidate| Value::from(1.0 + least.max(1.0) / one.works.max(1.0));
    let scores: ArrayBuf = all().map(score).collect();
    doc! {
        "createdFromQuery": query, "cachedPlan": plan, "creationExecStats": counted,
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
