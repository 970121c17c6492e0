//! The search index of `files.documents`, which queries use.

use windrow_document::{DocumentBuf, doc};

/// The name of the index.
pub const INDEX_NAME: &str = "default";

/// The analyzer of words and of the parts of identifiers.
const WORDS: &str = "windrow.words";
/// The analyzer of the words of queries.
const QUERY_WORDS: &str = "windrow.wordParts";
/// The analyzer of stems in the language of the document.
const STEMS: &str = "windrow.stems";
/// The analyzer of whole values.
const NAMES: &str = "windrow.name";

/// The name of the multi-analyzer of a field that stores its stems.
pub(crate) const STEMS_ANALYZER: &str = "stems";
/// The name of the multi-analyzer of a field that stores its whole value.
pub(crate) const WHOLE_ANALYZER: &str = "whole";

/// Returns the definition for `createSearchIndexes`.
///
/// ```
/// let definition = windrow_file_query::search_index_definition();
/// assert!(definition.as_document().get("mappings").is_some());
/// ```
pub fn search_index_definition() -> DocumentBuf {
    let words = || doc! { "type": "string", "analyzer": WORDS, "searchAnalyzer": QUERY_WORDS };
    // Phrases use the words only, so the other analyzers need no positions.
    let with = |name: &str, analyzer: &str| {
        let mut field = words();
        let other = doc! {
            "type": "string", "analyzer": (analyzer), "indexOptions": "freqs"
        };
        field.push("multi", doc! { (name): (other) });
        field
    };
    let text = || with(STEMS_ANALYZER, STEMS);
    let name = || {
        let field = doc! { "type": "string", "analyzer": NAMES };
        windrow_document::array![{ "type": "token" }, (field)]
    };
    // Facets count whole values.
    let counted = || windrow_document::array![{ "type": "token" }, (words())];
    let fields = doc! {
        "title": (text()), "text": (text()), "subject": (text()),
        "author": (counted()), "from": (counted()), "to": (words()), "cc": (words()),
        "bcc": (words()), "list_id": (words()),
        "keywords": (words()), "path": (words()),
        "filename": (with(WHOLE_ANALYZER, NAMES)),
        "ext": (name()), "kind": (name()), "language": (name()),
        "folders": (name()),
        "date": { "type": "date" }, "modified": { "type": "date" }, "time": { "type": "date" },
        "size": { "type": "number" }, "unread": { "type": "token" },
    };
    doc! { "mappings": { "dynamic": false, "fields": (fields) } }
}
