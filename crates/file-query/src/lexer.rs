//! The tokens of a query.

use crate::error::QueryError;
use crate::field::Field;

/// A token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Token<'q> {
    /// `(` at this character, from 1 on.
    Open(usize),
    /// `)` at this character.
    Close(usize),
    /// `-` before a clause, or `NOT`.
    Not,
    And,
    Or,
    Phrase {
        text: &'q str,
        /// `p` behind the closing quote, with the number that follows.
        nearness: Option<u32>,
    },
    /// A name with `:` or another operator.
    Field {
        field: Field,
        operator: &'static str,
    },
    /// Anything else, up to white space, a quote or a parenthesis.
    Word(&'q str),
}

/// Reads tokens one after the other.
#[derive(Debug, Clone)]
pub struct Lexer<'q> {
    query: &'q str,
    /// The offset of what was not read yet, in bytes.
    at: usize,
}

/// Longer ones first.
const OPERATORS: [&str; 6] = ["<=", ">=", ":", "=", "<", ">"];

/// The words between two words of `"…"p` without a number, as in Recoll.
const NEARNESS: u32 = 10;

impl<'q> Lexer<'q> {
    pub fn new(query: &'q str) -> Lexer<'q> {
        Lexer { query, at: 0 }
    }

    fn rest(&self) -> &'q str {
        self.query.get(self.at..).unwrap_or_default()
    }

    /// The number of the next character.
    fn character(&self) -> usize {
        let read = self.query.get(..self.at).unwrap_or_default();
        read.chars().count() + 1
    }

    /// Returns `true` if white space or the end follows.
    fn is_at_gap(&self) -> bool {
        self.rest().chars().next().is_none_or(char::is_whitespace)
    }

    /// Returns the next token, or `None` at the end.
    pub fn next(&mut self) -> Result<Option<Token<'q>>, QueryError> {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
        let rest = self.rest();
        let Some(first) = rest.chars().next() else {
            return Ok(None);
        };
        Ok(Some(match first {
            '(' => {
                let token = Token::Open(self.character());
                self.at += 1;
                token
            }
            ')' => {
                let token = Token::Close(self.character());
                self.at += 1;
                token
            }
            '"' => self.phrase()?,
            '-' if rest.len() > 1 => {
                self.at += 1;
                if self.is_at_gap() {
                    Token::Word("-")
                } else {
                    Token::Not
                }
            }
            _ => self.word_or_field(),
        }))
    }

    fn phrase(&mut self) -> Result<Token<'q>, QueryError> {
        let open = self.character();
        let inner = self.query.get(self.at + 1..).unwrap_or_default();
        let Some(length) = inner.find('"') else {
            return Err(QueryError::OpenQuote(open));
        };
        let text = inner.get(..length).unwrap_or_default();
        self.at += length + 2;
        Ok(Token::Phrase {
            text,
            nearness: self.nearness(),
        })
    }

    /// Reads `p` or `p10` directly behind a quote.
    fn nearness(&mut self) -> Option<u32> {
        let behind = self.rest().strip_prefix(['p', 'P'])?;
        let digits = behind.len()
            - behind
                .trim_start_matches(|it: char| it.is_ascii_digit())
                .len();
        let (number, after) = behind.split_at_checked(digits)?;
        if after.chars().next().is_some_and(char::is_alphanumeric) {
            return None;
        }
        self.at += 1 + digits;
        match number {
            "" => Some(NEARNESS),
            number => Some(number.parse().unwrap_or(u32::MAX)),
        }
    }

    fn word_or_field(&mut self) -> Token<'q> {
        let rest = self.rest();
        let end = rest.find(|it: char| it.is_whitespace() || matches!(it, '(' | ')' | '"'));
        let word = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
        if let Some((field, operator, length)) = split_field(word) {
            self.at += length;
            return Token::Field { field, operator };
        }
        self.at += word.len();
        match word {
            "OR" | "||" => Token::Or,
            "AND" | "&&" => Token::And,
            "NOT" => Token::Not,
            word => Token::Word(word),
        }
    }

    /// Reads the value directly behind a field: up to white space or a parenthesis that closes.
    /// Returns `None` if a phrase or a parenthesis that opens is there.
    pub fn value(&mut self) -> Option<&'q str> {
        let rest = self.rest();
        if rest.starts_with(['"', '(']) {
            return None;
        }
        let end = rest.find(|it: char| it.is_whitespace() || it == ')');
        let value = rest.get(..end.unwrap_or(rest.len()))?;
        self.at += value.len();
        Some(value)
    }
}

/// Splits the name of a field and its operator from the beginning of a word, if it is one.
fn split_field(word: &str) -> Option<(Field, &'static str, usize)> {
    let name = word.len()
        - word
            .trim_start_matches(|it: char| it.is_ascii_alphabetic())
            .len();
    let (name, behind) = word.split_at_checked(name)?;
    let operator = OPERATORS.into_iter().find(|it| behind.starts_with(it))?;
    let field = Field::from_name(name)?;
    Some((field, operator, name.len() + operator.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::TextField;

    fn tokens(query: &str) -> Result<Vec<Token<'_>>, QueryError> {
        let mut lexer = Lexer::new(query);
        let mut found = Vec::new();
        while let Some(token) = lexer.next()? {
            found.push(token);
        }
        Ok(found)
    }

    #[test]
    fn tokens_are_told_apart() {
        let phrase = |text, nearness| Token::Phrase { text, nearness };
        let field = |field, operator| Token::Field { field, operator };
        let cases = [
            ("  ä b ", vec![Token::Word("ä"), Token::Word("b")]),
            (
                "a OR -b",
                vec![Token::Word("a"), Token::Or, Token::Not, Token::Word("b")],
            ),
            (
                "a - b",
                vec![Token::Word("a"), Token::Word("-"), Token::Word("b")],
            ),
            (
                "not NOT x-y",
                vec![Token::Word("not"), Token::Not, Token::Word("x-y")],
            ),
            (
                "ö(b)",
                vec![
                    Token::Word("ö"),
                    Token::Open(2),
                    Token::Word("b"),
                    Token::Close(4),
                ],
            ),
            (
                "\"a b\"p\"c\"P3",
                vec![phrase("a b", Some(10)), phrase("c", Some(3))],
            ),
            ("\"a\"px", vec![phrase("a", None), Token::Word("px")]),
            (
                "Title:x",
                vec![field(Field::Text(TextField::Title), ":"), Token::Word("x")],
            ),
            ("size>=1", vec![field(Field::Size, ">="), Token::Word("1")]),
            (
                "std::x http://y",
                vec![Token::Word("std::x"), Token::Word("http://y")],
            ),
        ];
        for (query, expected) in cases {
            assert_eq!(tokens(query), Ok(expected), "{query:?}");
        }
        assert_eq!(tokens("ä \"b"), Err(QueryError::OpenQuote(3)));
    }
}
