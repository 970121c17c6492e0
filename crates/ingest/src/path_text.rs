//! Lossless conversion of paths to text and back. Unix paths are bytes, but strings in documents
//! are UTF-8. Bytes that are not UTF-8 become `\xHH`, and a backslash becomes `\\`. Different paths
//! have different texts, and nearly all paths are unchanged.

use std::ffi::OsString;
use std::fmt::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Converts a path to text.
///
/// ```
/// use std::ffi::OsStr;
/// use std::os::unix::ffi::OsStrExt;
/// use std::path::Path;
/// use windrow_ingest::{path_to_text, text_to_path};
///
/// let path = Path::new(OsStr::from_bytes(b"/caf\xe9"));
/// assert_eq!(path_to_text(path), r"/caf\xe9");
/// assert_eq!(text_to_path(r"/caf\xe9").as_deref(), Some(path));
/// ```
pub fn path_to_text(path: &Path) -> String {
    let mut text = String::with_capacity(path.as_os_str().len());
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        text.push_str(&chunk.valid().replace('\\', "\\\\"));
        for byte in chunk.invalid() {
            // Writing to a string cannot fail.
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

/// Converts text back to a path. Returns `None` if [`path_to_text`] cannot have created it.
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
    fn conversion_is_lossless() {
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
