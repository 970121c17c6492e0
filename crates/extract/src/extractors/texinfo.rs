//! Texinfo sources. Source: <https://www.gnu.org/software/texinfo/manual/texinfo/>.

use crate::accents::{add_accent, typed_accent};
use crate::encoding;
use crate::error::ExtractError;
use crate::format::{Input, take_prefix};
use crate::limits::Limits;
use crate::metadata_text::{clean_property, parse_language};
use crate::output::{DocumentKind, ExtractedDocument};
use crate::text_builder::{Separator, TextBuilder};

/// The maximum nesting depth of commands with braces.
const DEPTH_MAX: u32 = 8;

/// Returns `true` if the file begins by loading Texinfo.
pub(crate) fn is_texinfo(input: &Input<'_>) -> bool {
    let head = take_prefix(input.bytes, 512);
    memchr::memmem::find(head, b"\\input texinfo").is_some()
}

/// Extracts the text.
pub(crate) fn extract(
    input: &Input<'_>,
    limits: &Limits,
) -> Result<ExtractedDocument, ExtractError> {
    let declared = find_encoding(input.bytes);
    let source = encoding::decode_with(input.bytes, declared, limits.text_bytes_max);
    let mut reader = Reader {
        text: TextBuilder::new(limits.text_bytes_max),
        title: None,
        authors: Vec::new(),
        language: None,
        hidden: None,
        is_verbatim: false,
    };
    for (number, line) in source.text.lines().enumerate() {
        limits.check_deadline_at_line(number)?;
        reader.read_line(line);
    }
    let mut document = reader
        .text
        .into_document(DocumentKind::Manual, source.truncated);
    document.title = reader.title;
    document.language = reader.language;
    document.metadata.author = clean_property(&reader.authors.join(", "));
    Ok(document)
}

fn find_encoding(bytes: &[u8]) -> Option<&'static encoding_rs::Encoding> {
    let key = b"@documentencoding ";
    let at = memchr::memmem::find(bytes, key)? + key.len();
    let label = bytes.get(at..)?.split(|byte| *byte == b'\n').next()?;
    encoding_rs::Encoding::for_label(label)
}

struct Reader {
    text: TextBuilder,
    title: Option<String>,
    authors: Vec<String>,
    language: Option<String>,
    /// The current environment whose content is not printed.
    hidden: Option<String>,
    is_verbatim: bool,
}

impl Reader {
    fn read_line(&mut self, line: &str) {
        if line.starts_with("\\input") {
            return;
        }
        let command = line.trim_start().strip_prefix('@');
        let is_name = |it: char| it.is_ascii_alphabetic();
        let name_length = command.map_or(0, |it| it.len() - it.trim_start_matches(is_name).len());
        let (name, rest) = command.unwrap_or_default().split_at(name_length);
        if let Some(hidden) = &self.hidden {
            if name == "end" && rest.trim() == hidden {
                self.hidden = None;
            }
        } else if name.is_empty() || rest.starts_with('{') {
            self.push_line(line);
        } else {
            self.read_command(name, rest.trim());
        }
    }

    fn push_line(&mut self, line: &str) {
        let line = line.split("@c ").next().unwrap_or(line);
        let shown = show(line, 0);
        if line.trim().is_empty() {
            self.text.separate(Separator::Paragraph);
        } else if self.is_verbatim {
            self.text.push_verbatim(&shown);
            self.text.separate(Separator::Line);
        } else {
            self.text.push_words(&shown);
            self.text.separate(Separator::Space);
        }
    }

    fn read_command(&mut self, name: &str, rest: &str) {
        match name {
            "settitle" => self.title = clean_property(&show(rest, 0)),
            "title" | "subtitle" | "author" => {
                if name == "author" {
                    self.authors.push(show(rest, 0));
                }
                self.text.separate(Separator::Line);
                self.text.push_words(&show(rest, 0));
                self.text.separate(Separator::Line);
            }
            "documentlanguage" => self.language = parse_language(rest),
            "ignore" | "tex" | "iftex" | "ifhtml" | "html" | "menu" | "detailmenu" | "macro"
            | "direntry" | "ifnotinfo" | "xml" | "docbook" | "rmacro" | "ifxml" | "ifdocbook" => {
                self.hidden = Some(name.to_owned());
            }
            "example" | "smallexample" | "lisp" | "smalllisp" | "display" | "format"
            | "verbatim" => {
                self.is_verbatim = true;
                self.text.separate(Separator::Paragraph);
            }
            "end" => {
                self.is_verbatim = false;
                self.text.separate(Separator::Paragraph);
            }
            "top"
            | "chapter"
            | "section"
            | "subsection"
            | "subsubsection"
            | "appendix"
            | "unnumbered"
            | "unnumberedsec"
            | "unnumberedsubsec"
            | "appendixsec"
            | "heading"
            | "subheading"
            | "chapheading"
            | "majorheading"
            | "appendixsubsec"
            | "unnumberedsubsubsec"
            | "subsubheading"
            | "center" => {
                self.text.separate(Separator::Paragraph);
                self.text.push_words(&show(rest, 0));
                self.text.separate(Separator::Paragraph);
            }
            "item" | "itemx" | "headitem" | "tab" => {
                let gap = if name == "tab" {
                    Separator::Tab
                } else {
                    Separator::Line
                };
                self.text.separate(gap);
                self.text.push_words(&show(rest, 0));
                self.text
                    .separate(if name == "tab" { gap } else { Separator::Space });
            }
            _ if name.starts_with("def") => {
                self.text.separate(Separator::Line);
                self.text.push_words(&show(rest, 0));
                self.text.separate(Separator::Line);
            }
            // Other commands set the type, or are for indexes and the structure of the file.
            _ => {}
        }
    }
}

/// Returns text without commands: `@code{x}` becomes `x`.
fn show(source: &str, depth: u32) -> String {
    let (mut shown, mut rest) = (String::new(), source);
    while let Some((before, command)) = rest.split_once('@') {
        shown.push_str(before);
        let Some(first) = command.chars().next() else {
            break;
        };
        if !first.is_ascii_alphabetic() {
            rest = show_mark(
                first,
                command.get(first.len_utf8()..).unwrap_or_default(),
                &mut shown,
            );
            continue;
        }
        let name_end = command.find(|it: char| !it.is_ascii_alphanumeric());
        let (name, after) = command.split_at(name_end.unwrap_or(command.len()));
        let Some(after) = after.strip_prefix('{').filter(|_| depth < DEPTH_MAX) else {
            rest = after;
            continue;
        };
        let end = find_end(after);
        let (content, after) = after.split_at(end);
        shown.push_str(&show_command(name, content, depth));
        rest = after.strip_prefix('}').unwrap_or(after);
    }
    shown.push_str(rest);
    shown
}

/// Appends a command of one punctuation mark. Returns the rest of the text.
fn show_mark<'t>(mark: char, after: &'t str, shown: &mut String) -> &'t str {
    let accent = match mark {
        ',' => Some('\u{327}'),
        other => typed_accent(other),
    };
    let Some(accent) = accent else {
        if matches!(mark, '@' | '{' | '}' | '.' | '!' | '?' | ' ') {
            shown.push(mark);
        }
        return after;
    };
    let inner = after.strip_prefix('{').unwrap_or(after);
    let Some(letter) = inner.chars().next() else {
        return inner;
    };
    shown.push_str(&add_accent(letter, accent));
    let rest = inner.get(letter.len_utf8()..).unwrap_or_default();
    if inner.len() < after.len() {
        rest.strip_prefix('}').unwrap_or(rest)
    } else {
        rest
    }
}

/// Returns the position of the closing brace of an argument.
fn find_end(source: &str) -> usize {
    let (mut depth, mut is_escaped) = (0u32, false);
    for (at, character) in source.char_indices() {
        match character {
            _ if is_escaped => {}
            '{' => depth += 1,
            '}' if depth == 0 => return at,
            '}' => depth -= 1,
            _ => {}
        }
        is_escaped = character == '@' && !is_escaped;
    }
    source.len()
}

fn show_command(name: &str, content: &str, depth: u32) -> String {
    let mut arguments = content.split(',').map(str::trim);
    match name {
        "ss" => "ß".into(),
        "o" => "ø".into(),
        "aa" => "å".into(),
        "ae" => "æ".into(),
        "oe" => "œ".into(),
        "l" => "ł".into(),
        "dots" | "enddots" => "…".into(),
        "copyright" => "©".into(),
        "minus" => "-".into(),
        "tie" => " ".into(),
        "TeX" | "LaTeX" => name.into(),
        "anchor" | "image" | "value" | "cindex" | "inforef" | "bullet" | "w"
            if content.is_empty() =>
        {
            String::new()
        }
        "anchor" | "image" => String::new(),
        "footnote" => format!(" {} ", show(content, depth + 1)),
        "xref" | "pxref" | "ref" => show(arguments.next().unwrap_or_default(), depth + 1),
        "url" | "uref" | "email" => {
            let shown: Vec<String> = arguments.rev().map(|part| show(part, depth + 1)).collect();
            shown.join(" ")
        }
        _ => show(content, depth + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_read() {
        let source = "\\input texinfo\n@settitle The @code{x} manual\n@documentlanguage de\n@c note\n@author Ada\n\
             @node Top\n@chapter One\n@cindex word\nUse @code{a@@b} and @samp{@{} or z@\"ahler, @,{c}a, Stra@ss{}e.\n\
             @example\nint  x;\n@end example\n@menu\n* hidden::\n@end menu\n@table @asis\n@item first\nsee @ref{Two, , x}, @url{http://x, site}.\n@end table";
        let input = Input {
            name: "a.texi",
            bytes: source.as_bytes(),
        };
        assert!(is_texinfo(&input));
        let document = extract(&input, &Limits::default()).unwrap();
        assert_eq!(
            document.text,
            "\\input texinfo Ada\n\nOne\n\nUse a@b and { or zähler, ça, Straße.\n\nint  x;\n\nfirst see Two, site http://x."
                .replace("\\input texinfo ", "")
        );
        assert_eq!(document.title.as_deref(), Some("The x manual"));
        assert_eq!(document.metadata.author.as_deref(), Some("Ada"));
        assert_eq!(document.language.as_deref(), Some("de"));
        for cut in ["@", "@code{", "@\"", "@\"{", "@ref{", "@end", "@é{x}"] {
            show(cut, 0);
        }
    }
}
