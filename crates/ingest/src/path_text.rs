//! Paths as text and back, without loss.
//!
//! A path on Unix is bytes, a string in a document is UTF-8. Bytes that are not UTF-8 become `\xHH`
//! and a backslash becomes `\\`; everything else stands for itself. So nearly every path reads as
//! it is, and different paths never read alike.

use std::ffi::OsString;
use std::fmt::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// The text for `path`.
pub fn path_to_text(path: &Path) -> String {
    let mut text = String::with_capacity(path.as_os_str().len());
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        text.push_str(&chunk.valid().replace('\\', "\\\\"));
        for byte in chunk.invalid() {
            // Writing into a String does not fail.
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

/// The path that `text` stands for, if [`path_to_text`] can have made it.
pub fn text_to_path(text: &str) -> Option<PathBuf> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, escape)) = rest.split_once('\\') {
        bytes.extend_from_slice(before.as_bytes());
        rest = if let Some(rest) = escape.strip_prefix('\\') {
            bytes.push(b'\\');
            rest
        } else {
            let digits = escape.strip_prefix('x')?.get(..2)?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            escape.get(3..)?
        };
    }
    bytes.extend_from_slice(rest.as_bytes());
    Some(PathBuf::from(OsString::from_vec(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;

    #[test]
    fn every_path_comes_back() {
        let cases: [(&[u8], &str); 6] = [
            (b"/home/ada/notes.txt", "/home/ada/notes.txt"),
            ("/größe/日本".as_bytes(), "/größe/日本"),
            (b"/caf\xe9.txt", "/caf\\xe9.txt"),
            (b"/a\\xe9", "/a\\\\xe9"),
            (b"\xff\\\xfe\\", "\\xff\\\\\\xfe\\\\"),
            (b"", ""),
        ];
        for (bytes, text) in cases {
            let path = Path::new(OsStr::from_bytes(bytes));
            assert_eq!(path_to_text(path), text);
            assert_eq!(text_to_path(text).as_deref(), Some(path));
        }
        for text in ["\\", "\\x", "\\xg0", "\\n", "a\\x1"] {
            assert_eq!(text_to_path(text), None, "{text}");
        }
    }
}
