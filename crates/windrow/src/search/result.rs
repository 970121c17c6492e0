//! Formats search results for terminals and programs.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::ops::Range;
use std::os::unix::ffi::OsStringExt as _;

use windrow_file_search::{SearchResult, Snippet, TextLocation};
use windrow_ingest::text_to_path;

/// The style of results for humans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputStyle {
    /// Matched words are enclosed in asterisks.
    Plain,
    /// Matched words are bold and red, by terminal escape sequences.
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

/// The strings before and after a highlighted part of a line.
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

/// The display of a result.
pub trait ShownResult {
    /// Writes the result with its rank `number`.
    fn write(&self, output: &mut dyn Write, number: usize, style: OutputStyle) -> io::Result<()>;
    /// Returns the title on one line. `None` if the path already shows it.
    fn shown_title(&self) -> Option<String>;
}

impl ShownResult for SearchResult {
    fn write(&self, output: &mut dyn Write, number: usize, style: OutputStyle) -> io::Result<()> {
        let Marks { start, end } = style.path_marks();
        let path = escape_control(&self.id);
        writeln!(output, "{number:2}. {start}{path}{end}  {:.2}", self.score)?;
        if let Some(title) = self.shown_title() {
            writeln!(output, "    {title}")?;
        }
        let location = match self.snippet.location {
            Some(TextLocation::Line(line)) => format!("line {line}: "),
            Some(TextLocation::Page(page)) => format!("page {page}: "),
            None => String::new(),
        };
        let snippet = match &self.unread {
            Some(reason) => format!("({})", to_single_line(reason)),
            None => format_snippet(&self.snippet, style.highlight_marks()),
        };
        writeln!(output, "    {location}{snippet}\n")
    }

    fn shown_title(&self) -> Option<String> {
        let title = to_single_line(&self.title);
        (!self.id.ends_with(&self.title) && !title.is_empty()).then_some(title)
    }
}

/// Formats a snippet on one line, with its matched words between the marks.
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

/// Returns a range of a snippet. Cannot fail: highlights are ranges of whole characters.
fn slice_snippet(text: &str, range: Range<usize>) -> &str {
    let part = text.get(range.clone());
    debug_assert!(part.is_some(), "a snippet has no characters at {range:?}");
    part.unwrap_or_default()
}

/// Converts a stored path to the bytes of the file system.
pub fn path_bytes(path: &str) -> Vec<u8> {
    match text_to_path(path) {
        Some(path) => path.into_os_string().into_vec(),
        None => path.as_bytes().to_vec(),
    }
}

/// Returns the path of a result in the bytes of the file system, followed by the position inside
/// the file.
pub fn id_bytes(result: &SearchResult) -> Vec<u8> {
    let Some(inner) = result.id.strip_prefix(&result.path) else {
        return result.id.clone().into_bytes();
    };
    let mut bytes = path_bytes(&result.path);
    bytes.extend_from_slice(inner.as_bytes());
    bytes
}

/// Collapses white space and removes control characters, because the content of a file must not
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
    use windrow_document::{ArrayBuf, DocumentBuf, Value, doc};

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
        let unread = doc! {
            "_id": "/d/a.o", "path": "/d/a.o", "filename": "a.o", "text": "", "unread": "no text",
        };
        check(
            unread,
            OutputStyle::Plain,
            " 3. /d/a.o  0.00\n    (no text)\n\n",
        );
    }
}
