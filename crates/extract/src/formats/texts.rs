//! Formats that are text.

use super::rows::text;
use crate::extractors::markup::{asciidoc, org_mode, perl_documentation, restructured_text};
use crate::extractors::{
    bibliography, feed, fiction_book, html, info_manual, latex, mail, manual_page, markdown, mbox,
    message_catalogue, notebook, personal, plain_text, source_code, subtitles, table, texinfo,
    xml_document,
};
use crate::format::Extractor::{Container, Document, LongDocument, Stream};
use crate::format::{Detection, Format};

pub(super) const FORMATS: &[Format] = &[
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
        // Split files are named `gawk.info-1`.
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
        // The extensions are section numbers.
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
        // Mailboxes can have any name.
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
        // Several other formats are XML, so the extension `xml` is ambiguous.
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
        extractor: Some(LongDocument {
            whole: plain_text::extract,
            stream: plain_text::extract_stream,
        }),
    },
];
