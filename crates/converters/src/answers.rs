//! The protocol of persistent converters. It is that of Recoll's `execm` input handlers, so that
//! those can be used:
//! <https://www.recoll.org/usermanual/webhelp/docs/RCL.PROGRAM.FILTERS.html>
//!
//! A message is a sequence of elements and an empty line. An element is a name, a colon, the length
//! of its value in bytes, a line feed, and the value:
//!
//! ```text
//! request                       answer
//! filename: 9⏎                  Mimetype: 9⏎
//! /tmp/a.fo                     text/html
//! mimetype: 17⏎                 Document: 12⏎
//! application/x-foo⏎            <p>Bread</p>
//!                               Eofnext: 0⏎
//!                               ⏎
//! ```
//!
//! The value of the last element is followed by the line feed that ends the message. A request with
//! an empty `filename` asks for the next document of the file. The elements of an answer:
//!
//! | name | meaning |
//! |---|---|
//! | `Document` | the content of a document |
//! | `Ipath` | its name inside the file; without one, the file is the document |
//! | `Mimetype` | its media type |
//! | `Charset` | its character encoding |
//! | `Eofnext` | there is no further document |
//! | `Eofnow` | there is no document |
//! | `Subdocerror` | the document could not be read, but the next one may be |
//! | `Fileerror` | the file could not be read |
//! | others | properties: `title`, `author`, `keywords`, `abstract` |
//!
//! In place of an element, a line `RECFILTERROR HELPERNOTFOUND program` says that the converter
//! needs a program that is not installed.

use windrow_extract::ConvertedDocument;

use crate::command::Placeholders;
use std::os::unix::ffi::OsStrExt;

/// An answer has at most this many elements.
const ELEMENTS_MAX: usize = 200;
const LINE_BYTES_MAX: usize = 1024;

/// An answer of a converter.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Answer {
    pub(crate) document: ConvertedDocument,
    /// There is a document.
    pub(crate) has_document: bool,
    /// There is no further document.
    pub(crate) is_last: bool,
    pub(crate) failure: Option<AnswerFailure>,
}

/// A failure that a converter reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerFailure {
    Document,
    File,
}

/// The reason why an answer cannot be parsed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AnswerError {
    /// The bytes violate the protocol.
    Invalid(String),
    /// The converter reports that this program is missing.
    MissingProgram(String),
}

/// Returns the first request for a file.
pub(crate) fn encode_file_request(file: &Placeholders<'_>) -> Vec<u8> {
    encode_request(file.file.as_os_str().as_bytes(), file.media_type)
}

/// Returns the request for the next document of the file.
pub(crate) fn encode_next_request(media_type: &str) -> Vec<u8> {
    encode_request(b"", media_type)
}

fn encode_request(file: &[u8], media_type: &str) -> Vec<u8> {
    let mut request = format!("filename: {}\n", file.len()).into_bytes();
    request.extend_from_slice(file);
    request.extend_from_slice(format!("mimetype: {}\n{media_type}\n", media_type.len()).as_bytes());
    request
}

/// An answer at the beginning of received bytes.
#[derive(Debug, PartialEq)]
pub(crate) struct ParsedAnswer {
    pub answer: Answer,
    /// The number of its bytes.
    pub length: usize,
}

/// Parses an answer at the beginning of `bytes`. Returns `None` if it is incomplete.
pub(crate) fn parse_answer(bytes: &[u8]) -> Result<Option<ParsedAnswer>, AnswerError> {
    let (mut answer, mut at) = (Answer::default(), 0);
    for _ in 0..ELEMENTS_MAX {
        let rest = bytes.get(at..).unwrap_or_default();
        let Some(line_bytes) = rest.iter().position(|&byte| byte == b'\n') else {
            return if rest.len() > LINE_BYTES_MAX {
                Err(AnswerError::Invalid("a line without an end".to_owned()))
            } else {
                Ok(None)
            };
        };
        let line = rest.get(..line_bytes).unwrap_or_default();
        at += line_bytes + 1;
        if line.is_empty() {
            return Ok(Some(ParsedAnswer { answer, length: at }));
        }
        let (name, length) = parse_element(line)?;
        let Some(value) = at.checked_add(length).and_then(|end| bytes.get(at..end)) else {
            return Ok(None);
        };
        at += length;
        set_element(&mut answer, &name, value);
    }
    Err(AnswerError::Invalid(format!(
        "more than {ELEMENTS_MAX} elements"
    )))
}

/// Returns the program that a converter reports as missing in its output.
pub(crate) fn find_missing_program(output: &[u8]) -> Option<String> {
    let rest = output.strip_prefix(b"RECFILTERROR HELPERNOTFOUND")?;
    let line = rest.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let line = line.get(..LINE_BYTES_MAX).unwrap_or(line);
    Some(String::from_utf8_lossy(line).trim().to_owned())
}

/// Returns the lower-case name and the length of an element.
fn parse_element(line: &[u8]) -> Result<(String, usize), AnswerError> {
    if let Some(program) = find_missing_program(line) {
        return Err(AnswerError::MissingProgram(program));
    }
    let invalid = || {
        let shown: String = String::from_utf8_lossy(line).chars().take(80).collect();
        AnswerError::Invalid(format!("the line {shown:?}"))
    };
    let text = std::str::from_utf8(line).map_err(|_| invalid())?;
    let (name, length) = text.split_once(':').ok_or_else(invalid)?;
    let length = length.trim().parse().map_err(|_| invalid())?;
    Ok((name.trim().to_ascii_lowercase(), length))
}

fn set_element(answer: &mut Answer, name: &str, value: &[u8]) {
    let text = || String::from_utf8_lossy(value).trim().to_owned();
    let document = &mut answer.document;
    match name {
        "document" => {
            document.bytes = value.to_vec();
            answer.has_document = true;
        }
        "ipath" => document.inner_name = Some(text()).filter(|name| !name.is_empty()),
        "mimetype" => document.media_type = Some(text()).filter(|it| !it.is_empty()),
        "charset" => document.charset = Some(text()).filter(|it| !it.is_empty()),
        "eofnext" => answer.is_last = true,
        "eofnow" => {
            answer.is_last = true;
            answer.has_document = false;
        }
        "subdocerror" => answer.failure = Some(AnswerFailure::Document),
        "fileerror" => answer.failure = Some(AnswerFailure::File),
        property => document.properties.push((property.to_owned(), text())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn requests_are_encoded() {
        let file = Placeholders {
            file: Path::new("/t/é"),
            media_type: "a/b",
            folder: Path::new("/t"),
        };
        let expected = "filename: 5\n/t/émimetype: 3\na/b\n";
        assert_eq!(encode_file_request(&file), expected.as_bytes());
        assert_eq!(
            encode_next_request("a/b"),
            b"filename: 0\nmimetype: 3\na/b\n"
        );
    }

    #[test]
    fn answers_are_parsed_when_they_are_complete() {
        let bytes =
            b"Mimetype: 9\ntext/htmlDocument: 5\n<p>\n\ntitle: 3\n T Ipath: 1\n7Eofnext: 0\n\nrest";
        let length = bytes.len() - 4;
        for end in 0..length {
            assert_eq!(parse_answer(&bytes[..end]), Ok(None), "{end}");
        }
        let parsed = parse_answer(bytes).unwrap().unwrap();
        assert_eq!(parsed.length, length);
        let answer = parsed.answer;
        let expected = ConvertedDocument {
            inner_name: Some("7".into()),
            media_type: Some("text/html".into()),
            charset: None,
            bytes: b"<p>\n\n".to_vec(),
            properties: vec![("title".into(), "T".into())],
        };
        assert_eq!(answer.document, expected);
        assert!(answer.has_document && answer.is_last && answer.failure.is_none());
    }

    fn check(bytes: &[u8], has_document: bool, is_last: bool, failure: Option<AnswerFailure>) {
        let ParsedAnswer { answer, .. } = parse_answer(bytes).unwrap().unwrap();
        assert_eq!(
            (answer.has_document, answer.is_last, answer.failure),
            (has_document, is_last, failure)
        );
    }

    #[test]
    fn failures_and_ends_are_told_apart() {
        check(b"Fileerror: 0\n\n", false, false, Some(AnswerFailure::File));
        check(
            b"Document: 0\nSubdocerror: 0\n\n",
            true,
            false,
            Some(AnswerFailure::Document),
        );
        check(b"Eofnow: 0\n\n", false, true, None);
        check(b"\n", false, false, None);
    }

    #[test]
    fn invalid_answers_are_refused() {
        let missing = parse_answer(b"RECFILTERROR HELPERNOTFOUND unrar\n");
        assert_eq!(missing, Err(AnswerError::MissingProgram("unrar".into())));
        for bytes in [
            &b"hello\n"[..],
            b"Document: x\n",
            b"Document: -1\n",
            b"\xff: 1\n",
            &[b'x'; 2000],
            &b"a: 0\n".repeat(300),
        ] {
            assert!(
                matches!(parse_answer(bytes), Err(AnswerError::Invalid(_))),
                "{bytes:?}"
            );
        }
        // A huge length is an incomplete answer, whose bytes the reader limits.
        let huge = format!("Document: {}\n", usize::MAX);
        assert_eq!(parse_answer(huge.as_bytes()), Ok(None));
    }
}
