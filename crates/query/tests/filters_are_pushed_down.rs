//! Random documents with arrays, gaps and numbers of all types, random stages that rename, remove,
//! compute and group, and a random filter after them. The filter accepts the same rows wherever the
//! pipeline evaluates it, with an index or without one.

mod support;

use std::cmp::Ordering;
use std::sync::Arc;

use support::{Database, Random};
use windrow_collection::Engine;
use windrow_document::{ArrayBuf, Collation, Decimal128, DocumentBuf, Value, ValueRef, array, doc};
use windrow_mql::collation;
use windrow_mql::filter::{Environment, Filter};
use windrow_query::{
    Aggregate, Direction, EngineCollections, Hint, Pipeline, Source, Uninterrupted, Verbosity,
};

fn scalar(random: &mut Random) -> Value {
    let number = random.below(3) as i32;
    match random.below(16) {
        0 => Value::Null,
        7 => random.pick(&[0.0, -0.0, f64::NAN]).into(),
        8 => Value::Decimal128(
            Decimal128::parse(random.pick(&["1", "1.0", "2.5", "NaN"])).expect("a number"),
        ),
        1 => "x".into(),
        2 => "X".into(),
        3 => true.into(),
        4 => 2.5.into(),
        5 => i64::from(number).into(),
        6 => f64::from(number).into(),
        _ => number.into(),
    }
}

fn inner(random: &mut Random, depth: u32) -> Value {
    let mut made = DocumentBuf::new();
    for name in ["c", "d"] {
        if random.below(4) > 0 {
            made.push(name, value(random, depth));
        }
    }
    made.into()
}

fn value(random: &mut Random, depth: u32) -> Value {
    match random.below(8) {
        0 | 1 if depth > 0 => {
            let count = random.below(4);
            let elements = (0..count).map(|_| value(random, depth - 1));
            Value::Array(elements.collect::<ArrayBuf>())
        }
        2 | 3 if depth > 0 => inner(random, depth - 1),
        _ => scalar(random),
    }
}

fn document(id: i32, random: &mut Random) -> DocumentBuf {
    let mut document = doc! { "_id": id };
    for name in ["a", "b", "p"] {
        if random.below(6) > 0 {
            document.push(name, value(random, 2));
        }
    }
    document
}

const SOURCES: [&str; 8] = [
    "$a",
    "$a",
    "$b",
    "$a.c",
    "$b.c.d",
    "$$ROOT.a",
    "$$CURRENT.b.d",
    "$$ROOT",
];

/// Fields without effect on the filter. Some of them are copies of other fields.
fn fields(random: &mut Random, targets: &[&str], kept: Option<Value>) -> DocumentBuf {
    let mut fields = DocumentBuf::new();
    let mut used: Vec<&str> = Vec::new();
    for _ in 0..1 + random.below(3) {
        let target = random.pick(targets);
        let beside = |other: &&str| {
            let longer =
                |one: &str, other: &str| format!("{one}.").starts_with(&format!("{other}."));
            !longer(target, other) && !longer(other, target)
        };
        if used.iter().all(beside) {
            used.push(target);
            let value = match (random.below(3), &kept) {
                (0, Some(kept)) => kept.clone(),
                (1, _) if random.below(3) == 0 => doc! { "$add": [1, 2] }.into(),
                _ => random.pick(&SOURCES).into(),
            };
            fields.push(target, value);
        }
    }
    fields
}

fn stage(random: &mut Random) -> DocumentBuf {
    let targets = [
        "x", "y", "a", "b", "a.c", "a.d", "p.q", "x.c", "b.c.d", "p.0",
    ];
    match random.below(14) {
        0..=2 => doc! { "$project": (fields(random, &targets, Some(true.into()))) },
        3..=4 => doc! { "$addFields": (fields(random, &targets, None)) },
        5 => doc! { "$unset": (random.pick(&["a", "a.c", "b.c.d", "x.c"])) },
        6 => doc! { "$project": { (random.pick(&["a.c", "b", "x.c"])): 0 } },
        7 => {
            let inner = fields(random, &["c", "z"], None);
            let mut made = fields(random, &["x", "a", "b"], None);
            made.push("y", inner);
            doc! { "$replaceWith": made }
        }
        8 => doc! { "$sort": { "_id": (random.pick(&[1, -1])) } },
        9 => doc! { "$unwind": (random.pick(&["$a", "$x", "$a.c"])) },
        _ => {
            let id: Value = match random.below(2) {
                0 => random.pick(&SOURCES).into(),
                _ => fields(random, &["x", "y"], None).into(),
            };
            doc! { "$group": { "_id": id, "count": { "$sum": 1 }, "a": { "$min": "$a" } } }
        }
    }
}

const PATHS: [&str; 26] = [
    "a", "a", "a.c", "a.d", "a.c.d", "a.0", "a.0.c", "b", "b.c", "x", "x", "x", "x.c", "x.0",
    "x.a", "x.c.d", "y", "y.c", "y.z", "p.q", "p.0", "p.q.c", "_id", "_id", "_id.x", "_id.c",
];

const OF_GROUPS: [&str; 8] = [
    "_id", "_id", "_id.x", "_id.x", "_id.y", "_id.c", "_id.0", "a",
];

fn condition(random: &mut Random) -> Value {
    let one = scalar(random);
    match random.below(24) {
        0 => doc! { "$gt": one }.into(),
        1 => doc! { "$lte": one }.into(),
        2 => doc! { "$in": [one, (scalar(random))] }.into(),
        3 => doc! { "$ne": one }.into(),
        4 => doc! { "$nin": [one, (scalar(random))] }.into(),
        5 => doc! { "$exists": (random.below(2) == 0) }.into(),
        6 => {
            let kinds = ["number", "int", "string", "null", "array", "object"];
            doc! { "$type": (random.pick(&kinds)) }.into()
        }
        7 => doc! { "$gt": one, "$lt": (scalar(random)) }.into(),
        8 => doc! { "$elemMatch": { "$gte": one } }.into(),
        9 => doc! { "$elemMatch": { "c": one } }.into(),
        10 => doc! { "$regex": "^x" }.into(),
        11 => doc! { "$not": { "$gte": one } }.into(),
        12 => Value::Array(array![one]),
        13 => doc! { "$lt": (random.pick(&[Value::MaxKey, array![1, 2].into()])) }.into(),
        14 => doc! { "$size": (random.below(3) as i32) }.into(),
        15 => doc! { "$mod": [2, 1] }.into(),
        16 => doc! { "$bitsAllSet": 1 }.into(),
        17 => doc! { "$all": [one, (scalar(random))] }.into(),
        18 => value(random, 2),
        19 => Value::Null,
        _ => one,
    }
}

fn expression(random: &mut Random, paths: &[&str]) -> Value {
    let operator = random.pick(&["$eq", "$lt", "$lte", "$gt", "$gte", "$ne"]);
    let field = format!("{}{}", random.pick(&["$", "$$ROOT."]), random.pick(paths));
    let compared = doc! { "$literal": (value(random, 1)) };
    let comparison = doc! { operator: [field, compared] };
    match random.below(4) {
        0 => doc! { "$and": [comparison, (expression(random, paths))] }.into(),
        1 => doc! { "$not": [comparison] }.into(),
        _ => comparison.into(),
    }
}

fn filter(random: &mut Random, paths: &[&str], depth: u32) -> DocumentBuf {
    let mut filter = DocumentBuf::new();
    for _ in 0..1 + random.below(3) / 2 {
        let path = random.pick(paths);
        if filter.get(path).is_none() {
            filter.push(path, condition(random));
        }
    }
    if random.below(6) == 0 {
        filter.push("$expr", expression(random, paths));
    }
    if depth > 0 && random.below(3) == 0 {
        let name = random.pick(&["$or", "$and", "$nor"]);
        let branches = 1 + random.below(3);
        let list = (0..branches).map(|_| Value::Document(self::filter(random, paths, depth - 1)));
        filter.push(name, list.collect::<ArrayBuf>());
    }
    filter
}

fn has_group(stages: &[DocumentBuf]) -> bool {
    stages.iter().any(|stage| stage.get("$group").is_some())
}

struct Setting {
    source: Arc<dyn Source>,
    collections: Arc<EngineCollections>,
    environment: Environment,
}

impl Setting {
    fn new(
        engine: &Arc<Engine>,
        source: Arc<dyn Source>,
        collation: Option<Arc<Collation>>,
    ) -> Setting {
        Setting {
            source,
            collections: Arc::new(EngineCollections::new(engine.clone())),
            environment: Environment {
                collation,
                ..Environment::default()
            },
        }
    }

    fn aggregate(&self, stages: &[DocumentBuf]) -> Aggregate {
        let is_grouped = has_group(stages);
        let stages: ArrayBuf = stages.iter().cloned().map(Value::Document).collect();
        let pipeline = Pipeline::parse(stages.as_array(), &self.environment);
        // The order of the rows decides which of several equal values represents a group, and a
        // filter may distinguish them.
        Aggregate {
            hint: is_grouped.then_some(Hint::Natural(Direction::Forward)),
            ..Aggregate::new(pipeline.expect("a pipeline"))
        }
    }

    /// The rows sorted by their values. `None` if the pipeline fails.
    fn rows(&self, stages: &[DocumentBuf]) -> Option<Vec<DocumentBuf>> {
        let mut cursor = self
            .aggregate(stages)
            .open(&self.source, &self.collections)
            .ok()?;
        let mut rows = Vec::new();
        while let Some(row) = cursor.next(&Uninterrupted).ok()? {
            rows.push(row.as_document().to_buf());
        }
        rows.sort_by(|one, other| self.compare(one, other));
        Some(rows)
    }

    fn compare(&self, one: &DocumentBuf, other: &DocumentBuf) -> Ordering {
        let value = |document| ValueRef::Document(DocumentBuf::as_document(document));
        let collation = self.environment.collation.as_deref();
        windrow_document::collation::compare(collation, value(one), value(other))
    }

    fn explain(&self, stages: &[DocumentBuf]) -> String {
        let aggregate = self.aggregate(stages);
        let how = (&self.source, &self.collections);
        let explained = aggregate.explain(how.0, how.1, Verbosity::QueryPlanner, &Uninterrupted);
        explained.expect("a plan").to_string()
    }
}

/// Returns `true` if the filter moved to the start, so that an index answered it.
fn check(setting: &Setting, random: &mut Random) -> bool {
    let count = 1 + random.below(2);
    let mut stages: Vec<DocumentBuf> = (0..count).map(|_| stage(random)).collect();
    let paths: &[&str] = if has_group(&stages) {
        &OF_GROUPS
    } else {
        &PATHS
    };
    let filter = filter(random, paths, 1);
    let Some(rows) = setting.rows(&stages) else {
        return false;
    };
    let parsed = Filter::parse_with(filter.as_document(), &setting.environment);
    let parsed = parsed.expect("a filter");
    let matches = |row: &DocumentBuf| parsed.matches(row.as_document()).expect("a match");
    let expected: Vec<DocumentBuf> = rows.into_iter().filter(matches).collect();
    stages.push(doc! { "$match": filter });
    let found = setting.rows(&stages).expect("rows");
    let is_same = found.len() == expected.len()
        && found
            .iter()
            .zip(&expected)
            .all(|(one, other)| setting.compare(one, other).is_eq());
    assert!(
        is_same,
        "{stages:?}: {found:?} in place of {expected:?} by {}",
        setting.explain(&stages)
    );
    !expected.is_empty() && setting.explain(&stages).contains("IXSCAN")
}

#[test]
fn a_filter_finds_the_same_wherever_it_is_asked() {
    let rounds = std::env::var("WINDROW_ROUNDS")
        .ok()
        .and_then(|text| text.parse().ok());
    let rounds = rounds.unwrap_or(100);
    let mut by_index = 0;
    for round in 0..rounds {
        let mut random = Random(0x9E37_79B9_7F4A_7C15 ^ (round * 7_919 + 1));
        let documents: Vec<DocumentBuf> = (0..40).map(|id| document(id, &mut random)).collect();
        let index = |path: &str| doc! { "key": { path: 1 }, "name": path };
        let database = Database::new(&documents, ["a", "b", "a.c", "b.c.d"].map(index).into());
        let blurred = doc! { "locale": "en", "strength": 2 };
        let collation = collation::parse(blurred.as_document());
        let collation = collation.expect("a collation").filter(|_| round % 4 == 0);
        let setting = Setting::new(&database.engine, database.source(), collation);
        for _ in 0..200 {
            by_index += u64::from(check(&setting, &mut random));
        }
    }
    assert!(by_index > rounds * 5, "{by_index} of {rounds} rounds");
}
