//! Word, Excel and PowerPoint documents from 97 to 2003. Each is a compound file, which contains
//! streams as a folder contains files. Encrypted documents of newer versions are compound files as
//! well.
//!
//! Sources: MS-CFB, MS-DOC, MS-XLS, MS-PPT and MS-OLEPS,
//! <https://learn.microsoft.com/en-us/openspecs/office_file_formats>.

mod properties;
mod sheets;
mod slides;
mod word;

use std::io::{Cursor, Read};

use cfb::CompoundFile;

use crate::error::ExtractError;
use crate::format::extraction::{Extraction, Location, catch_panic};
use crate::limits::Limits;
use crate::output::{DocumentKind, ExtractedDocument};
use crate::text_builder::FlowBuilder;

/// The format's name in messages.
const FORMAT: &str = "legacy Office document";

/// Extracts from a document, workbook or presentation, or from a compound file of another format.
pub(crate) fn extract(
    extraction: &mut Extraction<'_>,
    location: &Location,
    bytes: &[u8],
) -> Result<(), ExtractError> {
    let mut streams = catch_panic(FORMAT, || Streams::open(bytes))?;
    let contains = |name: &str| streams.file.is_stream(format!("/{name}"));
    if let Some(format) = extraction.detect_compound_format(&contains) {
        return extraction.extract_format(format, location, bytes);
    }
    let limits = &extraction.limits;
    let document = catch_panic(FORMAT, || extract_document(&mut streams, limits))?;
    extraction.emit_document(location, document);
    Ok(())
}

fn extract_document(
    streams: &mut Streams<'_>,
    limits: &Limits,
) -> Result<ExtractedDocument, ExtractError> {
    if streams.file.is_stream("/EncryptedPackage") {
        return Err(ExtractError::Encrypted("Office document"));
    }
    let mut text = FlowBuilder::new(limits.text_bytes_max);
    let kind = append_text(streams, limits, &mut text)?;
    let text = text.finish();
    let mut document = ExtractedDocument::new(kind, text.text);
    document.truncated = text.truncated;
    if let Some(stream) = streams.read("/\u{5}SummaryInformation")? {
        properties::read_summary(&stream, &mut document);
    }
    Ok(document)
}

fn append_text(
    streams: &mut Streams<'_>,
    limits: &Limits,
    text: &mut FlowBuilder,
) -> Result<DocumentKind, ExtractError> {
    if let Some(main) = streams.read("/WordDocument")? {
        let tables = [streams.read("/0Table")?, streams.read("/1Table")?];
        word::append_document(&main, &tables, limits, text)?;
        return Ok(DocumentKind::Document);
    }
    if let Some(workbook) = streams.read("/Workbook")? {
        sheets::append_workbook(&workbook, limits, text)?;
        return Ok(DocumentKind::Spreadsheet);
    }
    if let Some(main) = streams.read("/PowerPoint Document")? {
        let user = streams.read("/Current User")?.unwrap_or_default();
        slides::append_presentation(&main, &user, limits, text)?;
        return Ok(DocumentKind::Presentation);
    }
    if streams.file.is_stream("/Book") {
        return Err(ExtractError::Unsupported("Excel workbook before Excel 97"));
    }
    Err(ExtractError::Unsupported("compound file of another kind"))
}

struct Streams<'a> {
    file: CompoundFile<Cursor<&'a [u8]>>,
    file_bytes: u64,
}

impl<'a> Streams<'a> {
    fn open(bytes: &'a [u8]) -> Result<Self, ExtractError> {
        let file = CompoundFile::open(Cursor::new(bytes))
            .map_err(|error| ExtractError::malformed(FORMAT, error))?;
        Ok(Streams {
            file,
            file_bytes: bytes.len() as u64,
        })
    }

    /// Returns the content of a stream, or `None` if there is no such stream.
    fn read(&mut self, path: &str) -> Result<Option<Vec<u8>>, ExtractError> {
        if !self.file.is_stream(path) {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        let stream = self.file.open_stream(path);
        stream
            .and_then(|stream| stream.take(self.file_bytes).read_to_end(&mut bytes))
            .map_err(|error| ExtractError::malformed(FORMAT, error))?;
        Ok(Some(bytes))
    }
}

fn malformed(reason: impl std::fmt::Display) -> ExtractError {
    ExtractError::malformed(FORMAT, reason)
}
