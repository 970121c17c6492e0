//! Replays recorded conversations with MongoDB as queries on collections of the engine, on a disk
//! in memory. WINDROW_ORACLE is the folder of the recordings. Without it the test does nothing:
//!
//!     WINDROW_ORACLE=… cargo test -p windrow-query --test recorded -- --nocapture
//!
//! WINDROW_ORACLE_ONLY selects cases by a part of their names. Cases with commands or options of
//! other layers are skipped.

mod commands;
#[path = "../../../mql/tests/json/mod.rs"]
mod json;

use std::collections::BTreeMap;

use windrow_document::{Array, Document, ValueRef};

use commands::{Database, Reply};

/// Areas, with the number of their cases that must pass.
const FLOORS: [(&str, usize); 8] = [
    ("filter", 877),
    ("projection", 336),
    ("random_find", 1047),
    ("sort", 201),
    ("text", 920),
    ("indexes", 296),
    ("stages", 630),
    ("random_pipeline", 938),
];

enum Outcome {
    Same,
    Different(String),
    PassedOver(String),
}

#[test]
fn recorded_queries_have_the_recorded_results() {
    let Ok(folder) = std::env::var("WINDROW_ORACLE") else {
        return;
    };
    let only = std::env::var("WINDROW_ORACLE_ONLY").unwrap_or_default();
    let mut fallen = Vec::new();
    for (area, floor) in FLOORS {
        let path = format!("{folder}/cases/{area}.jsonl");
        let lines = std::fs::read_to_string(&path).expect(&path);
        let (mut same, mut different) = (0, 0);
        let mut passed_over: BTreeMap<String, usize> = BTreeMap::new();
        for line in lines.lines() {
            let case = json::parse(line);
            let case = case.as_ref().as_document().expect("a case");
            let name = case.get("name").and_then(ValueRef::as_str).expect("a name");
            if !name.contains(&only) {
                continue;
            }
            match run(case) {
                Outcome::Same => same += 1,
                Outcome::PassedOver(why) => *passed_over.entry(why).or_default() += 1,
                Outcome::Different(what) => {
                    different += 1;
                    println!("{name}: {what}");
                }
            }
        }
        println!("{area}: {same} same, {different} different, passed over: {passed_over:?}");
        if only.is_empty() && same < floor {
            fallen.push(area);
        }
    }
    assert!(
        fallen.is_empty(),
        "fewer cases agree than before: {fallen:?}"
    );
}

fn run(case: Document<'_>) -> Outcome {
    let database = Database::new();
    let steps = case
        .get("steps")
        .and_then(ValueRef::as_array)
        .expect("steps");
    let mut compared = 0;
    for step in steps.iter().filter_map(ValueRef::as_document) {
        let part = |name| {
            step.get(name)
                .and_then(ValueRef::as_document)
                .expect("a document")
        };
        let (command, expected) = (part("run"), part("reply"));
        let unordered = step.get("compare") == Some(ValueRef::String("unordered"));
        let found = match database.run(command) {
            Reply::Unknown(what) => return Outcome::PassedOver(what),
            Reply::Done => continue,
            Reply::Failed(error) => Err(error),
            Reply::Answer(values) => Ok(values),
        };
        compared += 1;
        if let Some(difference) = difference(expected, found, unordered) {
            return Outcome::Different(format!("{command}\n    {difference}"));
        }
    }
    match compared {
        0 => Outcome::PassedOver("nothing to compare".to_owned()),
        _ => Outcome::Same,
    }
}

fn difference(
    expected: Document<'_>,
    found: Result<Vec<String>, windrow_query::Error>,
    unordered: bool,
) -> Option<String> {
    let code = expected.get("code").and_then(ValueRef::as_whole);
    let mut found = match (code, found) {
        (Some(code), Err(error)) if error.code() == Some(code as i32) => return None,
        (code, Err(error)) => {
            return Some(format!(
                "code {:?} ({error}), expected {code:?}",
                error.code()
            ));
        }
        (Some(code), Ok(found)) => return Some(format!("{found:?}, expected error {code}")),
        (None, Ok(found)) => found,
    };
    let (mut wanted, is_whole) = wanted(expected);
    if !is_whole {
        found.truncate(wanted.len());
    }
    if unordered {
        found.sort();
        wanted.sort();
    }
    (found != wanted).then(|| format!("found    {found:?}\n    expected {wanted:?}"))
}

/// Returns the printed values of a reply, and `true` if they are complete.
fn wanted(reply: Document<'_>) -> (Vec<String>, bool) {
    let list = |array: Array<'_>| array.iter().map(print).collect();
    if let Some(cursor) = reply.get("cursor").and_then(ValueRef::as_document) {
        let batch = cursor
            .get("firstBatch")
            .and_then(ValueRef::as_array)
            .expect("a batch");
        let is_whole = cursor.get("id").and_then(ValueRef::as_whole) == Some(0);
        return (list(batch), is_whole);
    }
    if let Some(values) = reply.get("values").and_then(ValueRef::as_array) {
        return (list(values), true);
    }
    (reply.get("n").map(print).into_iter().collect(), true)
}

/// Prints a value exactly, with the types of numbers.
pub fn print(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Document(document) => {
            let fields = document
                .iter()
                .map(|(name, value)| format!("{name}: {}", print(value)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
        }
        ValueRef::Array(array) => {
            format!(
                "[{}]",
                array.iter().map(print).collect::<Vec<_>>().join(", ")
            )
        }
        ValueRef::Int32(number) => number.to_string(),
        ValueRef::Int64(number) => format!("{number}L"),
        ValueRef::String(text) => format!("{text:?}"),
        other => format!("{other:?}"),
    }
}
