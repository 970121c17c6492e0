//! Grams: parts of the words of a string, for completion while a user types.
//!
//! Words are joined by single spaces, so a gram can continue in the next word. Source:
//! <https://www.mongodb.com/docs/search/indexes/field-types/autocomplete-type/>.

use std::ops::Range;

use super::{SearchAnalyzer, SearchTokenizer, Token, VisitToken, file_words};

/// The maximum number of grams of a string. Further ones are omitted. MongoDB Search has the same
/// limit.
const GRAMS_MAX: u32 = 20_000_000;

/// The boundaries of grams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GramKind {
    /// `edgeGram`: grams that begin at the start of a word.
    Edge,
    /// `rightEdgeGram`: grams that end at the end of a word. Their characters are reversed.
    RightEdge,
    /// `nGram`: grams that begin at any character of a word.
    Any,
}

/// Options of the division of a string into grams.
///
/// ```
/// use windrow_text::{GramKind, GramOptions, SearchAnalyzer};
///
/// let options = GramOptions {
///     analyzer: SearchAnalyzer::Standard,
///     kind: GramKind::Edge,
///     min: 2,
///     max: 4,
///     fold_diacritics: true,
/// };
/// let mut found = Vec::new();
/// options.tokenizer().tokens("Às you", &mut |token| found.push(token.term.to_owned()));
/// assert_eq!(found, ["as", "as ", "as y", "yo", "you"]);
/// assert_eq!(options.query_term("ÀS YOUR"), "as y");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GramOptions {
    /// The analyzer that splits the string into words.
    pub analyzer: SearchAnalyzer,
    /// The boundaries of grams.
    pub kind: GramKind,
    /// The minimum number of characters. A shorter word, or shorter words together, are a single
    /// gram.
    pub min: usize,
    /// The maximum number of characters.
    pub max: usize,
    /// Diacritics are removed.
    pub fold_diacritics: bool,
}

impl GramOptions {
    /// Returns a tokenizer. Create one for many strings.
    pub fn tokenizer(&self) -> GramTokenizer {
        GramTokenizer {
            options: self.clone(),
            tokenizer: self.analyzer.tokenizer(),
            joined: JoinedWords::default(),
            gram: String::new(),
        }
    }

    /// Returns the gram to look up for a string that is being typed.
    pub fn query_term(&self, typed: &str) -> String {
        let mut normalized = String::new();
        self.analyzer.normalize(typed, &mut normalized);
        let folded = self.folded(&normalized);
        match self.kind {
            GramKind::RightEdge => folded.chars().rev().take(self.max).collect(),
            GramKind::Edge | GramKind::Any => folded.chars().take(self.max).collect(),
        }
    }

    fn folded<'t>(&self, term: &'t str) -> std::borrow::Cow<'t, str> {
        if self.fold_diacritics {
            file_words::normalized(term)
        } else {
            term.into()
        }
    }
}

/// Splits strings into grams. Created by [`GramOptions::tokenizer`].
pub struct GramTokenizer {
    options: GramOptions,
    tokenizer: SearchTokenizer,
    joined: JoinedWords,
    gram: String,
}

/// The words of a string, joined by spaces.
#[derive(Default)]
struct JoinedWords {
    characters: Vec<JoinedCharacter>,
    words: Vec<JoinedWord>,
}

struct JoinedCharacter {
    character: char,
    /// The byte range of its original characters.
    bytes: Range<usize>,
}

struct JoinedWord {
    /// The indexes of its characters.
    characters: Range<usize>,
    position: u32,
}

impl JoinedWords {
    /// Adds a word. `term` is the analyzed form of `original`, which begins at byte `start`.
    fn add(&mut self, term: &str, original: &str, start: usize, position: u32) {
        if !self.characters.is_empty() {
            self.characters.push(JoinedCharacter {
                character: ' ',
                bytes: start..start,
            });
        }
        let first = self.characters.len();
        let is_same_length = term.chars().count() == original.chars().count();
        let mut places = original.char_indices();
        for character in term.chars() {
            let place = places.next().filter(|_| is_same_length);
            let bytes = match place {
                Some((at, one)) => start + at..start + at + one.len_utf8(),
                // The analyzer has changed the length, so each character gets the range of the
                // whole word.
                None => start..start + original.len(),
            };
            self.characters.push(JoinedCharacter { character, bytes });
        }
        self.words.push(JoinedWord {
            characters: first..self.characters.len(),
            position,
        });
    }
}

impl GramTokenizer {
    /// Calls `visit` with each gram of `text`. Its position is that of the word where it begins or,
    /// if it is read from the right, ends.
    pub fn tokens(&mut self, text: &str, visit: &mut VisitToken<'_>) {
        self.read_words(text);
        let GramTokenizer {
            options,
            joined,
            gram,
            ..
        } = self;
        let mut left = GRAMS_MAX;
        for word in &joined.words {
            let starts = match options.kind {
                GramKind::Edge => word.characters.start..word.characters.start + 1,
                GramKind::RightEdge => word.characters.end..word.characters.end + 1,
                GramKind::Any => word.characters.clone(),
            };
            for start in starts {
                let line = GramLine {
                    joined,
                    options,
                    start,
                    takes_short: options.kind != GramKind::Any || start == word.characters.start,
                };
                line.grams(word.position, gram, &mut left, visit);
                if left == 0 {
                    return;
                }
            }
        }
    }

    fn read_words(&mut self, text: &str) {
        let GramTokenizer {
            options,
            tokenizer,
            joined,
            ..
        } = self;
        joined.characters.clear();
        joined.words.clear();
        tokenizer.tokens(text, &mut |token| {
            let original = text.get(token.range.clone()).unwrap_or_default();
            let term = options.folded(token.term);
            if !term.is_empty() {
                joined.add(&term, original, token.range.start, token.position);
            }
        });
    }
}

/// The grams that begin at one character.
struct GramLine<'j> {
    joined: &'j JoinedWords,
    options: &'j GramOptions,
    /// The number of characters before this one.
    start: usize,
    /// Whole words that are shorter than the minimum are grams, too.
    takes_short: bool,
}

impl GramLine<'_> {
    /// Visits the grams in ascending order of length. `left` is the remaining number of grams of
    /// the string.
    fn grams(self, position: u32, gram: &mut String, left: &mut u32, visit: &mut VisitToken<'_>) {
        gram.clear();
        let Some(first) = self.character(0) else {
            return;
        };
        let mut range = first.bytes.clone();
        for length in 1..=self.options.max {
            let Some(JoinedCharacter { character, bytes }) = self.character(length - 1) else {
                return;
            };
            gram.push(*character);
            range = range.start.min(bytes.start)..range.end.max(bytes.end);
            let ends_word = || self.character(length).is_none_or(|it| it.character == ' ');
            if length < self.options.min && !(self.takes_short && ends_word()) {
                continue;
            }
            let Some(after) = left.checked_sub(1) else {
                return;
            };
            *left = after;
            visit(Token {
                term: gram,
                range: range.clone(),
                position,
            });
        }
    }

    /// Returns the character with this index in the direction of the grams.
    fn character(&self, number: usize) -> Option<&JoinedCharacter> {
        let at = match self.options.kind {
            GramKind::Edge | GramKind::Any => self.start.checked_add(number)?,
            GramKind::RightEdge => self.start.checked_sub(number + 1)?,
        };
        self.joined.characters.get(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(options: &GramOptions, text: &str, expected: &[&str]) {
        let mut found = Vec::new();
        options.tokenizer().tokens(text, &mut |token| {
            found.push(token.term.to_owned());
        });
        assert_eq!(found, expected, "{options:?} of {text:?}");
    }

    fn options(kind: GramKind, min: usize, max: usize) -> GramOptions {
        GramOptions {
            analyzer: SearchAnalyzer::Standard,
            kind,
            min,
            max,
            fold_diacritics: true,
        }
    }

    #[test]
    fn grams_go_on_in_the_next_word() {
        let edge = options(GramKind::Edge, 2, 5);
        check(&edge, "", &[]);
        check(&edge, "Abc d", &["ab", "abc", "abc ", "abc d", "d"]);
        check(&edge, "a is", &["a", "a ", "a i", "a is", "is"]);
        let keyword = GramOptions {
            analyzer: SearchAnalyzer::Keyword,
            ..edge.clone()
        };
        check(&keyword, "the end", &["th", "the", "the ", "the e"]);
        let right = options(GramKind::RightEdge, 2, 4);
        check(
            &right,
            "quick is",
            &["kc", "kci", "kciu", "si", "si ", "si k"],
        );
        let any = options(GramKind::Any, 2, 3);
        check(&any, "abcd", &["ab", "abc", "bc", "bcd", "cd"]);
        check(&any, "a bc", &["a", "a ", "a b", "bc"]);
    }

    #[test]
    fn diacritics_are_folded_if_wanted() {
        let folding = options(GramKind::Edge, 6, 6);
        check(&folding, "Résumé", &["resume"]);
        let keeping = GramOptions {
            fold_diacritics: false,
            ..folding.clone()
        };
        check(&keeping, "Résumé", &["résumé"]);
        assert_eq!(keeping.query_term("RÉSUMÉS"), "résumé");
        assert_eq!(options(GramKind::RightEdge, 1, 3).query_term("Café"), "efa");
    }

    /// The range of a gram is the part of the text that it stands for.
    #[test]
    fn ranges_are_in_the_text() {
        for kind in [GramKind::Edge, GramKind::RightEdge, GramKind::Any] {
            let text = "Große  Bäume, İstanbul";
            let mut found = Vec::new();
            options(kind, 1, 7).tokenizer().tokens(text, &mut |token| {
                let part = text.get(token.range).expect("a part of the text");
                found.push((token.term.to_owned(), part.to_owned(), token.position));
            });
            let has = |term: &str, part: &str, position| {
                found.contains(&(term.to_owned(), part.to_owned(), position))
            };
            match kind {
                GramKind::Edge => assert!(has("baum", "Bäum", 1) && has("gr", "Große", 0)),
                GramKind::RightEdge => assert!(has("emua", "äume", 1) && has("lub", "bul", 2)),
                GramKind::Any => assert!(has("aume", "äume", 1) && has("e i", "e, İ", 1)),
            }
        }
    }

    #[test]
    fn a_string_has_a_limited_number_of_grams() {
        let line = GramLine {
            joined: &JoinedWords::default(),
            options: &options(GramKind::Edge, 1, 5),
            start: 0,
            takes_short: true,
        };
        line.grams(0, &mut String::new(), &mut 3, &mut |_| panic!("no grams"));
        let mut joined = JoinedWords::default();
        joined.add("abcdef", "abcdef", 0, 0);
        let line = GramLine {
            joined: &joined,
            options: &options(GramKind::Edge, 1, 5),
            start: 0,
            takes_short: true,
        };
        let (mut left, mut found) = (3, 0);
        line.grams(0, &mut String::new(), &mut left, &mut |_| found += 1);
        assert_eq!((left, found), (0, 3));
    }
}
