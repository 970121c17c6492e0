//! Rows in order.

use windrow_mql::sort::Sort as Order;

use super::operator::{BoxOperator, Counters, Operator};
use super::sorter::{Memory, Sorted, Sorter};
use crate::Error;
use crate::row::{Interrupt, Row};

/// Takes all rows of its input before it gives the first.
pub(crate) struct Sort {
    order: Order,
    sorter: Option<Sorter>,
    sorted: Sorted,
    input: BoxOperator,
    counters: Counters,
}

impl Sort {
    pub fn new(order: Order, limit: Option<u64>, allow_disk_use: bool, input: BoxOperator) -> Sort {
        Sort {
            order,
            sorter: Some(Sorter::new(limit, Memory::of(allow_disk_use))),
            sorted: Sorted::nothing(),
            input,
            counters: Counters::default(),
        }
    }
}

impl Operator for Sort {
    fn next(&mut self, interrupt: &dyn Interrupt) -> Result<Option<Row>, Error> {
        if let Some(mut sorter) = self.sorter.take() {
            while let Some(row) = self.input.next(interrupt)? {
                self.counters.works += 1;
                sorter.add(&self.order, row)?;
            }
            self.counters.bytes_sorted = sorter.bytes() as u64;
            self.sorted = sorter.finish()?;
        }
        let row = self.sorted.next()?.map(|keyed| keyed.row);
        self.counters.note(&row);
        Ok(row)
    }

    fn counters(&self) -> Counters {
        self.counters
    }

    fn inputs(&self) -> Vec<&dyn Operator> {
        vec![&*self.input]
    }
}
