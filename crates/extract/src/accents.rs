//! Combines letters with accents that are written as characters of their own.

use unicode_normalization::char::compose;

/// Returns the letter with the accent, as one character if there is one. `combining` is a
/// combining mark.
pub(crate) fn add_accent(letter: char, combining: char) -> String {
    // The letters i and j lose their dots below an accent.
    let base = match letter {
        'ı' => 'i',
        'ȷ' => 'j',
        other => other,
    };
    match compose(base, combining) {
        Some(composed) => composed.to_string(),
        None => [letter, combining].iter().collect(),
    }
}

/// Returns the combining mark of a spacing accent such as `´`. ASCII characters are excluded,
/// because they have other uses.
pub(crate) fn combining_mark(accent: char) -> Option<char> {
    Some(match accent {
        '\u{b4}' | '\u{2ca}' => '\u{301}',
        '\u{2cb}' => '\u{300}',
        '\u{2c6}' => '\u{302}',
        '\u{2dc}' => '\u{303}',
        '\u{a8}' => '\u{308}',
        '\u{af}' | '\u{2c9}' => '\u{304}',
        '\u{2d8}' => '\u{306}',
        '\u{2d9}' => '\u{307}',
        '\u{2da}' => '\u{30a}',
        '\u{2dd}' => '\u{30b}',
        '\u{2c7}' => '\u{30c}',
        '\u{b8}' => '\u{327}',
        '\u{2db}' => '\u{328}',
        _ => return None,
    })
}

/// Returns the combining mark of an accent that TeX, troff and Texinfo write with an ASCII
/// character.
pub(crate) fn typed_accent(key: char) -> Option<char> {
    Some(match key {
        '\'' => '\u{301}',
        '`' => '\u{300}',
        '^' => '\u{302}',
        '~' => '\u{303}',
        '"' => '\u{308}',
        '=' => '\u{304}',
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accents_are_added() {
        assert_eq!(add_accent('a', '\u{308}'), "ä");
        assert_eq!(add_accent('ı', '\u{301}'), "í");
        assert_eq!(add_accent('q', '\u{308}'), "q\u{308}");
        assert_eq!(combining_mark('¨'), Some('\u{308}'));
        assert_eq!(combining_mark('\''), None);
        assert_eq!(typed_accent('\''), Some('\u{301}'));
    }
}
