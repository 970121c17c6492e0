//! The analyzers of search indexes: a string becomes tokens with positions and byte ranges.
//!
//! Analyzers whose names begin with `lucene.` are those of Apache Lucene that MongoDB Search
//! supports (<https://www.mongodb.com/docs/search/analyzers/>). Unlike the
//! [`Analyzer`](crate::Analyzer) of text indexes they keep diacritics, and a NUL does not end a
//! string. Analyzers whose names begin with `windrow.` are designed for the texts and names of
//! files in any language.
//!
//! An index stores tokens. A change of these rules, or of the Unicode version of the standard
//! library or of `unicode-segmentation`, may change the tokens of some characters. It then needs a
//! new [`ANALYSIS_VERSION`], so that indexes are rebuilt.

mod cjk;
mod custom;
mod elision;
mod file_stems;
mod file_words;
mod grams;
mod stems;
mod text_words;
mod words;

use std::ops::Range;

use crate::characters::WordCase;
use crate::language::{Grammar, Language, TextVersion};
use crate::stem::Stemmer;
pub use custom::{
    AnalyzerRules, CharacterFilter, CustomAnalyzer, GramLengths, NormalForm, Original, PartRules,
    Pattern, SplitRule, TokenFilter,
};
use file_stems::FileStems;
use file_words::TokenSet;
pub use grams::{GramKind, GramOptions, GramTokenizer};
pub use text_words::{TextWord, TextWords};
pub use words::WordBoundaries;

/// The version of the rules of the analyzers. It increases whenever the tokens of any string
/// change. An index stores the version with which its entries were created, and is rebuilt if it
/// differs from this one.
pub const ANALYSIS_VERSION: i32 = 2;

/// The number of UTF-16 code units at which tokenizers split a word. Lucene's `maxTokenLength`.
pub const TOKEN_UNITS_MAX: usize = 255;

/// An analyzer of search indexes.
///
/// ```
/// use windrow_text::SearchAnalyzer;
///
/// let english = SearchAnalyzer::parse("lucene.english").unwrap();
/// let mut found = Vec::new();
/// english.tokenizer().tokens("The lions' dens", &mut |token| {
///     found.push((token.term.to_owned(), token.range, token.position));
/// });
/// assert_eq!(found, [("lion".to_owned(), 4..9, 1), ("den".to_owned(), 11..15, 2)]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SearchAnalyzer {
    /// `lucene.standard`: words by Unicode's boundaries, in lower case.
    Standard,
    /// `lucene.simple`: runs of letters, in lower case.
    Simple,
    /// `lucene.whitespace`: substrings without white space, unchanged.
    Whitespace,
    /// `lucene.keyword`: the whole string, unchanged.
    Keyword,
    /// `lucene.cjk`: as `Standard`, with pairs of adjacent Chinese, Japanese and Korean characters,
    /// without English stop words.
    Cjk,
    /// `lucene.english` and others: as `Standard`, without stop words, stemmed.
    Language(Language),
    /// `windrow.words`: words, their parts and the pieces of these, without case and diacritics; in
    /// scripts without spaces, characters and pairs of characters.
    FileWords,
    /// `windrow.wordParts`: the parts of words as in `FileWords`, and pairs of characters. For
    /// queries.
    FileWordParts,
    /// `windrow.stems`: the stems of words in the language of their document, marked with its code.
    FileStems,
    /// `windrow.name`: the whole string without case and diacritics.
    FileName,
    /// An analyzer that a client defined.
    Custom(CustomAnalyzer),
}

/// A token of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token<'a> {
    /// The token as the index stores it.
    pub term: &'a str,
    /// The byte range in the text.
    pub range: Range<usize>,
    /// The number of words before it, stop words included.
    pub position: u32,
}

/// Receives tokens in the order of the text. Positions do not decrease, except after pieces of
/// words in `windrow.words`.
pub type VisitToken<'v> = dyn FnMut(Token<'_>) + 'v;

/// The prefix of the names of Lucene's analyzers.
const PREFIX: &str = "lucene.";

/// The analyzers of Windrow and their names.
const OWN: [(&str, SearchAnalyzer); 4] = [
    ("windrow.words", SearchAnalyzer::FileWords),
    ("windrow.wordParts", SearchAnalyzer::FileWordParts),
    ("windrow.stems", SearchAnalyzer::FileStems),
    ("windrow.name", SearchAnalyzer::FileName),
];

impl SearchAnalyzer {
    /// Returns the analyzer with this name. Returns `None` for unknown names and for languages
    /// without a stemmer.
    pub fn parse(name: &str) -> Option<SearchAnalyzer> {
        if let Some((_, analyzer)) = OWN.iter().find(|(own, _)| *own == name) {
            return Some(analyzer.clone());
        }
        Some(match name.strip_prefix(PREFIX)? {
            "standard" => SearchAnalyzer::Standard,
            "simple" => SearchAnalyzer::Simple,
            "whitespace" => SearchAnalyzer::Whitespace,
            "keyword" => SearchAnalyzer::Keyword,
            "cjk" => SearchAnalyzer::Cjk,
            name => {
                let language = Language::parse(name, TextVersion::V3).ok()?;
                // Codes such as `en` and the language `none` are names of `$text` only.
                let is_named = language != Language::NONE && language.name() == name;
                SearchAnalyzer::Language(is_named.then_some(language)?)
            }
        })
    }

    /// Returns the name.
    pub fn name(&self) -> String {
        let name = match self {
            SearchAnalyzer::Standard => "standard",
            SearchAnalyzer::Simple => "simple",
            SearchAnalyzer::Whitespace => "whitespace",
            SearchAnalyzer::Keyword => "keyword",
            SearchAnalyzer::Cjk => "cjk",
            SearchAnalyzer::Language(language) => language.name(),
            SearchAnalyzer::Custom(custom) => return custom.name().to_owned(),
            own => {
                let found = OWN.iter().find(|(_, analyzer)| analyzer == own);
                return found.map_or("", |(name, _)| *name).to_owned();
            }
        };
        format!("{PREFIX}{name}")
    }

    /// Returns a tokenizer. Create one for many strings: it caches stems.
    pub fn tokenizer(&self) -> SearchTokenizer {
        let grammar = match self {
            SearchAnalyzer::Language(language) => language.grammar,
            _ => Grammar::None,
        };
        SearchTokenizer {
            analyzer: self.clone(),
            stemmer: Stemmer::new(grammar),
            lower: String::new(),
            file_stems: FileStems::default(),
        }
    }

    /// Appends the normalized form of a pattern or of a part of a word, which can be compared with
    /// terms: lower case if the analyzer folds case. A pattern is neither split nor stemmed.
    pub fn normalize(&self, text: &str, into: &mut String) {
        match self {
            SearchAnalyzer::Whitespace | SearchAnalyzer::Keyword => into.push_str(text),
            SearchAnalyzer::FileWords
            | SearchAnalyzer::FileWordParts
            | SearchAnalyzer::FileStems
            | SearchAnalyzer::FileName => into.push_str(&file_words::normalized(text)),
            SearchAnalyzer::Custom(custom) => custom.normalize(text, into),
            analyzer => lower_into(text, analyzer.is_turkish(), into),
        }
    }

    /// Returns `true` if the tokens of a word do not depend on other words, in most texts. See
    /// [`SearchTokenizer::has_independent_words`].
    pub fn has_independent_words(&self) -> bool {
        match self {
            SearchAnalyzer::Standard
            | SearchAnalyzer::Language(_)
            | SearchAnalyzer::FileWords
            | SearchAnalyzer::FileWordParts
            | SearchAnalyzer::FileStems => true,
            SearchAnalyzer::Simple
            | SearchAnalyzer::Whitespace
            | SearchAnalyzer::Keyword
            | SearchAnalyzer::Cjk
            | SearchAnalyzer::FileName
            | SearchAnalyzer::Custom(_) => false,
        }
    }

    /// Returns the rule by which the words of the analyzer end.
    pub fn word_boundaries(&self) -> WordBoundaries {
        match self {
            SearchAnalyzer::FileWords
            | SearchAnalyzer::FileWordParts
            | SearchAnalyzer::FileStems => WordBoundaries::UnicodeWithSigns,
            SearchAnalyzer::Standard
            | SearchAnalyzer::Language(_)
            | SearchAnalyzer::Simple
            | SearchAnalyzer::Whitespace
            | SearchAnalyzer::Keyword
            | SearchAnalyzer::Cjk
            | SearchAnalyzer::FileName
            | SearchAnalyzer::Custom(_) => WordBoundaries::Unicode,
        }
    }

    fn is_turkish(&self) -> bool {
        matches!(self, SearchAnalyzer::Language(language) if language.grammar == Grammar::Turkish)
    }
}

/// Splits strings into tokens. Created by [`SearchAnalyzer::tokenizer`].
pub struct SearchTokenizer {
    analyzer: SearchAnalyzer,
    stemmer: Stemmer,
    lower: String,
    file_stems: FileStems,
}

impl SearchTokenizer {
    /// Returns the analyzer whose rules apply.
    pub fn analyzer(&self) -> &SearchAnalyzer {
        &self.analyzer
    }

    /// Sets the language of the document whose strings follow, for `windrow.stems`. `None` is an
    /// unknown language. Without this call, the tokens are those of all languages, as queries need.
    pub fn set_document_language(&mut self, language: Option<Language>) {
        self.file_stems.set_document_language(language);
    }

    /// Returns `true` if the tokens of the text with these words are the
    /// [`word_tokens`](Self::word_tokens) of each word.
    pub fn has_independent_words(&self, words: &TextWords) -> bool {
        let makes_pairs = matches!(
            self.analyzer,
            SearchAnalyzer::FileWords | SearchAnalyzer::FileWordParts
        );
        self.analyzer.has_independent_words() && !(makes_pairs && words.have_pairs())
    }

    /// Calls `visit` with each token of a word. Positions and ranges are relative to the word.
    /// Returns the number of positions of the word. `case` must be that of the word.
    pub fn word_tokens(&mut self, word: &str, case: WordCase, visit: &mut VisitToken<'_>) -> u32 {
        let SearchTokenizer {
            stemmer,
            lower,
            file_stems,
            ..
        } = self;
        let term = match &self.analyzer {
            SearchAnalyzer::FileWords => {
                return file_words::word_tokens(word, case, TokenSet::Index, visit);
            }
            SearchAnalyzer::FileWordParts => {
                return file_words::word_tokens(word, case, TokenSet::Query, visit);
            }
            SearchAnalyzer::FileStems => return file_stems.word_tokens(word, case, visit),
            SearchAnalyzer::Language(language) => {
                stems::stem(*language, stemmer, word, case, lower)
            }
            SearchAnalyzer::Standard
            | SearchAnalyzer::Simple
            | SearchAnalyzer::Whitespace
            | SearchAnalyzer::Keyword
            | SearchAnalyzer::Cjk
            | SearchAnalyzer::FileName
            | SearchAnalyzer::Custom(_) => Some(lowered(word, case, false, lower)),
        };
        if let Some(term) = term {
            visit(Token {
                term,
                range: 0..word.len(),
                position: 0,
            });
        }
        1
    }

    /// Calls `visit` with each token of `text` in order.
    pub fn tokens(&mut self, text: &str, visit: &mut VisitToken<'_>) {
        match &self.analyzer {
            SearchAnalyzer::Custom(custom) => custom.tokens(text, visit),
            SearchAnalyzer::Keyword => visit(Token {
                term: text,
                range: 0..text.len(),
                position: 0,
            }),
            SearchAnalyzer::Whitespace => {
                words::runs(text, |one| !words::is_space(one), &mut |token| visit(token));
            }
            SearchAnalyzer::Simple => {
                let lower = &mut self.lower;
                words::runs(text, char::is_alphabetic, &mut |token| {
                    let term = lowered(token.term, WordCase::Other, false, lower);
                    visit(Token { term, ..token });
                });
            }
            SearchAnalyzer::Cjk => cjk::tokens(text, visit),
            SearchAnalyzer::FileWords => file_words::tokens(text, TokenSet::Index, visit),
            SearchAnalyzer::FileWordParts => file_words::tokens(text, TokenSet::Query, visit),
            SearchAnalyzer::FileName => file_words::name(text, visit),
            SearchAnalyzer::Standard | SearchAnalyzer::Language(_) | SearchAnalyzer::FileStems => {
                let mut next = 0;
                let boundaries = self.analyzer.word_boundaries();
                words::bounded(text, boundaries, &mut |word, case| {
                    let first = next;
                    next += self.word_tokens(word.term, case, &mut |token| {
                        let start = word.range.start;
                        visit(Token {
                            range: start + token.range.start..start + token.range.end,
                            position: first + token.position,
                            ..token
                        });
                    });
                });
            }
        }
    }
}

/// Returns a word in lower case. Uses `buffer` only if the word may change. `case` must be that of
/// the word.
fn lowered<'t>(word: &'t str, case: WordCase, is_turkish: bool, buffer: &'t mut String) -> &'t str {
    if case == WordCase::LowerAscii {
        return word;
    }
    buffer.clear();
    lower_into(word, is_turkish, buffer);
    buffer
}

/// Appends `text` in lower case, with one character for each character, as Lucene's
/// `LowerCaseFilter` does.
fn lower_into(text: &str, is_turkish: bool, into: &mut String) {
    if text.is_ascii() && !is_turkish {
        let start = into.len();
        into.push_str(text);
        if let Some(appended) = into.get_mut(start..) {
            appended.make_ascii_lowercase();
        }
        return;
    }
    into.extend(text.chars().map(|character| match character {
        'I' if is_turkish => 'ı',
        // The lower case of `İ` is the only one with two characters. Lucene uses the first.
        other => other.to_lowercase().next().unwrap_or(other),
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, text: &str, expected: &[(&str, Range<usize>, u32)]) {
        let mut found = Vec::new();
        let analyzer = SearchAnalyzer::parse(name).unwrap();
        assert_eq!(analyzer.name(), name);
        analyzer.tokenizer().tokens(text, &mut |token| {
            found.push((token.term.to_owned(), token.range, token.position));
        });
        let expected: Vec<_> = expected
            .iter()
            .map(|(term, range, position)| ((*term).to_owned(), range.clone(), *position))
            .collect();
        assert_eq!(found, expected, "{name} of {text:?}");
    }

    fn check_terms(name: &str, text: &str, expected: &[&str]) {
        let mut found = Vec::new();
        let mut tokenizer = SearchAnalyzer::parse(name).unwrap().tokenizer();
        tokenizer.tokens(text, &mut |token| found.push(token.term.to_owned()));
        assert_eq!(found, expected, "{name} of {text:?}");
    }

    #[test]
    fn standard_splits_at_unicode_word_boundaries() {
        let name = "lucene.standard";
        check(name, "", &[]);
        check(name, " \t.,!", &[]);
        check(
            name,
            "The Quick-brown fox",
            &[
                ("the", 0..3, 0),
                ("quick", 4..9, 1),
                ("brown", 10..15, 2),
                ("fox", 16..19, 3),
            ],
        );
        let check = |text: &str, expected: &[&str]| check_terms(name, text, expected);
        check("can't O'Neill's don’t", &["can't", "o'neill's", "don’t"]);
        check("3.14 1,000 a.b a:b", &["3.14", "1,000", "a.b", "a:b"]);
        check("snake_case __init__ _", &["snake_case", "__init__"]);
        check("me@example.com", &["me", "example.com"]);
        check("CAFÉ İstanbul ΣΑΣ", &["café", "istanbul", "σασ"]);
        check(
            "東京 ひら カタカナ 한국어",
            &["東", "京", "ひ", "ら", "カタカナ", "한국어"],
        );
        check("ภาษาไทย 12", &["ภาษาไทย", "12"]);
        check("ok 👍 🇩🇪 👩‍👧", &["ok", "👍", "🇩🇪", "👩‍👧"]);
        check("a\0b", &["a", "b"]);
    }

    #[test]
    fn long_words_are_split_at_255_units() {
        for name in ["lucene.standard", "lucene.whitespace", "lucene.simple"] {
            let text = "x".repeat(600);
            check(
                name,
                &text,
                &[
                    (&"x".repeat(255), 0..255, 0),
                    (&"x".repeat(255), 255..510, 1),
                    (&"x".repeat(90), 510..600, 2),
                ],
            );
            // A character outside the basic plane has two units, and is not split.
            let text = format!("{}𐐨y", "x".repeat(254));
            check_terms(name, &text, &[&"x".repeat(254), "𐐨y"]);
        }
    }

    #[test]
    fn the_plain_analyzers_split_as_named() {
        check(
            "lucene.whitespace",
            " Hello,\tWORLD\u{a0}x ",
            &[("Hello,", 1..7, 0), ("WORLD\u{a0}x", 8..16, 1)],
        );
        check(
            "lucene.simple",
            "Don't 4you2 É",
            &[
                ("don", 0..3, 0),
                ("t", 4..5, 1),
                ("you", 7..10, 2),
                ("é", 12..14, 3),
            ],
        );
        check(
            "lucene.keyword",
            "Hello World",
            &[("Hello World", 0..11, 0)],
        );
        check("lucene.keyword", "", &[("", 0..0, 0)]);
    }

    #[test]
    fn languages_drop_stop_words_and_stem() {
        check(
            "lucene.english",
            "The dog's RUNNING to a house",
            &[("dog", 4..9, 1), ("run", 10..17, 2), ("hous", 23..28, 5)],
        );
        check_terms("lucene.english", "don’s which", &["don", "which"]);
        check_terms("lucene.french", "L'avion qu’elle a", &["avion"]);
        check_terms("lucene.italian", "dell'arte", &["arte"]);
        check_terms("lucene.german", "die Häuser", &["haus"]);
        check_terms(
            "lucene.turkish",
            "ISPARTA İstanbul'da",
            &["ıspar", "istanbul"],
        );
    }

    #[test]
    fn pairs_of_east_asian_characters_are_tokens() {
        let name = "lucene.cjk";
        check(
            name,
            "東京都 the Tokyo",
            &[("東京", 0..6, 0), ("京都", 3..9, 1), ("tokyo", 14..19, 3)],
        );
        check_terms(name, "一", &["一"]);
        check_terms(name, "ひらカナ", &["ひら", "らカ", "カナ"]);
        check_terms(name, "ﾀﾞｲ ＡＢＣ", &["ダイ", "abc"]);
        check_terms(name, "한국어", &["한국", "국어"]);
        check_terms(name, "東 京", &["東", "京"]);
        check_terms(name, "東x京", &["東", "x", "京"]);
    }

    #[test]
    fn other_names_are_unknown() {
        for name in [
            "",
            "standard",
            "lucene.",
            "lucene.none",
            "lucene.en",
            "lucene.klingon",
            "lucene.English",
            "lucene.kuromoji",
        ] {
            assert_eq!(SearchAnalyzer::parse(name), None, "{name}");
        }
    }

    /// Random strings of characters at which the tokenizers branch: ranges are in order and lie on
    /// the boundaries of characters, and positions grow.
    #[test]
    fn tokens_are_in_order() {
        const ALPHABET: [char; 22] = [
            'a', 'Z', 'İ', '\'', '’', '-', ' ', '_', '\0', 'é', '\u{301}', 'ﾀ', 'ﾞ', 'ﾊ', 'ﾟ', '東',
            'ก', '한', '🎉', '\u{200d}', '🇩', '9',
        ];
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 20) as usize
        };
        let names = [
            "standard",
            "simple",
            "whitespace",
            "keyword",
            "cjk",
            "french",
            "turkish",
        ];
        for name in names {
            let analyzer = SearchAnalyzer::parse(&format!("lucene.{name}")).unwrap();
            let mut tokenizer = analyzer.tokenizer();
            for _ in 0..2_000 {
                let length = next() % 20;
                let text: String = (0..length).map(|_| ALPHABET[next() % 22]).collect();
                let mut last: Option<(Range<usize>, u32)> = None;
                tokenizer.tokens(&text, &mut |token| {
                    assert!(text.get(token.range.clone()).is_some(), "{name} {text:?}");
                    if let Some((range, position)) = &last {
                        assert!(range.start <= token.range.start, "{name} of {text:?}");
                        assert!(*position < token.position, "{name} of {text:?}");
                    }
                    last = Some((token.range, token.position));
                });
            }
        }
    }
}
