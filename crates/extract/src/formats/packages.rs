//! Documents that are zip archives.

use crate::extractors::{epub, iwork, office_open_xml, open_document};
use crate::format::Extractor::Package;
use crate::format::{Detection, Format};

pub(super) const FORMATS: &[Format] = &[
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
];
