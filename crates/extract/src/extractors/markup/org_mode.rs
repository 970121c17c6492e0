//! Org files. Source: <https://orgmode.org/worg/org-syntax.html>.

use super::inline::{remove_emphasis, replace_links};
use crate::encoding;
use crate::error::ExtractError;
use crate::format::Input;
use crate::limits::Limits;
use crate::metadata_text::{append_keywords, clean_property, parse_language, parse_written_date};
use crate::output::{DocumentKind, ExtractedDocument};
use crate::text_builder::{Separator, TextBuilder};

/// Extracts the text and the properties of the file.
pub(crate) fn extract(
    input: &Input<'_>,
    limits: &Limits,
) -> Result<ExtractedDocument, ExtractError> {
    let source = encoding::decode(input.bytes, limits.text_bytes_max);
    let mut text = TextBuilder::new(limits.text_bytes_max);
    let mut properties = ExtractedDocument::new(DocumentKind::Document, String::new());
    let mut heading = None;
    let (mut is_drawer, mut is_block) = (false, false);
    for (number, line) in source.text.lines().enumerate() {
        limits.check_deadline_at_line(number)?;
        let trimmed = line.trim();
        let upper = trimmed.to_ascii_uppercase();
        if upper.starts_with("#+BEGIN_") || upper.starts_with("#+END_") {
            is_block = upper.starts_with("#+BEGIN_SRC") || upper.starts_with("#+BEGIN_EXAMPLE");
            text.separate(Separator::Paragraph);
        } else if is_block {
            text.push_verbatim(line);
            text.separate(Separator::Line);
        } else if is_drawer {
            is_drawer = upper != ":END:";
        } else if matches!(upper.as_str(), ":PROPERTIES:" | ":LOGBOOK:") {
            is_drawer = true;
        } else if let Some(keyword) = trimmed.strip_prefix("#+") {
            if let Some((name, value)) = keyword.split_once(':') {
                read_keyword(
                    &name.to_ascii_lowercase(),
                    value,
                    &mut properties,
                    &mut text,
                );
            }
        } else if !(trimmed == "#" || trimmed.starts_with("# ")) {
            push_line(line, &mut text, &mut heading, &mut properties);
        }
    }
    let text = text.into_document(DocumentKind::Document, source.truncated);
    properties.title = properties.title.or(heading);
    Ok(ExtractedDocument {
        text: text.text,
        truncated: text.truncated,
        ..properties
    })
}

fn read_keyword(name: &str, value: &str, document: &mut ExtractedDocument, text: &mut TextBuilder) {
    let metadata = &mut document.metadata;
    match name {
        "title" => {
            document.title = clean_property(&show(value));
            text.push_words(&show(value));
            text.separate(Separator::Paragraph);
        }
        "author" => metadata.author = clean_property(value),
        "date" => {
            metadata.date_ms = parse_written_date(value.trim().trim_matches(['<', '>', '[', ']']))
        }
        "language" => document.language = parse_language(value),
        "keywords" => append_keywords(&mut metadata.keywords, value),
        "filetags" => append_keywords(&mut metadata.keywords, &value.replace(':', ",")),
        "description" => metadata.description = clean_property(value),
        "caption" => {
            text.separate(Separator::Line);
            text.push_words(value.trim());
            text.separate(Separator::Line);
        }
        _ => {}
    }
}

fn push_line(
    line: &str,
    text: &mut TextBuilder,
    heading: &mut Option<String>,
    document: &mut ExtractedDocument,
) {
    let trimmed = line.trim();
    let title = line.trim_start_matches('*');
    if title.len() < line.len() && title.starts_with(' ') {
        let (title, tags) = split_tags(title.trim());
        append_keywords(&mut document.metadata.keywords, &tags.replace(':', ","));
        let shown = show(title);
        if heading.is_none() {
            *heading = clean_property(&shown);
        }
        text.separate(Separator::Paragraph);
        text.push_words(&shown);
        text.separate(Separator::Paragraph);
    } else if trimmed.is_empty() {
        text.separate(Separator::Paragraph);
    } else if trimmed.starts_with('|') {
        text.separate(Separator::Line);
        let cells = trimmed.split('|').map(str::trim);
        for cell in cells.filter(|cell| !cell.chars().all(|it| matches!(it, '-' | '+'))) {
            text.push_words(&show(cell));
            text.separate(Separator::Tab);
        }
        text.separate(Separator::Line);
    } else {
        let item = ["- ", "+ "]
            .iter()
            .find_map(|mark| trimmed.strip_prefix(mark));
        if item.is_some() {
            text.separate(Separator::Line);
        }
        text.push_words(&show(item.unwrap_or(trimmed)));
        text.separate(Separator::Space);
    }
}

/// Splits the tags at the end of a heading: `Heading  :one:two:`.
fn split_tags(heading: &str) -> (&str, &str) {
    let tags = heading
        .rsplit_once(' ')
        .filter(|(_, tags)| tags.len() > 2 && tags.starts_with(':') && tags.ends_with(':'));
    tags.unwrap_or((heading, ""))
}

fn show(line: &str) -> String {
    let line = replace_links(line, "[[", "]]", |link| match link.split_once("][") {
        Some((target, text)) if target.contains("://") => format!("{text} ({target})"),
        Some((_, text)) => text.to_owned(),
        None => link.to_owned(),
    });
    remove_emphasis(&line, &['*', '_', '=', '~'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read() {
        let check = |source: &str, text: &str| {
            let input = Input {
                name: "a.org",
                bytes: source.as_bytes(),
            };
            let document = extract(&input, &Limits::default()).unwrap();
            assert_eq!(document.text, text, "{source}");
            document
        };
        let document = check(
            "#+TITLE: The title\n#+AUTHOR: Ada\n#+DATE: <2024-05-06 Mon>\n#+LANGUAGE: de\n\n* TODO Head *one* :work:home:\n\
             :PROPERTIES:\n:ID: x\n:END:\nSee [[http://x.org][the site]] and =code=.\n# note\n- item\n\n\
             #+BEGIN_SRC c\nint  x;\n#+END_SRC\n| a | b |\n|---+---|\n| c | d |",
            "The title\n\nTODO Head one\n\nSee the site (http://x.org) and code.\nitem\n\nint  x;\n\na\tb\nc\td",
        );
        assert_eq!(document.title.as_deref(), Some("The title"));
        assert_eq!(document.metadata.author.as_deref(), Some("Ada"));
        assert_eq!(document.metadata.keywords, ["work", "home"]);
        assert_eq!(document.language.as_deref(), Some("de"));
        assert_eq!(document.metadata.date_ms, Some(1_714_953_600_000));
        assert_eq!(
            check("* Head\nx", "Head\n\nx").title.as_deref(),
            Some("Head")
        );
    }
}
