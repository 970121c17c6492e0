//! Search results.

use std::ops::Range;

use windrow_document::{ArrayBuf, Document, DocumentBuf, Value, ValueRef, doc};

use crate::snippet::{Snippet, TextLocation};

/// A search result.
#[derive(Debug)]
pub struct SearchResult {
    /// The path of the file. For a part of a file, it is followed by the position: `/mail.mbox/#2`.
    pub id: String,
    /// The path of the file.
    pub path: String,
    /// The position inside the file.
    pub inner: Option<String>,
    /// The title.
    pub title: String,
    /// The best matching part of the text.
    pub snippet: Snippet,
    /// The kind of document.
    pub kind: String,
    /// The name of the file or of the member.
    pub file_name: String,
    /// The extension of the name.
    pub extension: String,
    /// The language. Empty if it is unknown.
    pub language: String,
    /// The author, or the senders of a mail.
    pub author: String,
    /// The size of the file in bytes.
    pub size: i64,
    /// The modification time of the file.
    pub modified_ms: i64,
    /// The document's own date.
    pub date_ms: Option<i64>,
    /// The score.
    pub score: f64,
    /// The reason why the document has no text. `None` if it has one.
    pub unread: Option<String>,
}

impl SearchResult {
    /// Creates the result for a document of the search.
    pub fn new(document: Document<'_>) -> SearchResult {
        let text = |name: &str| document.get(name).and_then(ValueRef::as_str);
        let owned = |name: &str| text(name).unwrap_or_default().to_owned();
        let date = |name: &str| match document.get(name) {
            Some(ValueRef::DateTime(ms)) => Some(ms),
            _ => None,
        };
        let whole = |name: &str| document.get(name).and_then(ValueRef::as_whole);
        let score = document.get("score").and_then(ValueRef::as_f64);
        SearchResult {
            id: owned("_id"),
            path: owned("path"),
            inner: text("inner").map(str::to_owned),
            title: owned("title"),
            snippet: Snippet::new(document),
            kind: owned("kind"),
            file_name: owned("filename"),
            extension: owned("ext"),
            language: owned("language"),
            author: authors(document),
            size: whole("size").unwrap_or(0),
            modified_ms: date("modified").unwrap_or(0),
            date_ms: date("date"),
            score: score.unwrap_or(0.0),
            unread: text("unread").map(str::to_owned),
        }
    }

    /// Returns the title, or the name of a file without text.
    pub fn shown_name(&self) -> &str {
        match self.title.trim() {
            "" if self.file_name.is_empty() => &self.id,
            "" => &self.file_name,
            title => title,
        }
    }

    /// Returns the line of the first match, if it is known.
    pub fn line(&self) -> Option<usize> {
        match self.snippet.location {
            Some(TextLocation::Line(line)) => Some(line),
            _ => None,
        }
    }

    /// Returns the page of the first match, if it is known.
    pub fn page(&self) -> Option<usize> {
        match self.snippet.location {
            Some(TextLocation::Page(page)) => Some(page),
            _ => None,
        }
    }

    /// Converts the result to a document for programs.
    pub fn to_document(&self) -> DocumentBuf {
        let Snippet { text, ranges, .. } = &self.snippet;
        let mut document = doc! { "path": (self.path.clone()) };
        if let Some(inner) = &self.inner {
            document.push("inner", inner.clone());
        }
        document.push("title", self.shown_name().to_owned());
        document.push("kind", self.kind.clone());
        document.push("score", self.score);
        match self.snippet.location {
            Some(TextLocation::Line(line)) => document.push("line", line as i64),
            Some(TextLocation::Page(page)) => document.push("page", page as i64),
            None => {}
        }
        document.push("snippet", text.clone());
        let ranges: ArrayBuf = ranges.iter().map(|it| count_characters(text, it)).collect();
        document.push("highlights", ranges);
        if let Some(reason) = &self.unread {
            document.push("unread", reason.clone());
        }
        document
    }
}

/// Returns the author, or the senders of a mail.
fn authors(document: Document<'_>) -> String {
    let values = |name: &str| match document.get(name) {
        Some(ValueRef::String(text)) => vec![text],
        Some(ValueRef::Array(all)) => all.iter().filter_map(ValueRef::as_str).collect(),
        _ => Vec::new(),
    };
    let (authors, senders) = (values("author"), values("from"));
    let names = if authors.is_empty() { senders } else { authors };
    names.join(", ")
}

/// Converts a range of bytes to a range of characters, as positions in a JSON string.
fn count_characters(text: &str, range: &Range<usize>) -> Value {
    let count = |end: usize| text.get(..end).unwrap_or_default().chars().count() as i64;
    let ends: ArrayBuf = [count(range.start), count(range.end)]
        .into_iter()
        .map(Value::Int64)
        .collect();
    ends.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_formatted_as_json() {
        let texts = windrow_document::array![
            { "value": "Ça, \"", "type": "text" }, { "value": "cake", "type": "hit" },
            { "value": "\"", "type": "text" }
        ];
        let document = doc! {
            "_id": "/d/a", "path": "/d/a", "title": "a", "kind": "text", "score": 2.25,
            "text": "A\nÇa, \"cake\"", "highlights": [{ "path": "text", "texts": (texts), "score": 1.0 }],
        };
        let result = SearchResult::new(document.as_document());
        assert_eq!(
            result.to_document().to_string(),
            "{\"path\":\"/d/a\",\"title\":\"a\",\"kind\":\"text\",\"score\":2.25,\"line\":2,\
             \"snippet\":\"Ça, \\\"cake\\\"\",\"highlights\":[[5,9]]}"
        );
    }
}
