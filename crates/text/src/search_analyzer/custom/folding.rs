//! The ASCII characters that resemble others: the token filter `asciiFolding`.

use std::borrow::Cow;

use unicode_normalization::char::{decompose_compatible, is_combining_mark};

/// Letters and signs whose decomposition by Unicode has no ASCII characters.
const LETTERS: [(&str, &str); 34] = [
    ("ÆǢǼ", "AE"),
    ("æǣǽ", "ae"),
    ("Œ", "OE"),
    ("œ", "oe"),
    ("ØǾ", "O"),
    ("øǿ", "o"),
    ("ĐÐƉ", "D"),
    ("đðɖ", "d"),
    ("Þ", "TH"),
    ("þ", "th"),
    ("ß", "ss"),
    ("ẞ", "SS"),
    ("Ł", "L"),
    ("ł", "l"),
    ("Ħ", "H"),
    ("ħ", "h"),
    ("ı", "i"),
    ("Ŧ", "T"),
    ("ŧ", "t"),
    ("Ŋ", "N"),
    ("ŋ", "n"),
    ("ĸ", "q"),
    ("Ɓ", "B"),
    ("ƀɓ", "b"),
    ("Ə", "A"),
    ("ə", "a"),
    ("Ƒ", "F"),
    ("ƒ", "f"),
    ("«»“”„‟″", "\""),
    ("‘’‚‛′‹›", "'"),
    ("‐‑‒–—⁻₋", "-"),
    ("⁄", "/"),
    ("‼", "!!"),
    ("․", "."),
];

/// Returns a text with the ASCII characters that resemble others. What resembles none stays.
pub fn ascii(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let mut folded = String::with_capacity(text.len());
    for character in text.chars() {
        fold(character, &mut folded);
    }
    Cow::Owned(folded)
}

fn fold(character: char, target: &mut String) {
    if character.is_ascii() {
        return target.push(character);
    }
    if let Some((_, letters)) = LETTERS.iter().find(|(like, _)| like.contains(character)) {
        return target.push_str(letters);
    }
    let start = target.len();
    let mut is_ascii = true;
    decompose_compatible(character, |part| {
        if !is_combining_mark(part) {
            is_ascii &= part.is_ascii();
            target.push(part);
        }
    });
    if !is_ascii || target.len() == start {
        target.truncate(start);
        target.push(character);
    }
}

#[cfg(test)]
mod tests {
    use super::ascii;

    #[test]
    fn characters_become_ascii_where_some_resemble_them() {
        let cases = [
            ("plain", "plain"),
            ("Éàüñ", "Eaun"),
            ("Ærøskøbing Łódź Straße", "AEroskobing Lodz Strasse"),
            ("ﬁn ２０ ① ²", "fin 20 1 2"),
            ("“a” – ‘b’", "\"a\" - 'b'"),
            ("東京 дом", "東京 дом"),
        ];
        for (text, expected) in cases {
            assert_eq!(ascii(text), expected);
        }
    }
}
