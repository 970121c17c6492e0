//! What every operator is.

use crate::Error;
use crate::row::{Interrupt, Row};

/// A step at work.
pub trait Operator: Send {
    /// The next row; None at the end, and ever after.
    fn next(&mut self, interrupt: &dyn Interrupt) -> Result<Option<Row>, Error>;

    /// What has been done so far.
    fn counters(&self) -> Counters;

    /// The operators below, in the order of the plan's inputs.
    fn inputs(&self) -> Vec<&dyn Operator> {
        Vec::new()
    }
}

/// An operator without its type.
pub type BoxOperator = Box<dyn Operator>;

/// Work done by one operator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Times that a row was asked for, or looked at.
    pub works: u64,
    pub returned: u64,
    pub keys_examined: u64,
    pub documents_examined: u64,
    pub seeks: u64,
    pub duplicates_tested: u64,
    pub duplicates_dropped: u64,
    /// Bytes that a sort held at its end.
    pub bytes_sorted: u64,
    pub at_end: bool,
}

impl Counters {
    /// Notes an answer.
    pub(crate) fn note(&mut self, row: &Option<Row>) {
        self.works += 1;
        match row {
            Some(_) => self.returned += 1,
            None => self.at_end = true,
        }
    }
}
