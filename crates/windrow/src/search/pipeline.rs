//! The pipelines of searches, in MongoDB's language.

use windrow_document::{ArrayBuf, DocumentBuf, array, doc};
use windrow_ingest::INDEX_NAME;

use super::options::{Options, SortOrder};

/// So many characters of a text are shown if no part of it matches.
const TEXT_CHARACTERS: i32 = 300;

/// Returns the pipeline that finds the documents of an operator of `$search`.
pub fn build_pipeline(operator: &DocumentBuf, options: &Options) -> ArrayBuf {
    let mut search = doc! { "index": INDEX_NAME };
    for (name, value) in operator.as_document() {
        search.push(name, value.to_value());
    }
    if !options.names_only {
        search.push(
            "highlight",
            doc! {
                "path": ["text", { "value": "text", "multi": "stems" }], "maxNumPassages": 1
            },
        );
    }
    match options.sort {
        SortOrder::Relevance => {}
        SortOrder::Newest => search.push("sort", doc! { "modified": -1 }),
        SortOrder::Oldest => search.push("sort", doc! { "modified": 1 }),
        SortOrder::Largest => search.push("sort", doc! { "size": -1 }),
    }
    let mut projection = doc! {
        "path": 1, "inner": 1, "title": 1, "kind": 1, "score": { "$meta": "searchScore" }
    };
    if !options.names_only {
        projection.push("highlights", doc! { "$meta": "searchHighlights" });
        projection.push("text", doc! { "$substrCP": ["$text", 0, TEXT_CHARACTERS] });
    }
    array![
        { "$search": (search) }, { "$skip": (i64::from(options.skip)) },
        { "$limit": (i64::from(options.limit)) }, { "$project": (projection) }
    ]
}
