//! The media types of the field `mime:`, taken from the table of formats.
//!
//! Documents do not store their media type. A type is found by the kind of its documents, if all
//! documents of the kind have the type, and otherwise by their file extensions.

use windrow_extract::{DocumentKind, formats};
use windrow_file_query::{MimeType, MimeTypes};

/// Types that all documents of a kind have.
const KINDS: [(&str, DocumentKind); 6] = [
    ("text/plain", DocumentKind::Text),
    ("text/markdown", DocumentKind::Markdown),
    ("text/html", DocumentKind::Html),
    ("application/pdf", DocumentKind::Pdf),
    ("image/vnd.djvu", DocumentKind::Djvu),
    ("message/rfc822", DocumentKind::Mail),
];

/// Each programming language has its own type. This type includes all of them.
const SOURCE_CODE: &str = "text/x-source";

/// The extensions of media types that share a format with others.
/// Source: <https://www.iana.org/assignments/media-types>.
const EXTENSIONS: &[(&str, &[&str])] = &[
    ("application/java-archive", &["jar"]),
    ("application/mbox", &["mbox", "mbx"]),
    ("application/msword", &["doc", "dot"]),
    ("application/vnd.ms-excel", &["xls", "xlt"]),
    ("application/vnd.ms-powerpoint", &["ppt", "pps", "pot"]),
    (
        "application/vnd.ms-word.document.macroenabled.12",
        &["docm"],
    ),
    (
        "application/vnd.ms-word.template.macroenabled.12",
        &["dotm"],
    ),
    ("application/vnd.ms-excel.sheet.macroenabled.12", &["xlsm"]),
    (
        "application/vnd.ms-excel.template.macroenabled.12",
        &["xltm"],
    ),
    (
        "application/vnd.ms-powerpoint.presentation.macroenabled.12",
        &["pptm"],
    ),
    (
        "application/vnd.ms-powerpoint.template.macroenabled.12",
        &["potm"],
    ),
    (
        "application/vnd.ms-powerpoint.slideshow.macroenabled.12",
        &["ppsm"],
    ),
    (
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        &["docx"],
    ),
    (
        "application/vnd.openxmlformats-officedocument.wordprocessingml.template",
        &["dotx"],
    ),
    (
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        &["xlsx"],
    ),
    (
        "application/vnd.openxmlformats-officedocument.spreadsheetml.template",
        &["xltx"],
    ),
    (
        "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        &["pptx"],
    ),
    (
        "application/vnd.openxmlformats-officedocument.presentationml.template",
        &["potx"],
    ),
    (
        "application/vnd.openxmlformats-officedocument.presentationml.slideshow",
        &["ppsx"],
    ),
    ("application/vnd.oasis.opendocument.text", &["odt"]),
    ("application/vnd.oasis.opendocument.spreadsheet", &["ods"]),
    ("application/vnd.oasis.opendocument.presentation", &["odp"]),
    ("application/vnd.oasis.opendocument.graphics", &["odg"]),
    ("application/vnd.oasis.opendocument.text-template", &["ott"]),
    (
        "application/vnd.oasis.opendocument.spreadsheet-template",
        &["ots"],
    ),
    (
        "application/vnd.oasis.opendocument.presentation-template",
        &["otp"],
    ),
    (
        "application/vnd.oasis.opendocument.graphics-template",
        &["otg"],
    ),
    ("application/xhtml+xml", &["xhtml"]),
    ("application/zip", &["zip"]),
    ("application/rss+xml", &["rss"]),
    ("application/atom+xml", &["atom"]),
    ("application/docbook+xml", &["dbk", "docbook"]),
    ("application/vnd.debian.binary-package", &["deb", "udeb"]),
    ("text/csv", &["csv"]),
    ("text/tab-separated-values", &["tsv", "tab"]),
    ("image/png", &["png"]),
    ("image/jpeg", &["jpg", "jpeg", "jpe", "jfif"]),
    ("image/gif", &["gif"]),
    ("image/webp", &["webp"]),
    ("image/tiff", &["tif", "tiff"]),
    ("image/svg+xml", &["svg"]),
    ("audio/mpeg", &["mp3"]),
    ("audio/flac", &["flac"]),
    ("audio/ogg", &["ogg", "oga", "opus", "spx"]),
    ("audio/mp4", &["m4a", "m4b"]),
    ("video/mp4", &["mp4", "m4v"]),
];

/// Returns the media types of the supported formats.
pub fn known_mime_types() -> MimeTypes {
    let formats = formats();
    let types = formats.flat_map(|format| {
        let types = format.mime_types().iter();
        types.map(|name| {
            let kind = KINDS.iter().find(|(known, _)| known == name);
            if let Some((_, kind)) = kind {
                return MimeType::new(name).with_kind(kind.as_str());
            }
            let known = EXTENSIONS.iter().find(|(known, _)| known == name);
            let extensions = known.map_or(format.extensions(), |(_, extensions)| extensions);
            MimeType::new(name).with_extensions(extensions)
        })
    });
    let source_code = MimeType::new(SOURCE_CODE).with_kind(DocumentKind::Source.as_str());
    MimeTypes::new(types.chain([source_code]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_file_query::{Query, QueryContext};

    #[test]
    fn every_type_of_a_format_can_be_searched() {
        let context = QueryContext {
            mime_types: known_mime_types(),
            ..QueryContext::default()
        };
        let parsed = |name: &str| Query::parse(&format!("mime:{name}"), &context);
        for name in formats().flat_map(|format| format.mime_types()) {
            assert!(
                parsed(name).is_ok(),
                "{name} has neither a kind nor extensions"
            );
        }
        let cases = [
            ("text/plain", "kind:text"),
            ("text/csv", "ext:csv"),
            ("application/*word", "(ext:doc OR ext:dot)"),
            ("message/*", "kind:mail"),
        ];
        for (name, expected) in cases {
            assert_eq!(parsed(name).unwrap().to_string(), expected, "{name}");
        }
        assert!(parsed("text/unknown").is_err());
    }
}
