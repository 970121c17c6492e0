use std::collections::HashSet;

use super::*;
use crate::error::ExtractError;
use crate::format::{Input, detect};

fn check(name: &str, bytes: &[u8], expected: &str) {
    let found = match detect(&FORMATS, &Input { name, bytes }) {
        Ok(format) => format.name,
        Err(ExtractError::Unsupported(format)) => format,
        Err(error) => panic!("{name}: {error}"),
    };
    assert_eq!(found, expected, "{name}");
}

#[test]
fn signatures_take_precedence_over_the_name() {
    check("a.txt", b"%PDF-1.4 ...", "PDF");
    check("a.pdf", b"junk\n%PDF-1.4 ...", "PDF");
    check("a.txt", b"junk\n%PDF-1.4 ...", "plain text");
    check("a.txt", b"\x1f\x8b\x08\0", "gzip");
    check("a.jar", b"PK\x03\x04....", "zip archive");
    check("a.txt", b"\x89PNG\r\n\x1a\n", "PNG image");
    check("a.txt", b"ab\0\0\0\x01\x02cd", "binary data");
    check("a.txt", b"<!-- x --> <!DOCTYPE HTML>", "HTML");
    check("page", b"<?xml version='1.0'?>\n<html>", "HTML");
    check("inbox", b"From a@b Mon Jan 1\nFrom: a\n\nhi", "mbox");
    check("letter.txt", b"From here on\nwe walk", "plain text");
    check(
        "msg",
        b"Return-Path: <a>\nReceived: x\n\ty\nSubject: z\n",
        "mail",
    );
    check(
        "copyright",
        b"Format: https://x\nUpstream-Name: y\nSource: z\n",
        "plain text",
    );
}

#[test]
fn the_name_selects_the_text_format() {
    check("a.md", b"# T", "Markdown");
    check("a.HTM", b"words", "HTML");
    check("a.eml", b"words", "mail");
    check("a.php", b"<html><?php ?>", "source code");
    check(
        "a.patch",
        b"From 0123 Mon\nFrom: x\nSubject: y\n",
        "source code",
    );
    check("a.rst", b"Title\n=====\n", "reStructuredText");
    check("a.txt", b"", "plain text");
}

/// Otherwise the order of the rows would decide about a duplicate.
#[test]
fn names_extensions_and_mime_types_are_unique_and_lower_case() {
    let mut words = HashSet::new();
    for format in FORMATS.iter() {
        assert!(words.insert(format.name), "{}", format.name);
        for word in format.extensions.iter().chain(format.mime_types) {
            assert_eq!(*word, word.to_ascii_lowercase());
            assert!(!word.starts_with('.') && words.insert(word), "{word}");
        }
    }
}
