//! POD, the documentation of Perl. Source: the manual page perlpod(1).

use crate::encoding;
use crate::error::ExtractError;
use crate::format::Input;
use crate::limits::Limits;
use crate::metadata_text::clean_property;
use crate::output::{DocumentKind, ExtractedDocument};
use crate::text_builder::{Separator, TextBuilder};

const PARAGRAPHS_PER_CHECK: usize = 1024;
/// Formatting codes can be nested so deep.
const DEPTH_MAX: u32 = 8;

/// Extracts the paragraphs of the documentation.
pub(crate) fn extract(
    input: &Input<'_>,
    limits: &Limits,
) -> Result<ExtractedDocument, ExtractError> {
    let source = encoding::decode(input.bytes, limits.text_bytes_max);
    let mut text = TextBuilder::new(limits.text_bytes_max);
    let (mut title, mut is_name) = (None, false);
    let (mut is_documentation, mut is_hidden) = (false, false);
    let unified = source.text.replace("\r\n", "\n");
    for (number, paragraph) in unified.split("\n\n").enumerate() {
        if number % PARAGRAPHS_PER_CHECK == 0 {
            limits.check_deadline()?;
        }
        let paragraph = paragraph.trim_matches('\n');
        if let Some(command) = paragraph.strip_prefix('=') {
            let (name, words) = command.split_once([' ', '\n']).unwrap_or((command, ""));
            match name {
                "begin" => is_hidden = true,
                "end" => is_hidden = false,
                "for" | "encoding" | "over" | "back" => {}
                "cut" => is_documentation = false,
                _ => {
                    is_documentation = true;
                    let shown = show(words, 0);
                    is_name = shown.trim().eq_ignore_ascii_case("name");
                    text.separate(Separator::Paragraph);
                    text.push_words(shown.trim_start_matches("* ").trim_matches('*'));
                }
            }
        } else if !is_documentation || is_hidden {
            continue;
        } else if paragraph.starts_with([' ', '\t']) {
            text.separate(Separator::Paragraph);
            text.push_verbatim(paragraph);
        } else {
            text.separate(Separator::Paragraph);
            let shown = show(paragraph, 0);
            text.push_words(&shown);
            if std::mem::take(&mut is_name) && title.is_none() {
                title = clean_property(&shown);
            }
        }
        text.separate(Separator::Paragraph);
    }
    let mut document = text.into_document(DocumentKind::Manual, source.truncated);
    document.title = title;
    Ok(document)
}

/// Returns text without formatting codes: `B<bold>`, `C<< a > b >>`.
fn show(source: &str, depth: u32) -> String {
    let (mut shown, mut rest) = (String::new(), source);
    while let Some((before, after)) = rest.split_once('<') {
        let code = before.chars().next_back().filter(char::is_ascii_uppercase);
        let Some(code) = code.filter(|_| depth < DEPTH_MAX) else {
            shown.push_str(before);
            shown.push('<');
            rest = after;
            continue;
        };
        shown.push_str(before.get(..before.len() - 1).unwrap_or_default());
        let inner = after.trim_start_matches('<');
        let count = after.len() - inner.len() + 1;
        let length = if count > 1 {
            inner.find(&format!(" {}", ">".repeat(count)))
        } else {
            find_end(inner)
        };
        let end = length.unwrap_or(inner.len());
        let (content, after) = inner.split_at_checked(end).unwrap_or((inner, ""));
        let closing = if count > 1 { count + 1 } else { 1 };
        rest = after.get(closing..).unwrap_or_default();
        shown.push_str(&show_code(code, content.trim(), depth));
    }
    shown.push_str(rest);
    shown
}

/// Returns the position of the bracket that closes a code.
fn find_end(source: &str) -> Option<usize> {
    let (mut depth, mut last) = (0u32, ' ');
    for (at, character) in source.char_indices() {
        match character {
            '<' if last.is_ascii_uppercase() => depth += 1,
            '>' if depth == 0 => return Some(at),
            '>' => depth -= 1,
            _ => {}
        }
        last = character;
    }
    None
}

fn show_code(code: char, content: &str, depth: u32) -> String {
    match code {
        'E' => match content {
            "lt" => "<".into(),
            "gt" => ">".into(),
            "verbar" => "|".into(),
            "sol" => "/".into(),
            number => {
                let value = match number.strip_prefix("0x") {
                    Some(digits) => u32::from_str_radix(digits, 16).ok(),
                    None => number.parse().ok(),
                };
                let character = value.and_then(char::from_u32);
                character.map_or_else(|| number.to_owned(), String::from)
            }
        },
        'L' => {
            let text = content.split_once('|').map_or(content, |(text, _)| text);
            show(text, depth + 1)
        }
        'X' | 'Z' => String::new(),
        _ => show(content, depth + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documentation_is_read() {
        let source = "code\n\n=head1 NAME\n\nx - do B<it>\n\n=over 4\n\n=item * I<one>\n\nC<< a > b >> E<lt>E<228> \
                      L<text|http://x> X<index>S<B<c> d>\n\n  verbatim  text\n\n=begin html\n\n<p>\n\n=end html\n\n=cut\n\nmore code";
        let input = Input {
            name: "a.pod",
            bytes: source.as_bytes(),
        };
        let document = extract(&input, &Limits::default()).unwrap();
        assert_eq!(
            document.text,
            "NAME\n\nx - do it\n\n4\n\none\n\na > b <ä text c d\n\n  verbatim  text"
                .replace("4\n\n", "")
        );
        assert_eq!(document.title.as_deref(), Some("x - do it"));
        for cut in [
            "=head1 B<",
            "=head1 C<< a",
            "=head1 E<",
            "=x\n\na<b",
            "=head1 é<é>",
        ] {
            let input = Input {
                name: "",
                bytes: cut.as_bytes(),
            };
            assert!(extract(&input, &Limits::default()).is_ok());
        }
    }
}
