//! Operators on arrays.

use super::{check, refuse};

#[test]
fn elements_are_mapped_filtered_and_reduced() {
    check(&[
        (
            r#"{"$map": {"input": "$list", "in": {"$add": ["$$this", 1]}}}"#,
            "[6, 4, 9, 4, 2]",
        ),
        (
            r#"{"$map": {"input": "$people", "as": "p", "in": "$$p.name"}}"#,
            r#"["Ann", "Bob", "Cid"]"#,
        ),
        (
            r#"{"$filter": {"input": "$list", "cond": {"$gt": ["$$this", 2]}, "limit": 2}}"#,
            "[5, 3]",
        ),
        (
            r#"{"$filter": {"input": "$people", "as": "p", "cond": {"$eq": ["$$p.age", 25]}}}"#,
            r#"[{"name": "Bob", "age": 25}]"#,
        ),
        (
            r#"{"$reduce": {"input": "$list", "initialValue": {"n": 0, "all": []}, "in":
                {"n": {"$add": ["$$value.n", "$$this"]},
                 "all": {"$concatArrays": ["$$value.all", ["$$this"]]}}}}"#,
            r#"{"n": 20, "all": [5, 3, 8, 3, 1]}"#,
        ),
        (r#""$people.name""#, r#"["Ann", "Bob", "Cid"]"#),
    ]);
    refuse(&[
        (
            r#"{"$filter": {"input": "$list", "cond": true, "limit": 0}}"#,
            327392,
        ),
        (
            r#"{"$reduce": {"input": {"$range": [0, 500]}, "initialValue": 0, "in": ["$$value"]}}"#,
            15,
        ),
        (
            r#"{"$map": {"input": "$list", "as": "Upper", "in": 1}}"#,
            16867,
        ),
    ]);
}

#[test]
fn arrays_are_sorted() {
    check(&[
        (
            r#"{"$sortArray": {"input": "$list", "sortBy": -1}}"#,
            "[8, 5, 3, 3, 1]",
        ),
        (
            r#"{"$sortArray": {"input": [{"a": [3, 1]}, {"a": [2]}, {}], "sortBy": {"a": 1}}}"#,
            r#"[{}, {"a": [2]}, {"a": [3, 1]}]"#,
        ),
        (
            r#"{"$sortArray": {"input": "$people", "sortBy": {"age": 1, "name": -1}}}"#,
            r#"[{"name": "Bob", "age": 25}, {"name": "Cid", "age": 30}, {"name": "Ann", "age": 30}]"#,
        ),
    ]);
    refuse(&[
        (
            r#"{"$sortArray": {"input": "$list", "sortBy": {}}}"#,
            2942505,
        ),
        (
            r#"{"$sortArray": {"input": "$list", "sortBy": {"a": "asc"}}}"#,
            2942505,
        ),
        (r#"{"$sortArray": {"input": "$int", "sortBy": 1}}"#, 2942504),
        (
            r#"{"$sortArray": {"input": "$list", "sortBy": 2}}"#,
            2942506,
        ),
    ]);
}

#[test]
fn numbers_of_arrays_are_evaluated() {
    check(&[
        (r#"{"$firstN": {"n": 2, "input": "$list"}}"#, "[5, 3]"),
        (r#"{"$lastN": {"n": 2, "input": "$list"}}"#, "[3, 1]"),
        (r#"{"$minN": {"n": 2, "input": "$list"}}"#, "[1, 3]"),
        (
            r#"{"$maxN": {"n": 9, "input": "$list"}}"#,
            "[8, 5, 3, 3, 1]",
        ),
        (
            r#"{"$median": {"input": "$list", "method": "approximate"}}"#,
            r#"{"$numberDouble": "3"}"#,
        ),
        (
            r#"{"$percentile": {"input": "$list", "p": [0, 0.9], "method": "approximate"}}"#,
            r#"[{"$numberDouble": "1"}, {"$numberDouble": "8"}]"#,
        ),
    ]);
    refuse(&[
        (r#"{"$firstN": {"n": 0, "input": "$list"}}"#, 5787908),
        (r#"{"$firstN": {"n": 1.5, "input": "$list"}}"#, 5787903),
        (r#"{"$firstN": {"n": 1, "input": "$int"}}"#, 5788200),
    ]);
}

#[test]
fn arrays_are_sliced_and_combined() {
    check(&[
        (r#"{"$slice": ["$list", -2]}"#, "[3, 1]"),
        (r#"{"$slice": ["$list", 1, 2]}"#, "[3, 8]"),
        (r#"{"$slice": ["$list", -9, 2]}"#, "[5, 3]"),
        (r#"{"$range": [10, 0, -4]}"#, "[10, 6, 2]"),
        (r#"{"$zip": {"inputs": [[1, 2], ["a"]]}}"#, r#"[[1, "a"]]"#),
        (
            r#"{"$zip": {"inputs": [[1, 2], ["a"]], "useLongestLength": true, "defaults": [0, "z"]}}"#,
            r#"[[1, "a"], [2, "z"]]"#,
        ),
        (r#"{"$reverseArray": "$list"}"#, "[1, 3, 8, 3, 5]"),
        (r#"{"$arrayElemAt": ["$list", -1]}"#, "1"),
        (r#"{"$arrayElemAt": ["$list", 9]}"#, "missing"),
        (r#"{"$in": [8, "$list"]}"#, "true"),
        (r#"{"$size": "$list"}"#, "5"),
        (r#"{"$setUnion": ["$list", [9, 1]]}"#, "[1, 3, 5, 8, 9]"),
        (r#"{"$setDifference": ["$list", [5]]}"#, "[3, 8, 1]"),
    ]);
    refuse(&[(r#"{"$size": "$missing"}"#, 17124)]);
}

/// A missing default of `$zip` used to be null in the rows. MongoDB omits it.
#[test]
fn rows_omit_missing_defaults() {
    check(&[
        (
            r#"{"$zip": {"inputs": [[1, 2], ["a"]], "useLongestLength": true,
                "defaults": [0, "$missing"]}}"#,
            r#"[[1, "a"], [2]]"#,
        ),
        (
            r#"{"$zip": {"inputs": [[1], ["a", "b"]], "useLongestLength": true,
                "defaults": ["$$REMOVE", 0]}}"#,
            r#"[[1, "a"], ["b"]]"#,
        ),
        (
            r#"{"$zip": {"inputs": [[1], ["a", "b"]], "useLongestLength": true,
                "defaults": [null, 0]}}"#,
            r#"[[1, "a"], [null, "b"]]"#,
        ),
        (
            r#"{"$zip": {"inputs": [[1], ["a", "b"]], "useLongestLength": true}}"#,
            r#"[[1, "a"], [null, "b"]]"#,
        ),
    ]);
}
