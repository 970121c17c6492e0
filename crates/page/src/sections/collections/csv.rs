//! CSV (RFC 4180).

use std::io::{self, Write};

use windrow_document::path::Path;
use windrow_document::{Document, DocumentBuf, Value, ValueRef};

use crate::literals::{extended_json, format_date};

/// Writes a line of fields.
pub fn write_line<'f>(
    writer: &mut dyn Write,
    fields: impl Iterator<Item = std::borrow::Cow<'f, str>>,
) -> io::Result<()> {
    for (number, field) in fields.enumerate() {
        if number > 0 {
            writer.write_all(b",")?;
        }
        // A space at an end is part of the field, but not for every program.
        let is_quoted = field.contains(['"', ',', '\n', '\r']) || field.trim() != field;
        match is_quoted {
            true => write!(writer, "\"{}\"", field.replace('"', "\"\""))?,
            false => writer.write_all(field.as_bytes())?,
        }
    }
    writer.write_all(b"\r\n")
}

/// Returns the values of a document at paths, as texts.
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
        Some(other) => extended_json(other, false).into(),
    })
}

/// Reads the records of a text. Fails with a sentence.
pub fn read_records(text: &str) -> Result<Vec<Vec<String>>, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (mut records, mut record, mut field) = (Vec::new(), Vec::new(), String::new());
    let mut characters = text.chars().peekable();
    let (mut line, mut is_quoted, mut was_quoted) = (1, false, false);
    let mut quote_line = 0;
    while let Some(character) = characters.next() {
        line += usize::from(character == '\n');
        match character {
            '"' if is_quoted && characters.next_if_eq(&'"').is_some() => field.push('"'),
            '"' if is_quoted => is_quoted = false,
            other if is_quoted => field.push(other),
            '"' if field.is_empty() && !was_quoted => {
                (is_quoted, was_quoted, quote_line) = (true, true, line);
            }
            ',' => {
                record.push(std::mem::take(&mut field));
                was_quoted = false;
            }
            '\r' if characters.peek() == Some(&'\n') => {}
            '\n' | '\r' => {
                record.push(std::mem::take(&mut field));
                was_quoted = false;
                push_record(&mut records, &mut record);
            }
            _ if was_quoted => {
                return Err(format!("line {line}: a comma is expected behind a quote"));
            }
            other => field.push(other),
        }
    }
    if is_quoted {
        return Err(format!("line {quote_line}: the quote has no end"));
    }
    if !field.is_empty() || !record.is_empty() {
        record.push(field);
        push_record(&mut records, &mut record);
    }
    Ok(records)
}

/// Empty lines are no records.
fn push_record(records: &mut Vec<Vec<String>>, record: &mut Vec<String>) {
    let record = std::mem::take(record);
    if record.iter().any(|field| !field.is_empty()) {
        records.push(record);
    }
}

/// Returns the documents of a text. The first record has the names of fields. A field without a value
/// is left out; numbers and `true` and `false` are such, everything else is a string.
pub fn read_documents(text: &str) -> Result<Vec<DocumentBuf>, String> {
    let mut records = read_records(text)?.into_iter();
    let names = records
        .next()
        .ok_or("there is no line with names of fields")?;
    if let Some(name) = names
        .iter()
        .find(|name| name.is_empty() || name.contains('\0'))
    {
        return Err(format!("\"{name}\" is no name of a field"));
    }
    let document = |(number, record): (usize, Vec<String>)| {
        if record.len() > names.len() {
            let (count, expected) = (record.len(), names.len());
            return Err(format!(
                "record {}: {count} values for {expected} fields",
                number + 1
            ));
        }
        let mut document = DocumentBuf::new();
        for (name, field) in names
            .iter()
            .zip(&record)
            .filter(|(_, field)| !field.is_empty())
        {
            document.push(name, value(field));
        }
        Ok(document)
    };
    records.enumerate().map(document).collect()
}

/// Numbers that would be written in another way, such as 007, stay strings.
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
