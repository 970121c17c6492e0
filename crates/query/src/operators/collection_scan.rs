//! Reads all records in natural order.

use std::sync::Arc;

use windrow_document::Document;
use windrow_interrupt::Interrupt;
use windrow_mql::filter::Filter;

use super::operator::{Counters, Operator, Part, counted};
use super::parallel::parts_max;
use crate::Error;
use crate::row::{Pace, Row};
use crate::source::{Direction, KEYS_END, RecordCursor, RecordPart, Source};

pub(super) struct CollectionScan {
    source: Arc<dyn Source>,
    direction: Direction,
    cursor: Box<dyn RecordCursor>,
    filter: Option<Filter>,
    counters: Counters,
    pace: Pace,
}

impl CollectionScan {
    pub fn new(
        source: &Arc<dyn Source>,
        direction: Direction,
        filter: Option<Filter>,
    ) -> Result<CollectionScan, Error> {
        let cursor = source.records(direction)?;
        Ok(CollectionScan::with_cursor(
            source, direction, filter, cursor,
        ))
    }

    fn with_cursor(
        source: &Arc<dyn Source>,
        direction: Direction,
        filter: Option<Filter>,
        cursor: Box<dyn RecordCursor>,
    ) -> CollectionScan {
        CollectionScan {
            source: source.clone(),
            direction,
            cursor,
            filter,
            counters: Counters::default(),
            pace: Pace::default(),
        }
    }

    /// The same scan of a part of the records.
    fn part(&self, records: RecordPart) -> Part {
        let (source, direction, filter) =
            (self.source.clone(), self.direction, self.filter.clone());
        Box::new(move || {
            let scan = CollectionScan::with_cursor(&source, direction, filter.clone(), records()?);
            Ok(Box::new(scan))
        })
    }
}

/// Parts with fewer records are not worth a thread.
const PART_RECORDS_MIN: u64 = 4096;

impl Operator for CollectionScan {
    fn next(&mut self, interrupt: &dyn Interrupt) -> Result<Option<Row>, Error> {
        if self.counters.at_end {
            return Ok(None);
        }
        while self.cursor.next()? {
            let bytes = self.cursor.document().len();
            self.pace.step_over(bytes, interrupt)?;
            self.counters.works += 1;
            self.counters.documents_examined += 1;
            if let Some(filter) = &self.filter
                && !filter.matches(Document::from_validated(self.cursor.document()))?
            {
                continue;
            }
            self.counters.returned += 1;
            let bytes = self.cursor.document_bytes();
            return Ok(Some(Row::from_record(self.cursor.id(), bytes)));
        }
        self.counters.works += 1;
        self.counters.at_end = true;
        Ok(None)
    }

    /// Each document has one entry in the index on `_id`.
    fn count_known(&mut self, _: &dyn Interrupt) -> Result<Option<u64>, Error> {
        if self.filter.is_some() || self.source.indexes().is_empty() {
            return Ok(None);
        }
        let count = self.source.count_entries(0, &[], KEYS_END)?;
        self.counters.record_count(count);
        Ok(count)
    }

    counted!(counters);

    fn parts(&self) -> Result<Vec<Part>, Error> {
        let count = parts_max().min(self.source.count() / PART_RECORDS_MIN);
        if count < 2 || self.direction == Direction::Backward {
            return Ok(Vec::new());
        }
        let parts = self.source.parts(count)?;
        Ok(parts
            .into_iter()
            .map(|records| self.part(records))
            .collect())
    }

    fn absorb(&mut self, counts: &[Counters]) {
        self.counters.absorb(counts);
    }
}
