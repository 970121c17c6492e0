//! Reads the members of a RAR archive of versions 1.3 to 7. In a solid archive each member depends
//! on those before it, so all are decompressed.

use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;

use rars::{
    Archive, ArchiveFamily, ArchiveMember, ArchiveReadOptions, ArchiveReader, Error, ErrorKind,
    ExtractionDecision, ExtractionErrorAction,
};

use crate::error::ExtractError;
use crate::format::extraction::{Extraction, Location, catch_panic, is_metadata_member};
use crate::limits::{ExpansionCounter, Limits};

const FORMAT: &str = "RAR archive";
/// The maximum dictionary size. Archivers use 32 MB by default.
const DICTIONARY_BYTES_MAX: u64 = 128 << 20;
/// The maximum memory of a decompressor.
const WORKSPACE_BYTES_MAX: u64 = 192 << 20;
const HEADER_BYTES_MAX: u64 = 64 << 20;

/// Extracts from all members.
pub(crate) fn extract(
    extraction: &mut Extraction<'_>,
    location: &Location,
    bytes: &[u8],
) -> Result<(), ExtractError> {
    let mut options = ArchiveReadOptions::new()
        .with_max_header_bytes(HEADER_BYTES_MAX)
        .with_max_reader_workspace_bytes(WORKSPACE_BYTES_MAX)
        .with_rar50_dictionary_size_limit(DICTIONARY_BYTES_MAX);
    // All members are written to the same buffer.
    options.rar50_buffered_decode_limit = Some(0);
    let archive = catch_panic(FORMAT, || {
        ArchiveReader::read_with_options(bytes, options).map_err(|error| convert_error(&error))
    })?;
    let reader = RefCell::new(MembersReader {
        extraction,
        archive_location: location,
        is_solid: archive.is_solid(),
        current: None,
        failure: None,
    });
    let read = catch_panic(FORMAT, || read_members(&archive, options, &reader));
    let mut reader = reader.into_inner();
    match (reader.finish_member(), reader.failure) {
        (Ok(()), None) => read,
        (Err(error), _) | (_, Some(error)) => Err(error),
    }
}

fn read_members(
    archive: &Archive,
    options: ArchiveReadOptions<'_>,
    reader: &RefCell<MembersReader<'_, '_>>,
) -> Result<(), ExtractError> {
    let decide = |member: &ArchiveMember| Ok(reader.borrow_mut().begin_member(member));
    let on_error = |_: &ArchiveMember, error: &Error| Ok(reader.borrow_mut().member_failed(error));
    let outcome = archive.extract_with_control_and_errors(options, decide, on_error);
    match outcome {
        Ok(_) => Ok(()),
        // A member of a solid archive failed, so the later ones cannot be read.
        Err(error) => reader.borrow_mut().archive_failed(&error),
    }
}

/// Receives the members in the order of the archive.
struct MembersReader<'r, 'e> {
    extraction: &'r mut Extraction<'e>,
    archive_location: &'r Location,
    is_solid: bool,
    current: Option<CurrentMember>,
    /// The error that ended the extraction of the archive.
    failure: Option<ExtractError>,
}

/// The member that is being decompressed.
struct CurrentMember {
    location: Location,
    content: Rc<RefCell<MemberContent>>,
    result: Result<(), ExtractError>,
}

impl MembersReader<'_, '_> {
    /// Extracts from the preceding member, and decides whether the next one is decompressed.
    fn begin_member(&mut self, member: &ArchiveMember) -> ExtractionDecision {
        let decision = self
            .finish_member()
            .and_then(|()| self.extraction.usage.count_member(&self.extraction.limits))
            .and_then(|()| self.decide(member));
        decision.unwrap_or_else(|error| {
            self.failure = Some(error);
            ExtractionDecision::Stop
        })
    }

    fn decide(&mut self, member: &ArchiveMember) -> Result<ExtractionDecision, ExtractError> {
        let meta = &member.meta;
        if meta.is_directory || meta.is_redirection {
            return Ok(ExtractionDecision::Skip);
        }
        let name = read_name(member);
        if is_metadata_member(&name) {
            return Ok(self.drop_content(meta.packed_size));
        }
        let location = self
            .extraction
            .member_location(self.archive_location, &name);
        if !self.extraction.takes_member(&location) {
            return Ok(self.drop_content(meta.packed_size));
        }
        if meta.is_encrypted {
            let error = ExtractError::Encrypted(FORMAT);
            self.extraction
                .record_result(&location, Err(error.clone()))?;
            // Later members depend on it, so it must be decompressed.
            return if self.is_solid {
                Err(error)
            } else {
                Ok(ExtractionDecision::Skip)
            };
        }
        if meta.is_split_before || meta.is_split_after {
            let error = ExtractError::malformed(FORMAT, "a part of it is in another file");
            self.extraction.record_result(&location, Err(error))?;
            return Ok(ExtractionDecision::Skip);
        }
        let content = self.open_content(meta.packed_size, true);
        self.current = Some(CurrentMember {
            location,
            content: Rc::clone(&content),
            result: Ok(()),
        });
        Ok(ExtractionDecision::Extract(Box::new(ContentWriter(
            content,
        ))))
    }

    /// Skips a member, or decompresses it without keeping its content.
    fn drop_content(&mut self, compressed_bytes: u64) -> ExtractionDecision {
        if self.is_solid {
            let content = self.open_content(compressed_bytes, false);
            ExtractionDecision::Extract(Box::new(ContentWriter(content)))
        } else {
            ExtractionDecision::Skip
        }
    }

    fn open_content(&self, compressed_bytes: u64, is_kept: bool) -> Rc<RefCell<MemberContent>> {
        let (limits, usage) = (&self.extraction.limits, &self.extraction.usage);
        let budget = usage.expansion_budget(compressed_bytes, limits);
        Rc::new(RefCell::new(MemberContent {
            bytes: Vec::new(),
            is_kept,
            rest_bytes: budget.bytes_max,
            exceeded: Some(budget.error),
            error: None,
            counter: usage.expansion_counter(),
            limits: limits.clone(),
        }))
    }

    /// Extracts from the decompressed member, if there is one.
    fn finish_member(&mut self) -> Result<(), ExtractError> {
        let Some(member) = self.current.take() else {
            return Ok(());
        };
        let bytes = member.content.take().into_bytes();
        let bytes = member.result.and(bytes);
        let location = &member.location;
        let result = bytes.and_then(|bytes| self.extraction.extract_bytes(location, &bytes));
        self.extraction.record_result(location, result)
    }

    /// Records the error of the current member. In solid archives it also affects later members.
    fn member_failed(&mut self, error: &Error) -> ExtractionErrorAction {
        if let Some(current) = &mut self.current {
            current.result = Err(current.convert_error(error));
        }
        ExtractionErrorAction::Continue
    }

    /// Records the error that ended the archive, also for the current member.
    fn archive_failed(&mut self, error: &Error) -> Result<(), ExtractError> {
        if self.failure.is_some() {
            return Ok(());
        }
        let own = self
            .current
            .as_ref()
            .map(|current| current.convert_error(error));
        let own = own.unwrap_or_else(|| convert_error(error));
        self.member_failed(error);
        self.finish_member()?;
        Err(own)
    }
}

impl CurrentMember {
    /// The error of reading a member, which may be that of a limit on its content.
    fn convert_error(&self, error: &Error) -> ExtractError {
        let own = self.content.borrow().error.clone();
        own.unwrap_or_else(|| convert_error(error))
    }
}

/// The decompressed bytes of a member.
#[derive(Default)]
struct MemberContent {
    bytes: Vec<u8>,
    /// `false` if the bytes are only counted.
    is_kept: bool,
    /// The remaining number of bytes, and the error if it is exceeded.
    rest_bytes: u64,
    exceeded: Option<ExtractError>,
    error: Option<ExtractError>,
    counter: ExpansionCounter,
    limits: Limits,
}

impl MemberContent {
    fn push(&mut self, bytes: &[u8]) -> Result<(), ExtractError> {
        self.limits.check_deadline()?;
        self.counter.add(bytes.len(), &self.limits)?;
        let length = bytes.len() as u64;
        if let Some(error) = self.exceeded.as_ref().filter(|_| length > self.rest_bytes) {
            return Err(error.clone());
        }
        self.rest_bytes = self.rest_bytes.saturating_sub(length);
        if self.is_kept {
            self.bytes.extend_from_slice(bytes);
        }
        Ok(())
    }

    fn into_bytes(self) -> Result<Vec<u8>, ExtractError> {
        self.error.map_or(Ok(self.bytes), Err)
    }
}

struct ContentWriter(Rc<RefCell<MemberContent>>);

impl Write for ContentWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut content = self.0.borrow_mut();
        match content.push(bytes) {
            Ok(()) => Ok(bytes.len()),
            Err(error) => {
                content.error = Some(error);
                Err(io::Error::other("a limit of the extraction"))
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the name of a member with `/` as the separator. Names in old archives are in an
/// unspecified code page.
fn read_name(member: &ArchiveMember) -> String {
    let bytes = member.decoded_name(None);
    let bytes = bytes.as_deref().unwrap_or(&member.meta.name);
    let name = String::from_utf8_lossy(bytes);
    if member.meta.family == ArchiveFamily::Rar50Plus || name.contains('/') {
        name.into_owned()
    } else {
        name.replace('\\', "/")
    }
}

fn convert_error(error: &Error) -> ExtractError {
    let is_about_encryption = matches!(error.root_cause(), Error::FeatureDisabled { .. });
    match error.kind() {
        ErrorKind::PasswordRequired | ErrorKind::BadPassword => ExtractError::Encrypted(FORMAT),
        _ if is_about_encryption => ExtractError::Encrypted(FORMAT),
        _ => ExtractError::malformed(FORMAT, error),
    }
}

#[cfg(test)]
mod tests {
    use crate::error::{ExtractError, Limit};
    use crate::fixtures::extract_outputs;
    use crate::limits::Limits;

    const SOLID: &[u8] = include_bytes!("../../tests/fixtures/rar5-solid.rar");

    #[test]
    fn members_are_limited() {
        let limits = Limits {
            expanded_bytes_max: 100,
            ..Limits::default()
        };
        let error = crate::extract("a.rar", SOLID, &limits, &mut |_| ());
        assert_eq!(error, Err(ExtractError::limit(Limit::ExpandedSize, 100)));
        let limits = Limits {
            members_max: 1,
            ..Limits::default()
        };
        let error = crate::extract("a.rar", SOLID, &limits, &mut |_| ());
        assert_eq!(error, Err(ExtractError::limit(Limit::Members, 1)));
    }

    #[test]
    fn a_cut_archive_is_an_error() {
        let cut = &SOLID[..SOLID.len() / 2];
        let error = extract_outputs("a.rar", cut).1.unwrap_err();
        assert_eq!(error.code(), "malformed");
    }
}
