//! Detection of a file's format by its content and its name.

use crate::encoding;
use crate::magic::{Signature, find_signature};
use crate::syntax::{detect_syntax, extension};

/// The format of a file or member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Pdf,
    Gzip,
    Zip,
    Mbox,
    Mail,
    Html,
    Markdown,
    /// Source code in the language of this name.
    Source(&'static str),
    Text,
    Unsupported(&'static str),
}

/// Returns the format of a file. `bytes` are its first bytes; a few KB are enough.
pub(crate) fn detect(name: &str, bytes: &[u8]) -> Format {
    match find_signature(bytes) {
        Some(Signature::Pdf) => Format::Pdf,
        Some(Signature::Gzip) => Format::Gzip,
        Some(Signature::Zip) => Format::Zip,
        Some(Signature::Other(what)) => Format::Unsupported(what),
        None => detect_without_signature(name, bytes),
    }
}

fn detect_without_signature(name: &str, bytes: &[u8]) -> Format {
    let extension = extension(name).unwrap_or("").to_ascii_lowercase();
    if extension == "pdf" && memchr::memmem::find(take_prefix(bytes, 1024), b"%PDF-").is_some() {
        return Format::Pdf;
    }
    if encoding::is_binary(bytes) {
        return Format::Unsupported("binary data");
    }
    match extension.as_str() {
        "eml" => Format::Mail,
        "md" | "markdown" | "mkd" | "mdown" => Format::Markdown,
        "html" | "htm" | "xhtml" | "shtml" => Format::Html,
        _ => detect_text(name, bytes),
    }
}

fn detect_text(name: &str, bytes: &[u8]) -> Format {
    if let Some(language) = detect_syntax(name, bytes) {
        return Format::Source(language);
    }
    if looks_like_mbox(bytes) {
        Format::Mbox
    } else if looks_like_mail(bytes) {
        Format::Mail
    } else if looks_like_html(bytes) {
        Format::Html
    } else {
        Format::Text
    }
}

/// `From ` followed by a header line. Prose can begin with "From ", but no header follows there.
pub(crate) fn looks_like_mbox(bytes: &[u8]) -> bool {
    let mut lines = take_prefix(bytes, 4096).split(|&byte| byte == b'\n');
    let first = lines.next().is_some_and(|line| line.starts_with(b"From "));
    first && lines.next().and_then(parse_header_name).is_some()
}

/// Two known mail headers among the first lines, and no other lines before the second.
fn looks_like_mail(bytes: &[u8]) -> bool {
    const HEADERS: [&[u8]; 11] = [
        b"from",
        b"to",
        b"subject",
        b"date",
        b"received",
        b"return-path",
        b"message-id",
        b"mime-version",
        b"delivered-to",
        b"reply-to",
        b"dkim-signature",
    ];
    let lines = take_prefix(bytes, 8192)
        .split(|&byte| byte == b'\n')
        .take(60);
    let mut found = 0;
    for line in lines.filter(|line| !line.first().is_some_and(|b| matches!(b, b' ' | b'\t'))) {
        let Some(name) = parse_header_name(line) else {
            return false;
        };
        found += usize::from(HEADERS.iter().any(|known| known.eq_ignore_ascii_case(name)));
        if found == 2 {
            return true;
        }
    }
    false
}

fn parse_header_name(line: &[u8]) -> Option<&[u8]> {
    let colon = memchr::memchr(b':', take_prefix(line, 80))?;
    let name = line.get(..colon)?;
    let valid = !name.is_empty() && name.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'-');
    valid.then_some(name)
}

/// A doctype or one of the outermost elements, after white space, comments and XML declarations.
fn looks_like_html(bytes: &[u8]) -> bool {
    let mut rest = take_prefix(bytes, 4096);
    rest = rest.strip_prefix(b"\xef\xbb\xbf").unwrap_or(rest);
    loop {
        rest = rest.trim_ascii_start();
        let end: &[u8] = match rest {
            _ if starts_with_ignoring_case(rest, b"<!--") => b"-->",
            _ if starts_with_ignoring_case(rest, b"<?xml") => b"?>",
            _ => break,
        };
        let Some(at) = memchr::memmem::find(rest, end) else {
            return false;
        };
        rest = rest.get(at + end.len()..).unwrap_or_default();
    }
    const STARTS: [&[u8]; 4] = [b"<!doctype html", b"<html", b"<head", b"<body"];
    STARTS
        .iter()
        .any(|start| starts_with_ignoring_case(rest, start))
}

fn starts_with_ignoring_case(bytes: &[u8], start: &[u8]) -> bool {
    bytes
        .get(..start.len())
        .is_some_and(|first| first.eq_ignore_ascii_case(start))
}

fn take_prefix(bytes: &[u8], length: usize) -> &[u8] {
    bytes.get(..length).unwrap_or(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, bytes: &[u8], expected: Format) {
        assert_eq!(detect(name, bytes), expected, "{name}");
    }

    #[test]
    fn signatures_take_precedence_over_the_name() {
        check("a.txt", b"%PDF-1.4 ...", Format::Pdf);
        check("a.pdf", b"junk\n%PDF-1.4 ...", Format::Pdf);
        check("a.txt", b"junk\n%PDF-1.4 ...", Format::Text);
        check("a.txt", b"\x1f\x8b\x08\0", Format::Gzip);
        check("a.jar", b"PK\x03\x04....", Format::Zip);
        check(
            "a.txt",
            b"\x89PNG\r\n\x1a\n",
            Format::Unsupported("PNG image"),
        );
        check(
            "a.txt",
            b"ab\0\0\0\x01\x02cd",
            Format::Unsupported("binary data"),
        );
        check("a.txt", b"<!-- x --> <!DOCTYPE HTML>", Format::Html);
        check("page", b"<?xml version='1.0'?>\n<html>", Format::Html);
        check("inbox", b"From a@b Mon Jan 1\nFrom: a\n\nhi", Format::Mbox);
        check("letter.txt", b"From here on\nwe walk", Format::Text);
        check(
            "msg",
            b"Return-Path: <a>\nReceived: x\n\ty\nSubject: z\n",
            Format::Mail,
        );
        check(
            "copyright",
            b"Format: https://x\nUpstream-Name: y\nSource: z\n",
            Format::Text,
        );
    }

    #[test]
    fn the_name_selects_the_kind_of_text() {
        check("a.md", b"# T", Format::Markdown);
        check("a.HTM", b"words", Format::Html);
        check("a.eml", b"words", Format::Mail);
        check("a.php", b"<html><?php ?>", Format::Source("php"));
        check(
            "a.patch",
            b"From 0123 Mon\nFrom: x\nSubject: y\n",
            Format::Source("diff"),
        );
        check("a.rst", b"Title\n=====\n", Format::Text);
        check("a.txt", b"", Format::Text);
    }
}
