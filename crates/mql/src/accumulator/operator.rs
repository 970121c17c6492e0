//! The parsed operators of accumulators.

use crate::expression::Expression;
use crate::expression::statistics::Coverage;
use crate::sort::Sort;

/// The parsed operand of an accumulator.
pub(super) struct ParsedAccumulator {
    pub operator: AccumulatorOperator,
    pub input: Expression,
}

/// The operator of an accumulator.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum AccumulatorOperator {
    AddToSet,
    Average {
        /// `true` in a window with a moving start. Whole numbers are then divided exactly and not
        /// converted to a double first, which would round their sum.
        sliding: bool,
    },
    ConcatArrays,
    Count,
    Deviation {
        coverage: Coverage,
        /// `true` in a window with a moving start. The result is then null for infinities and NaN,
        /// and the int 0 for a population of one number.
        sliding: bool,
    },
    First,
    Last,
    Max,
    MergeObjects,
    Min,
    Percentile {
        points: Vec<f64>,
        is_median: bool,
    },
    Push,
    /// `$firstN`, `$lastN`, `$minN`, `$maxN`.
    SelectN {
        selection: Selection,
        count: Expression,
    },
    SetUnion,
    Sum,
    /// `$top`, `$topN`, `$bottom`, `$bottomN`. Without a count the result is one value instead of
    /// an array.
    Top {
        order: Sort,
        bottom: bool,
        count: Option<Expression>,
    },
}

impl AccumulatorOperator {
    pub fn deviation(coverage: Coverage) -> AccumulatorOperator {
        AccumulatorOperator::Deviation {
            coverage,
            sliding: false,
        }
    }
}

/// The values that an operator keeps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Selection {
    First,
    Last,
    Least,
    Greatest,
}

/// The values of a group that a state depends on, and how many of them it holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum InputDependence {
    /// All values. The state holds any number of them.
    All,
    /// All values. The state holds at most this many, so that merging two states is cheap.
    Bounded(usize),
    /// The first values only.
    First(usize),
    /// The last values only.
    Last(usize),
}
