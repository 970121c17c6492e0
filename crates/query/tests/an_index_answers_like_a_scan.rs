//! Random documents with arrays, nulls and gaps, random indexes, random filters and sorts: the
//! chosen plan finds the same documents as a collection scan, in an order that the sort allows.

mod support;

use std::collections::BTreeSet;
use std::sync::Arc;

use support::{Database, Random};
use windrow_document::{ArrayBuf, DocumentBuf, Value, ValueRef, array, doc};
use windrow_mql::Meta;
use windrow_mql::filter::Filter;
use windrow_mql::projection::Projection;
use windrow_mql::sort::Sort;
use windrow_query::{Count, Find, Hint, Source, Uninterrupted};

fn scalar(random: &mut Random) -> Value {
    match random.below(12) {
        0 => Value::Null,
        1 => "x".into(),
        2 => "xy".into(),
        3 => true.into(),
        4 => 2.5.into(),
        _ => (random.below(6) as i32).into(),
    }
}

fn value(random: &mut Random) -> Value {
    match random.below(8) {
        0 => {
            let count = random.below(4);
            let mut element = || match random.below(6) {
                0 => Value::Array((0..random.below(3)).map(|_| scalar(random)).collect()),
                _ => scalar(random),
            };
            Value::Array((0..count).map(|_| element()).collect::<ArrayBuf>())
        }
        1 => doc! { "c": (scalar(random)), "d": (scalar(random)) }.into(),
        2 => {
            let count = random.below(3);
            let mut element = || match random.below(3) {
                0 => scalar(random),
                _ => doc! { "c": (scalar(random)), "d": (scalar(random)) }.into(),
            };
            Value::Array((0..count).map(|_| element()).collect::<ArrayBuf>())
        }
        _ => scalar(random),
    }
}

fn document(id: i32, random: &mut Random, plain: bool) -> DocumentBuf {
    let mut document = doc! { "_id": id };
    for name in ["a", "b"] {
        if random.below(6) > 0 {
            let value = if plain { scalar(random) } else { value(random) };
            document.push(name, value);
        }
    }
    document
}

const PATHS: [&str; 6] = ["a", "b", "a.c", "a.d", "a.0", "b.0.c"];

/// A wildcard and a field beside it, which must not contain arrays.
fn compound_wildcard(number: u64, random: &mut Random) -> DocumentBuf {
    let direction = random.pick(&[1, -1]);
    let (key, projection) = match random.below(4) {
        0 => (doc! { "b": direction, "a.$**": 1 }, None),
        1 => (doc! { "a.$**": 1, "b": direction }, None),
        2 => (
            doc! { "b": direction, "$**": 1 },
            Some(doc! { "b": 0, "_id": 1 }),
        ),
        _ => (doc! { "a.c": direction, "b.$**": 1 }, None),
    };
    let mut specification = doc! { "key": key, "name": (format!("index{number}")) };
    if let Some(projection) = projection {
        specification.push("wildcardProjection", projection);
    }
    specification
}

fn index(number: u64, random: &mut Random, plain: bool) -> DocumentBuf {
    let mut key = DocumentBuf::new();
    if random.below(6) == 0 {
        let wildcard = random.pick(&["$**", "a.$**"]);
        key.push(wildcard, 1);
        return doc! { "key": key, "name": (format!("index{number}")) };
    }
    if plain && random.below(4) == 0 {
        return compound_wildcard(number, random);
    }
    let mut used = BTreeSet::new();
    for _ in 0..1 + random.below(3) {
        let path = random.pick(&PATHS);
        if used.insert(path) {
            // A hashed index does not support arrays.
            match plain && !key.iter().any(|(_, kind)| kind.as_str().is_some()) {
                true if random.below(4) == 0 => key.push(path, "hashed"),
                _ => key.push(path, random.pick(&[1, -1])),
            }
        }
    }
    let mut specification = doc! { "key": key };
    specification.push("name", format!("index{number}"));
    match random.below(6) {
        0 => specification.push("sparse", true),
        1 => specification.push("partialFilterExpression", doc! { "b": { "$gt": 1 } }),
        _ => {}
    }
    specification
}

fn condition(random: &mut Random) -> Value {
    let one = scalar(random);
    match random.below(16) {
        13 => doc! { "$lt": (Value::MaxKey) }.into(),
        14 => doc! { "$gte": (Value::MinKey), "$ne": one }.into(),
        0 => doc! { "$gt": one }.into(),
        1 => doc! { "$lte": one }.into(),
        2 => doc! { "$in": [one, (scalar(random))] }.into(),
        3 => doc! { "$ne": one }.into(),
        4 => doc! { "$nin": [one, (scalar(random))] }.into(),
        5 => doc! { "$exists": (random.below(2) == 0) }.into(),
        6 => {
            doc! { "$type": (random.pick(&["number", "string", "null", "array", "object"])) }.into()
        }
        7 => doc! { "$gt": one, "$lt": (scalar(random)) }.into(),
        8 => doc! { "$elemMatch": { "$gte": one } }.into(),
        9 => doc! { "$elemMatch": { "c": one, "d": { "$ne": (scalar(random)) } } }.into(),
        10 => doc! { "$regex": "^x" }.into(),
        11 => doc! { "$not": { "$gte": one } }.into(),
        12 => Value::Array(array![one]),
        _ => one,
    }
}

/// Comparisons of fields with values of all types.
fn expression(random: &mut Random) -> Value {
    let operator = random.pick(&["$eq", "$lt", "$lte", "$gt", "$gte"]);
    let field = format!("${}", random.pick(&PATHS));
    let compared = match random.below(6) {
        0 => random.pick(&[Value::MinKey, Value::MaxKey, Value::Null]),
        _ => value(random),
    };
    let (field, value) = (Value::from(field), doc! { "$literal": compared });
    let sides: Value = match random.below(2) {
        0 => Value::Array(array![field, value]),
        _ => Value::Array(array![value, field]),
    };
    let mut comparison = DocumentBuf::new();
    comparison.push(operator, sides);
    match random.below(4) {
        0 => doc! { "$and": [comparison, (expression(random))] }.into(),
        _ => comparison.into(),
    }
}

fn filter(random: &mut Random, depth: u32) -> DocumentBuf {
    let mut filter = DocumentBuf::new();
    for _ in 0..random.below(3) {
        let path = random.pick(&PATHS);
        if filter.get(path).is_none() {
            filter.push(path, condition(random));
        }
    }
    if random.below(6) == 0 {
        filter.push("$expr", expression(random));
    }
    if depth > 0 && random.below(3) == 0 {
        let name = random.pick(&["$or", "$and", "$nor"]);
        let branches = 1 + random.below(3);
        let list: ArrayBuf = (0..branches)
            .map(|_| Value::Document(filter_of(random, depth)))
            .collect();
        filter.push(name, list);
    }
    filter
}

fn filter_of(random: &mut Random, depth: u32) -> DocumentBuf {
    filter(random, depth - 1)
}

fn sort(random: &mut Random) -> DocumentBuf {
    let mut sort = DocumentBuf::new();
    for _ in 0..random.below(3) {
        let path = random.pick(&PATHS);
        if sort.get(path).is_none() {
            sort.push(path, random.pick(&[1, -1]));
        }
    }
    sort
}

fn ids(source: &Arc<dyn Source>, find: &Find) -> Vec<i64> {
    let mut cursor = find.clone().open(source).expect("a plan");
    let mut found = Vec::new();
    while let Some(content) = cursor.next(&Uninterrupted).expect("a document") {
        found.push(
            content
                .as_document()
                .get("_id")
                .and_then(ValueRef::as_whole)
                .expect("an id"),
        );
    }
    found
}

fn check(source: &Arc<dyn Source>, documents: &[DocumentBuf], random: &mut Random) {
    let (filter, order) = (filter(random, 2), sort(random));
    let parsed = Filter::parse(filter.as_document()).expect("a filter");
    let order = Sort::parse(order.as_document()).expect("a sort");
    let keys: Vec<Vec<u8>> = documents
        .iter()
        .map(|one| {
            let mut key = Vec::new();
            // Two parallel arrays cannot be sorted.
            let sorted = order.key(one.as_document(), &Meta::default(), &mut key);
            sorted.map_or_else(|_| vec![0xFF], |()| key)
        })
        .collect();
    let matching = documents
        .iter()
        .filter(|one| parsed.matches(one.as_document()).expect("a match"));
    let expected: BTreeSet<i64> = matching
        .map(|one| one.get("_id").and_then(ValueRef::as_whole).expect("an id"))
        .collect();
    let sortable = keys.iter().all(|key| key != &[0xFF]);
    let sorts = sortable.then(|| order.clone());
    let find = Find {
        sort: sorts,
        ..Find::new(parsed.clone())
    };
    let plan = find.plan(&**source).expect("a plan").winner;
    let found = ids(source, &find);
    let what = format!("{filter} by {} with {plan}", order.to_document());
    assert_eq!(
        found.iter().copied().collect::<BTreeSet<_>>(),
        expected,
        "{what}"
    );
    assert_eq!(found.len(), expected.len(), "twice: {what}");
    if sortable {
        let in_order: Vec<&Vec<u8>> = found.iter().map(|id| &keys[*id as usize]).collect();
        assert!(in_order.is_sorted(), "order: {what}");
        let window = Find {
            skip: 2,
            limit: Some(5),
            ..find.clone()
        };
        let cut = ids(source, &window);
        let cut: Vec<&Vec<u8>> = cut.iter().map(|id| &keys[*id as usize]).collect();
        let wanted: Vec<&Vec<u8>> = in_order.into_iter().skip(2).take(5).collect();
        assert_eq!(cut, wanted, "window: {what}");
    }
    let count = Count {
        filter: parsed.clone(),
        skip: 0,
        limit: None,
        hint: None,
    };
    let count = count.run(source, &Uninterrupted, |_| {}).expect("a count");
    assert_eq!(count as usize, expected.len(), "count: {what}");
    check_covered(source, &parsed, &expected);
}

/// Checks the query with a projection to `_id`, which every plan supports.
fn check_covered(source: &Arc<dyn Source>, filter: &Filter, expected: &BTreeSet<i64>) {
    let projection =
        Projection::parse(doc! { "_id": 1 }.as_document(), filter).expect("a projection");
    let find = Find {
        projection: Some(projection),
        ..Find::new(filter.clone())
    };
    let found: BTreeSet<i64> = ids(source, &find).into_iter().collect();
    assert_eq!(&found, expected, "covered: {filter}");
    let scan = Find {
        hint: Some(Hint::Natural(windrow_query::Direction::Backward)),
        ..find
    };
    let found: BTreeSet<i64> = ids(source, &scan).into_iter().collect();
    assert_eq!(&found, expected, "scanned: {filter}");
}

fn documents(random: &mut Random, plain: bool) -> Vec<DocumentBuf> {
    let count = 40 + random.below(60) as i32;
    (0..count).map(|id| document(id, random, plain)).collect()
}

fn indexes(random: &mut Random, plain: bool) -> Vec<DocumentBuf> {
    let mut indexes: Vec<DocumentBuf> = Vec::new();
    for number in 0..1 + random.below(4) {
        let index = index(number, random, plain);
        let mut others = indexes.iter();
        if others.all(|other| other.get("key") != index.get("key")) {
            indexes.push(index);
        }
    }
    indexes
}

#[test]
fn every_plan_finds_what_a_scan_finds() {
    let rounds = std::env::var("WINDROW_ROUNDS")
        .ok()
        .and_then(|text| text.parse().ok());
    for round in 0..rounds.unwrap_or(40) {
        let mut random = Random(0x9E37_79B9_7F4A_7C15 ^ (round * 7_919 + 1));
        let plain = round % 3 == 0;
        let documents = documents(&mut random, plain);
        let database = Database::new(&documents, indexes(&mut random, plain));
        for _ in 0..60 {
            check(&database.source(), &documents, &mut random);
        }
    }
}

/// Arrays disappear with their documents and come back. The bounds must be as wide as the snapshot
/// requires, whatever newer states contain.
#[test]
fn every_snapshot_knows_its_arrays() {
    for round in 0..12 {
        let mut random = Random(0xD1B5_4A32_D192_ED03 ^ (round * 7_919 + 1));
        let mut now = documents(&mut random, false);
        let database = Database::new(&now, indexes(&mut random, false));
        let mut held = vec![(database.source(), now.clone())];
        for phase in 0..4 {
            let plain = phase % 2 == 0;
            for document in now.iter_mut().filter(|it| plain || has_no_array(it)) {
                let id = document.get("_id").and_then(ValueRef::as_whole);
                let id = id.expect("an id") as i32;
                if !plain || !has_no_array(document) {
                    *document = self::document(id, &mut random, plain);
                    database.replace(id, document);
                }
            }
            if random.below(2) == 0 {
                database.fold();
            }
            held.push((database.source(), now.clone()));
            for _ in 0..20 {
                let (source, documents) = random.pick(&held);
                check(&source, &documents, &mut random);
            }
            let (newest, _) = &held[held.len() - 1];
            let is_healed = |number| !newest.multikey(number).expect("marks").any();
            assert!(!plain || (0..newest.indexes().len()).all(is_healed));
        }
    }
}

fn has_no_array(document: &DocumentBuf) -> bool {
    let values = document.iter().map(|(_, value)| value);
    !values.into_iter().any(|value| value.as_array().is_some())
}
