//! How Windrow's clients index and query text.

use super::queries::{Kind, Query};
use crate::bson::Writer;
use crate::client::{Connection, message};
use crate::error::BenchError;
use crate::load::{self, COLLECTION, DATABASE};

/// A way to index and to query text.
pub struct Interface {
    /// The end of the names of its rows.
    pub suffix: &'static str,
    /// Creates the index and waits until it is ready.
    pub create_index: fn(&mut Connection) -> Result<(), BenchError>,
    /// Returns the size of the index in bytes.
    pub index_bytes: fn(&mut Connection) -> Result<f64, BenchError>,
    /// Returns the message that finds the ids and scores of this many best documents.
    pub top: fn(&Query, limit: i32) -> Vec<u8>,
    /// Returns the messages that find these and count all documents.
    pub top_with_count: fn(&Query, limit: i32) -> Vec<Vec<u8>>,
    /// Returns the message that counts the documents.
    pub count: fn(&Query) -> Vec<u8>,
    /// The path of the count in the first document of the reply. If there is no document, the count
    /// is 0.
    pub counted_as: &'static str,
}

/// The stages `$search` and `$searchMeta` and an index of the words, as tantivy's.
pub const SEARCH_STAGE: Interface = Interface {
    suffix: "",
    create_index: |connection| {
        let fields = r#"{"body": {"type": "string", "analyzer": "lucene.standard"}}"#;
        let definition = format!(r#"{{"mappings": {{"dynamic": false, "fields": {fields}}}}}"#);
        load::create_search_index(connection, &definition)
    },
    index_bytes: |connection| load::statistic(connection, "windrow.searchIndexSizes.default"),
    top: |query, limit| search(query, limit, false),
    top_with_count: |query, limit| vec![search(query, limit, true)],
    count: search_count,
    counted_as: "count.total",
};

/// The operator `$text` and an index without stems and stop words.
pub const TEXT_OPERATOR: Interface = Interface {
    suffix: ", $text",
    create_index: |connection| {
        let index = r#"{"key": {"body": "text"}, "name": "body_text", "default_language": "none"}"#;
        load::create_index(connection, index)
    },
    index_bytes: |connection| load::statistic(connection, "indexSizes.body_text"),
    top: text_top,
    // `$text` has no count beside the documents.
    top_with_count: |query, limit| vec![text_top(query, limit), text_count(query)],
    count: text_count,
    counted_as: "n",
};

/// `$search` with ids and scores, and with the number of all documents if `is_counted`.
fn search(query: &Query, limit: i32, is_counted: bool) -> Vec<u8> {
    aggregate(|stages| {
        stages.document("0", |stage| {
            stage.document("$search", |search| {
                if is_counted {
                    search.document("count", |count| count.string("type", "total"));
                }
                search_operator(search, query);
            });
        });
        stages.document("1", |stage| stage.int32("$limit", limit));
        stages.document("2", |stage| {
            stage.document("$project", |projection| {
                projection.document("score", |score| score.string("$meta", "searchScore"));
                if is_counted {
                    projection.string("found", "$$SEARCH_META.count.total");
                }
            });
        });
    })
}

fn search_count(query: &Query) -> Vec<u8> {
    aggregate(|stages| {
        stages.document("0", |stage| {
            stage.document("$searchMeta", |search| {
                search.document("count", |count| count.string("type", "total"));
                search_operator(search, query);
            });
        });
    })
}

fn aggregate(stages: impl FnOnce(&mut Writer)) -> Vec<u8> {
    message(DATABASE, |writer| {
        writer.string("aggregate", COLLECTION);
        writer.document("cursor", |_| {});
        writer.array("pipeline", stages);
    })
}

/// Words of a fuzzy query at most. tantivy has no limit.
const EXPANSIONS_MAX: i32 = 1_000;

fn search_operator(search: &mut Writer, query: &Query) {
    let (name, criteria) = match query.kind {
        Kind::Term | Kind::Or => ("text", Some("any")),
        Kind::And => ("text", Some("all")),
        Kind::Phrase => ("phrase", None),
        Kind::Fuzzy1 | Kind::Fuzzy2 => ("text", None),
        Kind::Prefix | Kind::Wildcard => ("wildcard", None),
    };
    search.document(name, |operator| {
        operator.string("path", "body");
        operator.string("query", &query.words.join(" "));
        if let Some(criteria) = criteria {
            operator.string("matchCriteria", criteria);
        }
        match query.kind {
            Kind::Fuzzy1 => fuzzy(operator, 1),
            Kind::Fuzzy2 => fuzzy(operator, 2),
            Kind::Prefix | Kind::Wildcard => operator.boolean("allowAnalyzedField", true),
            _ => {}
        }
    });
}

fn fuzzy(operator: &mut Writer, edits: i32) {
    operator.document("fuzzy", |fuzzy| {
        fuzzy.int32("maxEdits", edits);
        fuzzy.int32("maxExpansions", EXPANSIONS_MAX);
    });
}

fn text_top(query: &Query, limit: i32) -> Vec<u8> {
    message(DATABASE, |writer| {
        writer.string("find", COLLECTION);
        writer.document("filter", |filter| text_filter(filter, query));
        writer.document("projection", |projection| {
            projection.int32("_id", 1);
            projection.document("score", |score| score.string("$meta", "textScore"));
        });
        writer.document("sort", |sort| {
            sort.document("score", |score| score.string("$meta", "textScore"));
        });
        writer.int32("limit", limit);
        writer.boolean("singleBatch", true);
    })
}

fn text_count(query: &Query) -> Vec<u8> {
    aggregate(|stages| {
        stages.document("0", |stage| {
            stage.document("$match", |filter| text_filter(filter, query));
        });
        stages.document("1", |stage| stage.string("$count", "n"));
    })
}

fn text_filter(filter: &mut Writer, query: &Query) {
    filter.document("$text", |text| {
        text.string("$search", &search_string(query));
    });
}

/// Words outside of quotes are alternatives. Every phrase must occur.
fn search_string(query: &Query) -> String {
    let words = query.words.join(" ");
    match query.kind {
        Kind::And => format!("\"{}\"", query.words.join("\" \"")),
        Kind::Phrase => format!("\"{words}\""),
        // `$text` knows no patterns and is not asked for them.
        _ => words,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_written_as_text_searches() {
        let check = |kind, expected: &str| {
            let words = vec!["coffee".to_owned(), "shop".to_owned()];
            assert_eq!(search_string(&Query { kind, words }), expected);
        };
        check(Kind::Or, "coffee shop");
        check(Kind::And, "\"coffee\" \"shop\"");
        check(Kind::Phrase, "\"coffee shop\"");
    }
}
