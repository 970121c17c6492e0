//! The extractors: a module for each format, with a function `extract` for the table in
//! [`mod@crate::formats`].
//!
//! A new format:
//!
//! 1. Create a file here with a function of type [`crate::format::DocumentExtractor`],
//!    [`crate::format::PackageExtractor`], [`crate::format::ContainerExtractor`] or
//!    [`crate::format::StreamExtractor`]. If no signature identifies the format, add a
//!    [`crate::format::ContentTest`].
//! 2. Add a row to the table in [`mod@crate::formats`].
//! 3. If documents of the format are of a new kind, add it to [`crate::DocumentKind`].
//! 4. Add a valid file to `mutation_tests.rs`, which damages it in many ways. If a real program can
//!    make one, add it to `tests/fixtures`, and its text to `tests/formats.rs`.
//!
//! Requirements on an extractor: it reads untrusted bytes, so it must not panic, recurse without a
//! limit, or allocate more than a few times the size of its input. It checks the deadline
//! regularly, and truncates the text to [`crate::Limits::text_bytes_max`]. Its errors are
//! [`crate::ExtractError::Malformed`] with a reason, and [`crate::ExtractError::Encrypted`].

pub(crate) mod ar;
pub(crate) mod bibliography;
mod bytes;
mod cells;
mod code_page;
pub(crate) mod compressed;
pub(crate) mod cpio;
pub(crate) mod djvu;
pub(crate) mod epub;
pub(crate) mod feed;
pub(crate) mod fiction_book;
mod front_matter;
pub(crate) mod html;
pub(crate) mod info_manual;
pub(crate) mod iso;
pub(crate) mod iwork;
pub(crate) mod latex;
pub(crate) mod legacy_office;
pub(crate) mod mail;
pub(crate) mod manual_page;
pub(crate) mod markdown;
pub(crate) mod markup;
pub(crate) mod mbox;
pub(crate) mod media;
pub(crate) mod message_catalogue;
pub(crate) mod notebook;
pub(crate) mod office_open_xml;
pub(crate) mod open_document;
pub(crate) mod outlook;
pub(crate) mod pdf;
pub(crate) mod personal;
pub(crate) mod plain_text;
pub(crate) mod rar;
pub(crate) mod rpm;
pub(crate) mod rtf;
pub(crate) mod seven_zip;
pub(crate) mod source_code;
pub(crate) mod subtitles;
pub(crate) mod table;
pub(crate) mod tar;
pub(crate) mod texinfo;
pub(crate) mod torrent;
pub(crate) mod xml_document;
pub(crate) mod zip_archive;
