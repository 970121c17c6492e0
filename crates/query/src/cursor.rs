//! The rows of a query, one after the other.

use std::sync::Arc;

use windrow_mql::sort::Sort;

use crate::Error;
use crate::find::Find;
use crate::operators::{self, BoxOperator, Operator, Reads, count_rows, totals};
use crate::plan::Plan;
use crate::row::{Content, Interrupt, Row, check_size};
use crate::source::Source;

impl Find {
    /// A cursor at the start.
    pub fn open(self, source: &Arc<dyn Source>) -> Result<Cursor, Error> {
        let plan = self.plan(&**source)?.winner;
        let operator = operators::open(&plan, source)?;
        let front = Front {
            find: self,
            source: source.clone(),
            plan,
        };
        Ok(Cursor {
            operator,
            front: Some(Box::new(front)),
            plan_summary: None,
        })
    }
}

/// The query that rows come from, and the plan that was chosen for it.
pub struct Front {
    pub find: Find,
    pub source: Arc<dyn Source>,
    pub plan: Plan,
}

/// Rows to come. It holds its snapshot until it is dropped.
pub struct Cursor {
    operator: BoxOperator,
    front: Option<Box<Front>>,
    /// The summary of a plan that is not a query's.
    plan_summary: Option<String>,
}

impl Cursor {
    pub(crate) fn of(operator: BoxOperator) -> Cursor {
        Cursor {
            operator,
            front: None,
            plan_summary: None,
        }
    }

    pub(crate) fn with_plan_summary(self, plan_summary: Option<String>) -> Cursor {
        Cursor {
            plan_summary,
            ..self
        }
    }

    /// The summary of the plan for logs, if the rows come from a search and not from a query.
    pub fn plan_summary(&self) -> Option<&str> {
        self.plan_summary.as_deref()
    }

    /// The query that the rows come from. None where there is none, as of statistics.
    pub fn front(&self) -> Option<&Front> {
        self.front.as_deref()
    }

    /// The same, which the cursor has no longer.
    pub fn take_front(&mut self) -> Option<Box<Front>> {
        self.front.take()
    }

    /// The cursor with what is put on top of its rows, which are in the order of the query's sort.
    pub(crate) fn below(
        self,
        put: impl FnOnce(BoxOperator, Option<&Sort>) -> Result<BoxOperator, Error>,
    ) -> Result<Cursor, Error> {
        let sort = self.front.as_ref().and_then(|front| front.find.order());
        Ok(Cursor {
            operator: put(self.operator, sort)?,
            front: self.front,
            plan_summary: self.plan_summary,
        })
    }

    /// Adds what it has read.
    pub(crate) fn add_reads(&self, reads: &mut Reads) {
        if let Some(front) = &self.front {
            let totals = totals(&*self.operator);
            reads.documents_examined += totals.documents_examined;
            reads.keys_examined += totals.keys_examined;
            reads.add_places(&front.plan);
        }
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
