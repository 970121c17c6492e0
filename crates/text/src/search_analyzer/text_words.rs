//! The distinct words of a text, for analyzers that process each word independently. Words are
//! repeated in most texts, so this avoids most of the work of such analyzers.

use super::file_words::is_in_pairs;
use super::words::{self, WordBoundaries};
use crate::characters::WordCase;
use crate::term_table::TermTable;

/// The words of a text. Reusable for many texts.
///
/// ```
/// use windrow_text::{TextWords, WordBoundaries};
///
/// let mut words = TextWords::default();
/// words.read("to be or not to be", WordBoundaries::Unicode);
/// assert_eq!(words.numbers(), [0, 1, 2, 3, 0, 1]);
/// let distinct: Vec<_> = words.distinct().map(|word| (word.text, word.count)).collect();
/// assert_eq!(distinct, [("to", 2), ("be", 2), ("or", 1), ("not", 1)]);
/// ```
#[derive(Default)]
pub struct TextWords {
    table: TermTable,
    /// By word number.
    properties: Vec<Properties>,
    numbers: Vec<u32>,
    have_pairs: bool,
}

struct Properties {
    case: WordCase,
    count: u32,
}

/// A distinct word of a text.
pub struct DistinctWord<'w> {
    /// The word as written.
    pub text: &'w str,
    /// The case of its letters.
    pub case: WordCase,
    /// The number of its occurrences.
    pub count: u32,
}

impl TextWords {
    /// Replaces the words by those of another text.
    pub fn read(&mut self, text: &str, boundaries: WordBoundaries) {
        let TextWords {
            table,
            properties,
            numbers,
            have_pairs,
        } = self;
        table.clear();
        properties.clear();
        numbers.clear();
        *have_pairs = false;
        words::bounded(text, boundaries, &mut |word, case| {
            let number = table.number(word.term);
            numbers.push(number);
            match properties.get_mut(number as usize) {
                Some(word) => word.count += 1,
                None => {
                    *have_pairs |= case == WordCase::Other && is_in_pairs(word.term);
                    properties.push(Properties { case, count: 1 });
                }
            }
        });
    }

    /// Returns the numbers of the words in the order of the text.
    pub fn numbers(&self) -> &[u32] {
        &self.numbers
    }

    /// Returns the distinct words in the order of their numbers, which is the order of their first
    /// occurrences.
    pub fn distinct(&self) -> impl Iterator<Item = DistinctWord<'_>> {
        let words = self.table.iter().zip(&self.properties);
        words.map(|(text, properties)| DistinctWord {
            text,
            case: properties.case,
            count: properties.count,
        })
    }

    /// Returns `true` if any word is in a script without spaces.
    pub(super) fn have_pairs(&self) -> bool {
        self.have_pairs
    }
}

#[cfg(test)]
mod tests {
    use super::super::{SearchAnalyzer, SearchTokenizer, Token};
    use super::*;

    /// The terms and positions that the words have one by one.
    fn by_word(tokenizer: &mut SearchTokenizer, words: &TextWords) -> Vec<(String, u32)> {
        let distinct: Vec<DistinctWord<'_>> = words.distinct().collect();
        let (mut found, mut next) = (Vec::new(), 0);
        for number in words.numbers() {
            let word = &distinct[*number as usize];
            let first = next;
            let mut add =
                |token: Token<'_>| found.push((token.term.to_owned(), first + token.position));
            next += tokenizer.word_tokens(word.text, word.case, &mut add);
        }
        found
    }

    #[test]
    fn tokens_by_word_are_the_tokens_of_the_text() {
        let text =
            "The l'amour_HashMap running Häuser a running.pdf 3.14 C++ c# 👍 THE İstanbul'da";
        let names = [
            "lucene.standard",
            "lucene.english",
            "lucene.french",
            "lucene.turkish",
            "windrow.words",
            "windrow.wordParts",
            "windrow.stems",
        ];
        let mut words = TextWords::default();
        for text in [text, "", "One", text] {
            for name in names {
                let analyzer = SearchAnalyzer::parse(name).unwrap();
                words.read(text, analyzer.word_boundaries());
                let mut tokenizer = analyzer.tokenizer();
                assert!(tokenizer.has_independent_words(&words), "{name}");
                let mut expected = Vec::new();
                tokenizer.tokens(text, &mut |token| {
                    expected.push((token.term.to_owned(), token.position));
                });
                assert_eq!(by_word(&mut tokenizer, &words), expected, "{name} {text:?}");
            }
        }
    }

    #[test]
    fn pairs_depend_on_adjacent_words() {
        let mut words = TextWords::default();
        words.read("in 東京", WordBoundaries::Unicode);
        let is_independent = |name| {
            let tokenizer = SearchAnalyzer::parse(name).unwrap().tokenizer();
            tokenizer.has_independent_words(&words)
        };
        assert!(is_independent("lucene.standard") && is_independent("windrow.stems"));
        assert!(!is_independent("windrow.words") && !is_independent("lucene.cjk"));
    }
}
