//! The distinct words of texts, for analyzers that process each word independently. Words are
//! repeated in most texts, so this avoids most of the work of such analyzers.

use super::file_words::is_in_pairs;
use super::words::{self, WordBoundaries};
use crate::characters::WordCase;
use crate::term_table::TermTable;

/// The words of a text, and the numbers of all words since [`forget`](Self::forget).
///
/// ```
/// use windrow_text::{TextWords, WordBoundaries};
///
/// let mut words = TextWords::default();
/// words.read("to be or not to be", WordBoundaries::Unicode);
/// assert_eq!(words.numbers(), [0, 1, 2, 3, 0, 1]);
/// words.read("not here", WordBoundaries::Unicode);
/// assert_eq!(words.numbers(), [3, 4]);
/// assert_eq!(words.word(4).text, "here");
/// ```
#[derive(Default)]
pub struct TextWords {
    table: TermTable,
    numbers: Vec<u32>,
    have_pairs: bool,
}

/// A word of a text.
pub struct TextWord<'w> {
    /// The word as written.
    pub text: &'w str,
    /// The case of its letters.
    pub case: WordCase,
}

impl TextWords {
    /// Replaces the words by those of another text. Known words keep their numbers.
    pub fn read(&mut self, text: &str, boundaries: WordBoundaries) {
        let TextWords {
            table,
            numbers,
            have_pairs,
        } = self;
        numbers.clear();
        *have_pairs = false;
        words::bounded(text, boundaries, &mut |word, case| {
            *have_pairs |= case == WordCase::Other && is_in_pairs(word.term);
            numbers.push(table.number_in(text, word.range));
        });
    }

    /// Returns the numbers of the words in the order of the text.
    pub fn numbers(&self) -> &[u32] {
        &self.numbers
    }

    /// Returns the word with this number. It is empty if the number is unknown.
    pub fn word(&self, number: u32) -> TextWord<'_> {
        let text = self.table.term(number);
        TextWord {
            text,
            case: WordCase::from_word(text),
        }
    }

    /// Returns the number of words that have numbers.
    pub fn known(&self) -> usize {
        self.table.len()
    }

    /// Returns the total length of the words that have numbers, in bytes.
    pub fn known_bytes(&self) -> usize {
        self.table.text_bytes()
    }

    /// Forgets all words and their numbers. The buffers stay allocated.
    pub fn forget(&mut self) {
        self.table.clear();
        self.numbers.clear();
        self.have_pairs = false;
    }

    /// Returns `true` if any word of the text is in a script without spaces.
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
        let (mut found, mut next) = (Vec::new(), 0);
        for number in words.numbers() {
            let word = words.word(*number);
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
        // A text without pairs has independent words, even after such a text.
        words.read("in", WordBoundaries::Unicode);
        assert!(!words.have_pairs() && words.known() == 3);
        words.read("京", WordBoundaries::Unicode);
        assert!(words.have_pairs());
        words.forget();
        assert_eq!((words.known(), words.known_bytes()), (0, 0));
    }
}
