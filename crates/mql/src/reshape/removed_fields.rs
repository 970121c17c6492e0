//! The former positions of fields that a stage removed or computed as missing. As in MongoDB, a
//! later stage that sets such a field puts it back at this position.

use std::ops::Range;

/// The former positions of removed fields in a document, in ascending order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RemovedFields {
    /// A boxed slice, because every row contains one and most are empty.
    list: Box<[RemovedField]>,
}

/// A field that was removed from a document or from a nested document.
#[derive(Clone, Debug, PartialEq)]
struct RemovedField {
    /// The offset at which the element of the field would start, from the start of the whole
    /// document. The offset of the null byte at the end of a document belongs to that document.
    offset: usize,
    name: Box<str>,
}

impl RemovedFields {
    /// Returns the heap memory in bytes.
    pub fn bytes(&self) -> usize {
        let bytes = |one: &RemovedField| size_of::<RemovedField>() + one.name.len();
        self.list.iter().map(bytes).sum()
    }
}

/// Reads the removed fields of a source document while its elements are read in order, and records
/// those of the new document.
pub(super) struct Recorder<'v> {
    rest: &'v [RemovedField],
    recorded: Vec<RemovedField>,
    records: bool,
}

impl<'v> Recorder<'v> {
    pub fn new(removed_fields: &'v RemovedFields, records: bool) -> Recorder<'v> {
        Recorder {
            rest: &removed_fields.list,
            recorded: Vec::new(),
            records,
        }
    }

    /// Returns the name of the next removed field if its offset is at most `offset`.
    pub fn take_until(&mut self, offset: usize) -> Option<&'v str> {
        let (first, rest) = self.rest.split_first()?;
        if first.offset > offset {
            return None;
        }
        self.rest = rest;
        Some(&first.name)
    }

    /// Skips the removed fields below `end`.
    pub fn skip(&mut self, end: usize) {
        while self.take_until(end.saturating_sub(1)).is_some() {}
    }

    /// Records a removed field of the new document.
    pub fn record(&mut self, offset: usize, name: &str) {
        if self.records {
            let name = name.into();
            self.recorded.push(RemovedField { offset, name });
        }
    }

    /// Records the removed fields in a range of the source that is copied to `target`.
    pub fn copy(&mut self, source: Range<usize>, target: usize) {
        while let [first, ..] = self.rest
            && first.offset < source.end
        {
            let within = first.offset.saturating_sub(source.start);
            if let Some(name) = self.take_until(first.offset) {
                self.record(target + within, name);
            }
        }
    }

    pub fn finish(self) -> RemovedFields {
        RemovedFields {
            list: self.recorded.into(),
        }
    }
}
