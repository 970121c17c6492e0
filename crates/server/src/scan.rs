//! All documents of a collection, filtered, sorted and projected in memory.

use windrow_collection::{Direction, Reader, RecordCursor};
use windrow_document::{Document, DocumentBuf};
use windrow_mql::Meta;
use windrow_mql::filter::Filter;
use windrow_mql::projection::Projection;
use windrow_mql::sort::Sort;
use windrow_wire::{Batch, CommandError};

use crate::cursors::{BatchSource, SourceBatch};
use crate::errors::OrCommandError;
use crate::operations::Operation;

/// What a `find` asks for.
pub struct Search {
    pub filter: Filter,
    pub projection: Option<Projection>,
    pub sort: Option<Sort>,
    pub skip: u64,
    pub limit: Option<u64>,
}

/// The documents of a search, as they come or sorted.
pub struct Scan {
    search: Search,
    rows: Rows,
    skip: u64,
    left: u64,
}

enum Rows {
    AsTheyCome(RecordCursor),
    Sorted(std::vec::IntoIter<DocumentBuf>),
}

impl Scan {
    pub fn open(
        reader: &Reader,
        search: Search,
        operation: &Operation,
    ) -> Result<Scan, CommandError> {
        let mut cursor = reader.records(Direction::Forward);
        let rows = match &search.sort {
            None => Rows::AsTheyCome(cursor),
            Some(sort) => {
                let mut keyed = Vec::new();
                while cursor.next().or_command_error()? {
                    operation.check()?;
                    let document = Document::from_validated(cursor.document());
                    if search.filter.matches(document).or_command_error()? {
                        let mut key = Vec::new();
                        sort.key(document, &Meta::default(), &mut key)
                            .or_command_error()?;
                        keyed.push((key, document.to_buf()));
                    }
                }
                keyed.sort_by(|one, other| one.0.cmp(&other.0));
                let sorted: Vec<DocumentBuf> = keyed.into_iter().map(|(_, it)| it).collect();
                Rows::Sorted(sorted.into_iter())
            }
        };
        let (skip, left) = (search.skip, search.limit.unwrap_or(u64::MAX));
        Ok(Scan {
            search,
            rows,
            skip,
            left,
        })
    }

    fn next(&mut self, operation: &Operation) -> Result<Option<DocumentBuf>, CommandError> {
        if self.left == 0 {
            return Ok(None);
        }
        loop {
            operation.check()?;
            let found = match &mut self.rows {
                Rows::Sorted(rows) => rows.next(),
                Rows::AsTheyCome(cursor) => {
                    if !cursor.next().or_command_error()? {
                        return Ok(None);
                    }
                    let document = Document::from_validated(cursor.document());
                    if !self.search.filter.matches(document).or_command_error()? {
                        continue;
                    }
                    Some(document.to_buf())
                }
            };
            if self.skip > 0 && found.is_some() {
                self.skip -= 1;
                continue;
            }
            self.left -= 1;
            return match (found, &self.search.projection) {
                (Some(document), Some(projection)) => projection
                    .apply(document.as_document(), &Meta::default())
                    .map(Some)
                    .or_command_error(),
                (found, _) => Ok(found),
            };
        }
    }
}

impl BatchSource for Scan {
    fn next_batch(
        &mut self,
        operation: &Operation,
        limit: usize,
        bytes_max: usize,
    ) -> Result<SourceBatch, CommandError> {
        let mut documents = Batch::new();
        while documents.count() < limit && documents.bytes() < bytes_max {
            match self.next(operation)? {
                Some(document) => documents.push(document.as_document()),
                None => {
                    return Ok(SourceBatch {
                        documents,
                        finished: true,
                    });
                }
            }
        }
        Ok(SourceBatch {
            documents,
            finished: false,
        })
    }
}
