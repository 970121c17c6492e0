//! The records that all inputs have, which come in the order of their ids.

use super::operator::{BoxOperator, Counters, Operator, counted};
use crate::Error;
use crate::row::{Interrupt, Row};
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

    /// The first row of an input that is not before `least`.
    fn from(
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

    /// Goes round until as many inputs as there are stand at one record.
    fn find(&mut self, interrupt: &dyn Interrupt) -> Result<Option<Row>, Error> {
        let Some(mut row) = self.from(0, RecordId(0), interrupt)? else {
            return Ok(None);
        };
        let (mut agreeing, mut input) = (1, 0);
        while agreeing < self.inputs.len() {
            input = (input + 1) % self.inputs.len();
            let Some(other) = self.from(input, row.id, interrupt)? else {
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
