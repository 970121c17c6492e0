//! Aggregations and plans.

pub const NAME: &str = "Queries";
pub const TITLE: &str = "Queries";
pub const LEAD: &str =
    "Choose a collection, and build an aggregation or look at the plan of a query.";
pub const COLLECTION: &str = "Collection";
pub const PIPELINE: &str = "Aggregation";
pub const EXPLAIN: &str = "Explain";
pub const SLOW: &str = "Slow operations";
pub const RUNNING: &str = "Running operations";
pub const NONE: &str = "There are no collections yet.";

pub const PIPELINE_LEAD: &str = "Each stage shows the first documents that leave it.";
pub const STAGE_KIND: &str = "Stage";
pub const ENABLED: &str = "In use";
pub const ADD: &str = "Add a stage";
pub const REMOVE: &str = "Remove";
pub const UP: &str = "Up";
pub const DOWN: &str = "Down";
pub const PREVIEW: &str = "Preview";
pub const CANCEL_PREVIEW: &str = "Cancel the preview";
pub const RUN: &str = "Show the results";
pub const EXPLAIN_PIPELINE: &str = "Explain";
pub const AS_TEXT: &str = "The pipeline as text";
pub const AS_TEXT_SUBMIT: &str = "Use this text";
pub const RESULTS: &str = "Results";
pub const NO_RESULTS: &str = "No document leaves this stage.";
pub const WRITES: &str = "This stage writes. It has no preview; it runs with the button below.";
pub const RUN_WRITING: &str = "Run and write";
pub const WRITTEN: &str = "The aggregation ran.";
pub const CONFIRM_WRITE: &str = "Run the aggregation? It writes its results into a collection.";
pub const STAGES_MAX: &str = "A pipeline has at most 50 stages here.";

/// Names a stage.
pub fn stage(number: usize) -> String {
    format!("Stage {number}")
}

/// Names a button of a stage.
pub fn stage_button_label(action: &str, number: usize) -> String {
    format!("{action}, stage {number}")
}

/// Says what is shown of a stage.
pub fn first(count: usize, has_more: bool) -> String {
    match (count, has_more) {
        (count, true) => format!("The first {count} documents"),
        (1, false) => "1 document".to_owned(),
        (count, false) => format!("{count} documents"),
    }
}

/// Says which stage is wrong.
pub fn stage_error(number: usize, message: &str) -> String {
    format!("Stage {number}: {message}.")
}

/// The kinds of stages that the list offers, each with an example.
pub const KINDS: [(&str, &str); 22] = [
    ("$match", "{ field: 1 }"),
    ("$group", "{ _id: \"$field\", count: { $sum: 1 } }"),
    ("$sort", "{ field: 1 }"),
    ("$limit", "10"),
    ("$project", "{ field: 1 }"),
    ("$set", "{ field: \"$other\" }"),
    ("$unset", "\"field\""),
    ("$unwind", "\"$field\""),
    (
        "$lookup",
        "{ from: \"other\", localField: \"field\", foreignField: \"_id\", as: \"found\" }",
    ),
    ("$count", "\"count\""),
    ("$skip", "10"),
    ("$sample", "{ size: 10 }"),
    ("$sortByCount", "\"$field\""),
    (
        "$bucket",
        "{ groupBy: \"$field\", boundaries: [0, 10, 20], default: \"other\" }",
    ),
    ("$bucketAuto", "{ groupBy: \"$field\", buckets: 5 }"),
    ("$facet", "{ one: [ { $count: \"n\" } ] }"),
    ("$replaceRoot", "{ newRoot: \"$field\" }"),
    (
        "$setWindowFields",
        "{ sortBy: { field: 1 }, output: { sum: { $sum: \"$field\", window: { documents: [\"unbounded\", \"current\"] } } } }",
    ),
    ("$unionWith", "\"other\""),
    ("$search", "{ text: { query: \"words\", path: \"field\" } }"),
    ("$out", "\"target\""),
    ("$merge", "{ into: \"target\" }"),
];

pub const FILTER: &str = "Filter";
pub const PROJECTION: &str = "Projection";
pub const SORT: &str = "Sort";
pub const EXPLAIN_LEAD: &str =
    "The query runs, and each step says what it did. Slow steps are marked.";
pub const EXPLAIN_SUBMIT: &str = "Explain";
pub const PLAN: &str = "Plan";
pub const ROWS: &str = "Rows";
pub const KEYS: &str = "Keys";
pub const DOCUMENTS: &str = "Documents";
pub const TIME: &str = "Time";
pub const REJECTED: &str = "Plans that were not chosen";
pub const RAW: &str = "All of the answer";
pub const RETURNED: &str = "Rows returned";
pub const SLOW_STEP: &str = "slow";
pub const SCAN: &str = "reads all documents";
pub const SCAN_ADVICE: &str = "All documents are read, and few are returned: an index on the fields of the filter would help.";
pub const SORT_ADVICE: &str =
    "The rows are sorted in memory: an index in the order of the sort would return them sorted.";
pub const BACK: &str = "Back to the aggregation";
pub const NO_PLAN: &str = "The answer has no plan.";

/// Says how long something took.
pub fn millis(millis: i64) -> String {
    format!("{} ms", crate::show::grouped(millis))
}
