//! Parses Lucene's regular expressions and wildcards into trees of `regex-syntax`.
//!
//! Source: the documentation of Lucene's `RegExp` and `WildcardQuery`.

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, Hir, Repetition};

use super::error::PatternError;

/// The greatest depth of groups within each other.
const DEPTH_MAX: usize = 100;
/// The greatest number of repetitions in `{n,m}`.
const REPETITIONS_MAX: u32 = 1_000;

/// Returns the tree of a wildcard.
pub(super) fn wildcard(pattern: &str) -> Hir {
    let mut parts = Vec::new();
    let mut characters = pattern.chars().peekable();
    while let Some(character) = characters.next() {
        parts.push(match character {
            // Several asterisks match the same as one.
            '*' if characters.peek() == Some(&'*') => continue,
            '*' => repeat(any_character(), 0, None),
            '?' => any_character(),
            // A backslash at the end is a literal.
            '\\' => literal(characters.next().unwrap_or('\\')),
            other => literal(other),
        });
    }
    Hir::concat(parts)
}

/// Returns the tree of a regular expression.
pub(super) fn parse(pattern: &str) -> Result<Hir, PatternError> {
    let mut parser = Parser {
        pattern,
        at: 0,
        depth: 0,
    };
    let hir = parser.alternation()?;
    match parser.peek() {
        Some(_) => Err(parser.error("a closing parenthesis without an opening one")),
        None => Ok(hir),
    }
}

fn literal(character: char) -> Hir {
    Hir::literal(character.encode_utf8(&mut [0; 4]).as_bytes())
}

fn any_character() -> Hir {
    class(ClassUnicode::new([ClassUnicodeRange::new('\0', char::MAX)]))
}

fn class(class: ClassUnicode) -> Hir {
    Hir::class(Class::Unicode(class))
}

fn repeat(hir: Hir, min: u32, max: Option<u32>) -> Hir {
    Hir::repetition(Repetition {
        min,
        max,
        greedy: true,
        sub: Box::new(hir),
    })
}

/// Returns the class of a letter after a backslash.
fn named_class(letter: char) -> Option<ClassUnicode> {
    let ranges: &[(char, char)] = match letter.to_ascii_lowercase() {
        'd' => &[('0', '9')],
        's' => &[('\t', '\n'), ('\r', '\r'), (' ', ' ')],
        'w' => &[('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')],
        _ => return None,
    };
    let ranges = ranges
        .iter()
        .map(|(from, to)| ClassUnicodeRange::new(*from, *to));
    let mut class = ClassUnicode::new(ranges);
    if letter.is_ascii_uppercase() {
        class.negate();
    }
    Some(class)
}

struct Parser<'p> {
    pattern: &'p str,
    at: usize,
    depth: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<char> {
        self.pattern.get(self.at..)?.chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let character = self.peek()?;
        self.at += character.len_utf8();
        Some(character)
    }

    fn next_if(&mut self, expected: char) -> bool {
        let is_next = self.peek() == Some(expected);
        if is_next {
            self.at += expected.len_utf8();
        }
        is_next
    }

    fn error(&self, message: &'static str) -> PatternError {
        PatternError::Syntax {
            message,
            at: self.at,
        }
    }

    fn alternation(&mut self) -> Result<Hir, PatternError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.error("more than 100 groups within each other"));
        }
        let mut branches = vec![self.concatenation()?];
        while self.next_if('|') {
            branches.push(self.concatenation()?);
        }
        self.depth -= 1;
        Ok(Hir::alternation(branches))
    }

    fn concatenation(&mut self) -> Result<Hir, PatternError> {
        let mut parts = Vec::new();
        while !matches!(self.peek(), None | Some('|' | ')')) {
            parts.push(self.repetition()?);
        }
        Ok(Hir::concat(parts))
    }

    fn repetition(&mut self) -> Result<Hir, PatternError> {
        let mut hir = self.atom()?;
        loop {
            let (min, max) = match self.peek() {
                Some('?') => (0, Some(1)),
                Some('*') => (0, None),
                Some('+') => (1, None),
                Some('{') => {
                    self.next();
                    let (min, max) = self.counts()?;
                    hir = repeat(hir, min, max);
                    continue;
                }
                _ => return Ok(hir),
            };
            self.next();
            hir = repeat(hir, min, max);
        }
    }

    /// Reads `n}`, `n,}` or `n,m}`.
    fn counts(&mut self) -> Result<(u32, Option<u32>), PatternError> {
        let min = self.number()?;
        let max = if !self.next_if(',') {
            Some(min)
        } else if self.peek() == Some('}') {
            None
        } else {
            Some(self.number()?)
        };
        if !self.next_if('}') {
            return Err(self.error("a closing brace is missing"));
        }
        if max.is_some_and(|max| max < min) {
            return Err(self.error("a repetition with the greater number first"));
        }
        Ok((min, max))
    }

    fn number(&mut self) -> Result<u32, PatternError> {
        let start = self.at;
        while self.peek().is_some_and(|digit| digit.is_ascii_digit()) {
            self.next();
        }
        let digits = self.pattern.get(start..self.at).unwrap_or_default();
        match digits.parse() {
            Ok(number) if number <= REPETITIONS_MAX => Ok(number),
            Ok(_) => Err(self.error("more than 1000 repetitions")),
            Err(_) => Err(self.error("a number is missing")),
        }
    }

    fn atom(&mut self) -> Result<Hir, PatternError> {
        let Some(character) = self.next() else {
            return Ok(Hir::empty());
        };
        match character {
            '.' => Ok(any_character()),
            '@' => Ok(repeat(any_character(), 0, None)),
            '#' => Ok(Hir::empty()),
            '(' => {
                let hir = self.alternation()?;
                if !self.next_if(')') {
                    return Err(self.error("a closing parenthesis is missing"));
                }
                Ok(hir)
            }
            '[' => self.class(),
            '"' => self.quoted(),
            '\\' => match self.next() {
                Some(letter) => Ok(named_class(letter).map_or_else(|| literal(letter), class)),
                None => Err(self.error("a backslash at the end")),
            },
            '?' | '*' | '+' | '{' => Err(self.error("a repetition of nothing")),
            '~' | '&' | '<' => Err(self.error("an operator that is not supported: ~, & or <")),
            other => Ok(literal(other)),
        }
    }

    fn quoted(&mut self) -> Result<Hir, PatternError> {
        let start = self.at;
        loop {
            let end = self.at;
            match self.next() {
                Some('"') => {
                    let text = self.pattern.get(start..end).unwrap_or_default();
                    return Ok(Hir::literal(text.as_bytes()));
                }
                Some(_) => {}
                None => return Err(self.error("a closing quotation mark is missing")),
            }
        }
    }

    fn class(&mut self) -> Result<Hir, PatternError> {
        let is_negated = self.next_if('^');
        let mut found = ClassUnicode::empty();
        let mut is_first = true;
        while is_first || self.peek() != Some(']') {
            is_first = false;
            let (from, named) = self.class_member()?;
            if let Some(named) = named {
                found.union(&named);
                continue;
            }
            let mut to = from;
            let rest = self.pattern.get(self.at..).unwrap_or_default();
            if rest.starts_with('-') && !rest.starts_with("-]") {
                self.next();
                to = self.class_member()?.0;
                if to < from {
                    return Err(self.error("a range with the greater character first"));
                }
            }
            found.push(ClassUnicodeRange::new(from, to));
        }
        self.next();
        if is_negated {
            found.negate();
        }
        Ok(class(found))
    }

    fn class_member(&mut self) -> Result<(char, Option<ClassUnicode>), PatternError> {
        let character = self.next();
        let missing = || self.error("a closing bracket is missing");
        match character.ok_or_else(missing)? {
            '\\' => {
                let letter = self.next();
                let letter = letter.ok_or_else(|| self.error("a backslash at the end"))?;
                Ok((letter, named_class(letter)))
            }
            other => Ok((other, None)),
        }
    }
}
