//! The part of a document's text that is shown with a result.

use std::ops::Range;

use windrow_document::{Array, Document, ValueRef};

/// A part of a text with the ranges of the matching words.
#[derive(Debug, Default, PartialEq)]
pub struct Snippet {
    /// The part, unchanged.
    pub text: String,
    /// The byte ranges of the matching words in `text`, in ascending order.
    pub ranges: Vec<Range<usize>>,
    /// The part does not begin at the start of the text.
    pub is_cut_before: bool,
    /// The part does not end at the end of the text.
    pub is_cut_after: bool,
    /// The position of the first matching word, if it is known.
    pub location: Option<TextLocation>,
}

/// A position in a document, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextLocation {
    /// A line.
    Line(usize),
    /// A page.
    Page(usize),
}

/// The maximum number of characters of a snippet.
const CHARACTERS_MAX: usize = 200;
/// The number of characters before the first matching word, if the text is long enough.
const CHARACTERS_BEFORE: usize = 60;

/// The kinds of documents whose text has the lines of the file.
const KINDS_WITH_LINES: [&str; 2] = ["text", "source"];
/// The kinds of documents whose pages are separated by form feeds.
const KINDS_WITH_PAGES: [&str; 2] = ["pdf", "djvu"];

impl Snippet {
    /// Creates the snippet of a result: its best highlight, or the beginning of its text if nothing
    /// in the text matches.
    pub fn new(document: Document<'_>) -> Snippet {
        let field = |name: &str| document.get(name).and_then(ValueRef::as_str);
        let text = field("text").unwrap_or_default();
        let Some(passage) = best_passage(document) else {
            let whole = Snippet {
                text: text.chars().take(CHARACTERS_MAX + 1).collect(),
                ..Snippet::default()
            };
            return whole.around_first_hit();
        };
        let start = text.find(&passage.text);
        let end = start.map(|start| start + passage.text.len());
        let hit = passage.ranges.first().map_or(0, |range| range.start);
        let mut shown = passage.around_first_hit();
        shown.is_cut_before |= start != Some(0);
        shown.is_cut_after |= end != Some(text.len());
        let before = start.and_then(|start| text.get(..start + hit));
        shown.location =
            before.and_then(|before| locate(before, field("kind").unwrap_or_default()));
        shown
    }

    /// Returns the part around the first matching word. The snippet is too long.
    fn around_first_hit(&self) -> Snippet {
        let text = self.text.as_str();
        let first = self.ranges.first().map_or(0, |range| range.start);
        let before = text.get(..first).unwrap_or_default();
        let start = before.char_indices().rev().take(CHARACTERS_BEFORE).last();
        let start = if text.chars().count() > CHARACTERS_MAX {
            start.map_or(first, |(at, _)| at)
        } else {
            0
        };
        let shown = text.get(start..).unwrap_or_default();
        let end = shown.char_indices().nth(CHARACTERS_MAX);
        let end = end.map_or(text.len(), |(at, _)| start + at);
        let ranges = self.ranges.iter().filter(|range| range.end <= end);
        Snippet {
            text: text.get(start..end).unwrap_or_default().to_owned(),
            ranges: ranges
                .map(|range| range.start - start..range.end - start)
                .collect(),
            is_cut_before: start > 0,
            is_cut_after: end < text.len(),
            location: None,
        }
    }
}

/// Returns the position after a part of a text. `None` if a document with pages has no form feeds.
fn locate(before: &str, kind: &str) -> Option<TextLocation> {
    let count = |separator: u8| before.bytes().filter(|byte| *byte == separator).count();
    if KINDS_WITH_LINES.contains(&kind) {
        return Some(TextLocation::Line(count(b'\n') + 1));
    }
    KINDS_WITH_PAGES
        .contains(&kind)
        .then(|| TextLocation::Page(count(b'\x0c') + 1))
}

/// Returns the passage with the highest score.
fn best_passage(document: Document<'_>) -> Option<Snippet> {
    let passages = document.get("highlights").and_then(ValueRef::as_array)?;
    let score = |passage: &Document<'_>| passage.get("score").and_then(ValueRef::as_f64);
    let best = passages
        .iter()
        .filter_map(ValueRef::as_document)
        .max_by(|one, other| {
            score(one)
                .unwrap_or(0.0)
                .total_cmp(&score(other).unwrap_or(0.0))
        })?;
    Some(join_texts(best.get("texts").and_then(ValueRef::as_array)?))
}

/// Concatenates the texts of a passage.
fn join_texts(texts: Array<'_>) -> Snippet {
    let mut joined = Snippet::default();
    for piece in texts.iter().filter_map(ValueRef::as_document) {
        let start = joined.text.len();
        let value = piece.get("value").and_then(ValueRef::as_str);
        joined.text.push_str(value.unwrap_or_default());
        if piece.get("type").and_then(ValueRef::as_str) == Some("hit") {
            joined.ranges.push(start..joined.text.len());
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::{array, doc};

    #[test]
    fn the_best_passage_is_shown() {
        let texts = |word: &str| array![{ "value": "a ", "type": "text" }, { "value": (word), "type": "hit" }];
        let document = doc! {
            "text": "The beginning.\na bad\n a good end", "kind": "text",
            "highlights": [
                { "score": 1.0, "texts": (texts("bad")) }, { "score": 2.0, "texts": (texts("good")) }
            ],
        };
        let expected = Snippet {
            text: "a good".into(),
            ranges: std::iter::once(2..6).collect(),
            is_cut_before: true,
            is_cut_after: true,
            location: Some(TextLocation::Line(3)),
        };
        assert_eq!(Snippet::new(document.as_document()), expected);
    }

    #[test]
    fn without_passages_the_beginning_is_shown() {
        let document = doc! { "text": "Short.", "highlights": [] };
        let shown = Snippet::new(document.as_document());
        assert_eq!(
            (shown.text.as_str(), shown.is_cut_before, shown.is_cut_after),
            ("Short.", false, false)
        );
    }

    #[test]
    fn places_are_lines_and_pages() {
        let cases = [
            ("a\nb\n", "text", Some(TextLocation::Line(3))),
            ("", "source", Some(TextLocation::Line(1))),
            ("a\n\x0cb\x0c", "pdf", Some(TextLocation::Page(3))),
            ("a\nb", "html", None),
        ];
        for (before, kind, expected) in cases {
            assert_eq!(locate(before, kind), expected, "{before:?} {kind}");
        }
    }

    #[test]
    fn long_passages_are_cut_around_the_first_hit() {
        let long = Snippet {
            text: format!("{}hit{}", "ä".repeat(500), "ö".repeat(500)),
            ranges: vec![1_000..1_003, 1_900..1_902],
            ..Snippet::default()
        };
        let shown = long.around_first_hit();
        assert_eq!(shown.text.chars().count(), CHARACTERS_MAX);
        let first = 2 * CHARACTERS_BEFORE;
        assert_eq!(shown.ranges.first(), Some(&(first..first + 3)));
        assert_eq!(shown.ranges.len(), 1);
        assert!(
            shown.text[shown.ranges[0].clone()] == *"hit"
                && shown.is_cut_before
                && shown.is_cut_after
        );
    }
}
