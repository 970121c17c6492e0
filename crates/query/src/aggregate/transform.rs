//! Operators for stages that map each row to at most one row (`$match`, `$project` and similar
//! ones, `$replaceRoot`, `$redact`), and for `$count`.

use windrow_document::{DocumentBuf, Value};
use windrow_interrupt::Interrupt;
use windrow_mql::expression::Context;
use windrow_mql::filter::{Environment, Filter};
use windrow_mql::reshape::{Redact, ReplaceRoot, Reshape, ReshapeOutput};

use super::geo_near::AddedFields;
use crate::Error;
use crate::operators::{BoxOperator, Counters, Operator, Part, count_rows, counted, parts_over};
use crate::row::Row;

/// Returns the context in which the expressions of a row are evaluated.
pub(super) fn row_context<'a>(row: &'a Row, environment: &'a Environment) -> Context<'a> {
    Context::new(row.document())
        .with_variables(&environment.variables)
        .with_now(environment.now)
        .with_collation(environment.collation.as_deref())
        .with_meta(&row.meta)
}

macro_rules! row_by_row {
    ($(#[$doc:meta])* $name:ident, $work:ident: $type:ty, |$this:ident, $row:ident| $apply:expr) => {
        $(#[$doc])*
        pub(super) struct $name {
            $work: $type,
            environment: Environment,
            input: BoxOperator,
            counters: Counters,
        }

        impl $name {
            pub fn new($work: $type, environment: Environment, input: BoxOperator) -> $name {
                $name { $work, environment, input, counters: Counters::default() }
            }

            fn apply(&self, $row: &Row) -> Result<Option<ReshapeOutput>, Error> {
                let $this = self;
                $apply
            }
        }

        impl Operator for $name {
            fn next(&mut self, interrupt: &dyn Interrupt) -> Result<Option<Row>, Error> {
                while let Some(row) = self.input.next(interrupt)? {
                    if let Some(output) = self.apply(&row)? {
                        self.counters.returned += 1;
                        return Ok(Some(Row {
                            removed_fields: output.removed_fields,
                            ..row.with(output.document)
                        }));
                    }
                }
                Ok(None)
            }

            fn set_rows_needed(&mut self, rows: u64) {
                self.input.set_rows_needed(rows);
            }

            counted!(counters, input);

            fn parts(&self) -> Result<Vec<Part>, Error> {
                let (work, environment) = (self.$work.clone(), self.environment.clone());
                parts_over(&self.input, move |input| {
                    Box::new($name::new(work.clone(), environment.clone(), input))
                })
            }

            fn absorb(&mut self, counts: &[Counters]) {
                self.input.absorb(self.counters.absorb(counts));
            }
        }
    };
}

row_by_row! {
    /// `$project`, `$addFields`, `$unset`.
    ReshapeRows, reshape: Reshape, |this, row| {
        let context = row_context(row, &this.environment);
        let reshaped = this.reshape.apply_after(row.document(), &row.removed_fields, &context)?;
        Ok(Some(reshaped))
    }
}

row_by_row! {
    /// `$geoNear`: adds the distance and the location.
    NearRows, added_fields: AddedFields, |this, row| {
        Ok(Some(this.added_fields.apply(row).into()))
    }
}

row_by_row! {
    /// `$replaceRoot` and `$replaceWith`.
    ReplaceRows, replace: ReplaceRoot, |this, row| {
        let context = row_context(row, &this.environment);
        Ok(Some(this.replace.apply(row.document(), &context)?.into()))
    }
}

row_by_row! {
    /// `$redact`.
    RedactRows, redact: Redact, |this, row| {
        let context = row_context(row, &this.environment);
        Ok(this.redact.apply(row.document(), &context)?.map(ReshapeOutput::from))
    }
}

/// A `$match` that is not part of the query at the start.
pub(super) struct Match {
    filter: Filter,
    input: BoxOperator,
    counters: Counters,
}

impl Match {
    pub fn new(filter: Filter, input: BoxOperator) -> Match {
        Match {
            filter,
            input,
            counters: Counters::default(),
        }
    }
}

impl Operator for Match {
    fn next(&mut self, interrupt: &dyn Interrupt) -> Result<Option<Row>, Error> {
        while let Some(row) = self.input.next(interrupt)? {
            if self.filter.matches(row.document())? {
                self.counters.returned += 1;
                return Ok(Some(row));
            }
        }
        Ok(None)
    }

    fn set_rows_needed(&mut self, rows: u64) {
        self.input.set_rows_needed(rows);
    }

    counted!(counters, input);

    fn parts(&self) -> Result<Vec<Part>, Error> {
        let filter = self.filter.clone();
        parts_over(&self.input, move |input| {
            Box::new(Match::new(filter.clone(), input))
        })
    }

    fn absorb(&mut self, counts: &[Counters]) {
        self.input.absorb(self.counters.absorb(counts));
    }
}

/// `$count`: one row, or none if there are no rows.
pub(super) struct Count {
    name: String,
    input: BoxOperator,
    counters: Counters,
}

impl Count {
    pub fn new(name: String, input: BoxOperator) -> Count {
        Count {
            name,
            input,
            counters: Counters::default(),
        }
    }
}

impl Operator for Count {
    fn next(&mut self, interrupt: &dyn Interrupt) -> Result<Option<Row>, Error> {
        if self.counters.at_end {
            return Ok(None);
        }
        let count = count_rows(&mut self.input, interrupt)? as i64;
        self.counters.at_end = true;
        if count == 0 {
            return Ok(None);
        }
        self.counters.returned += 1;
        let mut document = DocumentBuf::new();
        document.push(&self.name, Value::whole(count));
        Ok(Some(Row::new(document)))
    }

    counted!(counters, input);
}
