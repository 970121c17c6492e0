//! Parses the escapes that have the same meaning inside and outside of a class.

use super::characters::Characters;
use super::{class, property};
use crate::ParseError;

/// The meaning of an escape.
pub(super) enum Member {
    /// A character, which may begin a range.
    Character(char),
    /// Several characters, in the syntax of `regex-syntax`.
    Set(String),
}

const UNSUPPORTED: &str = r"PCRE2 does not support \F, \L, \l, \N{name}, \U, or \u";

/// Parses an escape after its backslash.
pub(super) struct EscapeParser<'c> {
    pub(super) characters: &'c mut Characters,
    /// `(*UCP)`: `\d`, `\w` and `\s` follow Unicode.
    pub(super) is_unicode: bool,
}

impl EscapeParser<'_> {
    /// Returns the meaning of an escape whose first character after the backslash is `character`.
    /// Fails if no such escape is allowed in a class.
    pub(super) fn member(&mut self, character: char) -> Result<Member, ParseError> {
        if let Some(set) = self.set(character)? {
            return Ok(Member::Set(set));
        }
        let literal = match character {
            'a' => '\u{7}',
            'e' => '\u{1B}',
            'f' => '\u{C}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'c' => self.control()?,
            'x' => self.hexadecimal()?,
            'o' => self.braced_octal()?,
            'N' if self.characters.take("{U+") => self.code_point(HEXADECIMAL)?,
            '0' => self.octal('0')?,
            'F' | 'L' | 'l' | 'U' | 'u' => return Err(ParseError::new(UNSUPPORTED)),
            'N' if self.characters.peek() == Some('{') => {
                return Err(ParseError::new(UNSUPPORTED));
            }
            other if other.is_ascii_alphanumeric() => {
                return Err(ParseError::new(r"unrecognized character follows \"));
            }
            other => other,
        };
        Ok(Member::Character(literal))
    }

    /// Returns the set that the escape means; `None` if it does not mean a set.
    fn set(&mut self, character: char) -> Result<Option<String>, ParseError> {
        let sets = class::sets(self.is_unicode);
        let set = match character.to_ascii_lowercase() {
            'd' => sets.digit.to_owned(),
            'w' => sets.word.to_owned(),
            's' => sets.space.to_owned(),
            'h' => class::HORIZONTAL.to_owned(),
            'v' => class::VERTICAL.to_owned(),
            'p' => {
                let name = self.property_name()?;
                let (name, is_complement) = match name.strip_prefix('^') {
                    Some(name) => (name, character == 'p'),
                    None => (name.as_str(), character == 'P'),
                };
                let members = property::members(name)?;
                return Ok(Some(if is_complement {
                    format!("[^{members}]")
                } else {
                    members
                }));
            }
            _ => return Ok(None),
        };
        Ok(Some(if character.is_ascii_uppercase() {
            format!("[^{set}]")
        } else {
            set
        }))
    }

    /// Parses the name after `\p`: `{L}`, `L` or `{^L}`.
    fn property_name(&mut self) -> Result<String, ParseError> {
        let malformed = || ParseError::new(r"malformed \P or \p sequence");
        match self.characters.next().ok_or_else(malformed)? {
            '{' => self.characters.until('}').map_err(|_| malformed()),
            letter if letter.is_ascii_alphabetic() => Ok(letter.to_string()),
            _ => Err(malformed()),
        }
    }

    /// Parses the letter of `\cA`.
    fn control(&mut self) -> Result<char, ParseError> {
        let letter = self.characters.next();
        let letter = letter.ok_or_else(|| ParseError::new(r"\c at end of pattern"))?;
        if !matches!(letter, ' '..='~') {
            let message = r"\c must be followed by a printable ASCII character";
            return Err(ParseError::new(message));
        }
        // As in PCRE2, bit 6 of the code is inverted: `A` becomes U+0001.
        Ok(char::from(letter.to_ascii_uppercase() as u8 ^ 0x40))
    }

    /// Parses the digits of `\x{41}`, or of `\x41` with up to two digits.
    fn hexadecimal(&mut self) -> Result<char, ParseError> {
        if self.characters.take("{") {
            return self.code_point(HEXADECIMAL);
        }
        let mut code = 0;
        for _ in 0..2 {
            let digit = self.characters.next_if(|one| one.is_ascii_hexdigit());
            match digit.and_then(|digit| digit.to_digit(16)) {
                Some(digit) => code = 16 * code + digit,
                None => break,
            }
        }
        character(code)
    }

    /// Parses the digits of `\o{101}`.
    fn braced_octal(&mut self) -> Result<char, ParseError> {
        if self.characters.take("{") {
            self.code_point(OCTAL)
        } else {
            Err(ParseError::new(r"missing opening brace after \o"))
        }
    }

    /// Parses up to three octal digits, of which the first is already read.
    pub(super) fn octal(&mut self, first: char) -> Result<char, ParseError> {
        let mut code = first.to_digit(8).unwrap_or(0);
        for _ in 0..2 {
            let digit = self.characters.next_if(|one| one.is_digit(8));
            match digit.and_then(|digit| digit.to_digit(8)) {
                Some(digit) => code = 8 * code + digit,
                None => break,
            }
        }
        character(code)
    }

    /// Parses digits up to a closing brace.
    fn code_point(&mut self, digits: Digits) -> Result<char, ParseError> {
        if matches!(self.characters.peek(), Some('}') | None) {
            let message = r"digits missing in \x{} or \o{} or \N{U+}";
            return Err(ParseError::new(message));
        }
        let mut code = 0u32;
        while let Some(digit) = self.characters.next_if(|one| one.is_digit(digits.radix)) {
            let digit = digit.to_digit(digits.radix).unwrap_or(0);
            code = code.saturating_mul(digits.radix).saturating_add(digit);
            if code > u32::from(char::MAX) {
                return character(code);
            }
        }
        if self.characters.take("}") {
            character(code)
        } else {
            Err(ParseError::new(digits.unexpected))
        }
    }
}

/// The notation of a code point in braces.
#[derive(Clone, Copy)]
struct Digits {
    radix: u32,
    /// The text of the error if another character follows.
    unexpected: &'static str,
}

const HEXADECIMAL: Digits = Digits {
    radix: 16,
    unexpected: r"non-hex character in \x{} (closing brace missing?)",
};
const OCTAL: Digits = Digits {
    radix: 8,
    unexpected: r"non-octal character in \o{} (closing brace missing?)",
};

/// Returns the character of a code point. Fails if there is none.
fn character(code: u32) -> Result<char, ParseError> {
    char::from_u32(code).ok_or_else(|| {
        ParseError::new(if code <= u32::from(char::MAX) {
            "disallowed Unicode code point (>= 0xd800 && <= 0xdfff)"
        } else {
            r"character code point value in \x{} or \o{} is too large"
        })
    })
}
