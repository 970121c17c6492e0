//! Words of files: `windrow.words`, `windrow.wordParts`, `windrow.name`.
//!
//! 1. Words are split by Unicode's boundaries. Punctuation inside a word splits it into parts:
//!    `notmuch_database_open`, `l'amour`, `report.pdf`. Changes of case and soft hyphens split a
//!    part into pieces: `HashMap`, `V4L2`.
//! 2. Characters of scripts without spaces (Chinese, Japanese, Korean, Thai, …) form pairs.
//! 3. Words are folded to lower case without diacritics and soft hyphens. Ligatures, full-width
//!    letters and letters such as `ß` are replaced by ordinary letters.
//!
//! Signs belong to a single letter before them: `C++`, `C#`. A query has such a word as a whole. An
//! index has its letter, too, so `C` matches it.
//!
//! A query consists of parts only, so case does not matter: `PostgreSQL` matches `postgresql`. An
//! index contains additional tokens at the positions of the parts:
//!
//! ```text
//! text      Path.HashMap   of       U.S.A.
//! position  0     1        2        3  4  5
//! parts     path  hashmap  of       u  s  a
//! whole     path.hashmap            u.s.a
//! pieces          hash     map
//! acronym                           usa
//! ```
//!
//! Each part has its own position, so a phrase matches the parts of one word as well as separate
//! words. The second piece of a part has the position after the part. The phrase `hash map`
//! therefore matches, and the phrase `path.hashmap of` as well.

use std::borrow::Cow;
use std::ops::Range;

use super::cjk::{Pairs, is_east_asian, narrow};
use super::words::{self, WordBoundaries, has_signs, is_complex};
use super::{Token, VisitToken};
use crate::characters::{CaseFolding, WordCase, characters};

/// Selects the tokens of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenSet {
    /// Parts, pieces, the whole word, and single characters in addition to pairs.
    Index,
    /// Parts only.
    Query,
}

/// Visits the tokens of a text.
pub(super) fn tokens(text: &str, parts: TokenSet, visit: &mut VisitToken<'_>) {
    let mut pairs = Pairs::with_characters(parts == TokenSet::Index);
    let mut position = 0;
    words::bounded(text, WordBoundaries::UnicodeWithSigns, &mut |word, case| {
        let is_in_pairs = is_in_pairs(word.term);
        if !is_in_pairs || !pairs.ends_at(word.range.start) {
            pairs.flush(&mut position, visit);
        }
        if is_in_pairs {
            pairs.push(word.term, word.range.start);
            return;
        }
        let first = position;
        position += word_tokens(word.term, case, parts, &mut |token| {
            let start = word.range.start;
            visit(Token {
                range: start + token.range.start..start + token.range.end,
                position: first + token.position,
                ..token
            });
        });
    });
    pairs.flush(&mut position, visit);
}

/// Returns `true` if a word is in a script without spaces, so that its characters form pairs.
pub(super) fn is_in_pairs(word: &str) -> bool {
    word.starts_with(|it| is_east_asian(it) || is_complex(it))
}

/// Visits the tokens of a word that does not form pairs. Returns the number of positions.
pub(super) fn word_tokens(
    word: &str,
    case: WordCase,
    parts: TokenSet,
    visit: &mut VisitToken<'_>,
) -> u32 {
    if is_simple(word, case) {
        visit_normalized(word, 0..word.len(), 0, visit);
        return 1;
    }
    if parts == TokenSet::Query && has_signs(word) {
        visit_normalized(word, 0..word.len(), 0, visit);
        return 1;
    }
    let ranges = split_parts(word);
    let is_whole = ranges.len() == 1 && ranges.first() == Some(&(0..word.len()));
    if ranges.is_empty() || (parts == TokenSet::Index && !is_whole) {
        visit_normalized(word, 0..word.len(), 0, visit);
    }
    if parts == TokenSet::Index
        && let Some(acronym) = acronym(word, &ranges)
    {
        visit_normalized(&acronym, 0..word.len(), 0, visit);
    }
    let mut position = 0;
    for part in ranges {
        visit_part(word, part, position, parts, visit);
        position += 1;
    }
    position.max(1)
}

/// Visits a part and its pieces.
fn visit_part(
    word: &str,
    part: Range<usize>,
    position: u32,
    parts: TokenSet,
    visit: &mut VisitToken<'_>,
) {
    let text = word.get(part.clone()).unwrap_or_default();
    visit_normalized(text, part.clone(), position, visit);
    if parts == TokenSet::Index {
        for (piece, at) in split_pieces(text).into_iter().zip(position..) {
            let range = part.start + piece.start..part.start + piece.end;
            visit_normalized(text.get(piece).unwrap_or_default(), range, at, visit);
        }
    }
}

/// Returns `true` if a word with this case consists of one part without pieces.
pub(super) fn is_simple(word: &str, case: WordCase) -> bool {
    case == WordCase::LowerAscii && word.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Returns the letters of an acronym such as `U.S.A` without the punctuation.
fn acronym(word: &str, parts: &[Range<usize>]) -> Option<String> {
    let mut letters = String::new();
    for part in parts {
        let mut characters = word.get(part.clone())?.chars();
        letters.push(characters.next().filter(|it| it.is_alphabetic())?);
        if characters.any(characters_count) {
            return None;
        }
    }
    let marks = word.chars().filter(|it| *it == '.').count();
    (parts.len() > 1 && marks + 1 == parts.len()).then_some(letters)
}

/// Visits the whole text as one token.
pub(super) fn name(text: &str, visit: &mut VisitToken<'_>) {
    visit_normalized(text, 0..text.len(), 0, visit);
}

fn visit_normalized(word: &str, range: Range<usize>, position: u32, visit: &mut VisitToken<'_>) {
    let term = &normalized(word);
    if !term.is_empty() {
        visit(Token {
            term,
            range,
            position,
        });
    }
}

/// Returns the normalized form of a word.
pub(super) fn normalized(word: &str) -> Cow<'_, str> {
    if word.is_ascii() {
        return if word.bytes().any(|byte| byte.is_ascii_uppercase()) {
            Cow::Owned(word.to_ascii_lowercase())
        } else {
            Cow::Borrowed(word)
        };
    }
    let (table, mut form) = (characters(), String::with_capacity(word.len()));
    for character in word.chars().filter(|it| !is_ignored(*it)) {
        let folded = table.fold(narrow(character), CaseFolding::Ordinary);
        match letters(folded) {
            Some(letters) => form.push_str(letters),
            // `İ` in lower case is `i` with a combining dot, so its dot is removed first.
            None => {
                let letter = table.strip(folded);
                form.extend(letter.map(|it| table.fold(it, CaseFolding::Ordinary)));
            }
        }
    }
    Cow::Owned(form)
}

/// Returns `true` for invisible characters inside words: soft hyphens, joiners, byte order marks.
fn is_ignored(character: char) -> bool {
    matches!(
        character,
        '\u{ad}' | '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}'
    )
}

/// Returns the replacement of a letter that cannot be decomposed into a letter and a diacritic.
fn letters(character: char) -> Option<&'static str> {
    Some(match character {
        'ß' => "ss",
        'æ' => "ae",
        'œ' => "oe",
        'ø' => "o",
        'đ' | 'ð' => "d",
        'ł' => "l",
        'þ' => "th",
        'ı' => "i",
        '’' => "'",
        'ﬀ' => "ff",
        'ﬁ' => "fi",
        'ﬂ' => "fl",
        'ﬃ' => "ffi",
        'ﬄ' => "ffl",
        'ﬅ' | 'ﬆ' => "st",
        _ => return None,
    })
}

/// The classes of characters. Pieces of a part begin where the class changes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Capital,
    Digit,
    /// Any other letter.
    Letter,
}

/// Returns the ranges of the parts of a word, which are separated by punctuation. A word without
/// letters and digits, such as an emoji, has none.
pub(super) fn split_parts(word: &str) -> Vec<Range<usize>> {
    let (mut ranges, mut start) = (Vec::new(), None);
    for (at, character) in word.char_indices() {
        if is_ignored(character) || !characters_count(character) {
            continue;
        }
        match (character.is_alphanumeric(), start) {
            (true, None) => start = Some(at),
            (false, Some(first)) => {
                ranges.push(first..at);
                start = None;
            }
            (true, Some(_)) | (false, None) => {}
        }
    }
    ranges.extend(start.map(|start| start..word.len()));
    ranges
}

/// Returns the ranges of the pieces of a part. A piece begins at a capital after a small letter
/// (`hashMap`) or before one (`HTTPServer`), and after a soft hyphen. Returns none if the part is a
/// single piece.
pub(super) fn split_pieces(part: &str) -> Vec<Range<usize>> {
    let (mut ranges, mut start, mut previous) = (Vec::new(), 0, 0);
    let (mut before, mut is_divided) = (None, false);
    for (at, character) in part.char_indices() {
        is_divided |= character == '\u{ad}' && before.is_some();
        if is_ignored(character) || !characters_count(character) {
            continue;
        }
        let kind = match character {
            it if it.is_uppercase() => Kind::Capital,
            it if it.is_numeric() => Kind::Digit,
            _ => Kind::Letter,
        };
        let begins = match (before, kind) {
            _ if std::mem::take(&mut is_divided) => Some(at),
            (Some(Kind::Letter | Kind::Digit), Kind::Capital) => Some(at),
            // The last of several capitals begins a piece: `HTTP`, `Server`.
            (Some(Kind::Capital), Kind::Letter) if start < previous => Some(previous),
            _ => None,
        };
        if let Some(begins) = begins {
            ranges.push(start..begins);
            start = begins;
        }
        (before, previous) = (Some(kind), at);
    }
    if !ranges.is_empty() {
        ranges.push(start..part.len());
    }
    ranges
}

/// Returns `false` for diacritics, which belong to the letter before them.
fn characters_count(character: char) -> bool {
    character.is_ascii() || characters().strip(character).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(parts: TokenSet, text: &str, expected: &[(&str, u32)]) {
        let mut found = Vec::new();
        tokens(text, parts, &mut |token| {
            let source = text.get(token.range.clone());
            assert!(source.is_some_and(|source| !source.is_empty()), "{token:?}");
            found.push((token.term.to_owned(), token.position));
        });
        let expected: Vec<(String, u32)> = expected
            .iter()
            .map(|(term, position)| ((*term).to_owned(), *position))
            .collect();
        assert_eq!(found, expected, "{text:?}");
    }

    #[test]
    fn words_have_parts() {
        check(
            TokenSet::Index,
            "call notmuch_database_open now",
            &[
                ("call", 0),
                ("notmuch_database_open", 1),
                ("notmuch", 1),
                ("database", 2),
                ("open", 3),
                ("now", 4),
            ],
        );
        let cases: [(&str, &[&str]); 10] = [
            ("HashMap", &["hashmap"]),
            ("HTTPServer2", &["httpserver2"]),
            ("l'amour l’Été", &["l", "amour", "l", "ete"]),
            ("report.pdf", &["report", "pdf"]),
            ("__init__", &["init"]),
            ("SHA256 x", &["sha256", "x"]),
            ("ÄÖü", &["aou"]),
            ("e\u{301}A", &["ea"]),
            ("iPhone", &["iphone"]),
            ("e.g. U.S.A", &["e", "g", "u", "s", "a"]),
        ];
        for (text, expected) in cases {
            let expected: Vec<(&str, u32)> = expected.iter().copied().zip(0..).collect();
            check(TokenSet::Query, text, &expected);
        }
    }

    /// `PostgreSQL` did not find `postgresql`, and `argumentparser` not `argparse.ArgumentParser`.
    #[test]
    fn parts_with_capitals_have_pieces() {
        let cases: [(&str, &[(&str, u32)]); 8] = [
            (
                "Path.HashMap of",
                &[
                    ("path.hashmap", 0),
                    ("path", 0),
                    ("hashmap", 1),
                    ("hash", 1),
                    ("map", 2),
                    ("of", 2),
                ],
            ),
            (
                "HTTPServer2 x",
                &[("httpserver2", 0), ("http", 0), ("server2", 1), ("x", 1)],
            ),
            ("V4L2", &[("v4l2", 0), ("v4", 0), ("l2", 1)]),
            (
                "co\u{ad}operate x",
                &[("cooperate", 0), ("co", 0), ("operate", 1), ("x", 1)],
            ),
            ("Häuser", &[("hauser", 0)]),
            ("__init__", &[("__init__", 0), ("init", 0)]),
            (
                "e.g. é.à.",
                &[
                    ("e.g", 0),
                    ("eg", 0),
                    ("e", 0),
                    ("g", 1),
                    ("e.a", 2),
                    ("ea", 2),
                    ("e", 2),
                    ("a", 3),
                ],
            ),
            ("a.bc", &[("a.bc", 0), ("a", 0), ("bc", 1)]),
        ];
        for (text, expected) in cases {
            check(TokenSet::Index, text, expected);
        }
    }

    #[test]
    fn signs_belong_to_single_letters() {
        let text = "C++ templates, c#";
        let query = [("c++", 0), ("templates", 1), ("c#", 2)];
        check(TokenSet::Query, text, &query);
        let index = [("c++", 0), ("c", 0), ("templates", 1), ("c#", 2), ("c", 2)];
        check(TokenSet::Index, text, &index);
    }

    #[test]
    fn forms_of_letters_are_equal() {
        let cases = [
            ("Zähler", "zahler"),
            ("Straße", "strasse"),
            ("eﬃcient", "efficient"),
            ("ＡＢＣ", "abc"),
            ("ŒUVRE", "oeuvre"),
            ("Ørsted", "orsted"),
            ("İstanbul", "istanbul"),
        ];
        for (text, expected) in cases {
            check(TokenSet::Index, text, &[(expected, 0)]);
        }
    }

    #[test]
    fn scripts_without_spaces_have_pairs() {
        check(
            TokenSet::Index,
            "in 東京都 a",
            &[
                ("in", 0),
                ("東", 1),
                ("東京", 1),
                ("京", 2),
                ("京都", 2),
                ("都", 2),
                ("a", 3),
            ],
        );
        let pairs = [("in", 0), ("東京", 1), ("京都", 2), ("a", 3)];
        check(TokenSet::Query, "in 東京都 a", &pairs);
        check(TokenSet::Index, "水", &[("水", 0)]);
        check(TokenSet::Query, "水", &[("水", 0)]);
        let mut count = 0;
        tokens("สวัสดี", TokenSet::Query, &mut |_| count += 1);
        assert_eq!(count, "สวัสดี".chars().count() - 1);
    }

    #[test]
    fn names_are_whole() {
        let mut found = Vec::new();
        name("/Home/Mein Büro", &mut |token| {
            found.push(token.term.to_owned())
        });
        assert_eq!(found, ["/home/mein buro"]);
    }
}
