//! Builds the aggregation pipelines of searches.

use windrow_document::{ArrayBuf, DocumentBuf, Value, array, doc};
use windrow_file_query::INDEX_NAME;

/// The number of characters in which highlights are searched. Documents have at most 8 MiB of text;
/// longer texts are stored in parts.
const CHARACTERS_MAX: i32 = 8 << 20;

/// A page of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResultPage {
    /// The maximum number of results.
    pub limit: u32,
    /// The number of results before the page.
    pub skip: u32,
    /// The sort order.
    pub sort: SortOrder,
    /// The part of the texts that is read.
    pub text: ResultText,
}

/// The part of a document's text that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultText {
    /// Nothing, without highlights.
    None,
    /// The best passage, and at most this many characters from the beginning. The line and page of
    /// a passage after them is unknown.
    Beginning(u32),
    /// The best passage, and the complete text.
    Whole,
}

/// The sort order of results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SortOrder {
    /// By descending score.
    #[default]
    Relevance,
    /// By descending modification time.
    Newest,
    /// By ascending modification time.
    Oldest,
    /// By descending size.
    Largest,
}

/// The condition that documents must match.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// An operator of `$search`.
    pub operator: DocumentBuf,
    /// The path of a file whose documents are excluded.
    pub excluded_path: Option<String>,
}

impl Default for ResultPage {
    fn default() -> ResultPage {
        ResultPage {
            limit: 10,
            skip: 0,
            sort: SortOrder::Relevance,
            text: ResultText::Whole,
        }
    }
}

impl SortOrder {
    /// Returns the order with this name.
    pub fn from_name(name: &str) -> Option<SortOrder> {
        Some(match name {
            "relevance" => SortOrder::Relevance,
            "newest" => SortOrder::Newest,
            "oldest" => SortOrder::Oldest,
            "largest" => SortOrder::Largest,
            _ => return None,
        })
    }
}

impl Target {
    /// Creates a target without an excluded file.
    pub fn new(operator: DocumentBuf) -> Target {
        Target {
            operator,
            excluded_path: None,
        }
    }

    /// Returns the pipeline that returns a page of results.
    pub fn pipeline(&self, page: &ResultPage) -> ArrayBuf {
        let mut search = doc! { "index": INDEX_NAME };
        push_all(&mut search, &self.operator);
        if page.text != ResultText::None {
            search.push(
                "highlight",
                doc! {
                    "path": ["text", { "value": "text", "multi": "stems" }], "maxNumPassages": 1,
                    "maxCharsToExamine": CHARACTERS_MAX,
                },
            );
        }
        match page.sort {
            SortOrder::Relevance => {}
            SortOrder::Newest => search.push("sort", doc! { "time": -1 }),
            SortOrder::Oldest => search.push("sort", doc! { "time": 1 }),
            SortOrder::Largest => search.push("sort", doc! { "size": -1 }),
        }
        let mut projection = doc! {
            "path": 1, "inner": 1, "title": 1, "kind": 1, "filename": 1, "ext": 1, "language": 1,
            "author": 1, "from": 1, "size": 1, "date": 1, "modified": 1, "unread": 1,
            "score": { "$meta": "searchScore" }
        };
        if page.text != ResultText::None {
            projection.push("highlights", doc! { "$meta": "searchHighlights" });
        }
        match page.text {
            ResultText::None => {}
            ResultText::Beginning(characters) => {
                let count = i64::from(characters);
                projection.push("text", doc! { "$substrCP": ["$text", 0, count] });
            }
            ResultText::Whole => projection.push("text", 1),
        }
        let mut stages = vec![doc! { "$search": (search) }];
        if let Some(path) = &self.excluded_path {
            stages.push(doc! { "$match": { "path": { "$ne": (path.as_str()) } } });
        }
        if page.skip > 0 {
            stages.push(doc! { "$skip": (i64::from(page.skip)) });
        }
        stages.push(doc! { "$limit": (i64::from(page.limit)) });
        stages.push(doc! { "$project": (projection) });
        stages.into_iter().map(Value::from).collect()
    }
}

/// Returns the pipeline that counts the documents of an operator.
pub fn counting_pipeline(operator: &DocumentBuf) -> ArrayBuf {
    let mut search = doc! { "index": INDEX_NAME, "count": { "type": "total" } };
    push_all(&mut search, operator);
    array![{ "$searchMeta": (search) }]
}

/// Returns the operator of the documents whose content was read. It excludes files that are indexed
/// by name only.
pub fn read_documents() -> DocumentBuf {
    doc! { "compound": {
        "filter": [{ "exists": { "path": "kind" } }], "mustNot": [(unread_documents())]
    } }
}

/// Returns the operator of the documents of files that are indexed by name only.
pub fn unread_documents() -> DocumentBuf {
    doc! { "exists": { "path": "unread" } }
}

fn push_all(document: &mut DocumentBuf, fields: &DocumentBuf) {
    for (name, value) in fields.as_document() {
        document.push(name, value.to_value());
    }
}
