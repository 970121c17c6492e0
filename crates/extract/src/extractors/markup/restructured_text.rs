//! reStructuredText. Source: <https://docutils.sourceforge.io/docs/ref/rst/restructuredtext.html>.

use super::inline::{remove_emphasis, replace_links};
use crate::encoding;
use crate::error::ExtractError;
use crate::format::Input;
use crate::limits::Limits;
use crate::metadata_text::{append_keywords, clean_property, parse_language, parse_written_date};
use crate::output::{DocumentKind, ExtractedDocument};
use crate::text_builder::{Separator, TextBuilder};

/// Extracts the text, title and fields.
pub(crate) fn extract(
    input: &Input<'_>,
    limits: &Limits,
) -> Result<ExtractedDocument, ExtractError> {
    let source = encoding::decode_with(
        input.bytes,
        encoding::find_coding_comment(input.bytes),
        limits.text_bytes_max,
    );
    let mut reader = Reader {
        text: TextBuilder::new(limits.text_bytes_max),
        document: ExtractedDocument::new(DocumentKind::Document, String::new()),
        skipped_indent: None,
        literal_indent: None,
        is_in_options: false,
        is_empty_comment: false,
    };
    let mut lines = source.text.lines().enumerate().peekable();
    while let Some((number, line)) = lines.next() {
        limits.check_deadline_at_line(number)?;
        let next = lines.peek().map_or("", |(_, next)| next);
        let is_title = is_underline(next) && !is_underline(line) && !line.trim().is_empty();
        if is_title && next.trim_end().chars().count() >= line.trim().chars().count() {
            reader.read_title(line.trim());
            lines.next();
        } else {
            reader.read_line(line);
        }
    }
    let text = reader
        .text
        .into_document(DocumentKind::Document, source.truncated);
    Ok(ExtractedDocument {
        text: text.text,
        truncated: text.truncated,
        ..reader.document
    })
}

/// Returns the minimum indentation of a literal block.
fn literal_margin(line: &str, literal_indent: Option<usize>) -> usize {
    let indent = line.len() - line.trim_start().len();
    indent.min(literal_indent.unwrap_or(0) + 3)
}

/// Returns `true` for a line of one repeated punctuation mark, and for table borders.
fn is_underline(line: &str) -> bool {
    let line = line.trim();
    let mark = line.chars().next().unwrap_or(' ');
    mark.is_ascii_punctuation() && line.len() >= 3 && line.chars().all(|it| it == mark)
}

fn is_table_border(line: &str) -> bool {
    line.len() >= 3
        && (line.starts_with('+') || line.starts_with("=="))
        && line.chars().all(|it| matches!(it, '+' | '-' | '=' | ' '))
}

struct Reader {
    text: TextBuilder,
    document: ExtractedDocument,
    /// Lines that are indented deeper than this are skipped.
    skipped_indent: Option<usize>,
    /// Lines that are indented deeper than this are kept unchanged.
    literal_indent: Option<usize>,
    /// The options of a directive follow, up to an empty line.
    is_in_options: bool,
    /// The preceding line was `..` alone. If an empty line follows, it has no block.
    is_empty_comment: bool,
}

impl Reader {
    fn read_title(&mut self, title: &str) {
        self.skipped_indent = None;
        self.literal_indent = None;
        let shown = show(title);
        self.text.separate(Separator::Paragraph);
        self.text.push_words(&shown);
        self.text.separate(Separator::Paragraph);
        if self.document.title.is_none() {
            self.document.title = clean_property(&shown);
        }
    }

    fn read_line(&mut self, line: &str) {
        let content = line.trim();
        let follows_empty_comment = std::mem::take(&mut self.is_empty_comment);
        if content.is_empty() {
            self.is_in_options = false;
            if follows_empty_comment {
                self.skipped_indent = None;
            }
            self.text.separate(Separator::Paragraph);
            return;
        }
        if self.is_in_options && content.starts_with(':') {
            return;
        }
        let indent = line.len() - line.trim_start().len();
        if self.skipped_indent.is_some_and(|skipped| indent > skipped) {
            return;
        }
        self.skipped_indent = None;
        if self.literal_indent.is_some_and(|literal| indent > literal) {
            self.text.separate(Separator::Line);
            self.text.push_verbatim(
                line.get(literal_margin(line, self.literal_indent)..)
                    .unwrap_or_default()
                    .trim_end(),
            );
            self.text.separate(Separator::Line);
            return;
        }
        self.literal_indent = None;
        if is_underline(content) || is_table_border(content) {
            self.text.separate(Separator::Line);
        } else if content == ".." || content.starts_with(".. ") {
            self.read_explicit(content.get(2..).unwrap_or_default().trim(), indent);
        } else if !self.read_field(content) {
            self.push_line(content, indent);
        }
    }

    fn push_line(&mut self, content: &str, indent: usize) {
        let item = ["- ", "* ", "+ ", "#. "]
            .iter()
            .find_map(|mark| content.strip_prefix(mark));
        if item.is_some() {
            self.text.separate(Separator::Line);
        }
        let content = item.unwrap_or(content);
        if content.starts_with('|') {
            self.text.separate(Separator::Line);
            for cell in content
                .split('|')
                .map(str::trim)
                .filter(|cell| !cell.is_empty())
            {
                self.text.push_words(&show(cell));
                self.text.separate(Separator::Tab);
            }
            self.text.separate(Separator::Line);
            return;
        }
        let words = match content.strip_suffix("::") {
            Some(words) => {
                self.literal_indent = Some(indent);
                words
            }
            None => content,
        };
        self.text.push_words(&show(words));
        self.text.separate(Separator::Space);
    }

    /// Reads a directive, target, footnote or comment.
    fn read_explicit(&mut self, content: &str, indent: usize) {
        self.text.separate(Separator::Paragraph);
        if content.starts_with('_') {
            self.skipped_indent = Some(indent);
        } else if let Some(footnote) = content.strip_prefix('[') {
            let (_, words) = footnote.split_once(']').unwrap_or(("", footnote));
            self.push_line(words.trim(), indent);
        } else if let Some((name, argument)) = content.split_once("::") {
            let (name, argument) = (name.rsplit(' ').next().unwrap_or(name), argument.trim());
            match name {
                "code" | "code-block" | "sourcecode" | "parsed-literal" | "highlight"
                | "doctest" => {
                    self.literal_indent = Some(indent);
                    self.is_in_options = true;
                }
                "image" | "figure" | "include" | "literalinclude" | "contents" | "raw" | "math"
                | "toctree" | "meta" | "highlights" | "default-domain" | "currentmodule"
                | "index" | "autoclass" | "automodule" | "autofunction" | "only" | "sectnum"
                | "role" => {
                    let keeps = matches!(name, "figure" | "only");
                    self.skipped_indent = (!keeps).then_some(indent);
                }
                // Notes, definitions of functions and other directives with text.
                _ => self.push_line(argument, indent),
            }
        } else {
            self.is_empty_comment = content.is_empty();
            self.skipped_indent = Some(indent);
        }
    }

    /// Reads `:name: value`. Returns `true` if the field is a property or an option.
    fn read_field(&mut self, content: &str) -> bool {
        let Some((name, value)) = content
            .strip_prefix(':')
            .and_then(|rest| rest.split_once(':'))
        else {
            return false;
        };
        if value.starts_with('`') || !(value.is_empty() || value.starts_with(' ')) {
            return false;
        }
        let metadata = &mut self.document.metadata;
        match name.to_ascii_lowercase().as_str() {
            "author" | "authors" if metadata.author.is_none() => {
                metadata.author = clean_property(value);
            }
            "date" if metadata.date_ms.is_none() => metadata.date_ms = parse_written_date(value),
            "keywords" => append_keywords(&mut metadata.keywords, value),
            "language" => self.document.language = parse_language(value),
            "alt" => self.push_line(value.trim(), 0),
            "maxdepth" | "width" | "height" | "align" | "scale" | "target" | "linenos"
            | "class" | "name" | "widths" | "header-rows" | "language-code" | "hidden"
            | "caption" => {
                return name != "caption";
            }
            _ => {
                self.text.separate(Separator::Line);
                let shown = show(&format!("{name}: {}", value.trim()));
                self.text.push_words(&shown);
                self.text.separate(Separator::Line);
            }
        }
        true
    }
}

/// Returns a line without markup, roles and link targets.
fn show(line: &str) -> String {
    let line = replace_links(line, "``", "``", |code| code.to_owned());
    let line = replace_links(&line, "`", "`", |link| match link.rsplit_once('<') {
        Some((text, target)) if target.ends_with('>') && !text.trim().is_empty() => {
            let target = target.trim_end_matches('>');
            let is_address = target.contains("://");
            if is_address {
                format!("{text}({target})")
            } else {
                text.trim().to_owned()
            }
        }
        _ => link.to_owned(),
    });
    let line = remove_roles(&line);
    let words = line.split(' ').map(|word| {
        // The mark of a link: `word_` or `word__`.
        let stripped = word.trim_end_matches(['.', ',', ':', ')']);
        match stripped
            .strip_suffix('_')
            .map(|word| word.trim_end_matches('_'))
        {
            Some(name) if !name.is_empty() => word.replacen(stripped, name, 1),
            _ => word.to_owned(),
        }
    });
    let line = words.collect::<Vec<_>>().join(" ");
    remove_emphasis(&line, &['*', '|'])
        .replace("\\ ", "")
        .replace('\\', "")
}

/// Removes the names of roles: `:ref:text` becomes `text`.
fn remove_roles(line: &str) -> String {
    let (mut shown, mut rest) = (String::new(), line);
    while let Some((before, after)) = rest.split_once(':') {
        shown.push_str(before);
        let is_name = |name: &&str| {
            let is_letter =
                |byte: u8| byte.is_ascii_lowercase() || matches!(byte, b':' | b'-' | b'+');
            !name.is_empty() && name.bytes().all(is_letter)
        };
        let role = after.split_once(':').filter(|(name, text)| {
            is_name(name)
                && text.starts_with(|it: char| !it.is_whitespace())
                && !before.ends_with(char::is_alphanumeric)
        });
        match role {
            Some((_, text)) => rest = text,
            None => {
                shown.push(':');
                rest = after;
            }
        }
    }
    shown.push_str(rest);
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(source: &str, text: &str) -> ExtractedDocument {
        let input = Input {
            name: "a.rst",
            bytes: source.as_bytes(),
        };
        let document = extract(&input, &Limits::default()).unwrap();
        assert_eq!(document.text, text, "{source}");
        document
    }

    #[test]
    fn markup_is_removed() {
        check(
            "Some *slanted*, **bold** and ``code``.",
            "Some slanted, bold and code.",
        );
        check(
            "A `link <http://x.org>`_, `other`_ and word_.",
            "A link (http://x.org), other and word.",
        );
        check(
            "See :ref:`the part <label>` and :func:`open`: now",
            "See the part and open: now",
        );
        check(
            ".. note:: Take care\n\n   Inside.\n\n.. comment\n   hidden\n\n.. _target: http://x\n\nend",
            "Take care\n\nInside.\n\nend",
        );
        check(
            ".. code-block:: c\n   :linenos:\n\n   int  x;\n\nend",
            "int  x;\n\nend",
        );
        check("Example::\n\n   a  b\n\nend", "Example\n\na  b\n\nend");
        check(
            "+---+---+\n| a | b |\n+===+===+\n| c | d |\n+---+---+",
            "a\tb\nc\td",
        );
        check("- one\n\n..\n\n   A quote", "one\n\nA quote");
        check("- one\n\n..\n   A comment\n\nend", "one\n\nend");
        check("- one\n- two\n\n.. [1] A note", "one\ntwo\n\nA note");
        check(
            ".. image:: x.png\n   :alt: words\n\n.. toctree::\n   :maxdepth: 2\n\n   file\n\nend",
            "end",
        );
    }

    #[test]
    fn titles_and_fields_are_read() {
        let document = check(
            "=========\nThe title\n=========\n\n:Author: Ada\n:Date: 2024-05-06\n\nPart\n----\nWords",
            "The title\n\nPart\n\nWords",
        );
        assert_eq!(document.title.as_deref(), Some("The title"));
        assert_eq!(document.metadata.author.as_deref(), Some("Ada"));
        assert_eq!(document.metadata.date_ms, Some(1_714_953_600_000));
    }
}
