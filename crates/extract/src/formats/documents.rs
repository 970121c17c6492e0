//! Documents of binary formats.

use super::rows::{at_start, binary};
use crate::extractors::{djvu, legacy_office, outlook, pdf, rtf};
use crate::format::Extractor::{Container, Database, Document};
use crate::format::{Detection, Format};

pub(super) const FORMATS: &[Format] = &[
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
        name: "Outlook data file",
        extensions: &["pst", "ost"],
        mime_types: &["application/vnd.ms-outlook-pst"],
        detection: binary(&[at_start(b"!BDN")]),
        extractor: Some(Database(outlook::extract_data_file)),
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
];
