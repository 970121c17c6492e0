//! The stems of the words last seen.

use std::hash::{BuildHasher, Hasher};

use foldhash::fast::FixedState;

/// Remembered words; a power of two. With 64 bytes each they fit the second-level cache.
const PLACES: usize = 4096;

/// Longer words are rare and not worth remembering.
const WORD_BYTES_MAX: usize = 36;

/// A query stems a few words and is done; places are made only for who goes on.
const WORDS_BEFORE_USE: u32 = 256;

/// One word a place, the last one that came there.
pub(super) struct StemCache {
    hasher: FixedState,
    places: Vec<Place>,
    words_before_use: u32,
}

#[derive(Clone)]
struct Place {
    word: [u8; WORD_BYTES_MAX],
    word_bytes: u8,
    /// How much of the word the stem begins with.
    kept_bytes: u8,
    /// What the stem has behind that, for most words nothing.
    tail: Option<Box<str>>,
}

/// What is known of a word's stem.
pub(super) enum Cached<'word, 'cache> {
    Unknown,
    /// The stem is the start of the word.
    Prefix(&'word str),
    /// The stem is the start of the word and another end.
    Changed(&'word str, &'cache str),
}

impl StemCache {
    pub(super) fn new() -> StemCache {
        // Which words share a place does not change any result, so the seed may be fixed.
        StemCache {
            hasher: FixedState::default(),
            places: Vec::new(),
            words_before_use: WORDS_BEFORE_USE,
        }
    }

    pub(super) fn find<'word>(&self, word: &'word str) -> Cached<'word, '_> {
        let Some(place) = self.places.get(self.place_of(word)) else {
            return Cached::Unknown;
        };
        let is_known = usize::from(place.word_bytes) == word.len()
            && place.word.get(..word.len()) == Some(word.as_bytes());
        match word.get(..usize::from(place.kept_bytes)) {
            Some(kept) if is_known => match &place.tail {
                None => Cached::Prefix(kept),
                Some(tail) => Cached::Changed(kept, tail),
            },
            _ => Cached::Unknown,
        }
    }

    pub(super) fn remember(&mut self, word: &str, stem: &str) {
        if word.is_empty() || word.len() > WORD_BYTES_MAX {
            return;
        }
        if self.words_before_use > 0 {
            self.words_before_use -= 1;
            return;
        }
        if self.places.is_empty() {
            self.places.resize(PLACES, Place::FREE);
        }
        let index = self.place_of(word);
        let kept_bytes = common_prefix(word, stem);
        let Some(place) = self.places.get_mut(index) else {
            return;
        };
        if let Some(target) = place.word.get_mut(..word.len()) {
            target.copy_from_slice(word.as_bytes());
        }
        place.word_bytes = word.len() as u8;
        place.kept_bytes = kept_bytes as u8;
        place.tail = stem
            .get(kept_bytes..)
            .filter(|tail| !tail.is_empty())
            .map(Box::from);
    }

    fn place_of(&self, word: &str) -> usize {
        let mut hasher = self.hasher.build_hasher();
        hasher.write(word.as_bytes());
        hasher.finish() as usize % PLACES
    }
}

impl Place {
    const FREE: Place = Place {
        word: [0; WORD_BYTES_MAX],
        word_bytes: 0,
        kept_bytes: 0,
        tail: None,
    };
}

/// How many bytes two words have in common at their start, in whole characters.
fn common_prefix(word: &str, stem: &str) -> usize {
    word.chars()
        .zip(stem.chars())
        .take_while(|(left, right)| left == right)
        .map(|(character, _)| character.len_utf8())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::{Cached, StemCache};

    #[test]
    fn remembers_words_with_their_stems() {
        let check = |word: &str, stem: &str, is_remembered: bool| {
            let mut cache = StemCache::new();
            assert!(
                matches!(cache.find(word), Cached::Unknown),
                "{word:?} before"
            );
            for _ in 0..=super::WORDS_BEFORE_USE {
                assert!(
                    matches!(cache.find(word), Cached::Unknown),
                    "{word:?} before use"
                );
                cache.remember(word, stem);
            }
            let found = match cache.find(word) {
                Cached::Unknown => None,
                Cached::Prefix(stem) => Some(stem.to_string()),
                Cached::Changed(kept, tail) => Some(format!("{kept}{tail}")),
            };
            assert_eq!(found.as_deref(), is_remembered.then_some(stem), "{word:?}");
            assert!(matches!(cache.find("other"), Cached::Unknown));
        };
        check("running", "run", true);
        check("happy", "happi", true);
        check("same", "same", true);
        check("ağacı", "ağaç", true);
        check("über", "uber", true);
        check("", "", false);
        check(&"a".repeat(36), "a", true);
        check(&"a".repeat(37), "a", false);
    }
}
