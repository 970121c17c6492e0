//! Words too common to index, one list a language.

use std::sync::OnceLock;

use crate::language::{Grammar, Language};

/// The stop words of one language, as an open-addressed table: half the words of a text are looked up
/// here, so a look must cost a few nanoseconds.
pub(crate) struct StopWords {
    /// The words of up to 16 bytes. The length is a power of two, at most half of the places are taken.
    places: Vec<Option<Key>>,
    /// The longer words, sorted.
    long: Vec<&'static str>,
    /// For each first byte the lengths that occur, a bit each: rejects many other words at once.
    lengths_by_first_byte: [u32; 256],
}

/// The stop words of a language, read on first use. Languages without any have an empty list.
pub(crate) fn stop_words(language: Language) -> &'static StopWords {
    static LISTS: [OnceLock<StopWords>; 16] = [const { OnceLock::new() }; 16];
    static EMPTY: OnceLock<StopWords> = OnceLock::new();
    let list = LISTS
        .get(language.grammar as usize)
        .filter(|_| language.has_stop_words);
    match list {
        Some(list) => list.get_or_init(|| StopWords::parse(list_of(language.grammar))),
        None => EMPTY.get_or_init(|| StopWords::parse("")),
    }
}

impl StopWords {
    /// Whether the folded word is one of them.
    #[allow(clippy::indexing_slicing, reason = "there are lengths for each byte")]
    pub(crate) fn contains(&self, word: &str) -> bool {
        self.lengths_by_first_byte[first_byte(word)] & length_bit(word) != 0
            && match Key::of(word) {
                Some(key) => self.has_key(key),
                None => self.long.binary_search(&word).is_ok(),
            }
    }

    fn has_key(&self, key: Key) -> bool {
        let mut place = key.hash();
        while let Some(Some(known)) = self.places.get(place & (self.places.len() - 1)) {
            if *known == key {
                return true;
            }
            place += 1;
        }
        false
    }

    fn parse(list: &'static str) -> StopWords {
        let words = || list.lines().filter(|line| !line.is_empty());
        let mut stop_words = StopWords {
            places: vec![None; (words().count() * 2).next_power_of_two()],
            long: words().filter(|word| Key::of(word).is_none()).collect(),
            lengths_by_first_byte: [0; 256],
        };
        stop_words.long.sort_unstable();
        words().for_each(|word| stop_words.add(word));
        stop_words
    }

    #[allow(clippy::indexing_slicing, reason = "there are lengths for each byte")]
    fn add(&mut self, word: &str) {
        self.lengths_by_first_byte[first_byte(word)] |= length_bit(word);
        let Some(key) = Key::of(word) else { return };
        let mask = self.places.len() - 1;
        let mut place = key.hash() & mask;
        while matches!(self.places.get(place), Some(Some(_))) {
            place = (place + 1) & mask;
        }
        if let Some(free) = self.places.get_mut(place) {
            *free = Some(key);
        }
    }
}

/// A word of up to 16 bytes as two numbers that may overlap in it; with the length they are the word.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Key {
    start: u64,
    end: u64,
    length: usize,
}

impl Key {
    fn of(word: &str) -> Option<Key> {
        let bytes = word.as_bytes();
        let (start, end) = match bytes.len() {
            8..=16 => (
                u64::from_le_bytes(*bytes.first_chunk()?),
                u64::from_le_bytes(*bytes.last_chunk()?),
            ),
            4..=7 => (
                u64::from(u32::from_le_bytes(*bytes.first_chunk()?)),
                u64::from(u32::from_le_bytes(*bytes.last_chunk()?)),
            ),
            2..=3 => (
                u64::from(u16::from_le_bytes(*bytes.first_chunk()?)),
                u64::from(u16::from_le_bytes(*bytes.last_chunk()?)),
            ),
            1 => (u64::from(*bytes.first()?), 0),
            _ => return None,
        };
        Some(Key {
            start,
            end,
            length: bytes.len(),
        })
    }

    fn hash(self) -> usize {
        let mixed = self.start.wrapping_mul(0x9e37_79b9_7f4a_7c15)
            ^ self.end.wrapping_mul(0xc2b2_ae3d_27d4_eb4f).rotate_left(32);
        (mixed ^ (mixed >> 29)) as usize
    }
}

/// The first byte of a word; that of the empty one is zero.
fn first_byte(word: &str) -> usize {
    usize::from(word.as_bytes().first().copied().unwrap_or(0))
}

/// The bit of a word's length; all lengths from 31 bytes on share the last.
fn length_bit(word: &str) -> u32 {
    1 << word.len().min(31)
}

fn list_of(grammar: Grammar) -> &'static str {
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
    use super::{list_of, stop_words};
    use crate::language::{Language, TextVersion};

    #[test]
    fn every_word_of_a_list_is_found_and_no_other() {
        for language in Language::all() {
            let list: Vec<&str> = list_of(language.grammar).lines().collect();
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

    /// The Turkish list had `ş` and `ı`, which MongoDB's list lost, so that words like `şey` were
    /// not found.
    #[test]
    fn letters_are_replaced_as_in_the_lists_of_mongodb() {
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
    fn the_codes_of_version_1_have_no_stop_words() {
        for (name, expected) in [("english", true), ("eng", false), ("en", false)] {
            let language = Language::parse(name, TextVersion::V1).unwrap();
            assert_eq!(stop_words(language).contains("the"), expected, "{name}");
        }
    }
}
