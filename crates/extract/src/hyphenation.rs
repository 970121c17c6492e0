//! Joins words that are divided at the ends of lines.
//!
//! A hyphen at the end of a line either divides a word (`infor-mation`) or is part of it
//! (`well-known`). The other words of the document help to decide:
//!
//! 1. A soft hyphen divides the word.
//! 2. If the joined word occurs elsewhere, the word is divided.
//! 3. If the hyphenated word occurs elsewhere, the line break remains. Both parts can be found,
//!    and a phrase finds them together.
//! 4. Otherwise it is undecided. A soft hyphen remains between the parts: `windrow.words` indexes
//!    the whole word and the parts.

use std::collections::{HashMap, HashSet};

const SOFT_HYPHEN: char = '\u{ad}';

/// The numbers of capitals before and after the hyphen of a divided word in capitals. Shorter ones
/// are mostly abbreviations: `EUC-JP`.
const CAPITALS_BEFORE_MIN: usize = 2;
const CAPITALS_AFTER_MIN: usize = 3;

/// A hyphen at the end of a line between two lower-case letters, or in a word in capitals.
struct LineBreak {
    /// The range of the hyphen, the line end and the indentation of the next line.
    hyphen: usize,
    resume: usize,
    is_soft: bool,
    first: String,
    second: String,
}

/// The decision about a divided word.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BreakForm {
    Joined,
    SoftHyphen,
    /// Unchanged.
    Divided,
}

/// Returns the text with divided words joined. The remaining soft hyphens are in words for which it
/// is unknown whether they are divided.
pub(crate) fn join_divided_words(text: String) -> String {
    let breaks = find_breaks(&text);
    if breaks.is_empty() {
        return if text.contains(SOFT_HYPHEN) {
            text.replace(SOFT_HYPHEN, "")
        } else {
            text
        };
    }
    let known = find_known_words(&text, &breaks);
    let (mut joined, mut start) = (String::with_capacity(text.len()), 0);
    let mut push = |piece: Option<&str>, end: &str| {
        joined.extend(piece.unwrap_or_default().split(SOFT_HYPHEN));
        joined.push_str(end);
    };
    for one in &breaks {
        let end = match form(one, &known) {
            BreakForm::Joined => "",
            BreakForm::SoftHyphen => "\u{ad}",
            BreakForm::Divided => continue,
        };
        push(text.get(start..one.hyphen), end);
        start = one.resume;
    }
    push(text.get(start..), "");
    joined
}

fn find_breaks(text: &str) -> Vec<LineBreak> {
    let ends = memchr::memchr_iter(b'\n', text.as_bytes());
    ends.filter_map(|end| find_break(text, end)).collect()
}

/// Returns the line break at the line end `end`, if it divides a word.
fn find_break(text: &str, end: usize) -> Option<LineBreak> {
    let line = text.get(..end)?.trim_end_matches(['\r', ' ']);
    let hyphen = line.chars().next_back()?;
    if !matches!(hyphen, '-' | '\u{2010}' | SOFT_HYPHEN) {
        return None;
    }
    let before = line.get(..line.len() - hyphen.len_utf8())?;
    let rest = text.get(end + 1..)?;
    let after = rest.trim_start_matches([' ', '\t']);
    let first = last_word(before);
    let second = first_word(after);
    let divides = first.ends_with(char::is_lowercase) && second.starts_with(char::is_lowercase)
        || is_capitals(first, CAPITALS_BEFORE_MIN) && is_capitals(second, CAPITALS_AFTER_MIN);
    divides.then(|| LineBreak {
        hyphen: before.len(),
        resume: text.len() - after.len(),
        is_soft: hyphen == SOFT_HYPHEN,
        first: first.to_lowercase(),
        second: second.to_lowercase(),
    })
}

/// Returns `true` if a word consists of at least `count_min` capitals.
fn is_capitals(word: &str, count_min: usize) -> bool {
    word.chars().all(char::is_uppercase) && word.chars().count() >= count_min
}

fn last_word(text: &str) -> &str {
    let rest = text.trim_end_matches(char::is_alphanumeric);
    text.get(rest.len()..).unwrap_or_default()
}

fn first_word(text: &str) -> &str {
    let rest = text.trim_start_matches(char::is_alphanumeric);
    text.get(..text.len() - rest.len()).unwrap_or_default()
}

/// Returns the words relevant for [`form`] that occur elsewhere in the text.
fn find_known_words(text: &str, breaks: &[LineBreak]) -> HashSet<String> {
    let mut words: HashMap<String, bool> = HashMap::new();
    for one in breaks.iter().filter(|one| !one.is_soft) {
        words.extend([joined(one), hyphenated(one)].map(|word| (word, false)));
    }
    let mut mark = |word: &str| {
        let lower = if word.chars().any(char::is_uppercase) {
            &word.to_lowercase()
        } else {
            word
        };
        if let Some(is_known) = words.get_mut(lower) {
            *is_known = true;
        }
    };
    // The parts at the breaks themselves are not evidence.
    let mut start = 0;
    for one in breaks {
        let piece = text.get(start..one.hyphen).unwrap_or_default();
        let piece = piece.trim_end_matches(char::is_alphanumeric);
        mark_words(piece, &mut mark);
        let rest = text.get(one.resume..).unwrap_or_default();
        start = one.resume + first_word(rest).len();
    }
    mark_words(text.get(start..).unwrap_or_default(), &mut mark);
    let known = words.into_iter().filter(|(_, is_known)| *is_known);
    known.map(|(word, _)| word).collect()
}

fn mark_words(text: &str, mark: &mut impl FnMut(&str)) {
    for word in text.split(|it: char| !it.is_alphanumeric() && it != '-') {
        let word = word.trim_matches('-');
        mark(word);
        if word.contains('-') {
            word.split('-').for_each(&mut *mark);
        }
    }
}

fn form(one: &LineBreak, known: &HashSet<String>) -> BreakForm {
    if one.is_soft || known.contains(&joined(one)) {
        BreakForm::Joined
    } else if known.contains(&hyphenated(one)) {
        BreakForm::Divided
    } else {
        BreakForm::SoftHyphen
    }
}

fn joined(one: &LineBreak) -> String {
    format!("{}{}", one.first, one.second)
}

fn hyphenated(one: &LineBreak) -> String {
    format!("{}-{}", one.first, one.second)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        assert_eq!(join_divided_words(text.into()), expected, "{text:?}");
    }

    #[test]
    fn divided_words_are_joined() {
        check("some infor-\nmation", "some infor\u{ad}mation");
        check("Infor-\r\n    mation x", "Infor\u{ad}mation x");
        check("state-of-the-\nart", "state-of-the\u{ad}art");
        check("infor\u{ad}\nmation so\u{ad}ft", "information soft");
        check("grün\u{2010}\nlich, grünlich", "grünlich, grünlich");
        check("so\u{ad}ft", "soft");
        check("FOR IN-\nCIDENTAL", "FOR IN\u{ad}CIDENTAL");
        check("EX-\nPRESSED or expressed", "EXPRESSED or expressed");
        check("EX-\nPRESSED, EX-PRESSED", "EX-\nPRESSED, EX-PRESSED");
        for same in [
            "EUC-\nJP",
            "X-\nRAY",
            "IN-\nCidental",
            "in-\nCIDENTAL",
            "A-\nZ",
            "1-\n2",
            "a -\nb",
            "a-\nB",
            "-\nx",
            "x-",
            "x-\n",
            "",
        ] {
            check(same, same);
        }
    }

    #[test]
    fn the_other_words_of_the_text_decide() {
        let same = "a well-\nknown and Well-Known fact";
        check(same, same);
        check(
            "it is well-\nknown to be well and known and so\u{ad}ft",
            "it is well\u{ad}known to be well and known and soft",
        );
        check(
            "a data-\nbase has data, a base and Databases, a database",
            "a database has data, a base and Databases, a database",
        );
        // The parts of another break are no words.
        check(
            "infor-\nmation, infor-\nmation",
            "infor\u{ad}mation, infor\u{ad}mation",
        );
    }
}
