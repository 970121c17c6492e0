//! Compressed files, archives and disk images.

use super::rows::{at, at_start, binary};
use crate::extractors::{ar, compressed, cpio, iso, rar, rpm, seven_zip, tar, zip_archive};
use crate::format::Extractor::{Archive, Stream};
use crate::format::{Detection, Format};

pub(super) const FORMATS: &[Format] = &[
    Format {
        name: "gzip",
        extensions: &["gz", "tgz", "svgz"],
        mime_types: &["application/gzip"],
        detection: binary(&[at_start(b"\x1f\x8b")]),
        extractor: Some(Stream(compressed::extract_gzip)),
    },
    Format {
        name: "bzip2",
        extensions: &["bz2", "tbz", "tbz2"],
        mime_types: &["application/x-bzip2"],
        detection: binary(&[at_start(b"BZh")]),
        extractor: Some(Stream(compressed::extract_bzip2)),
    },
    Format {
        name: "xz file",
        extensions: &["xz", "txz"],
        mime_types: &["application/x-xz"],
        detection: binary(&[at_start(b"\xfd7zXZ\0")]),
        extractor: Some(Stream(compressed::extract_xz)),
    },
    Format {
        name: "Zstandard",
        extensions: &["zst", "tzst"],
        mime_types: &["application/zstd"],
        detection: Detection::Binary {
            signatures: &[at_start(b"\x28\xb5\x2f\xfd")],
            test: Some(compressed::is_skippable_frame),
        },
        extractor: Some(Stream(compressed::extract_zstandard)),
    },
    Format {
        name: "LZ4",
        extensions: &["lz4"],
        mime_types: &["application/x-lz4"],
        detection: binary(&[at_start(b"\x04\x22\x4d\x18"), at_start(b"\x02\x21\x4c\x18")]),
        extractor: Some(Stream(compressed::extract_lz4)),
    },
    Format {
        name: "lzip",
        extensions: &["lz"],
        mime_types: &["application/x-lzip"],
        detection: binary(&[at_start(b"LZIP\x01")]),
        extractor: Some(Stream(compressed::extract_lzip)),
    },
    Format {
        name: "compress",
        extensions: &["z", "taz"],
        mime_types: &["application/x-compress"],
        detection: binary(&[at_start(b"\x1f\x9d")]),
        extractor: Some(Stream(compressed::extract_compress)),
    },
    Format {
        name: "lzma file",
        extensions: &["lzma", "tlz"],
        mime_types: &["application/x-lzma"],
        detection: Detection::Binary {
            signatures: &[],
            test: Some(compressed::is_lzma),
        },
        extractor: Some(Stream(compressed::extract_lzma)),
    },
    Format {
        name: "tar archive",
        extensions: &["tar"],
        mime_types: &["application/x-tar"],
        detection: Detection::Binary {
            signatures: &[at(257, b"ustar")],
            test: Some(tar::is_tar),
        },
        extractor: Some(Stream(tar::extract)),
    },
    Format {
        name: "zip archive",
        extensions: &["zip", "jar", "pyz"],
        mime_types: &["application/zip", "application/java-archive"],
        detection: Detection::Binary {
            // The third signature is that of a split archive, which may consist of one part.
            signatures: &[
                at_start(b"PK\x03\x04"),
                at_start(b"PK\x05\x06"),
                at_start(b"PK\x07\x08PK"),
            ],
            test: Some(zip_archive::is_script_archive),
        },
        extractor: Some(Archive(zip_archive::extract)),
    },
    Format {
        name: "7z archive",
        extensions: &["7z"],
        mime_types: &["application/x-7z-compressed"],
        detection: binary(&[at_start(b"7z\xbc\xaf\x27\x1c")]),
        extractor: Some(Archive(seven_zip::extract)),
    },
    Format {
        name: "RAR archive",
        extensions: &["rar"],
        mime_types: &["application/vnd.rar", "application/x-rar-compressed"],
        detection: binary(&[at_start(b"Rar!\x1a\x07"), at_start(b"RE\x7e\x5e")]),
        extractor: Some(Archive(rar::extract)),
    },
    Format {
        name: "ar archive",
        extensions: &["deb", "udeb", "a"],
        mime_types: &[
            "application/vnd.debian.binary-package",
            "application/x-archive",
        ],
        detection: binary(&[at_start(b"!<arch>\n")]),
        extractor: Some(Stream(ar::extract)),
    },
    Format {
        name: "cpio archive",
        extensions: &["cpio"],
        mime_types: &["application/x-cpio"],
        detection: binary(&[
            at_start(b"070701"),
            at_start(b"070702"),
            at_start(b"070707"),
        ]),
        extractor: Some(Stream(cpio::extract)),
    },
    Format {
        name: "ISO 9660 image",
        extensions: &["iso"],
        mime_types: &["application/vnd.efi.iso", "application/x-iso9660-image"],
        detection: Detection::Binary {
            signatures: &[],
            test: Some(iso::is_image),
        },
        extractor: Some(Stream(iso::extract)),
    },
    Format {
        name: "RPM package",
        extensions: &["rpm"],
        mime_types: &["application/x-rpm"],
        detection: binary(&[at_start(b"\xed\xab\xee\xdb")]),
        extractor: Some(Stream(rpm::extract)),
    },
];
