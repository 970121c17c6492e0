//! Skip and limit.

use windrow_interrupt::Interrupt;

use super::operator::{BoxOperator, Counters, Operator, counted};
use crate::Error;
use crate::row::Row;

/// Leaves out the first rows.
pub(crate) struct Skip {
    remaining: u64,
    input: BoxOperator,
    counters: Counters,
}

impl Skip {
    pub fn new(amount: u64, input: BoxOperator) -> Skip {
        Skip {
            remaining: amount,
            input,
            counters: Counters::default(),
        }
    }
}

impl Operator for Skip {
    fn next(&mut self, interrupt: &dyn Interrupt) -> Result<Option<Row>, Error> {
        while self.remaining > 0 && self.input.next(interrupt)?.is_some() {
            self.remaining -= 1;
            self.counters.works += 1;
        }
        let row = self.input.next(interrupt)?;
        self.remaining = 0;
        self.counters.record(&row);
        Ok(row)
    }

    fn set_rows_needed(&mut self, rows: u64) {
        self.input
            .set_rows_needed(rows.saturating_add(self.remaining));
    }

    fn count_known(&mut self, interrupt: &dyn Interrupt) -> Result<Option<u64>, Error> {
        let count = self.input.count_known(interrupt)?;
        let count = count.map(|count| count.saturating_sub(self.remaining));
        self.counters.record_count(count);
        Ok(count)
    }

    counted!(counters, input);
}

/// Ends after a number of rows.
pub(crate) struct Limit {
    remaining: u64,
    input: BoxOperator,
    counters: Counters,
}

impl Limit {
    pub fn new(amount: u64, mut input: BoxOperator) -> Limit {
        input.set_rows_needed(amount);
        Limit {
            remaining: amount,
            input,
            counters: Counters::default(),
        }
    }
}

impl Operator for Limit {
    fn next(&mut self, interrupt: &dyn Interrupt) -> Result<Option<Row>, Error> {
        let row = match self.remaining {
            0 => None,
            _ => self.input.next(interrupt)?,
        };
        self.remaining = self.remaining.saturating_sub(1);
        self.counters.record(&row);
        Ok(row)
    }

    fn set_rows_needed(&mut self, rows: u64) {
        self.input.set_rows_needed(rows.min(self.remaining));
    }

    fn count_known(&mut self, interrupt: &dyn Interrupt) -> Result<Option<u64>, Error> {
        let count = self
            .input
            .count_known(interrupt)?
            .map(|count| count.min(self.remaining));
        self.counters.record_count(count);
        Ok(count)
    }

    counted!(counters, input);
}
