//! Lines of bytes, which end in LF or CR LF.

/// Splits off the first line with its line break.
pub(crate) fn split_line(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = memchr::memchr(b'\n', bytes).map_or(bytes.len(), |at| at + 1);
    bytes.split_at_checked(end).unwrap_or((bytes, &[]))
}

/// Returns the line without its line break.
pub(crate) fn trim_line_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}
