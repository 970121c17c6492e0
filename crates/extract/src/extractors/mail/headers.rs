//! Parses the header fields of a message or part (RFC 5322), including malformed ones.

use encoding_rs::Encoding;

use super::lines::{split_line, trim_line_end};
use super::{charset, encoded_words};
use crate::format::take_prefix;

/// Header fields that are common enough to identify a message.
const KNOWN_FIELDS: [&str; 20] = [
    "from",
    "to",
    "cc",
    "subject",
    "date",
    "received",
    "return-path",
    "message-id",
    "mime-version",
    "delivered-to",
    "reply-to",
    "dkim-signature",
    "in-reply-to",
    "references",
    "newsgroups",
    "xref",
    "list-id",
    "envelope-to",
    "x-mozilla-status",
    "x-original-to",
];
/// The number of lines after a malformed line in which the next field is searched.
const LINES_SEARCHED: usize = 3;
const FIELD_NAME_BYTES_MAX: usize = 80;

/// A field: its name as written, and its unparsed value.
struct Field<'m> {
    name: &'m [u8],
    value: &'m [u8],
}

/// The header of a message or part.
#[derive(Default)]
pub(crate) struct Headers<'m> {
    fields: Vec<Field<'m>>,
    /// The encoding of 8-bit bytes that are not UTF-8.
    fallback: Option<&'static Encoding>,
}

/// A header and the bytes after its empty line.
pub(crate) struct HeadersAndBody<'m> {
    pub(crate) headers: Headers<'m>,
    pub(crate) body: &'m [u8],
}

impl<'m> HeadersAndBody<'m> {
    /// Splits a message or part. A line that is not a field ends the header, unless a known field
    /// follows shortly. Such a line is a folded line that lost its indentation.
    pub(crate) fn split(bytes: &'m [u8]) -> Self {
        let mut headers = Headers::default();
        let mut rest = bytes;
        loop {
            let (line, after) = split_line(rest);
            if trim_line_end(line).is_empty() {
                rest = after;
                break;
            }
            let Some(name) = parse_field_name(line) else {
                if headers.fields.is_empty() || !is_known_field_near(after) {
                    break;
                }
                rest = after;
                continue;
            };
            let length = field_length(rest);
            let value_start = name.len()
                + 1
                + line
                    .iter()
                    .position(|&b| b == b':')
                    .map_or(0, |at| at - name.len());
            headers.fields.push(Field {
                name,
                value: rest.get(value_start..length).unwrap_or_default(),
            });
            rest = rest.get(length..).unwrap_or_default();
        }
        HeadersAndBody {
            headers,
            body: rest,
        }
    }
}

impl<'m> Headers<'m> {
    /// Sets the encoding of bytes that are not UTF-8. Otherwise it is detected.
    pub(crate) fn set_fallback(&mut self, encoding: Option<&'static Encoding>) {
        self.fallback = encoding;
    }

    /// Returns the values of all fields with a name, unparsed.
    pub(crate) fn raw_values<'h>(&'h self, name: &'h str) -> impl Iterator<Item = &'m [u8]> + 'h {
        let same = move |field: &&Field<'m>| field.name.eq_ignore_ascii_case(name.as_bytes());
        self.fields.iter().filter(same).map(|field| field.value)
    }

    /// Returns the first non-empty value as a single line. Encoded words are not decoded.
    pub(crate) fn value(&self, name: &str) -> Option<String> {
        self.values(name).next()
    }

    /// Returns all non-empty values, see [`Headers::value`].
    pub(crate) fn values<'h>(&'h self, name: &'h str) -> impl Iterator<Item = String> + 'h {
        self.raw_values(name)
            .map(|value| unfold(&charset::decode(value, self.fallback)))
            .filter(|value| !value.is_empty())
    }

    /// Returns the first non-empty value with its encoded words decoded.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        let decoded = self.values(name).map(|value| encoded_words::decode(&value));
        decoded
            .map(|text| collapse_spaces(&text))
            .find(|text| !text.is_empty())
    }
}

/// Returns the text with runs of white space and control characters as single spaces.
pub(crate) fn collapse_spaces(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    words
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

/// Joins the lines of a value.
fn unfold(value: &str) -> String {
    value.replace(['\r', '\n'], "").trim().to_string()
}

/// Returns the name of the field in a line.
pub(crate) fn parse_field_name(line: &[u8]) -> Option<&[u8]> {
    let colon = memchr::memchr(b':', take_prefix(line, FIELD_NAME_BYTES_MAX))?;
    let name = line.get(..colon)?.trim_ascii_end();
    let valid = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    (!name.is_empty() && name.iter().all(valid)).then_some(name)
}

/// Returns the number of known fields at the start of the bytes, up to `count_max`. Returns 0 if
/// other lines are between them.
pub(crate) fn count_known_fields(bytes: &[u8], count_max: usize) -> usize {
    let lines = take_prefix(bytes, 8192)
        .split(|&byte| byte == b'\n')
        .take(60);
    let mut found = 0;
    for line in lines.filter(|line| !is_folded(line)) {
        if trim_line_end(line).is_empty() {
            break;
        }
        match parse_field_name(line) {
            Some(name) => found += usize::from(is_known(name)),
            None => return 0,
        }
        if found == count_max {
            break;
        }
    }
    found
}

fn is_known(name: &[u8]) -> bool {
    let mut fields = KNOWN_FIELDS.iter();
    fields.any(|field| field.as_bytes().eq_ignore_ascii_case(name))
}

fn is_known_field_near(bytes: &[u8]) -> bool {
    let lines = bytes.split(|&byte| byte == b'\n').take(LINES_SEARCHED);
    let lines = lines.take_while(|line| !trim_line_end(line).is_empty());
    lines.filter_map(parse_field_name).any(|name| {
        is_known(name) || name.len() > 8 && take_prefix(name, 8).eq_ignore_ascii_case(b"content-")
    })
}

fn is_folded(line: &[u8]) -> bool {
    matches!(line.first(), Some(b' ' | b'\t'))
}

/// Returns the length of the first field including its folded lines. A folded line of only white
/// space belongs to the field (obsolete syntax).
fn field_length(bytes: &[u8]) -> usize {
    let mut length = split_line(bytes).0.len();
    loop {
        let (line, _) = split_line(bytes.get(length..).unwrap_or_default());
        if !is_folded(line) {
            return length;
        }
        length += line.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_headers_are_split() {
        let check = |bytes: &str, subject: Option<&str>, body: &str| {
            let split = HeadersAndBody::split(bytes.as_bytes());
            assert_eq!(split.headers.text("subject").as_deref(), subject, "{bytes}");
            assert_eq!(String::from_utf8_lossy(split.body), body, "{bytes}");
        };
        check("Subject: a\n\nb", Some("a"), "b");
        check("SUBJECT : a\r\n b\r\n\r\nc\n", Some("a b"), "c\n");
        check(
            "From: x\nSubject: a\nbody without a gap",
            Some("a"),
            "body without a gap",
        );
        check("Subject: a\nlost indent\nFrom: b\n\nc", Some("a"), "c");
        check("Subject:\nSubject: b\n\nc", Some("b"), "c");
        check("Subject: a\n \t\n b\n\nc", Some("a b"), "c");
        check("words", None, "words");
        check("", None, "");
    }
}
