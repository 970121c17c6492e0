//! The analyzer turns a string into terms.
//!
//! 1. Split the string into words at delimiters.
//! 2. Fold the case of each word.
//! 3. Drop stop words.
//! 4. Stem.
//! 5. Strip diacritics (version 3 only).

use std::ops::Range;

use crate::characters::{CaseFolding, Characters, WordCase, characters};
use crate::language::{Grammar, Language, TextVersion};
use crate::stem::Stemmer;
use crate::stop_words::{StopWords, stop_words};

/// The differences between a search string and a text that prevent a match: the options
/// `$caseSensitive` and `$diacriticSensitive` of `$text`
/// (<https://www.mongodb.com/docs/manual/reference/operator/query/text/>).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sensitivity {
    /// `$caseSensitive`: letters match only in the same case.
    pub case: bool,
    /// `$diacriticSensitive`: letters match only with the same diacritics.
    pub diacritics: bool,
}

impl Sensitivity {
    /// Case and diacritics are ignored. Indexes store their terms this way, and it is the default
    /// of a search.
    pub const NONE: Sensitivity = Sensitivity {
        case: false,
        diacritics: false,
    };

    /// Returns `true` if case or diacritics are significant.
    pub fn any(self) -> bool {
        self.case || self.diacritics
    }
}

/// A word of a text that is not a stop word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term<'a> {
    /// The folded and stemmed word. It is empty for a word that consists of diacritics only.
    pub term: &'a str,
    /// The word as it is written in the text.
    pub raw: &'a str,
    /// The byte range of the word in the text.
    pub range: Range<usize>,
    /// The number of words before it in the text, stop words included.
    pub position: u32,
}

/// Splits strings into terms by the rules of one language and one index version.
///
/// An analyzer reuses its buffers and its cache of stems. Create one for many strings.
///
/// ```
/// use windrow_text::{Analyzer, Language, TextVersion};
///
/// let mut analyzer = Analyzer::new(Language::ENGLISH, TextVersion::V3);
/// let mut terms = Vec::new();
/// analyzer.terms("The Cafés", |found| terms.push((found.term.to_owned(), found.range)));
/// assert_eq!(terms, [("cafe".to_owned(), 4..10)]);
/// ```
pub struct Analyzer {
    rules: Rules,
    stop_words: &'static StopWords,
    stemmer: Stemmer,
    folded: String,
    stripped: String,
}

/// Classes of bytes. The scan ORs the classes of a word's bytes. The result selects the fastest
/// fold that is correct for the word.
mod class {
    /// Ends a word.
    pub const DELIMITER: u8 = 0;
    /// An ASCII byte that folds to itself.
    pub const PLAIN: u8 = 1;
    /// An ASCII capital letter that folds to an ASCII letter.
    pub const CAPITAL: u8 = 2;
    /// The first byte of a character that is looked up in [`Characters`](super::Characters).
    pub const WIDE: u8 = 4;
    /// A byte outside ASCII that folds to itself (versions 1 and 2).
    pub const FOREIGN: u8 = 8;
}

/// The immutable part of an analyzer.
struct Rules {
    classes: [u8; 256],
    characters: &'static Characters,
    folding: CaseFolding,
    sensitivity: Sensitivity,
    strips_diacritics: bool,
}

impl Analyzer {
    /// Creates the analyzer that an index of `version` uses for texts in `language`.
    pub fn new(language: Language, version: TextVersion) -> Analyzer {
        Analyzer::with_sensitivity(language, version, Sensitivity::NONE)
    }

    /// Creates an analyzer whose terms keep their case or their diacritics as `sensitivity`
    /// demands. Stop words are compared after case folding, as in [`Analyzer::new`]. Versions 1 and
    /// 2 never strip diacritics.
    pub fn with_sensitivity(
        language: Language,
        version: TextVersion,
        sensitivity: Sensitivity,
    ) -> Analyzer {
        Analyzer {
            rules: Rules::new(language, version, sensitivity),
            stop_words: stop_words(language),
            stemmer: Stemmer::new(language.grammar),
            folded: String::new(),
            stripped: String::new(),
        }
    }

    /// Calls `visit` with each term of `text` in order. Stop words are skipped.
    pub fn terms(&mut self, text: &str, mut visit: impl FnMut(Term<'_>)) {
        let mut position = 0;
        self.words(text, |analyzer, word| {
            if let Some(term) = analyzer.term_of(&word) {
                visit(Term {
                    term,
                    raw: word.text,
                    range: word.range,
                    position,
                });
            }
            position += 1;
        });
    }

    /// Calls `visit` with each word of `text` in order, and with the analyzer. Stop words are not
    /// skipped.
    pub(crate) fn words(&mut self, text: &str, mut visit: impl FnMut(&mut Analyzer, Word<'_>)) {
        let mut end = 0;
        while let Some(word) = self.rules.next_word(text, end) {
            end = word.range.end;
            visit(self, word);
        }
    }

    /// Returns the term of a word, or `None` for a stop word.
    pub(crate) fn term_of<'a>(&'a mut self, word: &Word<'a>) -> Option<&'a str> {
        let folded = self.rules.fold(word.text, word.classes, &mut self.folded);
        if self.stop_words.contains(folded) {
            return None;
        }
        let form = self.rules.stemmed_form(word.text, folded, word.classes);
        let stem = self.stemmer.stem(form.text, form.case);
        Some(self.rules.strip(stem, &mut self.stripped))
    }
}

/// A word that the scan found, as it is written in the text.
pub(crate) struct Word<'t> {
    pub(crate) text: &'t str,
    /// The byte range of the word in the text.
    pub(crate) range: Range<usize>,
    /// The classes of the word's bytes, ORed.
    classes: u8,
}

/// The form of a word that is stemmed: as written, or with folded case.
struct StemmedForm<'a> {
    text: &'a str,
    case: WordCase,
}

impl Rules {
    fn new(language: Language, version: TextVersion, sensitivity: Sensitivity) -> Rules {
        let is_turkish = language.grammar == Grammar::Turkish && version == TextVersion::V3;
        let folding = if is_turkish {
            CaseFolding::Turkish
        } else {
            CaseFolding::Ordinary
        };
        Rules {
            classes: classes(language, version),
            characters: characters(),
            folding,
            sensitivity,
            strips_diacritics: version == TextVersion::V3 && !sensitivity.diacritics,
        }
    }

    /// Returns the first word that starts at byte `position` or later.
    fn next_word<'t>(&self, text: &'t str, position: usize) -> Option<Word<'t>> {
        let bytes = text.as_bytes();
        let mut start = position;
        loop {
            match self.class(*bytes.get(start)?) {
                class::DELIMITER => start += 1,
                class::WIDE => match self.wide(text, start) {
                    (class::DELIMITER, length) => start += length,
                    _ => break,
                },
                _ => break,
            }
        }
        let mut classes = 0;
        let mut end = start;
        while let Some(byte) = bytes.get(end) {
            let (class, length) = match self.class(*byte) {
                class::WIDE => self.wide(text, end),
                class => (class, 1),
            };
            if class == class::DELIMITER {
                break;
            }
            classes |= class;
            end += length;
        }
        let Some(word) = text.get(start..end) else {
            unreachable!("{start}..{end} is not a word of {} bytes", text.len());
        };
        Some(Word {
            text: word,
            range: start..end,
            classes,
        })
    }

    #[allow(
        clippy::indexing_slicing,
        reason = "the array has a class for each byte"
    )]
    fn class(&self, byte: u8) -> u8 {
        self.classes[usize::from(byte)]
    }

    /// Returns the class and the length in bytes of the character at byte `at`, whose class is
    /// [`class::WIDE`].
    fn wide(&self, text: &str, at: usize) -> (u8, usize) {
        let (_, rest) = text.split_at(at);
        let Some(character) = rest.chars().next() else {
            unreachable!("no character begins at {at} of {} bytes", text.len());
        };
        let is_delimiter = !character.is_ascii() && self.characters.is_delimiter(character);
        let class = if is_delimiter {
            class::DELIMITER
        } else {
            class::WIDE
        };
        (class, character.len_utf8())
    }

    /// Returns `raw` with its case folded. Uses `buffer` only if the word changes.
    fn fold<'a>(&self, raw: &'a str, classes: u8, buffer: &'a mut String) -> &'a str {
        if classes & (class::CAPITAL | class::WIDE) == 0 {
            return raw;
        }
        buffer.clear();
        if classes & class::WIDE == 0 {
            buffer.push_str(raw);
            buffer.make_ascii_lowercase();
        } else {
            self.characters.fold_into(raw, self.folding, buffer);
        }
        buffer
    }

    /// Returns the form of the word that is stemmed.
    fn stemmed_form<'a>(&self, raw: &'a str, folded: &'a str, classes: u8) -> StemmedForm<'a> {
        let is_ascii = classes & (class::WIDE | class::FOREIGN) == 0;
        let (text, is_lower) = if self.sensitivity.case {
            (raw, classes & class::CAPITAL == 0)
        } else {
            (folded, true)
        };
        StemmedForm {
            text,
            case: WordCase::from_is_lower_ascii(is_ascii && is_lower),
        }
    }

    /// Returns `stem` without diacritics if the rules strip them.
    fn strip<'a>(&self, stem: &'a str, buffer: &'a mut String) -> &'a str {
        // The ASCII diacritics (`^` and the backtick) are delimiters, so an ASCII word has none.
        if !self.strips_diacritics || stem.is_ascii() {
            return stem;
        }
        buffer.clear();
        self.characters.strip_into(stem, buffer);
        buffer
    }
}

/// Returns the class of every byte. Version 3 classifies whole characters outside ASCII. Versions 1
/// and 2 handle ASCII only and treat every other byte as part of a word.
fn classes(language: Language, version: TextVersion) -> [u8; 256] {
    std::array::from_fn(|number| match number as u8 {
        b'\'' if language.keeps_apostrophes() => class::PLAIN,
        b'I' if version == TextVersion::V3 && language.grammar == Grammar::Turkish => class::WIDE,
        b'A'..=b'Z' => class::CAPITAL,
        b'_' => class::PLAIN,
        b'\t'..=b'\r' | b' ' => class::DELIMITER,
        byte if byte.is_ascii_punctuation() => class::DELIMITER,
        0x80.. if version == TextVersion::V3 => class::WIDE,
        0x80.. => class::FOREIGN,
        _ => class::PLAIN,
    })
}

#[cfg(test)]
mod tests {
    use super::{Analyzer, Sensitivity};
    use crate::{Language, TextVersion};

    fn terms(text: &str, language: Language, version: TextVersion) -> Vec<String> {
        let mut terms = Vec::new();
        Analyzer::new(language, version).terms(text, |found| {
            assert_eq!(&text[found.range.clone()], found.raw, "in {text:?}");
            terms.push(found.term.to_string());
        });
        terms
    }

    #[test]
    fn version_3_splits_and_folds_unicode() {
        let check = |text: &str, expected: &[&str]| {
            assert_eq!(
                terms(text, Language::NONE, TextVersion::V3),
                expected,
                "of {text:?}"
            );
        };
        check("", &[]);
        check(" \t\n\u{a0}\u{3000}", &[]);
        check("one", &["one"]);
        check("state-of-the-art", &["state", "of", "the", "art"]);
        check("don't rock'n'roll", &["don", "t", "rock", "n", "roll"]);
        check("snake_case __init__", &["snake_case", "__init__"]);
        check(
            "www.example.com v1.2 3,14",
            &["www", "example", "com", "v1", "2", "3", "14"],
        );
        check(
            "a+b@c.d/e?f=g&h#i",
            &["a", "b", "c", "d", "e", "f", "g", "h", "i"],
        );
        check(
            "“curly” «guillemets» „low“ …end",
            &["curly", "guillemets", "low", "end"],
        );
        check(
            "north–south east—west up−down in‑out",
            &["north", "south", "east", "west", "up", "down", "in", "out"],
        );
        check(
            "東京都 日本語。世界、朋友",
            &["東京都", "日本語", "世界", "朋友"],
        );
        check("ガギグ", &["カキク"]);
        check("안녕하세요", &["안녕하세요"]);
        check("CAFÉ cafe\u{301} Ñ Việt", &["cafe", "cafe", "n", "viet"]);
        check("ΟΔΥΣΣΕΎΣ Οδυσσεύς", &["οδυσσευσ", "οδυσσευσ"]);
        check("Ёлка ЙОД", &["елка", "иод"]);
        check("Straße STRAẞE", &["straße", "straße"]);
        check(
            "İstanbul ISPARTA ılık",
            &["İstanbul".replace('İ', "I").as_str(), "isparta", "ılık"],
        );
        check("ſtone Łódź ﬁn Ⅳ", &["stone", "łodz", "ﬁn", "ⅳ"]);
        check(
            "party 🎉 ok👍ok 👩\u{200d}👧",
            &["party", "🎉", "ok👍ok", "👩\u{200d}👧"],
        );
        check(
            "soft\u{ad}hyphen zero\u{200b}width",
            &["soft", "hyphen", "zero\u{200b}width"],
        );
        check("a \u{301} ¨ b", &["a", "", "", "b"]);
        check("nul\0is\u{1}text", &["nul\0is\u{1}text"]);
        check("𐐀𐐨", &["𐐨𐐨"]);
    }

    #[test]
    fn versions_1_and_2_split_and_fold_ascii_only() {
        for version in [TextVersion::V1, TextVersion::V2] {
            let check = |text: &str, language: Language, expected: &[&str]| {
                assert_eq!(terms(text, language, version), expected, "of {text:?}");
            };
            check(
                "Don't STOP_it e-mail",
                Language::NONE,
                &["don", "t", "stop_it", "e", "mail"],
            );
            check("CAFÉ café", Language::NONE, &["cafÉ", "café"]);
            check(
                "“curly” yes…no a\u{a0}b",
                Language::NONE,
                &["“curly”", "yes…no", "a\u{a0}b"],
            );
            check("МОСКВА", Language::RUSSIAN, &["МОСКВА"]);
            check(
                "don't it's John's dogs'",
                Language::ENGLISH,
                &["john", "dog"],
            );
            check("l'école", Language::FRENCH, &["écol"]);
            check("ISPARTA", Language::TURKISH, &["ispar"]);
        }
    }

    #[test]
    fn languages_drop_stop_words_and_stem() {
        let check = |language: Language, text: &str, expected: &[&str]| {
            assert_eq!(
                terms(text, language, TextVersion::V3),
                expected,
                "of {text:?}"
            );
        };
        check(
            Language::ENGLISH,
            "The runners WERE running; don't it's John's dogs'",
            &["runner", "run", "john", "dog"],
        );
        check(Language::ENGLISH, "Naïvely CAFÉS", &["naiv", "cafe"]);
        check(Language::FRENCH, "L'école nationale", &["ecol", "national"]);
        check(
            Language::GERMAN,
            "Die Häuser und Straßen",
            &["haus", "strass"],
        );
        check(Language::RUSSIAN, "за старыми домами", &["стар", "дом"]);
        check(
            Language::TURKISH,
            "İstanbul ISPARTA",
            &["istanbul", "ıspar"],
        );
        check(Language::SWEDISH, "Husen på ön", &["hus", "on"]);
    }

    #[test]
    fn sensitive_terms_keep_case_or_diacritics() {
        let check = |case, diacritics, expected: &[&str]| {
            let sensitivity = Sensitivity { case, diacritics };
            let mut analyzer =
                Analyzer::with_sensitivity(Language::ENGLISH, TextVersion::V3, sensitivity);
            let mut terms = Vec::new();
            analyzer.terms("The CAFÉ of Cafés", |found| {
                terms.push(found.term.to_string())
            });
            assert_eq!(terms, expected, "{sensitivity:?}");
        };
        check(false, false, &["cafe", "cafe"]);
        check(true, false, &["CAFE", "Cafe"]);
        check(false, true, &["café", "café"]);
        check(true, true, &["CAFÉ", "Café"]);
    }

    #[test]
    fn terms_are_non_empty_substrings_of_the_text_in_order() {
        const ALPHABET: [char; 20] = [
            'a',
            'Z',
            'I',
            'İ',
            '\'',
            '-',
            ' ',
            '_',
            '\0',
            'é',
            '\u{301}',
            'ß',
            'Σ',
            '東',
            '。',
            '\u{a0}',
            '𐐀',
            '🎉',
            'щ',
            '\u{10ffff}',
        ];
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 20) as usize
        };
        for language in Language::all() {
            for version in [TextVersion::V1, TextVersion::V2, TextVersion::V3] {
                let mut analyzer = Analyzer::new(language, version);
                for _ in 0..200 {
                    let length = next() % 30;
                    let text: String = (0..length).map(|_| ALPHABET[next() % 20]).collect();
                    let mut end = 0;
                    analyzer.terms(&text, |found| {
                        assert_eq!(&text[found.range.clone()], found.raw, "in {text:?}");
                        assert!(
                            found.range.start >= end && !found.raw.is_empty(),
                            "in {text:?}"
                        );
                        end = found.range.end;
                    });
                }
            }
        }
    }

    #[test]
    fn very_long_words_are_one_term() {
        for (word, language) in [
            ("xy".repeat(50_000), Language::ENGLISH),
            ("é".repeat(50_000), Language::NONE),
            ("running".repeat(10_000), Language::ENGLISH),
            ("日".repeat(50_000), Language::GERMAN),
        ] {
            assert_eq!(terms(&word, language, TextVersion::V3).len(), 1);
        }
    }
}
