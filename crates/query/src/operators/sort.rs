//! Rows in order, held in memory.

use std::collections::BinaryHeap;

use windrow_mql::sort::Sort as Order;

use super::operator::{BoxOperator, Counters, Operator};
use crate::Error;
use crate::row::{Interrupt, Row};

/// Bytes that one sort may hold.
pub(crate) const SORT_BYTES_MAX: usize = 100 * 1024 * 1024;
/// The same with `allowDiskUse`, as long as nothing is spilled to disk.
const SORT_BYTES_MAX_ALLOWED: usize = 1024 * 1024 * 1024;
/// QueryExceededMemoryLimitNoDiskUseAllowed.
const OVER_MEMORY: i32 = 292;

/// A row with what it is ordered by; of equal keys the one that came first is first.
struct Keyed {
    key: Box<[u8]>,
    number: u64,
    row: Row,
}

impl PartialEq for Keyed {
    fn eq(&self, other: &Keyed) -> bool {
        self.number == other.number
    }
}

impl Eq for Keyed {}

impl PartialOrd for Keyed {
    fn partial_cmp(&self, other: &Keyed) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Keyed {
    fn cmp(&self, other: &Keyed) -> std::cmp::Ordering {
        self.key
            .cmp(&other.key)
            .then(self.number.cmp(&other.number))
    }
}

/// Takes rows in, gives them back in order. With a limit it holds no more than that many.
pub(crate) struct Sorter {
    order: Order,
    limit: Option<usize>,
    rows: Vec<Keyed>,
    /// With a limit: the last of the best at the top.
    best: BinaryHeap<Keyed>,
    number: u64,
    bytes: usize,
    bytes_max: usize,
    scratch: Vec<u8>,
}

impl Sorter {
    pub fn new(order: Order, limit: Option<u64>, allow_disk_use: bool) -> Sorter {
        Sorter {
            order,
            limit: limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX)),
            rows: Vec::new(),
            best: BinaryHeap::new(),
            number: 0,
            bytes: 0,
            bytes_max: bytes_max(allow_disk_use),
            scratch: Vec::new(),
        }
    }

    /// Takes a row. Error 292 where the rows are more than memory may hold.
    pub fn add(&mut self, row: Row) -> Result<(), Error> {
        self.scratch.clear();
        self.order
            .key(row.document(), &row.meta, &mut self.scratch)?;
        self.number += 1;
        if self.limit.is_some_and(|limit| self.best.len() >= limit) && !self.make_room() {
            return Ok(());
        }
        let keyed = Keyed {
            key: self.scratch.as_slice().into(),
            number: self.number,
            row,
        };
        self.bytes += bytes_of(&keyed);
        if self.bytes > self.bytes_max {
            return Err(over_memory("Sort"));
        }
        match self.limit {
            Some(_) => self.best.push(keyed),
            None => self.rows.push(keyed),
        }
        Ok(())
    }

    /// Drops the last of the best where the new key stands before it.
    fn make_room(&mut self) -> bool {
        match self.best.peek() {
            Some(last) if self.scratch.as_slice() < &*last.key => {}
            _ => return false,
        }
        if let Some(dropped) = self.best.pop() {
            self.bytes -= bytes_of(&dropped);
        }
        true
    }

    /// The rows in order.
    pub fn finish(self) -> impl Iterator<Item = Row> + Send {
        let mut rows = self.rows;
        rows.sort_unstable();
        let best = self.best.into_sorted_vec();
        rows.into_iter().chain(best).map(|keyed| keyed.row)
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

fn bytes_of(keyed: &Keyed) -> usize {
    size_of::<Keyed>() + keyed.key.len() + keyed.row.content.as_bytes().len()
}

/// How much a step may hold that needs all of its input at once.
pub(crate) fn bytes_max(allow_disk_use: bool) -> usize {
    if allow_disk_use {
        SORT_BYTES_MAX_ALLOWED
    } else {
        SORT_BYTES_MAX
    }
}

pub(crate) fn over_memory(step: &str) -> Error {
    Error::new(
        OVER_MEMORY,
        format!(
            "{step} exceeded its memory limit of {SORT_BYTES_MAX} bytes, but did not opt in to \
             external sorting. Pass allowDiskUse:true to opt in."
        ),
    )
}

/// Takes all rows of its input before it gives the first.
pub(crate) struct Sort {
    sorter: Option<Sorter>,
    sorted: Box<dyn Iterator<Item = Row> + Send>,
    input: BoxOperator,
    counters: Counters,
}

impl Sort {
    pub fn new(order: Order, limit: Option<u64>, allow_disk_use: bool, input: BoxOperator) -> Sort {
        Sort {
            sorter: Some(Sorter::new(order, limit, allow_disk_use)),
            sorted: Box::new(std::iter::empty()),
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
                sorter.add(row)?;
            }
            self.counters.bytes_sorted = sorter.bytes() as u64;
            self.sorted = Box::new(sorter.finish());
        }
        let row = self.sorted.next();
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
