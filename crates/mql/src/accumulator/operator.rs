//! What an accumulator does, parsed.

use crate::expression::Expression;
use crate::sort::Sort;

/// What an accumulator does, and the expression that feeds it.
pub(super) type Parsed = (Operator, Expression);

/// What an accumulator does with the values that it is fed with.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Operator {
    AddToSet,
    Average {
        /// Of windows whose begin moves on: whole numbers are divided as they are, not as a double that
        /// has rounded off some of them.
        moving: bool,
    },
    ConcatArrays,
    Count,
    Deviation {
        sample: bool,
        /// Of windows whose begin moves on: an infinity or NaN gives null, and a single number of a whole
        /// population the int 0.
        moving: bool,
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
    /// The first, last, least or greatest `count` values.
    Several {
        pick: Pick,
        count: Expression,
    },
    SetUnion,
    Sum,
    /// The first or last by an order, one or `count` of them.
    Top {
        order: Sort,
        bottom: bool,
        count: Option<Expression>,
    },
}

impl Operator {
    pub fn deviation(sample: bool) -> Operator {
        Operator::Deviation {
            sample,
            moving: false,
        }
    }
}

/// Which values of a group stay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Pick {
    First,
    Last,
    Least,
    Greatest,
}

/// Which values of a group a state depends on, and how many of them it holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Reach {
    /// On all; it holds any number of them.
    All,
    /// On all; it holds so many at most, so that two states are put together at small cost.
    Few(usize),
    /// On the first ones alone.
    First(usize),
    /// On the last ones alone.
    Last(usize),
}
