//! The interface of operators.

use windrow_interrupt::Interrupt;

use super::reads::ReadCounters;
use crate::Error;
use crate::row::Row;

/// An operator: produces the rows of one step of a plan.
pub trait Operator: Send {
    /// Returns the next row. Returns `None` at the end, and on all later calls.
    fn next(&mut self, interrupt: &dyn Interrupt) -> Result<Option<Row>, Error>;

    /// The counters of the work done so far.
    fn counters(&self) -> Counters;

    /// The operators below this one, in the order of the plan's inputs.
    fn inputs(&self) -> Vec<&dyn Operator> {
        Vec::new()
    }

    /// Sets the number of rows that the result needs. An operator that reads its input ahead reads
    /// no more rows than this. [`next`](Self::next) still returns further rows: an operator above
    /// this one may drop some. Must be called before the first row.
    fn set_rows_needed(&mut self, _rows: u64) {}

    /// Splits the rows into parts that can be produced in parallel, in order. Returns no parts if
    /// that is impossible or not worthwhile. Must be called before the first row.
    fn parts(&self) -> Result<Vec<Part>, Error> {
        Ok(Vec::new())
    }

    /// Returns the number of rows if it is known without producing them. The operator is then at
    /// its end. Must be called before the first row.
    fn count_known(&mut self, _: &dyn Interrupt) -> Result<Option<u64>, Error> {
        Ok(None)
    }

    /// What the operator has read from other collections, if it reads any.
    fn reads(&self) -> Option<ReadCounters> {
        None
    }

    /// Adds the counters of a part, and of the inputs of the part, from top to bottom. The operator
    /// is then at its end.
    fn absorb(&mut self, _counts: &[Counters]) {}
}

/// Implements `counters` and `inputs` by two fields: the counters, and the input or, with `all`,
/// the inputs.
macro_rules! counted {
    ($counters:ident) => {
        fn counters(&self) -> $crate::operators::Counters {
            self.$counters
        }
    };
    ($counters:ident, $input:ident) => {
        $crate::operators::counted!($counters);

        fn inputs(&self) -> Vec<&dyn $crate::operators::Operator> {
            vec![&*self.$input]
        }
    };
    ($counters:ident, all $inputs:ident) => {
        $crate::operators::counted!($counters);

        fn inputs(&self) -> Vec<&dyn $crate::operators::Operator> {
            let inputs = self.$inputs.iter();
            inputs.map(|input| &**input as _).collect()
        }
    };
}

pub(crate) use counted;

/// Opens an operator for one part of the rows.
pub type Part = Box<dyn Fn() -> Result<BoxOperator, Error> + Send + Sync>;

/// Returns the parts of an operator that maps each input row to at most one row. `make` puts the
/// operator on top of a part.
pub(crate) fn parts_over(
    input: &BoxOperator,
    make: impl Fn(BoxOperator) -> BoxOperator + Clone + Send + Sync + 'static,
) -> Result<Vec<Part>, Error> {
    let over = |part: Part| {
        let make = make.clone();
        Box::new(move || Ok(make(part()?))) as Part
    };
    Ok(input.parts()?.into_iter().map(over).collect())
}

/// A boxed operator.
pub type BoxOperator = Box<dyn Operator>;

/// The work done by one operator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// The number of calls for a row, and of rows that the operator examined.
    pub works: u64,
    /// The number of rows returned.
    pub returned: u64,
    /// The number of index keys read.
    pub keys_examined: u64,
    /// The number of postings that a search for the best records skipped.
    pub keys_skipped: u64,
    /// The number of documents read.
    pub documents_examined: u64,
    /// The number of seeks in an index.
    pub seeks: u64,
    /// The number of records that were tested for duplicates.
    pub duplicates_tested: u64,
    /// The number of duplicates that were left out.
    pub duplicates_dropped: u64,
    /// The number of bytes that a sort held at the end of its input.
    pub bytes_sorted: u64,
    /// `true` if the operator has returned its last row.
    pub at_end: bool,
}

impl Counters {
    /// Adds the counters of a part. Returns the counters of the part's inputs.
    pub(crate) fn absorb<'c>(&mut self, counts: &'c [Counters]) -> &'c [Counters] {
        let Some((of_part, rest)) = counts.split_first() else {
            return &[];
        };
        self.works += of_part.works;
        self.returned += of_part.returned;
        self.keys_examined += of_part.keys_examined;
        self.keys_skipped += of_part.keys_skipped;
        self.documents_examined += of_part.documents_examined;
        self.seeks += of_part.seeks;
        self.duplicates_tested += of_part.duplicates_tested;
        self.duplicates_dropped += of_part.duplicates_dropped;
        self.bytes_sorted += of_part.bytes_sorted;
        self.at_end = true;
        rest
    }

    /// Records the number of rows if they are counted without being produced.
    pub(crate) fn record_count(&mut self, count: Option<u64>) {
        if let Some(count) = count {
            self.returned += count;
            self.at_end = true;
        }
    }

    /// Records the result of a call of `next`.
    pub(crate) fn record(&mut self, row: &Option<Row>) {
        self.works += 1;
        match row {
            Some(_) => self.returned += 1,
            None => self.at_end = true,
        }
    }
}

/// Returns the documents and keys that an operator and its inputs have read.
pub(crate) fn totals(operator: &dyn Operator) -> Counters {
    let mut sum = operator.counters();
    for input in operator.inputs() {
        let below = totals(input);
        sum.keys_examined += below.keys_examined;
        sum.documents_examined += below.documents_examined;
    }
    sum
}
