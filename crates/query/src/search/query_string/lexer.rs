//! The lexer of query strings.

/// A token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<'q> {
    /// The kind of the token.
    pub kind: TokenKind,
    /// The text of the token.
    pub text: &'q str,
    /// The position of the token, in bytes.
    pub at: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    And,
    Or,
    Not,
    Plus,
    Minus,
    /// A sign followed by a blank: a word without terms.
    BareSign,
    Open,
    Close,
    Colon,
    Star,
    Caret,
    Quoted,
    Word,
    /// `~` with the number after it.
    Tilde,
    Prefix,
    Wildcard,
    Regex,
    RangeOpen,
    /// The number after `^`.
    Number,
    RangeTo,
    RangeQuoted,
    RangeWord,
    RangeClose,
    End,
}

/// A syntax error, with its position in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    pub at: usize,
    pub message: String,
}

/// The kind of tokens to read next: a number after `^`, tokens of a range, or other tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Query,
    Boost,
    Range,
}

/// Reads tokens, in time linear in the length of the query.
#[derive(Debug)]
pub struct Lexer<'q> {
    query: &'q str,
    at: usize,
    mode: Mode,
}

impl<'q> Lexer<'q> {
    pub fn new(query: &'q str) -> Lexer<'q> {
        Lexer {
            query,
            at: 0,
            mode: Mode::Query,
        }
    }

    fn rest(&self) -> &'q str {
        self.query.get(self.at..).unwrap_or_default()
    }

    /// Reads the next token. Fails if it is invalid.
    pub fn next(&mut self) -> Result<Token<'q>, SyntaxError> {
        if self.mode != Mode::Boost {
            self.at += self.rest().len() - self.rest().trim_start_matches(is_blank).len();
        }
        let rest = self.rest();
        let Some(first) = rest.chars().next() else {
            return Ok(self.take(TokenKind::End, 0));
        };
        match self.mode {
            Mode::Query => self.query_token(first, rest),
            Mode::Boost => self.number(rest),
            Mode::Range => self.range_token(first, rest),
        }
    }

    fn take(&mut self, kind: TokenKind, length: usize) -> Token<'q> {
        let at = self.at;
        let text = self.rest().get(..length).unwrap_or_default();
        self.at += length;
        Token { kind, text, at }
    }

    fn error<T>(&self, message: &str) -> Result<T, SyntaxError> {
        Err(SyntaxError {
            at: self.at,
            message: message.to_owned(),
        })
    }

    fn query_token(&mut self, first: char, rest: &'q str) -> Result<Token<'q>, SyntaxError> {
        let is_before_blank = rest.chars().nth(1).is_some_and(is_blank);
        let kind = match first {
            '+' | '-' | '!' if is_before_blank => TokenKind::BareSign,
            '+' => TokenKind::Plus,
            '-' => TokenKind::Minus,
            '!' => TokenKind::Not,
            '(' => TokenKind::Open,
            ')' => TokenKind::Close,
            ':' => TokenKind::Colon,
            '^' => {
                self.mode = Mode::Boost;
                TokenKind::Caret
            }
            '[' | '{' => {
                self.mode = Mode::Range;
                TokenKind::RangeOpen
            }
            '"' => return self.delimited('"', TokenKind::Quoted, "the quotation mark"),
            '/' => return self.delimited('/', TokenKind::Regex, "the slash"),
            '~' => {
                let length = word_length(rest, false);
                return Ok(self.take(TokenKind::Tilde, length));
            }
            ']' | '}' => return self.error("the bracket does not close a range"),
            _ => return self.word(rest),
        };
        Ok(self.take(kind, first.len_utf8()))
    }

    /// Reads a word, with or without wildcards.
    fn word(&mut self, rest: &'q str) -> Result<Token<'q>, SyntaxError> {
        let length = word_length(rest, true);
        let text = rest.get(..length).unwrap_or_default();
        let plain = word_length(rest, false);
        let kind = match text {
            "" => return self.error("the backslash is not followed by a character"),
            "AND" | "&&" => TokenKind::And,
            "OR" | "||" => TokenKind::Or,
            "NOT" => TokenKind::Not,
            "*" => TokenKind::Star,
            _ if plain == length => TokenKind::Word,
            _ if plain > 0 && plain + 1 == length && text.ends_with('*') => TokenKind::Prefix,
            _ => TokenKind::Wildcard,
        };
        Ok(self.take(kind, length))
    }

    /// Reads a token between two delimiters. Delimiters after a backslash do not count.
    fn delimited(
        &mut self,
        delimiter: char,
        kind: TokenKind,
        shown: &str,
    ) -> Result<Token<'q>, SyntaxError> {
        match delimited_length(self.rest(), delimiter, kind == TokenKind::Regex) {
            Some(length) => Ok(self.take(kind, length)),
            None => self.error(&format!("{shown} is not closed")),
        }
    }

    fn number(&mut self, rest: &'q str) -> Result<Token<'q>, SyntaxError> {
        self.mode = Mode::Query;
        match number_length(rest) {
            0 => self.error("a number must follow \"^\""),
            length => Ok(self.take(TokenKind::Number, length)),
        }
    }

    fn range_token(&mut self, first: char, rest: &'q str) -> Result<Token<'q>, SyntaxError> {
        if matches!(first, ']' | '}') {
            self.mode = Mode::Query;
            return Ok(self.take(TokenKind::RangeClose, 1));
        }
        let word = rest.find([' ', ']', '}']).unwrap_or(rest.len());
        // A quoted string has at least one character.
        let quoted = match first {
            '"' => delimited_length(rest, '"', true).filter(|length| *length > 2),
            _ => None,
        };
        Ok(match (quoted, rest.get(..word)) {
            (Some(length), _) if length >= word => self.take(TokenKind::RangeQuoted, length),
            (_, Some("TO")) => self.take(TokenKind::RangeTo, word),
            _ => self.take(TokenKind::RangeWord, word),
        })
    }
}

fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\n' | '\r' | '\u{3000}')
}

/// Returns `true` for characters that a word contains only after a backslash.
fn is_special(character: char) -> bool {
    is_blank(character)
        || matches!(
            character,
            '!' | '(' | ')' | ':' | '^' | '[' | ']' | '"' | '{' | '}' | '~' | '/'
        )
}

/// Returns the length of the word at the beginning of a text. Signs belong to the word except at
/// its beginning, `~` only at its beginning.
fn word_length(text: &str, with_wildcards: bool) -> usize {
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        let is_part = match character {
            '\\' => characters.next().is_some(),
            '*' | '?' => with_wildcards,
            '+' | '-' => at > 0,
            '~' => at == 0,
            other => !is_special(other),
        };
        if !is_part {
            return at;
        }
    }
    text.len()
}

fn number_length(text: &str) -> usize {
    let digits = |text: &str| {
        text.find(|character: char| !character.is_ascii_digit())
            .unwrap_or(text.len())
    };
    let whole = digits(text);
    let fraction = text.get(whole..).and_then(|rest| rest.strip_prefix('.'));
    match fraction.map_or(0, digits) {
        length if whole > 0 && length > 0 => whole + 1 + length,
        _ => whole,
    }
}

/// Returns the length of a text up to its second delimiter. A delimiter after a backslash is part
/// of the text. If there is no other one, `may_end_escaped` allows the last such delimiter to end
/// the text.
fn delimited_length(text: &str, delimiter: char, may_end_escaped: bool) -> Option<usize> {
    let mut escaped_end = None;
    let mut is_escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        if character == delimiter {
            if !is_escaped {
                return Some(at + 1);
            }
            escaped_end = Some(at + 1);
        }
        // In a regular expression, two backslashes do not cancel each other.
        is_escaped = character == '\\' && (may_end_escaped || !is_escaped);
    }
    escaped_end.filter(|_| may_end_escaped)
}
