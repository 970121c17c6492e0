//! The parser of values.

use std::collections::HashSet;

use windrow_document::{ArrayBuf, ArrayBuilder, DocumentBuf, DocumentBuilder, Value};

use super::constructors::construct;
use super::extended::read_extended;
use super::scan::{Scanner, SyntaxError};
use crate::text_reader::next_item;

/// The maximum nesting of documents and arrays. Servers accept less.
const DEPTH_MAX: usize = 150;

/// Parses a text that consists of one value.
///
/// # Errors
/// Fails with the position of the first syntax error.
pub fn parse_value(text: &str) -> Result<Value, SyntaxError> {
    let mut parser = Parser::new(text);
    let value = parser.parse_value()?;
    parser.expect_end()?;
    Ok(value)
}

/// Parses a text that consists of one document. An empty text is an empty document.
///
/// # Errors
/// Fails with the position of the first syntax error.
pub fn parse_document(text: &str) -> Result<DocumentBuf, SyntaxError> {
    if text.trim().is_empty() {
        return Ok(DocumentBuf::new());
    }
    match parse_value(text)? {
        Value::Document(document) => Ok(document),
        _ => Err(Scanner::new(text).error("a document { … } is expected")),
    }
}

/// Parses a text that consists of one array.
///
/// # Errors
/// Fails with the position of the first syntax error.
pub fn parse_array(text: &str) -> Result<ArrayBuf, SyntaxError> {
    match parse_value(text)? {
        Value::Array(array) => Ok(array),
        _ => Err(Scanner::new(text).error("an array [ … ] is expected")),
    }
}

/// Reads the documents of a text: an array, or documents separated by whitespace or commas.
pub struct DocumentReader<'t> {
    parser: Parser<'t>,
    is_array: bool,
    is_over: bool,
}

impl<'t> DocumentReader<'t> {
    /// Reads from the start of a text.
    pub fn new(text: &'t str) -> DocumentReader<'t> {
        let mut parser = Parser::new(text);
        parser.scanner.skip_blanks();
        let is_array = parser.scanner.take('[');
        DocumentReader {
            parser,
            is_array,
            is_over: false,
        }
    }

    /// Reads a text that begins after a document of a larger text.
    pub fn resume(text: &'t str, is_array: bool) -> DocumentReader<'t> {
        DocumentReader {
            parser: Parser::new(text),
            is_array,
            is_over: false,
        }
    }

    /// Returns `true` if the documents are in an array.
    pub fn is_array(&self) -> bool {
        self.is_array
    }

    /// Returns the offset of the next document in bytes.
    pub fn offset(&self) -> usize {
        self.parser.scanner.offset()
    }

    /// Returns `true` if the parser has reached the end of the text, so a longer text may parse
    /// differently.
    pub fn has_seen_end(&self) -> bool {
        self.parser.scanner.has_seen_end()
    }

    fn read(&mut self) -> Result<Option<DocumentBuf>, SyntaxError> {
        let scanner = &mut self.parser.scanner;
        scanner.skip_blanks();
        if self.is_array && scanner.take(']') {
            self.parser.expect_end()?;
            return Ok(None);
        }
        match scanner.peek() {
            None if self.is_array => return Err(scanner.error("the array has no end")),
            None => return Ok(None),
            Some('{') => {}
            Some(_) => return Err(scanner.error("a document { … } is expected")),
        }
        let start = scanner.offset();
        let value = self.parser.parse_value()?;
        let scanner = &mut self.parser.scanner;
        let Value::Document(document) = value else {
            return Err(scanner.error_at(start, "a document { … } is expected"));
        };
        scanner.skip_blanks();
        let has_comma = scanner.take(',');
        if self.is_array && !has_comma && scanner.peek() != Some(']') {
            return Err(scanner.error("\",\" or \"]\" is expected"));
        }
        Ok(Some(document))
    }
}

impl Iterator for DocumentReader<'_> {
    type Item = Result<DocumentBuf, SyntaxError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        next_item(self.read(), &mut self.is_over)
    }
}

struct Parser<'t> {
    scanner: Scanner<'t>,
    depth: usize,
}

impl<'t> Parser<'t> {
    fn new(text: &'t str) -> Parser<'t> {
        Parser {
            scanner: Scanner::new(text),
            depth: 0,
        }
    }

    /// Fails unless the parser is at the end of the text.
    fn expect_end(&mut self) -> Result<(), SyntaxError> {
        self.scanner.skip_blanks();
        self.scanner.take(';');
        self.scanner.skip_blanks();
        match self.scanner.peek() {
            None => Ok(()),
            Some(other) => Err(self.scanner.error(format!("\"{other}\" is not expected"))),
        }
    }

    fn parse_value(&mut self) -> Result<Value, SyntaxError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            let message = format!("more than {DEPTH_MAX} documents and arrays are nested");
            return Err(self.scanner.error(message));
        }
        self.scanner.skip_blanks();
        let value = match self.scanner.peek() {
            Some('{') => self.parse_document(),
            Some('[') => self.parse_array(),
            Some('"' | '\'' | '`') => self.scanner.scan_string().map(Value::String),
            Some('-' | '+' | '.' | '0'..='9') => self.scanner.scan_number(),
            Some('/') => {
                self.scanner.next();
                self.scanner.scan_regex()
            }
            Some(first) if first.is_alphabetic() || first == '_' || first == '$' => {
                self.parse_word()
            }
            Some(other) => Err(self.scanner.error(format!("\"{other}\" is no value"))),
            None => Err(self.scanner.error("a value is missing")),
        };
        self.depth -= 1;
        value
    }

    /// Parses a document, and converts Extended JSON to the value that it represents.
    fn parse_document(&mut self) -> Result<Value, SyntaxError> {
        let start = self.scanner.offset();
        self.scanner.next();
        let mut builder = DocumentBuilder::new();
        let mut names = HashSet::new();
        loop {
            self.scanner.skip_blanks();
            if self.scanner.take('}') {
                break;
            }
            let start = self.scanner.offset();
            let name = self.parse_field_name()?;
            self.scanner.skip_blanks();
            if !self.scanner.take(':') {
                let message = format!("\":\" is expected behind the field \"{name}\"");
                return Err(self.scanner.error(message));
            }
            let value = self.parse_value()?;
            builder.append(&name, value.as_ref());
            if names.contains(&name) {
                let message = format!("the field \"{name}\" is there twice");
                return Err(self.scanner.error_at(start, message));
            }
            names.insert(name);
            self.parse_comma('}')?;
        }
        read_extended(builder.finish()).map_err(|message| self.scanner.error_at(start, message))
    }

    fn parse_field_name(&mut self) -> Result<String, SyntaxError> {
        let start = self.scanner.offset();
        let name = match self.scanner.peek() {
            Some('"' | '\'') => self.scanner.scan_string()?,
            _ => self.scanner.scan_name().to_owned(),
        };
        if self.scanner.offset() == start {
            return Err(self.scanner.error("the name of a field is expected"));
        }
        if name.contains('\0') {
            Err(self
                .scanner
                .error_at(start, "a name cannot have a zero byte"))
        } else {
            Ok(name)
        }
    }

    fn parse_array(&mut self) -> Result<Value, SyntaxError> {
        self.scanner.next();
        let mut array = ArrayBuilder::new();
        loop {
            self.scanner.skip_blanks();
            if self.scanner.take(']') {
                return Ok(Value::Array(array.finish()));
            }
            array.push(self.parse_value()?.as_ref());
            self.parse_comma(']')?;
        }
    }

    /// Parses a comma, unless the closing bracket follows.
    fn parse_comma(&mut self, end: char) -> Result<(), SyntaxError> {
        self.scanner.skip_blanks();
        if self.scanner.take(',') || self.scanner.peek() == Some(end) {
            return Ok(());
        }
        Err(self
            .scanner
            .error(format!("\",\" or \"{end}\" is expected")))
    }

    /// Parses a constant or a constructor call.
    fn parse_word(&mut self) -> Result<Value, SyntaxError> {
        let start = self.scanner.offset();
        let mut name = self.scanner.scan_name();
        if name == "new" {
            self.scanner.skip_blanks();
            name = self.scanner.scan_name();
        }
        // `Decimal128.fromString("1")`
        if self.scanner.take('.') {
            self.scanner.scan_name();
        }
        self.scanner.skip_blanks();
        if !self.scanner.take('(') {
            return constant(name).ok_or_else(|| {
                let message = format!("\"{name}\" is unknown; strings need quotes");
                self.scanner.error_at(start, message)
            });
        }
        let mut arguments = Vec::new();
        loop {
            self.scanner.skip_blanks();
            if self.scanner.take(')') {
                break;
            }
            arguments.push(self.parse_value()?);
            self.parse_comma(')')?;
        }
        construct(name, &arguments).map_err(|message| self.scanner.error_at(start, message))
    }
}

fn constant(name: &str) -> Option<Value> {
    Some(match name {
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        "null" => Value::Null,
        "undefined" => Value::Undefined,
        "NaN" => Value::Double(f64::NAN),
        "Infinity" => Value::Double(f64::INFINITY),
        "MinKey" => Value::MinKey,
        "MaxKey" => Value::MaxKey,
        _ => return None,
    })
}
