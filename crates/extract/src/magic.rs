//! File signatures ("magic numbers"). Source:
//! <https://en.wikipedia.org/wiki/List_of_file_signatures>.

/// What a file signature identifies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signature {
    Pdf,
    Gzip,
    Zip,
    /// A known kind without text that this crate can read.
    Other(&'static str),
}

/// Offset, bytes and meaning of each signature. The first match counts.
const SIGNATURES: &[(usize, &[u8], Signature)] = &[
    (0, b"%PDF-", Signature::Pdf),
    (0, b"\x1f\x8b", Signature::Gzip),
    (0, b"PK\x03\x04", Signature::Zip),
    (0, b"PK\x05\x06", Signature::Zip),
    (0, b"\x89PNG\r\n", Signature::Other("PNG image")),
    (0, b"\xff\xd8\xff", Signature::Other("JPEG image")),
    (0, b"GIF87a", Signature::Other("GIF image")),
    (0, b"GIF89a", Signature::Other("GIF image")),
    (8, b"WEBP", Signature::Other("WebP image")),
    (0, b"II*\0", Signature::Other("TIFF image")),
    (0, b"MM\0*", Signature::Other("TIFF image")),
    (0, b"\0\0\x01\0", Signature::Other("icon")),
    (0, b"\x7fELF", Signature::Other("ELF program")),
    (
        0,
        b"\xca\xfe\xba\xbe",
        Signature::Other("Java class or Mach-O program"),
    ),
    (0, b"\xcf\xfa\xed\xfe", Signature::Other("Mach-O program")),
    (
        0,
        b"!<arch>\n",
        Signature::Other("ar archive or Debian package"),
    ),
    (0, b"BZh", Signature::Other("bzip2 archive")),
    (0, b"\xfd7zXZ\0", Signature::Other("xz archive")),
    (
        0,
        b"\x28\xb5\x2f\xfd",
        Signature::Other("Zstandard archive"),
    ),
    (0, b"7z\xbc\xaf\x27\x1c", Signature::Other("7z archive")),
    (0, b"Rar!\x1a\x07", Signature::Other("RAR archive")),
    (257, b"ustar", Signature::Other("tar archive")),
    (
        0,
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
        Signature::Other("legacy Office document"),
    ),
    (0, b"{\\rtf", Signature::Other("RTF document")),
    (0, b"%!PS", Signature::Other("PostScript document")),
    (0, b"SQLite format 3\0", Signature::Other("SQLite database")),
    (0, b"OggS", Signature::Other("Ogg media")),
    (0, b"fLaC", Signature::Other("FLAC audio")),
    (0, b"ID3", Signature::Other("MP3 audio")),
    (8, b"WAVE", Signature::Other("WAV audio")),
    (4, b"ftyp", Signature::Other("MPEG-4 media")),
    (0, b"\x1a\x45\xdf\xa3", Signature::Other("Matroska media")),
    (0, b"wOFF", Signature::Other("font")),
    (0, b"wOF2", Signature::Other("font")),
    (0, b"\0\x01\0\0\0", Signature::Other("font")),
    (0, b"OTTO", Signature::Other("font")),
    (
        0,
        b"\xde\x12\x04\x95",
        Signature::Other("message catalogue"),
    ),
    (
        0,
        b"\x95\x04\x12\xde",
        Signature::Other("message catalogue"),
    ),
];

/// Returns the meaning of the file's signature, if it has a known one.
pub(crate) fn find_signature(bytes: &[u8]) -> Option<Signature> {
    SIGNATURES
        .iter()
        .find(|(offset, magic, _)| {
            bytes
                .get(*offset..)
                .is_some_and(|rest| rest.starts_with(magic))
        })
        .map(|(_, _, signature)| *signature)
}
