//! Entries of an index, range by range; of the index that a clustered collection is, its documents.

use std::sync::Arc;

use windrow_document::{Document, key};
use windrow_mql::filter::Filter;

use super::id_set::IdSet;
use super::key_document::KeyDocument;
use super::operator::{Counters, Operator};
use crate::Error;
use crate::bounds::interval::after;
use crate::bounds::range::KeyRange;
use crate::bounds::range::ScanRanges;
use crate::plan::{IndexScan, KeyOutput};
use crate::row::{Content, Interrupt, Pace, Row};
use crate::source::{Direction, EntryCursor, RecordId, Source};

/// Entries that fail a check one after the other before the scan seeks instead.
const MISSES_BEFORE_SEEK: u32 = 8;

pub(super) struct IndexScanner {
    cursor: Box<dyn EntryCursor>,
    direction: Direction,
    ranges: ScanRanges,
    /// The range that is being read, from its end or its start by direction.
    current: usize,
    is_in_range: bool,
    misses: u32,
    filter: Option<Filter>,
    document: Option<KeyDocument>,
    output: KeyOutput,
    /// Where a record may come by several keys.
    seen: Option<IdSet>,
    counters: Counters,
    pace: Pace,
}

impl IndexScanner {
    pub fn new(source: &Arc<dyn Source>, scan: &IndexScan) -> Result<IndexScanner, Error> {
        let definition = &scan.index.definition;
        let mut ranges = ScanRanges::of(definition, &scan.bounds);
        if let Some(range) = &scan.range {
            ranges.ranges = vec![range.clone()];
            ranges.checks.iter_mut().for_each(|check| *check = None);
        }
        let wants_document = match scan.output {
            KeyOutput::Nothing => scan.filter.is_some(),
            KeyOutput::Document | KeyOutput::Flat => true,
            KeyOutput::Stored => false,
        };
        let one_key = ranges.is_plain() && scan.bounds.is_one_key();
        let cursor = match ranges.ranges.first() {
            Some((key, _)) if one_key => source.postings(scan.index.number, key)?,
            _ => source.entries(scan.index.number, scan.direction)?,
        };
        Ok(IndexScanner {
            cursor,
            direction: if one_key {
                Direction::Forward
            } else {
                scan.direction
            },
            ranges,
            current: 0,
            is_in_range: one_key,
            misses: 0,
            filter: scan.filter.clone(),
            document: wants_document.then(|| KeyDocument::new(definition, scan.output)),
            output: scan.output,
            seen: (scan.may_repeat() && !one_key).then(IdSet::default),
            counters: Counters::default(),
            pace: Pace::default(),
        })
    }

    fn range(&self) -> Option<&KeyRange> {
        match self.direction {
            Direction::Forward => self.ranges.ranges.get(self.current),
            Direction::Backward => {
                let last = self.ranges.ranges.len().checked_sub(1 + self.current)?;
                self.ranges.ranges.get(last)
            }
        }
    }

    fn seek(&mut self, key: &[u8]) -> Result<(), Error> {
        self.counters.seeks += 1;
        self.cursor.seek(key, RecordId(0))
    }

    /// Goes to the next entry that lies in a range; false after the last.
    fn advance(&mut self) -> Result<bool, Error> {
        loop {
            if !self.is_in_range {
                let Some((from, to)) = self.range() else {
                    return Ok(false);
                };
                let start = if self.direction == Direction::Forward {
                    from
                } else {
                    to
                };
                let start = start.clone();
                self.seek(&start)?;
                self.is_in_range = true;
            }
            if self.cursor.next()? && self.is_before_end() {
                return Ok(true);
            }
            self.is_in_range = false;
            self.current += 1;
        }
    }

    fn is_before_end(&self) -> bool {
        let key = self.cursor.key();
        self.range().is_some_and(|(from, to)| match self.direction {
            Direction::Forward => key < to.as_slice(),
            Direction::Backward => key >= from.as_slice(),
        })
    }

    /// Whether the values behind the ranges are wanted. After some that are not, seeks to where the
    /// next ones may be.
    fn passes_checks(&mut self) -> Result<bool, Error> {
        if self.ranges.is_plain() {
            return Ok(true);
        }
        let Some(place) = first_failing(&self.ranges, self.cursor.key(), self.direction) else {
            self.misses = 0;
            return Ok(true);
        };
        self.misses += 1;
        if self.misses >= MISSES_BEFORE_SEEK {
            self.misses = 0;
            self.seek(&place)?;
        }
        Ok(false)
    }

    /// The row of the current entry, if its document is wanted, which stands beside the key.
    fn stored_row(&mut self) -> Result<Option<Row>, Error> {
        self.counters.documents_examined += 1;
        if let Some(filter) = &self.filter
            && !filter.matches(Document::from_validated(self.cursor.payload()))?
        {
            return Ok(None);
        }
        let document = self.cursor.payload_bytes();
        Ok(Some(Row::of_record(self.cursor.id(), document)))
    }

    /// The row of the current entry, if it is wanted.
    fn row(&mut self) -> Result<Option<Row>, Error> {
        if self.output == KeyOutput::Stored {
            return self.stored_row();
        }
        let id = self.cursor.id();
        self.counters.keys_examined += 1;
        let made = self
            .document
            .as_ref()
            .map(|maker| maker.make(self.cursor.key(), self.cursor.payload()));
        if let (Some(filter), Some(made)) = (&self.filter, &made)
            && !filter.matches(made.as_document())?
        {
            return Ok(None);
        }
        if let Some(seen) = &mut self.seen {
            self.counters.duplicates_tested += 1;
            if !seen.insert(id) {
                self.counters.duplicates_dropped += 1;
                return Ok(None);
            }
        }
        let mut row = Row::of_record(id, Content::EMPTY);
        match (self.output, made) {
            (KeyOutput::Document, Some(made)) => row.content = Content::Owned(made),
            (KeyOutput::Flat, Some(made)) => row.key = Some(Box::new(made)),
            _ => {}
        }
        Ok(Some(row))
    }
}

impl Operator for IndexScanner {
    fn next(&mut self, interrupt: &dyn Interrupt) -> Result<Option<Row>, Error> {
        if self.counters.at_end {
            return Ok(None);
        }
        while self.advance()? {
            self.pace.step(interrupt)?;
            self.counters.works += 1;
            if !self.passes_checks()? {
                self.counters.keys_examined += 1;
                continue;
            }
            if let Some(row) = self.row()? {
                self.counters.returned += 1;
                return Ok(Some(row));
            }
        }
        self.counters.works += 1;
        self.counters.at_end = true;
        Ok(None)
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}

/// The key bytes of each field of a key. Ends where the bytes are damaged.
fn split_key<'k>(key: &'k [u8], descending: &[bool]) -> Vec<&'k [u8]> {
    let mut reader = key::Reader::new(key, &[]);
    let mut parts = Vec::with_capacity(descending.len());
    let mut rest = key;
    for descending in descending {
        if reader.value(*descending).is_none() {
            break;
        }
        let taken = rest.len() - reader.rest().len();
        parts.push(rest.get(..taken).unwrap_or_default());
        rest = reader.rest();
    }
    parts
}

/// None where every checked field has a wanted value; else the key to seek to, which lies behind the
/// key in the scan's direction.
fn first_failing(ranges: &ScanRanges, key: &[u8], direction: Direction) -> Option<Vec<u8>> {
    let parts = split_key(key, &ranges.descending);
    let mut prefix_bytes = 0;
    for (part, check) in parts.iter().zip(&ranges.checks) {
        let prefix = key.get(..prefix_bytes).unwrap_or_default();
        if let Some(wanted) = check
            && !wanted
                .iter()
                .any(|(from, to)| from.as_slice() <= *part && *part < to.as_slice())
        {
            return Some(next_wanted(prefix, part, wanted, direction));
        }
        prefix_bytes += part.len();
    }
    None
}

/// The place of the next wanted value behind this one, or the end of the keys with the prefix.
fn next_wanted(prefix: &[u8], part: &[u8], wanted: &[KeyRange], direction: Direction) -> Vec<u8> {
    match direction {
        Direction::Forward => match wanted.iter().find(|(from, _)| from.as_slice() > part) {
            Some((from, _)) => [prefix, from].concat(),
            None => after(prefix),
        },
        Direction::Backward => match wanted.iter().rev().find(|(_, to)| to.as_slice() <= part) {
            Some((_, to)) => [prefix, to].concat(),
            None => prefix.to_vec(),
        },
    }
}
