//! Character filters, and the text that they make with its offsets in the original.

use std::borrow::Cow;
use std::ops::Range;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::canonical_combining_class;

use super::html;

/// A filter that changes a text before it is split.
#[derive(Clone, Debug, PartialEq)]
pub enum CharacterFilter {
    /// `htmlStrip`: removes tags, comments, scripts and styles, and decodes entities.
    StripHtml {
        /// The names of tags that stay in the text.
        ignored_tags: Vec<String>,
    },
    /// `icuNormalize`: the Unicode normal form NFKC, without differences of case.
    Normalize,
    /// `mapping`: replaces strings.
    Map(Mappings),
    /// `persian`: replaces zero-width non-joiners by spaces.
    Persian,
}

/// Strings and their replacements, the longest string first.
#[derive(Clone, Debug, PartialEq)]
pub struct Mappings(Vec<(String, String)>);

const ZERO_WIDTH_NON_JOINER: char = '\u{200c}';

impl CharacterFilter {
    /// Returns a filter that replaces strings. Where several match, the longest one counts.
    pub fn map(mut mappings: Vec<(String, String)>) -> CharacterFilter {
        mappings.sort_by_key(|(from, _)| std::cmp::Reverse(from.len()));
        CharacterFilter::Map(Mappings(mappings))
    }

    pub(super) fn apply(&self, text: &mut FilteredText<'_>) {
        match self {
            CharacterFilter::StripHtml { ignored_tags } => {
                text.rewrite(|text, target| html::strip(text, ignored_tags, target));
            }
            CharacterFilter::Normalize => text.rewrite(normalize),
            CharacterFilter::Map(mappings) => {
                text.rewrite(|text, target| mappings.apply(text, target))
            }
            CharacterFilter::Persian => text.rewrite(|text, target| {
                for (start, character) in text.char_indices() {
                    if character == ZERO_WIDTH_NON_JOINER {
                        target.replace(start..start + character.len_utf8(), " ");
                    }
                }
            }),
        }
    }
}

impl Mappings {
    fn apply(&self, text: &str, target: &mut Rewrite<'_>) {
        let mut at = 0;
        while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
            match self
                .0
                .iter()
                .find(|(from, _)| rest.starts_with(from.as_str()))
            {
                Some((from, to)) => {
                    target.replace(at..at + from.len(), to);
                    at += from.len();
                }
                None => at += rest.chars().next().map_or(1, char::len_utf8),
            }
        }
    }
}

/// Normalizes each character with the marks that follow it.
fn normalize(text: &str, target: &mut Rewrite<'_>) {
    let mut characters = text.char_indices().peekable();
    while let Some((start, _)) = characters.next() {
        while characters
            .next_if(|(_, next)| is_continuation(*next))
            .is_some()
        {}
        let end = characters.peek().map_or(text.len(), |(end, _)| *end);
        let original = text.get(start..end).unwrap_or_default();
        if original.is_ascii() && !original.bytes().any(|byte| byte.is_ascii_uppercase()) {
            continue;
        }
        let normal: String = original.nfkc().collect();
        let lower = normal.to_lowercase().replace('ß', "ss");
        let folded: String = lower.nfkc().collect();
        if folded != original {
            target.replace(start..end, &folded);
        }
    }
}

/// Returns `true` if a character may become one with the characters before it: marks, and the vowels
/// and final consonants of Hangul.
fn is_continuation(character: char) -> bool {
    canonical_combining_class(character) != 0 || matches!(character, '\u{1160}'..='\u{11ff}')
}

/// A text that character filters have changed.
#[derive(Debug)]
pub struct FilteredText<'t> {
    text: Cow<'t, str>,
    original_bytes: usize,
    /// The changes of each filter.
    changes: Vec<Vec<OffsetPair>>,
}

/// An offset in a changed text, and the same one in the text before. Each replacement has two: its
/// start and its end. Behind that both texts are equal up to the next replacement.
#[derive(Clone, Copy, Debug)]
struct OffsetPair {
    after: usize,
    before: usize,
}

/// Collects the changes of a filter, in order.
pub struct Rewrite<'t> {
    source: &'t str,
    /// The end of what has been copied of the source.
    copied: usize,
    text: String,
    offsets: Vec<OffsetPair>,
}

impl<'t> FilteredText<'t> {
    pub fn new(text: &'t str) -> FilteredText<'t> {
        FilteredText {
            text: Cow::Borrowed(text),
            original_bytes: text.len(),
            changes: Vec::new(),
        }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// Changes the text.
    fn rewrite(&mut self, filter: impl FnOnce(&str, &mut Rewrite<'_>)) {
        let mut rewrite = Rewrite {
            source: &self.text,
            copied: 0,
            text: String::new(),
            offsets: Vec::new(),
        };
        filter(&self.text, &mut rewrite);
        if rewrite.offsets.is_empty() {
            return;
        }
        rewrite.copy_up_to(self.text.len());
        let Rewrite { text, offsets, .. } = rewrite;
        self.text = Cow::Owned(text);
        self.changes.push(offsets);
    }

    /// Returns the range of the original text that a range of this text comes from.
    pub fn original_range(&self, range: Range<usize>) -> Range<usize> {
        let (mut start, mut end) = (range.start, range.end);
        for (number, offsets) in self.changes.iter().enumerate().rev() {
            start = before(offsets, start);
            // The end belongs to the last byte of the range.
            end = if range.is_empty() {
                start
            } else {
                end_before(offsets, end)
            };
            if number == 0 {
                end = end.min(self.original_bytes);
            }
        }
        start..end.max(start)
    }
}

/// Returns the offset in the text before a change. Inside a replacement this is the start of what was
/// replaced.
fn before(offsets: &[OffsetPair], after: usize) -> usize {
    let next = offsets.partition_point(|pair| pair.after <= after);
    let Some((at, pair)) = next
        .checked_sub(1)
        .and_then(|at| Some((at, offsets.get(at)?)))
    else {
        return after;
    };
    if is_replacement(at) {
        pair.before
    } else {
        pair.before + (after - pair.after)
    }
}

/// Returns the end in the text before a change of a range that ends at `after`. Inside a replacement
/// and at its end this is the end of what was replaced.
fn end_before(offsets: &[OffsetPair], after: usize) -> usize {
    let next = offsets.partition_point(|pair| pair.after < after);
    let in_replacement = next.checked_sub(1).is_some_and(is_replacement);
    match offsets.get(next) {
        Some(pair) if in_replacement || pair.after == after => pair.before,
        _ => before(offsets, after),
    }
}

/// Returns `true` if a replacement begins at the pair with this number. It ends at the next one.
fn is_replacement(number: usize) -> bool {
    number.is_multiple_of(2)
}

impl Rewrite<'_> {
    /// Replaces a range of the source, which is behind those before.
    pub fn replace(&mut self, range: Range<usize>, replacement: &str) {
        self.copy_up_to(range.start);
        self.offsets.push(OffsetPair {
            after: self.text.len(),
            before: range.start,
        });
        self.text.push_str(replacement);
        self.offsets.push(OffsetPair {
            after: self.text.len(),
            before: range.end,
        });
        self.copied = range.end;
    }

    fn copy_up_to(&mut self, end: usize) {
        let rest = self.source.get(self.copied..end).unwrap_or_default();
        self.text.push_str(rest);
        self.copied = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filtered<'t>(filters: &[CharacterFilter], text: &'t str) -> FilteredText<'t> {
        let mut filtered = FilteredText::new(text);
        filters
            .iter()
            .for_each(|filter| filter.apply(&mut filtered));
        filtered
    }

    /// Returns the part of the original text that a part of the filtered one comes from.
    fn origin<'t>(filtered: &FilteredText<'t>, text: &'t str, part: &str) -> &'t str {
        let start = filtered.text().find(part).expect("a part of the text");
        &text[filtered.original_range(start..start + part.len())]
    }

    #[test]
    fn the_longest_mapping_counts() {
        let pairs = [("a", "1"), ("ab", "23"), ("é", ""), ("ö", "oe")];
        let pairs = pairs.map(|(from, to)| (from.to_owned(), to.to_owned()));
        let text = "xab aé schön";
        let found = filtered(&[CharacterFilter::map(pairs.to_vec())], text);
        assert_eq!(found.text(), "x23 1 schoen");
        assert_eq!(origin(&found, text, "x23"), "xab");
        assert_eq!(origin(&found, text, "1"), "a");
        assert_eq!(origin(&found, text, "schoen"), "schön");
        assert_eq!(origin(&found, text, "en"), "ön");
    }

    #[test]
    fn normal_forms_keep_their_places() {
        let text = "ＡＢＣ cafe\u{301} ﬁn Straße \u{1100}\u{1161}";
        let found = filtered(&[CharacterFilter::Normalize], text);
        assert_eq!(found.text(), "abc café fin strasse 가");
        assert_eq!(origin(&found, text, "abc"), "ＡＢＣ");
        assert_eq!(origin(&found, text, "café"), "cafe\u{301}");
        assert_eq!(origin(&found, text, "fin"), "ﬁn");
        assert_eq!(origin(&found, text, "strasse"), "Straße");
    }

    #[test]
    fn filters_build_on_each_other() {
        let pairs = vec![("می".to_owned(), "mi".to_owned())];
        let text = "می\u{200c}خواهم می";
        let filters = [CharacterFilter::Persian, CharacterFilter::map(pairs)];
        let found = filtered(&filters, text);
        assert_eq!(found.text(), "mi خواهم mi");
        assert_eq!(origin(&found, text, "mi"), "می");
        assert_eq!(origin(&found, text, "خواهم"), "خواهم");
        let unchanged = filtered(&filters, "abc");
        assert_eq!(unchanged.original_range(1..2), 1..2);
    }
}
