//! The places of fields that a stage removed or computed as missing. As in MongoDB a later stage
//! that sets such a field puts it back in its place.

use std::ops::Range;

/// The places of removed fields in a document, in the order of their offsets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Vacancies {
    /// Not a vector: rows carry it, and most have none.
    list: Box<[Vacancy]>,
}

/// A field that a document or a document within it does not have any more.
#[derive(Clone, Debug, PartialEq)]
struct Vacancy {
    /// Where the field's element would begin, from the start of the whole document. The offset of
    /// the zero that ends a document belongs to that document.
    offset: usize,
    name: Box<str>,
}

impl Vacancies {
    /// Memory that is in use, in bytes.
    pub fn bytes(&self) -> usize {
        let bytes = |one: &Vacancy| size_of::<Vacancy>() + one.name.len();
        self.list.iter().map(bytes).sum()
    }
}

/// Reads the vacancies of one document, while its elements are read in order, and records those of
/// the document that is made of it.
pub(super) struct Recorder<'v> {
    rest: &'v [Vacancy],
    recorded: Vec<Vacancy>,
    records: bool,
}

impl<'v> Recorder<'v> {
    pub fn new(vacancies: &'v Vacancies, records: bool) -> Recorder<'v> {
        Recorder {
            rest: &vacancies.list,
            recorded: Vec::new(),
            records,
        }
    }

    /// Takes the name of the next vacancy if its offset is not above `offset`.
    pub fn take_until(&mut self, offset: usize) -> Option<&'v str> {
        let (first, rest) = self.rest.split_first()?;
        if first.offset > offset {
            return None;
        }
        self.rest = rest;
        Some(&first.name)
    }

    /// Passes over the vacancies below `end`.
    pub fn skip(&mut self, end: usize) {
        while self.take_until(end.saturating_sub(1)).is_some() {}
    }

    /// Records a vacancy of the new document.
    pub fn record(&mut self, offset: usize, name: &str) {
        if self.records {
            let name = name.into();
            self.recorded.push(Vacancy { offset, name });
        }
    }

    /// Records the vacancies within bytes of the source that are copied to `target`.
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

    pub fn finish(self) -> Vacancies {
        Vacancies {
            list: self.recorded.into(),
        }
    }
}
