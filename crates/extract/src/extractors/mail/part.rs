//! A message or a part of a MIME message (RFC 2045, 2046).

use std::borrow::Cow;

use super::embedded_files::separate_embedded_files;
use super::headers::{Headers, HeadersAndBody, count_known_fields};
use super::lines::{split_line, trim_line_end};
use super::parameters::ParameterizedField;
use super::{charset, transfer};
use crate::format::take_prefix;

/// A message or part with an undecoded body.
pub(crate) struct Part<'m> {
    pub(crate) headers: Headers<'m>,
    pub(crate) content_type: ParameterizedField,
    pub(crate) disposition: ParameterizedField,
    pub(crate) body: &'m [u8],
}

impl<'m> Part<'m> {
    /// Parses a part. `default_type` is its type if it declares none.
    pub(crate) fn parse(bytes: &'m [u8], default_type: &str) -> Self {
        let HeadersAndBody { mut headers, body } = HeadersAndBody::split(bytes);
        let parse = |headers: &Headers<'_>, name: &str| {
            ParameterizedField::parse(&headers.value(name).unwrap_or_default())
        };
        let mut content_type = parse(&headers, "content-type");
        // Old programs declare the type `text`.
        if !content_type.value.contains('/') {
            content_type.value = default_type.to_string();
        }
        headers.set_fallback(
            content_type
                .parameter("charset")
                .and_then(charset::find_encoding),
        );
        Part {
            disposition: parse(&headers, "content-disposition"),
            headers,
            content_type,
            body,
        }
    }

    /// Returns `true` if the part has this type, for example `text/plain`.
    pub(crate) fn is(&self, media_type: &str) -> bool {
        self.content_type.value == media_type
    }

    pub(crate) fn is_attachment(&self) -> bool {
        self.disposition.value == "attachment"
    }

    /// Returns the file name without folders.
    pub(crate) fn file_name(&self) -> Option<String> {
        let name = self
            .disposition
            .parameter("filename")
            .or_else(|| self.content_type.parameter("name"))?;
        clean_file_name(name)
    }

    /// Returns the name of the transfer encoding in lower case.
    pub(crate) fn transfer_encoding(&self) -> String {
        let value = self
            .headers
            .value("content-transfer-encoding")
            .unwrap_or_default();
        value.trim_matches('"').trim().to_ascii_lowercase()
    }

    /// Returns the body without its transfer encoding.
    pub(crate) fn decode_body(&self) -> Cow<'m, [u8]> {
        match self.transfer_encoding().as_str() {
            "base64" => transfer::decode_base64_body(self.body).into(),
            "quoted-printable" => transfer::decode_quoted_printable(self.body).into(),
            "x-uuencode" | "uuencode" | "x-uue" | "uue" | "x-yenc" => self.decode_embedded(),
            _ => self.body.into(),
        }
    }

    /// Returns the only file in the body.
    fn decode_embedded(&self) -> Cow<'m, [u8]> {
        let files = separate_embedded_files(self.body).map(|separated| separated.files);
        let file = files.and_then(|files| files.into_iter().next());
        file.map_or(self.body.into(), |file| file.bytes.into())
    }

    /// Returns the body as text in the part's encoding.
    pub(crate) fn decode_text(&self, bytes: &[u8]) -> String {
        charset::decode_label(
            bytes,
            self.content_type.parameter("charset").unwrap_or_default(),
        )
    }

    /// Returns the parts of a multipart body. Returns `None` if it has no boundaries, so it is
    /// text.
    pub(crate) fn split_multipart(&self) -> Option<Vec<&'m [u8]>> {
        let declared = self.content_type.parameter("boundary").map(str::trim_end);
        let boundary = match declared {
            Some(boundary) => boundary.as_bytes(),
            None => find_boundary(self.body)?,
        };
        split_at_boundaries(self.body, boundary)
    }
}

/// Returns the last component of a Unix or Windows path.
pub(crate) fn clean_file_name(name: &str) -> Option<String> {
    let name = name.rsplit(['/', '\\']).next()?.trim();
    let name: String = name.chars().filter(|c| !c.is_control()).collect();
    (!name.is_empty()).then_some(name)
}

/// Returns the first line that looks like a boundary: it begins with `--` and is followed by a
/// header.
fn find_boundary(body: &[u8]) -> Option<&[u8]> {
    let mut rest = body;
    while !rest.is_empty() {
        let (line, after) = split_line(rest);
        let boundary = trim_line_end(line).strip_prefix(b"--");
        if let Some(boundary) = boundary.filter(|it| !it.is_empty())
            && (take_prefix(after, 8).eq_ignore_ascii_case(b"content-")
                || count_known_fields(after, 1) > 0)
        {
            return Some(boundary);
        }
        rest = after;
    }
    None
}

/// Splits a body at the lines `--boundary`, up to `--boundary--`. The line break before a boundary
/// belongs to it. The last boundary can be missing.
fn split_at_boundaries<'m>(body: &'m [u8], boundary: &[u8]) -> Option<Vec<&'m [u8]>> {
    let mut parts = Vec::new();
    let mut start = None;
    let mut offset = 0;
    while let Some(rest) = body.get(offset..).filter(|rest| !rest.is_empty()) {
        let (line, _) = split_line(rest);
        let line_start = offset;
        offset += line.len();
        let Some(end) = parse_boundary_line(line, boundary) else {
            continue;
        };
        if let Some(start) = start {
            let part = body.get(start..line_start).unwrap_or_default();
            parts.push(trim_line_end(part));
        }
        if end {
            return Some(parts);
        }
        start = Some(offset);
    }
    let last = body.get(start?..)?;
    parts.push(last);
    Some(parts)
}

/// Returns `None` if a line is no boundary, and `Some(true)` if it is the last one.
fn parse_boundary_line(line: &[u8], boundary: &[u8]) -> Option<bool> {
    let rest = line.strip_prefix(b"--")?.strip_prefix(boundary)?;
    match rest.trim_ascii_end() {
        b"" => Some(false),
        b"--" => Some(true),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multipart_bodies_are_split() {
        let check = |boundary: &str, body: &str, expected: Option<&[&str]>| {
            let message = format!("Content-Type: multipart/mixed{boundary}\n\n{body}");
            let found = Part::parse(message.as_bytes(), "text/plain")
                .split_multipart()
                .map(|parts| {
                    parts
                        .iter()
                        .map(|it| String::from_utf8_lossy(it).into())
                        .collect()
                });
            let expected = expected.map(|parts| parts.iter().map(|it| (*it).into()).collect());
            let found: Option<Vec<String>> = found;
            assert_eq!(found, expected, "{body}");
        };
        check(
            "; boundary=B",
            "x\n--B\na\n--B\r\nb\r\n--B--\ny",
            Some(&["a", "b"]),
        );
        check(
            "; boundary=B",
            "--B\na\n--BB\n--B \nb",
            Some(&["a\n--BB", "b"]),
        );
        check("; boundary=B", "--B\na\n\n--B\n--B--", Some(&["a\n", ""]));
        check(
            "",
            "--X\nContent-Type: a/b\n\na\n--X--\n",
            Some(&["Content-Type: a/b\n\na"]),
        );
        check("; boundary=B", "words", None);
        check("", "--\nwords", None);
    }
}
