//! Splits documents with long texts into several documents.

use crate::output::ExtractedDocument;

/// A part ends after a line break or space, if there is one in this last percentage of the part.
const SEARCHED_PERCENT: usize = 10;

/// The number of bytes of the longest character of UTF-8.
const CHARACTER_BYTES_MAX: usize = 4;
const CONTINUATION_BYTES_MAX: usize = CHARACTER_BYTES_MAX - 1;

/// Returns the document, or several documents with parts of its text of at most `part_bytes_max`
/// bytes each. Only one part at a time is in memory beside the document. All have the title and
/// metadata of the document. `parts_count` is the number of earlier parts, and is increased.
pub(crate) fn split_into_parts(
    document: ExtractedDocument,
    part_bytes_max: usize,
    parts_count: &mut u64,
) -> impl Iterator<Item = ExtractedDocument> {
    let mut document = Some(document);
    let mut start = 0;
    std::iter::from_fn(move || {
        let whole = document.as_ref()?;
        let rest = whole.text.get(start..)?;
        let length = part_length(rest.as_bytes(), part_bytes_max);
        let inner_path = part_path(whole.inner_path.as_deref(), *parts_count + 1);
        let part = if length < whole.text.len() {
            let (text, behind) = rest.split_at(length);
            if text.is_empty() {
                return None;
            }
            start += length;
            ExtractedDocument {
                inner_path,
                title: whole.title.clone(),
                text: text.to_owned(),
                kind: whole.kind,
                language: whole.language.clone(),
                metadata: whole.metadata.clone(),
                truncated: whole.truncated && behind.is_empty(),
            }
        } else {
            ExtractedDocument {
                inner_path,
                ..document.take()?
            }
        };
        *parts_count += 1;
        Some(part)
    })
}

fn part_path(document_path: Option<&str>, number: u64) -> Option<String> {
    if number == 1 {
        return document_path.map(str::to_owned);
    }
    Some(format!("{}@{number}", document_path.unwrap_or_default()))
}

/// Returns the length of the first part of a text, up to a line break, a space or a character
/// boundary of UTF-8. The part has at least one character, so that splitting ends.
pub(crate) fn part_length(text: &[u8], bytes_max: usize) -> usize {
    let Some(head) = text.get(..bytes_max).filter(|_| bytes_max < text.len()) else {
        return text.len();
    };
    let least = head.len() - head.len() * SEARCHED_PERCENT / 100;
    let last = |mark: u8| memchr::memrchr(mark, head).map(|at| at + 1);
    let end = last(b'\n')
        .filter(|end| *end >= least)
        .or_else(|| last(b' ').filter(|end| *end >= least));
    end.unwrap_or_else(|| character_boundary(text, head.len()))
}

/// Returns the last boundary of a character up to `end`, or the end of the first character.
fn character_boundary(text: &[u8], end: usize) -> usize {
    let is_boundary = |at: &usize| text.get(*at).is_none_or(|byte| byte & 0xc0 != 0x80);
    let before = (end.saturating_sub(CONTINUATION_BYTES_MAX).max(1)..=end).rev();
    before
        .chain(1..=CHARACTER_BYTES_MAX)
        .find(is_boundary)
        .unwrap_or_else(|| end.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::DocumentKind;

    fn check(text: &str, part_bytes_max: usize, expected: &[&str]) {
        let mut document = ExtractedDocument::new(DocumentKind::Text, text.to_owned());
        document.inner_path = Some("#1".to_owned());
        document.truncated = true;
        let parts: Vec<_> = split_into_parts(document, part_bytes_max, &mut 0).collect();
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
