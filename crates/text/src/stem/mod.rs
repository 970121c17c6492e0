//! Stemming: maps the inflected forms of a word to one stem. The algorithms are Snowball's
//! (<https://snowballstem.org/algorithms/>).

mod cache;
mod english;

use rust_stemmers::Algorithm;

use crate::characters::WordCase;
use crate::language::Grammar;
use cache::{CacheLookup, StemCache};

/// The number of bytes at the end of a word that Snowball processes. Its time grows with the square
/// of the length: a word of a megabyte would block the server for minutes. Suffixes are far shorter
/// than this.
const STEMMED_BYTES_MAX: usize = 1024;

/// Stems the words of one language. It caches the stems of recent words, since words repeat in
/// texts.
pub(crate) struct Stemmer {
    grammar: Grammar,
    /// `None` for [`Grammar::None`], which does not stem.
    snowball: Option<rust_stemmers::Stemmer>,
    cache: StemCache,
    buffer: String,
}

impl Stemmer {
    pub(crate) fn new(grammar: Grammar) -> Stemmer {
        Stemmer {
            grammar,
            snowball: algorithm(grammar).map(rust_stemmers::Stemmer::create),
            cache: StemCache::new(),
            buffer: String::new(),
        }
    }

    /// Returns the stem of a word. `case` must be that of the word, or [`WordCase::Other`].
    pub(crate) fn stem<'a>(&'a mut self, word: &'a str, case: WordCase) -> &'a str {
        let Some(snowball) = &self.snowball else {
            return word;
        };
        let is_fast = case == WordCase::LowerAscii
            && self.grammar == Grammar::English
            && word.len() <= english::WORD_BYTES_MAX;
        if is_fast && !english::may_change(word) {
            return word;
        }
        match self.cache.find(word) {
            CacheLookup::Prefix(stem) => return stem,
            CacheLookup::Changed(prefix, tail) => {
                self.buffer.clear();
                self.buffer.push_str(prefix);
                self.buffer.push_str(tail);
                return &self.buffer;
            }
            CacheLookup::Unknown => {}
        }
        if is_fast {
            english::stem(word, &mut self.buffer);
        } else {
            let WordParts { head, tail } = WordParts::new(word);
            self.buffer.clear();
            self.buffer.push_str(head);
            if self.grammar == Grammar::Hungarian {
                hungarian(snowball, tail, &mut self.buffer);
            } else {
                self.buffer.push_str(&snowball.stem(tail));
            }
        }
        self.cache.remember(word, &self.buffer);
        &self.buffer
    }
}

/// Appends the stem of a Hungarian word to `output`. The Hungarian algorithm in MongoDB's release
/// of Snowball was written for ISO 8859-1: it handles `õ` and `û` instead of `ő` and `ű`. This
/// function exchanges these letters before and after the stemming, which gives the same stems.
fn hungarian(snowball: &rust_stemmers::Stemmer, word: &str, output: &mut String) {
    let exchange = |letter| match letter {
        'ő' => 'õ',
        'õ' => 'ő',
        'ű' => 'û',
        'û' => 'ű',
        other => other,
    };
    if word.chars().all(|letter| exchange(letter) == letter) {
        output.push_str(&snowball.stem(word));
    } else {
        let exchanged: String = word.chars().map(exchange).collect();
        output.extend(snowball.stem(&exchanged).chars().map(exchange));
    }
}

/// The parts of a word.
struct WordParts<'w> {
    /// The part that is kept.
    head: &'w str,
    /// The part that Snowball processes.
    tail: &'w str,
}

impl WordParts<'_> {
    fn new(word: &str) -> WordParts<'_> {
        let start = word.ceil_char_boundary(word.len().saturating_sub(STEMMED_BYTES_MAX));
        let (head, tail) = word.split_at(start);
        WordParts { head, tail }
    }
}

/// Returns the algorithm of a language. Returns `None` if its words are not stemmed.
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

#[cfg(test)]
mod tests {
    use super::{STEMMED_BYTES_MAX, Stemmer, WordCase};
    use crate::language::Grammar;

    #[test]
    fn cached_stems_equal_computed_stems() {
        for (grammar, words) in [
            (
                Grammar::English,
                &["running", "happily", "hoping", "café", "naïvely", "Cakes"][..],
            ),
            (
                Grammar::German,
                &["häuser", "freundlichkeit", "straße", "schülerinnen"],
            ),
            (Grammar::Russian, &["красивейший", "домами", "дом"]),
            (Grammar::Turkish, &["kitabı", "çocuklar", "ağacı"]),
            (Grammar::None, &["running"]),
        ] {
            let mut stemmer = Stemmer::new(grammar);
            for word in words {
                let case = WordCase::from_word(word);
                let first = stemmer.stem(word, case).to_string();
                for _ in 0..1000 {
                    assert_eq!(stemmer.stem(word, case), first, "of {word:?}");
                }
                assert_eq!(
                    Stemmer::new(grammar).stem(word, WordCase::Other),
                    first,
                    "of {word:?}"
                );
            }
        }
    }

    /// Hungarian words with `ő` and `ű` had the stems of a later release of Snowball, which differ
    /// from those of MongoDB.
    #[test]
    fn hungarian_stems_are_those_of_mongodbs_snowball() {
        let check = |word: &str, expected: &str| {
            let mut stemmer = Stemmer::new(Grammar::Hungarian);
            assert_eq!(stemmer.stem(word, WordCase::Other), expected, "{word}");
        };
        check("budapestről", "budapestről");
        check("budapestrõl", "budapest");
        check("háztól", "ház");
        check("erdőben", "erdő");
        check("nők", "nők");
    }

    /// Snowball would need minutes for a word of a megabyte.
    #[test]
    fn only_the_end_of_a_huge_word_is_stemmed() {
        let check = |grammar: Grammar, part: &str, suffix: &str, expected_suffix: &str| {
            let word = part.repeat(1_000_000 / part.len());
            let mut stemmer = Stemmer::new(grammar);
            let stem = stemmer
                .stem(&format!("{word}{suffix}"), WordCase::Other)
                .to_string();
            assert_eq!(stem, format!("{word}{expected_suffix}"));
            assert!(stem.len() > STEMMED_BYTES_MAX);
        };
        check(Grammar::English, "ay", "running", "run");
        check(Grammar::English, "xy", "xy", "xi");
        check(Grammar::Russian, "ие", "домами", "дом");
        check(Grammar::German, "qx", "freundlichkeit", "freundlich");
    }
}
