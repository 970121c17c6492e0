//! CSV (RFC 4180).

use std::io::{self, Read, Write};

use windrow_document::path::Path;
use windrow_document::{Document, DocumentBuf, Value, ValueRef};

use crate::literals::{JsonFormat, extended_json, format_date};
use crate::text_reader::{TextReader, next_item};

/// Writes a record.
pub fn write_line<'f>(
    writer: &mut dyn Write,
    fields: impl Iterator<Item = std::borrow::Cow<'f, str>>,
) -> io::Result<()> {
    for (number, field) in fields.enumerate() {
        if number > 0 {
            writer.write_all(b",")?;
        }
        // RFC 4180 keeps spaces at the ends of a field, but not all programs do.
        let is_quoted = field.contains(['"', ',', '\n', '\r']) || field.trim() != field;
        if is_quoted {
            write!(writer, "\"{}\"", field.replace('"', "\"\""))?
        } else {
            writer.write_all(field.as_bytes())?
        }
    }
    writer.write_all(b"\r\n")
}

/// Returns the values of a document at paths, as strings.
pub fn values<'d>(
    document: Document<'d>,
    paths: &'d [Path],
) -> impl Iterator<Item = std::borrow::Cow<'d, str>> {
    paths.iter().map(move |path| match path.get(document) {
        None | Some(ValueRef::Null) => "".into(),
        Some(ValueRef::String(text)) => text.into(),
        Some(ValueRef::ObjectId(id)) => id.to_string().into(),
        Some(ValueRef::DateTime(millis)) => format_date(millis)
            .unwrap_or_else(|| millis.to_string())
            .into(),
        Some(ValueRef::Decimal128(number)) => number.to_string().into(),
        Some(other) => extended_json(other, JsonFormat::Relaxed).into(),
    })
}

/// Parses records from a source that may be larger than the memory.
#[derive(Debug)]
pub struct Records<R> {
    source: TextReader<R>,
    text: String,
    /// The number of bytes of `text` that were parsed.
    offset: usize,
    record: Vec<String>,
    field: String,
    quotes: Quotes,
    line: usize,
    quote_line: usize,
    /// The number of bytes of the current record.
    bytes: usize,
    is_over: bool,
}

/// The state of the quotes of the current field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quotes {
    /// The field is not quoted, or has not begun.
    None,
    Open,
    /// After a quote inside a quoted field: it ends the field, or is the first half of an escaped
    /// quote.
    Last,
}

/// The number of bytes of a read.
const PIECE_BYTES: usize = 256 << 10;
/// The maximum number of bytes of a record.
const RECORD_BYTES_MAX: usize = 64 << 20;

impl<R: Read> Records<R> {
    /// Parses from the start of a source.
    pub fn new(source: R) -> Records<R> {
        Records {
            source: TextReader::new(source),
            text: String::new(),
            offset: 0,
            record: Vec::new(),
            field: String::new(),
            quotes: Quotes::None,
            line: 1,
            quote_line: 0,
            bytes: 0,
            is_over: false,
        }
    }

    fn read(&mut self) -> Result<Option<Vec<String>>, String> {
        loop {
            while let Some(character) = self.next_character() {
                if self.take(character)? {
                    self.bytes = 0;
                    let record = std::mem::take(&mut self.record);
                    // Empty lines are skipped.
                    if record.iter().any(|field| !field.is_empty()) {
                        return Ok(Some(record));
                    }
                }
            }
            if self.source.is_over() {
                return self.last();
            }
            self.text.clear();
            self.offset = 0;
            self.source.read_more(&mut self.text, PIECE_BYTES)?;
        }
    }

    fn next_character(&mut self) -> Option<char> {
        let next = self.text.get(self.offset..)?.chars().next()?;
        self.offset += next.len_utf8();
        Some(next)
    }

    /// Processes a character. Returns `true` if it ends a record.
    fn take(&mut self, character: char) -> Result<bool, String> {
        self.line += usize::from(character == '\n');
        self.bytes += character.len_utf8();
        if self.bytes > RECORD_BYTES_MAX {
            let (line, mebibytes) = (self.line, RECORD_BYTES_MAX >> 20);
            return Err(format!(
                "line {line}: the record has more than {mebibytes} MiB"
            ));
        }
        match (self.quotes, character) {
            (Quotes::Open, '"') => self.quotes = Quotes::Last,
            (Quotes::Last, '"') => {
                self.field.push('"');
                self.quotes = Quotes::Open;
            }
            (Quotes::Open, other) => self.field.push(other),
            (Quotes::None, '"') if self.field.is_empty() => {
                (self.quotes, self.quote_line) = (Quotes::Open, self.line);
            }
            (_, ',') => self.end_field(),
            (_, '\n' | '\r') => {
                self.end_field();
                return Ok(true);
            }
            (Quotes::Last, _) => {
                let line = self.line;
                return Err(format!("line {line}: a comma is expected behind a quote"));
            }
            // A byte order mark at the start of the source.
            (Quotes::None, '\u{feff}') if self.bytes == 3 && self.line == 1 => {}
            (Quotes::None, other) => self.field.push(other),
        }
        Ok(false)
    }

    fn end_field(&mut self) {
        self.record.push(std::mem::take(&mut self.field));
        self.quotes = Quotes::None;
    }

    /// Returns the last record if no line break follows it.
    fn last(&mut self) -> Result<Option<Vec<String>>, String> {
        if self.quotes == Quotes::Open {
            return Err(format!("line {}: the quote has no end", self.quote_line));
        }
        self.end_field();
        let record = std::mem::take(&mut self.record);
        self.is_over = true;
        Ok(Some(record).filter(|it| it.iter().any(|field| !field.is_empty())))
    }
}

impl<R: Read> Iterator for Records<R> {
    type Item = Result<Vec<String>, String>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        next_item(self.read(), &mut self.is_over)
    }
}

/// Reads documents. The first record contains the field names. Empty fields are omitted. Numbers
/// and Booleans are recognized; all other values are strings.
#[derive(Debug)]
pub struct CsvDocuments<R> {
    records: Records<R>,
    /// The field names. `None` before the first record.
    names: Option<Vec<String>>,
    /// The number of records that were read.
    count: usize,
    is_over: bool,
}

impl<R: Read> CsvDocuments<R> {
    /// Reads from the start of a source.
    pub fn new(source: R) -> CsvDocuments<R> {
        CsvDocuments {
            records: Records::new(source),
            names: None,
            count: 0,
            is_over: false,
        }
    }

    fn read(&mut self) -> Result<Option<DocumentBuf>, String> {
        let names = match &self.names {
            Some(names) => names,
            None => {
                let first = self.records.next().transpose()?;
                let names = first.ok_or("there is no line with names of fields")?;
                self.names.insert(check_names(names)?)
            }
        };
        let Some(record) = self.records.next().transpose()? else {
            return Ok(None);
        };
        self.count += 1;
        if record.len() > names.len() {
            let (number, values, expected) = (self.count, record.len(), names.len());
            return Err(format!(
                "record {number}: {values} values for {expected} fields"
            ));
        }
        let mut document = DocumentBuf::new();
        let fields = names.iter().zip(&record);
        for (name, field) in fields.filter(|(_, field)| !field.is_empty()) {
            document.push(name, value(field));
        }
        Ok(Some(document))
    }
}

impl<R: Read> Iterator for CsvDocuments<R> {
    type Item = Result<DocumentBuf, String>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        next_item(self.read(), &mut self.is_over)
    }
}

/// Fails if a name is not a valid field name or is not unique.
fn check_names(names: Vec<String>) -> Result<Vec<String>, String> {
    let is_wrong = |name: &&String| name.is_empty() || name.contains('\0');
    if let Some(name) = names.iter().find(is_wrong) {
        return Err(format!("\"{name}\" is no name of a field"));
    }
    for (at, name) in names.iter().enumerate() {
        if names.iter().take(at).any(|other| other == name) {
            return Err(format!("the field \"{name}\" is there twice"));
        }
    }
    Ok(names)
}

/// Converts a field. Numbers in a non-canonical notation, such as 007, stay strings.
fn value(field: &str) -> Value {
    if let Ok(number) = field.parse::<i64>()
        && number.to_string() == field
    {
        return Value::whole(number);
    }
    let is_decimal = field
        .bytes()
        .all(|it| it.is_ascii_digit() || matches!(it, b'.' | b'-' | b'e' | b'E'));
    let has_zeros = field.trim_start_matches('-').starts_with("00");
    match field {
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        _ if is_decimal && field.contains('.') && !has_zeros => {
            let number = field.parse::<f64>().ok().filter(|it| it.is_finite());
            number.map_or_else(|| Value::from(field), Value::Double)
        }
        _ => Value::from(field),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::doc;

    fn read_records(text: &str) -> Result<Vec<Vec<String>>, String> {
        Records::new(text.as_bytes()).collect()
    }

    fn read_documents(text: &str) -> Result<Vec<DocumentBuf>, String> {
        CsvDocuments::new(text.as_bytes()).collect()
    }

    #[test]
    fn records_are_read() {
        let cases: [(&str, &[&[&str]]); 6] = [
            ("", &[]),
            ("a,b\r\n1,2\n", &[&["a", "b"], &["1", "2"]]),
            ("\"a,\"\"b\"\"\n\",", &[&["a,\"b\"\n", ""]]),
            ("\u{feff}a\n\n\nb", &[&["a"], &["b"]]),
            ("a\rb", &[&["a"], &["b"]]),
            ("x\"y,\"\"", &[&["x\"y", ""]]),
        ];
        for (text, expected) in cases {
            assert_eq!(read_records(text).unwrap(), expected, "{text:?}");
        }
        assert_eq!(
            read_records("a\n\"b").unwrap_err(),
            "line 2: the quote has no end"
        );
        assert!(read_records("\"a\"b").is_err());
        let long = format!("\"{}", "x".repeat(RECORD_BYTES_MAX));
        assert!(read_records(&long).unwrap_err().contains("64 MiB"));
    }

    #[test]
    fn records_become_documents() {
        let text = "n,d,s,zip,flag,none\n5,1.5,a,007,true,\n9000000000,-0.5,1.2.3,12,false,x";
        let expected = [
            doc! { "n": 5, "d": 1.5, "s": "a", "zip": "007", "flag": true },
            doc! { "n": 9_000_000_000i64, "d": (-0.5), "s": "1.2.3", "zip": 12, "flag": false, "none": "x" },
        ];
        assert_eq!(read_documents(text).unwrap(), expected);
        assert!(read_documents("a\n1,2").unwrap_err().contains("record 1"));
        assert!(read_documents("").is_err() && read_documents("a,,b\n").is_err());
        assert!(read_documents("a,b,a\n").unwrap_err().contains("twice"));
        let mut damaged = CsvDocuments::new(&b"a\n1\n2,3\n4"[..]);
        assert!(damaged.next().unwrap().is_ok() && damaged.next().unwrap().is_err());
        assert!(damaged.next().is_none());
        assert_eq!(CsvDocuments::new(&b""[..]).count(), 1);
    }

    #[test]
    fn what_is_written_can_be_read() {
        let document = doc! { "a": "x,\"y\"\n", "b": { "c": 1 }, "d": [1], "e": " z" };
        let paths = ["a", "b.c", "d", "none", "e"].map(Path::parse);
        let mut written = Vec::new();
        write_line(&mut written, values(document.as_document(), &paths)).unwrap();
        let read = read_records(std::str::from_utf8(&written).unwrap()).unwrap();
        assert_eq!(read, [["x,\"y\"\n", "1", "[1]", "", " z"]]);
    }
}
