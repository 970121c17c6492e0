//! Extraction by programs, see [`Programs`](crate::programs::Programs).
//!
//! A converter that is not a fallback replaces the extractor of its format. If there is a fallback
//! converter or text recognition, the extractor runs first and its document is held back:
//!
//! ```text
//! extractor ── has text ─────────────────────────────────▶ emit
//!     │ damaged, encrypted, no text
//!     ├── converter ── has text ─▶ emit, with the metadata that the extractor found
//!     │       │ fails
//!     └── recognition of text (pictures, scanned PDFs) ─▶ emit
//! ```

use std::time::Instant;

use encoding_rs::Encoding;

use super::{Extraction, Location, catch_panic};
use crate::error::ExtractError;
use crate::format::{Extractor, Format, Input, split_extension};
use crate::limits::Limits;
use crate::output::ExtractedDocument;
use crate::programs::{
    ConvertedDocument, ConverterChoice, PictureFormat, ProgramContent, ProgramInput, Programs,
    RecognizedText,
};

/// A document that is held back, see the module documentation.
#[derive(Debug, Default)]
pub(super) struct IncompleteDocument {
    inner_path: Option<String>,
    document: Option<ExtractedDocument>,
}

/// The programs for a file or member.
struct ProgramUse {
    converter: Option<ConverterChoice>,
    picture: Option<PictureFormat>,
}

/// The minimum size of pictures in pixels. Smaller ones are icons.
const PICTURE_PIXELS_MIN: u32 = 32;

impl Extraction<'_> {
    /// Reads a file or member of a known format. `read` calls the extractor of the format. `bytes`
    /// is `None` if only parts of the file are read.
    pub(super) fn read_with_programs(
        &mut self,
        format: &Format,
        location: &Location,
        bytes: Option<&[u8]>,
        read: impl FnOnce(&mut Self) -> Result<(), ExtractError>,
    ) -> Result<(), ExtractError> {
        let reading = self.find_programs(Some(format), location);
        let converter = reading.converter.as_ref();
        if let Some(converter) = converter.filter(|it| !it.is_fallback) {
            return self.convert(converter, location, bytes, None);
        }
        // A nested format at the same location: the outer call runs the programs.
        let is_same =
            |incomplete: &IncompleteDocument| incomplete.inner_path == location.inner_path;
        if (converter.is_none() && reading.picture.is_none())
            || self.incomplete.as_ref().is_some_and(is_same)
        {
            return read(self);
        }
        let outer = self.incomplete.replace(IncompleteDocument {
            inner_path: location.inner_path.clone(),
            document: None,
        });
        let result = read(self);
        let incomplete = std::mem::replace(&mut self.incomplete, outer);
        let document = incomplete.and_then(|it| it.document);
        self.complete(&reading, location, bytes, document, result)
    }

    /// Reads a file or member of an unknown format.
    pub(super) fn read_unknown(
        &mut self,
        location: &Location,
        bytes: Option<&[u8]>,
        error: ExtractError,
    ) -> Result<(), ExtractError> {
        match self.find_programs(None, location).converter {
            Some(converter) => self.convert(&converter, location, bytes, None),
            None => Err(error),
        }
    }

    /// Returns `true` if a converter replaces the extractor for a file or member.
    pub(super) fn is_converted(&self, format: Option<&Format>, location: &Location) -> bool {
        let programs = self.programs.as_deref();
        programs.is_some_and(|programs| is_converted(programs, format, &location.name))
    }

    /// Holds back a document that programs may complete. Returns other documents.
    pub(super) fn hold(
        &mut self,
        location: &Location,
        document: ExtractedDocument,
    ) -> Option<ExtractedDocument> {
        match &mut self.incomplete {
            Some(it) if it.inner_path == location.inner_path && it.document.is_none() => {
                it.document = Some(document);
                None
            }
            _ => Some(document),
        }
    }

    fn find_programs(&self, format: Option<&Format>, location: &Location) -> ProgramUse {
        let Some(programs) = self.programs.as_deref() else {
            return ProgramUse {
                converter: None,
                picture: None,
            };
        };
        let media_types = format.map_or(&[][..], |format| format.mime_types);
        let picture = match media_types.first() {
            Some(&"application/pdf") => Some(PictureFormat::Pdf),
            Some(first) if PictureFormat::MEDIA_TYPES.contains(first) => {
                Some(PictureFormat::Picture)
            }
            _ => None,
        };
        ProgramUse {
            converter: find_converter(programs, format, &location.name),
            picture: picture.filter(|_| programs.recognizes_text()),
        }
    }

    /// Emits the result of an extractor after programs have completed it.
    fn complete(
        &mut self,
        reading: &ProgramUse,
        location: &Location,
        bytes: Option<&[u8]>,
        mut document: Option<ExtractedDocument>,
        mut result: Result<(), ExtractError>,
    ) -> Result<(), ExtractError> {
        if matches!(&result, Err(error) if error.ends_file()) {
            self.emit_extracted(location, document);
            return result;
        }
        if let Some(converter) = &reading.converter
            && is_unread(document.as_ref(), &result)
        {
            match self.convert(converter, location, bytes, document.as_ref()) {
                Ok(()) => return Ok(()),
                Err(error @ ExtractError::MissingProgram { .. }) => result = Err(error),
                // The error of the extractor is more informative.
                Err(_) if result.is_err() => {}
                Err(error) => result = Err(error),
            }
        }
        if let Some(format) = reading.picture
            && self.shows_text(format, document.as_ref(), &result)
        {
            let recognized = self.recognize(format, location, bytes)?;
            if let Some(document) = &mut document
                && !recognized.text.trim().is_empty()
            {
                append_text(document, &recognized);
                result = Ok(());
            }
            if let Some(error) = recognized.error {
                result = Err(error);
            }
        }
        self.emit_extracted(location, document);
        result
    }

    fn emit_extracted(&mut self, location: &Location, document: Option<ExtractedDocument>) {
        if let Some(document) = document {
            self.emit_document(location, document);
        }
    }

    /// Returns `true` if a picture, or the pages of a document, may contain text that the extractor
    /// did not find.
    fn shows_text(
        &self,
        format: PictureFormat,
        document: Option<&ExtractedDocument>,
        result: &Result<(), ExtractError>,
    ) -> bool {
        let Some(document) = document else {
            return false;
        };
        let is_icon = |side: Option<u32>| side.is_some_and(|side| side < PICTURE_PIXELS_MIN);
        match format {
            PictureFormat::Pdf => matches!(result, Err(ExtractError::NoText(_))),
            PictureFormat::Picture => {
                !is_icon(document.metadata.width) && !is_icon(document.metadata.height)
            }
        }
    }

    fn recognize(
        &mut self,
        format: PictureFormat,
        location: &Location,
        bytes: Option<&[u8]>,
    ) -> Result<RecognizedText, ExtractError> {
        self.run_program(location, bytes, |programs, input, limits| {
            Ok(programs.recognize_text(format, input, limits))
        })
    }

    /// Emits the result of a converter. `found` is the result of the extractor.
    fn convert(
        &mut self,
        converter: &ConverterChoice,
        location: &Location,
        bytes: Option<&[u8]>,
        found: Option<&ExtractedDocument>,
    ) -> Result<(), ExtractError> {
        let documents = self.run_program(location, bytes, |programs, input, limits| {
            programs.convert(converter, input, limits)
        })?;
        let has_text = |it: &ConvertedDocument| !it.bytes.trim_ascii().is_empty();
        if found.is_some() && !documents.iter().any(has_text) {
            let program = converter.media_type.clone();
            let reason = "it found no text".to_owned();
            return Err(ExtractError::ProgramFailed { program, reason });
        }
        for converted in documents {
            match &converted.inner_name {
                None => {
                    let document = self.read_converted(converter, &converted, found)?;
                    self.emit_document(location, document);
                }
                Some(name) => {
                    self.usage.count_member(&self.limits)?;
                    let member = self.member_location(location, name);
                    let result = self.read_converted_member(converter, &member, &converted);
                    self.record_result(&member, result)?;
                }
            }
        }
        Ok(())
    }

    /// Calls a program. Its time does not count towards the deadline, because it has its own limit.
    fn run_program<T>(
        &mut self,
        location: &Location,
        bytes: Option<&[u8]>,
        run: impl FnOnce(&mut dyn Programs, &ProgramInput<'_>, &Limits) -> Result<T, ExtractError>,
    ) -> Result<T, ExtractError> {
        self.limits.check_deadline()?;
        let path = self.path.filter(|_| location.depth == 0);
        let content = match (path, bytes) {
            (Some(path), _) => ProgramContent::File(path),
            (None, bytes) => ProgramContent::Bytes(bytes.unwrap_or_default()),
        };
        let input = ProgramInput {
            name: &location.name,
            content,
        };
        let Some(programs) = self.programs.as_deref_mut() else {
            return Err(ExtractError::Unsupported("format of a converter"));
        };
        let started = Instant::now();
        let result = run(programs, &input, &self.limits);
        if let Some(deadline) = &mut self.limits.deadline {
            *deadline += started.elapsed();
        }
        result
    }

    /// Extracts from the output of a converter: text or HTML.
    fn read_converted(
        &self,
        converter: &ConverterChoice,
        converted: &ConvertedDocument,
        found: Option<&ExtractedDocument>,
    ) -> Result<ExtractedDocument, ExtractError> {
        let media_type = converted.media_type.as_deref().unwrap_or("text/plain");
        let mut document = self.read_text(converter, media_type, converted)?;
        document.kind = converter.kind;
        for (name, value) in &converted.properties {
            set_property(&mut document, name, value);
        }
        if let Some(found) = found {
            document.kind = found.kind;
            document.title = found.title.clone().or(document.title);
            document.metadata = found.metadata.clone();
        }
        document.metadata.converter = Some(converter.media_type.clone());
        Ok(document)
    }

    fn read_converted_member(
        &mut self,
        converter: &ConverterChoice,
        member: &Location,
        converted: &ConvertedDocument,
    ) -> Result<(), ExtractError> {
        let budget = self.usage.expansion_budget(u64::MAX, &self.limits);
        if converted.bytes.len() as u64 > budget.bytes_max {
            return Err(budget.error);
        }
        self.usage
            .add_expanded(converted.bytes.len(), &self.limits)?;
        let is_text = |media_type: &&str| matches!(*media_type, "text/plain" | "text/html");
        match converted.media_type.as_deref().filter(is_text) {
            Some(media_type) => {
                self.limits.check_depth(member.depth)?;
                let mut document = self.read_text(converter, media_type, converted)?;
                for (name, value) in &converted.properties {
                    set_property(&mut document, name, value);
                }
                document.metadata.converter = Some(converter.media_type.clone());
                self.emit_document(member, document);
                Ok(())
            }
            None => {
                let mut named = member.clone();
                let extension = converted.media_type.as_deref();
                let extension = extension.and_then(|it| self.find_extension(it));
                if let Some(extension) =
                    extension.filter(|_| split_extension(&named.name).is_none())
                {
                    named.name = format!("{}.{extension}", named.name);
                }
                self.extract_bytes(&named, &converted.bytes)
            }
        }
    }

    /// Extracts from plain text or HTML with the extractor of that format.
    fn read_text(
        &self,
        converter: &ConverterChoice,
        media_type: &str,
        converted: &ConvertedDocument,
    ) -> Result<ExtractedDocument, ExtractError> {
        let text = recode(converted);
        let bytes = text.as_deref().unwrap_or(&converted.bytes);
        let has_type = |format: &&Format| format.mime_types.contains(&media_type);
        match self.formats.iter().find(has_type) {
            Some(format) => match format.extractor()? {
                Extractor::Document(extract) | Extractor::LongDocument { whole: extract, .. } => {
                    let input = Input { name: "", bytes };
                    catch_panic(format.name, || extract(&input, &self.limits))
                }
                _ => Err(ExtractError::Unsupported(format.name)),
            },
            None => Err(ExtractError::ProgramFailed {
                program: converter.media_type.clone(),
                reason: format!("its output has the unknown type {media_type}"),
            }),
        }
    }
}

/// Returns `true` if a converter replaces the extractor for files with this name.
pub(crate) fn is_converted(programs: &dyn Programs, format: Option<&Format>, name: &str) -> bool {
    let has_extractor = format.is_some_and(|format| format.extractor.is_some());
    let converter = find_converter(programs, format, name);
    converter.is_some_and(|it| !it.is_fallback || !has_extractor)
}

fn find_converter(
    programs: &dyn Programs,
    format: Option<&Format>,
    name: &str,
) -> Option<ConverterChoice> {
    let extension = split_extension(name).unwrap_or_default();
    let media_types = format.map_or(&[][..], |format| format.mime_types);
    programs.find_converter(&extension.to_ascii_lowercase(), media_types)
}

/// Returns `true` if an extractor found no text.
fn is_unread(document: Option<&ExtractedDocument>, result: &Result<(), ExtractError>) -> bool {
    match result {
        Err(_) => true,
        Ok(()) => document.is_some_and(|it| it.text.trim().is_empty()),
    }
}

/// Converts the bytes to UTF-8 if the converter declares another encoding.
fn recode(converted: &ConvertedDocument) -> Option<Vec<u8>> {
    let encoding = Encoding::for_label(converted.charset.as_deref()?.as_bytes())?;
    let (text, _, _) = encoding.decode(&converted.bytes);
    Some(text.into_owned().into_bytes())
}

fn append_text(document: &mut ExtractedDocument, recognized: &RecognizedText) {
    if !document.text.is_empty() {
        document.text.push('\n');
    }
    document.text.push_str(recognized.text.trim());
    document.truncated |= recognized.truncated;
    document.metadata.converter = Some("ocr".to_owned());
}

fn set_property(document: &mut ExtractedDocument, name: &str, value: &str) {
    let value = value.trim();
    if value.is_empty() {
        return;
    }
    let metadata = &mut document.metadata;
    match name {
        "title" | "caption" => document.title = Some(value.to_owned()),
        "author" => metadata.author = Some(value.to_owned()),
        "abstract" | "description" => metadata.description = Some(value.to_owned()),
        "keywords" => {
            let words = value.split([',', ';']).map(str::trim);
            metadata.keywords = words
                .filter(|it| !it.is_empty())
                .map(str::to_owned)
                .collect();
        }
        _ => {}
    }
}
