//! Parses TeX's syntax: control sequences, groups and optional arguments.

/// A position in the source.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'t> {
    pub(super) rest: &'t str,
}

impl<'t> Cursor<'t> {
    /// Takes the next character.
    pub(super) fn next(&mut self) -> Option<char> {
        let mut characters = self.rest.chars();
        let character = characters.next()?;
        self.rest = characters.as_str();
        Some(character)
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    /// Takes `prefix` if it follows.
    pub(super) fn take(&mut self, prefix: &str) -> bool {
        match self.rest.strip_prefix(prefix) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    pub(super) fn skip_spaces(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
    }

    /// Consumes the name of a control sequence after its backslash: letters, or a single other
    /// character. Spaces after letters belong to the name.
    pub(super) fn take_name(&mut self) -> &'t str {
        let letters = self
            .rest
            .trim_start_matches(|it: char| it.is_ascii_alphabetic() || it == '@');
        let length = match self.rest.len() - letters.len() {
            0 => self.peek().map_or(0, char::len_utf8),
            length => length,
        };
        let (name, rest) = self.rest.split_at(length);
        self.rest = rest;
        if name.starts_with(|it: char| it.is_ascii_alphabetic()) {
            let line = self.rest.trim_start_matches([' ', '\t']);
            // One line end is a space, two are a paragraph.
            self.rest = match line.strip_prefix('\n') {
                Some(next) if !next.trim_start_matches([' ', '\t']).starts_with('\n') => next,
                _ => line,
            };
        }
        name
    }

    /// Consumes a group in braces. Without braces, consumes one character or control sequence.
    pub(super) fn take_argument(&mut self) -> &'t str {
        self.skip_spaces();
        match self.peek() {
            Some('{') => {
                self.next();
                self.take_until('}')
            }
            Some('\\') => {
                let start = self.rest;
                self.next();
                self.take_name();
                start
                    .get(..start.len() - self.rest.len())
                    .unwrap_or_default()
            }
            Some('}') | None => "",
            Some(one) => {
                let (argument, rest) = self.rest.split_at(one.len_utf8());
                self.rest = rest;
                argument
            }
        }
    }

    /// Takes an argument in brackets if one follows.
    pub(super) fn take_option(&mut self) -> Option<&'t str> {
        let rest = self.rest.trim_start_matches([' ', '\t']);
        self.rest = rest.strip_prefix('[')?;
        Some(self.take_until(']'))
    }

    /// Takes everything up to `end`, and `end`.
    pub(super) fn take_through(&mut self, end: &str) -> &'t str {
        let (taken, rest) = self.rest.split_once(end).unwrap_or((self.rest, ""));
        self.rest = rest;
        taken
    }

    /// Takes everything up to `close` outside groups, and `close`.
    fn take_until(&mut self, close: char) -> &'t str {
        let start = self.rest;
        let mut depth = 0u32;
        while let Some(character) = self.next() {
            match character {
                it if it == close && depth == 0 => {
                    let length = start.len() - self.rest.len() - close.len_utf8();
                    return start.get(..length).unwrap_or_default();
                }
                '\\' => {
                    self.next();
                }
                '{' => depth += 1,
                '}' => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        start
    }
}
