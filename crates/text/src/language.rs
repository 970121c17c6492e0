//! Which rules apply: the version of the index and the language of a text.

use std::fmt;

/// The `textIndexVersion` of an index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TextVersion {
    /// ASCII delimiters and folding; any language name is accepted.
    V1,
    /// As version 1, but only the known languages.
    V2,
    /// Unicode delimiters, case folding, and diacritics do not count.
    #[default]
    V3,
}

impl TextVersion {
    /// The version of that number in an index definition: 1, 2 or 3.
    pub fn from_number(number: i64) -> Option<TextVersion> {
        match number {
            1 => Some(TextVersion::V1),
            2 => Some(TextVersion::V2),
            3 => Some(TextVersion::V3),
            _ => None,
        }
    }

    /// The number that stands in an index definition.
    pub fn number(self) -> i32 {
        match self {
            TextVersion::V1 => 1,
            TextVersion::V2 => 2,
            TextVersion::V3 => 3,
        }
    }
}

/// The grammar that stems a language's words.
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

/// A language of text search: how its words are stemmed and which of them are stop words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Language {
    pub(crate) grammar: Grammar,
    /// The codes of version 1 (`eng`, `fra`) stem, but have no stop words.
    pub(crate) has_stop_words: bool,
}

/// A language name that the index version does not know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownLanguage {
    /// The name as it was given.
    pub name: String,
}

impl fmt::Display for UnknownLanguage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unsupported language for text search: \"{}\"", self.name)
    }
}

impl std::error::Error for UnknownLanguage {}

/// Name, two-letter code, and the codes that version 1 takes beside the name.
const NAMES: [(Grammar, &str, &str, &[&str]); 16] = [
    (Grammar::None, "none", "none", &[]),
    (Grammar::Danish, "danish", "da", &["da", "dan"]),
    (Grammar::Dutch, "dutch", "nl", &["nl", "dut", "nld"]),
    // `porter` is the stemmer that English had before; its few differences are not kept.
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
    /// Neither stop words nor stems: every token counts as it is written.
    pub const NONE: Language = Language::of(Grammar::None);
    pub const DANISH: Language = Language::of(Grammar::Danish);
    pub const DUTCH: Language = Language::of(Grammar::Dutch);
    pub const ENGLISH: Language = Language::of(Grammar::English);
    pub const FINNISH: Language = Language::of(Grammar::Finnish);
    pub const FRENCH: Language = Language::of(Grammar::French);
    pub const GERMAN: Language = Language::of(Grammar::German);
    pub const HUNGARIAN: Language = Language::of(Grammar::Hungarian);
    pub const ITALIAN: Language = Language::of(Grammar::Italian);
    pub const NORWEGIAN: Language = Language::of(Grammar::Norwegian);
    pub const PORTUGUESE: Language = Language::of(Grammar::Portuguese);
    pub const ROMANIAN: Language = Language::of(Grammar::Romanian);
    pub const RUSSIAN: Language = Language::of(Grammar::Russian);
    pub const SPANISH: Language = Language::of(Grammar::Spanish);
    pub const SWEDISH: Language = Language::of(Grammar::Swedish);
    pub const TURKISH: Language = Language::of(Grammar::Turkish);

    const fn of(grammar: Grammar) -> Language {
        Language {
            grammar,
            has_stop_words: true,
        }
    }

    /// The language of that name or two-letter code. Versions 2 and 3 ignore case and refuse what they do
    /// not know; version 1 takes names as they are written and treats unknown ones as [`Language::NONE`].
    pub fn parse(name: &str, version: TextVersion) -> Result<Language, UnknownLanguage> {
        if version == TextVersion::V1 {
            return Ok(Language::parse_v1(name));
        }
        NAMES
            .iter()
            .find(|(_, full, code, _)| {
                name.eq_ignore_ascii_case(full) || name.eq_ignore_ascii_case(code)
            })
            .map(|(grammar, ..)| Language::of(*grammar))
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

    /// The full English name, lower case.
    pub fn name(self) -> &'static str {
        NAMES
            .iter()
            .find(|(grammar, ..)| *grammar == self.grammar)
            .map_or("none", |(_, full, ..)| full)
    }

    /// All languages of versions 2 and 3, `none` first, then by name.
    pub fn all() -> impl Iterator<Item = Language> {
        NAMES.iter().map(|(grammar, ..)| Language::of(*grammar))
    }

    /// English words keep their apostrophes; everywhere else they end a word.
    pub(crate) fn keeps_apostrophes(self) -> bool {
        self == Language::ENGLISH
    }

    /// A small number that tells languages apart, for tables of one entry a language.
    pub(crate) fn slot(self) -> usize {
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
    fn names_and_codes_are_languages() {
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
    fn an_unknown_language_is_named_in_the_error() {
        let error = Language::parse("klingon", TextVersion::V3).unwrap_err();
        assert_eq!(
            error.to_string(),
            "unsupported language for text search: \"klingon\""
        );
    }

    #[test]
    fn versions_are_one_to_three() {
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
