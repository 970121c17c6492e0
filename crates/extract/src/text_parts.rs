//! Splits documents with long texts into several documents.

use crate::output::ExtractedDocument;

/// A part ends after a line break or space, if there is one in this last percentage of the part.
const SEARCHED_PERCENT: usize = 10;

/// Returns the document, or several documents with parts of its text of at most `part_bytes_max`
/// bytes each. Only one part at a time is in memory beside the document. All have the title and
/// metadata of the document.
pub(crate) fn split_into_parts(
    document: ExtractedDocument,
    part_bytes_max: usize,
) -> impl Iterator<Item = ExtractedDocument> {
    let mut document = Some(document);
    let (mut start, mut number) = (0, 0);
    std::iter::from_fn(move || {
        let whole = document.as_ref()?;
        if whole.text.len() <= part_bytes_max {
            return document.take();
        }
        let rest = whole.text.get(start..).filter(|rest| !rest.is_empty())?;
        let (text, behind) = rest.split_at(part_length(rest, part_bytes_max));
        start += text.len();
        number += 1;
        let outer = whole.inner_path.as_deref().unwrap_or_default();
        let inner_path = match number {
            1 => whole.inner_path.clone(),
            _ => Some(format!("{outer}@{number}")),
        };
        Some(ExtractedDocument {
            inner_path,
            title: whole.title.clone(),
            text: text.to_owned(),
            kind: whole.kind,
            language: whole.language.clone(),
            metadata: whole.metadata.clone(),
            truncated: whole.truncated && behind.is_empty(),
        })
    })
}

/// Returns the length of the first part of a text, up to a line break, a space or a character
/// boundary. At least one character, so that splitting terminates.
fn part_length(text: &str, bytes_max: usize) -> usize {
    if text.len() <= bytes_max {
        return text.len();
    }
    let (head, _) = text.split_at(text.floor_char_boundary(bytes_max));
    let least = head.len() - head.len() * SEARCHED_PERCENT / 100;
    let last = |mark: u8| memchr::memrchr(mark, head.as_bytes()).map(|at| at + 1);
    let end = last(b'\n')
        .filter(|end| *end >= least)
        .or_else(|| last(b' ').filter(|end| *end >= least));
    let first = text.chars().next().map_or(1, char::len_utf8);
    end.unwrap_or(head.len()).max(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::DocumentKind;

    fn check(text: &str, part_bytes_max: usize, expected: &[&str]) {
        let mut document = ExtractedDocument::new(DocumentKind::Text, text.to_owned());
        document.inner_path = Some("#1".to_owned());
        document.truncated = true;
        let parts: Vec<_> = split_into_parts(document, part_bytes_max).collect();
        let texts: Vec<&str> = parts.iter().map(|part| part.text.as_str()).collect();
        assert_eq!(texts, expected);
        let inner: Vec<&str> = parts
            .iter()
            .filter_map(|part| part.inner_path.as_deref())
            .collect();
        let numbered = (2..=parts.len()).map(|number| format!("#1@{number}"));
        let expected: Vec<String> = std::iter::once("#1".to_owned()).chain(numbered).collect();
        assert_eq!(inner, expected);
        let cut: Vec<bool> = parts.iter().map(|part| part.truncated).collect();
        assert_eq!(cut.iter().filter(|cut| **cut).count(), 1);
        assert_eq!(cut.last(), Some(&true));
    }

    #[test]
    fn parts_end_behind_lines_words_or_characters() {
        check("short", 5, &["short"]);
        check("123456789\nab", 11, &["123456789\n", "ab"]);
        check("12345678 0ab", 10, &["12345678 ", "0ab"]);
        check("1 34567890ab", 10, &["1 34567890", "ab"]);
        check("ääää", 5, &["ää", "ää"]);
        check("€€", 1, &["€", "€"]);
    }
}
