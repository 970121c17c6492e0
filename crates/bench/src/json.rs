//! Parses commands written as JSON into BSON, so that tables of queries look as in MongoDB's
//! manual. Integers become int32 if they fit, otherwise int64; other numbers become doubles. The
//! input consists of constants of the workloads.

use crate::bson::{self, Writer};
use crate::error::BenchError;

/// Parses a document.
pub fn document(text: &str) -> Result<Vec<u8>, BenchError> {
    let mut reader = Reader { text, at: 0 };
    let mut failure = None;
    let bytes = bson::build_document(|out| failure = reader.fields(out).err());
    reader.space();
    match failure {
        None if reader.at == text.len() => Ok(bytes),
        None => Err(reader.error("the end")),
        Some(error) => Err(error),
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn error(&self, expected: &str) -> BenchError {
        let near: String = self.rest().chars().take(20).collect();
        BenchError::Usage(format!("a command: {expected} is missing before {near:?}"))
    }

    fn space(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    /// Skips `token` if it comes next.
    fn skip(&mut self, token: &str) -> bool {
        self.space();
        let found = self.rest().starts_with(token);
        self.at += if found { token.len() } else { 0 };
        found
    }

    fn expect(&mut self, token: &str) -> Result<(), BenchError> {
        if self.skip(token) {
            Ok(())
        } else {
            Err(self.error(token))
        }
    }

    fn fields(&mut self, out: &mut Writer) -> Result<(), BenchError> {
        self.expect("{")?;
        if self.skip("}") {
            return Ok(());
        }
        loop {
            let name = self.string()?;
            self.expect(":")?;
            self.value(&name, out)?;
            if !self.skip(",") {
                return self.expect("}");
            }
        }
    }

    fn elements(&mut self, out: &mut Writer) -> Result<(), BenchError> {
        self.expect("[")?;
        if self.skip("]") {
            return Ok(());
        }
        for place in 0.. {
            self.value(&place.to_string(), out)?;
            if !self.skip(",") {
                break;
            }
        }
        self.expect("]")
    }

    fn value(&mut self, name: &str, out: &mut Writer) -> Result<(), BenchError> {
        self.space();
        let mut done = Ok(());
        match self.rest().bytes().next() {
            Some(b'{') => out.document(name, |out| done = self.fields(out)),
            Some(b'[') => out.array(name, |out| done = self.elements(out)),
            Some(b'"') => out.string(name, &self.string()?),
            _ => done = self.word(name, out),
        }
        done
    }

    /// Parses a string. `\` escapes a single character.
    fn string(&mut self) -> Result<String, BenchError> {
        self.expect("\"")?;
        let mut found = String::new();
        let mut letters = self.rest().char_indices();
        while let Some((at, letter)) = letters.next() {
            match letter {
                '"' => {
                    self.at += at + 1;
                    return Ok(found);
                }
                '\\' => found.extend(letters.next().map(|(_, letter)| letter)),
                letter => found.push(letter),
            }
        }
        Err(self.error("the end of a string"))
    }

    fn word(&mut self, name: &str, out: &mut Writer) -> Result<(), BenchError> {
        let rest = self.rest();
        let end = rest.find([',', '}', ']', ' ', '\n']).unwrap_or(rest.len());
        let word = &rest[..end];
        match word {
            "true" | "false" => out.boolean(name, word == "true"),
            "null" => out.null(name),
            _ => self.number(name, word, out)?,
        }
        self.at += end;
        Ok(())
    }

    fn number(&self, name: &str, word: &str, out: &mut Writer) -> Result<(), BenchError> {
        if let Ok(value) = word.parse::<i32>() {
            out.int32(name, value);
        } else if let Ok(value) = word.parse::<i64>() {
            out.int64(name, value);
        } else if let Ok(value) = word.parse::<f64>() {
            out.double(name, value);
        } else {
            return Err(self.error("a value"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_becomes_bson() {
        let check = |text: &str, fill: fn(&mut Writer)| {
            assert_eq!(
                document(text).unwrap(),
                bson::build_document(fill),
                "{text}"
            );
        };
        check("{}", |_| {});
        check(r#" {"a": 1, "b": -2.5,"c":5000000000} "#, |writer| {
            writer.int32("a", 1);
            writer.double("b", -2.5);
            writer.int64("c", 5_000_000_000);
        });
        check(
            r#"{"a": [{"b": "x\"\\y"}, true, null], "c": []}"#,
            |writer| {
                writer.array("a", |list| {
                    list.document("0", |inner| inner.string("b", "x\"\\y"));
                    list.boolean("1", true);
                    list.null("2");
                });
                writer.array("c", |_| {});
            },
        );
    }

    #[test]
    fn mistakes_are_told_with_their_place() {
        let check = |text: &str, expected: &str| {
            let said = document(text).unwrap_err().to_string();
            assert_eq!(said, format!("a command: {expected}"), "{text}");
        };
        check("", "{ is missing before \"\"");
        check("{\"a\" 1}", ": is missing before \"1}\"");
        check("{\"a\": what}", "a value is missing before \"what}\"");
        check("{} x", "the end is missing before \"x\"");
        check("{\"a", "the end of a string is missing before \"a\"");
    }
}
