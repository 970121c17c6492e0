//! Sorts rows.

use windrow_interrupt::Interrupt;
use windrow_mql::sort::Sort as Order;

use super::operator::{BoxOperator, Counters, Operator, counted};
use super::parallel::{RowConsumer, fold_alone, fold_parts, threads};
use super::sorter::{MemoryLimit, SortedRows, Sorter};
use crate::Error;
use crate::row::Row;

/// Reads all rows of the input before it returns the first one.
pub(crate) struct Sort {
    order: Order,
    limit: Option<u64>,
    memory: MemoryLimit,
    sorted: Option<SortedRows>,
    input: BoxOperator,
    counters: Counters,
}

impl Sort {
    pub fn new(order: Order, limit: Option<u64>, allow_disk_use: bool, input: BoxOperator) -> Sort {
        Sort {
            order,
            limit,
            memory: MemoryLimit::new(allow_disk_use),
            sorted: None,
            input,
            counters: Counters::default(),
        }
    }

    fn sort(&mut self, interrupt: &dyn Interrupt) -> Result<SortedRows, Error> {
        let (order, limit, memory) = (&self.order, self.limit, self.memory);
        let sorting = |memory: MemoryLimit, first: usize| SortConsumer {
            order,
            sorter: Sorter::new(limit, memory).after_sorter(first),
        };
        let shared = memory.shared_by(threads());
        // Without files, the limit applies to all rows together, so one sorter counts them.
        let in_parts = if memory.may_spill {
            let begin = |first| sorting(shared, first);
            fold_parts(&mut self.input, interrupt, &begin, Ok)?
        } else {
            None
        };
        let sorted = match in_parts {
            Some(sorted) => sorted,
            None => vec![fold_alone(&mut self.input, interrupt, sorting(memory, 0))?],
        };
        let sorters: Vec<Sorter> = sorted.into_iter().map(|it| it.sorter).collect();
        self.counters.works += self.input.counters().returned;
        self.counters.bytes_sorted = sorters.iter().map(|it| it.bytes() as u64).sum();
        Sorter::finish_all(sorters)
    }
}

/// A sorter with the order of its rows.
struct SortConsumer<'o> {
    order: &'o Order,
    sorter: Sorter,
}

impl RowConsumer for SortConsumer<'_> {
    fn take(&mut self, row: Row) -> Result<(), Error> {
        self.sorter.add(self.order, row)
    }

    fn end(&mut self) -> Result<(), Error> {
        self.sorter.sort_or_spill()
    }
}

impl Operator for Sort {
    fn next(&mut self, interrupt: &dyn Interrupt) -> Result<Option<Row>, Error> {
        let sorted = match self.sorted.take() {
            Some(sorted) => sorted,
            None => self.sort(interrupt)?,
        };
        let row = self.sorted.insert(sorted).next()?.map(|keyed| keyed.row);
        self.counters.record(&row);
        Ok(row)
    }

    counted!(counters, input);
}
