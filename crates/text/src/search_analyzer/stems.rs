//! The stems of the words of one language.

use super::cjk::is_english_stop_word;
use super::{Token, VisitToken, elision, lowered, words};
use crate::language::{Grammar, Language};
use crate::stem::Stemmer;
use crate::stop_words::stop_words;

/// Visits the stems of the words that are no stop words. Stop words have positions.
pub(super) fn tokens(
    language: Language,
    stemmer: &mut Stemmer,
    lower: &mut String,
    text: &str,
    visit: &mut VisitToken<'_>,
) {
    let grammar = language.grammar;
    let is_turkish = grammar == Grammar::Turkish;
    words::standard(text, &mut |token, is_lower| {
        let token = lowered(token, is_lower, is_turkish, lower);
        let word = elision::without_affix(grammar, token.term);
        let is_stop_word = match grammar {
            Grammar::English => is_english_stop_word(word),
            _ => stop_words(language).contains(word),
        };
        if is_stop_word {
            return;
        }
        let is_plain = word.is_ascii();
        visit(Token {
            term: stemmer.stem(word, is_plain),
            ..token
        });
    });
}
