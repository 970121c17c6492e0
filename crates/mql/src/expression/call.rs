//! An operator with its arguments.

use std::fmt;

use super::operator::Operator;
use super::{ABSENT, Computed, Context, Dependencies, Expression};
use crate::Error;

/// What evaluating gives.
pub(crate) type Answer<'a> = Result<Computed<'a>, Error>;

/// An operator applied to arguments. Arguments by name stand in the order of the operator's table,
/// with absent ones in their places.
#[derive(Clone)]
pub(crate) struct Call {
    pub operator: &'static Operator,
    pub arguments: Box<[Expression]>,
    pub prepared: Prepared,
}

/// What was computed once from constant arguments.
#[derive(Clone, Debug, Default)]
pub(crate) enum Prepared {
    #[default]
    Nothing,
    /// The frames of the variables that the operator defines.
    Frames(Box<[u32]>),
    /// What `$sortArray` sorts by.
    Order(super::array_sort::Order),
    /// The number of inputs of `$zip`, and whether the longest counts.
    Zip { count: usize, longest: bool },
    /// The regular expression; None where it is null.
    Regex(Option<crate::filter::regex::Regex>),
    /// Time zone and format of an operator on dates.
    Date(Box<super::date::Constants>),
    /// The points of `$percentile`.
    Points { points: Vec<f64>, is_median: bool },
}

impl Call {
    pub fn new(operator: &'static Operator, arguments: Vec<Expression>) -> Call {
        Call {
            operator,
            arguments: arguments.into(),
            prepared: Prepared::Nothing,
        }
    }

    pub fn with_frames(self, frames: Vec<u32>) -> Call {
        Call {
            prepared: Prepared::Frames(frames.into()),
            ..self
        }
    }

    pub fn is_foldable(&self) -> bool {
        self.operator.is_pure && self.arguments.iter().all(Expression::is_fixed)
    }

    pub fn evaluate<'a>(&'a self, context: &Context<'a>) -> Result<Computed<'a>, Error> {
        (self.operator.evaluate)(self, context)
    }

    /// The expression in a place; the absent one past the end.
    pub fn argument(&self, place: usize) -> &Expression {
        self.arguments.get(place).unwrap_or(&ABSENT)
    }

    /// The value of the argument in a place.
    pub fn value<'a>(&'a self, place: usize, context: &Context<'a>) -> Result<Computed<'a>, Error> {
        self.argument(place).evaluate(context)
    }

    /// The number of a frame.
    pub fn frame(&self, place: usize) -> u32 {
        match &self.prepared {
            Prepared::Frames(frames) => frames.get(place).copied().unwrap_or(u32::MAX),
            _ => u32::MAX,
        }
    }

    pub fn collect(&self, dependencies: &mut Dependencies) {
        self.arguments
            .iter()
            .for_each(|argument| argument.collect(dependencies));
        match self.operator.name {
            "$meta" => {
                let name = self.arguments.first().and_then(Expression::constant);
                dependencies.add_meta(
                    name.and_then(|name| name.as_ref().as_str())
                        .unwrap_or_default(),
                );
            }
            "$rand" => dependencies.random = true,
            _ => {}
        }
    }
}

impl PartialEq for Call {
    /// What is prepared follows from the rest.
    fn eq(&self, other: &Call) -> bool {
        self.operator.name == other.operator.name && self.arguments == other.arguments
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.operator.name)?;
        formatter.debug_list().entries(&self.arguments).finish()
    }
}
