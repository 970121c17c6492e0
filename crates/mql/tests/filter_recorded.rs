//! Replays recorded conversations with MongoDB on documents in memory: `insert`, then `find` and
//! `count` with filter, sort, window and projection.

#[path = "recorded/areas.rs"]
mod areas;
mod json;
mod recorded;

use areas::Outcome;
use recorded::Step;
use windrow_document::{Document, DocumentBuf, ValueRef};
use windrow_mql::filter::{Environment, Filter};
use windrow_mql::projection::Projection;
use windrow_mql::sort::{Natural, Sort};
use windrow_mql::{Error, Meta};

/// The number of cases of each area that must agree.
const FLOORS: [(&str, usize); 4] = [
    ("filter", 881),
    ("projection", 332),
    ("random_find", 1195),
    ("sort", 150),
];

#[test]
fn find_answers_as_recorded() {
    areas::check(&FLOORS, run_case);
}

fn run_case(case: Document<'_>) -> Outcome {
    let mut collection: Vec<DocumentBuf> = Vec::new();
    let mut compared = false;
    for step in recorded::steps(case) {
        let run = step.run;
        match run.first().expect("a command").0 {
            "insert" => areas::insert(&mut collection, run),
            "createIndexes" => {}
            "find" | "count" if is_plain(run, step.reply) => {
                compare(&collection, &step)
                    .map_err(|difference| Some(format!("{run}\n    {difference}")))?;
                compared = true;
            }
            _ => return Err(None),
        }
    }
    if compared { Ok(()) } else { Err(None) }
}

/// Returns `true` if a command only uses filter, sort, window and projection.
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

fn compare(collection: &[DocumentBuf], step: &Step<'_>) -> Result<(), String> {
    let Some(found) = areas::found(find(collection, step.run), step.reply)? else {
        return Ok(());
    };
    if let Some(count) = step.reply.get("n") {
        return if count.as_whole() == Some(found.len() as i64) {
            Ok(())
        } else {
            Err(format!("{} instead of {count}", found.len()))
        };
    }
    let expected = areas::first_batch(step.reply).expect("a batch");
    let expected = expected.map(Document::to_buf).collect();
    areas::same(found, expected, step.is_unordered)
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
