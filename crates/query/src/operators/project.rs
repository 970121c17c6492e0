//! Operators that transform rows one by one: projection, `returnKey`, `showRecordId`.

use windrow_document::{DocumentBuf, DocumentBuilder, Value, ValueRef};
use windrow_interrupt::Interrupt;
use windrow_mql::Origin;
use windrow_mql::projection::Projection;
use windrow_mql::sort::Sort;

use super::operator::{BoxOperator, Counters, Operator, counted};
use crate::Error;
use crate::plan::ShownSortKeys;
use crate::row::Row;

/// Applies a projection.
pub(super) struct Project {
    projection: Projection,
    /// The order whose keys the projection shows.
    sort: Option<Sort>,
    shows_origin: bool,
    /// `true` if the rows already have the projected fields only.
    is_done: bool,
    input: BoxOperator,
    counters: Counters,
}

impl Project {
    pub fn new(
        projection: Projection,
        sort: Option<Sort>,
        is_done: bool,
        input: BoxOperator,
    ) -> Project {
        Project {
            is_done,
            shows_origin: projection.dependencies().needs_origin(),
            projection,
            sort,
            input,
            counters: Counters::default(),
        }
    }
}

/// Returns the values of the sort key.
fn sort_key(sort: &Sort, row: &Row) -> Result<Value, Error> {
    let values = sort.values(row.document(), &row.meta)?;
    Ok(Value::Array(values.into_iter().collect()))
}

impl Project {
    fn origin(&self, row: &mut Row) -> Result<Origin, Error> {
        let sort = self.sort.as_ref();
        Ok(Origin {
            sort_key: sort.map(|sort| sort_key(sort, row)).transpose()?,
            index_key: row.key.take().map(|key| *key),
            record_id: i64::try_from(row.id.0).ok(),
        })
    }
}

impl Operator for Project {
    fn next(&mut self, interrupt: &dyn Interrupt) -> Result<Option<Row>, Error> {
        let row = self.input.next(interrupt)?;
        self.counters.record(&row);
        let Some(mut row) = row else {
            return Ok(None);
        };
        if self.is_done {
            return Ok(Some(row));
        }
        if self.shows_origin {
            row.meta.origin = Some(Box::new(self.origin(&mut row)?));
        }
        let projected = self.projection.apply(row.document(), &row.meta)?;
        Ok(Some(row.with(projected)))
    }

    fn set_rows_needed(&mut self, rows: u64) {
        self.input.set_rows_needed(rows);
    }

    counted!(counters, input);
}

/// Returns the index keys that the scan below put into the rows.
pub(super) struct ReturnKey {
    sort_keys: Option<Box<ShownSortKeys>>,
    input: BoxOperator,
    counters: Counters,
}

impl ReturnKey {
    pub fn new(sort_keys: Option<Box<ShownSortKeys>>, input: BoxOperator) -> ReturnKey {
        ReturnKey {
            sort_keys,
            input,
            counters: Counters::default(),
        }
    }
}

impl Operator for ReturnKey {
    fn next(&mut self, interrupt: &dyn Interrupt) -> Result<Option<Row>, Error> {
        let row = self.input.next(interrupt)?;
        self.counters.record(&row);
        let Some(mut row) = row else {
            return Ok(None);
        };
        let key = row.key.take().map_or_else(DocumentBuf::new, |key| *key);
        let Some(ShownSortKeys { projection, sort }) = self.sort_keys.as_deref() else {
            return Ok(Some(row.with(key)));
        };
        row.meta.origin = Some(Box::new(Origin {
            sort_key: Some(sort_key(sort, &row)?),
            ..Origin::default()
        }));
        let shown = projection.apply(key.as_document(), &row.meta)?;
        Ok(Some(row.with(shown)))
    }

    fn set_rows_needed(&mut self, rows: u64) {
        self.input.set_rows_needed(rows);
    }

    counted!(counters, input);
}

/// Adds `$recordId` to the documents.
pub(super) struct RecordIds {
    input: BoxOperator,
    counters: Counters,
}

impl RecordIds {
    pub fn new(input: BoxOperator) -> RecordIds {
        RecordIds {
            input,
            counters: Counters::default(),
        }
    }
}

impl Operator for RecordIds {
    fn next(&mut self, interrupt: &dyn Interrupt) -> Result<Option<Row>, Error> {
        let row = self.input.next(interrupt)?;
        self.counters.record(&row);
        Ok(row.map(|row| {
            let mut builder = DocumentBuilder::new();
            builder.append_all(row.document());
            builder.append("$recordId", ValueRef::Int64(row.id.0 as i64));
            let document = builder.finish();
            row.with(document)
        }))
    }

    fn set_rows_needed(&mut self, rows: u64) {
        self.input.set_rows_needed(rows);
    }

    counted!(counters, input);
}
