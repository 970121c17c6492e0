//! Parses character classes in brackets.
//!
//! Option `i` adds the other cases of characters and ranges. It does not change escapes such as
//! `\p{Lu}`, nor POSIX classes other than `lower` and `upper`.

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

use super::characters::Characters;
use super::class;
use super::escape::{EscapeParser, Member};
use crate::ParseError;

const MISSING_BRACKET: &str = "missing terminating ] for character class";
const INVALID_RANGE: &str = "invalid range in character class";

/// The options that apply to a class.
#[derive(Clone, Copy)]
pub(super) struct BracketOptions {
    pub(super) ignores_case: bool,
    /// `(?xx)`: spaces and tabs in a class are ignored.
    pub(super) ignores_spaces: bool,
    /// `(*UCP)`: escapes and POSIX classes follow Unicode.
    pub(super) is_unicode: bool,
}

/// Parses a class after its opening bracket. Fails if the class is malformed or not supported.
pub(super) fn class(
    characters: &mut Characters,
    options: BracketOptions,
) -> Result<ClassUnicode, ParseError> {
    if let Some(name) = posix_name(characters.rest()) {
        return Err(ParseError::new(match name.sign {
            ':' => "POSIX named classes are supported only within a class",
            _ => POSIX_COLLATING,
        }));
    }
    let mut parser = BracketParser {
        characters,
        options,
        ranges: Vec::new(),
        sets: String::new(),
        last: Last::Other,
        is_quoted: false,
    };
    parser.skip_ignored();
    let is_negated = parser.characters.take("^");
    parser.skip_ignored();
    if parser.characters.take("]") {
        parser.character(']')?;
    }
    parser.members()?;
    parser.finish(is_negated)
}

const POSIX_COLLATING: &str = "POSIX collating elements are not supported";

/// The member of the class that was read last. It decides what a hyphen means.
#[derive(Clone, Copy)]
enum Last {
    /// A character. If a hyphen follows, the character is the start of a range.
    Character(char),
    /// The start of a range and its hyphen.
    RangeStart(char),
    /// A range, a set, or nothing. A hyphen after it is a literal.
    Other,
}

struct BracketParser<'c> {
    characters: &'c mut Characters,
    options: BracketOptions,
    ranges: Vec<ClassUnicodeRange>,
    /// Escapes and POSIX classes, in the syntax of `regex-syntax`.
    sets: String,
    last: Last,
    /// `true` between `\Q` and `\E`, where every character is a literal.
    is_quoted: bool,
}

impl BracketParser<'_> {
    /// Skips `\E`, empty quotations and ignored spaces. `^` and `]` have their meaning at the start
    /// of a class even after these.
    fn skip_ignored(&mut self) {
        loop {
            let is_space = |one| matches!(one, ' ' | '\t');
            let is_skipped = self.characters.take(r"\E")
                || self.characters.take(r"\Q\E")
                || (self.options.ignores_spaces && self.characters.next_if(is_space).is_some());
            if !is_skipped {
                return;
            }
        }
    }

    fn members(&mut self) -> Result<(), ParseError> {
        loop {
            if self.characters.take(r"\E") {
                self.is_quoted = false;
                continue;
            }
            let next = self.characters.next();
            let next = next.ok_or_else(|| ParseError::new(MISSING_BRACKET))?;
            match next {
                literal if self.is_quoted => self.character(literal)?,
                ' ' | '\t' if self.options.ignores_spaces => {}
                ']' => return Ok(()),
                '-' => self.hyphen()?,
                '[' => match posix_name(self.characters.rest()) {
                    Some(name) => self.posix(&name)?,
                    None => self.character('[')?,
                },
                '\\' if self.characters.take("Q") => self.is_quoted = true,
                '\\' => self.escape()?,
                literal => self.character(literal)?,
            }
        }
    }

    fn hyphen(&mut self) -> Result<(), ParseError> {
        match self.last {
            Last::Character(low) => {
                self.last = Last::RangeStart(low);
                Ok(())
            }
            _ => self.character('-'),
        }
    }

    fn character(&mut self, one: char) -> Result<(), ParseError> {
        let low = match self.last {
            Last::RangeStart(low) if low > one => {
                let message = "range out of order in character class";
                return Err(ParseError::new(message));
            }
            Last::RangeStart(low) => {
                self.last = Last::Other;
                low
            }
            _ => {
                self.last = Last::Character(one);
                one
            }
        };
        self.ranges.push(ClassUnicodeRange::new(low, one));
        Ok(())
    }

    /// Adds a set. Fails if a hyphen stands before or after it, because a set cannot be the start
    /// or the end of a range.
    fn set(&mut self, set: &str) -> Result<(), ParseError> {
        let rest = self.characters.rest();
        let has_hyphen = matches!(rest, ['-', next, ..] if *next != ']');
        if has_hyphen || matches!(self.last, Last::RangeStart(_)) {
            return Err(ParseError::new(INVALID_RANGE));
        }
        self.last = Last::Other;
        self.sets.push_str(set);
        Ok(())
    }

    fn escape(&mut self) -> Result<(), ParseError> {
        let character = self.characters.next();
        let character = character.ok_or_else(|| ParseError::new(r"\ at end of pattern"))?;
        let is_code_point = self.characters.rest().starts_with(&['{', 'U', '+']);
        let mut escapes = EscapeParser {
            characters: self.characters,
            is_unicode: self.options.is_unicode,
        };
        match character {
            'b' => self.character('\u{8}'),
            '1'..='7' => {
                let code = escapes.octal(character)?;
                self.character(code)
            }
            '8' | '9' | 'g' => self.character(character),
            'N' if !is_code_point => Err(ParseError::new(r"\N is not supported in a class")),
            'A' | 'B' | 'C' | 'G' | 'K' | 'R' | 'X' | 'Z' | 'k' | 'z' => {
                let message = "escape sequence is invalid in character class";
                Err(ParseError::new(message))
            }
            other => match escapes.member(other)? {
                Member::Character(one) => self.character(one),
                Member::Set(set) => self.set(&set),
            },
        }
    }

    /// Parses `[:alpha:]` or `[:^alpha:]` after the bracket.
    fn posix(&mut self, name: &PosixName) -> Result<(), ParseError> {
        if name.sign != ':' {
            return Err(ParseError::new(POSIX_COLLATING));
        }
        let (plain, is_complement) = match name.name.strip_prefix('^') {
            Some(plain) => (plain, true),
            None => (name.name.as_str(), false),
        };
        let BracketOptions {
            is_unicode,
            ignores_case,
            ..
        } = self.options;
        let set = class::posix(plain, is_unicode, ignores_case);
        let set = set.ok_or_else(|| ParseError::new("unknown POSIX class name"))?;
        self.characters.skip(name.characters);
        if !is_complement {
            self.set(&set)
        } else if set.starts_with("[:") {
            self.set(&set.replacen("[:", "[:^", 1))
        } else {
            self.set(&format!("[^{set}]"))
        }
    }

    fn finish(mut self, is_negated: bool) -> Result<ClassUnicode, ParseError> {
        if let Last::RangeStart(_) = self.last {
            self.ranges.push(ClassUnicodeRange::new('-', '-'));
        }
        let mut class = ClassUnicode::new(self.ranges);
        if self.options.ignores_case {
            let folded = class.try_case_fold_simple();
            folded.map_err(|error| ParseError::new(error.to_string()))?;
        }
        if !self.sets.is_empty() {
            class.union(&class::parse(&format!("[{}]", self.sets))?);
        }
        if is_negated {
            class.negate();
        }
        Ok(class)
    }
}

/// The name of a POSIX class, or of a collating element.
struct PosixName {
    /// `:`, `.` or `=`
    sign: char,
    name: String,
    /// The number of characters from the first sign to the closing bracket.
    characters: usize,
}

/// Returns the name at the start of `rest`, which begins after a bracket; `None` if there is none.
fn posix_name(rest: &[char]) -> Option<PosixName> {
    let (sign, rest) = rest.split_first()?;
    if !matches!(sign, ':' | '.' | '=') {
        return None;
    }
    let mut length = 0;
    loop {
        match rest.get(length..)? {
            ['\\', ']' | '\\', ..] => length += 2,
            ['[', next, ..] if next == sign => return None,
            [']', ..] | [_] | [] => return None,
            [one, ']', ..] if one == sign => break,
            _ => length += 1,
        }
    }
    Some(PosixName {
        sign: *sign,
        name: rest.iter().take(length).collect(),
        characters: length + 3,
    })
}
