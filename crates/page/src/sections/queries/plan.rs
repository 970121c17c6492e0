//! Parses the output of `explain` into a tree of steps.

use windrow_client::server_status::section;
use windrow_document::{Document, ValueRef};

use crate::literals::shell_line;

/// A step of a plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlanStep {
    /// The name, such as `IXSCAN` or `$group`.
    pub name: String,
    /// The parameters: names and values.
    pub details: Vec<(String, String)>,
    /// The number of rows that it returned.
    pub rows: Option<i64>,
    /// The number of index keys that it examined.
    pub keys: Option<i64>,
    /// The number of documents that it examined.
    pub documents: Option<i64>,
    /// The cumulative time of the step and the steps below, in milliseconds.
    pub millis: Option<i64>,
    /// The input steps.
    pub inputs: Vec<PlanStep>,
}

/// A plan with its totals.
#[derive(Debug, Default, PartialEq)]
pub struct Plan {
    /// The root step, which returns the result.
    pub root: PlanStep,
    /// The number of result rows.
    pub rows: i64,
    /// The number of index keys examined.
    pub keys: i64,
    /// The number of documents examined.
    pub documents: i64,
    /// The total time in milliseconds.
    pub millis: i64,
    /// The rejected plans.
    pub rejected: Vec<PlanStep>,
}

/// The maximum depth of steps.
const DEPTH_MAX: usize = 60;
/// Fields that contain input steps.
const INPUTS: [&str; 8] = [
    "inputStage",
    "inputStages",
    "outerStage",
    "innerStage",
    "thenStage",
    "elseStage",
    "shards",
    "queryPlan",
];
/// Fields that are not shown as parameters: counters of every step, and internals.
const LEFT_OUT: [&str; 26] = [
    "stage",
    "nReturned",
    "executionTimeMillisEstimate",
    "works",
    "advanced",
    "needTime",
    "needYield",
    "saveState",
    "restoreState",
    "isEOF",
    "keysExamined",
    "docsExamined",
    "alreadyHasObj",
    "seeks",
    "dupsTested",
    "dupsDropped",
    "isMultiKey",
    "multiKeyPaths",
    "isUnique",
    "isSparse",
    "isPartial",
    "indexVersion",
    "isCached",
    "failed",
    "invalidates",
    "type",
];

impl Plan {
    /// Parses a reply of `explain`. `None` if it contains no plan.
    pub fn read(answer: Document<'_>) -> Option<Plan> {
        let stages = answer.get("stages").and_then(ValueRef::as_array);
        let (within, mut root) = match stages {
            Some(stages) => read_pipeline(stages.iter().filter_map(ValueRef::as_document))?,
            None => (answer, read_query(answer)?),
        };
        let total = |name: &str| {
            let value = section(within, &["executionStats", name]);
            value.and_then(ValueRef::as_whole)
        };
        if root.rows.is_none() {
            root.rows = total("nReturned");
        }
        let rejected = section(within, &["queryPlanner", "rejectedPlans"]);
        let rejected = rejected.and_then(ValueRef::as_array).into_iter().flatten();
        let rejected = rejected.filter_map(ValueRef::as_document);
        Some(Plan {
            rows: root.rows.unwrap_or(0),
            keys: total("totalKeysExamined").unwrap_or(0),
            documents: total("totalDocsExamined").unwrap_or(0),
            millis: total("executionTimeMillis")
                .unwrap_or(0)
                .max(root.millis.unwrap_or(0)),
            rejected: rejected.map(|it| read_step(it, 0)).collect(),
            root,
        })
    }
}

/// Reads a query: the executed plan, or the winning plan if it was not executed.
fn read_query(answer: Document<'_>) -> Option<PlanStep> {
    let executed = section(answer, &["executionStats", "executionStages"]);
    let planned = || section(answer, &["queryPlanner", "winningPlan"]);
    let step = executed.or_else(planned)?.as_document()?;
    Some(read_step(step, 0))
}

/// Reads a pipeline, in which each stage is the input of the next. Also returns the document with
/// the totals.
fn read_pipeline<'a>(
    stages: impl Iterator<Item = Document<'a>>,
) -> Option<(Document<'a>, PlanStep)> {
    let mut root: Option<PlanStep> = None;
    let mut totals = Document::EMPTY;
    for stage in stages {
        let (name, value) = stage.first()?;
        let whole = |name: &str| stage.get(name).and_then(ValueRef::as_whole);
        let query = value.as_document().filter(|_| name == "$cursor");
        let mut step = match query {
            Some(query) => {
                totals = query;
                read_query(query)?
            }
            None => PlanStep {
                name: name.to_owned(),
                details: vec![(String::new(), shell_line(value))],
                ..PlanStep::default()
            },
        };
        step.rows = whole("nReturned").or(step.rows);
        step.millis = whole("executionTimeMillisEstimate").or(step.millis);
        step.inputs.extend(root.take());
        root = Some(step);
    }
    Some((totals, root?))
}

fn read_step(step: Document<'_>, depth: usize) -> PlanStep {
    let whole = |name: &str| step.get(name).and_then(ValueRef::as_whole);
    let mut read = PlanStep {
        name: step
            .get("stage")
            .and_then(ValueRef::as_str)
            .unwrap_or("?")
            .to_owned(),
        rows: whole("nReturned"),
        keys: whole("keysExamined"),
        documents: whole("docsExamined"),
        millis: whole("executionTimeMillisEstimate"),
        ..PlanStep::default()
    };
    for (name, value) in step.iter() {
        if INPUTS.contains(&name) && depth < DEPTH_MAX {
            let many = value
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(ValueRef::as_document);
            let inputs = value.as_document().into_iter().chain(many);
            read.inputs
                .extend(inputs.map(|input| read_step(input, depth + 1)));
        } else if !LEFT_OUT.contains(&name) && !INPUTS.contains(&name) {
            let shown = match value {
                ValueRef::String(text) => text.to_owned(),
                other => shell_line(other),
            };
            read.details.push((name.to_owned(), shown));
        }
    }
    read
}

impl PlanStep {
    /// Returns the time of the step without its inputs.
    pub fn own_millis(&self) -> Option<i64> {
        let below: i64 = self.inputs.iter().filter_map(|it| it.millis).sum();
        self.millis.map(|all| (all - below).max(0))
    }

    /// Returns `true` if the step took a large part of the total time.
    pub fn is_slow(&self, total_millis: i64) -> bool {
        const NOTICEABLE_MILLIS: i64 = 10;
        let own = self.own_millis().unwrap_or(0);
        own >= NOTICEABLE_MILLIS && own * 2 >= total_millis
    }

    /// Returns `true` if the step scans a whole collection.
    pub fn is_scan(&self) -> bool {
        self.name == "COLLSCAN"
    }

    /// Returns `true` if the step or a step below it matches.
    pub fn any(&self, is_like: fn(&PlanStep) -> bool) -> bool {
        is_like(self) || self.inputs.iter().any(|it| it.any(is_like))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::doc;

    #[test]
    fn queries_have_steps() {
        let answer = doc! {
            "queryPlanner": { "winningPlan": { "stage": "FETCH" }, "rejectedPlans": [{ "stage": "COLLSCAN" }] },
            "executionStats": {
                "nReturned": 3, "executionTimeMillis": 21, "totalKeysExamined": 5, "totalDocsExamined": 4,
                "executionStages": {
                    "stage": "FETCH", "nReturned": 3, "executionTimeMillisEstimate": 20, "docsExamined": 4,
                    "filter": { "a": 1 },
                    "inputStage": { "stage": "IXSCAN", "nReturned": 5, "executionTimeMillisEstimate": 5, "keysExamined": 5, "indexName": "a_1" },
                },
            },
        };
        let plan = Plan::read(answer.as_document()).unwrap();
        assert_eq!(
            (plan.rows, plan.keys, plan.documents, plan.millis),
            (3, 5, 4, 21)
        );
        assert_eq!(
            plan.root.details,
            [("filter".to_owned(), "{ a: 1 }".to_owned())]
        );
        assert_eq!(plan.root.own_millis(), Some(15));
        assert!(plan.root.is_slow(plan.millis) && !plan.root.inputs[0].is_slow(plan.millis));
        assert_eq!(plan.root.inputs[0].keys, Some(5));
        assert!(plan.rejected[0].is_scan() && !plan.root.any(PlanStep::is_scan));
    }

    #[test]
    fn pipelines_have_steps() {
        let answer = doc! { "stages": [
            { "$cursor": { "executionStats": { "totalDocsExamined": 9, "executionStages": { "stage": "COLLSCAN" } } }, "nReturned": 9 },
            { "$group": { "_id": 1 }, "nReturned": 2, "executionTimeMillisEstimate": 7 },
        ] };
        let plan = Plan::read(answer.as_document()).unwrap();
        assert_eq!(
            (plan.root.name.as_str(), plan.root.rows, plan.documents),
            ("$group", Some(2), 9)
        );
        assert_eq!(plan.root.inputs[0].rows, Some(9));
        assert!(plan.root.any(PlanStep::is_scan));
        assert_eq!(Plan::read(doc! { "ok": 1 }.as_document()), None);
    }
}
