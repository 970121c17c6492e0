//! The state of one extraction: the location in the file, used resources, and output.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use crate::document::{Extracted, MemberFailure, Output, Tally};
use crate::error::ExtractError;
use crate::limits::{Limits, Spent};

/// The location of some bytes in the file.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// The name that helps to tell the kind.
    pub(crate) name: String,
    /// See [`Extracted::inner_path`].
    pub(crate) inner_path: Option<String>,
    /// The number of containers around it.
    pub(crate) depth: u32,
}

impl Place {
    pub(crate) fn file(name: &str) -> Self {
        Place {
            name: name.to_string(),
            inner_path: None,
            depth: 0,
        }
    }

    /// The content of a gzip file: the same document, one container deeper.
    pub(crate) fn unpacked(&self, name: &str) -> Self {
        Place {
            name: name.to_string(),
            inner_path: self.inner_path.clone(),
            depth: self.depth + 1,
        }
    }

    /// A message of an mbox. Messages are numbered from 1.
    pub(crate) fn message(&self, number: u64) -> Self {
        let outer = self.inner_path.as_deref().unwrap_or("");
        Place {
            name: String::new(),
            inner_path: Some(format!("{outer}#{number}")),
            depth: self.depth + 1,
        }
    }
}

/// Extracts from bytes of any format: `extract::extract_bytes`. The extraction holds a pointer to
/// it because container formats call it for their members, and modules must not use each other in a
/// circle.
pub(crate) type Convert = fn(&mut Extraction<'_>, &Place, &[u8]) -> Result<(), ExtractError>;

/// One call of [`crate::extract`].
pub(crate) struct Extraction<'a> {
    /// A copy, because the deadline is extended by the time that the caller spends with the output.
    pub(crate) limits: Limits,
    pub(crate) spent: Spent,
    pub(crate) tally: Tally,
    member_paths: HashSet<String>,
    convert: Convert,
    emit: &'a mut dyn FnMut(Output),
}

impl<'a> Extraction<'a> {
    pub(crate) fn new(limits: &Limits, convert: Convert, emit: &'a mut dyn FnMut(Output)) -> Self {
        Extraction {
            limits: limits.clone(),
            spent: Spent::default(),
            tally: Tally::default(),
            member_paths: HashSet::new(),
            convert,
            emit,
        }
    }

    /// Emits the document at `place`.
    pub(crate) fn document(&mut self, place: &Place, mut document: Extracted) {
        document.inner_path.clone_from(&place.inner_path);
        self.tally.documents += 1;
        self.hand_out(Output::Document(Box::new(document)));
    }

    fn hand_out(&mut self, output: Output) {
        let begun = Instant::now();
        (self.emit)(output);
        if let Some(deadline) = &mut self.limits.deadline {
            *deadline += begun.elapsed();
        }
    }

    /// Returns the location of a member of the container at `place`.
    pub(crate) fn member_place(&mut self, place: &Place, member: &str) -> Place {
        let outer = place.inner_path.as_deref().unwrap_or("");
        let path = format!("{outer}!/{member}");
        let numbered = (2u64..).map(|number| format!("{path}~{number}"));
        // Names can repeat in damaged or malicious archives, but each inner path must identify one
        // document.
        let unique = std::iter::once(path.clone())
            .chain(numbered)
            .find(|candidate| !self.member_paths.contains(candidate))
            .unwrap_or(path);
        self.member_paths.insert(unique.clone());
        Place {
            name: member.to_string(),
            inner_path: Some(unique),
            depth: place.depth + 1,
        }
    }

    /// Extracts from a member. Failures of the member are emitted and do not end the extraction.
    ///
    /// # Errors
    /// Errors that end the whole file, see [`ExtractError::ends_file`].
    pub(crate) fn member(&mut self, place: &Place, bytes: &[u8]) -> Result<(), ExtractError> {
        let result = (self.convert)(self, place, bytes);
        self.settle(place, result)
    }

    /// Counts the result of the member at `place`.
    ///
    /// # Errors
    /// Errors that end the whole file, see [`ExtractError::ends_file`].
    pub(crate) fn settle(
        &mut self,
        place: &Place,
        result: Result<(), ExtractError>,
    ) -> Result<(), ExtractError> {
        match result {
            Ok(()) => Ok(()),
            Err(error) if error.ends_file() => Err(error),
            Err(ExtractError::Unsupported(_)) => {
                self.tally.skipped += 1;
                Ok(())
            }
            Err(error) => {
                self.tally.failures += 1;
                let inner_path = place.inner_path.clone().unwrap_or_default();
                self.hand_out(Output::Failure(MemberFailure { inner_path, error }));
                Ok(())
            }
        }
    }
}

/// Converts a panic of a parser library into an error of the file.
pub(crate) fn guarded<T>(
    format: &'static str,
    read: impl FnOnce() -> Result<T, ExtractError>,
) -> Result<T, ExtractError> {
    catch_unwind(AssertUnwindSafe(read))
        .unwrap_or_else(|_| Err(ExtractError::malformed(format, "its reader gave up")))
}
