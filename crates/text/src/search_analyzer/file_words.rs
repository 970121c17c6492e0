//! The words of files, as people search for them: `windrow.words`, `windrow.wordParts`, `windrow.name`.
//!
//! 1. Words by Unicode's boundaries. A word with marks or changes of case inside has parts:
//!    `notmuch_database_open`, `HashMap`, `l'amour`, `report.pdf`.
//! 2. Characters of scripts without spaces (Chinese, Japanese, Korean, Thai, …) become pairs.
//! 3. Lower case; no diacritics, no soft hyphens; ligatures, full-width letters and such as `ß` become
//!    ordinary letters.
//!
//! A part has a position of its own. The whole word has the position of its first part. So a phrase
//! finds the parts of one word as well as words of their own.

use std::borrow::Cow;
use std::ops::Range;

use super::cjk::{Pairs, is_east_asian, narrow};
use super::words::{self, is_complex};
use super::{Token, VisitToken};
use crate::characters::{CaseFolding, characters};

/// Which tokens a word with parts has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parts {
    /// Its parts, and the whole word: for an index.
    AndWhole,
    /// Its parts: for a query.
    Only,
}

/// Visits the tokens of a text.
pub(super) fn tokens(text: &str, parts: Parts, visit: &mut VisitToken<'_>) {
    let (mut pairs, mut position) = (Pairs::default(), 0);
    words::standard(text, &mut |word, is_lower| {
        let is_in_pairs = is_in_pairs(word.term);
        if !is_in_pairs || !pairs.ends_at(word.range.start) {
            pairs.flush(&mut position, visit);
        }
        if is_in_pairs {
            pairs.push(word.term, word.range.start);
            return;
        }
        let first = position;
        position += word_tokens(word.term, is_lower, parts, &mut |token| {
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

/// Returns `true` if a word is in a script without spaces, whose characters become pairs.
pub(super) fn is_in_pairs(word: &str) -> bool {
    word.starts_with(|it| is_east_asian(it) || is_complex(it))
}

/// Visits the tokens of a word whose characters do not become pairs. Returns the number of positions.
pub(super) fn word_tokens(
    word: &str,
    is_lower: bool,
    parts: Parts,
    visit: &mut VisitToken<'_>,
) -> u32 {
    let ranges = parts_of(word, is_lower);
    if ranges.is_empty() || (ranges.len() > 1 && parts == Parts::AndWhole) {
        visit_normalized(word, 0..word.len(), 0, visit);
    }
    let mut position = 0;
    for part in ranges {
        let term = word.get(part.clone()).unwrap_or_default();
        visit_normalized(term, part, position, visit);
        position += 1;
    }
    position.max(1)
}

/// Returns the ranges of the parts of a word. It has none if it is a simple word, or if it has neither
/// letters nor digits, such as a picture character. `is_lower` says that it is in ASCII without capitals.
pub(super) fn parts_of(word: &str, is_lower: bool) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    if !is_lower || !word.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        part_ranges(word, &mut ranges);
    }
    ranges
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

/// Returns a word in the form in which words are compared.
pub(super) fn normalized(word: &str) -> Cow<'_, str> {
    if word.is_ascii() {
        return match word.bytes().any(|byte| byte.is_ascii_uppercase()) {
            true => Cow::Owned(word.to_ascii_lowercase()),
            false => Cow::Borrowed(word),
        };
    }
    let (table, mut form) = (characters(), String::with_capacity(word.len()));
    for character in word.chars().filter(|it| !is_ignored(*it)) {
        let folded = table.fold(narrow(character), CaseFolding::Ordinary);
        match letters(folded) {
            Some(letters) => form.push_str(letters),
            // `İ` has another case without its dot.
            None => {
                let letter = table.strip(folded);
                form.extend(letter.map(|it| table.fold(it, CaseFolding::Ordinary)));
            }
        }
    }
    Cow::Owned(form)
}

/// Returns `true` for characters inside of words that are not seen: soft hyphens, joiners, marks of byte
/// order.
fn is_ignored(character: char) -> bool {
    matches!(
        character,
        '\u{ad}' | '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}'
    )
}

/// Returns the letters that stand for one that has no diacritic to remove.
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

/// The kinds of characters between which parts of a word begin.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Mark,
    Capital,
    Digit,
    /// Any other letter.
    Letter,
}

/// Appends the ranges of the parts of a word: between marks, and where a capital follows a small letter
/// (`hashMap`) or precedes one (`HTTPServer`).
fn part_ranges(word: &str, into: &mut Vec<Range<usize>>) {
    let mut start = None;
    let (mut before, mut previous) = (Kind::Mark, 0);
    for (at, character) in word.char_indices() {
        if is_ignored(character) || !characters_count(character) {
            continue;
        }
        let kind = match character {
            it if !it.is_alphanumeric() => Kind::Mark,
            it if it.is_uppercase() => Kind::Capital,
            it if it.is_numeric() => Kind::Digit,
            _ => Kind::Letter,
        };
        let begins = match (before, kind) {
            (_, Kind::Mark) | (Kind::Letter | Kind::Digit, Kind::Capital) => Some(at),
            // The last of several capitals begins the part: `HTTP`, `Server`.
            (Kind::Capital, Kind::Letter) if start.is_some_and(|start| start < previous) => {
                Some(previous)
            }
            _ => None,
        };
        if let (Some(begins), Some(first)) = (begins, start) {
            into.push(first..begins);
            start = (kind != Kind::Mark).then_some(begins);
        }
        if kind != Kind::Mark && start.is_none() {
            start = Some(at);
        }
        (before, previous) = (kind, at);
    }
    into.extend(start.map(|start| start..word.len()));
}

/// Returns `false` for diacritics: they belong to the letter before them.
fn characters_count(character: char) -> bool {
    character.is_ascii() || characters().strip(character).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(parts: Parts, text: &str, expected: &[(&str, u32)]) {
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
            Parts::AndWhole,
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
        let cases: [(&str, &[&str]); 9] = [
            ("HashMap", &["hash", "map"]),
            ("HTTPServer2", &["http", "server2"]),
            ("l'amour l’Été", &["l", "amour", "l", "ete"]),
            ("report.pdf", &["report", "pdf"]),
            ("__init__", &["init"]),
            ("SHA256 x", &["sha256", "x"]),
            ("ÄÖü", &["a", "ou"]),
            ("e\u{301}A", &["e", "a"]),
            ("iPhone", &["i", "phone"]),
        ];
        for (text, expected) in cases {
            let expected: Vec<(&str, u32)> = expected.iter().copied().zip(0..).collect();
            check(Parts::Only, text, &expected);
        }
    }

    #[test]
    fn forms_of_letters_are_equal() {
        let cases = [
            ("Zähler", "zahler"),
            ("Straße", "strasse"),
            ("co\u{ad}operate", "cooperate"),
            ("eﬃcient", "efficient"),
            ("ＡＢＣ", "abc"),
            ("ŒUVRE", "oeuvre"),
            ("Ørsted", "orsted"),
            ("İstanbul", "istanbul"),
        ];
        for (text, expected) in cases {
            check(Parts::AndWhole, text, &[(expected, 0)]);
        }
    }

    #[test]
    fn scripts_without_spaces_have_pairs() {
        check(
            Parts::AndWhole,
            "in 東京都 a",
            &[("in", 0), ("東京", 1), ("京都", 2), ("a", 3)],
        );
        check(Parts::Only, "水", &[("水", 0)]);
        let mut count = 0;
        tokens("สวัสดี", Parts::Only, &mut |_| count += 1);
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
