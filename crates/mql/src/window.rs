//! Window functions: what `$setWindowFields` computes of the documents around each document.
//!
//! The documents of one partition are there in their order; a function gives a value for each of
//! them. Accumulators see the documents of a window; the others say themselves what they look at.
//!
//! Reading order: `bounds` (which documents a window has), `sliding`, `accumulated`,
//! `parse`, `ranked`, `numeric`, `filled`.

mod accumulated;
mod bounds;
mod filled;
mod numeric;
mod parse;
mod ranked;
mod sliding;

use windrow_document::{Decimal128, Document, Value};

use crate::Error;
use crate::accumulator::Accumulator;
use crate::expression::date::unit::Unit;
use crate::expression::{Context, Dependencies, Expression};
use crate::sort::Sort;
use bounds::Bounds;

/// One function of a stage: what is computed, over which documents.
#[derive(Clone, Debug)]
pub struct WindowFunction {
    kind: Kind,
    bounds: Bounds,
}

#[derive(Clone, Debug)]
enum Kind {
    Accumulate(Accumulator),
    /// Of what gives an array of two numbers; anything else does not count.
    Covariance {
        input: Expression,
        sample: bool,
    },
    DenseRank,
    Derivative {
        input: Expression,
        unit: Option<Unit>,
    },
    DocumentNumber,
    /// With the weight of the newest value.
    MovingAverage {
        input: Expression,
        alpha: Decimal128,
    },
    Integral {
        input: Expression,
        unit: Option<Unit>,
    },
    LinearFill(Expression),
    LastObserved(Expression),
    Rank,
    Shift {
        input: Expression,
        by: i64,
        default: Value,
    },
}

/// The documents of a partition in their order.
#[derive(Clone, Copy)]
pub struct Partition<'a> {
    pub documents: &'a [Document<'a>],
    /// What they are ordered by; equal for documents of the same rank.
    pub keys: &'a [&'a [u8]],
    pub sort: Option<&'a Sort>,
    /// Variables and time; the documents come from above.
    pub context: Context<'a>,
}

/// Asked now and then whether to go on.
pub type Check<'c> = dyn FnMut() -> Result<(), Error> + 'c;

impl<'a> Partition<'a> {
    fn context_of(&self, document: Document<'a>) -> Context<'a> {
        self.context.with_root(document)
    }

    /// The expression's value for each document.
    fn values(
        &self,
        expression: &'a Expression,
        check: &mut Check<'_>,
    ) -> Result<Vec<Option<Value>>, Error> {
        let mut values = Vec::with_capacity(self.documents.len());
        for document in self.documents {
            check()?;
            let value = expression.evaluate(&self.context_of(*document))?;
            values.push(value.into_value());
        }
        Ok(values)
    }
}

impl WindowFunction {
    /// The value for each document of the partition. None: the field is not set.
    pub fn compute<'a>(
        &'a self,
        partition: &Partition<'a>,
        check: &mut Check<'_>,
    ) -> Result<Vec<Option<Value>>, Error> {
        let bounds = &self.bounds;
        match &self.kind {
            Kind::Accumulate(accumulator) => {
                accumulated::compute(accumulator, bounds, partition, check)
            }
            Kind::Covariance { input, sample } => {
                numeric::covariance(input, *sample, bounds, partition, check)
            }
            Kind::DenseRank => Ok(ranked::dense(partition)),
            Kind::Derivative { input, unit } => {
                numeric::derivative(input, *unit, bounds, partition, check)
            }
            Kind::DocumentNumber => Ok(ranked::numbers(partition)),
            Kind::MovingAverage { input, alpha } => {
                numeric::moving_average(input, *alpha, partition, check)
            }
            Kind::Integral { input, unit } => {
                numeric::integral(input, *unit, bounds, partition, check)
            }
            Kind::LinearFill(input) => filled::linear(input, partition, check),
            Kind::LastObserved(input) => filled::last_observed(input, partition, check),
            Kind::Rank => Ok(ranked::ranks(partition)),
            Kind::Shift { input, by, default } => {
                ranked::shifted(input, *by, default, partition, check)
            }
        }
    }

    /// What of a document the function reads, besides what the documents are ordered by.
    pub fn dependencies(&self) -> Dependencies {
        match &self.kind {
            Kind::Accumulate(accumulator) => accumulator.dependencies(),
            Kind::Covariance { input, .. }
            | Kind::Derivative { input, .. }
            | Kind::MovingAverage { input, .. }
            | Kind::Integral { input, .. }
            | Kind::Shift { input, .. }
            | Kind::LinearFill(input)
            | Kind::LastObserved(input) => input.paths(),
            Kind::DenseRank | Kind::DocumentNumber | Kind::Rank => Dependencies::default(),
        }
    }
}
