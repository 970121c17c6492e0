//! What is known about single characters: delimiters, case folding, diacritics.
//!
//! The facts are data (`data/unicode.txt`), frozen at one version of Unicode: an index keeps the terms
//! that it was built with, so a newer compiler or library must not fold them differently.

use std::sync::OnceLock;

/// One page holds 256 characters. Characters above the pages have no entry and stay as they are.
const PAGE_CHARACTERS: usize = 256;
const CHARACTERS_MAX: usize = 0x2_0000;

/// Facts about a character. `None` means that it stays as it is.
#[derive(Clone, Copy, Default)]
struct Facts {
    folded: Option<char>,
    stripped: Option<char>,
    is_delimiter: bool,
    is_diacritic: bool,
}

/// How letters are made alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CaseFolding {
    Ordinary,
    /// `I` belongs to `ı`, `İ` to `i`.
    Turkish,
}

/// The facts about all characters, as pages of which the untouched ones share the first.
pub(crate) struct Characters {
    page_of: Vec<u16>,
    facts: Vec<Facts>,
}

/// The table, read on first use.
pub(crate) fn characters() -> &'static Characters {
    static TABLE: OnceLock<Characters> = OnceLock::new();
    TABLE.get_or_init(|| Characters::parse(include_str!("../data/unicode.txt")))
}

impl Characters {
    /// Does this character end a word? The apostrophe does here; English makes its exception itself.
    pub(crate) fn is_delimiter(&self, character: char) -> bool {
        self.facts(character).is_delimiter
    }

    /// Lower case by simple case folding: one character for one character.
    pub(crate) fn fold(&self, character: char, folding: CaseFolding) -> char {
        match (folding, character) {
            (CaseFolding::Turkish, 'I') => 'ı',
            (CaseFolding::Turkish, 'İ') => 'i',
            _ => self.facts(character).folded.unwrap_or(character),
        }
    }

    /// The character without its diacritics, or nothing for one that is a diacritic itself.
    pub(crate) fn strip(&self, character: char) -> Option<char> {
        let facts = self.facts(character);
        if facts.is_diacritic {
            None
        } else {
            Some(facts.stripped.unwrap_or(character))
        }
    }

    /// Append `text`, folded.
    pub(crate) fn fold_into(&self, text: &str, folding: CaseFolding, target: &mut String) {
        target.extend(text.chars().map(|character| self.fold(character, folding)));
    }

    /// Append `text` without diacritics.
    pub(crate) fn strip_into(&self, text: &str, target: &mut String) {
        target.extend(text.chars().filter_map(|character| self.strip(character)));
    }

    #[allow(clippy::indexing_slicing, reason = "`page_of` has pages that exist")]
    fn facts(&self, character: char) -> Facts {
        let number = character as usize;
        let page = self.page_of.get(number / PAGE_CHARACTERS).copied();
        // Characters above the pages are as the untouched ones of the first page.
        let page = usize::from(page.unwrap_or(0));
        self.facts[page * PAGE_CHARACTERS + number % PAGE_CHARACTERS]
    }

    fn parse(data: &str) -> Characters {
        let mut table = Characters {
            page_of: vec![0; CHARACTERS_MAX / PAGE_CHARACTERS],
            facts: vec![Facts::default(); PAGE_CHARACTERS],
        };
        for line in data.lines().filter(|line| !line.starts_with('#')) {
            let parsed = table.add_line(line);
            assert!(parsed.is_some(), "malformed line in unicode.txt: {line}");
        }
        table
    }

    fn add_line(&mut self, line: &str) -> Option<()> {
        let mut words = line.split_whitespace();
        let kind = words.next()?;
        let first = u32::from_str_radix(words.next()?, 16).ok()?;
        let second = u32::from_str_radix(words.next()?, 16).ok()?;
        match kind {
            "delimiter" => self.change(first..=second, |_, facts| facts.is_delimiter = true),
            "diacritic" => self.change(first..=second, |_, facts| facts.is_diacritic = true),
            "fold" => {
                let count: u32 = words.next().map_or(Some(1), |word| word.parse().ok())?;
                self.change(first..=first + count - 1, |number, facts| {
                    facts.folded = char::from_u32(second + (number - first));
                })
            }
            "strip" => self.change(first..=first, |_, facts| {
                facts.stripped = char::from_u32(second)
            }),
            _ => None,
        }
    }

    fn change(
        &mut self,
        numbers: std::ops::RangeInclusive<u32>,
        mut change: impl FnMut(u32, &mut Facts),
    ) -> Option<()> {
        for number in numbers {
            let page = self.page_of.get_mut(number as usize / PAGE_CHARACTERS)?;
            if *page == 0 {
                *page = u16::try_from(self.facts.len() / PAGE_CHARACTERS).ok()?;
                self.facts
                    .resize(self.facts.len() + PAGE_CHARACTERS, Facts::default());
            }
            let index = usize::from(*page) * PAGE_CHARACTERS + number as usize % PAGE_CHARACTERS;
            change(number, self.facts.get_mut(index)?);
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::{CaseFolding, characters};

    #[test]
    fn case_folding_maps_one_character_to_one() {
        let check = |text: &str, folding: CaseFolding, expected: &str| {
            let mut folded = String::new();
            characters().fold_into(text, folding, &mut folded);
            assert_eq!(folded, expected, "of {text:?}");
        };
        check("ABC xyz 1_é", CaseFolding::Ordinary, "abc xyz 1_é");
        check("ÀÉÎÕÜ ŁŻ ŠŽ", CaseFolding::Ordinary, "àéîõü łż šž");
        check("ΣΑΣ ς", CaseFolding::Ordinary, "σασ σ");
        check("ЁЖИК Й", CaseFolding::Ordinary, "ёжик й");
        check("ՀԱՅ Ⴀ 𐐀 Ⅳ Ⓐ", CaseFolding::Ordinary, "հայ ⴀ 𐐨 ⅳ ⓐ");
        check("ſ K Å ẞ ǅ", CaseFolding::Ordinary, "s k å ß ǆ");
        // What full case folding would make longer stays.
        check("İ ŉ ﬁ ß", CaseFolding::Ordinary, "İ ŉ ﬁ ß");
        check("I İ ı i", CaseFolding::Ordinary, "i İ ı i");
        check("I İ ı i Ş", CaseFolding::Turkish, "ı i ı i ş");
    }

    #[test]
    fn diacritics_are_dropped() {
        let check = |text: &str, expected: &str| {
            let mut stripped = String::new();
            characters().strip_into(text, &mut stripped);
            assert_eq!(stripped, expected, "of {text:?}");
        };
        check("plain ascii", "plain ascii");
        check("àéîõüç ñ š ệ ǻ", "aeiouc n s e a");
        check("e\u{301} a\u{308}\u{304}", "e a");
        check("ёй Ё", "еи Е");
        check("ά ϊ ΐ", "α ι ι");
        check("ガパ ー", "カハ ");
        check("مُحَمَّد שָׁלוֹם", "محمد שלום");
        check("´¨¸ ˇ", " ");
        // Letters with a stroke or a hook are letters of their own, and so are ligatures.
        check("ł ø đ æ ß ı", "ł ø đ æ ß ı");
        check("한국어 東京", "한국어 東京");
    }

    #[test]
    fn delimiters_are_punctuation_and_spaces() {
        let table = characters();
        for character in
            " \t\n\u{a0}\u{3000}\u{2028}-–—‐‑−.,;:!?¿¡…'’\"“”«»()[]{}<>/\\|@#$%^&*+=~`、。؟।"
                .chars()
        {
            assert!(table.is_delimiter(character), "{character:?}");
        }
        for character in "az09_é東ガ한म🎉\u{0}\u{1f}\u{200b}\u{200d}\u{feff}€´ˇª½\u{10ffff}".chars()
        {
            assert!(!table.is_delimiter(character), "{character:?}");
        }
    }

    #[test]
    fn folding_and_stripping_twice_changes_nothing_more() {
        let table = characters();
        for character in '\0'..=char::MAX {
            for folding in [CaseFolding::Ordinary, CaseFolding::Turkish] {
                let folded = table.fold(character, folding);
                assert_eq!(table.fold(folded, folding), folded, "{character:?}");
            }
            let stripped = table.strip(character);
            assert_eq!(
                stripped.and_then(|stripped| table.strip(stripped)),
                stripped,
                "{character:?}"
            );
        }
    }
}
