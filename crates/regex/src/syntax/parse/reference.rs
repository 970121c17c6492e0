//! Parses back-references and the names of groups.

use super::{Node, ParseError, Parser};

const MISSING_GROUP: &str = "reference to non-existent subpattern";

/// The longest name of a group, as in PCRE2.
const NAME_CHARACTERS_MAX: usize = 32;

impl Parser {
    fn reference(&mut self, group: usize) -> Node {
        self.highest_reference = self.highest_reference.max(group);
        Node::BackReference {
            group,
            case_insensitive: self.is_case_insensitive(),
        }
    }

    pub(super) fn named_reference(&mut self, name: &str) -> Node {
        let known = self.named.get(name).or_else(|| self.names.get(name));
        let known = known.copied();
        self.has_unknown_names |= known.is_none();
        self.reference(known.unwrap_or(0))
    }

    /// Parses the name of a group and the character `end` after it. Fails if the name is not valid.
    pub(super) fn name(&mut self, end: char) -> Result<String, ParseError> {
        let is_word = |one: char| one == '_' || one.is_alphanumeric();
        let mut name = String::new();
        while let Some(one) = self.characters.next_if(is_word) {
            name.push(one);
        }
        let message = if name.starts_with(char::is_numeric) {
            "subpattern name must start with a non-digit"
        } else if name.is_empty() {
            "subpattern name expected"
        } else if name.chars().count() > NAME_CHARACTERS_MAX {
            "subpattern name is too long (maximum 32 code units)"
        } else if self.characters.next() == Some(end) {
            return Ok(name);
        } else {
            "syntax error in subpattern name (missing terminator?)"
        };
        Err(ParseError::new(message))
    }

    /// Parses the rest of `\k<name>`, `\k{name}` or `\k'name'`.
    pub(super) fn k_reference(&mut self) -> Result<Node, ParseError> {
        let end = match self.characters.next() {
            Some('<') => '>',
            Some('{') => '}',
            Some('\'') => '\'',
            _ => {
                let message = r"\k is not followed by a braced, angle-bracketed, or quoted name";
                return Err(ParseError::new(message));
            }
        };
        let name = self.name(end)?;
        Ok(self.named_reference(&name))
    }

    /// Parses the rest of `\g1`, `\g{1}`, `\g-1`, `\g{+1}` or `\g{name}`.
    pub(super) fn g_reference(&mut self) -> Result<Node, ParseError> {
        let malformed = || {
            ParseError::new(
                r"\g is not followed by a braced, angle-bracketed, or quoted name/number or by a plain number",
            )
        };
        let is_braced = self.characters.take("{");
        let sign = self.characters.next_if(|one| matches!(one, '+' | '-'));
        let Some(number) = self.decimal() else {
            if !is_braced {
                return Err(malformed());
            }
            let name = self.name('}')?;
            return Ok(self.named_reference(&name));
        };
        if is_braced && !self.characters.take("}") {
            return Err(malformed());
        }
        let missing = || ParseError::new(MISSING_GROUP);
        let group = match (sign, number) {
            (Some(_), 0) => {
                let message = "a relative value of zero is not allowed";
                return Err(ParseError::new(message));
            }
            (Some('-'), back) => (self.groups + 1).checked_sub(back).ok_or_else(missing)?,
            (Some(_), ahead) => self.groups.saturating_add(ahead),
            (None, number) => number,
        };
        match group {
            0 => Err(missing()),
            group => Ok(self.reference(group)),
        }
    }

    /// Parses a decimal number; `None` if there is none. A number that does not fit becomes
    /// `usize::MAX`, which is never the number of a group.
    fn decimal(&mut self) -> Option<usize> {
        let mut text = String::new();
        while let Some(digit) = self.characters.next_if(|one| one.is_ascii_digit()) {
            text.push(digit);
        }
        (!text.is_empty()).then(|| text.parse().unwrap_or(usize::MAX))
    }

    /// Parses the digits after a backslash. They are a back-reference if the number is below 10,
    /// does not begin with an octal digit, or is at most the number of groups so far. Otherwise
    /// they are the octal code of a character.
    pub(super) fn digits(&mut self, first: char) -> Result<Node, ParseError> {
        let position = self.characters.position();
        self.characters.go_to(position - 1);
        let number = self.decimal().unwrap_or(usize::MAX);
        if number < 10 || first >= '8' || number <= self.groups {
            return Ok(self.reference(number));
        }
        self.characters.go_to(position);
        let code = self.escapes().octal(first)?;
        Ok(self.literal(code))
    }
}
