//! `lucene.cjk`: pairs of adjacent Chinese, Japanese and Korean characters.
//!
//! 1. Words by Unicode's boundaries.
//! 2. Full-width letters are replaced by ordinary ones, and half-width katakana by full-width ones.
//! 3. Adjacent East Asian characters form pairs; a single one is a token.
//! 4. English stop words are dropped.

use std::ops::Range;

use super::words;
use super::{Token, VisitToken, lower_into};

/// The stop words of Lucene's `EnglishAnalyzer`, sorted.
const ENGLISH: &[&str] = &[
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it",
    "no", "not", "of", "on", "or", "such", "that", "the", "their", "then", "there", "these",
    "they", "this", "to", "was", "will", "with",
];

/// The stop words of Lucene's `CJKAnalyzer` that are not in [`ENGLISH`]. It does not have `an`.
const ALSO: &[&str] = &["s", "t", "www"];

/// The length of the longest word of [`ENGLISH`] in bytes.
const ENGLISH_BYTES_MAX: usize = 5;

pub(super) fn is_english_stop_word(word: &str) -> bool {
    // Skips the search for most words.
    word.len() <= ENGLISH_BYTES_MAX && ENGLISH.binary_search(&word).is_ok()
}

fn is_stop_word(word: &str) -> bool {
    (is_english_stop_word(word) && word != "an") || ALSO.contains(&word)
}

/// Visits the tokens of a text.
pub(super) fn tokens(text: &str, visit: &mut VisitToken<'_>) {
    let (mut pairs, mut position, mut buffer) = (Pairs::default(), 0, String::new());
    words::standard(text, &mut |word, _| {
        let is_wide = word.term.starts_with(is_east_asian);
        if !is_wide || !pairs.ends_at(word.range.start) {
            pairs.flush(&mut position, visit);
        }
        if is_wide {
            pairs.push(word.term, word.range.start);
            return;
        }
        buffer.clear();
        let narrow: String = word.term.chars().map(narrow).collect();
        lower_into(&narrow, false, &mut buffer);
        if !is_stop_word(&buffer) {
            visit(Token {
                term: &buffer,
                range: word.range,
                position,
            });
        }
        position += 1;
    });
    pairs.flush(&mut position, visit);
}

/// Collects adjacent characters of a script without spaces, and forms pairs of them.
#[derive(Default)]
pub(super) struct Pairs {
    run: Vec<WideCharacter>,
    buffer: String,
    /// Each character is also a token.
    has_characters: bool,
}

/// A character with the byte range of its original characters.
struct WideCharacter {
    character: char,
    range: Range<usize>,
}

impl Pairs {
    /// Creates an empty collector. If `has_characters` is `true`, single characters are also
    /// tokens, at the positions of the pairs that they begin. The last character has the position
    /// of the last pair.
    pub(super) fn with_characters(has_characters: bool) -> Pairs {
        Pairs {
            has_characters,
            ..Pairs::default()
        }
    }

    /// Returns `true` if the collected characters end at this offset.
    pub(super) fn ends_at(&self, offset: usize) -> bool {
        self.run.last().is_some_and(|last| last.range.end == offset)
    }

    /// Visits the pairs, or a single character, and removes the characters.
    pub(super) fn flush(&mut self, position: &mut u32, visit: &mut VisitToken<'_>) {
        let Pairs {
            run,
            buffer,
            has_characters,
        } = self;
        let mut visit_token = |characters: &[WideCharacter], position: u32| {
            let (Some(first), Some(last)) = (characters.first(), characters.last()) else {
                return;
            };
            buffer.clear();
            buffer.extend(characters.iter().map(|it| it.character));
            visit(Token {
                term: buffer,
                range: first.range.start..last.range.end,
                position,
            });
        };
        let count = run.len().saturating_sub(1).max(run.len().min(1));
        for (at, position) in (0..count).zip(*position..) {
            let pair = run.get(at..run.len().min(at + 2)).unwrap_or_default();
            let is_last = at + 1 == count;
            if *has_characters && pair.len() > 1 {
                visit_token(pair.get(..1).unwrap_or_default(), position);
            }
            visit_token(pair, position);
            if *has_characters && pair.len() > 1 && is_last {
                visit_token(pair.get(1..).unwrap_or_default(), position);
            }
        }
        *position += count as u32;
        run.clear();
    }

    /// Appends the characters of a word that starts at this offset. A half-width voice mark is
    /// merged with the letter before it.
    pub(super) fn push(&mut self, word: &str, start: usize) {
        let run = &mut self.run;
        let first = run.len();
        for (at, character) in word.char_indices() {
            let range = start + at..start + at + character.len_utf8();
            let before = run.get_mut(first..).and_then(|own| own.last_mut());
            if let Some(before) = before
                && let Some(voiced) = voiced(before.character, character)
            {
                before.character = voiced;
                before.range.end = range.end;
                continue;
            }
            run.push(WideCharacter {
                character: narrow(character),
                range,
            });
        }
    }
}

/// The full-width forms of the half-width katakana, from U+FF65 on.
const KATAKANA: &str = "・ヲァィゥェォャュョッーアイウエオカキクケコサシスセソタチツテトナニヌネノ\
                        ハヒフヘホマミムメモヤユヨラリルレロワン゛゜";

/// Returns the usual form of a full-width letter or a half-width katakana letter.
pub(super) fn narrow(character: char) -> char {
    match character {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(character as u32 - 0xfee0).unwrap_or(character),
        '\u{ff65}'..='\u{ff9f}' => {
            let number = character as usize - 0xff65;
            KATAKANA.chars().nth(number).unwrap_or(character)
        }
        other => other,
    }
}

/// Returns the letter merged with a half-width voice mark.
fn voiced(letter: char, mark: char) -> Option<char> {
    let after = |count: u32| char::from_u32(letter as u32 + count);
    match (mark, letter) {
        ('\u{ff9e}', 'ウ') => Some('ヴ'),
        ('\u{ff9e}', letter) if "カキクケコサシスセソタチツテトハヒフヘホ".contains(letter) => {
            after(1)
        }
        ('\u{ff9f}', letter) if "ハヒフヘホ".contains(letter) => after(2),
        _ => None,
    }
}

/// Returns `true` for Han, hiragana, katakana and hangul.
pub(super) fn is_east_asian(character: char) -> bool {
    matches!(character,
        '\u{1100}'..='\u{11ff}'
        | '\u{3005}' | '\u{3007}'
        | '\u{3021}'..='\u{3029}'
        | '\u{3031}'..='\u{3035}'
        | '\u{3038}'..='\u{303b}'
        | '\u{3041}'..='\u{318e}'
        | '\u{31f0}'..='\u{31ff}'
        | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}'
        | '\u{a960}'..='\u{a97f}'
        | '\u{ac00}'..='\u{d7ff}'
        | '\u{f900}'..='\u{faff}'
        | '\u{ff66}'..='\u{ff9f}'
        | '\u{ffa0}'..='\u{ffdc}'
        | '\u{1b000}'..='\u{1b16f}'
        | '\u{20000}'..='\u{323af}')
}
