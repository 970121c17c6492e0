//! `$planCacheStats`: the cached plans of a collection's queries.

use windrow_collection::Namespace;
use windrow_document::{ArrayBuf, DocumentBuf, Value, doc};
use windrow_query::plan_cache::{CandidatePlan, PlanDetails};
use windrow_query::{CachedPlan, EngineCollections, Error};

use super::StatisticsSources;
use crate::clock;

const NO_COLLECTION: i32 = 50_933;

/// Returns one document per plan. Fails with 50933 if there is no collection.
pub fn collect(
    sources: &StatisticsSources,
    namespace: &Namespace,
) -> Result<Vec<DocumentBuf>, Error> {
    let Some(collection) = sources.engine.collection(namespace) else {
        let message = format!("{namespace} does not exist");
        return Err(Error::new(NO_COLLECTION, message));
    };
    let source = EngineCollections::new(sources.engine.clone()).open(namespace)?;
    let plans = sources
        .planner_settings
        .plans
        .list(collection.uuid(), &source.indexes());
    let describe = |plan: &CachedPlan| {
        let mut shown = describe_plan(plan);
        let is_set = sources
            .planner_settings
            .restrictions
            .filter(collection.uuid(), &plan.shape)
            .is_some();
        shown.push("indexFilterSet", is_set);
        shown.push("estimatedSizeBytes", plan.bytes as i64);
        shown.push("host", &sources.host);
        shown
    };
    Ok(plans.iter().map(describe).collect())
}

fn describe_plan(plan: &CachedPlan) -> DocumentBuf {
    let shape = plan.shape.hash();
    let mut shown = doc! {
        "version": "1", "queryHash": (shape.as_str()), "planCacheShapeHash": (shape.as_str()),
        "planCacheKey": (plan.key.text()), "isActive": (plan.is_active),
        "works": (plan.choice.works as i64), "timeOfCreation": (clock::date(plan.created)),
    };
    let details = plan
        .details
        .as_deref()
        .map(describe_details)
        .unwrap_or_default();
    for (name, value) in details.iter() {
        shown.push(name, value);
    }
    shown
}

fn describe_details(details: &PlanDetails) -> DocumentBuf {
    let all = || details.candidates.iter();
    let chosen = all().next();
    let plan = chosen.map(|chosen| chosen.plan.clone()).unwrap_or_default();
    let counted: ArrayBuf = all().map(describe_candidate).collect();
    let least = chosen.map_or(0.0, |chosen| chosen.works);
    // If a plan has no work, any plan is the best.
    let score = |one: &CandidatePlan| Value::from(1.0 + least.max(1.0) / one.works.max(1.0));
    let scores: ArrayBuf = all().map(score).collect();
    doc! {
        "createdFromQuery": (details.query.to_document()), "cachedPlan": plan, "creationExecStats": counted,
        "candidatePlanScores": scores,
    }
}

/// Plans are estimated and not executed, so no documents were returned and no time was spent.
fn describe_candidate(candidate: &CandidatePlan) -> Value {
    doc! {
        "nReturned": 0, "executionTimeMillisEstimate": 0,
        "totalKeysExamined": (candidate.keys as i64),
        "totalDocsExamined": (candidate.documents as i64),
        "executionStages": (candidate.plan.clone()),
    }
    .into()
}
