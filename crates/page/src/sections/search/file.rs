//! Sends indexed files. A file is opened only if it is unchanged since it was indexed, and only if
//! its document has a valid signature of the ingestion. A client that inserts a document with an
//! arbitrary path therefore cannot read that file.

use std::fs::{File, Metadata};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;

use hyper::header::{CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_SECURITY_POLICY};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::document::StoredDocument;
use super::source::IndexedFiles;
use crate::error::PageError;
use crate::form::FormFields;
use crate::request::Request;
use crate::response::Response;
use crate::services::{IndexedFile, IndexedStamp};
use crate::texts::search as texts;

/// The path of downloads.
pub const FILE_PATH: &str = "/search/file";

/// The maximum size of a file that is rendered as Markdown or HTML.
const FORMATTED_BYTES_MAX: u64 = 1 << 20;

/// Content types that browsers can display without executing anything, by file extension. Other
/// files are downloaded.
const SHOWN: [(&str, &str); 21] = [
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
    ("avif", "image/avif"),
    ("bmp", "image/bmp"),
    ("pdf", "application/pdf"),
    ("mp3", "audio/mpeg"),
    ("ogg", "audio/ogg"),
    ("flac", "audio/flac"),
    ("mp4", "video/mp4"),
    ("webm", "video/webm"),
    ("txt", TEXT),
    ("md", TEXT),
    ("csv", TEXT),
    ("json", TEXT),
    ("xml", TEXT),
    ("html", TEXT),
    ("htm", TEXT),
    ("svg", TEXT),
];
const TEXT: &str = "text/plain; charset=utf-8";
const BYTES: &str = "application/octet-stream";
/// The content security policy of files: nothing is loaded or executed.
const NO_RIGHTS: &str = "default-src 'none'; sandbox";
/// The content security policy of PDF files. The built-in PDF viewers do not work in a sandbox.
const NO_RIGHTS_PDF: &str = "default-src 'none'; object-src 'self'; media-src 'self'";

/// Returns the address of a file. Browsers open it if they can display its type.
pub fn file_address(id: &str) -> String {
    FormFields::default().and("id", id).address(FILE_PATH)
}

/// Returns the address under which browsers save a file.
pub fn download_address(id: &str) -> String {
    let form = FormFields::default().and("id", id);
    form.and("download", "1").address(FILE_PATH)
}

/// Sends the file of a document.
///
/// # Errors
/// Fails if the document is not indexed, or if the file is missing or has changed.
pub fn send_file(request: &Request) -> Result<Response, PageError> {
    let mut files = IndexedFiles::new(request.database()?);
    let id = request.query().text("id");
    let document = StoredDocument::read(&mut files, id)?;
    let document = match document {
        Some(document) => document,
        // A member of an archive or a mail: the containing file is sent.
        None => StoredDocument::read_any_of_file(&mut files, id)?
            .ok_or_else(|| PageError::not_found(texts::NOT_INDEXED))?,
    };
    drop(files);
    let opened = open_indexed(request, &document);
    let OpenedFile { file, bytes } =
        opened.ok_or_else(|| PageError::not_found(texts::FILE_GONE))?;
    let path = document.text("path");
    let name = path.rsplit('/').next().unwrap_or_default();
    let extension = name
        .rsplit_once('.')
        .map_or("", |(_, extension)| extension)
        .to_lowercase();
    let shown = SHOWN
        .iter()
        .find(|(known, _)| *known == extension)
        .map(|(_, it)| *it);
    let is_source = document.text("kind") == "source" || document.text("kind") == "text";
    let shown = shown.or(is_source.then_some(TEXT));
    let shown = shown.filter(|_| request.query().get("download").is_none());
    let disposition = if shown.is_some() {
        "inline"
    } else {
        "attachment"
    };
    let encoded = utf8_percent_encode(name, NON_ALPHANUMERIC);
    let rights = match shown {
        Some("application/pdf") => NO_RIGHTS_PDF,
        _ => NO_RIGHTS,
    };
    let response = Response::from_writer(shown.unwrap_or(BYTES), move |writer| {
        // Stops at the announced size if the file grows meanwhile.
        io::copy(&mut file.take(bytes), writer)?;
        writer.flush()
    });
    Ok(response
        .with_header(CONTENT_LENGTH, &bytes.to_string())
        .with_header(
            CONTENT_DISPOSITION,
            &format!("{disposition}; filename*=UTF-8''{encoded}"),
        )
        .with_header(CONTENT_SECURITY_POLICY, rights))
}

/// Returns the text of a file for rendering. `None` unless the file is unchanged, small and UTF-8.
pub fn read_text_file(request: &Request, document: &StoredDocument) -> Option<String> {
    let OpenedFile { file, bytes } = open_indexed(request, document)?;
    if bytes > FORMATTED_BYTES_MAX {
        return None;
    }
    let mut text = String::new();
    file.take(FORMATTED_BYTES_MAX)
        .read_to_string(&mut text)
        .ok()?;
    Some(text)
}

/// Returns the address of the file of a document. `None` if the file has changed.
pub fn address_of_unchanged(request: &Request, document: &StoredDocument) -> Option<String> {
    let is_file = document.text("inner").is_empty();
    let file = is_file.then(|| open_indexed(request, document)).flatten();
    file.map(|_| file_address(document.text("_id")))
}

struct OpenedFile {
    file: File,
    bytes: u64,
}

/// Opens the file of a document. Returns `None` if the file has changed.
fn open_indexed(request: &Request, document: &StoredDocument) -> Option<OpenedFile> {
    let stamp = IndexedStamp {
        bytes: document.number("size")?,
        modified_ns: document.number("modified_ns")?,
        changed_ns: document.number("changed_ns")?,
        inode: document.number("inode")?,
    };
    let indexed = IndexedFile {
        path: document.text("path"),
        stamp,
        signature: document.bytes("signature"),
    };
    let file = (request.site().services.open_file)(&indexed).ok()?;
    let metadata = file.metadata().ok()?;
    let is_unchanged = metadata.is_file() && stamp_of(&metadata) == Some(stamp);
    is_unchanged.then(|| OpenedFile {
        file,
        bytes: metadata.len(),
    })
}

/// Returns the stamp of a file. `None` if a number does not fit.
fn stamp_of(metadata: &Metadata) -> Option<IndexedStamp> {
    const NANOS: i64 = 1_000_000_000;
    let nanos = |seconds: i64, nanos: i64| seconds.checked_mul(NANOS)?.checked_add(nanos);
    Some(IndexedStamp {
        bytes: i64::try_from(metadata.len()).ok()?,
        modified_ns: nanos(metadata.mtime(), metadata.mtime_nsec())?,
        changed_ns: nanos(metadata.ctime(), metadata.ctime_nsec())?,
        inode: metadata.ino().cast_signed(),
    })
}
