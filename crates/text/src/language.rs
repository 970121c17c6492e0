//! The version of a text index and the language of a text. Together they select the rules of
//! analysis.

use std::fmt;

/// The `textIndexVersion` of an index
/// (<https://www.mongodb.com/docs/manual/core/indexes/index-types/index-text/text-index-versions/>).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TextVersion {
    /// ASCII delimiters and case folding. Diacritics are significant. Unknown language names mean
    /// [`Language::NONE`].
    V1,
    /// As version 1, but unknown language names are errors.
    V2,
    /// Unicode delimiters and case folding. Diacritics are ignored.
    #[default]
    V3,
}

impl TextVersion {
    /// Returns the version with this number. Returns `None` if the number is not 1, 2 or 3.
    pub fn from_number(number: i64) -> Option<TextVersion> {
        match number {
            1 => Some(TextVersion::V1),
            2 => Some(TextVersion::V2),
            3 => Some(TextVersion::V3),
            _ => None,
        }
    }

    /// Returns the number of the version in an index specification.
    pub fn number(self) -> i32 {
        match self {
            TextVersion::V1 => 1,
            TextVersion::V2 => 2,
            TextVersion::V3 => 3,
        }
    }
}

/// Selects the stemmer and the list of stop words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Grammar {
    None,
    Danish,
    Dutch,
    English,
    Finnish,
    French,
    German,
    Hungarian,
    Italian,
    Norwegian,
    Portuguese,
    Romanian,
    Russian,
    Spanish,
    Swedish,
    Turkish,
}

/// A language of text search. It selects the stemmer and the stop words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Language {
    pub(crate) grammar: Grammar,
    /// `false` for the codes of version 1 (`eng`, `fra`): MongoDB stems their words but finds no
    /// list of stop words under such a name.
    pub(crate) has_stop_words: bool,
}

/// The error for a language name that the index version does not support.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownLanguage {
    /// The unsupported name.
    pub name: String,
}

impl fmt::Display for UnknownLanguage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unsupported language for text search: \"{}\"", self.name)
    }
}

impl std::error::Error for UnknownLanguage {}

/// Per language: its name, its two-letter code, and the codes that version 1 accepts besides the
/// name. Source: <https://www.mongodb.com/docs/manual/reference/text-search-languages/>.
const NAMES: [(Grammar, &str, &str, &[&str]); 16] = [
    (Grammar::None, "none", "none", &[]),
    (Grammar::Danish, "danish", "da", &["da", "dan"]),
    (Grammar::Dutch, "dutch", "nl", &["nl", "dut", "nld"]),
    // In Snowball `porter` is the predecessor of the English stemmer. Here it is the English
    // stemmer; the stems of a few words differ.
    (Grammar::English, "english", "en", &["en", "eng", "porter"]),
    (Grammar::Finnish, "finnish", "fi", &["fi", "fin"]),
    (Grammar::French, "french", "fr", &["fr", "fra", "fre"]),
    (Grammar::German, "german", "de", &["de", "deu", "ger"]),
    (Grammar::Hungarian, "hungarian", "hu", &["hu", "hun"]),
    (Grammar::Italian, "italian", "it", &["it", "ita"]),
    (Grammar::Norwegian, "norwegian", "nb", &["no", "nor"]),
    (Grammar::Portuguese, "portuguese", "pt", &["pt", "por"]),
    (Grammar::Romanian, "romanian", "ro", &["ro", "ron", "rum"]),
    (Grammar::Russian, "russian", "ru", &["ru", "rus"]),
    (Grammar::Spanish, "spanish", "es", &["es", "esl", "spa"]),
    (Grammar::Swedish, "swedish", "sv", &["sv", "swe"]),
    (Grammar::Turkish, "turkish", "tr", &["tr", "tur"]),
];

impl Language {
    /// No stop words and no stemming.
    pub const NONE: Language = Language::from_grammar(Grammar::None);
    /// English.
    pub const ENGLISH: Language = Language::from_grammar(Grammar::English);
    /// French.
    pub const FRENCH: Language = Language::from_grammar(Grammar::French);
    /// German.
    pub const GERMAN: Language = Language::from_grammar(Grammar::German);
    /// Hungarian.
    pub const HUNGARIAN: Language = Language::from_grammar(Grammar::Hungarian);
    /// Russian.
    pub const RUSSIAN: Language = Language::from_grammar(Grammar::Russian);
    /// Swedish.
    pub const SWEDISH: Language = Language::from_grammar(Grammar::Swedish);
    /// Turkish.
    pub const TURKISH: Language = Language::from_grammar(Grammar::Turkish);

    const fn from_grammar(grammar: Grammar) -> Language {
        Language {
            grammar,
            has_stop_words: true,
        }
    }

    /// Returns the language with this name or two-letter code.
    ///
    /// Versions 2 and 3 ignore the case of the name. Version 1 is case-sensitive and returns
    /// [`Language::NONE`] for unknown names.
    ///
    /// Fails with [`UnknownLanguage`] if version 2 or 3 does not support the name.
    ///
    /// ```
    /// use windrow_text::{Language, TextVersion};
    ///
    /// assert_eq!(Language::parse("French", TextVersion::V3), Ok(Language::FRENCH));
    /// assert_eq!(Language::parse("fr", TextVersion::V3), Ok(Language::FRENCH));
    /// assert!(Language::parse("klingon", TextVersion::V3).is_err());
    /// assert_eq!(Language::parse("klingon", TextVersion::V1), Ok(Language::NONE));
    /// ```
    pub fn parse(name: &str, version: TextVersion) -> Result<Language, UnknownLanguage> {
        if version == TextVersion::V1 {
            return Ok(Language::parse_v1(name));
        }
        NAMES
            .iter()
            .find(|(_, full, code, _)| {
                name.eq_ignore_ascii_case(full) || name.eq_ignore_ascii_case(code)
            })
            .map(|(grammar, ..)| Language::from_grammar(*grammar))
            .ok_or_else(|| UnknownLanguage {
                name: name.to_string(),
            })
    }

    fn parse_v1(name: &str) -> Language {
        let known = NAMES
            .iter()
            .find(|(_, full, _, codes)| name == *full || codes.contains(&name));
        match known {
            Some((grammar, full, ..)) => Language {
                grammar: *grammar,
                has_stop_words: name == *full,
            },
            None => Language::NONE,
        }
    }

    /// Returns the English name in lower case.
    pub fn name(self) -> &'static str {
        NAMES
            .iter()
            .find(|(grammar, ..)| *grammar == self.grammar)
            .map_or("none", |(_, full, ..)| full)
    }

    /// Returns the two-letter code.
    pub(crate) fn code(self) -> &'static str {
        NAMES
            .iter()
            .find(|(grammar, ..)| *grammar == self.grammar)
            .map_or("none", |(_, _, code, _)| code)
    }

    /// Returns all languages of versions 2 and 3: `none`, then the others sorted by name.
    pub fn all() -> impl Iterator<Item = Language> {
        NAMES
            .iter()
            .map(|(grammar, ..)| Language::from_grammar(*grammar))
    }

    /// Returns `true` if the apostrophe is part of a word. It is a delimiter in all languages but
    /// English.
    pub(crate) fn keeps_apostrophes(self) -> bool {
        self == Language::ENGLISH
    }

    /// Returns a small number that is unique to the language. It identifies the analyzer of a
    /// language.
    pub(crate) fn number(self) -> usize {
        self.grammar as usize * 2 + usize::from(self.has_stop_words)
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::{Language, TextVersion};

    #[test]
    fn parse_accepts_names_and_codes_of_each_version() {
        let check = |name: &str, version: TextVersion, expected: Option<&str>| {
            let found = Language::parse(name, version).ok().map(Language::name);
            assert_eq!(found, expected, "{name:?} in {version:?}");
        };
        for language in Language::all() {
            for version in [TextVersion::V1, TextVersion::V2, TextVersion::V3] {
                check(language.name(), version, Some(language.name()));
                assert_eq!(Language::parse(language.name(), version), Ok(language));
            }
        }
        for (code, name) in [
            ("da", "danish"),
            ("nl", "dutch"),
            ("en", "english"),
            ("fi", "finnish"),
            ("fr", "french"),
            ("de", "german"),
            ("hu", "hungarian"),
            ("it", "italian"),
            ("nb", "norwegian"),
            ("pt", "portuguese"),
            ("ro", "romanian"),
            ("ru", "russian"),
            ("es", "spanish"),
            ("sv", "swedish"),
            ("tr", "turkish"),
            ("EN", "english"),
            ("French", "french"),
            ("NONE", "none"),
        ] {
            check(code, TextVersion::V2, Some(name));
            check(code, TextVersion::V3, Some(name));
        }
        for unknown in [
            "", "klingon", "dan", "eng", "en-US", " en", "zhs", "hans", "porter",
        ] {
            check(unknown, TextVersion::V2, None);
            check(unknown, TextVersion::V3, None);
        }
        for (name, expected) in [
            ("klingon", "none"),
            ("FRENCH", "none"),
            ("", "none"),
            ("fra", "french"),
        ] {
            check(name, TextVersion::V1, Some(expected));
        }
    }

    #[test]
    fn the_error_contains_the_unknown_language() {
        let error = Language::parse("klingon", TextVersion::V3).unwrap_err();
        assert_eq!(
            error.to_string(),
            "unsupported language for text search: \"klingon\""
        );
    }

    #[test]
    fn version_numbers_are_1_to_3() {
        for (number, expected) in [
            (0, None),
            (1, Some(TextVersion::V1)),
            (2, Some(TextVersion::V2)),
            (3, Some(TextVersion::V3)),
            (4, None),
        ] {
            let version = TextVersion::from_number(number);
            assert_eq!(version, expected);
            assert!(version.is_none_or(|version| i64::from(version.number()) == number));
        }
    }
}
