//! Finds the literal text that every match of a pattern begins with. The planner makes index bounds
//! of it.

use super::Options;

/// Returns the literal text that every match of an anchored pattern begins with, and `true` if
/// every text that begins with it matches. `None` if the pattern is not anchored or has branches.
///
/// ```
/// use windrow_regex::{Options, prefix};
///
/// assert_eq!(prefix("^abc", Options::default()), Some(("abc".into(), true)));
/// assert_eq!(prefix("^ab+", Options::default()), Some(("ab".into(), false)));
/// assert_eq!(prefix("abc", Options::default()), None);
/// // The star applies to `a`.
/// assert_eq!(prefix(r"^a\E*b", Options::default()), Some(("".into(), false)));
/// ```
pub fn prefix(pattern: &str, options: Options) -> Option<(String, bool)> {
    if options.case_insensitive || options.extended || pattern.contains('|') {
        return None;
    }
    let rest = match pattern.strip_prefix(r"\A") {
        Some(rest) => rest,
        None if options.multiline => return None,
        None => pattern.strip_prefix('^')?,
    };
    let (mut text, mut characters) = (String::new(), rest.chars().peekable());
    while let Some(character) = characters.next() {
        let literal = match character {
            '\\' => match characters.next() {
                Some(escaped) if !escaped.is_ascii_alphanumeric() => escaped,
                Some('Q' | 'E') => return Some(shortened(text)),
                _ => return Some((text, false)),
            },
            '(' => return Some(shortened(text)),
            '*' | '?' | '{' => return Some(shortened(text)),
            meta if ".[^$)+".contains(meta) => return Some((text, false)),
            literal => literal,
        };
        text.push(literal);
    }
    Some((text, true))
}

/// Removes the last character, because a quantifier may make it optional. The quantifier may follow
/// it directly, or after a comment or the end of quoted text.
fn shortened(mut text: String) -> (String, bool) {
    text.pop();
    (text, false)
}
