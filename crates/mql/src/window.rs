//! Window functions of `$setWindowFields`. A window function computes a value for each document
//! from the documents around it.
//!
//! The documents of a partition are sorted. Accumulators read the documents of a window. The other
//! functions define themselves which documents they read.
//!
//! ```
//! use windrow_document::{Document, Value, ValueRef, doc};
//! use windrow_mql::expression::{Context, Scope};
//! use windrow_mql::sort::Sort;
//! use windrow_mql::window::{Partition, WindowFunction};
//! let sort = Sort::parse(doc! { "day": 1 }.as_document()).unwrap();
//! let sum = doc! { "$sum": "$n", "window": { "documents": [-1, "current"] } };
//! let sum = ValueRef::Document(sum.as_document());
//! let sum = WindowFunction::parse(sum, Some(&sort), &Scope::new()).unwrap();
//! let documents = [1, 2, 3].map(|day| doc! { "day": day, "n": (day * 10) });
//! let documents: Vec<Document<'_>> = documents.iter().map(|it| it.as_document()).collect();
//! let partition = Partition {
//!     documents: &documents,
//!     keys: &[b"1", b"2", b"3"],
//!     sort: Some(&sort),
//!     context: Context::new(Document::EMPTY),
//! };
//! let sums = sum.compute(&partition).unwrap();
//! assert_eq!(sums, [10, 30, 50].map(|sum| Some(Value::Int32(sum))));
//! ```
//!
//! Reading order: `bounds` (the documents of a window), `sliding`, `accumulators`, `parse`,
//! `rank`, `numeric`, `fill`.

mod accumulators;
mod bounds;
mod fill;
mod numeric;
mod parse;
mod rank;
mod sliding;

use windrow_document::{Decimal128, Document, Value};

use crate::Error;
use crate::accumulator::Accumulator;
use crate::expression::date::unit::Unit;
use crate::expression::statistics::Coverage;
use crate::expression::{Context, Dependencies, Expression};
use crate::interrupt::count_work;
use crate::sort::Sort;
use bounds::Bounds;

/// A window function with its input and its window.
#[derive(Clone, Debug)]
pub struct WindowFunction {
    kind: FunctionKind,
    bounds: Bounds,
}

#[derive(Clone, Debug)]
enum FunctionKind {
    Accumulate(Accumulator),
    /// The input is an array of two numbers. Other values are ignored.
    Covariance {
        input: Expression,
        coverage: Coverage,
    },
    DenseRank,
    Derivative {
        input: Expression,
        unit: Option<Unit>,
    },
    DocumentNumber,
    /// The exponential moving average. `alpha` is the weight of the newest value.
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

/// The sorted documents of a partition.
#[derive(Clone, Copy)]
pub struct Partition<'a> {
    /// The documents in sort order.
    pub documents: &'a [Document<'a>],
    /// The sort keys of the documents. Documents with the same rank have equal keys.
    pub keys: &'a [&'a [u8]],
    /// The sort order, if the stage has one.
    pub sort: Option<&'a Sort>,
    /// The context of expressions. Its document is replaced by each of `documents`.
    pub context: Context<'a>,
}

impl<'a> Partition<'a> {
    fn context_of(&self, document: Document<'a>) -> Context<'a> {
        self.context.with_root(document)
    }

    /// Evaluates an expression for each document.
    fn values(&self, expression: &'a Expression) -> Result<Vec<Option<Value>>, Error> {
        let mut values = Vec::with_capacity(self.documents.len());
        for document in self.documents {
            count_work(1)?;
            let value = expression.evaluate(&self.context_of(*document))?;
            values.push(value.into_value());
        }
        Ok(values)
    }
}

impl WindowFunction {
    /// Computes the value for each document of the partition. `None` means that the field is not
    /// set.
    ///
    /// # Errors
    ///
    /// Fails if an expression fails, if the values are invalid for the function or the window, with
    /// 146 if the values are too large, and with the error of the interrupt.
    pub fn compute<'a>(&'a self, partition: &Partition<'a>) -> Result<Vec<Option<Value>>, Error> {
        let bounds = &self.bounds;
        match &self.kind {
            FunctionKind::Accumulate(accumulator) => {
                accumulators::compute(accumulator, bounds, partition)
            }
            FunctionKind::Covariance { input, coverage } => {
                numeric::covariance(input, *coverage, bounds, partition)
            }
            FunctionKind::DenseRank => Ok(rank::dense(partition)),
            FunctionKind::Derivative { input, unit } => {
                numeric::derivative(input, *unit, bounds, partition)
            }
            FunctionKind::DocumentNumber => Ok(rank::numbers(partition)),
            FunctionKind::MovingAverage { input, alpha } => {
                numeric::moving_average(input, *alpha, partition)
            }
            FunctionKind::Integral { input, unit } => {
                numeric::integral(input, *unit, bounds, partition)
            }
            FunctionKind::LinearFill(input) => fill::linear(input, partition),
            FunctionKind::LastObserved(input) => fill::last_observed(input, partition),
            FunctionKind::Rank => Ok(rank::ranks(partition)),
            FunctionKind::Shift { input, by, default } => {
                rank::shift(input, *by, default, partition)
            }
        }
    }

    /// Returns the fields that the function reads, besides those of the sort order.
    pub fn dependencies(&self) -> Dependencies {
        match &self.kind {
            FunctionKind::Accumulate(accumulator) => accumulator.dependencies(),
            FunctionKind::Covariance { input, .. }
            | FunctionKind::Derivative { input, .. }
            | FunctionKind::MovingAverage { input, .. }
            | FunctionKind::Integral { input, .. }
            | FunctionKind::Shift { input, .. }
            | FunctionKind::LinearFill(input)
            | FunctionKind::LastObserved(input) => input.dependencies(),
            FunctionKind::DenseRank | FunctionKind::DocumentNumber | FunctionKind::Rank => {
                Dependencies::default()
            }
        }
    }
}
