//! Words too common to index, one list a language.

use std::sync::OnceLock;

use crate::language::{Grammar, Language};

/// The stop words of one language.
pub(crate) struct StopWords {
    sorted: Vec<&'static str>,
    /// For each first byte the lengths that occur, a bit each: rejects most other words with one look.
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
    /// Is this folded word one of them?
    pub(crate) fn contains(&self, word: &str) -> bool {
        let first = word.as_bytes().first().copied().unwrap_or(0);
        let lengths = self
            .lengths_by_first_byte
            .get(usize::from(first))
            .copied()
            .unwrap_or(0);
        lengths & length_bit(word) != 0 && self.sorted.binary_search(&word).is_ok()
    }

    fn parse(list: &'static str) -> StopWords {
        let mut sorted: Vec<&str> = list.lines().filter(|line| !line.is_empty()).collect();
        sorted.sort_unstable();
        let mut lengths_by_first_byte = [0; 256];
        for word in &sorted {
            let first = word.as_bytes().first().copied().unwrap_or(0);
            if let Some(lengths) = lengths_by_first_byte.get_mut(usize::from(first)) {
                *lengths |= length_bit(word);
            }
        }
        StopWords {
            sorted,
            lengths_by_first_byte,
        }
    }
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
