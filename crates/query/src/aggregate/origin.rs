//! Provides `{$meta: "indexKey"}`, `{$meta: "recordId"}` and `{$meta: "sortKey"}` in a pipeline:
//! adds the origin to rows after the query and after sorts, if a later stage reads it.

use windrow_document::Value;
use windrow_interrupt::Interrupt;
use windrow_mql::expression::Dependencies;
use windrow_mql::sort::Sort;

use super::stage::Stage;
use crate::Error;
use crate::operators::{BoxOperator, Counters, Operator};
use crate::row::Row;

/// Returns the dependencies of the stages, which include the origin of their rows.
pub fn dependencies(stages: &[Stage]) -> Dependencies {
    let mut dependencies = Dependencies::default();
    for stage in stages {
        dependencies.extend(stage.kind.dependencies());
    }
    dependencies
}

/// Adds the origin to the rows of a query, if later stages read it.
pub fn with_query_origin(rows: BoxOperator, sort: Option<&Sort>, behind: &[Stage]) -> BoxOperator {
    let dependencies = dependencies(behind);
    if dependencies.needs_origin() {
        Box::new(OriginWriter {
            sort: sort.filter(|_| dependencies.sort_key).cloned(),
            is_first: true,
            input: rows,
        })
    } else {
        rows
    }
}

/// Adds the sort key to the rows of a sort within the pipeline, if later stages read it.
pub fn with_sort_key(rows: BoxOperator, sort: &Sort, behind: &[Stage]) -> BoxOperator {
    if dependencies(behind).sort_key {
        Box::new(OriginWriter {
            sort: Some(sort.clone()),
            is_first: false,
            input: rows,
        })
    } else {
        rows
    }
}

/// Adds the origin to rows. Not a stage of its own: its counters are those of its input.
struct OriginWriter {
    sort: Option<Sort>,
    /// `true` if the rows come from the query.
    is_first: bool,
    input: BoxOperator,
}

impl OriginWriter {
    fn write_origin(&self, row: &mut Row) -> Result<(), Error> {
        let keys = self.sort.as_ref();
        let keys = keys.map(|sort| sort.values(row.document(), &row.meta));
        let mut origin = row.meta.origin.take().unwrap_or_default();
        if self.is_first {
            origin.index_key = row.key.take().map(|key| *key);
            let is_record = row.id.0 > 0;
            origin.record_id = i64::try_from(row.id.0).ok().filter(|_| is_record);
        }
        if let Some(keys) = keys.transpose()? {
            origin.sort_key = Some(Value::Array(keys.into_iter().collect()));
        }
        row.meta.origin = Some(origin);
        Ok(())
    }
}

impl Operator for OriginWriter {
    fn next(&mut self, interrupt: &dyn Interrupt) -> Result<Option<Row>, Error> {
        let mut row = self.input.next(interrupt)?;
        if let Some(row) = &mut row {
            self.write_origin(row)?;
        }
        Ok(row)
    }

    fn counters(&self) -> Counters {
        self.input.counters()
    }

    fn inputs(&self) -> Vec<&dyn Operator> {
        self.input.inputs()
    }
}
