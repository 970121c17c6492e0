//! Reads documents by record id.

use std::sync::Arc;

use windrow_document::{Document, Value};
use windrow_interrupt::Interrupt;
use windrow_mql::filter::Filter;

use super::operator::{BoxOperator, Counters, Operator, Part, counted, parts_over};
use crate::Error;
use crate::row::{Content, Pace, Row};
use crate::source::Source;

/// Adds the documents to the rows of the input.
pub(super) struct Fetch {
    source: Arc<dyn Source>,
    filter: Option<Filter>,
    input: BoxOperator,
    counters: Counters,
    pace: Pace,
}

impl Fetch {
    pub fn new(source: Arc<dyn Source>, filter: Option<Filter>, input: BoxOperator) -> Fetch {
        Fetch {
            source,
            filter,
            input,
            counters: Counters::default(),
            pace: Pace::default(),
        }
    }
}

impl Operator for Fetch {
    fn next(&mut self, interrupt: &dyn Interrupt) -> Result<Option<Row>, Error> {
        while let Some(row) = self.input.next(interrupt)? {
            self.counters.works += 1;
            let bytes = match row.content {
                // The row comes from a clustered collection, as a branch of an `$or`, and has its
                // document.
                Content::Shared(ref bytes) if !row.content.is_empty() => Some(bytes.clone()),
                _ => self.source.get(row.id)?,
            };
            let Some(bytes) = bytes else {
                continue;
            };
            self.pace.step_over(bytes.len(), interrupt)?;
            self.counters.documents_examined += 1;
            if let Some(filter) = &self.filter
                && !filter.matches(Document::from_validated(&bytes))?
            {
                continue;
            }
            self.counters.returned += 1;
            return Ok(Some(row.with(bytes)));
        }
        self.counters.works += 1;
        self.counters.at_end = true;
        Ok(None)
    }

    counted!(counters, input);

    fn parts(&self) -> Result<Vec<Part>, Error> {
        let (source, filter) = (self.source.clone(), self.filter.clone());
        parts_over(&self.input, move |input| {
            Box::new(Fetch::new(source.clone(), filter.clone(), input))
        })
    }

    fn absorb(&mut self, counts: &[Counters]) {
        self.input.absorb(self.counters.absorb(counts));
    }
}

/// The document with an `_id`.
pub(super) struct IdHack {
    source: Arc<dyn Source>,
    id: Value,
    counters: Counters,
}

impl IdHack {
    pub fn new(source: Arc<dyn Source>, id: Value) -> IdHack {
        IdHack {
            source,
            id,
            counters: Counters::default(),
        }
    }

    fn find(&mut self) -> Result<Option<Row>, Error> {
        let Some((id, bytes)) = self.source.find(self.id.as_ref())? else {
            return Ok(None);
        };
        // A clustered collection has no keys apart from its documents.
        self.counters.keys_examined += u64::from(!self.source.is_clustered());
        self.counters.documents_examined += 1;
        Ok(Some(Row::from_record(id, bytes)))
    }
}

impl Operator for IdHack {
    fn next(&mut self, _: &dyn Interrupt) -> Result<Option<Row>, Error> {
        if self.counters.at_end {
            return Ok(None);
        }
        let row = self.find()?;
        self.counters.record(&row);
        self.counters.at_end = true;
        Ok(row)
    }

    counted!(counters);
}
