//! A stored document, and the positions of the query's words in its text.

use std::ops::Range;

use windrow_document::{ArrayBuf, Document, DocumentBuf, Value, ValueRef, array, doc};
use windrow_file_query::INDEX_NAME;
use windrow_file_search::{DocumentSource, QueryReader};

use super::source::IndexedFiles;
use crate::error::PageError;
use crate::request::Request;

/// The maximum number of characters of a shown text.
pub const CHARACTERS_MAX: i64 = 200_000;
/// The maximum number of listed documents of the same file.
const MEMBERS_MAX: i64 = 100;
/// The maximum number of highlighted passages.
const PASSAGES_MAX: i32 = 5_000;

/// A stored document.
pub struct StoredDocument {
    /// The document. Its text is truncated.
    pub fields: DocumentBuf,
    /// The text was truncated.
    pub is_cut: bool,
}

/// Another document of the same file.
pub struct Member {
    /// The `_id`.
    pub id: String,
    /// The title or name.
    pub title: String,
    /// The position inside the file.
    pub inner: String,
    /// The document kind.
    pub kind: String,
}

impl StoredDocument {
    /// Reads a document. Returns `None` if it is not indexed.
    ///
    /// Fails if the database fails.
    /// Fails if the database does.
    pub fn read(files: &mut IndexedFiles, id: &str) -> Result<Option<StoredDocument>, PageError> {
        StoredDocument::first(files, doc! { "_id": id })
    }

    /// Reads one document of a file. Returns `None` if the file is not indexed.
    ///
    /// # Errors
    /// Fails if the database fails.
    pub fn read_any_of_file(
        files: &mut IndexedFiles,
        path: &str,
    ) -> Result<Option<StoredDocument>, PageError> {
        StoredDocument::first(files, doc! { "path": path })
    }

    fn first(
        files: &mut IndexedFiles,
        filter: DocumentBuf,
    ) -> Result<Option<StoredDocument>, PageError> {
        let text = |from: i64| doc! { "$substrCP": ["$text", from, CHARACTERS_MAX] };
        let rest = doc! { "$gt": [{ "$strLenCP": "$text" }, CHARACTERS_MAX] };
        let pipeline = array![
            { "$match": (filter) }, { "$limit": 1 },
            { "$set": { "text": (text(0)), "is_cut": (rest) } }
        ];
        let found = files.first(&pipeline)?;
        Ok(found.map(|fields| StoredDocument {
            is_cut: matches!(fields.get("is_cut"), Some(ValueRef::Bool(true))),
            fields,
        }))
    }

    /// Returns a string field, or an empty string.
    pub fn text(&self, name: &str) -> &str {
        self.fields
            .get(name)
            .and_then(ValueRef::as_str)
            .unwrap_or_default()
    }

    /// Returns the title, or the file name if there is none.
    pub fn shown_name(&self) -> &str {
        let names = ["title", "filename", "_id"].map(|name| self.text(name));
        names.into_iter().find(|it| !it.is_empty()).unwrap_or("")
    }

    /// Returns the strings of a field, which is a string or an array.
    pub fn texts(&self, name: &str) -> Vec<&str> {
        match self.fields.get(name) {
            Some(ValueRef::String(text)) => vec![text],
            Some(ValueRef::Array(all)) => all.iter().filter_map(ValueRef::as_str).collect(),
            _ => Vec::new(),
        }
    }

    /// Returns a binary field, or an empty slice.
    pub fn bytes(&self, name: &str) -> &[u8] {
        match self.fields.get(name) {
            Some(ValueRef::Binary { bytes, .. }) => bytes,
            _ => &[],
        }
    }

    /// Returns an integer field.
    pub fn number(&self, name: &str) -> Option<i64> {
        self.fields.get(name)?.as_whole()
    }

    /// Returns a date field in milliseconds since 1970-01-01 UTC.
    pub fn date_ms(&self, name: &str) -> Option<i64> {
        match self.fields.get(name)? {
            ValueRef::DateTime(ms) => Some(ms),
            _ => None,
        }
    }

    /// Returns the attachments of a mail.
    ///
    /// # Errors
    /// Fails if the database fails.
    pub fn attachments(&self, files: &mut IndexedFiles) -> Result<Vec<Member>, PageError> {
        let own = doc! { "path": (self.text("path")), "attached_to._id": (self.text("_id")) };
        members(files, own)
    }

    /// Returns the other documents of the file.
    ///
    /// # Errors
    /// Fails if the database fails.
    pub fn others(&self, files: &mut IndexedFiles) -> Result<Vec<Member>, PageError> {
        let id = self.text("_id");
        members(
            files,
            doc! { "path": (self.text("path")), "_id": { "$ne": id } },
        )
    }

    /// Returns the ranges of the query's words in the shown text, in ascending order.
    ///
    /// # Errors
    /// Fails if the query is invalid or the database fails.
    pub fn hits(
        &self,
        request: &Request,
        files: &mut IndexedFiles,
        query: &str,
    ) -> Result<Vec<Range<usize>>, PageError> {
        if query.trim().is_empty() {
            return Ok(Vec::new());
        }
        let reader = QueryReader::open(&request.site().services.data_folder, None)?;
        let operator = reader.parse(query)?.query.to_operator();
        let mut passages = None;
        files.aggregate(&self.hits_pipeline(operator), &mut |found| {
            passages = Some(read_passages(found));
            false
        })?;
        Ok(locate(self.text("text"), &passages.unwrap_or_default()))
    }

    /// Returns the pipeline that highlights an operator in this document. Filters on properties of
    /// the file restrict the search to few candidates.
    fn hits_pipeline(&self, operator: DocumentBuf) -> ArrayBuf {
        let mut filters: Vec<Value> = Vec::new();
        let mut equals = |path: &str, value: Value| {
            filters.push(doc! { "equals": { "path": path, "value": (value) } }.into());
        };
        if let Some(size) = self.number("size") {
            equals("size", Value::Int64(size));
        }
        if let Some(ms) = self.date_ms("modified") {
            equals("modified", Value::DateTime(ms));
        }
        if !self.text("ext").is_empty() {
            equals("ext", Value::from(self.text("ext")));
        }
        let filters: ArrayBuf = filters.into_iter().collect();
        let highlight = doc! {
            "path": ["text", { "value": "text", "multi": "stems" }],
            "maxNumPassages": PASSAGES_MAX, "maxCharsToExamine": (CHARACTERS_MAX as i32),
        };
        let search = doc! {
            "index": INDEX_NAME, "highlight": (highlight),
            "compound": { "must": [(operator)], "filter": (filters) },
        };
        array![
            { "$search": (search) },
            { "$match": { "_id": (self.text("_id")) } },
            { "$limit": 1 },
            { "$project": { "highlights": { "$meta": "searchHighlights" } } }
        ]
    }
}

fn members(files: &mut IndexedFiles, filter: DocumentBuf) -> Result<Vec<Member>, PageError> {
    let pipeline = array![
        { "$match": (filter) }, { "$limit": MEMBERS_MAX },
        { "$project": { "title": { "$ifNull": ["$title", "$filename"] }, "inner": 1, "kind": 1 } }
    ];
    let mut members = Vec::new();
    files.aggregate(&pipeline, &mut |found| {
        let text = |name: &str| {
            found
                .get(name)
                .and_then(ValueRef::as_str)
                .unwrap_or_default()
        };
        members.push(Member {
            id: text("_id").to_owned(),
            title: text("title").to_owned(),
            inner: text("inner").to_owned(),
            kind: text("kind").to_owned(),
        });
        true
    })?;
    Ok(members)
}

/// A part of a passage, as `$meta: "searchHighlights"` returns it.
struct HighlightPart {
    text: String,
    is_hit: bool,
}

/// Returns the highlighted passages of a document.
fn read_passages(found: Document<'_>) -> Vec<Vec<HighlightPart>> {
    let passages = found.get("highlights").and_then(ValueRef::as_array);
    let passages = passages
        .into_iter()
        .flatten()
        .filter_map(ValueRef::as_document);
    let pieces = |passage: Document<'_>| {
        let texts = passage.get("texts").and_then(ValueRef::as_array);
        let texts = texts
            .into_iter()
            .flatten()
            .filter_map(ValueRef::as_document);
        let piece = |text: Document<'_>| {
            let value = text
                .get("value")
                .and_then(ValueRef::as_str)
                .unwrap_or_default();
            let kind = text.get("type").and_then(ValueRef::as_str);
            HighlightPart {
                text: value.to_owned(),
                is_hit: kind == Some("hit"),
            }
        };
        texts.map(piece).collect::<Vec<HighlightPart>>()
    };
    passages.map(pieces).collect()
}

/// Returns the ranges of the highlighted words of passages in a text. Passages are substrings of
/// the text in any order. Words of different analyzers may overlap.
fn locate(text: &str, passages: &[Vec<HighlightPart>]) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for passage in passages {
        let whole: String = passage.iter().map(|part| part.text.as_str()).collect();
        // All occurrences of a passage have the same matches.
        for (start, _) in text.match_indices(whole.as_str()) {
            let mut at = start;
            for part in passage {
                let end = at + part.text.len();
                if part.is_hit {
                    ranges.push(at..end);
                }
                at = end;
            }
            if whole.is_empty() {
                break;
            }
        }
    }
    ranges.sort_by_key(|range| (range.start, range.end));
    let mut joined: Vec<Range<usize>> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start < last.end => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_are_located() {
        let piece = |text: &str, is_hit| HighlightPart {
            text: text.to_owned(),
            is_hit,
        };
        let passages = vec![
            vec![
                piece("More ", false),
                piece("cakes", true),
                piece(".", false),
            ],
            vec![piece("A ", false), piece("cake", true), piece(".", false)],
            vec![piece("A ", false), piece("cake", true), piece(".", false)],
        ];
        let text = "A cake. Ä. More cakes. A cake.";
        let found: Vec<&str> = locate(text, &passages)
            .into_iter()
            .map(|it| &text[it])
            .collect();
        assert_eq!(found, ["cake", "cakes", "cake"]);
        assert!(locate("", &passages).is_empty());
        assert!(locate("abc", &[vec![piece("", false)]]).is_empty());
    }
}
