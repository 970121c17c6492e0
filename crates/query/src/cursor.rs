//! Cursors over the rows of a query.

use std::sync::Arc;

use windrow_interrupt::Interrupt;
use windrow_mql::sort::Sort;

use crate::Error;
use crate::find::Find;
use crate::operators::{self, BoxOperator, Operator, ReadCounters, count_rows, totals};
use crate::plan::Plan;
use crate::row::{Content, Row, check_size};
use crate::source::Source;

impl Find {
    /// Plans the query and opens a cursor before its first row. Fails as [`Find::plan`] does.
    pub fn open(self, source: &Arc<dyn Source>) -> Result<Cursor, Error> {
        let plan = self.plan(&**source)?.winner;
        let operator = operators::open(&plan, source)?;
        let planned_find = PlannedFind {
            find: self,
            source: source.clone(),
            plan,
        };
        Ok(Cursor {
            operator,
            planned_find: Some(Box::new(planned_find)),
            plan_summary: None,
        })
    }
}

/// A query with its source and its plan.
pub struct PlannedFind {
    /// The query.
    pub find: Find,
    /// The snapshot that it reads.
    pub source: Arc<dyn Source>,
    /// The plan that was chosen.
    pub plan: Plan,
}

/// A cursor over the rows of a query. It holds its snapshot until it is dropped.
pub struct Cursor {
    operator: BoxOperator,
    planned_find: Option<Box<PlannedFind>>,
    /// The summary of the plan of a search.
    plan_summary: Option<String>,
}

impl Cursor {
    pub(crate) fn new(operator: BoxOperator) -> Cursor {
        Cursor {
            operator,
            planned_find: None,
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

    /// The query from which the rows come. `None` if they come from something else, such as
    /// statistics.
    pub fn planned_find(&self) -> Option<&PlannedFind> {
        self.planned_find.as_deref()
    }

    /// Takes the query out of the cursor.
    pub fn take_planned_find(&mut self) -> Option<Box<PlannedFind>> {
        self.planned_find.take()
    }

    /// Puts an operator on top of the cursor's operator. `put` receives the sort of the query.
    pub(crate) fn below(
        self,
        put: impl FnOnce(BoxOperator, Option<&Sort>) -> Result<BoxOperator, Error>,
    ) -> Result<Cursor, Error> {
        let sort = self
            .planned_find
            .as_ref()
            .and_then(|planned_find| planned_find.find.order());
        Ok(Cursor {
            operator: put(self.operator, sort)?,
            planned_find: self.planned_find,
            plan_summary: self.plan_summary,
        })
    }

    /// Adds the counters of the cursor.
    pub(crate) fn add_reads(&self, reads: &mut ReadCounters) {
        if let Some(planned_find) = &self.planned_find {
            let totals = totals(&*self.operator);
            reads.documents_examined += totals.documents_examined;
            reads.keys_examined += totals.keys_examined;
            reads.add_plan(&planned_find.plan);
        }
    }

    /// Returns the next document, or `None` at the end. Fails if an expression, the storage or
    /// `interrupt` fails, and with 10334 if a document is too large for a reply.
    pub fn next(&mut self, interrupt: &dyn Interrupt) -> Result<Option<Content>, Error> {
        let Some(row) = self.operator.next(interrupt)? else {
            return Ok(None);
        };
        check_size(row.document())?;
        Ok(Some(row.content))
    }

    /// Returns the next row with its record id, for updates and deletes.
    pub fn next_row(&mut self, interrupt: &dyn Interrupt) -> Result<Option<Row>, Error> {
        self.operator.next(interrupt)
    }

    /// Counts the remaining rows.
    pub fn count(&mut self, interrupt: &dyn Interrupt) -> Result<u64, Error> {
        count_rows(&mut self.operator, interrupt)
    }

    /// The operator that produces the rows. Its counters are of interest.
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
