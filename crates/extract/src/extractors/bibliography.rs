//! BibTeX: the entries of a bibliography, a paragraph for each. Source: <https://www.bibtex.org/Format>.

use super::latex;
use crate::encoding;
use crate::error::ExtractError;
use crate::format::Input;
use crate::limits::Limits;
use crate::output::{DocumentKind, ExtractedDocument};
use crate::text_builder::{Separator, TextBuilder};

/// Extracts the keys and the field values of the entries.
pub(crate) fn extract(
    input: &Input<'_>,
    limits: &Limits,
) -> Result<ExtractedDocument, ExtractError> {
    let source = encoding::decode(input.bytes, limits.text_bytes_max);
    let mut text = TextBuilder::new(limits.text_bytes_max);
    let mut rest = source.text.as_str();
    while let Some((_, entry)) = rest.split_once('@') {
        limits.check_deadline()?;
        rest = read_entry(entry, limits, &mut text)?;
        text.separate(Separator::Paragraph);
    }
    Ok(text.into_document(DocumentKind::Document, source.truncated))
}

/// Reads an entry. Returns the rest of the text.
fn read_entry<'t>(
    entry: &'t str,
    limits: &Limits,
    text: &mut TextBuilder,
) -> Result<&'t str, ExtractError> {
    let Some((kind, mut rest)) = entry.split_once(['{', '(']) else {
        return Ok("");
    };
    if !kind.trim().bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Ok(entry);
    }
    let is_entry = !["comment", "preamble", "string"]
        .iter()
        .any(|other| kind.trim().eq_ignore_ascii_case(other));
    if is_entry {
        let end = rest.find([',', '}', '@']).unwrap_or(rest.len());
        let (key, after) = rest.split_at(end);
        text.push_words(key.trim());
        text.separate(Separator::Line);
        rest = after;
    }
    loop {
        let end = rest.find(['=', '}', ')', '@']).unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        let Some(value) = after.strip_prefix('=') else {
            return Ok(after.strip_prefix(['}', ')']).unwrap_or(after));
        };
        let (value, after) = take_value(value.trim_start());
        let name = name.trim_matches(|it: char| it == ',' || it.is_whitespace());
        text.push_words(&format!("{name}: "));
        text.push_words(&latex::print(&value, limits)?);
        text.separate(Separator::Line);
        rest = after;
    }
}

/// Consumes a value: parts in braces or quotes or plain words, joined by `#`.
fn take_value(source: &str) -> (String, &str) {
    let (mut value, mut rest) = (String::new(), source);
    loop {
        let length = match rest.as_bytes().first() {
            Some(b'{') => delimited_length(rest, b'}'),
            Some(b'"') => delimited_length(rest, b'"'),
            _ => rest.find([',', '}', ')', '#', '\n']).unwrap_or(rest.len()),
        };
        let (part, after) = rest.split_at_checked(length).unwrap_or((rest, ""));
        value.push_str(part.trim_matches('"'));
        rest = after.trim_start();
        match rest.strip_prefix('#') {
            Some(next) => rest = next.trim_start(),
            None => return (value, rest),
        }
    }
}

/// Returns the length of a part in braces or quotes, including these.
fn delimited_length(source: &str, close: u8) -> usize {
    let mut depth = 0u32;
    for (at, byte) in source.bytes().enumerate().skip(1) {
        match byte {
            _ if byte == close && depth == 0 => return at + 1,
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    source.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_printed() {
        let check = |source: &str, text: &str| {
            let input = Input {
                name: "a.bib",
                bytes: source.as_bytes(),
            };
            assert_eq!(
                extract(&input, &Limits::default()).unwrap().text,
                text,
                "{source}"
            );
        };
        check(
            "% note\n@Article{key1,\n author = {G{\\\"o}del, Kurt and {B, C}},\n title = \"On {TeX}\",\n year = 1931,\n}\n\
             @string{x = \"y\"}\n@book(k2, title = {A} # \" B\")",
            "key1\nauthor: Gödel, Kurt and B, C\ntitle: On TeX\nyear: 1931\n\nx: y\n\nk2\ntitle: A B",
        );
        for cut in [
            "@",
            "@a{",
            "@a{k, t = {x",
            "@a{k, t = \"",
            "@a{k, =",
            "a@b.c",
            "@a{k, t = #",
        ] {
            let input = Input {
                name: "a.bib",
                bytes: cut.as_bytes(),
            };
            assert!(extract(&input, &Limits::default()).is_ok(), "{cut}");
        }
    }
}
