//! Reads documents by record id.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use windrow_document::{Document, Value};
use windrow_interrupt::Interrupt;
use windrow_mql::filter::Filter;

use super::document_prefetch::{PrefetchedDocuments, TOGETHER_MAX};
use super::operator::{BoxOperator, Counters, Operator, Part, counted, parts_over};
use crate::Error;
use crate::row::{Content, Pace, Row};
use crate::source::Source;

/// Adds the documents to the rows of the input. Several documents are read together, more each
/// time. Rows of the input are read ahead for this, but no more than the rows that are still needed.
pub(super) struct Fetch {
    source: Arc<dyn Source>,
    filter: Option<Filter>,
    input: BoxOperator,
    /// The next rows of the input.
    waiting: VecDeque<Row>,
    documents: PrefetchedDocuments,
    /// The number of rows that are read ahead next.
    rows_ahead: u64,
    /// The number of rows that the result needs at most.
    rows_needed: u64,
    counters: Counters,
    pace: Pace,
}

impl Fetch {
    pub fn new(source: Arc<dyn Source>, filter: Option<Filter>, input: BoxOperator) -> Fetch {
        Fetch {
            source,
            filter,
            input,
            waiting: VecDeque::new(),
            documents: PrefetchedDocuments::default(),
            rows_ahead: 1,
            rows_needed: u64::MAX,
            counters: Counters::default(),
            pace: Pace::default(),
        }
    }

    /// Returns the next row of the input and its document.
    fn next_document(
        &mut self,
        interrupt: &dyn Interrupt,
    ) -> Result<Option<(Row, Option<Bytes>)>, Error> {
        if self.waiting.is_empty() {
            self.read_ahead(interrupt)?;
        }
        let Some(row) = self.waiting.pop_front() else {
            return Ok(None);
        };
        let document = match own_document(&row) {
            Some(bytes) => Some(bytes.clone()),
            None => {
                let without = self
                    .waiting
                    .iter()
                    .filter(|row| own_document(row).is_none());
                let ids = std::iter::once(row.id).chain(without.map(|row| row.id));
                self.documents.next(&*self.source, ids)?
            }
        };
        Ok(Some((row, document)))
    }

    fn read_ahead(&mut self, interrupt: &dyn Interrupt) -> Result<(), Error> {
        let missing = self.rows_needed.saturating_sub(self.counters.returned);
        for _ in 0..missing.clamp(1, self.rows_ahead) {
            match self.input.next(interrupt)? {
                Some(row) => self.waiting.push_back(row),
                None => break,
            }
        }
        self.rows_ahead = (TOGETHER_MAX as u64).min(2 * self.rows_ahead);
        Ok(())
    }
}

/// Returns the document that a row has already, because it comes from a clustered collection as a
/// branch of an `$or`.
fn own_document(row: &Row) -> Option<&Bytes> {
    match &row.content {
        Content::Shared(bytes) if !row.content.is_empty() => Some(bytes),
        _ => None,
    }
}

impl Operator for Fetch {
    fn next(&mut self, interrupt: &dyn Interrupt) -> Result<Option<Row>, Error> {
        while let Some((row, bytes)) = self.next_document(interrupt)? {
            self.counters.works += 1;
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

    fn set_rows_needed(&mut self, rows: u64) {
        self.rows_needed = rows;
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
