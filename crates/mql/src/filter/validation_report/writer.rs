//! Evaluates the parts of a report and limits its size.

use std::cell::{Cell, OnceCell};

use windrow_document::{ArrayBuf, Document, DocumentBuf, Value, ValueRef};

use crate::filter::{Environment, Filter};
use crate::memory::heap_bytes;
use crate::{Error, interrupt};

/// MongoDB's maximum size of a report on one document.
pub(super) const BYTES_MAX: usize = 12 << 20;

/// The approximate bytes of a list element in a report besides its values.
const PART_BYTES: usize = 64;

/// Writes values into a report, counts its size, and stores the error that stops it.
pub(super) struct ReportWriter<'e> {
    pub environment: &'e Environment,
    /// `true` if values that can be as long as the validator or the document are left out.
    is_brief: bool,
    bytes: Cell<usize>,
    /// The interrupt or the bug that stops the report.
    error: OnceCell<Error>,
}

impl<'e> ReportWriter<'e> {
    pub fn new(environment: &'e Environment, is_brief: bool) -> ReportWriter<'e> {
        ReportWriter {
            environment,
            is_brief,
            bytes: Cell::new(0),
            error: OnceCell::new(),
        }
    }

    /// Returns `true` if the report exceeds its maximum size.
    pub fn is_too_long(&self) -> bool {
        self.bytes.get() > BYTES_MAX
    }

    /// Appends a value if the report stays within its maximum size.
    pub fn show(&self, found: &mut DocumentBuf, name: &str, value: ValueRef<'_>) {
        if self.is_brief {
            return;
        }
        self.count(heap_bytes(value));
        if !self.is_too_long() {
            found.push(name, value);
        }
    }

    /// Appends the part of the validator that the report is about.
    pub fn show_specified(&self, found: &mut DocumentBuf, specified: &DocumentBuf) {
        let specified = ValueRef::Document(specified.as_document());
        self.show(found, "specifiedAs", specified);
    }

    /// Returns `true` if another list element fits and nothing has stopped the report.
    pub fn has_room(&self) -> bool {
        self.count(PART_BYTES);
        !self.must_stop()
    }

    /// Returns `true` if the report is too long, or if an interrupt or a bug has stopped it.
    pub fn must_stop(&self) -> bool {
        if let Err(interrupted) = interrupt::check() {
            self.fail(interrupted.into());
        }
        self.error.get().is_some() || self.is_too_long()
    }

    /// Makes the report fail with `error`.
    fn fail(&self, error: Error) {
        // The first error is kept, because later ones follow from it.
        let _ = self.error.set(error);
    }

    /// Fails with the interrupt or the bug that has stopped the report.
    pub fn finish(self) -> Result<(), Error> {
        self.error.into_inner().map_or(Ok(()), Err)
    }

    /// Returns the result of evaluating a part of the validator, or `failed` if the evaluation
    /// fails for the values. An interrupt or a bug stops the report.
    pub fn result<T>(&self, result: Result<T, Error>, failed: impl FnOnce(Error) -> T) -> T {
        result.unwrap_or_else(|error| {
            if let Err(error) = interrupt::data_error(error.clone()) {
                self.fail(error);
            }
            failed(error)
        })
    }

    /// Returns a list that is cut to the size that is left, because it can be as long as the
    /// validator or the document.
    pub fn list(&self, all: impl Iterator<Item = Value>) -> ArrayBuf {
        all.take_while(|one| {
            self.count(heap_bytes(one.as_ref()));
            self.has_room()
        })
        .collect()
    }

    fn count(&self, bytes: usize) {
        self.bytes.set(self.bytes.get().saturating_add(bytes));
    }

    /// Returns `true` if the document matches a part of the validator. Fails if an expression in it
    /// fails.
    pub fn matches(&self, query: Document<'_>, document: Document<'_>) -> Result<bool, Error> {
        Filter::parse_with(query, self.environment)?.matches(document)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_invariant::{Bug, tolerate_bugs};

    /// A bug in a part of a validator used to be reported to the client as a part that does not
    /// match, and the write failed with 121.
    #[test]
    fn a_bug_stops_the_report() {
        let environment = Environment::default();
        let writer = ReportWriter::new(&environment, false);
        let of_data = Err(Error::new(2, "a value"));
        assert!(writer.result(of_data, |_| true));
        assert!(!writer.must_stop());
        let bug = Error::from(tolerate_bugs(|| Bug::new("a test")));
        assert!(!writer.result(Err(bug.clone()), |_| false));
        assert!(writer.must_stop());
        assert_eq!(writer.finish(), Err(bug));
    }
}
