//! A hash table of another collection by the values of a field, used if no index has them.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use windrow_document::{Collation, DocumentBuf, Value, doc, key};
use windrow_index::{Definition, Scratch};
use windrow_interrupt::Interrupt;
use windrow_mql::filter::Filter;

use super::Equality;
use crate::Error;
use crate::bounds::leaf;
use crate::cursor::Cursor;
use crate::operators::{ReadCounters, SORT_BYTES_MAX};
use crate::row::{Pace, Row};
use crate::source::{RecordId, Source};

/// The records of the collection by the keys that an index on the field would have.
pub struct JoinTable {
    hasher: RandomState,
    /// The keys of all records, sorted.
    entries: Vec<TableEntry>,
    records: TableRecords,
    /// `true` if the path has numeric components, which can be array positions or names. The keys
    /// then do not tell which documents lack the field.
    has_numbers: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct TableEntry {
    key_hash: u64,
    /// The position of the record in the records of the table.
    record: u32,
}

enum TableRecords {
    Held {
        rows: Vec<Row>,
        /// The memory of the rows, in bytes.
        bytes: usize,
    },
    /// The record ids, if the documents are too large. The documents are read again.
    Stored(Vec<RecordId>),
}

/// The rows of the collection.
pub struct TableRows<'r> {
    pub cursor: &'r mut Cursor,
    /// `true` if the documents are records, which can be read again.
    pub are_stored: bool,
}

impl JoinTable {
    /// Reads the collection. Returns `None` if even the record ids take more than 100 MB.
    pub fn read(
        equality: &Equality,
        rows: TableRows<'_>,
        collation: Option<&Collation>,
        interrupt: &dyn Interrupt,
    ) -> Result<Option<JoinTable>, Error> {
        let Some(definition) = index_on(equality, collation) else {
            return Ok(None);
        };
        let mut table = JoinTable {
            hasher: RandomState::default(),
            entries: Vec::new(),
            records: TableRecords::Held {
                rows: Vec::new(),
                bytes: 0,
            },
            has_numbers: equality
                .foreign
                .components()
                .iter()
                .any(|part| part.index().is_some()),
        };
        let mut scratch = Scratch::default();
        while let Some(row) = rows.cursor.next_row(interrupt)? {
            let record = table.records.count() as u32;
            let (hasher, entries) = (&table.hasher, &mut table.entries);
            let mut emit = |key: &[u8], _: &[u8]| {
                entries.push(TableEntry {
                    key_hash: hasher.hash_one(key),
                    record,
                });
            };
            let keys = definition.keys(row.document(), &mut scratch, &mut emit);
            if keys.is_err() {
                return Ok(None);
            }
            table.records.push(row);
            if rows.are_stored && table.bytes() > SORT_BYTES_MAX {
                table.records.drop_documents();
            }
            if table.bytes() > SORT_BYTES_MAX {
                return Ok(None);
            }
        }
        table.entries.sort_unstable();
        Ok(Some(table))
    }

    fn bytes(&self) -> usize {
        self.entries.len() * size_of::<TableEntry>() + self.records.bytes()
    }

    /// Returns the records that match, in natural order. Returns `None` if the keys do not decide
    /// the filter, or the records are too large. Adds the counters of the reads to `reads`.
    pub fn matching(
        &self,
        filter: &Filter,
        source: &dyn Source,
        reads: &mut ReadCounters,
        interrupt: &dyn Interrupt,
    ) -> Result<Option<Vec<Row>>, Error> {
        let Some(positions) = self.positions(filter) else {
            return Ok(None);
        };
        let (mut found, mut bytes, mut pace) = (Vec::new(), 0, Pace::default());
        for position in positions {
            pace.step(interrupt)?;
            let row = match &self.records {
                TableRecords::Held { rows, .. } => rows.get(position).cloned(),
                TableRecords::Stored(ids) => {
                    reads.documents_examined += 1;
                    let id = ids.get(position).copied();
                    let read = id.map(|id| source.get(id)).transpose()?.flatten();
                    bytes += read.as_ref().map_or(0, |document| document.len());
                    id.zip(read)
                        .map(|(id, document)| Row::from_record(id, document))
                }
            };
            if bytes > SORT_BYTES_MAX {
                return Ok(None);
            }
            // Another key may have the same hash.
            if let Some(row) = row
                && filter.matches(row.document())?
            {
                found.push(row);
            }
        }
        Ok(Some(found))
    }

    /// Returns the sorted positions of the records that may match.
    fn positions(&self, filter: &Filter) -> Option<Vec<usize>> {
        let extent = leaf::extent(filter.root())?;
        let (mut positions, mut bytes) = (Vec::new(), Vec::new());
        for interval in extent.intervals.as_slice() {
            if self.has_numbers && interval.low == Value::Null {
                return None;
            }
            bytes.clear();
            key::append_with_collation(
                &mut bytes,
                interval.low.as_ref(),
                false,
                filter.collation(),
            );
            let hash = self.hasher.hash_one(bytes.as_slice());
            let first = self.entries.partition_point(|entry| entry.key_hash < hash);
            let (_, from_first) = self.entries.split_at(first);
            let of_key = from_first.iter().take_while(|entry| entry.key_hash == hash);
            positions.extend(of_key.map(|entry| entry.record as usize));
        }
        positions.sort_unstable();
        positions.dedup();
        Some(positions)
    }
}

impl TableRecords {
    fn count(&self) -> usize {
        match self {
            TableRecords::Held { rows, .. } => rows.len(),
            TableRecords::Stored(ids) => ids.len(),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            TableRecords::Held { bytes, .. } => *bytes,
            TableRecords::Stored(ids) => ids.len() * size_of::<RecordId>(),
        }
    }

    fn push(&mut self, row: Row) {
        match self {
            TableRecords::Held { rows, bytes } => {
                *bytes += row.bytes() + size_of::<Row>();
                rows.push(row.into_shared());
            }
            TableRecords::Stored(ids) => ids.push(row.id),
        }
    }

    /// Drops the documents and keeps their record ids.
    fn drop_documents(&mut self) {
        if let TableRecords::Held { rows, .. } = self {
            *self = TableRecords::Stored(rows.iter().map(|row| row.id).collect());
        }
    }
}

/// Returns the index whose keys the table has. `None` if the field cannot be indexed.
fn index_on(equality: &Equality, collation: Option<&Collation>) -> Option<Definition> {
    let mut pattern = DocumentBuf::new();
    pattern.push(&equality.foreign.to_string(), 1);
    let mut specification = doc! { "key": pattern, "name": "join" };
    if let Some(collation) = collation {
        specification.push("collation", collation.specification());
    }
    Definition::parse(specification.as_document()).ok()
}
