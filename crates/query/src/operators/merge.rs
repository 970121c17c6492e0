//! Merges sorted inputs. Each record is returned once.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use windrow_interrupt::Interrupt;
use windrow_mql::sort::Sort as Order;

use super::id_set::IdSet;
use super::operator::{BoxOperator, Counters, Operator, counted};
use crate::Error;
use crate::row::Row;

pub(super) struct SortMerge {
    order: Order,
    inputs: Vec<BoxOperator>,
    /// The next row of each input that has one. `None` before the first row is requested.
    heads: Option<BinaryHeap<Reverse<Head>>>,
    seen: IdSet,
    counters: Counters,
}

/// The next row of an input.
struct Head {
    key: Vec<u8>,
    input: usize,
    row: Row,
}

impl PartialEq for Head {
    fn eq(&self, other: &Head) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Head {}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Head) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Head {
    fn cmp(&self, other: &Head) -> Ordering {
        let keys = self.key.cmp(&other.key);
        keys.then(self.input.cmp(&other.input))
    }
}

impl SortMerge {
    pub fn new(order: Order, inputs: Vec<BoxOperator>) -> SortMerge {
        SortMerge {
            order,
            inputs,
            heads: None,
            seen: IdSet::default(),
            counters: Counters::default(),
        }
    }

    /// Reads the next row of an input, with its sort key.
    fn head(&mut self, input: usize, interrupt: &dyn Interrupt) -> Result<Option<Head>, Error> {
        let Some(operator) = self.inputs.get_mut(input) else {
            return Ok(None);
        };
        self.counters.works += 1;
        let Some(row) = operator.next(interrupt)? else {
            return Ok(None);
        };
        let mut key = Vec::new();
        self.order.key(row.document(), &row.meta, &mut key)?;
        Ok(Some(Head { key, input, row }))
    }

    fn first_heads(
        &mut self,
        interrupt: &dyn Interrupt,
    ) -> Result<BinaryHeap<Reverse<Head>>, Error> {
        let mut heads = BinaryHeap::with_capacity(self.inputs.len());
        for input in 0..self.inputs.len() {
            heads.extend(self.head(input, interrupt)?.map(Reverse));
        }
        Ok(heads)
    }
}

impl Operator for SortMerge {
    fn next(&mut self, interrupt: &dyn Interrupt) -> Result<Option<Row>, Error> {
        let mut heads = match self.heads.take() {
            Some(heads) => heads,
            None => self.first_heads(interrupt)?,
        };
        let mut found = None;
        while let Some(Reverse(head)) = heads.pop() {
            heads.extend(self.head(head.input, interrupt)?.map(Reverse));
            self.counters.duplicates_tested += 1;
            if self.seen.insert(head.row.id) {
                found = Some(head.row);
                break;
            }
            self.counters.duplicates_dropped += 1;
        }
        self.heads = Some(heads);
        match &found {
            Some(_) => self.counters.returned += 1,
            None => self.counters.at_end = true,
        }
        Ok(found)
    }

    counted!(counters, all inputs);
}
