//! Custom analyzers: character filters, a tokenizer and token filters that a client combines
//! (<https://www.mongodb.com/docs/search/analyzers/custom/>).
//!
//! - `characters`: character filters change the text before it is split, `html` those of HTML. A
//!   `filtered_text` knows where the original characters were.
//! - `split`: tokenizers.
//! - `filters`: token filters, a chain through which each token goes. `parts`
//!   (`wordDelimiterGraph`) and `folding` (`asciiFolding`) are two larger ones.

mod characters;
mod filtered_text;
mod filters;
mod folding;
mod html;
mod parts;
mod pattern;
mod split;
mod word;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

pub use characters::CharacterFilter;
pub use filters::{NormalForm, Original, TokenFilter};
pub use parts::PartRules;
pub use pattern::Pattern;
pub use split::{GramLengths, SplitRule};

use super::{Token, VisitToken};
use filtered_text::FilteredText;
use filters::Chain;
use word::Word;

/// The maximum number of tokens of a text. The others are left out: the grams of a long text could
/// be too many.
const TOKENS_MAX: u32 = 20_000_000;

/// An analyzer that a client defined. Cheap to clone.
#[derive(Clone)]
pub struct CustomAnalyzer(Arc<AnalyzerRules>);

/// The definition of a custom analyzer.
#[derive(Debug, PartialEq)]
pub struct AnalyzerRules {
    /// The name by which fields refer to it.
    pub name: String,
    /// What changes the text before it is split, in order.
    pub character_filters: Vec<CharacterFilter>,
    /// What splits the text.
    pub split: SplitRule,
    /// What changes the tokens, in order.
    pub token_filters: Vec<TokenFilter>,
}

impl CustomAnalyzer {
    /// Makes an analyzer of a definition.
    pub fn new(rules: AnalyzerRules) -> CustomAnalyzer {
        CustomAnalyzer(Arc::new(rules))
    }

    /// Returns the name by which fields refer to the analyzer.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Calls `visit` with each token of `text`.
    pub(super) fn tokens(&self, text: &str, visit: &mut VisitToken<'_>) {
        let text = self.filter_characters(text);
        let (mut words, mut left) = (0_u32, TOKENS_MAX);
        let mut chain = Chain::new(&self.0.token_filters);
        let mut visit = |word: Word| {
            if left == 0 {
                return;
            }
            left -= 1;
            words = words.saturating_add(word.increment);
            visit(Token {
                term: &word.term,
                range: text.original_range(word.range),
                position: words.saturating_sub(1),
            });
        };
        self.0.split.words(text.text(), TOKENS_MAX, &mut |word| {
            chain.push(word, &mut visit);
        });
        chain.finish(&mut visit);
    }

    /// Appends a pattern or a part of a word in the form of the terms that it is compared with: the
    /// filters take it as one token.
    pub(super) fn normalize(&self, text: &str, into: &mut String) {
        let text = self.filter_characters(text);
        let whole = Word {
            term: text.text().to_owned(),
            range: 0..text.text().len(),
            increment: 1,
        };
        let mut first: Option<String> = None;
        let mut chain = Chain::new(&self.0.token_filters);
        let mut take = |word: Word| {
            first.get_or_insert(word.term);
        };
        chain.push(whole, &mut take);
        chain.finish(&mut take);
        into.push_str(&first.unwrap_or_default());
    }

    fn filter_characters<'t>(&self, text: &'t str) -> FilteredText<'t> {
        let mut filtered = FilteredText::new(text);
        for filter in &self.0.character_filters {
            filter.apply(&mut filtered);
        }
        filtered
    }
}

impl fmt::Debug for CustomAnalyzer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// Analyzers are equal if their definitions are.
impl PartialEq for CustomAnalyzer {
    fn eq(&self, other: &CustomAnalyzer) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl Eq for CustomAnalyzer {}

impl Hash for CustomAnalyzer {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.name.hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::Language;
    use std::ops::Range;

    fn analyzer(
        character_filters: Vec<CharacterFilter>,
        split: SplitRule,
        token_filters: Vec<TokenFilter>,
    ) -> CustomAnalyzer {
        CustomAnalyzer::new(AnalyzerRules {
            name: "own".to_owned(),
            character_filters,
            split,
            token_filters,
        })
    }

    fn tokens(analyzer: &CustomAnalyzer, text: &str) -> Vec<(String, Range<usize>, u32)> {
        let mut found = Vec::new();
        analyzer.tokens(text, &mut |token| {
            found.push((token.term.to_owned(), token.range, token.position));
        });
        found
    }

    #[test]
    fn filters_are_applied_in_order() {
        let english = TokenFilter::Stem(Language::ENGLISH);
        let standard = || SplitRule::Standard { units_max: 255 };
        let own = analyzer(
            vec![CharacterFilter::StripHtml {
                ignored_tags: vec![],
            }],
            standard(),
            vec![TokenFilter::Lowercase, english.clone()],
        );
        let text = "<p>The &lt;Running&gt; dogs</p>";
        let found = tokens(&own, text);
        let terms: Vec<&str> = found.iter().map(|(term, ..)| term.as_str()).collect();
        assert_eq!(terms, ["the", "run", "dog"]);
        let parts: Vec<&str> = found
            .iter()
            .map(|(_, range, _)| &text[range.clone()])
            .collect();
        assert_eq!(parts[0], "The");
        assert_eq!(parts[2], "dogs");
        // Stems of words in capitals are others.
        let other = analyzer(vec![], standard(), vec![english, TokenFilter::Lowercase]);
        assert_eq!(tokens(&other, "RUNNING")[0].0, "running");
    }

    #[test]
    fn removed_words_leave_their_positions() {
        let words = ["of", "THE"].map(str::to_owned);
        let own = analyzer(
            vec![],
            SplitRule::Whitespace { units_max: 255 },
            vec![TokenFilter::stop_words(words, true)],
        );
        let found = tokens(&own, "The end OF the world");
        assert_eq!(
            found,
            [("end".into(), 4..7, 1), ("world".into(), 15..20, 4)]
        );
    }

    /// Random texts, all character filters, and token filters that split and join.
    #[test]
    fn ranges_are_parts_of_the_original_text() {
        const PARTS: [&str; 16] = [
            "<b>", "</p>", "<!--", "-->", "&amp;", "&#233;", "&x", "e\u{301}", "ﬁ", "Wi-Fi", "a1",
            " ", "\u{200c}", "ß", "東", "<script>",
        ];
        let lengths = GramLengths { min: 1, max: 3 };
        let own = analyzer(
            vec![
                CharacterFilter::StripHtml {
                    ignored_tags: vec![],
                },
                CharacterFilter::Normalize,
                CharacterFilter::map(vec![("fi".to_owned(), "Φ".to_owned())]).unwrap(),
                CharacterFilter::Persian,
            ],
            SplitRule::Whitespace { units_max: 5 },
            vec![
                TokenFilter::Parts(PartRules {
                    joins_all: true,
                    ..PartRules::default()
                }),
                TokenFilter::Grams {
                    lengths,
                    original: Original::Include,
                },
                TokenFilter::Shingles { min: 2, max: 3 },
            ],
        );
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 20) as usize % below
        };
        let mut found = 0;
        for _ in 0..5_000 {
            let text: String = (0..next(12)).map(|_| PARTS[next(PARTS.len())]).collect();
            let mut last = 0;
            own.tokens(&text, &mut |token| {
                assert!(
                    text.get(token.range.clone()).is_some(),
                    "{token:?} of {text:?}"
                );
                assert!(token.position >= last, "{token:?} of {text:?}");
                last = token.position;
                found += 1;
            });
        }
        assert!(found > 5_000);
    }

    #[test]
    fn patterns_go_through_all_filters() {
        let map = CharacterFilter::map(vec![("-".to_owned(), String::new())]).unwrap();
        let own = analyzer(
            vec![map],
            SplitRule::Keyword,
            vec![TokenFilter::Lowercase, TokenFilter::Fold],
        );
        let mut normalized = String::new();
        own.normalize("ÉTÉ-*", &mut normalized);
        assert_eq!(normalized, "ete*");
    }

    #[test]
    fn analyzers_are_equal_by_their_definitions() {
        let split = |pattern: &str| SplitRule::Between(Pattern::new(pattern).unwrap());
        let one = analyzer(vec![], split("[-. ]+"), vec![]);
        assert_eq!(one, analyzer(vec![], split("[-. ]+"), vec![]));
        assert_ne!(one, analyzer(vec![], split("[-.]+"), vec![]));
        assert!(Pattern::new("(").is_err() && Pattern::new("(?=a)").is_err());
        assert_eq!(tokens(&one, "a-b. c").len(), 3);
    }
}
