//! The parts of tokens: the token filter `wordDelimiterGraph`.
//!
//! A token is split at characters that are neither letters nor digits, where small letters are
//! followed by capitals, and between letters and digits. Parts, and parts that are joined, are
//! tokens.

use std::collections::HashSet;
use std::ops::Range;

use super::word::{Word, without_possessive};

/// The options of the filter.
#[derive(Clone, Debug, PartialEq)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "these are MongoDB's options, and all their combinations are allowed"
)]
pub struct PartRules {
    /// `generateWordParts`: parts with letters are tokens.
    pub has_words: bool,
    /// `generateNumberParts`: parts with digits are tokens.
    pub has_numbers: bool,
    /// `concatenateWords`: adjacent parts with letters are joined.
    pub joins_words: bool,
    /// `concatenateNumbers`: adjacent parts with digits are joined.
    pub joins_numbers: bool,
    /// `concatenateAll`: all parts are joined.
    pub joins_all: bool,
    /// `preserveOriginal`: the token stays.
    pub keeps_original: bool,
    /// `splitOnCaseChange`.
    pub splits_cases: bool,
    /// `splitOnNumerics`.
    pub splits_numbers: bool,
    /// `stemEnglishPossessive`: without `'s` at the end of parts.
    pub removes_possessive: bool,
    /// `protectedWords`: these stay as they are.
    pub protected: HashSet<String>,
    /// `true` if the case of protected words does not matter. They are in lower case then.
    pub ignores_case: bool,
}

impl Default for PartRules {
    fn default() -> PartRules {
        PartRules {
            has_words: true,
            has_numbers: true,
            joins_words: false,
            joins_numbers: false,
            joins_all: false,
            keeps_original: false,
            splits_cases: true,
            splits_numbers: true,
            removes_possessive: true,
            protected: HashSet::new(),
            ignores_case: true,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Lower,
    Upper,
    Digit,
    Delimiter,
}

/// A part of a token.
struct Part {
    range: Range<usize>,
    is_number: bool,
}

impl Part {
    /// Returns the option for the kind of the part.
    fn choose(&self, words: bool, numbers: bool) -> bool {
        if self.is_number { numbers } else { words }
    }
}

/// A token of some parts.
struct Joined {
    /// The number of the first part.
    first: usize,
    term: String,
    range: Range<usize>,
}

impl PartRules {
    /// Passes the tokens of a word. Returns the step that the next token has in addition, if there
    /// are none.
    pub(super) fn parts(&self, word: Word, take: &mut dyn FnMut(Word)) -> u32 {
        if self.is_protected(&word.term) {
            take(word);
            return 0;
        }
        let parts = self.split(&word.term);
        let is_whole = |part: &Part| part.range == (0..word.term.len());
        if parts.len() == 1 && parts.iter().all(is_whole) {
            take(word);
            return 0;
        }
        let tokens = self.joined(&word.term, &parts);
        let offset = word.range.start;
        // Character filters and other token filters may have changed the length.
        let is_exact = word.range.len() == word.term.len();
        let (mut increment, mut last) = (word.increment, 0);
        if self.keeps_original {
            take(word.clone());
            increment = 0;
        }
        for token in tokens {
            increment += (token.first - last) as u32;
            last = token.first;
            let range = if is_exact {
                offset + token.range.start..offset + token.range.end
            } else {
                word.range.clone()
            };
            take(Word {
                term: token.term,
                range,
                increment,
            });
            increment = 0;
        }
        increment
    }

    fn is_protected(&self, term: &str) -> bool {
        if self.ignores_case {
            !self.protected.is_empty() && self.protected.contains(&term.to_lowercase())
        } else {
            self.protected.contains(term)
        }
    }

    fn split(&self, term: &str) -> Vec<Part> {
        let mut parts: Vec<Part> = Vec::new();
        let mut last = Kind::Delimiter;
        for (start, character) in term.char_indices() {
            let kind = kind(character);
            let end = start + character.len_utf8();
            match parts.last_mut() {
                _ if kind == Kind::Delimiter => {}
                Some(part) if part.range.end == start && !self.is_border(last, kind) => {
                    part.range.end = end;
                }
                _ => parts.push(Part {
                    range: start..end,
                    is_number: kind == Kind::Digit,
                }),
            }
            last = kind;
        }
        if self.removes_possessive {
            remove_possessives(term, &mut parts);
        }
        parts
    }

    fn is_border(&self, last: Kind, next: Kind) -> bool {
        match (last, next) {
            (Kind::Lower, Kind::Upper) => self.splits_cases,
            (Kind::Digit, Kind::Lower | Kind::Upper) | (Kind::Lower | Kind::Upper, Kind::Digit) => {
                self.splits_numbers
            }
            _ => false,
        }
    }

    /// Returns the tokens of the parts, each once, in their order.
    fn joined(&self, term: &str, parts: &[Part]) -> Vec<Joined> {
        let join = |numbers: Range<usize>| {
            let ranges = || {
                parts
                    .get(numbers.clone())
                    .unwrap_or(&[])
                    .iter()
                    .map(|it| it.range.clone())
            };
            let start = ranges().next().map_or(0, |range| range.start);
            Joined {
                first: numbers.start,
                term: ranges().filter_map(|range| term.get(range)).collect(),
                range: start..ranges().next_back().map_or(start, |range| range.end),
            }
        };
        let mut wanted: Vec<Range<usize>> = Vec::new();
        for (number, part) in parts.iter().enumerate() {
            if part.choose(self.has_words, self.has_numbers) {
                wanted.push(number..number + 1);
            }
        }
        let mut start = 0;
        for run in parts.chunk_by(|one, other| one.is_number == other.is_number) {
            let joins = |part: &Part| part.choose(self.joins_words, self.joins_numbers);
            if run.first().is_some_and(joins) {
                wanted.push(start..start + run.len());
            }
            start += run.len();
        }
        if self.joins_all && !parts.is_empty() {
            wanted.push(0..parts.len());
        }
        // The longest of the tokens that begin at a part is the first.
        wanted.sort_by_key(|parts| (parts.start, std::cmp::Reverse(parts.end)));
        wanted.dedup();
        wanted.into_iter().map(join).collect()
    }
}

fn kind(character: char) -> Kind {
    match character {
        one if one.is_uppercase() => Kind::Upper,
        one if one.is_alphabetic() => Kind::Lower,
        one if one.is_numeric() => Kind::Digit,
        _ => Kind::Delimiter,
    }
}

/// Removes parts that are the `s` behind an apostrophe, at the end or before another delimiter.
fn remove_possessives(term: &str, parts: &mut Vec<Part>) {
    parts.retain(|part| {
        let up_to_end = term.get(..part.range.end).unwrap_or_default();
        let is_s = matches!(term.get(part.range.clone()), Some("s" | "S"));
        let is_behind_word = without_possessive(up_to_end).ends_with(char::is_alphanumeric);
        !(is_s && without_possessive(up_to_end) != up_to_end && is_behind_word)
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rules: &PartRules, term: &str, expected: &[(&str, u32)]) {
        let (mut found, mut position) = (Vec::new(), 0);
        rules.parts(Word::at(term, 0..term.len()), &mut |word| {
            position += word.increment;
            found.push((word.term, position));
        });
        let expected: Vec<_> = expected
            .iter()
            .map(|(term, at)| ((*term).to_owned(), *at))
            .collect();
        assert_eq!(found, expected, "{rules:?} of {term:?}");
    }

    #[test]
    fn tokens_are_split_into_parts() {
        let rules = PartRules::default();
        check(&rules, "wi-fi", &[("wi", 1), ("fi", 2)]);
        check(
            &rules,
            "PowerShot2000",
            &[("Power", 1), ("Shot", 2), ("2000", 3)],
        );
        check(&rules, "Jane's/car", &[("Jane", 1), ("car", 2)]);
        check(&rules, "plain", &[("plain", 1)]);
        check(&rules, "--", &[]);
        check(&rules, "XMLHttp", &[("XMLHttp", 1)]);
        let whole = PartRules {
            splits_cases: false,
            splits_numbers: false,
            removes_possessive: false,
            ..PartRules::default()
        };
        check(&whole, "PowerShot2000", &[("PowerShot2000", 1)]);
        check(&whole, "it's", &[("it", 1), ("s", 2)]);
    }

    #[test]
    fn parts_are_joined() {
        let rules = PartRules {
            joins_words: true,
            joins_numbers: true,
            joins_all: true,
            keeps_original: true,
            ..PartRules::default()
        };
        check(
            &rules,
            "wi-fi-80-2",
            &[
                ("wi-fi-80-2", 1),
                ("wifi802", 1),
                ("wifi", 1),
                ("wi", 1),
                ("fi", 2),
                ("802", 3),
                ("80", 3),
                ("2", 4),
            ],
        );
        let only_all = PartRules {
            has_words: false,
            has_numbers: false,
            joins_all: true,
            ..PartRules::default()
        };
        check(&only_all, "wi-fi-80", &[("wifi80", 1)]);
    }

    /// Time that grows with the square of the number of parts would be minutes.
    #[test]
    fn a_token_has_many_parts() {
        let rules = PartRules {
            joins_words: true,
            joins_all: true,
            ..PartRules::default()
        };
        let (term, mut found) = ("a-1.".repeat(300_000), 0);
        rules.parts(Word::at(&term, 0..term.len()), &mut |_| found += 1);
        assert_eq!(found, 600_001);
    }

    #[test]
    fn protected_words_stay() {
        let rules = PartRules {
            protected: HashSet::from(["wi-fi".to_owned()]),
            ..PartRules::default()
        };
        check(&rules, "Wi-Fi", &[("Wi-Fi", 1)]);
        let sensitive = PartRules {
            ignores_case: false,
            ..rules
        };
        check(&sensitive, "Wi-Fi", &[("Wi", 1), ("Fi", 2)]);
    }
}
