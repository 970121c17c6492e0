//! Extracts files that are embedded in text: uuencode (POSIX) and yEnc
//! (<http://www.yenc.org/yenc-draft.1.3.txt>).

use super::charset;
use super::lines::{split_line, trim_line_end};

/// The line after a yEnc file. Without it, the lines are text.
const YENC_END: &[u8] = b"=yend";

/// A file embedded in a text.
#[derive(Debug, PartialEq)]
pub(crate) struct EmbeddedFile {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
}

/// A text that is separated from the files that were embedded in it.
#[derive(Debug, PartialEq)]
pub(crate) struct SeparatedText {
    /// The text without the files.
    pub(crate) text: Vec<u8>,
    pub(crate) files: Vec<EmbeddedFile>,
}

/// Separates uuencoded and yEnc files from a text. Returns `None` if there are none.
pub(crate) fn separate_embedded_files(text: &[u8]) -> Option<SeparatedText> {
    let mut files = Vec::new();
    let mut others = Vec::new();
    let mut rest = text;
    let last_end = memchr::memmem::rfind(text, YENC_END).unwrap_or(0);
    while !rest.is_empty() {
        let (line, after) = split_line(rest);
        let has_end = text.len() - rest.len() < last_end;
        let parsed = match line.first() {
            Some(b'b') => parse_uuencoded(line, after),
            Some(b'=') if has_end => parse_yenc(line, after),
            _ => None,
        };
        rest = match parsed {
            Some(parsed) => {
                files.push(parsed.file);
                parsed.rest
            }
            None => {
                others.extend_from_slice(line);
                after
            }
        };
    }
    (!files.is_empty()).then_some(SeparatedText {
        text: others,
        files,
    })
}

/// An embedded file, and the text after it.
struct ParsedFile<'t> {
    file: EmbeddedFile,
    rest: &'t [u8],
}

/// Parses `begin MODE NAME`, encoded lines, and `end`. The end can be missing.
fn parse_uuencoded<'t>(line: &[u8], after: &'t [u8]) -> Option<ParsedFile<'t>> {
    let header = trim_line_end(line).strip_prefix(b"begin ")?;
    let (mode, name) = header.split_at_checked(header.iter().position(|b| *b == b' ')?)?;
    let is_mode = (3..=4).contains(&mode.len()) && mode.iter().all(|b| matches!(b, b'0'..=b'7'));
    let name = charset::decode(name.trim_ascii(), None);
    if !is_mode || name.is_empty() {
        return None;
    }
    let mut bytes = Vec::new();
    let mut rest = after;
    loop {
        let (line, after) = split_line(rest);
        let content = trim_line_end(line);
        if content == b"end" {
            rest = after;
            break;
        }
        if content == b"`" || content.trim_ascii().is_empty() && !rest.is_empty() {
            rest = after;
            continue;
        }
        if !append_uudecoded(&mut bytes, content) {
            break;
        }
        rest = after;
    }
    let file = EmbeddedFile { name, bytes };
    (!file.bytes.is_empty()).then_some(ParsedFile { file, rest })
}

/// Appends the decoded bytes of a line. Returns `false` if the line is not uuencoded.
fn append_uudecoded(bytes: &mut Vec<u8>, line: &[u8]) -> bool {
    let value = |byte: u8| u32::from(byte.wrapping_sub(b' ') & 63);
    let Some((&first, digits)) = line.split_first() else {
        return false;
    };
    let length = value(first) as usize;
    // Some programs remove trailing spaces, and some append a checksum.
    let expected = length.div_ceil(3) * 4;
    let valid = line.iter().all(|byte| (b' '..=b'`').contains(byte));
    if !valid || length == 0 || digits.len() > expected + 2 || digits.len() + 6 < expected {
        return false;
    }
    let end = bytes.len() + length;
    for group in digits.chunks(4) {
        let digit = |index: usize| group.get(index).map_or(0, |byte| value(*byte));
        let bits = digit(0) << 18 | digit(1) << 12 | digit(2) << 6 | digit(3);
        bytes.extend_from_slice(bits.to_be_bytes().get(1..).unwrap_or_default());
    }
    bytes.resize(end, 0);
    true
}

/// Parses `=ybegin … name=NAME`, an optional line `=ypart`, encoded lines, and `=yend`.
fn parse_yenc<'t>(line: &[u8], after: &'t [u8]) -> Option<ParsedFile<'t>> {
    let header = trim_line_end(line).strip_prefix(b"=ybegin ")?;
    let at = memchr::memmem::find(header, b"name=")?;
    let name = charset::decode(header.get(at + 5..)?.trim_ascii(), None);
    let mut bytes = Vec::new();
    let mut rest = after;
    while !rest.is_empty() {
        let (line, after) = split_line(rest);
        rest = after;
        if line.starts_with(YENC_END) {
            let file = EmbeddedFile { name, bytes };
            return (!file.name.is_empty()).then_some(ParsedFile { file, rest });
        }
        if line.starts_with(b"=ypart ") {
            continue;
        }
        let mut encoded = trim_line_end(line).iter();
        while let Some(&byte) = encoded.next() {
            let byte = match byte {
                b'=' => encoded.next().map_or(0, |next| next.wrapping_sub(64)),
                other => other,
            };
            bytes.push(byte.wrapping_sub(42));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_within_text_are_taken_out() {
        let text = b"before\nbegin 644 a b.txt\n%:&5L;&\\\n`\nend\nafter\nbegin 644 words\n";
        let separated = separate_embedded_files(text).expect("a file");
        assert_eq!(separated.text, b"before\nafter\nbegin 644 words\n");
        let file = EmbeddedFile {
            name: "a b.txt".into(),
            bytes: b"hello".to_vec(),
        };
        assert_eq!(separated.files, [file]);
        let text = b"=ybegin line=128 size=3 name=x.bin\r\n\x8b=\x8c\x8d\r\n=yend size=3\r\nz";
        let separated = separate_embedded_files(text).expect("a file");
        assert_eq!(separated.text, b"z");
        assert_eq!(separated.files[0].bytes, b"a\"c");
        assert_eq!(separate_embedded_files(b"begin the day\nend\n"), None);
        assert_eq!(
            separate_embedded_files(b"=ybegin line=128 name=x\nwords\n"),
            None
        );
    }
}
