//! The characters of a pattern, read one after the other.

use crate::ParseError;

/// A position in a pattern.
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

    /// The next character, which stays.
    pub(super) fn peek(&self) -> Option<char> {
        self.peek_at(0)
    }

    /// The character `ahead` places behind the next one.
    pub(super) fn peek_at(&self, ahead: usize) -> Option<char> {
        self.all.get(self.at + ahead).copied()
    }

    /// What is not read yet.
    pub(super) fn rest(&self) -> &[char] {
        self.all.get(self.at..).unwrap_or_default()
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let character = self.peek()?;
        self.at += 1;
        Some(character)
    }

    /// The next character, if it meets the condition.
    pub(super) fn next_if(&mut self, condition: impl Fn(char) -> bool) -> Option<char> {
        let character = self.peek().filter(|one| condition(*one))?;
        self.at += 1;
        Some(character)
    }

    pub(super) fn skip(&mut self, characters: usize) {
        self.at += characters;
    }

    /// Skips what is left of a line, and the line feed.
    pub(super) fn skip_line(&mut self) {
        while self.next().is_some_and(|one| one != '\n') {}
    }

    /// How many characters were read.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// Returns to a position that was read before.
    pub(super) fn go_to(&mut self, position: usize) {
        self.at = position;
    }

    /// Skips `text` if it comes next.
    pub(super) fn take(&mut self, text: &str) -> bool {
        let mut characters = text.chars().enumerate();
        let found = characters.all(|(ahead, one)| self.peek_at(ahead) == Some(one));
        if found {
            self.at += text.chars().count();
        }
        found
    }

    /// Returns the text before `end` and skips both.
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
