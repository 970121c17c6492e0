//! Character classes, and the escapes that they share with the rest of a pattern.
//!
//! A class is rewritten in the syntax of `regex-syntax`, which has Unicode's tables, and parsed by it.

use std::cmp::Ordering;
use std::sync::LazyLock;

use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, HirKind};

use super::characters::Characters;
use crate::ParseError;

/// The members of `\d`, `\w` and `\s`.
struct Sets {
    digit: &'static str,
    word: &'static str,
    space: &'static str,
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

/// Without the characters that control the direction of text: they have no glyph.
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
/// Symbols up to U+00FF count as punctuation.
const PUNCTUATION: &str =
    r"\p{P}$+<=>\^`|\x{7E}\x{A2}-\x{A6}\x{A8}\x{A9}\x{AC}\x{AE}-\x{B1}\x{B4}\x{B8}\x{D7}\x{F7}";
const HORIZONTAL: &str = r"\x09\x20\x{A0}\x{1680}\x{180E}\x{2000}-\x{200A}\x{202F}\x{205F}\x{3000}";
const VERTICAL: &str = r"\x0A-\x0D\x{85}\x{2028}\x{2029}";

/// Parses a class in the syntax of `regex-syntax`.
pub(super) fn parse(text: &str, is_case_insensitive: bool) -> Result<ClassUnicode, ParseError> {
    let mut parser = ParserBuilder::new()
        .case_insensitive(is_case_insensitive)
        .build();
    let hir = parser
        .parse(text)
        .map_err(|error| ParseError::new(error.to_string()))?;
    // A class of one character is a literal there, an empty one never matches.
    Ok(match hir.into_kind() {
        HirKind::Class(Class::Unicode(class)) => class,
        HirKind::Literal(literal) => {
            let text = String::from_utf8_lossy(&literal.0);
            ClassUnicode::new(text.chars().map(|one| ClassUnicodeRange::new(one, one)))
        }
        _ => ClassUnicode::empty(),
    })
}

/// `.` with the option `s`.
pub(super) fn all() -> ClassUnicode {
    ClassUnicode::new([ClassUnicodeRange::new('\0', char::MAX)])
}

/// `.` and `\N`.
pub(super) fn all_but_line_feed() -> ClassUnicode {
    ClassUnicode::new([
        ClassUnicodeRange::new('\0', '\u{9}'),
        ClassUnicodeRange::new('\u{B}', char::MAX),
    ])
}

/// A character and its other cases; `None` if it has none.
pub(super) fn both_cases(character: char) -> Option<ClassUnicode> {
    let mut class = ClassUnicode::new([ClassUnicodeRange::new(character, character)]);
    class.try_case_fold_simple().ok()?;
    let is_single = matches!(class.ranges(), [only] if only.start() == only.end());
    (!is_single).then_some(class)
}

/// `[\p{L}\p{N}]`
pub(super) fn is_letter_or_number(character: char) -> bool {
    static CLASS: LazyLock<ClassUnicode> = LazyLock::new(|| match parse(r"[\p{L}\p{N}]", false) {
        Ok(class) => class,
        Err(error) => unreachable!("this class is a constant: {error}"),
    });
    contains(&CLASS, character)
}

/// Whether a class has a character.
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

/// One member of a class.
pub(super) enum Member {
    /// A character, which may begin a range.
    Character(char),
    /// Several characters, in the syntax of `regex-syntax`.
    Set(String),
}

/// Parses classes and escapes.
pub(super) struct ClassParser<'c> {
    pub(super) characters: &'c mut Characters,
    /// `(*UCP)`: `\d`, `\w`, `\s` and POSIX classes follow Unicode.
    pub(super) is_unicode: bool,
}

impl ClassParser<'_> {
    fn sets(&self) -> &'static Sets {
        match self.is_unicode {
            true => &OF_UNICODE,
            false => &OF_ASCII,
        }
    }

    /// What the escape `\character` stands for, in a class and outside.
    pub(super) fn escaped_member(&mut self, character: char) -> Result<Member, ParseError> {
        let Sets { digit, word, space } = self.sets();
        let set = |set: &str| Member::Set(set.to_owned());
        let complement = |set: &str| Member::Set(format!("[^{set}]"));
        Ok(match character {
            'd' => set(digit),
            'D' => complement(digit),
            'w' => set(word),
            'W' => complement(word),
            's' => set(space),
            'S' => complement(space),
            'h' => set(HORIZONTAL),
            'H' => complement(HORIZONTAL),
            'v' => set(VERTICAL),
            'V' => complement(VERTICAL),
            'p' | 'P' => Member::Set(self.property(character)?),
            'a' => Member::Character('\u{7}'),
            'e' => Member::Character('\u{1B}'),
            'f' => Member::Character('\u{C}'),
            'n' => Member::Character('\n'),
            'r' => Member::Character('\r'),
            't' => Member::Character('\t'),
            'c' => {
                let control = self
                    .characters
                    .next()
                    .ok_or_else(|| ParseError::new("\\c at end of pattern"))?;
                let upper = control.to_ascii_uppercase() as u32;
                Member::Character(char::from_u32(upper ^ 0x40).unwrap_or(control))
            }
            'x' => Member::Character(self.hex()?),
            'o' => {
                let text = if self.characters.take("{") {
                    self.characters.until('}')?
                } else {
                    String::new()
                };
                Member::Character(code_point(&text, 8)?)
            }
            '0' => {
                let mut text = String::from('0');
                self.octal_digits(&mut text);
                Member::Character(code_point(&text, 8)?)
            }
            other => Member::Character(other),
        })
    }

    /// Up to three octal digits, with those that `text` has.
    fn octal_digits(&mut self, text: &mut String) {
        while text.len() < 3
            && let Some(digit) = self.characters.next_if(|one| ('0'..'8').contains(&one))
        {
            text.push(digit);
        }
    }

    fn hex(&mut self) -> Result<char, ParseError> {
        if self.characters.take("{") {
            let text = self.characters.until('}')?;
            return code_point(&text, 16);
        }
        let mut text = String::new();
        while text.len() < 2
            && let Some(digit) = self.characters.next_if(|one| one.is_ascii_hexdigit())
        {
            text.push(digit);
        }
        code_point(if text.is_empty() { "0" } else { &text }, 16)
    }

    /// `\p{L}`, `\pL`, `\p{^L}`.
    fn property(&mut self, sign: char) -> Result<String, ParseError> {
        let name = match self
            .characters
            .next()
            .ok_or_else(|| ParseError::new("malformed \\P or \\p sequence"))?
        {
            '{' => self.characters.until('}')?,
            letter => letter.to_string(),
        };
        Ok(match (name.strip_prefix('^'), sign) {
            (Some(name), 'p') => format!(r"\P{{{name}}}"),
            (Some(name), _) => format!(r"\p{{{name}}}"),
            (None, sign) => format!(r"\{sign}{{{name}}}"),
        })
    }

    /// A class, whose opening bracket is already skipped.
    pub(super) fn class(&mut self, is_case_insensitive: bool) -> Result<ClassUnicode, ParseError> {
        let mut text = String::from("[");
        if self.characters.take("^") {
            text.push('^');
        }
        let mut is_first = true;
        loop {
            if !std::mem::take(&mut is_first) && self.characters.take("]") {
                text.push(']');
                return parse(&text, is_case_insensitive);
            }
            if self.characters.take(r"\E") {
                continue;
            }
            if self.characters.take(r"\Q") {
                while self.characters.peek().is_some() && !self.characters.take(r"\E") {
                    if let Some(character) = self.characters.next() {
                        push_character(&mut text, character);
                    }
                }
                continue;
            }
            match self.member()? {
                Member::Set(set) => text.push_str(&set),
                Member::Character(low) => self.range(low, &mut text)?,
            }
        }
    }

    /// A range that begins with `low`, or `low` alone.
    fn range(&mut self, low: char, text: &mut String) -> Result<(), ParseError> {
        push_character(text, low);
        if self.characters.peek() != Some('-')
            || matches!(self.characters.peek_at(1), Some(']') | None)
        {
            return Ok(());
        }
        self.characters.skip(1);
        match self.member()? {
            Member::Character(high) => {
                text.push('-');
                push_character(text, high);
            }
            Member::Set(set) => {
                push_character(text, '-');
                text.push_str(&set);
            }
        }
        Ok(())
    }

    fn member(&mut self) -> Result<Member, ParseError> {
        match self
            .characters
            .next()
            .ok_or_else(|| ParseError::new("missing terminating ] for character class"))?
        {
            '[' if self.characters.peek() == Some(':') => match self.posix() {
                Some(name) => Ok(Member::Set(name)),
                None => Ok(Member::Character('[')),
            },
            '\\' => match self
                .characters
                .next()
                .ok_or_else(|| ParseError::new("\\ at end of pattern"))?
            {
                'b' => Ok(Member::Character('\u{8}')),
                digit @ '1'..='7' => {
                    let mut text = String::from(digit);
                    self.octal_digits(&mut text);
                    code_point(&text, 8).map(Member::Character)
                }
                other => self.escaped_member(other),
            },
            literal => Ok(Member::Character(literal)),
        }
    }

    /// `[:alpha:]`, `[:^alpha:]`; `None` if the bracket begins no such name.
    fn posix(&mut self) -> Option<String> {
        let rest = self.characters.rest();
        let name: String = rest
            .iter()
            .skip(1)
            .take_while(|one| one.is_ascii_lowercase() || **one == '^')
            .collect();
        let end = 1 + name.len();
        if rest.get(end..end + 2) != Some(&[':', ']']) {
            return None;
        }
        self.characters.skip(end + 2);
        Some(self.posix_set(&name))
    }

    fn posix_set(&self, name: &str) -> String {
        let (plain, is_without) = match name.strip_prefix('^') {
            Some(plain) => (plain, true),
            None => (name, false),
        };
        let mut known = POSIX_OF_UNICODE.iter();
        match known.find(|(one, _)| self.is_unicode && *one == plain) {
            Some((_, set)) if is_without => format!("[^{set}]"),
            Some((_, set)) => (*set).to_owned(),
            None => format!("[:{name}:]"),
        }
    }
}

/// Appends a character so that nothing in it is syntax.
fn push_character(text: &mut String, character: char) {
    if character.is_ascii_alphanumeric() {
        text.push(character);
    } else {
        text.push_str(&format!(r"\x{{{:X}}}", u32::from(character)));
    }
}

fn code_point(digits: &str, radix: u32) -> Result<char, ParseError> {
    u32::from_str_radix(digits, radix)
        .ok()
        .and_then(char::from_u32)
        .ok_or_else(|| ParseError::new(format!("character value '{digits}' is out of range")))
}
