//! The rows of a query, one after the other.

use std::sync::Arc;

use crate::Error;
use crate::find::Find;
use crate::operators::{self, BoxOperator, Operator, count_rows};
use crate::row::{Content, Interrupt, Row, check_size};
use crate::source::Source;

impl Find {
    /// A cursor at the start.
    pub fn open(&self, source: &Arc<dyn Source>) -> Result<Cursor, Error> {
        let choice = self.plan(&**source)?;
        Ok(Cursor {
            operator: operators::open(&choice.winner, source)?,
        })
    }
}

/// Rows to come. It holds its snapshot until it is dropped.
pub struct Cursor {
    operator: BoxOperator,
}

impl Cursor {
    pub(crate) fn of(operator: BoxOperator) -> Cursor {
        Cursor { operator }
    }

    /// The next document; None at the end. Errors are those of expressions, of the machine, what
    /// `interrupt` says, and 10334 for a document that is too long to leave.
    pub fn next(&mut self, interrupt: &dyn Interrupt) -> Result<Option<Content>, Error> {
        let Some(row) = self.operator.next(interrupt)? else {
            return Ok(None);
        };
        check_size(row.document())?;
        Ok(Some(row.content))
    }

    /// The next row, with its record id: what updates and deletions go through.
    pub fn next_row(&mut self, interrupt: &dyn Interrupt) -> Result<Option<Row>, Error> {
        self.operator.next(interrupt)
    }

    /// How many rows are left.
    pub fn count(&mut self, interrupt: &dyn Interrupt) -> Result<u64, Error> {
        count_rows(&mut self.operator, interrupt)
    }

    /// What gives the rows, for what it has counted.
    pub fn operator(&self) -> &dyn Operator {
        &*self.operator
    }

    pub(crate) fn into_operator(self) -> BoxOperator {
        self.operator
    }
}

impl std::fmt::Debug for Cursor {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Cursor({:?})", self.operator.counters())
    }
}
