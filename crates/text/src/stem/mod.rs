//! Stems: the part of a word that its inflected forms share.

use foldhash::fast::FixedState;
use rust_stemmers::Algorithm;
use std::hash::BuildHasher;

use crate::language::Grammar;

mod english;

/// Remembered stems; a power of two.
const CACHE_WORDS: usize = 4096;

/// Longer words are rare and not worth remembering.
const CACHED_WORD_BYTES_MAX: usize = 48;

/// Stems the words of one language. Words repeat in text, so the last ones seen are remembered.
pub(crate) struct Stemmer {
    is_english: bool,
    grammar: Option<rust_stemmers::Stemmer>,
    cache: Vec<Remembered>,
    uncached: String,
}

#[derive(Clone, Default)]
struct Remembered {
    word: String,
    stem: String,
}

impl Stemmer {
    pub(crate) fn new(grammar: Grammar) -> Stemmer {
        Stemmer {
            is_english: grammar == Grammar::English,
            grammar: algorithm(grammar).map(rust_stemmers::Stemmer::create),
            cache: Vec::new(),
            uncached: String::new(),
        }
    }

    /// The stem of a word: shorter, sometimes changed at its end, sometimes the word itself.
    pub(crate) fn stem<'a>(&'a mut self, word: &'a str) -> &'a str {
        let Some(grammar) = &self.grammar else {
            return word;
        };
        if self.is_english && english::can_stem(word) {
            english::stem_into(word, &mut self.uncached);
            return &self.uncached;
        }
        if word.len() > CACHED_WORD_BYTES_MAX {
            self.uncached.clear();
            self.uncached.push_str(&grammar.stem(word));
            return &self.uncached;
        }
        if self.cache.is_empty() {
            self.cache.resize(CACHE_WORDS, Remembered::default());
        }
        // Which words share a place does not matter for the result, so the seed may be fixed.
        let hash = FixedState::default().hash_one(word.as_bytes());
        let Some(remembered) = self.cache.get_mut(hash as usize % CACHE_WORDS) else {
            return word;
        };
        if remembered.word != word {
            remembered.word.clear();
            remembered.word.push_str(word);
            remembered.stem.clear();
            remembered.stem.push_str(&grammar.stem(word));
        }
        &remembered.stem
    }
}

fn algorithm(grammar: Grammar) -> Option<Algorithm> {
    Some(match grammar {
        Grammar::None => return None,
        Grammar::Danish => Algorithm::Danish,
        Grammar::Dutch => Algorithm::Dutch,
        Grammar::English => Algorithm::English,
        Grammar::Finnish => Algorithm::Finnish,
        Grammar::French => Algorithm::French,
        Grammar::German => Algorithm::German,
        Grammar::Hungarian => Algorithm::Hungarian,
        Grammar::Italian => Algorithm::Italian,
        Grammar::Norwegian => Algorithm::Norwegian,
        Grammar::Portuguese => Algorithm::Portuguese,
        Grammar::Romanian => Algorithm::Romanian,
        Grammar::Russian => Algorithm::Russian,
        Grammar::Spanish => Algorithm::Spanish,
        Grammar::Swedish => Algorithm::Swedish,
        Grammar::Turkish => Algorithm::Turkish,
    })
}
