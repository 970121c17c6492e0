//! Search results, formatted for terminals and programs.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::ops::Range;

use super::snippet::Snippet;
use windrow_document::{ArrayBuf, Document, DocumentBuf, Value, ValueRef, doc};

/// The format of a search result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputStyle {
    /// Matched words are between asterisks.
    Plain,
    /// Matched words are bold and red, for terminals.
    Colored,
    /// A JSON object per line.
    Json,
    /// The paths alone, with this behind each.
    Names(&'static str),
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
struct Marks {
    start: &'static str,
    end: &'static str,
}

impl Marks {
    fn new(start: &'static str, end: &'static str) -> Marks {
        Marks { start, end }
    }
}

/// A search result.
#[derive(Debug)]
pub struct SearchResult {
    /// The path of the file and, for a part of a file, its position: `/mail.mbox/#2`.
    id: String,
    path: String,
    inner: Option<String>,
    title: String,
    kind: String,
    score: f64,
    snippet: Snippet,
}

impl SearchResult {
    /// Creates the result for a document of the search.
    pub fn new(document: Document<'_>) -> SearchResult {
        let text = |name: &str| document.get(name).and_then(ValueRef::as_str);
        let owned = |name: &str| text(name).unwrap_or_default().to_owned();
        SearchResult {
            id: owned("_id"),
            path: owned("path"),
            inner: text("inner").map(str::to_owned),
            title: owned("title"),
            kind: owned("kind"),
            score: document
                .get("score")
                .and_then(ValueRef::as_f64)
                .unwrap_or(0.0),
            snippet: Snippet::new(document),
        }
    }

    /// Writes the result with its rank `number`.
    pub fn write(
        &self,
        output: &mut dyn Write,
        number: usize,
        style: OutputStyle,
    ) -> io::Result<()> {
        match style {
            OutputStyle::Json => return writeln!(output, "{}", self.to_json()),
            // Exact, as the program that reads them needs them.
            OutputStyle::Names(end) => return write!(output, "{}{end}", self.id),
            OutputStyle::Plain | OutputStyle::Colored => {}
        }
        let Marks { start, end } = style.path_marks();
        let path = escape_control(&self.id);
        writeln!(output, "{number:2}. {start}{path}{end}  {:.2}", self.score)?;
        let title = to_single_line(&self.title);
        if !self.id.ends_with(&self.title) && !title.is_empty() {
            writeln!(output, "    {title}")?;
        }
        writeln!(
            output,
            "    {}\n",
            format_snippet(&self.snippet, style.highlight_marks())
        )
    }

    fn to_json(&self) -> DocumentBuf {
        let Snippet { text, ranges, .. } = &self.snippet;
        let mut document = doc! { "path": (self.path.clone()) };
        if let Some(inner) = &self.inner {
            document.push("inner", inner.clone());
        }
        document.push("title", self.title.clone());
        document.push("kind", self.kind.clone());
        document.push("score", self.score);
        document.push("snippet", text.clone());
        let ranges: ArrayBuf = ranges.iter().map(|it| count_characters(text, it)).collect();
        document.push("highlights", ranges);
        document
    }
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
fn format_snippet(snippet: &Snippet, marks: Marks) -> String {
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
fn to_single_line(text: &str) -> String {
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
fn escape_control(text: &str) -> String {
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
        check(
            doc! {
                "_id": "/d/a", "path": "/d/a", "title": "a", "kind": "text", "score": 2.25,
                "text": "Ça, \"cake\"", "highlights": [(highlight(&["Ça, \"", "cake", "\""]))],
            },
            OutputStyle::Json,
            "{\"path\":\"/d/a\",\"title\":\"a\",\"kind\":\"text\",\"score\":2.25,\
             \"snippet\":\"Ça, \\\"cake\\\"\",\"highlights\":[[5,9]]}\n",
        );
    }
}
