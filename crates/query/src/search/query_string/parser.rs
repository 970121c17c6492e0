//! Parses the tokens of a query string to a tree.

use std::ops::Bound;
use std::sync::Arc;

use super::lexer::{Lexer, SyntaxError, Token, TokenKind};
use super::{Clause, Expression, FieldKind, Modifier};

/// The largest depth of nested parentheses.
const DEPTH_MAX: usize = 100;
/// The largest number of clauses of a query.
const CLAUSES_MAX: usize = 16_384;
/// The largest edit distance, and the default.
const EDITS_MAX: u8 = 2;

/// The largest number of characters of the query that an error message quotes.
const QUOTED_MAX: usize = 40;

pub fn parse(query: &str, default_path: &str) -> Result<Expression, String> {
    let mut parser = Parser {
        lexer: Lexer::new(query),
        ahead: None,
        clauses: 0,
    };
    parser.whole(&Arc::from(default_path)).map_err(|error| {
        let before = query.get(..error.at).unwrap_or(query);
        let position = before.chars().count() + 1;
        let SyntaxError { message, .. } = error;
        format!("\"queryString.query\" is not valid at character {position}: {message}")
    })
}

struct Parser<'q> {
    lexer: Lexer<'q>,
    ahead: Option<Token<'q>>,
    clauses: usize,
}

type Parsed<T> = Result<T, SyntaxError>;

/// A boost and an edit distance after a term, in either order.
#[derive(Default)]
struct Suffix<'q> {
    boost: Option<f32>,
    tilde: Option<Token<'q>>,
}

impl<'q> Parser<'q> {
    fn peek(&mut self) -> Parsed<Token<'q>> {
        match self.ahead {
            Some(token) => Ok(token),
            None => {
                let token = self.lexer.next()?;
                self.ahead = Some(token);
                Ok(token)
            }
        }
    }

    fn next(&mut self) -> Parsed<Token<'q>> {
        match self.ahead.take() {
            Some(token) => Ok(token),
            None => self.lexer.next(),
        }
    }

    /// Takes the next token if it is of this kind.
    fn take(&mut self, kind: TokenKind) -> Parsed<Option<Token<'q>>> {
        let token = self.peek()?;
        if token.kind == kind {
            self.ahead = None;
            return Ok(Some(token));
        }
        Ok(None)
    }

    fn expect(&mut self, kind: TokenKind, shown: &str) -> Parsed<Token<'q>> {
        match self.take(kind)? {
            Some(token) => Ok(token),
            None => Err(unexpected(self.peek()?, shown)),
        }
    }

    fn whole(&mut self, path: &Arc<str>) -> Parsed<Expression> {
        let query = self.query(path, 0)?;
        self.expect(TokenKind::End, "an operator or a term")?;
        Ok(query)
    }

    fn query(&mut self, path: &Arc<str>, depth: usize) -> Parsed<Expression> {
        let mut clauses = vec![self.clause(false, path, depth)?];
        loop {
            let follows_and = match self.peek()?.kind {
                TokenKind::Close | TokenKind::End => break,
                TokenKind::And => true,
                _ => false,
            };
            if matches!(self.peek()?.kind, TokenKind::And | TokenKind::Or) {
                self.next()?;
            }
            clauses.push(self.clause(follows_and, path, depth)?);
        }
        Ok(match clauses.as_slice() {
            [only] if only.modifier == Modifier::None => match clauses.pop() {
                Some(clause) => clause.expression,
                None => Expression::Clauses(clauses),
            },
            _ => Expression::Clauses(clauses),
        })
    }

    fn clause(&mut self, follows_and: bool, path: &Arc<str>, depth: usize) -> Parsed<Clause> {
        let first = self.peek()?;
        self.clauses += 1;
        if self.clauses > CLAUSES_MAX {
            let message = format!("there are more than {CLAUSES_MAX} clauses");
            return Err(error_at(first, message));
        }
        let modifier = match first.kind {
            TokenKind::Plus => Modifier::Required,
            TokenKind::Minus | TokenKind::Not => Modifier::Prohibited,
            _ => Modifier::None,
        };
        if modifier != Modifier::None {
            self.next()?;
        }
        Ok(Clause {
            follows_and,
            modifier,
            expression: self.operand(path, depth)?,
        })
    }

    /// Parses a term or a group, with or without a field before it.
    fn operand(&mut self, path: &Arc<str>, depth: usize) -> Parsed<Expression> {
        let first = self.next()?;
        if !matches!(first.kind, TokenKind::Word | TokenKind::Star) {
            return self.operand_of(path, first, depth);
        }
        if self.take(TokenKind::Colon)?.is_none() {
            return self.operand_of(path, first, depth);
        }
        let path: Arc<str> = Arc::from(unescaped(first, first.text)?);
        if path.starts_with('$') {
            let message = format!("the field {} must not begin with \"$\"", quote(&path));
            return Err(error_at(first, message));
        }
        let operand = self.next()?;
        self.operand_of(&path, operand, depth)
    }

    fn operand_of(
        &mut self,
        path: &Arc<str>,
        first: Token<'q>,
        depth: usize,
    ) -> Parsed<Expression> {
        match first.kind {
            TokenKind::Open if depth >= DEPTH_MAX => {
                let message = format!("parentheses are nested more than {DEPTH_MAX} deep");
                Err(error_at(first, message))
            }
            TokenKind::Open => {
                let query = self.query(path, depth + 1)?;
                self.expect(TokenKind::Close, "\")\"")?;
                let boost = self.boost()?;
                Ok(boosted(query, boost))
            }
            TokenKind::RangeOpen => self.range(path, first),
            TokenKind::Quoted => {
                let suffix = self.suffix()?;
                let text = unescaped(first, inner(first.text))?;
                let slop = suffix.tilde.and_then(number_of).unwrap_or(0.0) as u32;
                Ok(field(path, FieldKind::Phrase { text, slop }, suffix.boost))
            }
            TokenKind::Word
            | TokenKind::Star
            | TokenKind::Prefix
            | TokenKind::Wildcard
            | TokenKind::Regex
            | TokenKind::BareSign => self.word(path, first),
            _ => Err(unexpected(first, "a term")),
        }
    }

    fn word(&mut self, path: &Arc<str>, token: Token<'q>) -> Parsed<Expression> {
        let suffix = self.suffix()?;
        let kind = match token.kind {
            TokenKind::Star if &**path == "*" => return Ok(boosted(Expression::All, suffix.boost)),
            TokenKind::Star | TokenKind::Wildcard if token.text.starts_with(['*', '?']) => {
                let message = "\"*\" and \"?\" must not be the first character of a term";
                return Err(error_at(token, message.to_owned()));
            }
            TokenKind::Wildcard => FieldKind::Wildcard(token.text.to_owned()),
            TokenKind::Prefix => {
                let prefix = token.text.strip_suffix('*').unwrap_or(token.text);
                FieldKind::Prefix(unescaped(token, prefix)?)
            }
            TokenKind::Regex => FieldKind::Regex(inner(token.text).to_owned()),
            TokenKind::BareSign => FieldKind::Word(token.text.to_owned()),
            _ => {
                let word = unescaped(token, token.text)?;
                match suffix.tilde {
                    None => FieldKind::Word(word),
                    Some(tilde) => {
                        let edits = edits(tilde, word.chars().count())?;
                        FieldKind::Fuzzy { word, edits }
                    }
                }
            }
        };
        Ok(field(path, kind, suffix.boost))
    }

    fn range(&mut self, path: &Arc<str>, open: Token<'q>) -> Parsed<Expression> {
        let lower = self.range_end()?;
        self.expect(TokenKind::RangeTo, "\"TO\"")?;
        let upper = self.range_end()?;
        let close = self.expect(TokenKind::RangeClose, "\"]\" or \"}\"")?;
        let bound = |end: Option<String>, is_included: bool| match end {
            None => Bound::Unbounded,
            Some(end) if is_included => Bound::Included(end),
            Some(end) => Bound::Excluded(end),
        };
        let kind = FieldKind::Range {
            lower: bound(lower, open.text == "["),
            upper: bound(upper, close.text == "]"),
        };
        let boost = self.boost()?;
        Ok(field(path, kind, boost))
    }

    /// Parses an end of a range. Returns `None` for `*`.
    fn range_end(&mut self) -> Parsed<Option<String>> {
        let token = self.next()?;
        match token.kind {
            TokenKind::RangeWord if token.text == "*" => Ok(None),
            TokenKind::RangeWord | TokenKind::RangeTo => unescaped(token, token.text).map(Some),
            TokenKind::RangeQuoted => unescaped(token, inner(token.text)).map(Some),
            _ => Err(unexpected(token, "an end of the range")),
        }
    }

    fn boost(&mut self) -> Parsed<Option<f32>> {
        if self.take(TokenKind::Caret)?.is_none() {
            return Ok(None);
        }
        let token = self.expect(TokenKind::Number, "a number")?;
        match token.text.parse::<f32>() {
            Ok(boost) if boost.is_finite() => Ok(Some(boost)),
            _ => Err(error_at(token, "the number is too large".to_owned())),
        }
    }

    fn suffix(&mut self) -> Parsed<Suffix<'q>> {
        let tilde = self.take(TokenKind::Tilde)?;
        let boost = self.boost()?;
        let tilde = match tilde {
            None if boost.is_some() => self.take(TokenKind::Tilde)?,
            tilde => tilde,
        };
        Ok(Suffix { boost, tilde })
    }
}

fn field(path: &Arc<str>, kind: FieldKind, boost: Option<f32>) -> Expression {
    let path = path.clone();
    boosted(Expression::Field { path, kind }, boost)
}

fn boosted(expression: Expression, boost: Option<f32>) -> Expression {
    match boost {
        Some(boost) => Expression::Boost(Box::new(expression), boost),
        None => expression,
    }
}

/// Returns the number after `~`.
fn number_of(tilde: Token<'_>) -> Option<f32> {
    tilde.text.strip_prefix('~')?.parse().ok()
}

/// Returns the edit distance that is allowed for a word: an integer, or a fraction of its letters.
fn edits(tilde: Token<'_>, letters: usize) -> Parsed<u8> {
    let most = f32::from(EDITS_MAX);
    let given = number_of(tilde).unwrap_or(most);
    if given >= 1.0 && given.fract() != 0.0 {
        let message = "the number of edits must be a whole number, or less than 1";
        return Err(error_at(tilde, message.to_owned()));
    }
    if given < 0.0 {
        let message = "the number of edits must not be negative";
        return Err(error_at(tilde, message.to_owned()));
    }
    let edits = match given {
        0.0 => 0.0,
        given if given >= 1.0 => given,
        fraction => (1.0 - fraction) * letters as f32,
    };
    Ok(edits.min(most) as u8)
}

/// Returns a token without its first and last character.
fn inner(text: &str) -> &str {
    let mut characters = text.chars();
    characters.next();
    characters.next_back();
    characters.as_str()
}

/// Removes backslashes before characters. `\u` with four digits becomes a character.
fn unescaped(token: Token<'_>, text: &str) -> Parsed<String> {
    let mut result = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        let escaped = match character {
            '\\' => characters.next(),
            other => {
                result.push(other);
                continue;
            }
        };
        match escaped {
            Some('u') => {
                let digits = characters.as_str().get(..4);
                let code = digits.filter(|digits| digits.bytes().all(|it| it.is_ascii_hexdigit()));
                let code = code.and_then(|digits| u32::from_str_radix(digits, 16).ok());
                let Some(decoded) = code.and_then(char::from_u32) else {
                    let message =
                        "\"\\u\" must be followed by four hexadecimal digits of a character";
                    return Err(error_at(token, message.to_owned()));
                };
                result.push(decoded);
                characters = characters.as_str().get(4..).unwrap_or_default().chars();
            }
            Some(other) => result.push(other),
            None => {
                let message = "the backslash is not followed by a character";
                return Err(error_at(token, message.to_owned()));
            }
        }
    }
    Ok(result)
}

fn error_at(token: Token<'_>, message: String) -> SyntaxError {
    SyntaxError {
        at: token.at,
        message,
    }
}

fn unexpected(token: Token<'_>, expected: &str) -> SyntaxError {
    let found = match token.kind {
        TokenKind::End => "the end".to_owned(),
        _ => quote(token.text),
    };
    error_at(token, format!("{expected} is expected, not {found}"))
}

/// Quotes a part of the query for messages.
fn quote(text: &str) -> String {
    match text.char_indices().nth(QUOTED_MAX) {
        Some((end, _)) => format!("{:?}…", text.get(..end).unwrap_or_default()),
        None => format!("{text:?}"),
    }
}
