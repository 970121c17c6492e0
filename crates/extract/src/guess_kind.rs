//! The document kind of a file by its name, for files whose content is not read.

use crate::format::split_extension;
use crate::output::DocumentKind;

/// Extensions and the usual kinds of their files.
const EXTENSIONS: &[(DocumentKind, &[&str])] = &[
    (DocumentKind::Pdf, &["pdf"]),
    (DocumentKind::Djvu, &["djvu", "djv"]),
    (
        DocumentKind::Html,
        &["html", "htm", "xhtml", "mht", "mhtml"],
    ),
    (DocumentKind::Mail, &["eml", "msg"]),
    (
        DocumentKind::Document,
        &[
            "doc", "docm", "docx", "dot", "dotm", "dotx", "odt", "ott", "pages", "ps", "rtf", "wpd",
        ],
    ),
    (
        DocumentKind::Spreadsheet,
        &[
            "numbers", "ods", "ots", "xls", "xlsb", "xlsm", "xlsx", "xlt", "xltx",
        ],
    ),
    (
        DocumentKind::Presentation,
        &[
            "key", "odp", "otp", "pot", "potx", "pps", "ppsx", "ppt", "pptm", "pptx",
        ],
    ),
    (
        DocumentKind::Drawing,
        &["dwg", "dxf", "odg", "otg", "vsd", "vsdx"],
    ),
    (
        DocumentKind::Book,
        &["azw", "azw3", "cbr", "cbz", "epub", "fb2", "mobi"],
    ),
    (
        DocumentKind::Image,
        &[
            "ai", "arw", "avif", "bmp", "cr2", "cr3", "dng", "eps", "gif", "heic", "heif", "icns",
            "ico", "jfif", "jpe", "jpeg", "jpg", "jxl", "nef", "orf", "pbm", "pcx", "pgm", "png",
            "pnm", "ppm", "psd", "raw", "rw2", "svg", "svgz", "tga", "tif", "tiff", "webp", "xcf",
            "xpm",
        ],
    ),
    (
        DocumentKind::Audio,
        &[
            "aac", "aif", "aiff", "amr", "ape", "au", "flac", "m4a", "m4b", "mid", "midi", "mka",
            "mp3", "oga", "ogg", "opus", "spx", "wav", "wma",
        ],
    ),
    (
        DocumentKind::Video,
        &[
            "3gp", "avi", "flv", "m2ts", "m4v", "mkv", "mov", "mp4", "mpeg", "mpg", "ogv", "vob",
            "webm", "wmv",
        ],
    ),
    (
        DocumentKind::Archive,
        &[
            "7z", "ar", "apk", "bz2", "cab", "cpio", "deb", "dmg", "ear", "gz", "img", "iso",
            "jar", "lz", "lz4", "lzma", "pst", "rar", "rpm", "tar", "taz", "tbz", "tbz2", "tgz",
            "tlz", "txz", "tzst", "udeb", "war", "whl", "xz", "z", "zip", "zst",
        ],
    ),
];

/// Returns the usual kind of files with this name.
///
/// ```
/// use windrow_extract::{DocumentKind, guess_kind};
///
/// assert_eq!(guess_kind("Holiday.JPG"), DocumentKind::Image);
/// assert_eq!(guess_kind("core"), DocumentKind::Other);
/// ```
pub fn guess_kind(name: &str) -> DocumentKind {
    let extension = split_extension(name)
        .unwrap_or_default()
        .to_ascii_lowercase();
    let known = EXTENSIONS
        .iter()
        .find(|(_, extensions)| extensions.contains(&extension.as_str()));
    known.map_or(DocumentKind::Other, |(kind, _)| *kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_one_kind() {
        let mut seen = std::collections::HashSet::new();
        for extension in EXTENSIONS.iter().flat_map(|(_, all)| *all) {
            assert!(seen.insert(extension), "{extension} has two kinds");
            assert_eq!(*extension, extension.to_lowercase());
        }
        let cases = [
            ("/d/a.tar.GZ", DocumentKind::Archive),
            ("report.pdf", DocumentKind::Pdf),
            (".zip", DocumentKind::Other),
            ("program.o", DocumentKind::Other),
        ];
        for (name, expected) in cases {
            assert_eq!(guess_kind(name), expected, "{name}");
        }
    }
}
