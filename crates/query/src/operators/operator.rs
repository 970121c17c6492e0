//! What every operator is.

use super::reads::Reads;
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

    /// The same rows in parts, in order, that can be made beside each other; none where that is not
    /// possible or not worth it. Asked before the first row.
    fn parts(&self) -> Result<Vec<Part>, Error> {
        Ok(Vec::new())
    }

    /// How many rows there are, where that is known without making them: the operator is at its end
    /// then. Asked before the first row.
    fn count_known(&mut self, _: &dyn Interrupt) -> Result<Option<u64>, Error> {
        Ok(None)
    }

    /// What it has read of other collections, of a stage that reads them.
    fn reads(&self) -> Option<Reads> {
        None
    }

    /// Takes over what a part of it has counted, then what the part's inputs have, from the top. It is
    /// at its end then.
    fn absorb(&mut self, _counts: &[Counters]) {}
}

/// What an operator tells of itself by two fields: what it has counted, and the operator that it reads
/// from, or (`all`) those.
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

/// Makes one part of an operator's rows.
pub type Part = Box<dyn Fn() -> Result<BoxOperator, Error> + Send + Sync>;

/// The parts of an operator that makes its rows one by one of its input's: `make` puts it on top.
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

/// An operator without its type.
pub type BoxOperator = Box<dyn Operator>;

/// Work done by one operator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Times that a row was asked for, or looked at.
    pub works: u64,
    pub returned: u64,
    pub keys_examined: u64,
    /// Postings that a search for the best records did not have to read.
    pub keys_skipped: u64,
    pub documents_examined: u64,
    pub seeks: u64,
    pub duplicates_tested: u64,
    pub duplicates_dropped: u64,
    /// Bytes that a sort held at its end.
    pub bytes_sorted: u64,
    pub at_end: bool,
}

impl Counters {
    /// Takes over what a part has counted; what is left of the counts is its inputs'.
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

    /// Notes how many rows there are, where they are not made.
    pub(crate) fn note_known(&mut self, count: Option<u64>) {
        if let Some(count) = count {
            self.returned += count;
            self.at_end = true;
        }
    }

    /// Notes an answer.
    pub(crate) fn note(&mut self, row: &Option<Row>) {
        self.works += 1;
        match row {
            Some(_) => self.returned += 1,
            None => self.at_end = true,
        }
    }
}

/// What an operator and those below it have looked at.
pub(crate) fn totals(operator: &dyn Operator) -> Counters {
    let mut sum = operator.counters();
    for input in operator.inputs() {
        let below = totals(input);
        sum.keys_examined += below.keys_examined;
        sum.documents_examined += below.documents_examined;
    }
    sum
}
