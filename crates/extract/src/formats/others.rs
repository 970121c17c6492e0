//! Programs and other files, most of which have no text.

use super::rows::{at_start, binary, unsupported};
use crate::extractors::{message_catalogue, torrent};
use crate::format::Extractor::Document;
use crate::format::{Detection, Format};

pub(super) const FORMATS: &[Format] = &[
    // Programs.
    unsupported("ELF program", &[at_start(b"\x7fELF")]),
    unsupported(
        "Java class or Mach-O program",
        &[at_start(b"\xca\xfe\xba\xbe")],
    ),
    unsupported("Mach-O program", &[at_start(b"\xcf\xfa\xed\xfe")]),
    // Documents.
    // Converters can read this format.
    Format {
        name: "PostScript document",
        extensions: &["ps", "eps"],
        mime_types: &["application/postscript"],
        detection: binary(&[at_start(b"%!PS")]),
        extractor: None,
    },
    unsupported("SQLite database", &[at_start(b"SQLite format 3\0")]),
    // Others.
    unsupported(
        "font",
        &[
            at_start(b"wOFF"),
            at_start(b"wOF2"),
            at_start(b"\0\x01\0\0\0"),
            at_start(b"OTTO"),
        ],
    ),
    Format {
        name: "message catalogue",
        extensions: &["mo", "gmo"],
        mime_types: &["application/x-gettext-translation"],
        detection: binary(&[at_start(b"\xde\x12\x04\x95"), at_start(b"\x95\x04\x12\xde")]),
        extractor: Some(Document(message_catalogue::extract_compiled)),
    },
    Format {
        name: "torrent file",
        extensions: &["torrent"],
        mime_types: &["application/x-bittorrent"],
        detection: Detection::Binary {
            signatures: &[],
            test: Some(torrent::is_torrent),
        },
        extractor: Some(Document(torrent::extract)),
    },
];
