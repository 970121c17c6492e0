//! Skip and limit.

use windrow_interrupt::Interrupt;

use super::operator::{BoxOperator, Counters, Operator, counted};
use crate::Error;
use crate::row::Row;

/// Leaves out the first rows.
pub(crate) struct Skip {
    left: u64,
    input: BoxOperator,
    counters: Counters,
}

impl Skip {
    pub fn new(amount: u64, input: BoxOperator) -> Skip {
        Skip {
            left: amount,
            input,
            counters: Counters::default(),
        }
    }
}

impl Operator for Skip {
    fn next(&mut self, interrupt: &dyn Interrupt) -> Result<Option<Row>, Error> {
        while self.left > 0 && self.input.next(interrupt)?.is_some() {
            self.left -= 1;
            self.counters.works += 1;
        }
        let row = self.input.next(interrupt)?;
        self.left = 0;
        self.counters.record(&row);
        Ok(row)
    }

    fn want_rows(&mut self, rows: u64) {
        self.input.want_rows(rows.saturating_add(self.left));
    }

    fn count_known(&mut self, interrupt: &dyn Interrupt) -> Result<Option<u64>, Error> {
        let count = self.input.count_known(interrupt)?;
        let count = count.map(|count| count.saturating_sub(self.left));
        self.counters.record_count(count);
        Ok(count)
    }

    counted!(counters, input);
}

/// Ends after a number of rows.
pub(crate) struct Limit {
    left: u64,
    input: BoxOperator,
    counters: Counters,
}

impl Limit {
    pub fn new(amount: u64, mut input: BoxOperator) -> Limit {
        input.want_rows(amount);
        Limit {
            left: amount,
            input,
            counters: Counters::default(),
        }
    }
}

impl Operator for Limit {
    fn next(&mut self, interrupt: &dyn Interrupt) -> Result<Option<Row>, Error> {
        let row = match self.left {
            0 => None,
            _ => self.input.next(interrupt)?,
        };
        self.left = self.left.saturating_sub(1);
        self.counters.record(&row);
        Ok(row)
    }

    fn want_rows(&mut self, rows: u64) {
        self.input.want_rows(rows.min(self.left));
    }

    fn count_known(&mut self, interrupt: &dyn Interrupt) -> Result<Option<u64>, Error> {
        let count = self
            .input
            .count_known(interrupt)?
            .map(|count| count.min(self.left));
        self.counters.record_count(count);
        Ok(count)
    }

    counted!(counters, input);
}
