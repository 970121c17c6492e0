//! The queries of W9, with MongoDB's published times and the targets.

use super::expected_results::{ExpectedResults, QueryParameters};
use crate::report::Target;

/// How the result of a query is counted.
#[derive(Clone, Copy)]
pub enum Answer {
    /// The number of documents of a cursor.
    Documents,
    /// The number at this path of the reply.
    Field(&'static str),
    /// The number of elements of the array at this path.
    Elements(&'static str),
}

pub struct Query {
    pub name: &'static str,
    pub published_ms: f64,
    pub target: Target,
    /// Commands before each repetition, which are not timed.
    pub before: &'static [&'static str],
    pub command: &'static str,
    pub answer: Answer,
    pub expected: fn(&ExpectedResults, QueryParameters) -> u64,
}

impl Query {
    /// Returns `true` if the query's name contains one of `cases`, or if there are no `cases`.
    /// Index builds are always chosen, because later queries need the indexes.
    pub fn is_chosen(&self, cases: &Option<Vec<String>>) -> bool {
        let Some(cases) = cases else {
            return true;
        };
        self.name.starts_with("createIndex") || cases.iter().any(|case| self.name.contains(case))
    }
}

/// The target of queries on a part of the documents.
const ORDINARY: Target = Target::RatioAtMost(0.7);
/// The target of scans, groups, sorts and index builds.
const BULK: Target = Target::RatioAtMost(0.4);

const NO_USER: &str = r#"{"dropIndexes": "documents", "index": "*"}"#;

/// In this order: queries without an index, index builds, queries with an index, changes. Each
/// change affects other documents, because recently written documents are read from memory.
pub const QUERIES: [Query; 17] = [
    Query {
        name: "group by user, sum and avg",
        published_ms: 580.0,
        target: BULK,
        before: &[],
        command: r#"{"aggregate": "documents", "cursor": {}, "pipeline": [
            {"$group": {"_id": "$user", "sum": {"$sum": "$x"}, "avg": {"$avg": "$age"}}}]}"#,
        answer: Answer::Documents,
        expected: |expected, _| expected.users(),
    },
    Query {
        name: "count of an unindexed range",
        published_ms: 324.0,
        target: BULK,
        before: &[],
        command: r#"{"count": "documents", "query": {"x": {"$gte": 0.25, "$lt": 0.75}}}"#,
        answer: Answer::Field("n"),
        expected: |expected, _| expected.in_the_middle,
    },
    Query {
        name: "sort unindexed, top 10",
        published_ms: 220.0,
        target: BULK,
        before: &[],
        command: r#"{"find": "documents", "sort": {"x": -1}, "limit": 10}"#,
        answer: Answer::Documents,
        expected: |_, _| 10,
    },
    Query {
        name: "regex over every pad",
        published_ms: 561.0,
        target: BULK,
        before: &[],
        command: r#"{"count": "documents", "query": {"pad": {"$regex": "<pattern>"}}}"#,
        answer: Answer::Field("n"),
        expected: |expected, _| expected.matching,
    },
    Query {
        name: "match, project an expression, group to one",
        published_ms: 493.0,
        target: BULK,
        before: &[],
        command: r#"{"aggregate": "documents", "cursor": {}, "pipeline": [
            {"$match": {"age": {"$lt": 50}}},
            {"$project": {"value": {"$multiply": ["$x", "$age"]}}},
            {"$group": {"_id": null, "sum": {"$sum": "$value"}, "n": {"$sum": 1}}}]}"#,
        answer: Answer::Field("cursor.firstBatch.0.n"),
        expected: |expected, _| expected.ages_count(0, 50),
    },
    Query {
        name: "scan all to the client, two fields",
        published_ms: 1_409.0,
        target: BULK,
        before: &[],
        command: r#"{"find": "documents", "projection": {"_id": 0, "user": 1, "x": 1}}"#,
        answer: Answer::Documents,
        expected: |expected, _| expected.documents,
    },
    Query {
        name: "createIndex on user",
        published_ms: 1_132.0,
        target: BULK,
        before: &[NO_USER],
        command: r#"{"createIndexes": "documents",
            "indexes": [{"key": {"user": 1}, "name": "user_1"}]}"#,
        answer: Answer::Field("numIndexesAfter"),
        expected: |_, _| 2,
    },
    Query {
        name: "createIndex on age, x",
        published_ms: 1_224.0,
        target: BULK,
        before: &[
            NO_USER,
            r#"{"createIndexes": "documents",
                "indexes": [{"key": {"user": 1}, "name": "user_1"}]}"#,
        ],
        command: r#"{"createIndexes": "documents",
            "indexes": [{"key": {"age": 1, "x": 1}, "name": "age_1_x_1"}]}"#,
        answer: Answer::Field("numIndexesAfter"),
        expected: |_, _| 3,
    },
    Query {
        name: "find by index, 200 documents",
        published_ms: 1.3,
        target: ORDINARY,
        before: &[],
        command: r#"{"find": "documents", "filter": {"user": <user>}}"#,
        answer: Answer::Documents,
        expected: |expected, turn| expected.user_count(turn.user),
    },
    Query {
        name: "count by index, 100,000",
        published_ms: 23.0,
        target: ORDINARY,
        before: &[],
        command: r#"{"count": "documents", "query": {"age": {"$gte": <age>, "$lt": <age+10>}}}"#,
        answer: Answer::Field("n"),
        expected: |expected, turn| expected.ages_count(turn.age, turn.age + 10),
    },
    Query {
        name: "covered range of 10,000",
        published_ms: 11.0,
        target: ORDINARY,
        before: &[],
        command: r#"{"find": "documents", "filter": {"age": {"$gte": <age>, "$lte": <age>}},
            "projection": {"_id": 0, "age": 1, "x": 1}}"#,
        answer: Answer::Documents,
        expected: |expected, turn| expected.age_count(turn.age),
    },
    Query {
        name: "sort by index, skip 50,000, limit 10",
        published_ms: 17.0,
        target: ORDINARY,
        before: &[],
        command: r#"{"find": "documents", "sort": {"age": 1, "x": 1}, "skip": <skip>, "limit": 10}"#,
        answer: Answer::Documents,
        expected: |_, _| 10,
    },
    Query {
        name: "distinct by index, 5,000 values",
        published_ms: 11.0,
        target: ORDINARY,
        before: &[],
        command: r#"{"distinct": "documents", "key": "user"}"#,
        answer: Answer::Elements("values"),
        expected: |expected, _| expected.users(),
    },
    Query {
        name: "lookup of 10,000 by _id",
        published_ms: 143.0,
        target: ORDINARY,
        before: &[],
        command: r#"{"aggregate": "documents", "cursor": {}, "pipeline": [
            {"$match": {"age": <age>}},
            {"$lookup": {"from": "documents", "localField": "_id", "foreignField": "_id",
                "as": "found"}},
            {"$group": {"_id": null, "n": {"$sum": {"$size": "$found"}}}}]}"#,
        answer: Answer::Field("cursor.firstBatch.0.n"),
        expected: |expected, turn| expected.age_count(turn.age),
    },
    Query {
        name: "update 10,000 by index, unindexed field",
        published_ms: 80.0,
        target: ORDINARY,
        before: &[],
        command: r#"{"update": "documents", "updates": [
            {"q": {"age": <age>}, "u": {"$set": {"seen": true}}, "multi": true}]}"#,
        answer: Answer::Field("nModified"),
        expected: |expected, turn| expected.age_count(turn.age),
    },
    Query {
        name: "update 10,000 by index, indexed field",
        published_ms: 135.0,
        target: ORDINARY,
        before: &[],
        command: r#"{"update": "documents", "updates": [
            {"q": {"age": <age+1>}, "u": {"$inc": {"x": 1}}, "multi": true}]}"#,
        answer: Answer::Field("nModified"),
        expected: |expected, turn| expected.age_count(turn.age + 1),
    },
    Query {
        name: "delete 10,000 by index",
        published_ms: 192.0,
        target: ORDINARY,
        before: &[],
        command: r#"{"delete": "documents", "deletes": [{"q": {"age": <age+2>}, "limit": 0}]}"#,
        answer: Answer::Field("n"),
        expected: |expected, turn| expected.age_count(turn.age + 2),
    },
];
