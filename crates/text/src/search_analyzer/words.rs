//! The words of a text: Unicode's word boundaries as Lucene's `StandardTokenizer` takes them
//! (<https://unicode.org/reports/tr29/>), and runs of characters of one class.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

use super::{TOKEN_UNITS_MAX, Token};
use crate::characters::{WordCase, ascii_length};

/// The rule by which words end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordBoundaries {
    /// At the boundaries of Unicode.
    Unicode,
    /// As well, but signs belong to a single letter before them: `C++`, `C#`.
    UnicodeWithSigns,
}

/// Visits the words of a text by Unicode's boundaries.
pub(super) fn standard(text: &str, visit: &mut impl FnMut(Token<'_>, WordCase)) {
    bounded(text, WordBoundaries::Unicode, visit);
}

/// Visits the words of a text with their cases. A segment between two word boundaries is a word if
/// it has a letter or a digit, or if it is an emoji.
///
/// No word contains a space. The text is therefore split at spaces: parts with characters outside
/// of ASCII use the tables of Unicode, all other parts faster rules for ASCII.
pub(super) fn bounded(
    text: &str,
    boundaries: WordBoundaries,
    visit: &mut impl FnMut(Token<'_>, WordCase),
) {
    let end_of = |word: &Range<usize>| match boundaries {
        WordBoundaries::Unicode => word.end,
        WordBoundaries::UnicodeWithSigns => word.end + signs_length(text, word),
    };
    let mut position = 0;
    let mut start = 0;
    while let Some(rest) = text.get(start..).filter(|rest| !rest.is_empty()) {
        let LeadingParts { ascii, other } = leading_parts(rest);
        ascii_words(
            rest.get(..ascii).unwrap_or_default().as_bytes(),
            |word, case| {
                let word = start + word.start..start + word.end;
                let word = word.start..end_of(&word);
                pieces(text, word, &mut position, &mut |token| visit(token, case));
            },
        );
        start += ascii;
        unicode_words(text.get(start..start + other).unwrap_or_default(), |word| {
            let word = start + word.start..start + word.end;
            let word = word.start..end_of(&word);
            pieces(text, word, &mut position, &mut |token| {
                let case = WordCase::from_word(token.term);
                visit(token, case);
            });
        });
        start += other;
    }
}

/// The signs that belong to a letter before them, if no letter comes after them.
const SIGNS: [&str; 2] = ["++", "#"];

/// Returns the length of the signs that belong to a word: those of `C++` and `C#`. Longer words,
/// such as the variable in `count++`, have none.
#[inline]
fn signs_length(text: &str, word: &Range<usize>) -> usize {
    if word.len() != 1 {
        return 0;
    }
    let bytes = text.as_bytes();
    if !bytes.get(word.start).is_some_and(u8::is_ascii_alphabetic) {
        return 0;
    }
    let behind = text.get(word.end..).unwrap_or_default();
    let belongs = |sign: &&&str| {
        behind.strip_prefix(**sign).is_some_and(|after| {
            let next = after.chars().next();
            next.is_none_or(|it| !it.is_alphabetic() && !"+#".contains(it))
        })
    };
    SIGNS.iter().find(belongs).map_or(0, |sign| sign.len())
}

/// Returns `true` if signs belong to a word.
pub(super) fn has_signs(word: &str) -> bool {
    word.ends_with(['+', '#'])
}

/// The lengths in bytes of the first two parts of a text.
struct LeadingParts {
    /// The part before the first character outside ASCII. It ends after a space.
    ascii: usize,
    /// The part that contains that character, up to and including the next space.
    other: usize,
}

fn leading_parts(text: &str) -> LeadingParts {
    let ascii = ascii_length(text);
    let (before, behind) = text.as_bytes().split_at(ascii);
    if behind.is_empty() {
        return LeadingParts { ascii, other: 0 };
    }
    let start = memchr::memrchr(b' ', before).map_or(0, |space| space + 1);
    let end = memchr::memchr(b' ', behind).map_or(text.len(), |space| ascii + space + 1);
    LeadingParts {
        ascii: start,
        other: end - start,
    }
}

/// Visits the words of a text in any script.
fn unicode_words(text: &str, mut visit: impl FnMut(Range<usize>)) {
    let mut run: Option<Range<usize>> = None;
    for (start, segment) in text.split_word_bound_indices() {
        let end = start + segment.len();
        // Scripts without spaces, such as Thai, stay together. The boundaries of the standard would
        // separate their characters.
        if segment.starts_with(is_complex) {
            run = Some(run.map_or(start, |run| run.start)..end);
            continue;
        }
        if let Some(run) = run.take() {
            visit(run);
        }
        if is_word(segment) {
            visit(start..end);
        }
    }
    if let Some(run) = run {
        visit(run);
    }
}

/// The classes of ASCII characters in Unicode's rules of word boundaries. They are bits, so that
/// the classes of a word's characters can be combined.
mod class {
    /// Characters that separate words, and those that only join letters or digits.
    pub const OTHER: u8 = 0;
    pub const LETTER: u8 = 1;
    pub const DIGIT: u8 = 2;
    /// The underscore, which joins letters, digits and itself.
    pub const JOINER: u8 = 4;
    /// Added to `LETTER` for capitals.
    pub const CAPITAL: u8 = 8;
}

#[allow(clippy::indexing_slicing, reason = "there is a class for each byte")]
static CLASSES: [u8; 256] = {
    let mut classes = [class::OTHER; 256];
    let mut byte = 0;
    while byte < 128 {
        classes[byte] = match byte as u8 {
            b'a'..=b'z' => class::LETTER,
            b'A'..=b'Z' => class::LETTER | class::CAPITAL,
            b'0'..=b'9' => class::DIGIT,
            b'_' => class::JOINER,
            _ => class::OTHER,
        };
        byte += 1;
    }
    classes
};

#[inline]
#[allow(clippy::indexing_slicing, reason = "there is a class for each byte")]
fn ascii_class(byte: Option<&u8>) -> u8 {
    byte.map_or(class::OTHER, |byte| CLASSES[usize::from(*byte)])
}

/// Visits the words of an ASCII text with their cases.
fn ascii_words(text: &[u8], mut visit: impl FnMut(Range<usize>, WordCase)) {
    let mut at = 0;
    while at < text.len() {
        let mut last = ascii_class(text.get(at));
        if last == class::OTHER {
            at += 1;
            continue;
        }
        let start = at;
        let mut all = last;
        loop {
            at += 1;
            let next = ascii_class(text.get(at));
            if next == class::OTHER {
                let after = ascii_class(text.get(at + 1));
                if !joins(text.get(at), last, after) {
                    break;
                }
                // A mark inside a word is consumed with the character after it.
                at += 1;
                last = after;
            } else {
                last = next;
            }
            all |= last;
        }
        if all & (class::LETTER | class::DIGIT) != 0 {
            let case = WordCase::from_is_lower_ascii(all & class::CAPITAL == 0);
            visit(start..at, case);
        }
    }
}

/// Returns `true` if a punctuation mark between two characters of these classes is inside a word.
#[inline]
fn joins(mark: Option<&u8>, before: u8, after: u8) -> bool {
    let both = before & after;
    if both & class::LETTER != 0 {
        matches!(mark, Some(b':' | b'.' | b'\''))
    } else {
        both & class::DIGIT != 0 && matches!(mark, Some(b'.' | b'\'' | b',' | b';'))
    }
}

/// Visits the maximal runs of characters that `is_part` accepts.
pub(super) fn runs(text: &str, is_part: impl Fn(char) -> bool, visit: &mut impl FnMut(Token<'_>)) {
    let mut position = 0;
    let mut from = 0;
    while let Some(rest) = text.get(from..)
        && let Some(start) = rest.find(&is_part)
    {
        let start = from + start;
        let rest = text.get(start..).unwrap_or_default();
        let length = rest.find(|one| !is_part(one)).unwrap_or(rest.len());
        from = start + length;
        pieces(text, start..from, &mut position, visit);
    }
}

/// Visits a word, or its pieces if it exceeds [`TOKEN_UNITS_MAX`].
fn pieces(text: &str, word: Range<usize>, position: &mut u32, visit: &mut impl FnMut(Token<'_>)) {
    let mut start = word.start;
    while let Some(rest) = text.get(start..word.end).filter(|rest| !rest.is_empty()) {
        let end = start + piece_length(rest, TOKEN_UNITS_MAX);
        visit(Token {
            term: text.get(start..end).unwrap_or_default(),
            range: start..end,
            position: *position,
        });
        *position += 1;
        start = end;
    }
}

/// Returns the length of the first piece of a word with at most `units_max` UTF-16 code units, but
/// a character at least, in bytes.
pub(super) fn piece_length(word: &str, units_max: usize) -> usize {
    if word.len() <= units_max {
        return word.len();
    }
    let mut units = 0;
    for (at, character) in word.char_indices() {
        units += character.len_utf16();
        if units > units_max && at > 0 {
            return at;
        }
    }
    word.len()
}

fn is_word(segment: &str) -> bool {
    segment.chars().any(char::is_alphanumeric) || segment.starts_with(is_emoji)
}

/// Returns `true` for white space as defined by Java's `Character.isWhitespace`, which excludes
/// no-break spaces.
pub(super) fn is_space(character: char) -> bool {
    match character {
        '\u{a0}' | '\u{2007}' | '\u{202f}' | '\u{85}' => false,
        '\u{1c}'..='\u{1f}' => true,
        other => other.is_whitespace(),
    }
}

/// Returns `true` for characters of the line break class `Complex_Context`: Thai, Lao, Myanmar,
/// Khmer and Tai scripts.
pub(super) fn is_complex(character: char) -> bool {
    let is_script = matches!(character,
        '\u{0e01}'..='\u{0e4e}'
        | '\u{0e81}'..='\u{0ece}'
        | '\u{0edc}'..='\u{0edf}'
        | '\u{1000}'..='\u{103f}'
        | '\u{1050}'..='\u{108f}'
        | '\u{109a}'..='\u{109f}'
        | '\u{1780}'..='\u{17d3}'
        | '\u{1950}'..='\u{19df}'
        | '\u{1a20}'..='\u{1aad}'
        | '\u{a9e0}'..='\u{a9ef}'
        | '\u{aa60}'..='\u{aadf}');
    is_script && !character.is_numeric() && character != '\u{0e3f}'
}

/// Returns `true` for emoji and flags.
fn is_emoji(character: char) -> bool {
    matches!(character,
        '\u{1f1e6}'..='\u{1f1ff}' | '\u{1f300}'..='\u{1faff}' | '\u{2600}'..='\u{27bf}')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rules for ASCII are those of the standard: compared on all texts of up to five of the
    /// characters at which they differ.
    #[test]
    fn ascii_words_are_unicode_words() {
        const ALPHABET: &[u8] = b"aZ5_.':,;\"- \0";
        let count = ALPHABET.len();
        for length in 1..=5_u32 {
            for number in 0..count.pow(length) {
                let letter = |place| ALPHABET[number / count.pow(place) % count];
                let text: Vec<u8> = (0..length).map(letter).collect();
                let text = std::str::from_utf8(&text).unwrap();
                let (mut found, mut expected) = (Vec::new(), Vec::new());
                ascii_words(text.as_bytes(), |word, case| {
                    assert_eq!(case, WordCase::from_word(&text[word.clone()]), "{text:?}");
                    found.push(word);
                });
                unicode_words(text, |word| expected.push(word));
                assert_eq!(found, expected, "{text:?}");
            }
        }
    }

    #[test]
    fn signs_belong_to_single_letters() {
        let check = |text: &str, expected: &[&str]| {
            let mut found = Vec::new();
            bounded(
                text,
                WordBoundaries::UnicodeWithSigns,
                &mut |token, case| {
                    assert_eq!(text.get(token.range), Some(token.term));
                    assert_eq!(case, WordCase::from_word(token.term));
                    found.push(token.term.to_owned());
                },
            );
            assert_eq!(found, expected, "{text:?}");
        };
        check("C++ and c# or F#.", &["C++", "and", "c#", "or", "F#"]);
        check("„C++“, C++11, C++/CLI", &["C++", "C++", "11", "C++", "CLI"]);
        check("count++ i++; g++", &["count", "i++", "g++"]);
        check(
            "a+b a++b c#x C+++ C## 1# é#",
            &["a", "b", "a", "b", "c", "x", "C", "C", "1", "é"],
        );
        let mut plain = Vec::new();
        standard("C++ C#", &mut |token, _| plain.push(token.term.to_owned()));
        assert_eq!(plain, ["C", "C"]);
    }

    /// A part of a text is split by itself.
    #[test]
    fn spaces_end_words() {
        let texts = [
            "a \u{301}b",
            " \u{301} x",
            "ก ข",
            "🇩 🇪",
            "é\u{200d} 👩",
            "a\nb\tc é",
        ];
        for text in texts {
            let (mut found, mut expected) = (Vec::new(), Vec::new());
            standard(text, &mut |token, _| found.push(token.range));
            unicode_words(text, |word| expected.push(word));
            assert_eq!(found, expected, "{text:?}");
        }
    }

    /// Random texts: the parts of a text have the words that it has as a whole.
    #[test]
    fn parts_have_the_words_of_the_whole() {
        const ALPHABET: [char; 20] = [
            ' ', ' ', ' ', 'a', 'b', 'Z', '5', '_', '.', '\'', ',', ':', '-', '\n', 'é', '\u{301}',
            '東', 'ก', '🇩', '\u{200d}',
        ];
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 20) as usize % below
        };
        for _ in 0..20_000 {
            // Long stretches of ASCII, too.
            let letters = 1 + next(ALPHABET.len());
            let text: String = (0..next(90)).map(|_| ALPHABET[next(letters)]).collect();
            let (mut found, mut expected) = (Vec::new(), Vec::new());
            standard(&text, &mut |token, case| {
                let term = token.term;
                assert_eq!(case, WordCase::from_word(term), "{term:?}");
                found.push(token.range);
            });
            unicode_words(&text, |word| expected.push(word));
            assert_eq!(found, expected, "{text:?}");
        }
    }
}
