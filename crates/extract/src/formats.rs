//! The table of all formats. A new format is a row here and an extractor in [`crate::extractors`].
//!
//! Sources: <https://en.wikipedia.org/wiki/List_of_file_signatures> for signatures,
//! <https://www.iana.org/assignments/media-types> for MIME types.

mod rows;

use crate::extractors::markup::{asciidoc, org_mode, perl_documentation, restructured_text};
use crate::extractors::{
    ar, bibliography, compressed, cpio, djvu, epub, feed, fiction_book, html, info_manual, iso,
    iwork, latex, legacy_office, mail, manual_page, markdown, mbox, notebook, office_open_xml,
    open_document, outlook, pdf, plain_text, rar, rpm, rtf, seven_zip, source_code, table, tar,
    texinfo, xml_document, zip_archive,
};
use crate::extractors::{media, message_catalogue, personal, subtitles, torrent};
use crate::format::Extractor::{Archive, Container, Document, Package, Stream};
use crate::format::{Detection, Format};
use rows::{at, at_start, binary, media, media_by_test, text, unsupported};

/// All formats. If several formats match a file in the same step of [`crate::format::detect`], the
/// first one counts.
pub(crate) static FORMATS: &[Format] = &[
    Format {
        name: "PDF",
        extensions: &["pdf"],
        mime_types: &["application/pdf"],
        detection: Detection::Binary {
            signatures: &[at_start(b"%PDF-")],
            test: Some(pdf::has_late_header),
        },
        extractor: Some(Container(pdf::extract)),
    },
    Format {
        name: "DjVu document",
        extensions: &["djvu", "djv"],
        mime_types: &["image/vnd.djvu"],
        detection: binary(&[at_start(b"AT&TFORM")]),
        extractor: Some(Container(djvu::extract)),
    },
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
            // The third one is that of an archive in parts, which may have only one.
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
    Format {
        name: "legacy Office document",
        extensions: &["doc", "dot", "xls", "xlt", "ppt", "pps", "pot"],
        mime_types: &[
            "application/msword",
            "application/vnd.ms-excel",
            "application/vnd.ms-powerpoint",
        ],
        detection: binary(&[at_start(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")]),
        extractor: Some(Container(legacy_office::extract)),
    },
    Format {
        name: "Outlook message",
        extensions: &["msg", "oft"],
        mime_types: &["application/vnd.ms-outlook"],
        detection: Detection::CompoundStream("__properties_version1.0"),
        extractor: Some(Container(outlook::extract_message)),
    },
    Format {
        name: "TNEF attachment",
        extensions: &["tnef"],
        mime_types: &["application/vnd.ms-tnef", "application/ms-tnef"],
        detection: binary(&[at_start(b"\x78\x9f\x3e\x22")]),
        extractor: Some(Container(outlook::extract_tnef)),
    },
    Format {
        name: "RTF document",
        extensions: &["rtf"],
        mime_types: &["application/rtf", "text/rtf"],
        detection: binary(&[at_start(b"{\\rtf")]),
        extractor: Some(Document(rtf::extract)),
    },
    Format {
        name: "Markdown",
        extensions: &["md", "markdown", "mkd", "mdown"],
        mime_types: &["text/markdown"],
        detection: Detection::Text { test: None },
        extractor: Some(Document(markdown::extract)),
    },
    Format {
        name: "FictionBook",
        extensions: &["fb2"],
        mime_types: &["application/x-fictionbook+xml"],
        detection: text(fiction_book::is_fiction_book),
        extractor: Some(Document(fiction_book::extract)),
    },
    Format {
        name: "table",
        extensions: &["csv", "tsv", "tab"],
        mime_types: &["text/csv", "text/tab-separated-values"],
        detection: Detection::Text { test: None },
        extractor: Some(Document(table::extract)),
    },
    Format {
        name: "AsciiDoc",
        extensions: &["adoc", "asciidoc", "asc"],
        mime_types: &["text/asciidoc"],
        detection: Detection::Text { test: None },
        extractor: Some(Document(asciidoc::extract)),
    },
    Format {
        name: "reStructuredText",
        extensions: &["rst", "rest"],
        mime_types: &["text/x-rst"],
        detection: Detection::Text { test: None },
        extractor: Some(Document(restructured_text::extract)),
    },
    Format {
        name: "Org",
        extensions: &["org"],
        mime_types: &["text/org"],
        detection: Detection::Text { test: None },
        extractor: Some(Document(org_mode::extract)),
    },
    Format {
        name: "POD",
        extensions: &["pod"],
        mime_types: &["text/x-pod"],
        detection: Detection::Text { test: None },
        extractor: Some(Document(perl_documentation::extract)),
    },
    Format {
        name: "Texinfo",
        extensions: &["texi", "texinfo", "txi"],
        mime_types: &["application/x-texinfo"],
        detection: text(texinfo::is_texinfo),
        extractor: Some(Document(texinfo::extract)),
    },
    Format {
        name: "Info manual",
        // Parts are named `gawk.info-1`.
        extensions: &["info"],
        mime_types: &["application/x-info"],
        detection: text(info_manual::is_info),
        extractor: Some(Container(info_manual::extract)),
    },
    Format {
        name: "notebook",
        extensions: &["ipynb"],
        mime_types: &["application/x-ipynb+json"],
        detection: Detection::Text { test: None },
        extractor: Some(Document(notebook::extract)),
    },
    Format {
        name: "feed",
        extensions: &["rss", "atom"],
        mime_types: &["application/rss+xml", "application/atom+xml"],
        detection: text(feed::is_feed),
        extractor: Some(Document(feed::extract)),
    },
    Format {
        name: "SVG image",
        extensions: &["svg"],
        mime_types: &["image/svg+xml"],
        detection: Detection::Text { test: None },
        extractor: Some(Document(xml_document::extract_svg)),
    },
    Format {
        name: "gettext source",
        extensions: &["po"],
        mime_types: &["text/x-gettext-translation"],
        detection: Detection::Text { test: None },
        extractor: Some(Document(message_catalogue::extract_source)),
    },
    Format {
        name: "address book",
        extensions: &["vcf", "vcard"],
        mime_types: &["text/vcard"],
        detection: text(personal::is_address_book),
        extractor: Some(Container(personal::extract_address_book)),
    },
    Format {
        name: "calendar",
        extensions: &["ics", "ical", "ifb", "vcs"],
        mime_types: &["text/calendar"],
        detection: text(personal::is_calendar),
        extractor: Some(Container(personal::extract_calendar)),
    },
    Format {
        name: "subtitles",
        extensions: &["srt", "vtt", "ass", "ssa"],
        mime_types: &["application/x-subrip", "text/vtt"],
        detection: text(subtitles::is_subtitles),
        extractor: Some(Document(subtitles::extract)),
    },
    Format {
        name: "LaTeX",
        extensions: &["tex", "ltx", "latex"],
        mime_types: &["text/x-tex", "application/x-latex"],
        detection: Detection::Text { test: None },
        extractor: Some(Document(latex::extract)),
    },
    Format {
        name: "BibTeX",
        extensions: &["bib"],
        mime_types: &["text/x-bibtex"],
        detection: Detection::Text { test: None },
        extractor: Some(Document(bibliography::extract)),
    },
    Format {
        name: "manual page",
        // The extensions are numbers.
        extensions: &["man", "mdoc"],
        mime_types: &["text/troff", "text/x-troff-man"],
        detection: text(manual_page::is_manual_page),
        extractor: Some(Document(manual_page::extract)),
    },
    Format {
        name: "source code",
        // The extensions of programming languages are in `source_code/syntax.rs`.
        extensions: &[],
        mime_types: &[],
        detection: text(source_code::is_source_code),
        extractor: Some(Document(source_code::extract)),
    },
    Format {
        name: "mbox",
        // A mailbox can have any name.
        extensions: &[],
        mime_types: &["application/mbox"],
        detection: text(mbox::is_mbox),
        extractor: Some(Stream(mbox::extract)),
    },
    Format {
        name: "mail",
        extensions: &["eml", "emlx", "mht", "mhtml"],
        mime_types: &["message/rfc822"],
        detection: text(mail::is_mail),
        extractor: Some(Container(mail::extract)),
    },
    Format {
        name: "HTML",
        extensions: &["html", "htm", "xhtml", "shtml"],
        mime_types: &["text/html", "application/xhtml+xml"],
        detection: text(html::is_html),
        extractor: Some(Document(html::extract)),
    },
    Format {
        name: "XML document",
        // Formats with other extractors are XML, too, so the extension `xml` says nothing.
        extensions: &["dbk", "docbook", "tei", "abw", "gnumeric", "dia"],
        mime_types: &["application/xml", "text/xml", "application/docbook+xml"],
        detection: text(xml_document::is_xml),
        extractor: Some(Document(xml_document::extract)),
    },
    Format {
        name: "plain text",
        extensions: &["txt"],
        mime_types: &["text/plain"],
        detection: Detection::OtherText,
        extractor: Some(Document(plain_text::extract)),
    },
    // Documents in zip archives.
    Format {
        name: "Office document",
        extensions: &[
            "docx", "docm", "dotx", "dotm", "xlsx", "xlsm", "xltx", "xltm", "pptx", "pptm", "potx",
            "potm", "ppsx", "ppsm",
        ],
        mime_types: &[
            "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
            "application/vnd.openxmlformats-officedocument.wordprocessingml.template",
            "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
            "application/vnd.openxmlformats-officedocument.spreadsheetml.template",
            "application/vnd.openxmlformats-officedocument.presentationml.presentation",
            "application/vnd.openxmlformats-officedocument.presentationml.template",
            "application/vnd.openxmlformats-officedocument.presentationml.slideshow",
            "application/vnd.ms-word.document.macroenabled.12",
            "application/vnd.ms-word.template.macroenabled.12",
            "application/vnd.ms-excel.sheet.macroenabled.12",
            "application/vnd.ms-excel.template.macroenabled.12",
            "application/vnd.ms-powerpoint.presentation.macroenabled.12",
            "application/vnd.ms-powerpoint.template.macroenabled.12",
            "application/vnd.ms-powerpoint.slideshow.macroenabled.12",
        ],
        detection: Detection::ZipMembers(&["[Content_Types].xml"]),
        extractor: Some(Package(office_open_xml::extract)),
    },
    Format {
        name: "EPUB book",
        extensions: &["epub"],
        mime_types: &["application/epub+zip"],
        detection: Detection::ZipMembers(&["mimetype", "META-INF/container.xml"]),
        extractor: Some(Package(epub::extract)),
    },
    Format {
        name: "OpenDocument file",
        extensions: &["odt", "ods", "odp", "odg", "ott", "ots", "otp", "otg"],
        mime_types: &[
            "application/vnd.oasis.opendocument.text",
            "application/vnd.oasis.opendocument.spreadsheet",
            "application/vnd.oasis.opendocument.presentation",
            "application/vnd.oasis.opendocument.graphics",
            "application/vnd.oasis.opendocument.text-template",
            "application/vnd.oasis.opendocument.spreadsheet-template",
            "application/vnd.oasis.opendocument.presentation-template",
            "application/vnd.oasis.opendocument.graphics-template",
        ],
        detection: Detection::ZipMembers(&["mimetype", "META-INF/manifest.xml"]),
        extractor: Some(Package(open_document::extract)),
    },
    Format {
        name: "iWork document",
        extensions: &["pages", "numbers", "key"],
        mime_types: &[
            "application/vnd.apple.pages",
            "application/vnd.apple.numbers",
            "application/vnd.apple.keynote",
        ],
        detection: Detection::ZipMembers(&[iwork::ROOT_MEMBER]),
        extractor: Some(Package(iwork::extract)),
    },
    // Images.
    media(
        "PNG image",
        &["png"],
        &["image/png"],
        &[at_start(b"\x89PNG\r\n")],
        media::extract_png,
    ),
    media(
        "JPEG image",
        &["jpg", "jpeg", "jpe", "jfif"],
        &["image/jpeg"],
        &[at_start(b"\xff\xd8\xff")],
        media::extract_jpeg,
    ),
    media(
        "GIF image",
        &["gif"],
        &["image/gif"],
        &[at_start(b"GIF87a"), at_start(b"GIF89a")],
        media::extract_gif,
    ),
    media(
        "WebP image",
        &["webp"],
        &["image/webp"],
        &[at(8, b"WEBPVP8")],
        media::extract_webp,
    ),
    media(
        "TIFF image",
        &["tiff", "tif", "dng", "nef", "cr2", "arw"],
        &["image/tiff"],
        &[at_start(b"II*\0"), at_start(b"MM\0*")],
        media::extract_exif,
    ),
    media(
        "HEIF image",
        &["heic", "heif", "avif"],
        &["image/heic", "image/heif", "image/avif"],
        &[
            at(4, b"ftyphei"),
            at(4, b"ftypmif1"),
            at(4, b"ftypmsf1"),
            at(4, b"ftypavi"),
        ],
        media::extract_exif,
    ),
    unsupported("icon", &[at_start(b"\0\0\x01\0")]),
    // Programs.
    unsupported("ELF program", &[at_start(b"\x7fELF")]),
    unsupported(
        "Java class or Mach-O program",
        &[at_start(b"\xca\xfe\xba\xbe")],
    ),
    unsupported("Mach-O program", &[at_start(b"\xcf\xfa\xed\xfe")]),
    // Archives.
    // Its parts refer to each other, and it is far larger than a file that is read into memory.
    unsupported("Outlook data file", &[at_start(b"!BDN")]),
    // Documents.
    unsupported("PostScript document", &[at_start(b"%!PS")]),
    unsupported("SQLite database", &[at_start(b"SQLite format 3\0")]),
    // Audio and video.
    media(
        "Ogg media",
        &["ogg", "oga", "opus", "spx"],
        &["audio/ogg", "application/ogg", "audio/opus"],
        &[at_start(b"OggS")],
        media::extract_audio,
    ),
    media(
        "FLAC audio",
        &["flac"],
        &["audio/flac"],
        &[at_start(b"fLaC")],
        media::extract_audio,
    ),
    media_by_test(
        "MP3 audio",
        &["mp3", "mp2", "aac"],
        &["audio/mpeg", "audio/aac"],
        media::is_mpeg_audio,
        media::extract_audio,
    ),
    media_by_test(
        "WAV audio",
        &["wav"],
        &["audio/vnd.wave"],
        |input| media::is_chunked(input, b"RIFF", &[b"WAVE"]),
        media::extract_audio,
    ),
    media_by_test(
        "AIFF audio",
        &["aiff", "aif", "aifc"],
        &["audio/aiff"],
        |input| media::is_chunked(input, b"FORM", &[b"AIFF", b"AIFC"]),
        media::extract_audio,
    ),
    media(
        "WavPack audio",
        &["wv"],
        &["audio/x-wavpack"],
        &[at_start(b"wvpk")],
        media::extract_audio,
    ),
    media(
        "MPEG-4 audio",
        &["m4a", "m4b"],
        &["audio/mp4"],
        &[at(4, b"ftypM4A"), at(4, b"ftypM4B")],
        media::extract_audio,
    ),
    media(
        "MPEG-4 video",
        &["mp4", "m4v", "mov", "3gp"],
        &["video/mp4", "video/quicktime", "video/3gpp"],
        &[at(4, b"ftyp"), at(4, b"moov")],
        media::extract_video,
    ),
    media(
        "AVI video",
        &["avi"],
        &["video/vnd.avi"],
        &[at(8, b"AVI LIST")],
        media::extract_avi,
    ),
    media(
        "Matroska media",
        &["mkv", "webm", "mka"],
        &["video/matroska", "video/webm", "audio/matroska"],
        &[at_start(b"\x1a\x45\xdf\xa3")],
        media::extract_matroska,
    ),
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

/// Returns the formats from which the crate extracts text.
///
/// ```
/// let names: Vec<&str> = windrow_extract::formats().map(|format| format.name()).collect();
/// assert!(names.contains(&"PDF") && !names.contains(&"ELF program"));
/// ```
pub fn formats() -> impl Iterator<Item = &'static Format> {
    FORMATS.iter().filter(|format| format.extractor.is_some())
}

/// Returns all formats that the crate detects, those without an extractor included.
///
/// ```
/// let names: Vec<&str> = windrow_extract::all_formats().map(|format| format.name()).collect();
/// assert!(names.contains(&"PDF") && names.contains(&"ELF program"));
/// ```
pub fn all_formats() -> impl Iterator<Item = &'static Format> {
    FORMATS.iter()
}

#[cfg(test)]
mod tests;
