//! The text of a filter: JSON as mongod reads it in `auditLog.filter`. Names need no quotes,
//! strings can have single ones, and `/pattern/options` is a regular expression.
//!
//! ```text
//! { atype: { $in: ["createCollection", "dropCollection"] }, 'param.ns': /^shop\./ }
//! ```

use windrow_document::{ArrayBuf, DocumentBuf, Value};

/// Maximum depth of documents and arrays within each other.
const DEPTH_MAX: usize = 100;

/// Parses the text of a document. Fails with the reason and its place in the text.
pub fn parse(text: &str) -> Result<DocumentBuf, String> {
    let mut parser = Parser { text, at: 0 };
    let document = parser.document(0)?;
    parser.skip_space();
    if parser.rest().is_empty() {
        Ok(document)
    } else {
        parser.fail("there is text behind the document")
    }
}

struct Parser<'a> {
    text: &'a str,
    /// The place of the next character, in bytes.
    at: usize,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    fn skip_space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    /// Takes a character, after white space, if it is the next one.
    fn accepts(&mut self, expected: char) -> bool {
        self.skip_space();
        let is_next = self.peek() == Some(expected);
        if is_next {
            self.at += expected.len_utf8();
        }
        is_next
    }

    fn expect(&mut self, expected: char) -> Result<(), String> {
        if self.accepts(expected) {
            return Ok(());
        }
        self.fail(&format!("'{expected}' is missing"))
    }

    fn fail<T>(&self, reason: &str) -> Result<T, String> {
        let place = self
            .text
            .get(..self.at)
            .map_or(0, |text| text.chars().count());
        Err(format!("{reason} (at character {})", place + 1))
    }

    fn document(&mut self, depth: usize) -> Result<DocumentBuf, String> {
        self.expect('{')?;
        let mut document = DocumentBuf::new();
        while !self.accepts('}') {
            let name = self.name()?;
            self.expect(':')?;
            document.push(&name, self.value(depth)?);
            if !self.accepts(',') {
                self.expect('}')?;
                break;
            }
        }
        Ok(document)
    }

    fn array(&mut self, depth: usize) -> Result<ArrayBuf, String> {
        self.expect('[')?;
        let mut values = Vec::new();
        while !self.accepts(']') {
            values.push(self.value(depth)?);
            if !self.accepts(',') {
                self.expect(']')?;
                break;
            }
        }
        Ok(values.into_iter().collect())
    }

    fn name(&mut self) -> Result<String, String> {
        self.skip_space();
        if matches!(self.peek(), Some('"' | '\'')) {
            return self.string();
        }
        let word = self.take_while(|letter| letter.is_alphanumeric() || "_$.".contains(letter));
        if word.is_empty() {
            return self.fail("a name is missing");
        }
        Ok(word.to_owned())
    }

    fn take_while(&mut self, is_part: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|letter| !is_part(letter)).unwrap_or(rest.len());
        self.at += end;
        rest.get(..end).unwrap_or_default()
    }

    fn value(&mut self, depth: usize) -> Result<Value, String> {
        if depth >= DEPTH_MAX {
            return self.fail(&format!(
                "the document is nested more than {DEPTH_MAX} times"
            ));
        }
        self.skip_space();
        match self.peek() {
            Some('{') => Ok(self.document(depth + 1)?.into()),
            Some('[') => Ok(Value::Array(self.array(depth + 1)?)),
            Some('"' | '\'') => Ok(self.string()?.into()),
            Some('/') => self.regex(),
            _ => self.word(),
        }
    }

    fn word(&mut self) -> Result<Value, String> {
        let start = self.at;
        let word = self.take_while(|letter| letter.is_alphanumeric() || "+-._".contains(letter));
        let number = match (
            word.parse::<i32>(),
            word.parse::<i64>(),
            word.parse::<f64>(),
        ) {
            (Ok(number), _, _) => Some(Value::from(number)),
            (_, Ok(number), _) => Some(Value::from(number)),
            // "inf" and "nan" are numbers only for Rust.
            (_, _, Ok(number)) if number.is_finite() => Some(Value::from(number)),
            _ => None,
        };
        match (word, number) {
            ("true", _) => Ok(true.into()),
            ("false", _) => Ok(false.into()),
            ("null", _) => Ok(Value::Null),
            (_, Some(number)) => Ok(number),
            _ => {
                self.at = start;
                self.fail("a value is missing")
            }
        }
    }

    fn string(&mut self) -> Result<String, String> {
        let quote = self.next();
        let mut text = String::new();
        loop {
            match self.next() {
                None => return self.fail("a string has no end"),
                letter if letter == quote => return Ok(text),
                Some('\\') => text.push(self.escaped()?),
                Some(letter) => text.push(letter),
            }
        }
    }

    fn escaped(&mut self) -> Result<char, String> {
        match self.next() {
            Some('n') => Ok('\n'),
            Some('t') => Ok('\t'),
            Some('r') => Ok('\r'),
            Some('b') => Ok('\u{8}'),
            Some('f') => Ok('\u{c}'),
            Some('u') => {
                let digits = self.rest().get(..4).unwrap_or_default();
                let code = u32::from_str_radix(digits, 16)
                    .ok()
                    .and_then(char::from_u32);
                match code {
                    Some(letter) => {
                        self.at += 4;
                        Ok(letter)
                    }
                    None => self.fail("\\u needs the four digits of a character"),
                }
            }
            Some(letter) if "\"'\\/".contains(letter) => Ok(letter),
            _ => self.fail("an unknown escape in a string"),
        }
    }

    fn regex(&mut self) -> Result<Value, String> {
        self.next();
        let mut pattern = String::new();
        loop {
            match self.next() {
                None => return self.fail("a regular expression has no end"),
                Some('/') => break,
                // Other escapes belong to the pattern.
                Some('\\') if self.peek() == Some('/') => pattern.extend(self.next()),
                Some('\\') => {
                    pattern.push('\\');
                    pattern.extend(self.next());
                }
                Some(letter) => pattern.push(letter),
            }
        }
        let options = self.take_while(|letter| letter.is_ascii_alphabetic());
        Ok(Value::Regex {
            pattern,
            options: options.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<&str, &str>) {
        match (parse(text).map(|document| document.to_string()), expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{text}"),
            (Err(found), Err(expected)) => assert!(found.contains(expected), "{text}: {found}"),
            (found, _) => panic!("{text}: {found:?}"),
        }
    }

    #[test]
    fn names_need_no_quotes() {
        check("{}", Ok("{}"));
        let shown = r#"{"atype":{"$in":["dropUser","dropRole"]},"param.db":"a"}"#;
        check(
            "{ atype: { $in: ['dropUser', \"dropRole\",] }, param.db: 'a', }",
            Ok(shown),
        );
        check(shown, Ok(shown));
        check(
            r#"{a:[1,-2.5,3000000000,true,false,null]}"#,
            Ok(r#"{"a":[1,-2.5,3000000000,true,false,null]}"#),
        );
        check(
            r#"{a: 'it\'s', b: "\u00e4\n/\\"}"#,
            Ok(r#"{"a":"it's","b":"ä\n/\\"}"#),
        );
        check(
            r"{a: /^shop\.\/x/i}",
            Ok(r#"{"a":{"$regularExpression":{"pattern":"^shop\\./x","options":"i"}}}"#),
        );
    }

    #[test]
    fn errors_name_their_place() {
        check("", Err("'{' is missing (at character 1)"));
        check("{a}", Err("':' is missing (at character 3)"));
        check("{ä: }", Err("a value is missing (at character 5)"));
        check("{a: b}", Err("a value is missing"));
        check("{a: NaN}", Err("a value is missing"));
        check("{a: 1", Err("'}' is missing"));
        check("{: 1}", Err("a name is missing"));
        check("{a: 'x}", Err("no end"));
        check("{a: /x}", Err("no end"));
        check(r"{a: '\x'}", Err("unknown escape"));
        check(r"{a: '\u12'}", Err("four digits"));
        check("{} {}", Err("behind the document"));
        check(
            &format!("{{a: {}", "[".repeat(10_000)),
            Err("nested more than 100"),
        );
    }
}
