//! Character filters.

use aho_corasick::{AhoCorasick, MatchKind};
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::canonical_combining_class;

use super::filtered_text::{FilteredText, Rewrite};
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

/// Strings and their replacements.
#[derive(Clone, Debug)]
pub struct Mappings {
    pairs: Vec<(String, String)>,
    /// Finds the strings, in time linear in the text.
    automaton: AhoCorasick,
}

impl PartialEq for Mappings {
    fn eq(&self, other: &Mappings) -> bool {
        self.pairs == other.pairs
    }
}

const ZERO_WIDTH_NON_JOINER: char = '\u{200c}';

impl CharacterFilter {
    /// Returns a filter that replaces strings. Where several match, the longest one counts. Fails
    /// with a sentence if there are too many.
    pub fn map(pairs: Vec<(String, String)>) -> Result<CharacterFilter, String> {
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(pairs.iter().map(|(from, _)| from));
        match automaton {
            Ok(automaton) => Ok(CharacterFilter::Map(Mappings { pairs, automaton })),
            Err(error) => Err(error.to_string()),
        }
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
        for found in self.automaton.find_iter(text) {
            if let Some((_, to)) = self.pairs.get(found.pattern().as_usize()) {
                target.replace(found.range(), to);
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

/// Returns `true` if a character may become one with the characters before it: marks, and the
/// vowels and final consonants of Hangul.
fn is_continuation(character: char) -> bool {
    canonical_combining_class(character) != 0 || matches!(character, '\u{1160}'..='\u{11ff}')
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
        let found = filtered(&[CharacterFilter::map(pairs.to_vec()).unwrap()], text);
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
        let filters = [
            CharacterFilter::Persian,
            CharacterFilter::map(pairs).unwrap(),
        ];
        let found = filtered(&filters, text);
        assert_eq!(found.text(), "mi خواهم mi");
        assert_eq!(origin(&found, text, "mi"), "می");
        assert_eq!(origin(&found, text, "خواهم"), "خواهم");
        let unchanged = filtered(&filters, "abc");
        assert_eq!(unchanged.original_range(1..2), 1..2);
    }
}
