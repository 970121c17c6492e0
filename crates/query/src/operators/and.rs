//! Intersection: the records that all inputs have. The inputs are in the order of record ids.

use windrow_interrupt::Interrupt;

use super::operator::{BoxOperator, Counters, Operator, counted};
use crate::Error;
use crate::row::Row;
use crate::source::RecordId;

pub(super) struct AndSorted {
    inputs: Vec<BoxOperator>,
    counters: Counters,
}

impl AndSorted {
    pub fn new(inputs: Vec<BoxOperator>) -> AndSorted {
        AndSorted {
            inputs,
            counters: Counters::default(),
        }
    }

    /// Returns the next row of an input whose record id is at least `least`.
    fn next_from(
        &mut self,
        input: usize,
        least: RecordId,
        interrupt: &dyn Interrupt,
    ) -> Result<Option<Row>, Error> {
        let Some(operator) = self.inputs.get_mut(input) else {
            return Ok(None);
        };
        loop {
            self.counters.works += 1;
            match operator.next(interrupt)? {
                Some(row) if row.id < least => {}
                other => return Ok(other),
            }
        }
    }

    /// Advances the inputs in turn until all of them are at the same record.
    fn find(&mut self, interrupt: &dyn Interrupt) -> Result<Option<Row>, Error> {
        let Some(mut row) = self.next_from(0, RecordId(0), interrupt)? else {
            return Ok(None);
        };
        let (mut agreeing, mut input) = (1, 0);
        while agreeing < self.inputs.len() {
            input = (input + 1) % self.inputs.len();
            let Some(other) = self.next_from(input, row.id, interrupt)? else {
                return Ok(None);
            };
            agreeing = if other.id == row.id { agreeing + 1 } else { 1 };
            row = other;
        }
        Ok(Some(row))
    }
}

impl Operator for AndSorted {
    fn next(&mut self, interrupt: &dyn Interrupt) -> Result<Option<Row>, Error> {
        if self.counters.at_end {
            return Ok(None);
        }
        let row = self.find(interrupt)?;
        match &row {
            Some(_) => self.counters.returned += 1,
            None => self.counters.at_end = true,
        }
        Ok(row)
    }

    counted!(counters, all inputs);
}
