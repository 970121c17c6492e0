//! Search results, formatted for terminals and programs.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::ops::Range;

use windrow_document::{ArrayBuf, Document, DocumentBuf, Value, ValueRef, doc};
use windrow_text::{HighlightOptions, Language, Query, Snippet, TextVersion, highlight};

/// The format of a search result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Matched words between asterisks.
    Plain,
    /// Matched words bold and red, for a terminal.
    Coloured,
    /// A JSON object per line.
    Json,
}

impl Style {
    fn marks(self) -> [&'static str; 2] {
        match self {
            Style::Coloured => ["\x1b[1;31m", "\x1b[0m"],
            Style::Plain | Style::Json => ["*", "*"],
        }
    }

    fn path_marks(self) -> [&'static str; 2] {
        match self {
            Style::Coloured => ["\x1b[1m", "\x1b[0m"],
            Style::Plain | Style::Json => ["", ""],
        }
    }
}

/// A search result.
#[derive(Debug)]
pub struct Found {
    /// The path of the file and, for a part of a file, its position: `/mail.mbox/#2`.
    id: String,
    path: String,
    inner: Option<String>,
    title: String,
    kind: String,
    score: f64,
    snippet: Snippet,
}

impl Found {
    /// Creates the result for a document that matches `query`.
    pub fn of(document: Document<'_>, query: &Query) -> Found {
        let text = |name: &str| document.get(name).and_then(ValueRef::as_str);
        let owned = |name: &str| text(name).unwrap_or_default().to_owned();
        let language = text("language").and_then(|it| Language::parse(it, TextVersion::V3).ok());
        let snippet = highlight(
            text("text").unwrap_or_default(),
            language.unwrap_or(Language::ENGLISH),
            query,
            HighlightOptions::default(),
        );
        Found {
            id: owned("_id"),
            path: owned("path"),
            inner: text("inner").map(str::to_owned),
            title: owned("title"),
            kind: owned("kind"),
            score: document
                .get("score")
                .and_then(ValueRef::as_f64)
                .unwrap_or(0.0),
            snippet,
        }
    }

    /// Writes the result with its rank `number`.
    pub fn write(&self, to: &mut dyn Write, number: usize, style: Style) -> io::Result<()> {
        if style == Style::Json {
            return writeln!(to, "{}", self.json());
        }
        let [bold, plain] = style.path_marks();
        let path = printable(&self.id);
        writeln!(to, "{number:2}. {bold}{path}{plain}  {:.2}", self.score)?;
        let title = one_line(&self.title);
        if !self.id.ends_with(&self.title) && !title.is_empty() {
            writeln!(to, "    {title}")?;
        }
        writeln!(to, "    {}\n", marked(&self.snippet, style.marks()))
    }

    fn json(&self) -> DocumentBuf {
        let Snippet { text, ranges, .. } = &self.snippet;
        let mut document = doc! { "path": (self.path.clone()) };
        if let Some(inner) = &self.inner {
            document.push("inner", inner.clone());
        }
        document.push("title", self.title.clone());
        document.push("kind", self.kind.clone());
        document.push("score", self.score);
        document.push("snippet", text.clone());
        let ranges: ArrayBuf = ranges.iter().map(|it| characters(text, it)).collect();
        document.push("highlights", ranges);
        document
    }
}

/// Returns the bounds of a range of bytes, in characters: the positions in a JSON string.
fn characters(text: &str, range: &Range<usize>) -> Value {
    let count = |end: usize| text.get(..end).unwrap_or_default().chars().count() as i64;
    let ends: ArrayBuf = [count(range.start), count(range.end)]
        .into_iter()
        .map(Value::Int64)
        .collect();
    ends.into()
}

/// Formats a snippet in one line, with its matched words between the marks.
fn marked(snippet: &Snippet, marks: [&str; 2]) -> String {
    let Snippet { text, ranges, .. } = snippet;
    let piece = |range: Range<usize>| one_line(text.get(range).unwrap_or_default());
    let mut line = String::new();
    let mut end = 0;
    for range in ranges {
        line.push_str(&piece(end..range.start));
        let _ = write!(line, "{}{}{}", marks[0], piece(range.clone()), marks[1]);
        end = range.end;
    }
    line.push_str(&piece(end..text.len()));
    let cut = |is_cut, mark| if is_cut { mark } else { "" };
    let (before, after) = (
        cut(snippet.is_cut_before, "… "),
        cut(snippet.is_cut_after, " …"),
    );
    format!("{before}{}{after}", line.trim())
}

/// Collapses white space and removes control characters, so that the content of a file cannot
/// control the terminal.
fn one_line(text: &str) -> String {
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
fn printable(text: &str) -> String {
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
    use windrow_text::Sensitivity;

    fn query(words: &str) -> Query {
        Query::parse(words, Language::ENGLISH, Sensitivity::NONE, TextVersion::V3)
    }

    fn check(document: DocumentBuf, style: Style, expected: &str) {
        let found = Found::of(document.as_document(), &query("cakes"));
        let mut written = Vec::new();
        found.write(&mut written, 3, style).unwrap();
        assert_eq!(String::from_utf8(written).unwrap(), expected);
    }

    fn mail() -> DocumentBuf {
        doc! {
            "_id": "/d/m.mbox/#2", "path": "/d/m.mbox", "inner": "#2", "title": "About\n baking",
            "kind": "mail", "score": 1.5, "text": "Eat \n\n the\tcake,\x1b[2J ça.",
        }
    }

    #[test]
    fn what_is_found_is_shown_in_one_line() {
        check(
            mail(),
            Style::Plain,
            " 3. /d/m.mbox/#2  1.50\n    About baking\n    Eat the *cake*,[2J ça.\n\n",
        );
        check(
            mail(),
            Style::Coloured,
            " 3. \x1b[1m/d/m.mbox/#2\x1b[0m  1.50\n    About baking\n    \
             Eat the \x1b[1;31mcake\x1b[0m,[2J ça.\n\n",
        );
        let plain = doc! {
            "_id": "/d/a\x1b.txt", "path": "/d/a\x1b.txt", "title": "a\x1b.txt", "text": "cake",
        };
        check(
            plain,
            Style::Plain,
            " 3. /d/a\\u{1b}.txt  0.00\n    *cake*\n\n",
        );
    }

    #[test]
    fn programs_read_json() {
        check(
            doc! {
                "_id": "/d/a", "path": "/d/a", "title": "a", "kind": "text", "score": 2.25,
                "text": "Ça, \"cake\"",
            },
            Style::Json,
            "{\"path\":\"/d/a\",\"title\":\"a\",\"kind\":\"text\",\"score\":2.25,\
             \"snippet\":\"Ça, \\\"cake\\\"\",\"highlights\":[[5,9]]}\n",
        );
    }
}
