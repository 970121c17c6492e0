//! Returns the rows of several inputs, each record once.

use windrow_interrupt::Interrupt;

use super::id_set::IdSet;
use super::operator::{BoxOperator, Counters, Operator, counted};
use crate::Error;
use crate::row::Row;

pub(super) struct Or {
    inputs: Vec<BoxOperator>,
    current: usize,
    seen: IdSet,
    counters: Counters,
}

impl Or {
    pub fn new(inputs: Vec<BoxOperator>) -> Or {
        Or {
            inputs,
            current: 0,
            seen: IdSet::default(),
            counters: Counters::default(),
        }
    }
}

impl Operator for Or {
    fn next(&mut self, interrupt: &dyn Interrupt) -> Result<Option<Row>, Error> {
        while let Some(input) = self.inputs.get_mut(self.current) {
            self.counters.works += 1;
            let Some(row) = input.next(interrupt)? else {
                self.current += 1;
                continue;
            };
            self.counters.duplicates_tested += 1;
            if self.seen.insert(row.id) {
                self.counters.returned += 1;
                return Ok(Some(row));
            }
            self.counters.duplicates_dropped += 1;
        }
        self.counters.at_end = true;
        Ok(None)
    }

    counted!(counters, all inputs);
}
