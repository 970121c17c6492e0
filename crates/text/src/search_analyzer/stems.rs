//! The stems of the words of one language.

use super::cjk::is_english_stop_word;
use super::{elision, lowered};
use crate::characters::WordCase;
use crate::language::{Grammar, Language};
use crate::stem::Stemmer;
use crate::stop_words::stop_words;

/// Returns the stem of a word, or `None` if it is a stop word. `case` must be that of the word.
/// `lower` is a buffer.
pub(super) fn stem<'w>(
    language: Language,
    stemmer: &'w mut Stemmer,
    word: &'w str,
    case: WordCase,
    lower: &'w mut String,
) -> Option<&'w str> {
    let grammar = language.grammar;
    let word = lowered(word, case, grammar == Grammar::Turkish, lower);
    let word = elision::without_affix(grammar, word);
    let is_stop_word = match grammar {
        Grammar::English => is_english_stop_word(word),
        _ => stop_words(language).contains(word),
    };
    (!is_stop_word).then(|| {
        // The word is in lower case.
        stemmer.stem(word, WordCase::from_is_lower_ascii(word.is_ascii()))
    })
}
