//! Recorded conversations with MongoDB, answered from documents in memory: `insert`, then `find`
//! and `count` with filter, sort, window and projection. WINDROW_ORACLE names the folder of the
//! recordings; without it the test has nothing to compare with and says so.

mod json;
mod recorded;

use std::collections::BTreeMap;
use std::path::Path;

use recorded::Step;
use windrow_document::{Document, DocumentBuf, Value, ValueRef};
use windrow_mql::filter::{Environment, Filter};
use windrow_mql::projection::Projection;
use windrow_mql::sort::{Natural, Sort};
use windrow_mql::{Error, Meta};

/// The cases of an area that must agree.
const FLOORS: [(&str, usize); 4] = [
    ("filter", 881),
    ("projection", 332),
    ("random_find", 1195),
    ("sort", 150),
];

#[test]
fn find_answers_as_recorded() {
    let Ok(folder) = std::env::var("WINDROW_ORACLE") else {
        println!("WINDROW_ORACLE is not set: nothing to compare with");
        return;
    };
    let only = std::env::var("WINDROW_ORACLE_ONLY").unwrap_or_default();
    let mut failed = Vec::new();
    for (area, floor) in FLOORS {
        let cases = Path::new(&folder).join(format!("cases/{area}.jsonl"));
        let text = std::fs::read_to_string(&cases).expect("recordings");
        let counts = run_area(&text, &only);
        println!("{area}: {counts:?}");
        if only.is_empty() && counts.get("same").copied().unwrap_or(0) < floor {
            failed.push(area);
        }
    }
    assert!(
        failed.is_empty(),
        "fewer cases agree than before: {failed:?}"
    );
}

fn run_area(text: &str, only: &str) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    for line in text.lines() {
        let Value::Document(case) = json::parse(line) else {
            panic!("a case is an object");
        };
        let name = case.get("name").and_then(ValueRef::as_str).expect("a name");
        if !name.contains(only) {
            continue;
        }
        let outcome = run_case(case.as_document());
        if let Outcome::Different(what) = &outcome {
            println!("{name}: {what}");
        }
        *counts.entry(outcome.name()).or_default() += 1;
    }
    counts
}

enum Outcome {
    Same,
    Different(String),
    Skipped,
}

impl Outcome {
    fn name(&self) -> &'static str {
        match self {
            Outcome::Same => "same",
            Outcome::Different(_) => "different",
            Outcome::Skipped => "skipped",
        }
    }
}

fn run_case(case: Document<'_>) -> Outcome {
    let mut collection: Vec<DocumentBuf> = Vec::new();
    let mut compared = false;
    for Step {
        run,
        reply,
        is_unordered,
    } in recorded::steps(case)
    {
        let (command, _) = run.first().expect("a command");
        match command {
            "insert" => insert(&mut collection, run),
            "createIndexes" => {}
            "find" | "count" if is_plain(run, reply) => {
                compared = true;
                if let Err(difference) = compare(&collection, run, reply, is_unordered) {
                    return Outcome::Different(format!("{run}\n    {difference}"));
                }
            }
            _ => return Outcome::Skipped,
        }
    }
    if compared {
        Outcome::Same
    } else {
        Outcome::Skipped
    }
}

/// Documents are stored with `_id` in front.
fn insert(collection: &mut Vec<DocumentBuf>, run: Document<'_>) {
    let documents = run
        .get("documents")
        .and_then(ValueRef::as_array)
        .expect("documents");
    for document in documents.iter().filter_map(ValueRef::as_document) {
        let id = document.iter().filter(|(name, _)| *name == "_id");
        let rest = document.iter().filter(|(name, _)| *name != "_id");
        collection.push(id.chain(rest).collect());
    }
}

/// What needs nothing but filter, sort, window and projection.
fn is_plain(run: Document<'_>, reply: Document<'_>) -> bool {
    const KNOWN: [&str; 9] = [
        "find",
        "count",
        "filter",
        "query",
        "sort",
        "skip",
        "limit",
        "projection",
        "comment",
    ];
    let plain = |(name, value): (&str, ValueRef<'_>)| match name {
        "filter" | "sort" | "projection" | "query" => value.as_document().is_some(),
        "skip" | "limit" => value.as_whole().is_some_and(|number| number >= 0),
        "hint" => true,
        name => KNOWN.contains(&name),
    };
    let bad_hint = run.get("hint").is_some() && reply.get("code").is_some();
    run.iter().all(plain) && !bad_hint
}

fn compare(
    collection: &[DocumentBuf],
    run: Document<'_>,
    reply: Document<'_>,
    is_unordered: bool,
) -> Result<(), String> {
    let expected_code = reply.get("code").and_then(ValueRef::as_whole);
    let found = match (find(collection, run), expected_code) {
        (Err(error), Some(code)) if i64::from(error.code) == code => return Ok(()),
        (Err(error), _) => return Err(format!("{} {error}, expected {reply}", error.code)),
        (Ok(found), None) => found,
        (Ok(found), Some(code)) => return Err(format!("expected error {code}, found {found:?}")),
    };
    if let Some(count) = reply.get("n") {
        let same = count.as_whole() == Some(found.len() as i64);
        return if same {
            Ok(())
        } else {
            Err(format!("{} instead of {count}", found.len()))
        };
    }
    let cursor = reply
        .get("cursor")
        .and_then(ValueRef::as_document)
        .expect("a cursor");
    let batch = cursor
        .get("firstBatch")
        .and_then(ValueRef::as_array)
        .expect("a batch");
    let mut expected: Vec<DocumentBuf> = batch
        .iter()
        .filter_map(ValueRef::as_document)
        .map(Document::to_buf)
        .collect();
    let mut found = found;
    if is_unordered {
        found.sort_by(|one, other| one.as_bytes().cmp(other.as_bytes()));
        expected.sort_by(|one, other| one.as_bytes().cmp(other.as_bytes()));
    }
    if found == expected {
        return Ok(());
    }
    let show = |list: &[DocumentBuf]| {
        list.iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(", ")
    };
    Err(format!(
        "found    {}\n    expected {}",
        show(&found),
        show(&expected)
    ))
}

fn find(collection: &[DocumentBuf], run: Document<'_>) -> Result<Vec<DocumentBuf>, Error> {
    let part = |name: &str| run.get(name).and_then(ValueRef::as_document);
    let filter = part("filter").or(part("query")).unwrap_or(Document::EMPTY);
    let environment = Environment {
        now: 1_750_000_000_000,
        ..Environment::default()
    };
    let filter = Filter::parse_with(filter, &environment)?;
    let sort = Sort::parse(part("sort").unwrap_or(Document::EMPTY))?;
    let projection = part("projection").unwrap_or(Document::EMPTY);
    let projection = Projection::parse_with(projection, &filter, &environment)?;
    let mut found = Vec::new();
    for document in collection {
        if filter.matches(document.as_document())? {
            let mut key = Vec::new();
            sort.key(document.as_document(), &Meta::default(), &mut key)?;
            found.push((key, document));
        }
    }
    found.sort_by(|one, other| one.0.cmp(&other.0));
    if sort.natural() == Some(Natural::Backward) {
        found.reverse();
    }
    let number = |name| run.get(name).and_then(ValueRef::as_whole).unwrap_or(0) as usize;
    let limit = match number("limit") {
        0 => usize::MAX,
        limit => limit,
    };
    let window = found.into_iter().skip(number("skip")).take(limit);
    window
        .map(|(_, document)| projection.apply(document.as_document(), &Meta::default()))
        .collect()
}
