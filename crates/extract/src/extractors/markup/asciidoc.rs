//! AsciiDoc. Source: <https://docs.asciidoctor.org/asciidoc/latest/>.

use super::inline::{remove_emphasis, replace_links};
use crate::encoding;
use crate::error::ExtractError;
use crate::format::Input;
use crate::limits::Limits;
use crate::metadata_text::{append_keywords, clean_property, parse_language, parse_written_date};
use crate::output::{DocumentKind, ExtractedDocument};
use crate::text_builder::{Separator, TextBuilder};

/// Extracts the text, title and attributes.
pub(crate) fn extract(
    input: &Input<'_>,
    limits: &Limits,
) -> Result<ExtractedDocument, ExtractError> {
    let source = encoding::decode(input.bytes, limits.text_bytes_max);
    let mut reader = Reader {
        text: TextBuilder::new(limits.text_bytes_max),
        document: ExtractedDocument::new(DocumentKind::Document, String::new()),
        section: Section::Start,
        delimiter: String::new(),
    };
    let mut lines = source.text.lines().enumerate().peekable();
    while let Some((number, line)) = lines.next() {
        limits.check_deadline_at_line(number)?;
        let next = lines.peek().map_or("", |(_, next)| next);
        if is_underline(line, next) && reader.section != Section::Verbatim {
            let level = if next.starts_with('=') { "=" } else { "==" };
            reader.read_line(&format!("{level} {line}"));
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

/// Returns `true` if `next` underlines the title `line`.
fn is_underline(line: &str, next: &str) -> bool {
    let mark = next.chars().next().unwrap_or(' ');
    let (length, underline) = (line.chars().count(), next.trim_end().chars().count());
    matches!(mark, '=' | '-' | '~' | '^')
        && underline >= 3
        && next.trim_end().chars().all(|it| it == mark)
        && length.abs_diff(underline) <= 2
        && line.chars().any(char::is_alphanumeric)
}

struct Reader {
    text: TextBuilder,
    document: ExtractedDocument,
    section: Section,
    /// The line that ends a block.
    delimiter: String,
}

#[derive(PartialEq)]
enum Section {
    /// Before the title.
    Start,
    /// After the title, up to an empty line: the author, the revision and attributes.
    Header,
    Body,
    Verbatim,
    Comment,
    Table,
}

impl Reader {
    fn read_line(&mut self, line: &str) {
        let trimmed = line.trim_end();
        match self.section {
            Section::Verbatim | Section::Comment | Section::Table if trimmed == self.delimiter => {
                self.section = Section::Body;
                self.text.separate(Separator::Paragraph);
            }
            Section::Comment => {}
            Section::Verbatim => {
                self.text.push_verbatim(trimmed);
                self.text.separate(Separator::Line);
            }
            Section::Header if trimmed.is_empty() => self.section = Section::Body,
            Section::Header => {
                if !(trimmed.starts_with("//") || self.read_attribute(trimmed)) {
                    self.read_header(trimmed);
                }
            }
            _ => self.read_body(trimmed),
        }
    }

    fn read_body(&mut self, line: &str) {
        if self.begin_block(line) || self.read_attribute(line) || is_hidden(line) {
            return;
        }
        let heading = line.trim_start_matches(['=', '#']);
        let level = line.len() - heading.len();
        if (1..=6).contains(&level) && heading.starts_with(' ') {
            self.text.separate(Separator::Paragraph);
            if level == 1 && self.document.title.is_none() {
                self.document.title = clean_property(&show(heading));
                self.section = Section::Header;
            }
            self.text.push_words(&show(heading.trim()));
            self.text.separate(Separator::Paragraph);
            return;
        }
        if line.is_empty() {
            self.text.separate(Separator::Paragraph);
            return;
        }
        if self.section == Section::Start {
            self.section = Section::Body;
        }
        let item = line.trim_start();
        let content = item.trim_start_matches(['*', '.', '-']);
        let is_item = content.len() < item.len() && content.starts_with(' ');
        if is_item || item.contains(":: ") || item.ends_with("::") || line.starts_with('<') {
            self.text.separate(Separator::Line);
        }
        let content = if is_item { content } else { item };
        let shown = show(content);
        if self.section == Section::Table || content.starts_with('|') {
            self.text.separate(Separator::Line);
            for cell in shown
                .split('|')
                .map(str::trim)
                .filter(|cell| !cell.is_empty())
            {
                self.text.push_words(cell);
                self.text.separate(Separator::Tab);
            }
            return;
        }
        self.text.push_words(shown.trim_end_matches(" +"));
        let ends = content.ends_with(" +") || content.ends_with("::");
        self.text.separate(if ends {
            Separator::Line
        } else {
            Separator::Space
        });
    }

    /// Returns `true` if the line begins a block.
    fn begin_block(&mut self, line: &str) -> bool {
        let mark = line.chars().next().unwrap_or(' ');
        let is_fence = line.len() >= 4 && line.chars().all(|it| it == mark);
        self.section = match mark {
            '-' | '.' | '+' if is_fence => Section::Verbatim,
            '`' if line.starts_with("```") => Section::Verbatim,
            '/' if is_fence => Section::Comment,
            '|' if line == "|===" && self.section != Section::Table => Section::Table,
            // The content of example, sidebar and quotation blocks is text.
            '=' | '*' | '_' if is_fence => {
                self.text.separate(Separator::Paragraph);
                return true;
            }
            _ => return false,
        };
        self.delimiter = if mark == '`' {
            "```".into()
        } else {
            line.into()
        };
        self.text.separate(Separator::Paragraph);
        true
    }

    /// Reads `:name: value`. Returns `true` if the line is an attribute.
    fn read_attribute(&mut self, line: &str) -> bool {
        let Some((name, value)) = line.strip_prefix(':').and_then(|rest| rest.split_once(':'))
        else {
            return false;
        };
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'!');
        if name.is_empty() || !name.bytes().all(is_name) {
            return false;
        }
        let metadata = &mut self.document.metadata;
        match name {
            "author" => metadata.author = clean_property(value),
            "lang" => self.document.language = parse_language(value),
            "keywords" => append_keywords(&mut metadata.keywords, value),
            "description" => metadata.description = clean_property(value),
            "revdate" | "docdate" => metadata.date_ms = parse_written_date(value),
            _ => {}
        }
        true
    }

    /// Reads the lines below the title: `Ada Lovelace <ada@example.org>`, `v1.0, 2024-05-06`.
    fn read_header(&mut self, line: &str) {
        let metadata = &mut self.document.metadata;
        self.text.separate(Separator::Line);
        self.text.push_words(line);
        self.text.separate(Separator::Paragraph);
        if metadata.author.is_none() {
            let name = line.split('<').next().unwrap_or(line);
            metadata.author = clean_property(name);
        } else {
            metadata.date_ms = line.split(',').find_map(parse_written_date);
        }
    }
}

/// Returns `true` for comments, attributes of blocks, and directives.
fn is_hidden(line: &str) -> bool {
    let is_directive = [
        "include::",
        "ifdef::",
        "ifndef::",
        "endif::",
        "ifeval::",
        "toc::",
    ]
    .iter()
    .any(|directive| line.starts_with(directive));
    (line.starts_with("//") && !line.starts_with("///"))
        || (line.starts_with('[') && line.ends_with(']'))
        || matches!(line, "+" | "--" | "'''" | "<<<")
        || is_directive
}

/// Returns a line without marks, macros and links.
fn show(line: &str) -> String {
    let line = match line.strip_prefix('.') {
        // The title of a block.
        Some(title) if title.starts_with(char::is_alphanumeric) => title,
        _ => line,
    };
    let line = replace_links(line, "<<", ">>", |link| {
        link.split_once(',')
            .map_or(link, |(_, text)| text)
            .to_owned()
    });
    let line = replace_macros(&line);
    remove_emphasis(&line, &['*', '_', '`', '#', '+'])
}

/// Replaces `link:target[text]`, `image::file[text]` and `https://…[text]` by the text.
fn replace_macros(line: &str) -> String {
    let (mut shown, mut rest) = (String::new(), line);
    while let Some((before, after)) = rest.split_once('[') {
        let Some((content, after)) = after.split_once(']') else {
            break;
        };
        let start = before.rfind([' ', '(', '"']).map_or(0, |at| at + 1);
        let (prefix, target) = before.split_at(start);
        let is_macro = target.contains(':');
        shown.push_str(if is_macro { prefix } else { before });
        let is_address = target.starts_with("http") || target.starts_with("mailto:");
        let has_options = content.starts_with("role=") || content.starts_with("window=");
        if is_macro && (is_address || content.is_empty() || has_options) {
            shown.push_str(target.trim_start_matches("link:"));
            shown.push(' ');
        }
        if !is_macro {
            shown.push_str(&format!("[{content}]"));
        } else if !has_options {
            shown.push_str(content);
        }
        rest = after;
    }
    shown.push_str(rest);
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(source: &str, text: &str) -> ExtractedDocument {
        let input = Input {
            name: "a.adoc",
            bytes: source.as_bytes(),
        };
        let document = extract(&input, &Limits::default()).unwrap();
        assert_eq!(document.text, text, "{source}");
        document
    }

    #[test]
    fn markup_is_removed() {
        check(
            "== Head\n\nA *bold* and _slanted_ `code`.\n// note\n[source,c]\n----\nint  x;\n----\nend",
            "Head\n\nA bold and slanted code.\n\nint  x;\n\nend",
        );
        check(
            "* one\n** two\n. three\nterm:: def",
            "one\ntwo\nthree\nterm:: def",
        );
        check(
            "see https://x.org[the site], <<id,part>> image::a.png[Alt] a[1]",
            "see https://x.org the site, part Alt a[1]",
        );
        check("|===\n|a |b\n\n|c\n|===\nend", "a\tb\n\nc\n\nend");
        check("////\nhidden\n////\nTitle\n-----\nx", "Title\n\nx");
        check(
            "include::x[]\nifdef::y[]\n.Caption\n====\ninside\n====",
            "Caption\n\ninside",
        );
    }

    #[test]
    fn the_header_is_read() {
        let document = check(
            "= The title\nAda Lovelace <ada@example.org>\nv1.0, 2024-05-06\n:keywords: one, two\n:lang: de\n\nWords",
            "The title\n\nAda Lovelace <ada@example.org>\n\nv1.0, 2024-05-06\n\nWords",
        );
        assert_eq!(document.title.as_deref(), Some("The title"));
        assert_eq!(document.metadata.author.as_deref(), Some("Ada Lovelace"));
        assert_eq!(document.metadata.date_ms, Some(1_714_953_600_000));
        assert_eq!(document.metadata.keywords, ["one", "two"]);
        assert_eq!(document.language.as_deref(), Some("de"));
    }
}
