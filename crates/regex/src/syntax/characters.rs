//! Reads the characters of a pattern in order.

use crate::ParseError;

/// The characters of a pattern and the position of the next one.
pub(super) struct Characters {
    all: Vec<char>,
    at: usize,
}

impl Characters {
    pub(super) fn new(pattern: &str) -> Characters {
        Characters {
            all: pattern.chars().collect(),
            at: 0,
        }
    }

    /// Returns the next character and does not skip it.
    pub(super) fn peek(&self) -> Option<char> {
        self.peek_at(0)
    }

    /// Returns the character that is `ahead` characters after the next one and skips nothing.
    pub(super) fn peek_at(&self, ahead: usize) -> Option<char> {
        self.all.get(self.at + ahead).copied()
    }

    /// Returns the characters that are not read yet.
    pub(super) fn rest(&self) -> &[char] {
        self.all.get(self.at..).unwrap_or_default()
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let character = self.peek()?;
        self.at += 1;
        Some(character)
    }

    /// Returns the next character and skips it, if it meets the condition.
    pub(super) fn next_if(&mut self, condition: impl Fn(char) -> bool) -> Option<char> {
        let character = self.peek().filter(|one| condition(*one))?;
        self.at += 1;
        Some(character)
    }

    pub(super) fn skip(&mut self, characters: usize) {
        self.at += characters;
    }

    /// Skips the rest of the line, and its line feed.
    pub(super) fn skip_line(&mut self) {
        while self.next().is_some_and(|one| one != '\n') {}
    }

    /// Returns the number of characters before the next one.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// Goes back to a position that [`Characters::position`] has returned.
    pub(super) fn go_to(&mut self, position: usize) {
        self.at = position;
    }

    /// Skips `text` if the rest begins with it. Returns `true` if it does.
    pub(super) fn take(&mut self, text: &str) -> bool {
        let mut characters = text.chars().enumerate();
        let found = characters.all(|(ahead, one)| self.peek_at(ahead) == Some(one));
        if found {
            self.at += text.chars().count();
        }
        found
    }

    /// Returns the text before `end` and skips both. Fails if `end` does not follow.
    pub(super) fn until(&mut self, end: char) -> Result<String, ParseError> {
        let mut text = String::new();
        loop {
            match self.next() {
                Some(one) if one == end => return Ok(text),
                Some(one) => text.push(one),
                None => return Err(ParseError::new(format!("missing terminating '{end}'"))),
            }
        }
    }
}
