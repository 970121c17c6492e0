//! The words of a text: Unicode's word boundaries as Lucene's `StandardTokenizer` takes them
//! (<https://unicode.org/reports/tr29/>), and runs of characters of one class.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

use super::{TOKEN_UNITS_MAX, Token};

/// Visits the words of a text. A segment between two word boundaries is a word if it has a letter
/// or a digit, or is an emoji.
///
/// No word goes across a space, so the parts between spaces are split by themselves: those in ASCII,
/// which most are, by rules that need no tables.
pub(super) fn standard(text: &str, visit: &mut impl FnMut(Token<'_>)) {
    let mut position = 0;
    let mut start = 0;
    for part in text.split_inclusive(' ') {
        if part.is_ascii() {
            ascii_words(part.as_bytes(), |word| {
                pieces(
                    text,
                    start + word.start..start + word.end,
                    &mut position,
                    visit,
                );
            });
        } else {
            unicode_words(part, |word| {
                pieces(
                    text,
                    start + word.start..start + word.end,
                    &mut position,
                    visit,
                );
            });
        }
        start += part.len();
    }
}

/// Visits the words of a text in any script.
fn unicode_words(text: &str, mut visit: impl FnMut(Range<usize>)) {
    let mut run: Option<Range<usize>> = None;
    for (start, segment) in text.split_word_bound_indices() {
        let end = start + segment.len();
        // Scripts without spaces, such as Thai, stay together. The boundaries of the standard
        // would separate each of their characters.
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

/// The classes of ASCII characters in Unicode's rules of word boundaries.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AsciiClass {
    Letter,
    Digit,
    /// The underscore, which joins letters, digits and itself.
    Joiner,
    Other,
}

fn ascii_class(byte: Option<&u8>) -> AsciiClass {
    match byte {
        Some(b'a'..=b'z' | b'A'..=b'Z') => AsciiClass::Letter,
        Some(b'0'..=b'9') => AsciiClass::Digit,
        Some(b'_') => AsciiClass::Joiner,
        _ => AsciiClass::Other,
    }
}

/// Visits the words of a text in ASCII.
fn ascii_words(text: &[u8], mut visit: impl FnMut(Range<usize>)) {
    let mut at = 0;
    while at < text.len() {
        if ascii_class(text.get(at)) == AsciiClass::Other {
            at += 1;
            continue;
        }
        let start = at;
        let mut has_letters = false;
        loop {
            let class = ascii_class(text.get(at));
            has_letters |= matches!(class, AsciiClass::Letter | AsciiClass::Digit);
            at += 1;
            if ascii_class(text.get(at)) != AsciiClass::Other {
                continue;
            }
            if !joins(text.get(at), class, ascii_class(text.get(at + 1))) {
                break;
            }
            at += 1;
        }
        if has_letters {
            visit(start..at);
        }
    }
}

/// Returns `true` if a punctuation mark between two characters of these classes is inside a word.
fn joins(mark: Option<&u8>, before: AsciiClass, after: AsciiClass) -> bool {
    match (before, after) {
        (AsciiClass::Letter, AsciiClass::Letter) => matches!(mark, Some(b':' | b'.' | b'\'')),
        (AsciiClass::Digit, AsciiClass::Digit) => {
            matches!(mark, Some(b'.' | b'\'' | b',' | b';'))
        }
        _ => false,
    }
}

/// Visits the longest runs of characters that `is_part` accepts.
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

/// Visits a word, or its pieces if it is too long.
fn pieces(text: &str, word: Range<usize>, position: &mut u32, visit: &mut impl FnMut(Token<'_>)) {
    let mut start = word.start;
    while let Some(rest) = text.get(start..word.end).filter(|rest| !rest.is_empty()) {
        let end = start + piece_length(rest);
        visit(Token {
            term: text.get(start..end).unwrap_or_default(),
            range: start..end,
            position: *position,
        });
        *position += 1;
        start = end;
    }
}

/// The length in bytes of the first piece of a word.
fn piece_length(word: &str) -> usize {
    if word.len() <= TOKEN_UNITS_MAX {
        return word.len();
    }
    let mut units = 0;
    for (at, character) in word.char_indices() {
        units += character.len_utf16();
        if units > TOKEN_UNITS_MAX {
            return at;
        }
    }
    word.len()
}

fn is_word(segment: &str) -> bool {
    segment.chars().any(char::is_alphanumeric) || segment.starts_with(is_emoji)
}

/// The characters that Java's `Character.isWhitespace` names. No-break spaces are not among them.
pub(super) fn is_space(character: char) -> bool {
    match character {
        '\u{a0}' | '\u{2007}' | '\u{202f}' | '\u{85}' => false,
        '\u{1c}'..='\u{1f}' => true,
        other => other.is_whitespace(),
    }
}

/// Letters and signs of Thai, Lao, Myanmar, Khmer and Tai scripts: the line break class
/// `Complex_Context`.
fn is_complex(character: char) -> bool {
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

/// Emoji and flags.
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
                ascii_words(text.as_bytes(), |word| found.push(word));
                unicode_words(text, |word| expected.push(word));
                assert_eq!(found, expected, "{text:?}");
            }
        }
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
            standard(text, &mut |token| found.push(token.range));
            unicode_words(text, |word| expected.push(word));
            assert_eq!(found, expected, "{text:?}");
        }
    }
}
