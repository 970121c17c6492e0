//! All records, in natural order.

use std::sync::Arc;

use windrow_document::Document;
use windrow_mql::filter::Filter;

use super::operator::{Counters, Operator};
use crate::Error;
use crate::row::{Interrupt, Pace, Row};
use crate::source::{Direction, RecordCursor, Source};

pub(super) struct CollectionScan {
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
        Ok(CollectionScan {
            cursor: source.records(direction)?,
            filter,
            counters: Counters::default(),
            pace: Pace::default(),
        })
    }
}

impl Operator for CollectionScan {
    fn next(&mut self, interrupt: &dyn Interrupt) -> Result<Option<Row>, Error> {
        if self.counters.at_end {
            return Ok(None);
        }
        while self.cursor.next()? {
            self.pace.step(interrupt)?;
            self.counters.works += 1;
            self.counters.documents_examined += 1;
            if let Some(filter) = &self.filter
                && !filter.matches(Document::from_validated(self.cursor.document()))?
            {
                continue;
            }
            self.counters.returned += 1;
            let bytes = self.cursor.document_bytes();
            return Ok(Some(Row::of_record(self.cursor.id(), bytes)));
        }
        self.counters.works += 1;
        self.counters.at_end = true;
        Ok(None)
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}
