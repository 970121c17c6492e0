//! The scanner: whitespace, comments, strings, names and numbers.

use std::cell::Cell;
use std::fmt;

use windrow_document::Value;

/// A syntax error with its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// The message, without the position.
    pub message: String,
    /// The line, counted from 1.
    pub line: usize,
    /// The character in the line, counted from 1.
    pub column: usize,
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SyntaxError {
            message,
            line,
            column,
        } = self;
        write!(formatter, "{message}, at line {line}, column {column}")
    }
}

/// A text with a current position.
#[derive(Clone, Debug)]
pub struct Scanner<'t> {
    text: &'t str,
    rest: &'t str,
    /// A method has looked beyond the end of the text.
    has_seen_end: Cell<bool>,
}

impl<'t> Scanner<'t> {
    /// Scans from the start of a text.
    pub fn new(text: &'t str) -> Scanner<'t> {
        Scanner {
            text,
            rest: text,
            has_seen_end: Cell::new(false),
        }
    }

    /// Returns `true` if a method has looked beyond the end of the text.
    pub fn has_seen_end(&self) -> bool {
        self.has_seen_end.get()
    }

    /// Returns the position in bytes.
    pub fn offset(&self) -> usize {
        self.text.len() - self.rest.len()
    }

    /// Returns an error at the current position.
    pub fn error(&self, message: impl Into<String>) -> SyntaxError {
        self.error_at(self.offset(), message)
    }

    /// Returns an error at a position in bytes.
    pub fn error_at(&self, offset: usize, message: impl Into<String>) -> SyntaxError {
        let before = self.text.get(..offset).unwrap_or(self.text);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        SyntaxError {
            message: message.into(),
            line: before.matches('\n').count() + 1,
            column: before.get(line_start..).unwrap_or_default().chars().count() + 1,
        }
    }

    /// Returns the next character without consuming it.
    pub fn peek(&self) -> Option<char> {
        self.see(1);
        self.rest.chars().next()
    }

    /// Records that the next `bytes` bytes are examined.
    fn see(&self, bytes: usize) {
        if self.rest.len() < bytes {
            self.has_seen_end.set(true);
        }
    }

    fn begins_with(&self, expected: &str) -> bool {
        self.see(expected.len());
        self.rest.starts_with(expected)
    }

    /// Consumes and returns the next character.
    pub fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.advance(next.len_utf8());
        Some(next)
    }

    /// Consumes the next character if it is this one.
    pub fn take(&mut self, expected: char) -> bool {
        let is_next = self.peek() == Some(expected);
        if is_next {
            self.advance(expected.len_utf8());
        }
        is_next
    }

    fn advance(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or_default();
    }

    /// Consumes and returns the characters for which `is_kind` is true.
    pub fn take_while(&mut self, is_kind: impl Fn(char) -> bool) -> &'t str {
        let end = self.rest.find(|it| !is_kind(it)).unwrap_or(self.rest.len());
        self.see(end + 1);
        let taken = self.rest.get(..end).unwrap_or_default();
        self.advance(end);
        taken
    }

    /// Consumes whitespace and comments.
    pub fn skip_blanks(&mut self) {
        loop {
            self.take_while(|it| it.is_whitespace() || it == '\u{feff}');
            if self.begins_with("//") {
                self.take_while(|it| it != '\n');
            } else if let Some(comment) = self.rest.strip_prefix("/*") {
                let end = comment.find("*/").map_or(usize::MAX, |at| at + 4);
                self.see(end);
                let end = end.min(self.rest.len());
                self.advance(end);
            } else {
                return;
            }
        }
    }

    /// Consumes an identifier: the name of a field or of a constructor.
    pub fn scan_name(&mut self) -> &'t str {
        self.take_while(|it| it.is_alphanumeric() || it == '_' || it == '$')
    }

    /// Consumes a string in single or double quotes.
    pub fn scan_string(&mut self) -> Result<String, SyntaxError> {
        let start = self.offset();
        let quote = self.next();
        let mut text = String::new();
        loop {
            let plain = self.take_while(|it| Some(it) != quote && it != '\\');
            text.push_str(plain);
            match self.next() {
                Some('\\') => self.scan_escape(&mut text)?,
                Some(_) => return Ok(text),
                None => return Err(self.error_at(start, "the string has no end")),
            }
        }
    }

    /// Consumes an escape sequence after its backslash.
    fn scan_escape(&mut self, text: &mut String) -> Result<(), SyntaxError> {
        let character = match self.next() {
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('v') => '\u{b}',
            Some('0') => '\0',
            Some('x') => self.scan_code(2)?.into_char(self)?,
            Some('u') => self.scan_unicode()?,
            // A backslash before a line break joins the lines.
            Some('\n') => return Ok(()),
            Some(other) => other,
            None => return Err(self.error("the string has no end")),
        };
        text.push(character);
        Ok(())
    }

    /// Consumes the digits of a `\u` escape: `XXXX` or `{X…}`, with the second half of a surrogate
    /// pair.
    fn scan_unicode(&mut self) -> Result<char, SyntaxError> {
        if self.take('{') {
            let digits = self.take_while(|it| it.is_ascii_hexdigit());
            let code = u32::from_str_radix(digits, 16)
                .ok()
                .and_then(char::from_u32);
            let found = code.filter(|_| self.take('}'));
            return found.ok_or_else(|| self.error("\\u{…} is no character"));
        }
        let first = self.scan_code(4)?;
        if !(0xd800..0xdc00).contains(&first.0) {
            return first.into_char(self);
        }
        let message = "half of a surrogate pair is missing";
        if !self.begins_with("\\u") {
            return Err(self.error(message));
        }
        self.advance(2);
        let second = self.scan_code(4)?;
        if (0xdc00..0xe000).contains(&second.0) {
            Code(0x10000 + ((first.0 - 0xd800) << 10) + (second.0 - 0xdc00)).into_char(self)
        } else {
            Err(self.error(message))
        }
    }

    fn scan_code(&mut self, digits: usize) -> Result<Code, SyntaxError> {
        self.see(digits);
        let code = self.rest.get(..digits);
        let code = code.filter(|it| it.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let code = code.and_then(|it| u32::from_str_radix(it, 16).ok());
        let code = code.ok_or_else(|| self.error("hexadecimal digits are missing"))?;
        self.advance(digits);
        Ok(Code(code))
    }

    /// Consumes a number. Integers become int or long, others double.
    pub fn scan_number(&mut self) -> Result<Value, SyntaxError> {
        let start = self.offset();
        let is_negative = self.take('-');
        if !is_negative {
            self.take('+');
        }
        let sign = if is_negative { "-" } else { "" };
        if self.begins_with("Infinity") {
            self.advance("Infinity".len());
            let sign = if is_negative { -1.0 } else { 1.0 };
            return Ok(Value::Double(f64::INFINITY * sign));
        }
        let is_part = |it: char| it.is_ascii_alphanumeric() || matches!(it, '.' | '_');
        let mut digits = self.take_while(is_part).to_owned();
        if digits.ends_with(['e', 'E']) && matches!(self.peek(), Some('+' | '-')) {
            digits.extend(self.next());
            digits.push_str(self.take_while(is_part));
        }
        let invalid = || self.error_at(start, format!("\"{sign}{digits}\" is no number"));
        if let Some(hex) = digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
            let number = i64::from_str_radix(&format!("{sign}{hex}"), 16);
            return number.map(whole).map_err(|_| invalid());
        }
        let begins = digits.starts_with(|it: char| it.is_ascii_digit() || it == '.');
        let has_digit = digits.contains(|it: char| it.is_ascii_digit());
        if !begins || !has_digit {
            return Err(invalid());
        }
        let digits = format!("{sign}{digits}");
        if let Ok(number) = digits.parse::<i64>() {
            return Ok(whole(number));
        }
        digits.parse().map(Value::Double).map_err(|_| invalid())
    }

    /// Consumes a regular expression after its first slash: `pattern/options`.
    pub fn scan_regex(&mut self) -> Result<Value, SyntaxError> {
        let start = self.offset();
        let mut pattern = String::new();
        let mut in_class = false;
        loop {
            let missing = "the regular expression has no end";
            match self.next() {
                None | Some('\n') => return Err(self.error_at(start, missing)),
                Some('\\') => {
                    let escaped = self.next().filter(|it| *it != '\n');
                    let escaped = escaped.ok_or_else(|| self.error_at(start, missing))?;
                    if escaped != '/' {
                        pattern.push('\\');
                    }
                    pattern.push(escaped);
                }
                Some('/') if !in_class => break,
                Some(other) => {
                    in_class = (in_class || other == '[') && other != ']';
                    pattern.push(other);
                }
            }
        }
        let options = self.take_while(|it| it.is_ascii_alphabetic());
        if pattern.contains('\0') {
            return Err(self.error_at(start, "a regular expression cannot have a zero byte"));
        }
        let mut options: Vec<char> = options.chars().collect();
        options.sort_unstable();
        Ok(Value::Regex {
            pattern,
            options: options.into_iter().collect(),
        })
    }
}

/// A code point, or one half of a surrogate pair.
struct Code(u32);

impl Code {
    fn into_char(self, scanner: &Scanner<'_>) -> Result<char, SyntaxError> {
        char::from_u32(self.0).ok_or_else(|| scanner.error("half of a surrogate pair is missing"))
    }
}

/// Returns an integer as int, or as long if it does not fit.
fn whole(number: i64) -> Value {
    i32::try_from(number).map_or(Value::Int64(number), Value::Int32)
}
