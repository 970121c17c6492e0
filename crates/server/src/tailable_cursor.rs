//! Tailable cursors: they stay open at the end of a capped collection and continue with new
//! documents.
//!
//! Each batch reads its own snapshot, after the last record that was read. If that record was
//! removed to make space for new ones, some may have been missed, and the cursor ends.

use std::sync::Arc;
use std::time::Instant;

use windrow_collection::{Collection, Position, RecordId};
use windrow_document::Document;
use windrow_mql::Meta;
use windrow_mql::sort::{Natural, Sort};
use windrow_query::{Direction, Find, Hint};
use windrow_wire::{Batch, CommandError, ErrorCode};

use crate::cursors::{BatchSource, SourceBatch};
use crate::errors::OrCommandError;
use crate::operations::Operation;

/// A tailable cursor.
pub struct TailableCursor {
    collection: Arc<Collection>,
    find: Find,
    /// The last record that was read.
    last: RecordId,
    /// The newest commit of the collection before the last batch.
    seen: Position,
    skip: u64,
    /// The rest of the limit. At 0 the cursor stays open, as in MongoDB.
    left: Option<u64>,
}

impl TailableCursor {
    /// Creates a cursor at the start of the collection. A hint is ignored, as in MongoDB, where a
    /// tailable cursor always scans the collection. Fails if the query sorts by anything but the
    /// natural order.
    pub fn new(collection: Arc<Collection>, find: Find) -> Result<TailableCursor, CommandError> {
        let natural = |sort: &Sort| sort.is_empty() || sort.natural() == Some(Natural::Forward);
        let in_order = find.sort.as_ref().is_none_or(natural)
            && !matches!(find.hint, Some(Hint::Natural(Direction::Backward)));
        let is_ordered = find.filter.text().is_some() || find.filter.near().is_some();
        let is_ranged = find.min.is_some() || find.max.is_some() || is_ordered;
        if !in_order || is_ranged || find.return_key || find.show_record_id {
            let message = "a tailable cursor must return documents in natural order, and without the options of index scans";
            return Err(CommandError::new(ErrorCode::BadValue, message));
        }
        collection.scans().record_tailable();
        Ok(TailableCursor {
            skip: find.skip,
            left: find.limit,
            collection,
            find,
            last: RecordId(0),
            seen: Position::ZERO,
        })
    }

    /// Fails if the last record that was read does not exist any more.
    fn check_position(&self, reader: &windrow_collection::Reader) -> Result<(), CommandError> {
        let is_new = self.last == RecordId(0);
        if is_new || reader.get(self.last).or_command_error()?.is_some() {
            return Ok(());
        }
        let message = format!(
            "CollectionScan died due to position in capped collection being deleted. \
             Last seen record id: RecordId({})",
            self.last.0
        );
        Err(CommandError::new(ErrorCode::CappedPositionLost, message))
    }

    /// Adds the result of a document if it matches. Returns `false` if there was no space.
    fn add(
        &mut self,
        document: Document<'_>,
        documents: &mut Batch,
        bytes_max: usize,
    ) -> Result<bool, CommandError> {
        if !self.find.filter.matches(document).or_command_error()? {
            return Ok(true);
        }
        if self.skip > 0 {
            self.skip -= 1;
            return Ok(true);
        }
        let projected = match &self.find.projection {
            Some(projection) => Some(
                projection
                    .apply(document, &Meta::default())
                    .or_command_error()?,
            ),
            None => None,
        };
        let document = projected.as_ref().map_or(document, |it| it.as_document());
        if !documents.has_room(document, bytes_max) {
            return Ok(false);
        }
        documents.push(document);
        self.left = self.left.map(|left| left - 1);
        Ok(true)
    }
}

impl BatchSource for TailableCursor {
    fn next_batch(
        &mut self,
        operation: &Operation,
        limit: usize,
        bytes_max: usize,
    ) -> Result<SourceBatch, CommandError> {
        let mut documents = Batch::new();
        if self.collection.is_dropped() {
            let message = "collection dropped";
            return Err(CommandError::new(ErrorCode::QueryPlanKilled, message));
        }
        self.seen = self.collection.newest_commit();
        let reader = self.collection.reader().or_command_error()?;
        self.check_position(&reader)?;
        let (first, end) = (RecordId(self.last.0 + 1), RecordId(u64::MAX));
        let mut records = reader.record_range(first, end).or_command_error()?;
        while documents.count() < limit && self.left != Some(0) {
            operation.check()?;
            if !records.next().or_command_error()? {
                break;
            }
            let bytes = records.document_bytes();
            let document = Document::from_validated(&bytes);
            if !self.add(document, &mut documents, bytes_max)? {
                break;
            }
            self.last = records.id();
        }
        Ok(SourceBatch {
            documents,
            finished: false,
            ..SourceBatch::default()
        })
    }

    fn wait(&mut self, operation: &Operation, until: Instant) -> Result<bool, CommandError> {
        operation.wait_until(until, |time_max| {
            let arrived = self.collection.wait_for_commit(self.seen, time_max);
            arrived.or_command_error()
        })
    }
}
