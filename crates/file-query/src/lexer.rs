//! Splits a query into tokens.

use crate::error::QueryError;
use crate::field::Field;

/// A token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Token<'q> {
    /// `(` at this character, counted from 1.
    Open(usize),
    /// `)` at this character.
    Close(usize),
    /// `-` before a clause, or `NOT`.
    Not,
    And,
    Or,
    Phrase {
        text: &'q str,
        /// The suffix `p` after the closing quotation mark, with its optional number.
        nearness: Option<u32>,
    },
    /// A field name with its operator.
    Field {
        field: Field,
        operator: &'static str,
    },
    /// Any other text up to white space, a quotation mark or a parenthesis.
    Word(&'q str),
}

/// Reads the tokens of a query.
#[derive(Debug, Clone)]
pub struct Lexer<'q> {
    query: &'q str,
    /// The offset of the next character in bytes.
    at: usize,
}

/// A prefix of another operator comes after it.
const OPERATORS: [&str; 6] = ["<=", ">=", ":", "=", "<", ">"];

/// The default number of words between the words of `"…"p`, as in Recoll.
const NEARNESS: u32 = 10;

impl<'q> Lexer<'q> {
    pub fn new(query: &'q str) -> Lexer<'q> {
        Lexer { query, at: 0 }
    }

    fn rest(&self) -> &'q str {
        self.query.get(self.at..).unwrap_or_default()
    }

    /// Returns the number of the next character, counted from 1.
    fn character(&self) -> usize {
        let read = self.query.get(..self.at).unwrap_or_default();
        read.chars().count() + 1
    }

    /// Returns `true` at white space or at the end.
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

    /// Reads the suffix `p` or `p10` of a phrase.
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
        if let Some(prefix) = split_field(word) {
            let FieldPrefix {
                field,
                operator,
                length,
            } = prefix;
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

    /// Reads the value of a field, up to white space or a closing parenthesis. Returns `None` if a
    /// phrase or an opening parenthesis follows.
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

/// A field name with its operator, at the beginning of a word.
struct FieldPrefix {
    field: Field,
    operator: &'static str,
    /// The length in bytes.
    length: usize,
}

/// Splits a field name with its operator from the beginning of a word. Returns `None` if the word
/// has none.
fn split_field(word: &str) -> Option<FieldPrefix> {
    let name = word.len()
        - word
            .trim_start_matches(|it: char| it.is_ascii_alphabetic())
            .len();
    let (name, behind) = word.split_at_checked(name)?;
    let operator = OPERATORS.into_iter().find(|it| behind.starts_with(it))?;
    let field = Field::from_name(name)?;
    Some(FieldPrefix {
        field,
        operator,
        length: name.len() + operator.len(),
    })
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
