//! What all parts of the details are told with: how conditions are tried, and how much is shown.

use std::cell::Cell;

use windrow_document::{ArrayBuf, Document, DocumentBuf, Value, ValueRef};

use crate::Error;
use crate::filter::{Environment, Filter};
use crate::interrupt;
use crate::memory::heap_bytes;

/// MongoDB's limit of what is told of one document.
pub(super) const BYTES_MAX: usize = 12 << 20;

/// What a part of an array takes beside its values: names, numbers and reasons.
const PART_BYTES: usize = 64;

pub(super) struct Telling<'e> {
    pub environment: &'e Environment,
    /// Whether what can be as long as the validator or the document is left out.
    is_brief: bool,
    bytes: Cell<usize>,
}

impl<'e> Telling<'e> {
    pub fn new(environment: &'e Environment, is_brief: bool) -> Telling<'e> {
        Telling {
            environment,
            is_brief,
            bytes: Cell::new(0),
        }
    }

    /// Whether no more is to be told.
    pub fn is_too_long(&self) -> bool {
        self.bytes.get() > BYTES_MAX
    }

    /// Shows a value, unless that is too much.
    pub fn show(&self, found: &mut DocumentBuf, name: &str, value: ValueRef<'_>) {
        if self.is_brief {
            return;
        }
        self.count(heap_bytes(value));
        if !self.is_too_long() {
            found.push(name, value);
        }
    }

    /// Shows the part of the validator that is spoken of.
    pub fn show_specified(&self, found: &mut DocumentBuf, specified: &DocumentBuf) {
        let specified = ValueRef::Document(specified.as_document());
        self.show(found, "specifiedAs", specified);
    }

    /// Whether there is room for one more part of a list, and time to tell it.
    pub fn has_room(&self) -> bool {
        self.count(PART_BYTES);
        !self.must_stop()
    }

    /// Whether nothing more is to be looked at: there is no room for it, or the write is to stop.
    pub fn must_stop(&self) -> bool {
        if interrupt::check().is_err() {
            self.bytes.set(usize::MAX);
        }
        self.is_too_long()
    }

    /// A list that is as long as the validator or the document, with as much of it as there is room for.
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

    /// Whether a part of a validator matches; an error where an expression in it fails.
    pub fn matches(&self, query: Document<'_>, document: Document<'_>) -> Result<bool, Error> {
        Filter::parse_with(query, self.environment)?.matches(document)
    }
}
