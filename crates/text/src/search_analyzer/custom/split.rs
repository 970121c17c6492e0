//! Tokenizers: rules by which a text is split.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::pattern::Pattern;
use super::word::Word;
use crate::search_analyzer::words;

/// A rule by which a text is split. `units_max` is the number of UTF-16 code units at which longer
/// tokens are split.
#[derive(Clone, Debug, PartialEq)]
pub enum SplitRule {
    /// `standard`: words by Unicode's boundaries.
    Standard {
        /// See [`SplitRule`].
        units_max: usize,
    },
    /// `uaxUrlEmail`: words, addresses of pages and of mail.
    UrlsAndEmails {
        /// See [`SplitRule`].
        units_max: usize,
    },
    /// `whitespace`: what is between white space.
    Whitespace {
        /// See [`SplitRule`].
        units_max: usize,
    },
    /// `keyword`: the whole text.
    Keyword,
    /// `nGram`: all parts of the text with these lengths.
    Grams(GramLengths),
    /// `edgeGram`: the beginnings of the text with these lengths.
    EdgeGrams(GramLengths),
    /// `regexCaptureGroup`: what a group of the pattern matches.
    Captures {
        /// The pattern.
        pattern: Pattern,
        /// The number of the group. 0 is the whole match.
        group: usize,
    },
    /// `regexSplit`: what is between the matches of the pattern.
    Between(Pattern),
}

/// The lengths of grams, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GramLengths {
    /// The least length.
    pub min: usize,
    /// The greatest length.
    pub max: usize,
}

/// An address of a page or of mail. Words are split where none is.
static ADDRESS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let pattern = concat!(
        r"(?i)\b(?:https?|ftp|file)://[^\s<>\x22'(){}\[\]|\\^`]*[^\s<>\x22'(){}\[\]|\\^`.,;:!?]",
        r"|\b(?:mailto:)?[a-z0-9._%+!#$&*/=?^{|}~-]+@(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}\b",
        r"|\b(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+(?:com|org|net|edu|gov|info|io|de|fr|uk|eu)\b",
        r"(?:/[^\s<>\x22'(){}\[\]|\\^`]*[^\s<>\x22'(){}\[\]|\\^`.,;:!?])?",
    );
    Regex::new(pattern).ok()
});

impl SplitRule {
    /// Calls `take` with each word of the text, at most `most` grams.
    pub(super) fn words(&self, text: &str, most: u32, take: &mut dyn FnMut(Word)) {
        match self {
            SplitRule::Standard { units_max } => standard(text, 0..text.len(), *units_max, take),
            SplitRule::UrlsAndEmails { units_max } => addresses(text, *units_max, take),
            SplitRule::Whitespace { units_max } => {
                let is_part = |character| !words::is_space(character);
                words::runs(text, is_part, &mut |token| {
                    pieces(text, token.range, *units_max, take);
                });
            }
            SplitRule::Keyword if text.is_empty() => {}
            SplitRule::Keyword => take(Word::at(text, 0..text.len())),
            SplitRule::Grams(lengths) => {
                let starts = text.char_indices().map(|(start, _)| start);
                let mut left = most;
                for start in starts {
                    for end in lengths.ends(text, start) {
                        if left == 0 {
                            return;
                        }
                        left -= 1;
                        take(Word::at(text, start..end));
                    }
                }
            }
            SplitRule::EdgeGrams(lengths) => {
                for end in lengths.ends(text, 0) {
                    take(Word::at(text, 0..end));
                }
            }
            SplitRule::Captures { pattern, group } => {
                for captures in pattern.0.captures_iter(text) {
                    let found = captures.get(*group).filter(|found| !found.is_empty());
                    if let Some(found) = found {
                        take(Word::at(text, found.range()));
                    }
                }
            }
            SplitRule::Between(pattern) => {
                let mut start = 0;
                for found in pattern.0.find_iter(text) {
                    if found.start() > start {
                        take(Word::at(text, start..found.start()));
                    }
                    start = found.end();
                }
                if start < text.len() {
                    take(Word::at(text, start..text.len()));
                }
            }
        }
    }
}

impl GramLengths {
    /// Returns the ends of the grams that begin at `start`, in increasing order.
    pub(super) fn ends(self, text: &str, start: usize) -> impl Iterator<Item = usize> {
        let rest = text.get(start..).unwrap_or_default();
        let ends = rest
            .char_indices()
            .map(move |(at, one)| start + at + one.len_utf8());
        let least = self.min.max(1);
        let count = (self.max + 1).saturating_sub(least);
        ends.skip(least - 1).take(count)
    }
}

/// Passes the words of a part of the text.
fn standard(text: &str, part: Range<usize>, units_max: usize, take: &mut dyn FnMut(Word)) {
    let start = part.start;
    let part = text.get(part).unwrap_or_default();
    words::standard(part, &mut |token, _| {
        let range = start + token.range.start..start + token.range.end;
        pieces(text, range, units_max, take);
    });
}

/// Passes addresses, and the words between them.
fn addresses(text: &str, units_max: usize, take: &mut dyn FnMut(Word)) {
    let mut start = 0;
    for found in ADDRESS.iter().flat_map(|pattern| pattern.find_iter(text)) {
        standard(text, start..found.start(), units_max, take);
        pieces(text, found.range(), units_max, take);
        start = found.end();
    }
    standard(text, start..text.len(), units_max, take);
}

/// Passes a word, in pieces if it is too long.
fn pieces(text: &str, range: Range<usize>, units_max: usize, take: &mut dyn FnMut(Word)) {
    let mut start = range.start;
    while let Some(rest) = text.get(start..range.end).filter(|rest| !rest.is_empty()) {
        let end = start + words::piece_length(rest, units_max);
        take(Word::at(text, start..end));
        start = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rule: &SplitRule, text: &str, expected: &[&str]) {
        let mut found = Vec::new();
        rule.words(text, 1_000, &mut |word| {
            assert_eq!(word.term, text[word.range.clone()]);
            found.push(word.term);
        });
        assert_eq!(found, expected, "{rule:?} of {text:?}");
    }

    fn pattern(pattern: &str) -> Pattern {
        Pattern::new(pattern).unwrap()
    }

    #[test]
    fn texts_are_split_by_each_rule() {
        let units_max = 4;
        check(
            &SplitRule::Standard { units_max },
            "Don't stop",
            &["Don'", "t", "stop"],
        );
        check(
            &SplitRule::Whitespace { units_max },
            " a-b\tcdefghij ",
            &["a-b", "cdef", "ghij"],
        );
        check(&SplitRule::Keyword, "a b", &["a b"]);
        check(&SplitRule::Keyword, "", &[]);
        let lengths = GramLengths { min: 2, max: 3 };
        check(
            &SplitRule::Grams(lengths),
            "äbcd",
            &["äb", "äbc", "bc", "bcd", "cd"],
        );
        check(&SplitRule::EdgeGrams(lengths), "äb cd", &["äb", "äb "]);
        check(&SplitRule::EdgeGrams(lengths), "a", &[]);
        let none = GramLengths { min: 0, max: 0 };
        check(&SplitRule::Grams(none), "abc", &[]);
        let captures = |group| SplitRule::Captures {
            pattern: pattern("#([a-z]*)"),
            group,
        };
        check(&captures(1), "#one # #two", &["one", "two"]);
        check(&captures(0), "#one # #two", &["#one", "#", "#two"]);
        check(
            &SplitRule::Between(pattern("[-. ]+")),
            "-a.b - c",
            &["a", "b", "c"],
        );
        check(&SplitRule::Between(pattern("x*")), "abc", &["a", "b", "c"]);
    }

    #[test]
    fn the_number_of_grams_is_limited() {
        let rule = SplitRule::Grams(GramLengths { min: 1, max: 2 });
        let mut found = 0;
        rule.words("abcdef", 5, &mut |_| found += 1);
        assert_eq!(found, 5);
    }

    #[test]
    fn addresses_stay_whole() {
        let rule = SplitRule::UrlsAndEmails { units_max: 255 };
        check(
            &rule,
            "See https://example.com/a?b=c, or mail to jane.doe+x@mail.example.org. Not a@b!",
            &[
                "See",
                "https://example.com/a?b=c",
                "or",
                "mail",
                "to",
                "jane.doe+x@mail.example.org",
                "Not",
                "a",
                "b",
            ],
        );
        check(
            &rule,
            "on example.com/path today",
            &["on", "example.com/path", "today"],
        );
    }
}
