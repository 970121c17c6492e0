//! Properties of characters: delimiters, case folding and diacritics.
//!
//! The properties come from `data/unicode.txt`, which is frozen at one version of Unicode. An index
//! stores the terms that it was built with. If a newer compiler or library folded a character
//! differently, searches would miss those terms.

use std::sync::OnceLock;

/// Characters per page of the table.
const PAGE_CHARACTERS: usize = 256;

/// The table covers the characters below this number. Higher ones have no properties: they fold and
/// strip to themselves.
const CHARACTERS_MAX: usize = 0x2_0000;

/// The properties of a character.
#[derive(Clone, Copy, Default)]
struct Properties {
    /// `None` if the character folds to itself.
    folded: Option<char>,
    /// `None` if the character has no diacritic.
    stripped: Option<char>,
    is_delimiter: bool,
    is_diacritic: bool,
}

/// The case of the letters of a word, as far as the words of a text tell it without extra work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordCase {
    /// The word is ASCII without capitals: lower case does not change it.
    LowerAscii,
    /// Any other word.
    Other,
}

impl WordCase {
    /// Returns the case of a word.
    pub(crate) fn from_word(word: &str) -> WordCase {
        let is_lower = |byte: u8| byte.is_ascii() && !byte.is_ascii_uppercase();
        WordCase::from_is_lower_ascii(word.bytes().all(is_lower))
    }

    pub(crate) fn from_is_lower_ascii(is_lower_ascii: bool) -> WordCase {
        if is_lower_ascii {
            WordCase::LowerAscii
        } else {
            WordCase::Other
        }
    }
}

/// A case folding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CaseFolding {
    /// Unicode's simple case folding, statuses C and S of `CaseFolding.txt`.
    Ordinary,
    /// As `Ordinary`, but `I` folds to `ı` and `İ` to `i`: status T of `CaseFolding.txt`.
    Turkish,
}

/// The properties of all characters: a two-level table. All pages without properties share page 0.
pub(crate) struct Characters {
    /// The page of each block of [`PAGE_CHARACTERS`] characters.
    page_of: Vec<u16>,
    properties: Vec<Properties>,
}

/// Returns the table. It is parsed on the first call.
pub(crate) fn characters() -> &'static Characters {
    static TABLE: OnceLock<Characters> = OnceLock::new();
    TABLE.get_or_init(|| Characters::parse(include_str!("../data/unicode.txt")))
}

impl Characters {
    /// Returns `true` if the character ends a word. The apostrophe is a delimiter here. The
    /// analyzer makes the exception for English.
    pub(crate) fn is_delimiter(&self, character: char) -> bool {
        self.properties(character).is_delimiter
    }

    /// Returns the case-folded character. Simple case folding maps one character to one character.
    pub(crate) fn fold(&self, character: char, folding: CaseFolding) -> char {
        match (folding, character) {
            (CaseFolding::Turkish, 'I') => 'ı',
            (CaseFolding::Turkish, 'İ') => 'i',
            _ => self.properties(character).folded.unwrap_or(character),
        }
    }

    /// Returns the character without its diacritics, or `None` if it is itself a diacritic.
    pub(crate) fn strip(&self, character: char) -> Option<char> {
        let properties = self.properties(character);
        if properties.is_diacritic {
            None
        } else {
            Some(properties.stripped.unwrap_or(character))
        }
    }

    /// Appends the case-folded `text` to `target`.
    pub(crate) fn fold_into(&self, text: &str, folding: CaseFolding, target: &mut String) {
        target.extend(text.chars().map(|character| self.fold(character, folding)));
    }

    /// Appends `text` without its diacritics to `target`.
    pub(crate) fn strip_into(&self, text: &str, target: &mut String) {
        target.extend(text.chars().filter_map(|character| self.strip(character)));
    }

    /// Appends `text` to `target`: case-folded if there is a `folding`, and without its diacritics
    /// if `strips_diacritics`.
    pub(crate) fn append_normalized(
        &self,
        text: &str,
        folding: Option<CaseFolding>,
        strips_diacritics: bool,
        target: &mut String,
    ) {
        target.reserve(text.len());
        let by_tables = |part: &str, target: &mut String| {
            let folded = part.chars().map(|character| match folding {
                Some(folding) => self.fold(character, folding),
                None => character,
            });
            if strips_diacritics {
                target.extend(folded.filter_map(|character| self.strip(character)));
            } else {
                target.extend(folded);
            }
        };
        // Turkish folds the ASCII letter I to another one.
        if folding == Some(CaseFolding::Turkish) {
            return by_tables(text, target);
        }
        let mut rest = text;
        while !rest.is_empty() {
            let (ascii, others) = rest.split_at(ascii_length(rest));
            append_ascii(ascii, folding.is_some(), strips_diacritics, target);
            let next_ascii = others.find(|character: char| character.is_ascii());
            let (others, behind) = others.split_at(next_ascii.unwrap_or(others.len()));
            by_tables(others, target);
            rest = behind;
        }
    }

    #[allow(
        clippy::indexing_slicing,
        reason = "`page_of` contains only existing pages"
    )]
    fn properties(&self, character: char) -> Properties {
        let number = character as usize;
        let page = self.page_of.get(number / PAGE_CHARACTERS).copied();
        // Page 0 has no properties, which also holds for the characters beyond the table.
        let page = usize::from(page.unwrap_or(0));
        self.properties[page * PAGE_CHARACTERS + number % PAGE_CHARACTERS]
    }

    fn parse(data: &str) -> Characters {
        let mut table = Characters {
            page_of: vec![0; CHARACTERS_MAX / PAGE_CHARACTERS],
            properties: vec![Properties::default(); PAGE_CHARACTERS],
        };
        for line in data.lines().filter(|line| !line.starts_with('#')) {
            let parsed = table.add_line(line);
            assert!(parsed.is_some(), "malformed line in unicode.txt: {line}");
        }
        table
    }

    /// Adds a line of `data/unicode.txt`; the file documents its format. Returns `None` if the line
    /// is malformed.
    fn add_line(&mut self, line: &str) -> Option<()> {
        let mut words = line.split_whitespace();
        let kind = words.next()?;
        let first = u32::from_str_radix(words.next()?, 16).ok()?;
        let second = u32::from_str_radix(words.next()?, 16).ok()?;
        match kind {
            "delimiter" => self.change(first..=second, |_, properties| {
                properties.is_delimiter = true
            }),
            "diacritic" => self.change(first..=second, |_, properties| {
                properties.is_diacritic = true
            }),
            "fold" => {
                let count: u32 = words.next().map_or(Some(1), |word| word.parse().ok())?;
                self.change(first..=first + count - 1, |number, properties| {
                    properties.folded = char::from_u32(second + (number - first));
                })
            }
            "strip" => self.change(first..=first, |_, properties| {
                properties.stripped = char::from_u32(second)
            }),
            _ => None,
        }
    }

    /// Applies `change` to each character of a range, and gives the page of a character its own
    /// copy first. Returns `None` if a character lies beyond the table.
    fn change(
        &mut self,
        numbers: std::ops::RangeInclusive<u32>,
        mut change: impl FnMut(u32, &mut Properties),
    ) -> Option<()> {
        for number in numbers {
            let page = self.page_of.get_mut(number as usize / PAGE_CHARACTERS)?;
            if *page == 0 {
                *page = u16::try_from(self.properties.len() / PAGE_CHARACTERS).ok()?;
                self.properties.resize(
                    self.properties.len() + PAGE_CHARACTERS,
                    Properties::default(),
                );
            }
            let index = usize::from(*page) * PAGE_CHARACTERS + number as usize % PAGE_CHARACTERS;
            change(number, self.properties.get_mut(index)?);
        }
        Some(())
    }
}

/// The ASCII characters that are diacritics in MongoDB's tables.
const ASCII_DIACRITICS: [u8; 2] = *b"^`";

/// Appends ASCII characters as [`Characters::append_normalized`] does, without the tables.
fn append_ascii(ascii: &str, folds_case: bool, strips_diacritics: bool, target: &mut String) {
    let start = target.len();
    let mut rest = ascii;
    if strips_diacritics {
        let [one, other] = ASCII_DIACRITICS;
        while let Some(found) = memchr::memchr2(one, other, rest.as_bytes()) {
            let (before, behind) = rest.split_at(found);
            target.push_str(before);
            rest = behind.get(1..).unwrap_or_default();
        }
    }
    target.push_str(rest);
    if folds_case && let Some(appended) = target.get_mut(start..) {
        appended.make_ascii_lowercase();
    }
}

/// Returns the number of ASCII characters at the beginning.
pub(crate) fn ascii_length(text: &str) -> usize {
    const STEP: usize = 32;
    let bytes = text.as_bytes();
    let whole = bytes
        .chunks_exact(STEP)
        .take_while(|chunk| chunk.is_ascii());
    let start = whole.count() * STEP;
    let rest = bytes.iter().skip(start);
    start + rest.take_while(|byte| byte.is_ascii()).count()
}

#[cfg(test)]
mod tests {
    use super::{CaseFolding, characters};

    /// The way without the tables must agree with them for each ASCII character, wherever it
    /// stands.
    #[test]
    fn texts_are_normalized_as_their_characters() {
        let table = characters();
        let ascii: String = (0..128_u8).map(char::from).collect();
        let texts = [
            ascii.clone(),
            format!("{ascii}É{ascii}ß\u{301}Ω{ascii}"),
            "IİıÀ^`x".to_owned(),
            String::new(),
        ];
        let foldings = [
            None,
            Some(CaseFolding::Ordinary),
            Some(CaseFolding::Turkish),
        ];
        for text in &texts {
            for folding in foldings {
                for strips in [false, true] {
                    let mut normalized = "before".to_owned();
                    table.append_normalized(text, folding, strips, &mut normalized);
                    let mut expected = "before".to_owned();
                    for character in text.chars() {
                        let folded = folding.map(|folding| table.fold(character, folding));
                        let folded = folded.unwrap_or(character);
                        expected.extend(if strips {
                            table.strip(folded)
                        } else {
                            Some(folded)
                        });
                    }
                    assert_eq!(normalized, expected, "{folding:?} {strips}");
                }
            }
        }
    }

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
        // Characters that only full case folding changes, to longer strings, fold to themselves.
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
        // Letters with a stroke or a hook are separate letters without a decomposition, as are
        // ligatures.
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
    fn folding_and_stripping_are_idempotent() {
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
