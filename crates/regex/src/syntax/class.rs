//! Sets of characters. They are written in the syntax of the crate `regex-syntax`, which has the
//! tables of Unicode.

use std::cmp::Ordering;
use std::sync::LazyLock;

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, HirKind};

use crate::ParseError;

/// The members of `\d`, `\w` and `\s`.
pub(super) struct Sets {
    pub(super) digit: &'static str,
    pub(super) word: &'static str,
    pub(super) space: &'static str,
}

const OF_ASCII: Sets = Sets {
    digit: "0-9",
    word: "0-9A-Za-z_",
    space: r"\x09-\x0D\x20",
};
const OF_UNICODE: Sets = Sets {
    digit: r"\p{Nd}",
    word: r"\p{L}\p{N}_",
    space: r"\p{Z}\x09-\x0D\x{85}\x{180E}",
};

/// Characters with a glyph. The ranges that are subtracted control the direction of text.
const GRAPH: &str = r"\p{L}\p{M}\p{N}\p{P}\p{S}[\p{Cf}--[\x{61C}\x{180E}\x{2066}-\x{2069}]]";
const PRINT: &str = r"\p{L}\p{M}\p{N}\p{P}\p{S}\p{Zs}[\p{Cf}--[\x{61C}\x{180E}\x{2066}-\x{2069}]]";
/// The POSIX classes that `(*UCP)` changes. Source: pcre2pattern, "POSIX character classes".
const POSIX_OF_UNICODE: [(&str, &str); 12] = [
    ("alnum", r"\p{L}\p{N}"),
    ("alpha", r"\p{L}"),
    ("blank", HORIZONTAL),
    ("cntrl", r"\p{Cc}"),
    ("digit", OF_UNICODE.digit),
    ("graph", GRAPH),
    ("lower", r"\p{Ll}"),
    ("print", PRINT),
    ("punct", PUNCTUATION),
    ("space", OF_UNICODE.space),
    ("upper", r"\p{Lu}"),
    ("word", OF_UNICODE.word),
];
/// Punctuation. PCRE2 includes the symbols up to U+00FF.
const PUNCTUATION: &str =
    r"\p{P}$+<=>\^`|\x{7E}\x{A2}-\x{A6}\x{A8}\x{A9}\x{AC}\x{AE}-\x{B1}\x{B4}\x{B8}\x{D7}\x{F7}";
pub(super) const HORIZONTAL: &str =
    r"\x09\x20\x{A0}\x{1680}\x{180E}\x{2000}-\x{200A}\x{202F}\x{205F}\x{3000}";
pub(super) const VERTICAL: &str = r"\x0A-\x0D\x{85}\x{2028}\x{2029}";

/// Returns the sets of `\d`, `\w` and `\s`. They follow Unicode if the pattern begins with
/// `(*UCP)`.
pub(super) fn sets(is_unicode: bool) -> &'static Sets {
    if is_unicode { &OF_UNICODE } else { &OF_ASCII }
}

/// Returns the POSIX class with this name; `None` if there is none. With option `i`, `lower` and
/// `upper` mean `alpha`, except with `(*UCP)`, where they are Unicode properties.
pub(super) fn posix(name: &str, is_unicode: bool, ignores_case: bool) -> Option<String> {
    let (_, set) = POSIX_OF_UNICODE
        .iter()
        .find(|(one, _)| *one == name)
        .or(match name {
            "ascii" => Some(&("ascii", "[:ascii:]")),
            "xdigit" => Some(&("xdigit", "[:xdigit:]")),
            _ => None,
        })?;
    Some(match name {
        _ if is_unicode => (*set).to_owned(),
        "lower" | "upper" if ignores_case => "[:alpha:]".to_owned(),
        _ => format!("[:{name}:]"),
    })
}

/// Parses a class in the syntax of `regex-syntax`. Fails if it is malformed.
pub(super) fn parse(text: &str) -> Result<ClassUnicode, ParseError> {
    let hir = regex_syntax::parse(text).map_err(|error| ParseError::new(error.to_string()))?;
    // `regex-syntax` makes a literal of a class of one character, and another kind of node of an
    // empty class.
    Ok(match hir.into_kind() {
        HirKind::Class(Class::Unicode(class)) => class,
        HirKind::Literal(literal) => {
            let text = String::from_utf8_lossy(&literal.0);
            ClassUnicode::new(text.chars().map(|one| ClassUnicodeRange::new(one, one)))
        }
        _ => ClassUnicode::empty(),
    })
}

/// Returns the set of `.` with option `s`.
pub(super) fn all() -> ClassUnicode {
    ClassUnicode::new([ClassUnicodeRange::new('\0', char::MAX)])
}

/// Returns the set of `\N`, and of `.` without option `s`.
pub(super) fn all_but_line_feed() -> ClassUnicode {
    ClassUnicode::new([
        ClassUnicodeRange::new('\0', '\u{9}'),
        ClassUnicodeRange::new('\u{B}', char::MAX),
    ])
}

/// Returns a character and its other cases; `None` if it has no other case.
pub(super) fn both_cases(character: char) -> Option<ClassUnicode> {
    let mut class = ClassUnicode::new([ClassUnicodeRange::new(character, character)]);
    class.try_case_fold_simple().ok()?;
    let is_single = matches!(class.ranges(), [only] if only.start() == only.end());
    (!is_single).then_some(class)
}

/// Returns `true` if two characters are the same except for their case.
pub(crate) fn is_same_letter(one: char, other: char) -> bool {
    if one.is_ascii() && other.is_ascii() {
        return one.eq_ignore_ascii_case(&other);
    }
    one == other || both_cases(one).is_some_and(|class| contains(&class, other))
}

/// Returns `true` if the character is in `[\p{L}\p{N}]`.
pub(super) fn is_letter_or_number(character: char) -> bool {
    static CLASS: LazyLock<ClassUnicode> = LazyLock::new(|| match parse(r"[\p{L}\p{N}]") {
        Ok(class) => class,
        Err(error) => unreachable!("this class is a constant: {error}"),
    });
    contains(&CLASS, character)
}

/// Returns `true` if the class has the character.
pub(crate) fn contains(class: &ClassUnicode, character: char) -> bool {
    let found = class.ranges().binary_search_by(|range| {
        if range.end() < character {
            Ordering::Less
        } else if range.start() > character {
            Ordering::Greater
        } else {
            Ordering::Equal
        }
    });
    found.is_ok()
}
