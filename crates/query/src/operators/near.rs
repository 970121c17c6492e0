//! Runs `$near`: see [`NearScan`].
//!
//! The area around the point is divided into rings. For each ring, the scan reads the cells that
//! cover it and have not been read before. Their documents wait in a queue, ordered by distance,
//! until all nearer cells have been read.
//!
//! ```text
//! cells up to 1 km → documents → distances   those up to 1 km are returned, the others wait
//! cells up to 2 km, without those already read → …
//! ```
//!
//! The first ring is about as wide as the smallest cell around the point that is not empty. The
//! width grows after rings with few documents.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use windrow_document::Document;
use windrow_geo::KeyRange;
use windrow_geo::key_range::{difference, union};
use windrow_interrupt::Interrupt;
use windrow_mql::filter::nearest;

use super::id_set::IdSet;
use super::index_scan::IndexScanOperator;
use super::operator::{Counters, Operator, counted};
use crate::Error;
use crate::bounds::geo::intervals;
use crate::near::NearScan;
use crate::plan::{IndexScan, KeyOutput};
use crate::row::Row;
use crate::source::{Direction, RecordId, Source};

/// After a ring with fewer documents, the width doubles. After a ring with more than
/// `DOCUMENTS_MANY`, it halves.
const DOCUMENTS_FEW: usize = 64;
const DOCUMENTS_MANY: usize = 4096;
/// If more documents wait, only their ids are kept, and they are read again later.
const WAITING_WHOLE: usize = 10_000;

pub(super) struct NearScanOperator {
    source: Arc<dyn Source>,
    scan: NearScan,
    /// `None` before the first ring.
    reach: Option<Reach>,
    /// The ranges of keys that have been read.
    read: Vec<KeyRange>,
    seen: IdSet,
    waiting: BinaryHeap<Reverse<QueuedDocument>>,
    /// `true` if all cells have been read.
    is_complete: bool,
    counters: Counters,
}

/// How far the scan has read.
#[derive(Clone, Copy)]
struct Reach {
    /// The distance up to which all cells have been read.
    distance: f64,
    /// The width of the next ring.
    ring_width: f64,
}

/// A document that is returned once all nearer ones have been.
struct QueuedDocument {
    distance: f64,
    number: u64,
    id: RecordId,
    row: Option<Row>,
}

impl NearScanOperator {
    pub fn new(source: Arc<dyn Source>, scan: &NearScan) -> NearScanOperator {
        NearScanOperator {
            source,
            scan: scan.clone(),
            reach: None,
            read: Vec::new(),
            seen: IdSet::default(),
            waiting: BinaryHeap::new(),
            is_complete: false,
            counters: Counters::default(),
        }
    }

    /// Returns a scan of the entries in these ranges.
    fn rows(&self, ranges: &[KeyRange]) -> Result<IndexScanOperator, Error> {
        let mut bounds = self.scan.bounds.clone();
        if let Some(field) = bounds.fields.get_mut(self.scan.field) {
            *field = intervals(&self.scan.cells, ranges);
        }
        let scan = IndexScan {
            index: self.scan.index.clone(),
            direction: Direction::Forward,
            bounds,
            range: None,
            filter: None,
            output: KeyOutput::Nothing,
            distinct_prefix: None,
        };
        IndexScanOperator::new(&self.source, &scan)
    }

    /// Returns about the width of the smallest cell around the point that is not empty.
    fn first_width(&mut self, interrupt: &dyn Interrupt) -> Result<f64, Error> {
        let (cells, near) = (self.scan.cells, self.scan.near.clone());
        let (mut coarse, mut fine) = (0, cells.level_max());
        while coarse < fine {
            let level = fine - (fine - coarse) / 2;
            let mut rows = self.rows(&[cells.cell_range(&near, level)])?;
            let holds = rows.next(interrupt)?.is_some();
            self.counters.keys_examined += rows.counters().keys_examined;
            if holds {
                coarse = level
            } else {
                fine = level - 1
            }
        }
        Ok(cells.cell_width(&near, coarse))
    }

    /// Reads the next ring.
    fn widen(&mut self, interrupt: &dyn Interrupt) -> Result<(), Error> {
        let near = self.scan.near.clone();
        let reach = match self.reach {
            Some(reach) => reach,
            None => Reach {
                distance: near.min,
                ring_width: self.first_width(interrupt)?,
            },
        };
        let end = near.max.min(self.scan.cells.distance_max(&near));
        let outer = (reach.distance + reach.ring_width).min(end);
        let ranges = self.scan.cells.ranges_within(&near, outer);
        let fresh = difference(&ranges, &self.read);
        let found = self.read_ring(&fresh, interrupt)?;
        self.read = union(std::mem::take(&mut self.read), &fresh);
        let growth = match found {
            0..DOCUMENTS_FEW => 2.0,
            DOCUMENTS_FEW..DOCUMENTS_MANY => 1.0,
            _ => 0.5,
        };
        self.is_complete = outer >= end;
        self.reach = Some(Reach {
            distance: outer,
            ring_width: reach.ring_width * growth,
        });
        Ok(())
    }

    /// Adds the documents of the ranges to the queue. Returns their number.
    fn read_ring(
        &mut self,
        ranges: &[KeyRange],
        interrupt: &dyn Interrupt,
    ) -> Result<usize, Error> {
        if ranges.is_empty() {
            return Ok(0);
        }
        let mut rows = self.rows(ranges)?;
        let mut found = 0;
        while let Some(row) = rows.next(interrupt)? {
            if !self.seen.insert(row.id) {
                continue;
            }
            let Some((distance, row)) = self.examine(row.id)? else {
                continue;
            };
            found += 1;
            self.waiting.push(Reverse(QueuedDocument {
                distance,
                number: self.counters.documents_examined,
                id: row.id,
                row: (self.waiting.len() < WAITING_WHOLE).then_some(row),
            }));
        }
        let below = rows.counters();
        self.counters.keys_examined += below.keys_examined;
        self.counters.seeks += below.seeks;
        Ok(found)
    }

    /// Returns the distance and the row of a record, if it matches.
    fn examine(&mut self, id: RecordId) -> Result<Option<(f64, Row)>, Error> {
        let Some(bytes) = self.source.get(id)? else {
            return Ok(None);
        };
        self.counters.documents_examined += 1;
        let document = Document::from_validated(&bytes);
        let Some(found) = nearest(&self.scan.path, &self.scan.near, document)? else {
            return Ok(None);
        };
        if !self.scan.near.allows(found.distance) {
            return Ok(None);
        }
        if let Some(filter) = &self.scan.filter
            && !filter.matches(document)?
        {
            return Ok(None);
        }
        let distance = found.distance;
        let mut row = Row::from_record(id, bytes);
        row.meta.nearest = Some(Box::new(found));
        Ok(Some((distance, row)))
    }

    /// Returns the row of a document from the queue.
    fn row_of(&mut self, waiting: QueuedDocument) -> Result<Option<Row>, Error> {
        match waiting.row {
            Some(row) => Ok(Some(row)),
            None => Ok(self.examine(waiting.id)?.map(|(_, row)| row)),
        }
    }

    fn next_row(&mut self, interrupt: &dyn Interrupt) -> Result<Option<Row>, Error> {
        loop {
            let reached = self.reach.map_or(f64::NEG_INFINITY, |reach| reach.distance);
            let is_due = |Reverse(first): &Reverse<QueuedDocument>| {
                self.is_complete || first.distance <= reached
            };
            if self.waiting.peek().is_some_and(is_due)
                && let Some(Reverse(first)) = self.waiting.pop()
            {
                match self.row_of(first)? {
                    Some(row) => return Ok(Some(row)),
                    // The condition is not deterministic, and no longer accepts the document.
                    None => continue,
                }
            }
            if self.is_complete {
                return Ok(None);
            }
            interrupt.check()?;
            self.widen(interrupt)?;
        }
    }
}

impl Operator for NearScanOperator {
    fn next(&mut self, interrupt: &dyn Interrupt) -> Result<Option<Row>, Error> {
        let row = self.next_row(interrupt)?;
        self.counters.record(&row);
        Ok(row)
    }

    counted!(counters);
}

impl Ord for QueuedDocument {
    fn cmp(&self, other: &QueuedDocument) -> std::cmp::Ordering {
        let distances = self.distance.total_cmp(&other.distance);
        distances.then(self.number.cmp(&other.number))
    }
}

impl PartialOrd for QueuedDocument {
    fn partial_cmp(&self, other: &QueuedDocument) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for QueuedDocument {
    fn eq(&self, other: &QueuedDocument) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for QueuedDocument {}
