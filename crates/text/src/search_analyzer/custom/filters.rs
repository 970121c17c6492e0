//! Token filters, and the chain of the filters of an analyzer.
//!
//! A filter takes one token at a time and passes none, one or several. Tokens have the step from
//! the position of the token before, so a filter that leaves one out adds its step to the next one.

use std::collections::{HashSet, VecDeque};

use unicode_normalization::UnicodeNormalization;

use super::folding::ascii;
use super::parts::PartRules;
use super::pattern::Pattern;
use super::split::GramLengths;
use super::word::{Word, without_possessive};
use crate::characters::WordCase;
use crate::language::Language;
use crate::search_analyzer::file_words;
use crate::search_analyzer::lower_into;
use crate::stem::Stemmer;

/// A filter that changes tokens.
#[derive(Clone, Debug, PartialEq)]
pub enum TokenFilter {
    /// `asciiFolding`: the ASCII characters that resemble others.
    FoldToAscii(Original),
    /// `icuFolding`: without differences of case and diacritics.
    Fold,
    /// `icuNormalizer`: a Unicode normal form.
    Normalize(NormalForm),
    /// `lowercase`.
    Lowercase,
    /// `trim`: without white space at both ends.
    Trim,
    /// `reverse`: the characters in reverse order.
    Reverse,
    /// `englishPossessive`: without `'s` at the end.
    WithoutPossessive,
    /// `length`: only tokens whose number of characters is within limits.
    Length {
        /// The least number.
        min: usize,
        /// The greatest number.
        max: usize,
    },
    /// `stopword`: without these words. Created by [`TokenFilter::stop_words`].
    WithoutWords {
        /// The words, in lower case if case does not matter.
        words: HashSet<String>,
        /// `true` if case does not matter.
        ignores_case: bool,
    },
    /// `regex`: matches of a pattern are replaced.
    Replace {
        /// The pattern.
        pattern: Pattern,
        /// The replacement, with references to groups such as `$1`.
        replacement: String,
        /// `true` if only the first match is replaced.
        is_first_only: bool,
    },
    /// `nGram`: the parts of each token. `original` says if a token out of bounds stays.
    Grams {
        /// The lengths of the parts.
        lengths: GramLengths,
        /// Whether a token that is shorter or longer is passed, too.
        original: Original,
    },
    /// `edgeGram`: the beginnings of each token.
    EdgeGrams {
        /// The lengths of the beginnings.
        lengths: GramLengths,
        /// Whether a token that is shorter or longer is passed, too.
        original: Original,
    },
    /// `shingle`: adjacent tokens, joined by spaces.
    Shingles {
        /// The least number of tokens, at least 2.
        min: usize,
        /// The greatest number of tokens.
        max: usize,
    },
    /// `snowballStemming`.
    Stem(Language),
    /// `removeDuplicates`: one of equal tokens at a position.
    WithoutDuplicates,
    /// `wordDelimiterGraph`: the parts of each token.
    Parts(PartRules),
}

/// Whether the token that a filter has changed is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Original {
    /// Only the changed form is passed.
    Omit,
    /// Both are.
    Include,
}

/// A Unicode normal form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are Unicode's")]
pub enum NormalForm {
    Nfc,
    Nfd,
    Nfkc,
    Nfkd,
}

impl TokenFilter {
    /// Returns a filter that leaves out words.
    pub fn stop_words(words: impl IntoIterator<Item = String>, ignores_case: bool) -> TokenFilter {
        let form = |word: String| {
            if ignores_case {
                word.to_lowercase()
            } else {
                word
            }
        };
        TokenFilter::WithoutWords {
            words: words.into_iter().map(form).collect(),
            ignores_case,
        }
    }
}

/// The filters of an analyzer while they read one text.
pub struct Chain<'f>(Vec<Stage<'f>>);

/// One filter, with what it has to remember between tokens.
struct Stage<'f> {
    filter: &'f TokenFilter,
    stemmer: Option<Stemmer>,
    /// The steps of the tokens that were left out.
    skipped: u32,
    /// The last tokens: those of the shingles that are not complete, or those at the position.
    last: VecDeque<Word>,
}

type Take<'t> = &'t mut dyn FnMut(Word);

/// Stands for a token that is missing in a shingle.
const FILLER: &str = "_";

impl<'f> Chain<'f> {
    pub fn new(filters: &'f [TokenFilter]) -> Chain<'f> {
        let stage = |filter: &'f TokenFilter| Stage {
            filter,
            stemmer: match filter {
                TokenFilter::Stem(language) => Some(Stemmer::new(language.grammar)),
                _ => None,
            },
            skipped: 0,
            last: VecDeque::new(),
        };
        Chain(filters.iter().map(stage).collect())
    }

    /// Passes a token through all filters.
    pub fn push(&mut self, word: Word, take: Take<'_>) {
        push(&mut self.0, word, take);
    }

    /// Passes what filters have kept, at the end of the text.
    pub fn finish(&mut self, take: Take<'_>) {
        let mut stages = self.0.as_mut_slice();
        while let Some((first, rest)) = stages.split_first_mut() {
            first.finish(&mut |word| push(rest, word, take));
            stages = rest;
        }
    }
}

fn push(stages: &mut [Stage<'_>], word: Word, take: Take<'_>) {
    match stages.split_first_mut() {
        None => take(word),
        Some((first, rest)) => first.push(word, &mut |word| push(rest, word, take)),
    }
}

/// Passes the folded word on, after the original if that is to be included and differs.
fn fold_to_ascii(original: Original, word: Word, take: Take<'_>) {
    let folded = ascii(&word.term);
    let keeps = original == Original::Include && folded != word.term;
    let increment = if keeps { 0 } else { word.increment };
    let folded = word.with(folded.into_owned(), increment);
    if keeps {
        take(word);
    }
    take(folded);
}

impl Stage<'_> {
    fn push(&mut self, mut word: Word, take: Take<'_>) {
        word.increment = word.increment.saturating_add(self.skipped);
        self.skipped = 0;
        match self.filter {
            TokenFilter::FoldToAscii(original) => fold_to_ascii(*original, word, take),
            TokenFilter::Fold => {
                change(word, take, |term| file_words::normalized(term).into_owned())
            }
            TokenFilter::Normalize(form) => change(word, take, |term| form.normalize(term)),
            TokenFilter::Lowercase => change(word, take, |term| {
                let mut lower = String::with_capacity(term.len());
                lower_into(term, false, &mut lower);
                lower
            }),
            TokenFilter::Trim => change(word, take, |term| term.trim().to_owned()),
            TokenFilter::Reverse => change(word, take, |term| term.chars().rev().collect()),
            TokenFilter::WithoutPossessive => {
                change(word, take, |term| without_possessive(term).to_owned());
            }
            TokenFilter::Length { min, max } => {
                let length = word.term.chars().count();
                self.keep_if((*min..=*max).contains(&length), word, take);
            }
            TokenFilter::WithoutWords {
                words,
                ignores_case,
            } => {
                let is_stop_word = if *ignores_case {
                    words.contains(&word.term.to_lowercase())
                } else {
                    words.contains(&word.term)
                };
                self.keep_if(!is_stop_word, word, take);
            }
            TokenFilter::Replace {
                pattern,
                replacement,
                is_first_only,
            } => {
                let most = usize::from(*is_first_only);
                change(word, take, |term| {
                    pattern
                        .0
                        .replacen(term, most, replacement.as_str())
                        .into_owned()
                });
            }
            TokenFilter::Grams { lengths, original } => {
                self.grams(*lengths, *original, true, &word, take)
            }
            TokenFilter::EdgeGrams { lengths, original } => {
                self.grams(*lengths, *original, false, &word, take);
            }
            TokenFilter::Shingles { min, max } => self.shingle(*min, *max, word, take),
            TokenFilter::Stem(_) => self.stem(word, take),
            TokenFilter::WithoutDuplicates => self.keep_if_new(word, take),
            TokenFilter::Parts(rules) => self.skipped = rules.parts(word, take),
        }
    }

    fn stem(&mut self, word: Word, take: Take<'_>) {
        let stemmer = &mut self.stemmer;
        change(word, take, |term| match stemmer {
            Some(stemmer) => {
                let is_lower = term.bytes().all(|byte| byte.is_ascii_lowercase());
                let case = WordCase::from_is_lower_ascii(is_lower);
                stemmer.stem(term, case).to_owned()
            }
            None => term.to_owned(),
        });
    }

    /// Passes the word on unless an equal one was at the same position.
    fn keep_if_new(&mut self, word: Word, take: Take<'_>) {
        if word.increment > 0 {
            self.last.clear();
        }
        if !self.last.iter().any(|last| last.term == word.term) {
            self.last.push_back(word.clone());
            take(word);
        }
    }

    fn keep_if(&mut self, is_kept: bool, word: Word, take: Take<'_>) {
        if is_kept {
            take(word);
        } else {
            self.skipped = word.increment;
        }
    }

    /// Passes the grams of a word: those at its beginning, or `all`.
    fn grams(
        &mut self,
        lengths: GramLengths,
        original: Original,
        all: bool,
        word: &Word,
        take: Take<'_>,
    ) {
        let mut increment = word.increment;
        let mut pass = |term: &str| {
            take(word.with(term.to_owned(), increment));
            increment = 0;
        };
        let starts = word.term.char_indices().map(|(start, _)| start);
        for start in starts.take(if all { usize::MAX } else { 1 }) {
            for end in lengths.ends(&word.term, start) {
                pass(word.term.get(start..end).unwrap_or_default());
            }
        }
        let length = word.term.chars().count();
        let is_in_bounds = (lengths.min..=lengths.max).contains(&length);
        if original == Original::Include && !is_in_bounds {
            pass(&word.term);
        }
        self.skipped = increment;
    }

    /// Adds a word to the shingles, and passes those that begin where no other word can be added.
    fn shingle(&mut self, min: usize, max: usize, mut word: Word, take: Take<'_>) {
        let missing = word.increment.saturating_sub(1);
        let fillers = missing.min(u32::try_from(max).unwrap_or(u32::MAX));
        for _ in 0..fillers {
            let filler = Word {
                range: word.range.start..word.range.start,
                ..word.with(FILLER.to_owned(), 1)
            };
            self.add_to_shingles(min, max, filler, take);
        }
        // No shingle reaches over more missing words.
        self.skipped += missing - fillers;
        word.increment = 1;
        self.add_to_shingles(min, max, word, take);
    }

    fn add_to_shingles(&mut self, min: usize, max: usize, word: Word, take: Take<'_>) {
        self.last.push_back(word);
        if self.last.len() >= max {
            self.pass_shingles(min, max, take);
        }
    }

    /// Passes the shingles that begin with the first of the last words, and forgets that.
    fn pass_shingles(&mut self, min: usize, max: usize, take: Take<'_>) {
        let mut increment = 1 + self.skipped;
        for length in min..=max.min(self.last.len()) {
            let words = || self.last.iter().take(length);
            let Some((first, last)) = words().next().zip(words().next_back()) else {
                break;
            };
            if words().all(|word| word.term == FILLER) {
                continue;
            }
            let terms: Vec<&str> = words().map(|word| word.term.as_str()).collect();
            take(Word {
                term: terms.join(" "),
                range: first.range.start..last.range.end,
                increment,
            });
            increment = 0;
        }
        self.skipped = increment;
        self.last.pop_front();
    }

    fn finish(&mut self, take: Take<'_>) {
        if let TokenFilter::Shingles { min, max } = self.filter {
            while self.last.len() >= *min {
                self.pass_shingles(*min, *max, take);
            }
        }
    }
}

/// Passes a word with another term.
fn change(mut word: Word, take: Take<'_>, form: impl FnOnce(&str) -> String) {
    word.term = form(&word.term);
    take(word);
}

impl NormalForm {
    /// Returns the normal form of a term.
    fn normalize(self, term: &str) -> String {
        match self {
            NormalForm::Nfc => term.nfc().collect(),
            NormalForm::Nfd => term.nfd().collect(),
            NormalForm::Nfkc => term.nfkc().collect(),
            NormalForm::Nfkd => term.nfkd().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Passes the words of a text through filters. `_` stands for a word that was left out.
    fn run(filters: &[TokenFilter], text: &str) -> Vec<(String, u32)> {
        let (mut found, mut position) = (Vec::new(), 0);
        let mut take = |word: Word| {
            position += word.increment;
            found.push((word.term, position));
        };
        let (mut chain, mut start, mut increment) = (Chain::new(filters), 0, 0);
        for term in text.split(' ') {
            increment += 1;
            if term != FILLER {
                let word = Word::at(text, start..start + term.len());
                chain.push(Word { increment, ..word }, &mut take);
                increment = 0;
            }
            start += term.len() + 1;
        }
        chain.finish(&mut take);
        found
    }

    fn check(filter: TokenFilter, text: &str, expected: &[(&str, u32)]) {
        let expected: Vec<_> = expected
            .iter()
            .map(|(term, at)| ((*term).to_owned(), *at))
            .collect();
        assert_eq!(
            run(std::slice::from_ref(&filter), text),
            expected,
            "{filter:?} of {text:?}"
        );
    }

    #[test]
    fn terms_are_changed() {
        check(TokenFilter::Lowercase, "ÀB Σ", &[("àb", 1), ("σ", 2)]);
        check(TokenFilter::Fold, "Çà Straße", &[("ca", 1), ("strasse", 2)]);
        check(
            TokenFilter::Normalize(NormalForm::Nfkc),
            "ﬁx Ａ",
            &[("fix", 1), ("A", 2)],
        );
        check(
            TokenFilter::Normalize(NormalForm::Nfd),
            "é",
            &[("e\u{301}", 1)],
        );
        check(TokenFilter::Trim, "\ta", &[("a", 1)]);
        check(TokenFilter::Reverse, "abé", &[("éba", 1)]);
        check(
            TokenFilter::WithoutPossessive,
            "cat's DOG’S its",
            &[("cat", 1), ("DOG", 2), ("its", 3)],
        );
        check(
            TokenFilter::Stem(Language::GERMAN),
            "häuser",
            &[("haus", 1)],
        );
        let both = TokenFilter::FoldToAscii(Original::Include);
        check(both, "é a", &[("é", 1), ("e", 1), ("a", 2)]);
        check(
            TokenFilter::FoldToAscii(Original::Omit),
            "Æé",
            &[("AEe", 1)],
        );
    }

    #[test]
    fn matches_are_replaced() {
        let replace = |is_first_only| TokenFilter::Replace {
            pattern: Pattern::new("([0-9])a").unwrap(),
            replacement: "<$1>".to_owned(),
            is_first_only,
        };
        check(replace(false), "1a2a", &[("<1><2>", 1)]);
        check(replace(true), "1a2a", &[("<1>2a", 1)]);
    }

    #[test]
    fn words_are_left_out() {
        check(
            TokenFilter::Length { min: 2, max: 3 },
            "a äb abcd abc",
            &[("äb", 2), ("abc", 4)],
        );
        let stop = |ignores| TokenFilter::stop_words(["The".to_owned()], ignores);
        check(stop(true), "the THE x", &[("x", 3)]);
        check(stop(false), "the The x", &[("the", 1), ("x", 3)]);
    }

    #[test]
    fn grams_share_a_position() {
        let lengths = GramLengths { min: 2, max: 3 };
        let grams = |original| TokenFilter::Grams { lengths, original };
        let of_abcd = [("ab", 1), ("abc", 1), ("bc", 1), ("bcd", 1), ("cd", 1)];
        let mut omitted = of_abcd.to_vec();
        omitted.push(("yz", 3));
        check(grams(Original::Omit), "abcd x yz", &omitted);
        let mut included = of_abcd.to_vec();
        included.extend([("abcd", 1), ("x", 2), ("yz", 3)]);
        check(grams(Original::Include), "abcd x yz", &included);
        let edges = TokenFilter::EdgeGrams {
            lengths,
            original: Original::Omit,
        };
        check(edges, "abcd x yz", &[("ab", 1), ("abc", 1), ("yz", 3)]);
    }

    #[test]
    fn shingles_join_words() {
        let shingles = |min, max| TokenFilter::Shingles { min, max };
        check(
            shingles(2, 3),
            "a b c d",
            &[
                ("a b", 1),
                ("a b c", 1),
                ("b c", 2),
                ("b c d", 2),
                ("c d", 3),
            ],
        );
        check(shingles(2, 2), "a", &[]);
        check(shingles(2, 2), "a _ b", &[("a _", 1), ("_ b", 2)]);
        check(shingles(2, 2), "a _ _ _ b", &[("a _", 1), ("_ b", 4)]);
    }

    #[test]
    fn duplicates_at_a_position_are_left_out() {
        let filters = [
            TokenFilter::FoldToAscii(Original::Include),
            TokenFilter::Fold,
            TokenFilter::WithoutDuplicates,
        ];
        let expected = [("e".to_owned(), 1), ("e".to_owned(), 2)];
        assert_eq!(run(&filters, "é é"), expected);
    }
}
