//! One extraction: calls the extractors of the file and of its members, counts the resources that
//! they use, and emits their output.

mod conversion;

use std::collections::HashSet;
use std::io::{self, BufRead, Cursor, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use super::{
    Extractor, Format, Input, ReadSeek, detect, detect_compound_format, detect_zip_format,
};
use crate::bounded_reader::convert_read_error;
use crate::error::ExtractError;
use crate::language::{Languages, detect_language};
use crate::limits::{Limits, ResourceUsage};
use crate::output::{
    DocumentKind, ExtractedDocument, ExtractionCounts, MailReference, MemberFailure, Output,
    SkippedMember,
};
use crate::programs::{FileContext, Programs};
use crate::text_parts::split_into_parts;
use crate::zip_package::ZipPackage;
use conversion::IncompleteDocument;
pub(crate) use conversion::is_converted;

/// The number of bytes that suffice to detect a format.
const DETECTION_BYTES: u64 = 8192;
/// The number of bytes between two checks of the deadline.
const PIECE_BYTES: u64 = 1 << 20;

/// The location of bytes in the file.
#[derive(Debug, Clone)]
pub(crate) struct Location {
    /// The name of the file or member, which helps to detect the format.
    pub(crate) name: String,
    /// The inner path, see [`ExtractedDocument::inner_path`].
    pub(crate) inner_path: Option<String>,
    /// The number of enclosing containers.
    pub(crate) depth: u32,
    /// The innermost enclosing mail.
    pub(crate) mail: Option<Arc<MailReference>>,
}

impl Location {
    pub(crate) fn from_file_name(name: &str) -> Self {
        Location {
            name: name.to_string(),
            inner_path: None,
            depth: 0,
            mail: None,
        }
    }

    /// Returns the location of the content of a compressed file: the same inner path, one level
    /// deeper.
    pub(crate) fn for_content(&self, name: &str) -> Self {
        Location {
            name: name.to_string(),
            inner_path: self.inner_path.clone(),
            depth: self.depth + 1,
            mail: self.mail.clone(),
        }
    }

    /// Returns the location of a message of an mbox. Messages are numbered from 1.
    pub(crate) fn for_message(&self, number: u64) -> Self {
        let outer = self.inner_path.as_deref().unwrap_or("");
        Location {
            name: String::new(),
            inner_path: Some(format!("{outer}#{number}")),
            depth: self.depth + 1,
            mail: self.mail.clone(),
        }
    }

    /// Returns the location of an item by the path of its folder and its number in the file.
    pub(crate) fn for_item(&self, folder: &str, number: u64) -> Self {
        let mut folder_location = self.clone();
        if !folder.is_empty() {
            let outer = self.inner_path.as_deref().unwrap_or("");
            folder_location.inner_path = Some(format!("{outer}!/{folder}"));
        }
        folder_location.for_message(number)
    }

    /// The inner path of a member.
    fn member_path(&self) -> String {
        debug_assert!(self.inner_path.is_some(), "a member has no path");
        self.inner_path.clone().unwrap_or_default()
    }

    /// The bytes at this location as the input of an extractor.
    pub(crate) fn to_input<'a>(&'a self, bytes: &'a [u8]) -> Input<'a> {
        Input {
            name: &self.name,
            bytes,
        }
    }
}

/// The container that the parts divide.
struct Division {
    depth: u32,
    /// The index of its next member.
    next: u64,
}

/// The state of one call of [`crate::extract()`].
pub(crate) struct Extraction<'a> {
    /// The limits. The deadline is extended by the time that the caller spends with the output.
    pub(crate) limits: Limits,
    /// The resources that the file and its members have used. A container counts its members and
    /// their decompressed bytes.
    pub(crate) usage: ResourceUsage,
    pub(crate) counts: ExtractionCounts,
    /// The known formats. They are passed in, because their table depends on this module.
    formats: &'static [Format],
    /// The inner paths of all members so far. They must be unique.
    member_paths: HashSet<String>,
    /// The path of the file, for converters.
    path: Option<&'a Path>,
    languages: Languages,
    programs: Option<&'a mut dyn Programs>,
    /// A document that is held back until programs have completed it.
    incomplete: Option<IncompleteDocument>,
    division: Option<Division>,
    emit: &'a mut dyn FnMut(Output),
}

impl<'a> Extraction<'a> {
    pub(crate) fn new(
        formats: &'static [Format],
        context: FileContext<'a>,
        emit: &'a mut dyn FnMut(Output),
    ) -> Self {
        Extraction {
            limits: context.limits.clone(),
            usage: ResourceUsage::default(),
            counts: ExtractionCounts::default(),
            formats,
            member_paths: HashSet::new(),
            path: context.path,
            languages: context.languages.cloned().unwrap_or_default(),
            programs: context.programs,
            incomplete: None,
            division: None,
            emit,
        }
    }

    /// Detects the format of some bytes and extracts from them.
    pub(crate) fn extract_bytes(
        &mut self,
        location: &Location,
        bytes: &[u8],
    ) -> Result<(), ExtractError> {
        self.limits.check_deadline()?;
        self.limits.check_depth(location.depth)?;
        match self.detect(&location.to_input(bytes)) {
            Ok(format) => self.extract_format(format, location, bytes),
            Err(error) => self.read_unknown(location, Some(bytes), error),
        }
    }

    /// Extracts from the file by a converter, without reading it. `head` is the beginning of the
    /// file.
    pub(crate) fn convert_file(
        &mut self,
        location: &Location,
        head: &[u8],
    ) -> Result<(), ExtractError> {
        match self.detect(&location.to_input(head)) {
            Ok(format) => self.read_with_programs(format, location, None, |_| {
                Err(ExtractError::Unsupported(format.name))
            }),
            Err(error) => self.read_unknown(location, None, error),
        }
    }

    /// Detects the format of a stream and extracts from it. `format` is the name of the format in
    /// read errors. A single document is read into memory; a stream of documents is not.
    pub(crate) fn extract_reader(
        &mut self,
        format: &'static str,
        location: &Location,
        reader: &mut dyn BufRead,
    ) -> Result<(), ExtractError> {
        self.limits.check_deadline()?;
        self.limits.check_depth(location.depth)?;
        let mut bytes = Vec::new();
        self.read_bytes(format, reader, DETECTION_BYTES, &mut bytes)?;
        let detected = self.detect(&location.to_input(&bytes));
        if !self.is_converted(detected.as_ref().ok().copied(), location) {
            let content_format = detected.clone()?;
            if let Some(extract) = content_format.extractor()?.stream() {
                return extract(self, location, &mut bytes.as_slice().chain(reader));
            }
        }
        let bytes_max = self.limits.input_bytes_max;
        let rest_bytes_max = bytes_max
            .saturating_add(1)
            .saturating_sub(bytes.len() as u64);
        self.read_bytes(format, reader, rest_bytes_max, &mut bytes)?;
        self.limits.check_input(bytes.len())?;
        match detected {
            Ok(format) => self.extract_format(format, location, &bytes),
            Err(error) => self.read_unknown(location, Some(&bytes), error),
        }
    }

    /// Extracts from the member `name` of the archive at `location`, whose format is `format`.
    /// Failures of the member do not end the extraction.
    ///
    /// # Errors
    /// Errors that end the whole file, see [`ExtractError::ends_file`].
    pub(crate) fn extract_archive_member(
        &mut self,
        format: &'static str,
        location: &Location,
        name: &str,
        content: &mut dyn BufRead,
    ) -> Result<(), ExtractError> {
        self.usage.count_member(&self.limits)?;
        let name = name.trim_start_matches("./").trim_start_matches('/');
        let location = self.member_location(location, name);
        if !self.takes_member(&location) {
            return Ok(());
        }
        let result = self.extract_reader(format, &location, content);
        self.record_result(&location, result)
    }

    /// Returns `true` if a member belongs to the [part](Limits::file_part) of this extraction.
    /// Mailboxes and archives call it for each of their members in order. Only the outermost
    /// container is divided.
    pub(crate) fn takes_member(&mut self, member: &Location) -> bool {
        let depth = member.depth;
        let division = self.division.get_or_insert(Division { depth, next: 0 });
        if depth > division.depth {
            return true;
        }
        let number = division.next;
        division.next += 1;
        self.limits.file_part.contains(number)
    }

    /// Returns the number of threads that may extract from the document. If the file is a single
    /// document, the processes of the other parts are idle, so it is the number of parts.
    pub(crate) fn thread_count(&self) -> usize {
        match self.division {
            None => self.limits.file_part.count.max(1) as usize,
            Some(_) => 1,
        }
    }

    /// Returns `true` if the current document belongs to another part: it is not a member of a
    /// divided container, and belongs to the first part.
    pub(crate) fn is_of_other_part(&self) -> bool {
        self.division.is_none() && self.limits.file_part.index > 0
    }

    /// Appends at most `bytes_max` bytes from a reader.
    pub(crate) fn read_bytes(
        &self,
        format: &'static str,
        reader: &mut dyn BufRead,
        bytes_max: u64,
        bytes: &mut Vec<u8>,
    ) -> Result<(), ExtractError> {
        let mut rest = bytes_max;
        while rest > 0 {
            self.limits.check_deadline()?;
            let piece = rest.min(PIECE_BYTES);
            let read = (&mut *reader).take(piece).read_to_end(bytes);
            let read = read.map_err(|error| convert_read_error(format, error))?;
            if read == 0 {
                break;
            }
            rest -= read as u64;
        }
        Ok(())
    }

    /// Skips bytes of a reader. Reaching the end is not an error.
    pub(crate) fn skip_bytes(
        &self,
        format: &'static str,
        reader: &mut dyn BufRead,
        bytes: u64,
    ) -> Result<(), ExtractError> {
        let mut rest = bytes;
        while rest > 0 {
            self.limits.check_deadline()?;
            let mut piece = (&mut *reader).take(rest.min(PIECE_BYTES));
            let skipped = io::copy(&mut piece, &mut io::sink());
            let skipped = skipped.map_err(|error| convert_read_error(format, error))?;
            if skipped == 0 {
                break;
            }
            rest -= skipped;
        }
        Ok(())
    }

    /// Extracts from bytes of a known format, by an extractor or by programs.
    pub(crate) fn extract_format(
        &mut self,
        format: &Format,
        location: &Location,
        bytes: &[u8],
    ) -> Result<(), ExtractError> {
        let is_divided = matches!(
            format.extractor,
            Some(Extractor::Archive(_) | Extractor::Stream(_) | Extractor::Database(_))
        );
        if self.is_of_other_part() && !is_divided {
            return Ok(());
        }
        self.read_with_programs(format, location, Some(bytes), |extraction| {
            extraction.call_extractor(format, location, bytes)
        })
    }

    fn call_extractor(
        &mut self,
        format: &Format,
        location: &Location,
        bytes: &[u8],
    ) -> Result<(), ExtractError> {
        match format.extractor()? {
            Extractor::Document(extract) | Extractor::LongDocument { whole: extract, .. } => {
                let input = location.to_input(bytes);
                let document = catch_panic(format.name, || extract(&input, &self.limits))?;
                self.emit_document(location, document);
                Ok(())
            }
            Extractor::Package(extract) => {
                let document = catch_panic(format.name, || {
                    let (limits, usage) = (&self.limits, &mut self.usage);
                    extract(&mut ZipPackage::open(format.name, bytes, limits, usage)?)
                })?;
                self.emit_document(location, document);
                Ok(())
            }
            Extractor::Parts(_) | Extractor::Database(_) => {
                self.call_parts(format, location, &mut Cursor::new(bytes))
            }
            Extractor::Container(extract) | Extractor::Archive(extract) => {
                extract(self, location, bytes)
            }
            Extractor::Stream(extract) => extract(self, location, &mut { bytes }),
        }
    }

    /// Extracts from a file that is read in parts. Fails if it has another format.
    pub(crate) fn extract_parts(
        &mut self,
        format: &Format,
        location: &Location,
        reader: &mut dyn ReadSeek,
    ) -> Result<(), ExtractError> {
        let is_divided = matches!(format.extractor, Some(Extractor::Database(_)));
        if self.is_of_other_part() && !is_divided {
            return Ok(());
        }
        self.read_with_programs(format, location, None, |extraction| {
            extraction.call_parts(format, location, reader)
        })
    }

    fn call_parts(
        &mut self,
        format: &Format,
        location: &Location,
        reader: &mut dyn ReadSeek,
    ) -> Result<(), ExtractError> {
        match format.extractor()? {
            Extractor::Parts(extract) => {
                let document = catch_panic(format.name, || extract(reader, &self.limits))?;
                self.emit_document(location, document);
                Ok(())
            }
            Extractor::Database(extract) => extract(self, location, reader),
            _ => Err(ExtractError::Unsupported(format.name)),
        }
    }

    /// Returns the format of a file or member.
    pub(crate) fn detect(&self, input: &Input<'_>) -> Result<&'static Format, ExtractError> {
        detect(self.formats, input)
    }

    /// Returns the usual file extension of a media type.
    pub(crate) fn find_extension(&self, media_type: &str) -> Option<&'static str> {
        let has_type = |format: &&Format| format.mime_types.contains(&media_type);
        self.formats
            .iter()
            .find(has_type)?
            .extensions
            .first()
            .copied()
    }

    /// Returns the format of a zip archive whose members identify it.
    pub(crate) fn detect_zip_format(
        &self,
        contains: &dyn Fn(&str) -> bool,
    ) -> Option<&'static Format> {
        detect_zip_format(self.formats, contains)
    }

    /// Returns the format of a compound file that is identified by its streams.
    pub(crate) fn detect_compound_format(
        &self,
        contains: &dyn Fn(&str) -> bool,
    ) -> Option<&'static Format> {
        detect_compound_format(self.formats, contains)
    }

    /// Emits the document at `location`. Sets its `inner_path`. Sets its language unless it is
    /// source code.
    pub(crate) fn emit_document(&mut self, location: &Location, document: ExtractedDocument) {
        if let Some(document) = self.hold(location, document) {
            self.emit_piece(location, document, &mut 0);
        }
    }

    /// Like [`emit_document`](Self::emit_document), for a piece of a long document.
    /// `parts_count` is the number of emitted parts of the document.
    pub(crate) fn emit_piece(
        &mut self,
        location: &Location,
        mut document: ExtractedDocument,
        parts_count: &mut u64,
    ) {
        if self.is_of_other_part() {
            return;
        }
        document.inner_path.clone_from(&location.inner_path);
        document.metadata.attached_to = location.mail.as_deref().cloned();
        if document.kind != DocumentKind::Source {
            document.language =
                detect_language(document.language.take(), &document.text, &self.languages);
        }
        for part in split_into_parts(document, self.limits.part_bytes_max, parts_count) {
            self.counts.documents += 1;
            self.emit_output(Output::Document(Box::new(part)));
        }
    }

    fn emit_output(&mut self, output: Output) {
        let started = Instant::now();
        (self.emit)(output);
        if let Some(deadline) = &mut self.limits.deadline {
            *deadline += started.elapsed();
        }
    }

    /// Returns the location of the member with the name `member` of the container at `location`.
    pub(crate) fn member_location(&mut self, location: &Location, member: &str) -> Location {
        let outer = location.inner_path.as_deref().unwrap_or("");
        let path = format!("{outer}!/{member}");
        let numbered = (2u64..).map(|number| format!("{path}~{number}"));
        // Names can be repeated in damaged or malicious archives, but each inner path must identify
        // one document.
        let unique = std::iter::once(path.clone())
            .chain(numbered)
            .find(|candidate| !self.member_paths.contains(candidate))
            .unwrap_or(path);
        self.member_paths.insert(unique.clone());
        Location {
            name: member.to_string(),
            inner_path: Some(unique),
            depth: location.depth + 1,
            mail: location.mail.clone(),
        }
    }

    /// Extracts from a member. Failures of the member are emitted and do not end the extraction.
    ///
    /// # Errors
    /// Errors that end the whole file, see [`ExtractError::ends_file`].
    pub(crate) fn extract_member(
        &mut self,
        location: &Location,
        bytes: &[u8],
    ) -> Result<(), ExtractError> {
        let result = self.extract_bytes(location, bytes);
        self.record_result(location, result)
    }

    /// Counts the result of the member at `location`.
    ///
    /// # Errors
    /// Errors that end the whole file, see [`ExtractError::ends_file`].
    pub(crate) fn record_result(
        &mut self,
        location: &Location,
        result: Result<(), ExtractError>,
    ) -> Result<(), ExtractError> {
        match result {
            Ok(()) => Ok(()),
            Err(error) if error.ends_file() => Err(error),
            Err(_) if self.is_of_other_part() => Ok(()),
            Err(ExtractError::Unsupported(format)) => {
                self.counts.skipped += 1;
                self.emit_output(Output::Skipped(SkippedMember {
                    inner_path: location.member_path(),
                    format,
                    attached_to: location.mail.as_deref().cloned(),
                }));
                Ok(())
            }
            Err(error) => {
                self.counts.failures += 1;
                self.emit_output(Output::Failure(MemberFailure {
                    inner_path: location.member_path(),
                    error,
                    attached_to: location.mail.as_deref().cloned(),
                }));
                Ok(())
            }
        }
    }
}

/// Returns `true` if an archive member is metadata of the archive or of the operating system, and
/// not a file of the user.
pub(crate) fn is_metadata_member(path: &str) -> bool {
    const PATHS: [&str; 3] = ["mimetype", "META-INF/manifest.xml", "META-INF/MANIFEST.MF"];
    const NAMES: [&str; 3] = [".DS_Store", "Thumbs.db", "desktop.ini"];
    let path = path.trim_start_matches("./");
    let name = path.rsplit('/').next().unwrap_or_default();
    // AppleDouble, the properties of another file.
    PATHS.contains(&path)
        || NAMES.contains(&name)
        || name.starts_with("._")
        || path.split('/').any(|folder| folder == "__MACOSX")
}

/// Converts a panic of a parser library into an error of the file. `format` is the format's name.
pub(crate) fn catch_panic<T>(
    format: &'static str,
    read: impl FnOnce() -> Result<T, ExtractError>,
) -> Result<T, ExtractError> {
    catch_unwind(AssertUnwindSafe(read))
        .unwrap_or_else(|_| Err(ExtractError::malformed(format, "its parser panicked")))
}
