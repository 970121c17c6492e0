//! Replays whole areas of recordings on documents in memory and counts the cases that agree.
//! WINDROW_ORACLE is the folder of the recordings. Without it the tests print a message and pass.

use std::collections::BTreeMap;
use std::path::Path;

use windrow_document::{Document, DocumentBuf, Value, ValueRef};
use windrow_mql::Error;

use crate::json;

/// The result of a case: success, a description of the difference, or `None` if the case uses
/// things that this crate does not implement.
pub type Outcome = Result<(), Option<String>>;

/// Replays all cases of the areas. Fails if fewer cases of an area agree than its floor.
pub fn check(floors: &[(&str, usize)], run_case: fn(Document<'_>) -> Outcome) {
    let Ok(folder) = std::env::var("WINDROW_ORACLE") else {
        println!("WINDROW_ORACLE is not set: nothing to compare with");
        return;
    };
    let only = std::env::var("WINDROW_ORACLE_ONLY").unwrap_or_default();
    let mut failed = Vec::new();
    for (area, floor) in floors {
        let cases = Path::new(&folder).join(format!("cases/{area}.jsonl"));
        let text = std::fs::read_to_string(&cases).expect("recordings");
        let counts = run_area(&text, &only, run_case);
        println!("{area}: {counts:?}");
        if only.is_empty() && counts.get("same").copied().unwrap_or(0) < *floor {
            failed.push(area);
        }
    }
    assert!(
        failed.is_empty(),
        "fewer cases agree than before: {failed:?}"
    );
}

fn run_area(
    text: &str,
    only: &str,
    run_case: fn(Document<'_>) -> Outcome,
) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    for line in text.lines() {
        let Value::Document(case) = json::parse(line) else {
            panic!("a case is an object");
        };
        let name = case.get("name").and_then(ValueRef::as_str).expect("a name");
        if !name.contains(only) {
            continue;
        }
        let kind = match run_case(case.as_document()) {
            Ok(()) => "same",
            Err(None) => "skipped",
            Err(Some(difference)) => {
                println!("{name}: {difference}");
                "different"
            }
        };
        *counts.entry(kind).or_default() += 1;
    }
    counts
}

/// Stores the documents of an `insert`, with `_id` first.
pub fn insert(collection: &mut Vec<DocumentBuf>, run: Document<'_>) {
    let documents = run.get("documents").and_then(ValueRef::as_array);
    for document in documents.expect("documents").iter() {
        let document = document.as_document().expect("a document");
        let id = document.iter().filter(|(name, _)| *name == "_id");
        let rest = document.iter().filter(|(name, _)| *name != "_id");
        collection.push(id.chain(rest).collect());
    }
}

/// Compares the error of a result with that of the reply. Returns the value if neither has an
/// error, and `None` if both have the same error.
pub fn found<T>(answer: Result<T, Error>, reply: Document<'_>) -> Result<Option<T>, String> {
    let code = reply.get("code").and_then(ValueRef::as_whole);
    match (answer, code) {
        (Err(error), Some(code)) if i64::from(error.code) == code => Ok(None),
        (Err(error), _) => Err(format!("{} {error}, expected {reply}", error.code)),
        (Ok(_), Some(code)) => Err(format!("expected error {code}")),
        (Ok(found), None) => Ok(Some(found)),
    }
}

/// The documents of a reply's first batch, if it has one.
pub fn first_batch(reply: Document<'_>) -> Option<impl Iterator<Item = Document<'_>>> {
    let cursor = reply.get("cursor").and_then(ValueRef::as_document)?;
    let batch = cursor.get("firstBatch").and_then(ValueRef::as_array)?;
    Some(batch.iter().filter_map(ValueRef::as_document))
}

/// Returns `true` if two lists have the same documents, and the same order if it matters.
pub fn same(
    mut found: Vec<DocumentBuf>,
    mut expected: Vec<DocumentBuf>,
    is_unordered: bool,
) -> Result<(), String> {
    if is_unordered {
        found.sort_by(|one, other| one.as_bytes().cmp(other.as_bytes()));
        expected.sort_by(|one, other| one.as_bytes().cmp(other.as_bytes()));
    }
    if found == expected {
        return Ok(());
    }
    let show = |list: &[DocumentBuf]| {
        let shown: Vec<String> = list.iter().map(ToString::to_string).collect();
        shown.join(", ")
    };
    let (found, expected) = (show(&found), show(&expected));
    Err(format!("found    {found}\n    expected {expected}"))
}
