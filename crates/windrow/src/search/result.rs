//! Search results, formatted for terminals and programs.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::ops::Range;

use super::snippet::{Snippet, TextPlace};
use windrow_document::{ArrayBuf, Document, DocumentBuf, Value, ValueRef, doc};

/// The format of a search result for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputStyle {
    /// Matched words are between asterisks.
    Plain,
    /// Matched words are bold and red, for terminals.
    Colored,
}

impl OutputStyle {
    fn highlight_marks(self) -> Marks {
        match self {
            OutputStyle::Colored => Marks::new("\x1b[1;31m", "\x1b[0m"),
            _ => Marks::new("*", "*"),
        }
    }

    fn path_marks(self) -> Marks {
        match self {
            OutputStyle::Colored => Marks::new("\x1b[1m", "\x1b[0m"),
            _ => Marks::new("", ""),
        }
    }
}

/// Texts before and after a part of a line that stands out.
pub struct Marks {
    start: &'static str,
    end: &'static str,
}

impl Marks {
    /// Creates a pair of marks.
    pub fn new(start: &'static str, end: &'static str) -> Marks {
        Marks { start, end }
    }
}

/// A search result.
#[derive(Debug)]
pub struct SearchResult {
    /// The path of the file and, for a part of a file, its position: `/mail.mbox/#2`.
    pub id: String,
    /// The path of the file.
    pub path: String,
    pub inner: Option<String>,
    pub title: String,
    pub snippet: Snippet,
    pub kind: String,
    pub file_name: String,
    pub extension: String,
    pub language: String,
    pub author: String,
    pub size: i64,
    pub modified_ms: i64,
    pub date_ms: Option<i64>,
    pub score: f64,
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
        }
    }

    /// Writes the result with its rank `number`.
    pub fn write(
        &self,
        output: &mut dyn Write,
        number: usize,
        style: OutputStyle,
    ) -> io::Result<()> {
        let Marks { start, end } = style.path_marks();
        let path = escape_control(&self.id);
        writeln!(output, "{number:2}. {start}{path}{end}  {:.2}", self.score)?;
        if let Some(title) = self.shown_title() {
            writeln!(output, "    {title}")?;
        }
        let place = match self.snippet.place {
            Some(TextPlace::Line(line)) => format!("line {line}: "),
            Some(TextPlace::Page(page)) => format!("page {page}: "),
            None => String::new(),
        };
        let snippet = format_snippet(&self.snippet, style.highlight_marks());
        writeln!(output, "    {place}{snippet}\n")
    }

    /// Returns the line of the first match, if the text tells.
    pub fn line(&self) -> Option<usize> {
        match self.snippet.place {
            Some(TextPlace::Line(line)) => Some(line),
            _ => None,
        }
    }

    /// Returns the page of the first match, if the text tells.
    pub fn page(&self) -> Option<usize> {
        match self.snippet.place {
            Some(TextPlace::Page(page)) => Some(page),
            _ => None,
        }
    }

    /// Returns the title in one line, if the path does not show it.
    pub fn shown_title(&self) -> Option<String> {
        let title = to_single_line(&self.title);
        (!self.id.ends_with(&self.title) && !title.is_empty()).then_some(title)
    }

    /// Returns the result as a document for programs.
    pub fn to_document(&self) -> DocumentBuf {
        let Snippet { text, ranges, .. } = &self.snippet;
        let mut document = doc! { "path": (self.path.clone()) };
        if let Some(inner) = &self.inner {
            document.push("inner", inner.clone());
        }
        document.push("title", self.title.clone());
        document.push("kind", self.kind.clone());
        document.push("score", self.score);
        match self.snippet.place {
            Some(TextPlace::Line(line)) => document.push("line", line as i64),
            Some(TextPlace::Page(page)) => document.push("page", page as i64),
            None => {}
        }
        document.push("snippet", text.clone());
        let ranges: ArrayBuf = ranges.iter().map(|it| count_characters(text, it)).collect();
        document.push("highlights", ranges);
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

/// Returns the bounds of a range of bytes, in characters: the positions in a JSON string.
fn count_characters(text: &str, range: &Range<usize>) -> Value {
    let count = |end: usize| slice_snippet(text, 0..end).chars().count() as i64;
    let ends: ArrayBuf = [count(range.start), count(range.end)]
        .into_iter()
        .map(Value::Int64)
        .collect();
    ends.into()
}

/// Formats a snippet in one line, with its matched words between the marks.
pub fn format_snippet(snippet: &Snippet, marks: Marks) -> String {
    let Snippet { text, ranges, .. } = snippet;
    let piece = |range: Range<usize>| to_single_line(slice_snippet(text, range));
    let mut line = String::new();
    let mut end = 0;
    for range in ranges {
        line.push_str(&piece(end..range.start));
        // Writing to a string cannot fail.
        let _ = write!(line, "{}{}{}", marks.start, piece(range.clone()), marks.end);
        end = range.end;
    }
    line.push_str(&piece(end..text.len()));
    let ellipsis = |is_cut, mark| if is_cut { mark } else { "" };
    let (before, after) = (
        ellipsis(snippet.is_cut_before, "… "),
        ellipsis(snippet.is_cut_after, " …"),
    );
    format!("{before}{}{after}", line.trim())
}

/// Returns a range of a snippet. Highlights are ranges of whole characters of their text.
fn slice_snippet(text: &str, range: Range<usize>) -> &str {
    let part = text.get(range.clone());
    debug_assert!(part.is_some(), "a snippet has no characters at {range:?}");
    part.unwrap_or_default()
}

/// Collapses white space and removes control characters, so that the content of a file cannot
/// control the terminal.
pub fn to_single_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_whitespace() {
            if !line.ends_with(' ') {
                line.push(' ');
            }
        } else if !character.is_control() {
            line.push(character);
        }
    }
    line
}

/// Escapes control characters, for example as `\u{1b}`, so that names are exact.
pub fn escape_control(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() {
            line.extend(character.escape_unicode());
        } else {
            line.push(character);
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(document: DocumentBuf, style: OutputStyle, expected: &str) {
        let result = SearchResult::new(document.as_document());
        let mut written = Vec::new();
        result.write(&mut written, 3, style).unwrap();
        assert_eq!(String::from_utf8(written).unwrap(), expected);
    }

    /// A passage of which every other piece is a hit.
    fn highlight(pieces: &[&str]) -> DocumentBuf {
        let kinds = ["text", "hit"].into_iter().cycle();
        let texts: ArrayBuf = pieces
            .iter()
            .zip(kinds)
            .map(|(value, kind)| Value::from(doc! { "value": (*value), "type": kind }))
            .collect();
        doc! { "path": "text", "texts": (texts), "score": 1.0 }
    }

    fn mail() -> DocumentBuf {
        doc! {
            "_id": "/d/m.mbox/#2", "path": "/d/m.mbox", "inner": "#2", "title": "About\n baking",
            "kind": "mail", "score": 1.5, "text": "Eat \n\n the\tcake,\x1b[2J ça.",
            "highlights": [(highlight(&["Eat \n\n the\t", "cake", ",\x1b[2J ça."]))],
        }
    }

    #[test]
    fn results_are_formatted_for_people() {
        check(
            mail(),
            OutputStyle::Plain,
            " 3. /d/m.mbox/#2  1.50\n    About baking\n    Eat the *cake*,[2J ça.\n\n",
        );
        check(
            mail(),
            OutputStyle::Colored,
            " 3. \x1b[1m/d/m.mbox/#2\x1b[0m  1.50\n    About baking\n    \
             Eat the \x1b[1;31mcake\x1b[0m,[2J ça.\n\n",
        );
        let plain = doc! {
            "_id": "/d/a\x1b.txt", "path": "/d/a\x1b.txt", "title": "a\x1b.txt", "text": "cake",
            "highlights": [(highlight(&["", "cake"]))],
        };
        check(
            plain,
            OutputStyle::Plain,
            " 3. /d/a\\u{1b}.txt  0.00\n    *cake*\n\n",
        );
    }

    #[test]
    fn results_are_formatted_as_json() {
        let document = doc! {
            "_id": "/d/a", "path": "/d/a", "title": "a", "kind": "text", "score": 2.25,
            "text": "A\nÇa, \"cake\"", "highlights": [(highlight(&["Ça, \"", "cake", "\""]))],
        };
        let result = SearchResult::new(document.as_document());
        assert_eq!(
            result.to_document().to_string(),
            "{\"path\":\"/d/a\",\"title\":\"a\",\"kind\":\"text\",\"score\":2.25,\"line\":2,\
             \"snippet\":\"Ça, \\\"cake\\\"\",\"highlights\":[[5,9]]}"
        );
    }
}
