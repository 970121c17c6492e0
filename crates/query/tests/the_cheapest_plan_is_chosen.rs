//! The plan that is chosen for a query: its stages from the outermost to the innermost, with the
//! indexes that they read.

mod support;

use support::Database;
use windrow_document::path::Path;
use windrow_document::{Document, DocumentBuf, Value, ValueRef, array, doc};
use windrow_mql::filter::Filter;
use windrow_mql::projection::Projection;
use windrow_mql::sort::Sort;
use windrow_query::{Aggregate, ExplainedCommand, Find, Hint, Pipeline, Uninterrupted, Verbosity};

fn database() -> Database {
    let document = |id: i32| {
        doc! { "_id": id, "a": (id % 10), "b": (id % 100), "t": [id, (-id)], "s": "some words",
        "p": id, "z": 1 }
    };
    let documents: Vec<DocumentBuf> = (0..500).map(document).collect();
    let partial = doc! { "p": { "$gt": 400 } };
    Database::new(
        &documents,
        vec![
            doc! { "key": { "a": 1 }, "name": "a" },
            doc! { "key": { "a": 1, "b": -1 }, "name": "ab" },
            doc! { "key": { "b": 1 }, "name": "b" },
            doc! { "key": { "t": 1 }, "name": "t" },
            doc! { "key": { "p": 1 }, "name": "p", "partialFilterExpression": partial },
            doc! { "key": { "x": 1 }, "name": "x", "sparse": true },
            doc! { "key": { "s": "text" }, "name": "s" },
        ],
    )
}

/// Returns a summary of the stages, such as `LIMIT FETCH IXSCAN(a)`.
fn summary(plan: Document<'_>) -> String {
    let stage = plan
        .get("stage")
        .and_then(ValueRef::as_str)
        .unwrap_or_default()
        .to_owned();
    let index = plan.get("indexName").and_then(ValueRef::as_str);
    let stage = index.map_or(stage.clone(), |index| format!("{stage}({index})"));
    if stage.starts_with("TEXT") {
        return stage;
    }
    if let Some(input) = plan.get("inputStage").and_then(ValueRef::as_document) {
        return format!("{stage} {}", summary(input));
    }
    match plan.get("inputStages").and_then(ValueRef::as_array) {
        Some(inputs) => {
            let inputs = inputs.iter().filter_map(ValueRef::as_document).map(summary);
            format!("{stage}[{}]", inputs.collect::<Vec<_>>().join(", "))
        }
        None => stage,
    }
}

fn find(filter: DocumentBuf) -> Find {
    Find::new(Filter::parse(filter.as_document()).unwrap())
}

fn sorted(find: Find, sort: DocumentBuf) -> Find {
    Find {
        sort: Some(Sort::parse(sort.as_document()).unwrap()),
        ..find
    }
}

fn projected(find: Find, projection: DocumentBuf) -> Find {
    let projection = Projection::parse(projection.as_document(), &find.filter).unwrap();
    Find {
        projection: Some(projection),
        ..find
    }
}

fn hinted(find: Find, name: &str) -> Find {
    Find {
        hint: Some(Hint::Name(name.to_owned())),
        ..find
    }
}

/// Returns the summary of the plan that was chosen.
fn chosen(explained: Document<'_>) -> String {
    let planner = explained.get("queryPlanner").unwrap().as_document();
    let plan = planner.and_then(|planner| planner.get("winningPlan"));
    summary(plan.and_then(ValueRef::as_document).unwrap())
}

fn check(database: &Database, find: Find, expected: &str) {
    let explained = find
        .explain(
            &database.source(),
            Verbosity::QueryPlanner,
            &ExplainedCommand::None,
            &Uninterrupted,
        )
        .unwrap();
    assert_eq!(chosen(explained.as_document()), expected, "{}", find.filter);
}

/// Expressions led to collection scans, in the pipelines of a `$lookup` with `let` once for each
/// row.
#[test]
fn comparisons_within_expressions_go_by_indexes() {
    let database = database();
    let check = |condition: DocumentBuf, expected| {
        check(&database, find(doc! { "$expr": condition }), expected);
    };
    check(doc! { "$eq": ["$_id", 5] }, "FETCH IXSCAN(_id_)");
    check(doc! { "$gt": [7, "$b"] }, "FETCH IXSCAN(b)");
    check(
        doc! { "$eq": ["$b", { "$add": [3, 4] }] },
        "FETCH IXSCAN(b)",
    );
    check(
        doc! { "$and": [{ "$gte": ["$a", 5] }, { "$and": [{ "$eq": ["$b", 7] }] }] },
        "FETCH IXSCAN(b)",
    );
    // A disjunction or a negation gives no bounds, a comparison of two fields neither, and arrays
    // are compared as a whole.
    check(
        doc! { "$or": [{ "$eq": ["$b", 7] }, { "$eq": ["$z", 1] }] },
        "COLLSCAN",
    );
    check(doc! { "$not": [{ "$eq": ["$b", 7] }] }, "COLLSCAN");
    check(doc! { "$eq": ["$b", "$_id"] }, "COLLSCAN");
    check(doc! { "$eq": ["$b", [7]] }, "COLLSCAN");
    check(doc! { "$eq": ["$b", { "$rand": {} }] }, "COLLSCAN");
    check(doc! { "$lt": ["$b", (Value::MaxKey)] }, "COLLSCAN");
}

#[test]
fn plans_for_filters() {
    let database = database();
    let check = |find, expected| check(&database, find, expected);
    check(find(doc! {}), "COLLSCAN");
    check(find(doc! { "z": 1 }), "COLLSCAN");
    check(find(doc! { "_id": 5 }), "IDHACK");
    check(find(doc! { "_id": { "$gt": 5 } }), "FETCH IXSCAN(_id_)");
    check(
        find(doc! { "a": 5, "b": { "$gt": 50 } }),
        "FETCH IXSCAN(ab)",
    );
    check(find(doc! { "b": 7 }), "FETCH IXSCAN(b)");
    check(find(doc! { "z": 1, "b": 7 }), "FETCH IXSCAN(b)");
    check(find(doc! { "a": { "$gte": 0 }, "b": 7 }), "FETCH IXSCAN(b)");
    check(find(doc! { "t": 7 }), "FETCH IXSCAN(t)");
    check(find(doc! { "p": { "$gt": 450 } }), "FETCH IXSCAN(p)");
    check(find(doc! { "p": { "$gt": 300 } }), "COLLSCAN");
    check(find(doc! { "x": 1 }), "FETCH IXSCAN(x)");
    check(find(doc! { "x": (Value::Null) }), "COLLSCAN");
    check(
        find(doc! { "$or": [{ "b": 7 }, { "t": 3 }] }),
        "FETCH OR[IXSCAN(b), IXSCAN(t)]",
    );
    check(find(doc! { "$or": [{ "b": 7 }, { "z": 3 }] }), "COLLSCAN");
    check(
        find(doc! { "$text": { "$search": "words" } }),
        "TEXT_MATCH(s)",
    );
    check(hinted(find(doc! { "b": 7 }), "a"), "FETCH IXSCAN(a)");
}

#[test]
fn plans_for_sorts_and_windows() {
    let database = database();
    let check = |find, expected| check(&database, find, expected);
    let window = |find| Find {
        skip: 3,
        limit: Some(4),
        ..find
    };
    check(sorted(find(doc! {}), doc! { "b": -1 }), "FETCH IXSCAN(b)");
    check(sorted(find(doc! {}), doc! { "z": 1 }), "SORT COLLSCAN");
    check(
        sorted(find(doc! { "a": 5 }), doc! { "b": 1 }),
        "FETCH IXSCAN(ab)",
    );
    check(
        window(sorted(find(doc! {}), doc! { "z": 1 })),
        "SKIP SORT COLLSCAN",
    );
    check(
        window(sorted(find(doc! {}), doc! { "b": 1 })),
        "LIMIT FETCH SKIP IXSCAN(b)",
    );
    check(
        window(sorted(find(doc! { "z": 1 }), doc! { "b": 1 })),
        "LIMIT SKIP FETCH IXSCAN(b)",
    );
    check(
        sorted(find(doc! { "b": 7 }), doc! { "p": 1 }),
        "SORT FETCH IXSCAN(b)",
    );
    check(sorted(find(doc! {}), doc! { "x": 1 }), "SORT COLLSCAN");
    check(sorted(find(doc! {}), doc! { "$natural": -1 }), "COLLSCAN");
}

#[test]
fn plans_that_read_keys_alone() {
    let database = database();
    let check = |find, expected| check(&database, find, expected);
    let both = || doc! { "_id": 0, "a": 1, "b": 1 };
    let scan = "PROJECTION_COVERED IXSCAN(ab)";
    check(projected(find(doc! { "a": 5 }), both()), scan);
    check(
        projected(find(doc! { "a": 5, "b": { "$mod": [2, 0] } }), both()),
        scan,
    );
    check(
        projected(find(doc! { "a": 5, "z": 1 }), both()),
        "PROJECTION_SIMPLE FETCH IXSCAN(a)",
    );
    check(
        projected(find(doc! { "t": 5 }), doc! { "_id": 0, "t": 1 }),
        "PROJECTION_SIMPLE FETCH IXSCAN(t)",
    );
    let nothing = Find {
        needs: Some(Vec::new()),
        ..find(doc! { "b": { "$gt": 5 } })
    };
    check(nothing, "COUNT_SCAN(b)");
}

#[test]
fn hints_that_fit_nothing_are_refused() {
    let database = database();
    let code = |find: Find| find.plan(&*database.source()).unwrap_err().code();
    assert_eq!(code(hinted(find(doc! {}), "none")), Some(2));
    assert_eq!(
        code(hinted(find(doc! { "$text": { "$search": "x" } }), "a")),
        Some(2)
    );
    let bounded = Find {
        min: Some(doc! { "b": 1 }),
        ..find(doc! {})
    };
    assert_eq!(code(bounded), Some(51173));
}

#[test]
fn explain_counts_what_was_read() {
    let database = database();
    let check = |find: Find, returned: i64, keys: i64, documents: i64| {
        let source = database.source();
        let verbosity = Verbosity::ExecutionStats;
        let explained = find
            .explain(&source, verbosity, &ExplainedCommand::None, &Uninterrupted)
            .unwrap();
        let stats = explained
            .get("executionStats")
            .and_then(ValueRef::as_document)
            .unwrap();
        let number = |name| stats.get(name).and_then(ValueRef::as_whole);
        let found = (
            number("nReturned"),
            number("totalKeysExamined"),
            number("totalDocsExamined"),
        );
        assert_eq!(
            found,
            (Some(returned), Some(keys), Some(documents)),
            "{}",
            find.filter
        );
    };
    check(find(doc! { "a": 5, "b": { "$gte": 50 } }), 25, 25, 25);
    check(find(doc! { "z": 2 }), 0, 0, 500);
    check(
        projected(find(doc! { "b": 7 }), doc! { "_id": 0, "b": 1 }),
        5,
        5,
        0,
    );
    check(
        Find {
            limit: Some(3),
            ..find(doc! { "b": 7 })
        },
        3,
        3,
        3,
    );
    check(find(doc! { "_id": 5 }), 1, 1, 1);
}

#[test]
fn the_front_of_a_pipeline_is_planned() {
    let database = database();
    let check = |stages: windrow_document::ArrayBuf, expected: &str, behind: usize| {
        let pipeline = Pipeline::parse(stages.as_array(), &Default::default()).unwrap();
        let collections = std::sync::Arc::new(windrow_query::EngineCollections::new(
            database.engine.clone(),
        ));
        let explained = Aggregate::new(pipeline)
            .explain(
                &database.source(),
                &collections,
                Verbosity::QueryPlanner,
                &Uninterrupted,
            )
            .unwrap();
        let stages = explained.get("stages").and_then(ValueRef::as_array);
        let first = stages
            .and_then(|stages| stages.get(0))
            .and_then(ValueRef::as_document);
        let cursor = first
            .and_then(|first| first.get("$cursor"))
            .and_then(ValueRef::as_document);
        let whole = cursor.unwrap_or(explained.as_document());
        let count = stages.map_or(0, |stages| stages.count() - 1);
        assert_eq!(
            (chosen(whole).as_str(), count),
            (expected, behind),
            "{explained}"
        );
    };
    use windrow_document::array;
    check(array![{ "$match": { "b": 7 } }], "FETCH IXSCAN(b)", 0);
    check(
        array![{ "$sort": { "b": 1 } }, { "$match": { "b": 7 } }],
        "FETCH IXSCAN(b)",
        0,
    );
    check(
        array![{ "$match": { "b": 7 } }, { "$count": "n" }],
        "COUNT_SCAN(b)",
        1,
    );
    check(
        array![{ "$set": { "q": 1 } }, { "$match": { "b": 7 } }],
        "FETCH IXSCAN(b)",
        1,
    );
    check(
        array![{ "$set": { "b": 1 } }, { "$match": { "b": 7 } }],
        "COLLSCAN",
        2,
    );
    check(
        array![{ "$match": { "a": 5 } }, { "$group": { "_id": "$b" } }],
        "IXSCAN(ab)",
        1,
    );
    check(
        array![{ "$sort": { "z": 1 } }, { "$limit": 5 }, { "$project": { "z": 1 } }],
        "SORT COLLSCAN",
        1,
    );
}

/// Fetching most documents of a large collection one by one takes longer than a collection scan.
#[test]
fn a_large_collection_is_scanned_where_an_index_leads_to_most_of_it() {
    let document = |id: i32| doc! { "_id": id, "a": (id % 10), "b": (id % 1000), "c": id };
    let documents: Vec<DocumentBuf> = (0..12_000).map(document).collect();
    let keys = [doc! { "a": 1 }, doc! { "b": 1 }];
    let indexes = keys.map(|key| {
        let name = key.iter().next().map_or("", |(name, _)| name).to_owned();
        doc! { "key": key, "name": name }
    });
    let database = Database::new(&documents, indexes.to_vec());
    let check = |find, expected| check(&database, find, expected);
    let most = || find(doc! { "a": { "$gte": 3 } });
    check(most(), "COLLSCAN");
    check(find(doc! { "a": 3 }), "FETCH IXSCAN(a)");
    check(find(doc! { "a": { "$gte": 3 }, "b": 7 }), "FETCH IXSCAN(b)");
    check(
        projected(most(), doc! { "_id": 0, "a": 1 }),
        "PROJECTION_COVERED IXSCAN(a)",
    );
    check(sorted(most(), doc! { "a": 1 }), "FETCH IXSCAN(a)");
    check(hinted(most(), "a"), "FETCH IXSCAN(a)");
    // If a limit ends the scan early, many documents that do not match may come first.
    check(limited(most(), 1), "LIMIT FETCH IXSCAN(a)");
    check(limited(most(), 4_000), "LIMIT COLLSCAN");
}

/// If bounds do not tell how many documents of a large collection will be fetched, a sample of keys
/// does. Such conditions were assumed to match all documents.
#[test]
fn keys_tell_how_many_match() {
    let document =
        |id: i32| doc! { "_id": id, "t": (format!("text {id}")), "b": (id % 7), "n": id };
    let documents: Vec<DocumentBuf> = (0..12_000).map(document).collect();
    let keys = [doc! { "t": 1 }, doc! { "b": 1, "n": -1 }];
    let indexes = keys.map(|key| {
        let name = key.iter().next().map_or("", |(name, _)| name).to_owned();
        doc! { "key": key, "name": name }
    });
    let database = Database::new(&documents, indexes.to_vec());
    let text = |pattern: &str| find(doc! { "t": { "$regex": pattern } });
    let most = || text("[1-9]");
    let compound = |divisor: i32| {
        let of_b = doc! { "$gte": 0 };
        find(doc! { "b": of_b, "n": { "$mod": [divisor, 0] } })
    };
    for folds in [false, true] {
        if folds {
            database.fold();
        }
        let check = |find, expected| check(&database, find, expected);
        check(text("77$"), "FETCH IXSCAN(t)");
        check(most(), "COLLSCAN");
        let shown = projected(most(), doc! { "_id": 0, "t": 1 });
        check(shown, "PROJECTION_COVERED IXSCAN(t)");
        check(compound(1000), "FETCH IXSCAN(b)");
        check(compound(2), "COLLSCAN");
        let either = |pattern: &str| {
            let branches = array![{ "t": { "$regex": pattern } }, { "b": 3, "n": 10 }];
            find(doc! { "$or": branches })
        };
        check(either("77$"), "FETCH OR[IXSCAN(b), IXSCAN(t)]");
        check(either("[1-9]"), "COLLSCAN");
        let expected: Vec<i32> = (0..120).map(|one| one * 100 + 77).collect();
        let mut found = ids(&database, text("77$"));
        found.sort_unstable();
        assert_eq!(found, expected);
    }
}

fn ids(database: &Database, find: Find) -> Vec<i32> {
    let mut cursor = find.open(&database.source()).unwrap();
    let mut found = Vec::new();
    while let Some(row) = cursor.next(&Uninterrupted).unwrap() {
        match row.as_document().get("_id") {
            Some(ValueRef::Int32(id)) => found.push(id),
            other => panic!("{other:?}"),
        }
    }
    found
}

fn limited(find: Find, limit: u64) -> Find {
    Find {
        limit: Some(limit),
        ..find
    }
}

/// 4,000 documents. Each value occurs in many of them.
fn large() -> Database {
    let document = |id: i32| {
        let tags = if id % 7 == 0 {
            vec![id % 5, 9]
        } else {
            vec![id % 5]
        };
        let tags: windrow_document::ArrayBuf = tags.into_iter().map(Value::from).collect();
        doc! { "_id": id, "a": (id % 40), "b": (id % 37), "c": (4000 - id), "d": (id % 3),
        "e": (id % 1000), "t": tags }
    };
    let documents: Vec<DocumentBuf> = (0..4000).map(document).collect();
    Database::new(
        &documents,
        vec![
            doc! { "key": { "a": 1, "c": 1 }, "name": "ac" },
            doc! { "key": { "a": 1 }, "name": "a" },
            doc! { "key": { "b": 1 }, "name": "b" },
            doc! { "key": { "d": 1, "e": 1 }, "name": "de" },
            doc! { "key": { "t": 1, "c": -1 }, "name": "tc" },
        ],
    )
}

#[test]
fn scans_in_order_are_merged() {
    let database = large();
    let some = || find(doc! { "a": { "$in": [1, 5, 7] } });
    let by_c = |find, direction: i32| limited(sorted(find, doc! { "c": direction }), 4);
    check(
        &database,
        by_c(some(), 1),
        "LIMIT FETCH SORT_MERGE[IXSCAN(ac), IXSCAN(ac), IXSCAN(ac)]",
    );
    assert_eq!(ids(&database, by_c(some(), 1)), [3967, 3965, 3961, 3927]);
    assert_eq!(ids(&database, by_c(some(), -1)), [1, 5, 7, 41]);
    let either = || find(doc! { "$or": [{ "a": 1 }, { "a": 5, "c": { "$lt": 100 } }] });
    check(
        &database,
        by_c(either(), 1),
        "LIMIT FETCH SORT_MERGE[IXSCAN(ac), IXSCAN(ac)]",
    );
    assert_eq!(ids(&database, by_c(either(), 1)), [3965, 3961, 3925, 3921]);
    // A record with an array comes from several scans and counts once.
    let tags = || find(doc! { "t": { "$in": [0, 9] } });
    check(
        &database,
        by_c(tags(), 1),
        "LIMIT FETCH SORT_MERGE[IXSCAN(tc), IXSCAN(tc)]",
    );
    assert_eq!(ids(&database, by_c(tags(), 1)), [3997, 3995, 3990, 3985]);
    assert_eq!(ids(&database, by_c(tags(), -1)), [0, 5, 7, 10]);
}

#[test]
fn two_indexes_are_intersected() {
    let database = large();
    let both = || find(doc! { "a": 3, "b": 5 });
    check(&database, both(), "FETCH AND_SORTED[IXSCAN(a), IXSCAN(b)]");
    let expected: Vec<i32> = (0..4000)
        .filter(|id| id % 40 == 3 && id % 37 == 5)
        .collect();
    assert_eq!(ids(&database, both()), expected);
    // An index with few matches is sufficient.
    check(
        &database,
        find(doc! { "b": 5, "_id": 5 }),
        "FETCH IXSCAN(_id_)",
    );
}

#[test]
fn a_missing_prefix_is_skipped() {
    let database = large();
    let some = || find(doc! { "e": 17 });
    check(&database, some(), "FETCH IXSCAN(de)");
    assert_eq!(
        ids(&database, sorted(some(), doc! { "_id": 1 })),
        [17, 1017, 2017, 3017]
    );
    // The index whose first field has fewer values.
    check(&database, find(doc! { "c": 17 }), "FETCH IXSCAN(tc)");
}

#[test]
fn distinct_values_are_read_from_keys() {
    let database = database();
    let check = |key: &str, filter: DocumentBuf, expected: &str| {
        let distinct = Find {
            distinct: Some(Path::parse(key)),
            ..find(filter)
        };
        check(&database, distinct, expected);
    };
    let by_keys = |index: &str| format!("PROJECTION_COVERED DISTINCT_SCAN({index})");
    check("a", doc! {}, &by_keys("a"));
    // The index that begins with the field, not the one in which another field precedes it.
    check("b", doc! {}, &by_keys("b"));
    check("b", doc! { "b": { "$lt": 7 } }, &by_keys("b"));
    check("b", doc! { "a": 7 }, &by_keys("ab"));
    check("p", doc! { "p": { "$gt": 450 } }, &by_keys("p"));
    check("_id", doc! { "_id": { "$in": [3, 5] } }, &by_keys("_id_"));
    // Arrays, documents that the index does not contain, and conditions that its keys do not
    // decide.
    check("t", doc! {}, "COLLSCAN");
    check("p", doc! {}, "COLLSCAN");
    check("x", doc! {}, "COLLSCAN");
    check("z", doc! { "a": 7 }, "FETCH IXSCAN(a)");
    check("a", doc! { "b": 7 }, "FETCH IXSCAN(b)");
}
