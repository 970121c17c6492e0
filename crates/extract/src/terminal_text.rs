//! Removes terminal and printer control sequences: colors, and overstriking for bold and underlined
//! text.

use std::borrow::Cow;

/// Returns the text as a terminal displays it. Sources: ECMA-48 for escape sequences, the manual
/// page of `col` for overstriking.
pub(crate) fn remove_terminal_codes(text: &str) -> Cow<'_, str> {
    if memchr::memchr2(b'\x1b', b'\x08', text.as_bytes()).is_none() {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['\x1b', '\x08']) {
        let (before, code) = rest.split_at(at);
        shown.push_str(before);
        rest = match code.strip_prefix('\x1b') {
            Some(code) => skip_escape_sequence(code),
            None => {
                // The character after a backspace replaces the one before it.
                if !shown.ends_with('\n') {
                    shown.pop();
                }
                code.get(1..).unwrap_or_default()
            }
        };
    }
    shown.push_str(rest);
    Cow::Owned(shown)
}

/// Returns the text after an escape sequence whose escape character was consumed.
fn skip_escape_sequence(text: &str) -> &str {
    let mut characters = text.chars();
    let end = match characters.next() {
        // A control sequence: parameters and a final character.
        Some('[') => text.find(|it| matches!(it, '@'..='~') && it != '['),
        // An operating system command, such as the title of the window.
        Some(']') => text.find(['\x07', '\x1b', '\n']),
        // A character set selection.
        Some('(' | ')') => Some(1),
        Some(_) => Some(0),
        None => None,
    };
    match end {
        Some(end) => {
            let last = text.get(end..).and_then(|rest| rest.chars().next());
            let length = last
                .filter(|it| !matches!(it, '\x1b' | '\n'))
                .map_or(0, char::len_utf8);
            text.get(end + length..).unwrap_or_default()
        }
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_removed() {
        let check = |text: &str, shown: &str| assert_eq!(remove_terminal_codes(text), shown);
        check("plain", "plain");
        check("N\x08NA\x08AM\x08ME\x08E _\x08x", "NAME x");
        check("\x1b[1;31mred\x1b[0m text", "red text");
        check("\x1b]0;title\x07words", "words");
        check("\x1b(Bwords\x1b", "words");
        check("\x1bé", "");
        check("a\n\x08b", "a\nb");
        check("x\x1b[12", "x[12");
    }
}
