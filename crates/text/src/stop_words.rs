//! Stop words: words that are too common to index. There is one list per language.

use std::sync::OnceLock;

use crate::language::{Grammar, Language};
use crate::word_head::WordHead;

/// The stop words of one language in a hash table with open addressing. Every word of a text is
/// looked up here, so a lookup must take a few nanoseconds only.
pub(crate) struct StopWords {
    /// The words of up to 16 bytes. The length is a power of two, and at most half of the slots are
    /// used.
    slots: Vec<Option<Key>>,
    /// The words of more than 16 bytes, sorted.
    long: Vec<&'static str>,
    /// For each first byte the set of lengths that occur, one bit per length. It rejects most words
    /// without a hash.
    lengths_by_first_byte: [u32; 256],
}

/// Returns the stop words of a language. The list is parsed on the first call. It is empty if the
/// language has no stop words.
pub(crate) fn stop_words(language: Language) -> &'static StopWords {
    static LISTS: [OnceLock<StopWords>; 16] = [const { OnceLock::new() }; 16];
    static EMPTY: OnceLock<StopWords> = OnceLock::new();
    let list = LISTS
        .get(language.grammar as usize)
        .filter(|_| language.has_stop_words);
    match list {
        Some(list) => list.get_or_init(|| StopWords::parse(word_list(language.grammar))),
        None => EMPTY.get_or_init(|| StopWords::parse("")),
    }
}

impl StopWords {
    /// Returns `true` if `word` is a stop word. The word must be case-folded.
    #[allow(
        clippy::indexing_slicing,
        reason = "the array has an element for each byte"
    )]
    pub(crate) fn contains(&self, word: &str) -> bool {
        self.lengths_by_first_byte[first_byte(word)] & length_bit(word) != 0
            && match Key::from_word(word) {
                Some(key) => self.has_key(key),
                None => self.long.binary_search(&word).is_ok(),
            }
    }

    fn has_key(&self, key: Key) -> bool {
        let mut slot = key.hash();
        while let Some(Some(known)) = self.slots.get(slot & (self.slots.len() - 1)) {
            if *known == key {
                return true;
            }
            slot += 1;
        }
        false
    }

    fn parse(list: &'static str) -> StopWords {
        let words = || list.lines().filter(|line| !line.is_empty());
        let mut stop_words = StopWords {
            slots: vec![None; (words().count() * 2).next_power_of_two()],
            long: words()
                .filter(|word| Key::from_word(word).is_none())
                .collect(),
            lengths_by_first_byte: [0; 256],
        };
        stop_words.long.sort_unstable();
        words().for_each(|word| stop_words.add(word));
        stop_words
    }

    #[allow(
        clippy::indexing_slicing,
        reason = "the array has an element for each byte"
    )]
    fn add(&mut self, word: &str) {
        self.lengths_by_first_byte[first_byte(word)] |= length_bit(word);
        let Some(key) = Key::from_word(word) else {
            return;
        };
        let mask = self.slots.len() - 1;
        let mut slot = key.hash() & mask;
        while matches!(self.slots.get(slot), Some(Some(_))) {
            slot = (slot + 1) & mask;
        }
        if let Some(free) = self.slots.get_mut(slot) {
            *free = Some(key);
        }
    }
}

/// A word of 1 to 16 bytes. Equal keys mean equal words.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Key {
    head: WordHead,
    length: usize,
}

/// The seeds of the hashes of stop words. They need not be random: the words are fixed.
const SEEDS: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xc2b2_ae3d_27d4_eb4f];

impl Key {
    fn from_word(word: &str) -> Option<Key> {
        let length = word.len();
        (1..=WordHead::BYTES).contains(&length).then(|| Key {
            head: WordHead::of(word),
            length,
        })
    }

    fn hash(self) -> usize {
        self.head.hash(SEEDS) as usize
    }
}

/// Returns the first byte of a word, or 0 if the word is empty.
fn first_byte(word: &str) -> usize {
    usize::from(word.as_bytes().first().copied().unwrap_or(0))
}

/// Returns the bit of a word's length. All lengths of 31 bytes and more share the last bit.
fn length_bit(word: &str) -> u32 {
    1 << word.len().min(31)
}

/// Returns the list of a language, one word per line.
fn word_list(grammar: Grammar) -> &'static str {
    match grammar {
        Grammar::None => "",
        Grammar::Danish => include_str!("../data/stop_words/danish.txt"),
        Grammar::Dutch => include_str!("../data/stop_words/dutch.txt"),
        Grammar::English => include_str!("../data/stop_words/english.txt"),
        Grammar::Finnish => include_str!("../data/stop_words/finnish.txt"),
        Grammar::French => include_str!("../data/stop_words/french.txt"),
        Grammar::German => include_str!("../data/stop_words/german.txt"),
        Grammar::Hungarian => include_str!("../data/stop_words/hungarian.txt"),
        Grammar::Italian => include_str!("../data/stop_words/italian.txt"),
        Grammar::Norwegian => include_str!("../data/stop_words/norwegian.txt"),
        Grammar::Portuguese => include_str!("../data/stop_words/portuguese.txt"),
        Grammar::Romanian => include_str!("../data/stop_words/romanian.txt"),
        Grammar::Russian => include_str!("../data/stop_words/russian.txt"),
        Grammar::Spanish => include_str!("../data/stop_words/spanish.txt"),
        Grammar::Swedish => include_str!("../data/stop_words/swedish.txt"),
        Grammar::Turkish => include_str!("../data/stop_words/turkish.txt"),
    }
}

#[cfg(test)]
mod tests {
    use super::{stop_words, word_list};
    use crate::language::{Language, TextVersion};

    #[test]
    fn contains_is_true_for_listed_words_only() {
        for language in Language::all() {
            let list: Vec<&str> = word_list(language.grammar).lines().collect();
            let found = stop_words(language);
            for word in &list {
                assert!(found.contains(word), "{language}: {word:?}");
                for other in [
                    format!("{word}q"),
                    format!("q{word}"),
                    format!("{word}{word}"),
                ] {
                    let expected = list.contains(&other.as_str());
                    assert_eq!(found.contains(&other), expected, "{language}: {other:?}");
                }
            }
            assert!(!found.contains(""), "{language}");
        }
    }

    /// MongoDB's Turkish list contains `þ` and `ý` where Turkish has `ş` and `ı`. Our list had the
    /// correct letters, so `şey` was dropped as a stop word and searches for it found nothing.
    #[test]
    fn lists_contain_the_wrong_letters_of_mongodbs_lists() {
        for (language, word, expected) in [
            (Language::TURKISH, "şey", false),
            (Language::TURKISH, "þey", true),
            (Language::TURKISH, "altı", false),
            (Language::TURKISH, "altý", true),
            (Language::TURKISH, "çünkü", true),
            (Language::HUNGARIAN, "előtt", false),
            (Language::HUNGARIAN, "elõtt", true),
            (Language::HUNGARIAN, "után", true),
        ] {
            assert_eq!(stop_words(language).contains(word), expected, "{word}");
        }
    }

    #[test]
    fn language_codes_of_version_1_have_no_stop_words() {
        for (name, expected) in [("english", true), ("eng", false), ("en", false)] {
            let language = Language::parse(name, TextVersion::V1).unwrap();
            assert_eq!(stop_words(language).contains("the"), expected, "{name}");
        }
    }
}
