//! Canonical Extended JSON to values: what the recorded conversations are written in.

use windrow_document::{
    ArrayBuf, Decimal128, Document, DocumentBuf, ObjectId, Timestamp, Value, ValueRef,
};

/// Reads one value from the text; what follows it is ignored.
pub fn parse(text: &str) -> Value {
    let mut reader = Reader { rest: text };
    reader.value()
}

struct Reader<'t> {
    rest: &'t str,
}

impl Reader<'_> {
    fn skip(&mut self, token: char) {
        self.rest = self.rest.trim_start();
        self.rest = self.rest.strip_prefix(token).unwrap_or_else(|| {
            panic!("expected {token} before {:.60}", self.rest);
        });
    }

    fn peek(&mut self) -> char {
        self.rest = self.rest.trim_start();
        self.rest.chars().next().expect("a value")
    }

    fn value(&mut self) -> Value {
        match self.peek() {
            '{' => self.object(),
            '[' => self.array(),
            '"' => Value::String(self.string()),
            _ => self.word(),
        }
    }

    fn word(&mut self) -> Value {
        let end = self.rest.find([',', '}', ']']).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        match word.trim() {
            "null" => Value::Null,
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            number => Value::Int32(number.parse().expect(number)),
        }
    }

    fn array(&mut self) -> Value {
        self.skip('[');
        let mut values = Vec::new();
        while self.peek() != ']' {
            values.push(self.value());
            if self.peek() == ',' {
                self.skip(',');
            }
        }
        self.skip(']');
        Value::Array(values.into_iter().collect::<ArrayBuf>())
    }

    fn object(&mut self) -> Value {
        self.skip('{');
        let mut document = DocumentBuf::new();
        while self.peek() != '}' {
            let name = self.string();
            self.skip(':');
            document.push(&name, self.value());
            if self.peek() == ',' {
                self.skip(',');
            }
        }
        self.skip('}');
        unwrapped(document.as_document()).unwrap_or(Value::Document(document))
    }

    fn string(&mut self) -> String {
        self.skip('"');
        let mut text = String::new();
        loop {
            let mut characters = self.rest.chars();
            let next = characters.next().expect("the end of a string");
            self.rest = characters.as_str();
            match next {
                '"' => return text,
                '\\' => text.push(self.escape()),
                other => text.push(other),
            }
        }
    }

    fn escape(&mut self) -> char {
        let mut characters = self.rest.chars();
        let kind = characters.next().expect("an escape");
        self.rest = characters.as_str();
        match kind {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'u' => {
                let first = self.hex();
                if !(0xD800..0xDC00).contains(&first) {
                    return char::from_u32(first).expect("a character");
                }
                self.skip('\\');
                self.skip('u');
                let second = self.hex();
                char::from_u32(0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00))
                    .expect("a pair of surrogates")
            }
            other => other,
        }
    }

    fn hex(&mut self) -> u32 {
        let (digits, rest) = self.rest.split_at(4);
        self.rest = rest;
        u32::from_str_radix(digits, 16).expect(digits)
    }
}

/// The value that a wrapper like {"$numberInt": "1"} stands for.
fn unwrapped(document: Document<'_>) -> Option<Value> {
    let (name, value) = document.first()?;
    let text = || value.as_str();
    Some(match (document.count(), name) {
        (1, "$numberInt") => Value::Int32(text()?.parse().ok()?),
        (1, "$numberLong") => Value::Int64(text()?.parse().ok()?),
        (1, "$numberDouble") => Value::Double(double(text()?)),
        (1, "$numberDecimal") => Value::Decimal128(Decimal128::parse(text()?)?),
        (1, "$oid") => Value::ObjectId(ObjectId::parse(text()?)?),
        (1, "$date") => Value::DateTime(value.as_whole()?),
        (1, "$minKey") => Value::MinKey,
        (1, "$maxKey") => Value::MaxKey,
        (1, "$undefined") => Value::Undefined,
        (1, "$symbol") => Value::Symbol(text()?.to_owned()),
        (1, "$code") => Value::JavaScript(text()?.to_owned()),
        (2, "$code") => Value::JavaScriptWithScope {
            code: text()?.to_owned(),
            scope: document.get("$scope")?.as_document()?.to_buf(),
        },
        (1, "$timestamp") => {
            let part = |name| u32::try_from(value.as_document()?.get(name)?.as_whole()?).ok();
            Value::Timestamp(Timestamp {
                seconds: part("t")?,
                increment: part("i")?,
            })
        }
        (1, "$regularExpression") => {
            let part = |name| value.as_document()?.get(name)?.as_str().map(str::to_owned);
            Value::Regex {
                pattern: part("pattern")?,
                options: part("options")?,
            }
        }
        (1, "$binary") => binary(value)?,
        _ => return None,
    })
}

fn double(text: &str) -> f64 {
    match text {
        "Infinity" => f64::INFINITY,
        "-Infinity" => f64::NEG_INFINITY,
        "NaN" => f64::NAN,
        number => number.parse().expect(number),
    }
}

fn binary(value: ValueRef<'_>) -> Option<Value> {
    let parts = value.as_document()?;
    let subtype = u8::from_str_radix(parts.get("subType")?.as_str()?, 16).ok()?;
    let mut bytes = Vec::new();
    let (mut bits, mut count) = (0u32, 0);
    for digit in parts
        .get("base64")?
        .as_str()?
        .bytes()
        .filter(|digit| *digit != b'=')
    {
        let six = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            _ => 63,
        };
        bits = bits << 6 | u32::from(six);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    Some(Value::Binary { subtype, bytes })
}
