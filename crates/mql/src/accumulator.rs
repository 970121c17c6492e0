//! Accumulators: functions of all values of a group, for `$group` and for windows.
//!
//! ```
//! use windrow_document::{doc, Value};
//! use windrow_mql::accumulator::Accumulator;
//! use windrow_mql::expression::{Context, Scope};
//! let source = doc! { "total": { "$sum": "$n" } };
//! let total = Accumulator::parse("total", source.get("total").unwrap(), &Scope::new()).unwrap();
//! let mut state = total.start(&Context::new(windrow_document::Document::EMPTY)).unwrap();
//! for n in [1, 2, 3] {
//!     let document = doc! { "n": n };
//!     total.add(&mut state, &Context::new(document.as_document())).unwrap();
//! }
//! assert_eq!(state.finish(), Value::Int32(6));
//! ```
//! Reading order: [`Accumulator`] is the parsed accumulator, [`AccumulatorState`] the intermediate
//! result of one group.

mod bytes;
mod collect;
mod merge_objects;
mod operator;
mod percentile;
mod select_n;
mod state;

pub(crate) use operator::InputDependence;
pub use state::AccumulatorState;

use windrow_document::{Document, ValueRef};

use operator::{AccumulatorOperator, ParsedAccumulator};

use crate::Error;
use crate::expression::statistics::Coverage;
use crate::expression::{Context, Dependencies, Expression, Scope};
use crate::sort::{Sort, SortField};

/// A parsed accumulator: its operator and the expression that is its input.
#[derive(Clone, Debug, PartialEq)]
pub struct Accumulator {
    operator: AccumulatorOperator,
    /// The expression that is evaluated for each document.
    input: Expression,
}

/// The form of the operand of an accumulator.
enum AccumulatorOperand {
    /// One expression. A list of arguments fails with 40237.
    Unary(AccumulatorOperator),
    /// The operator parses its operand.
    Special(fn(&str, ValueRef<'_>, &Scope) -> Result<ParsedAccumulator, Error>),
}

/// Returns the operator with this name.
fn find(name: &str) -> Option<AccumulatorOperand> {
    Some(match name {
        "$addToSet" => AccumulatorOperand::Unary(AccumulatorOperator::AddToSet),
        "$avg" => AccumulatorOperand::Unary(AccumulatorOperator::Average { sliding: false }),
        "$bottom" | "$bottomN" => AccumulatorOperand::Special(select_n::parse_top),
        "$concatArrays" => AccumulatorOperand::Unary(AccumulatorOperator::ConcatArrays),
        "$count" => AccumulatorOperand::Special(parse_count),
        "$first" => AccumulatorOperand::Unary(AccumulatorOperator::First),
        "$firstN" => AccumulatorOperand::Special(select_n::parse_select_n),
        "$last" => AccumulatorOperand::Unary(AccumulatorOperator::Last),
        "$lastN" => AccumulatorOperand::Special(select_n::parse_select_n),
        "$max" => AccumulatorOperand::Unary(AccumulatorOperator::Max),
        "$maxN" => AccumulatorOperand::Special(select_n::parse_select_n),
        "$median" => AccumulatorOperand::Special(percentile::parse),
        "$mergeObjects" => AccumulatorOperand::Unary(AccumulatorOperator::MergeObjects),
        "$min" => AccumulatorOperand::Unary(AccumulatorOperator::Min),
        "$minN" => AccumulatorOperand::Special(select_n::parse_select_n),
        "$percentile" => AccumulatorOperand::Special(percentile::parse),
        "$push" => AccumulatorOperand::Unary(AccumulatorOperator::Push),
        "$setUnion" => AccumulatorOperand::Unary(AccumulatorOperator::SetUnion),
        "$stdDevPop" => {
            AccumulatorOperand::Unary(AccumulatorOperator::deviation(Coverage::Population))
        }
        "$stdDevSamp" => {
            AccumulatorOperand::Unary(AccumulatorOperator::deviation(Coverage::Sample))
        }
        "$sum" => AccumulatorOperand::Unary(AccumulatorOperator::Sum),
        "$top" | "$topN" => AccumulatorOperand::Special(select_n::parse_top),
        _ => return None,
    })
}

impl Accumulator {
    /// Parses the value of the field `name` of a `$group`, such as `{$sum: "$n"}`.
    ///
    /// # Errors
    ///
    /// - 40234: the value is not a document with an operator.
    /// - 40235, 40236: the field name contains a dot or starts with `$`.
    /// - 40237: the operand is a list of arguments.
    /// - 40238: there are two operators.
    /// - 15952: the operator is unknown.
    pub fn parse(name: &str, value: ValueRef<'_>, scope: &Scope) -> Result<Accumulator, Error> {
        let (operator, operand) = check_form(name, value)?;
        let is_unary = match find(operator) {
            Some(AccumulatorOperand::Special(_)) => false,
            Some(AccumulatorOperand::Unary(_)) => true,
            None => crate::expression::is_operator(operator),
        };
        if is_unary {
            check_unary(operator, operand)?;
        }
        Accumulator::from_operand(operator, operand, scope)
    }

    /// Parses the accumulator of a window. Unlike in a group, its operand may be an array, which is
    /// one expression.
    pub(crate) fn from_operand(
        operator: &str,
        operand: ValueRef<'_>,
        scope: &Scope,
    ) -> Result<Accumulator, Error> {
        match find(operator) {
            Some(AccumulatorOperand::Special(parse)) => {
                let ParsedAccumulator { operator, input } = parse(operator, operand, scope)?;
                Ok(Accumulator { operator, input })
            }
            Some(AccumulatorOperand::Unary(operator)) => Ok(Accumulator {
                operator,
                input: Expression::parse(operand, scope)?,
            }),
            None => Err(unknown(operator)),
        }
    }

    /// Returns the accumulator for windows with a moving start, in which values leave the window:
    /// see [`Average`](AccumulatorOperator::Average) and
    /// [`Deviation`](AccumulatorOperator::Deviation).
    pub(crate) fn sliding(mut self) -> Accumulator {
        if let AccumulatorOperator::Average { sliding }
        | AccumulatorOperator::Deviation { sliding, .. } = &mut self.operator
        {
            *sliding = true;
        }
        self
    }

    /// Returns the state of a group without values. `context` has the variables that the `n` of
    /// `$firstN` and similar operators can read: the `_id` of the group. Fails if `n` is invalid.
    pub fn start(&self, context: &Context<'_>) -> Result<AccumulatorState, Error> {
        AccumulatorState::new(&self.operator, context)
    }

    /// Evaluates the input on a document and adds the value to the state.
    ///
    /// # Errors
    ///
    /// Fails if the evaluation fails, with 146 if the state is too large, and with 14 or 40400 if
    /// the value has a wrong type for the operator.
    pub fn add(&self, state: &mut AccumulatorState, context: &Context<'_>) -> Result<(), Error> {
        if let AccumulatorOperator::Top { order, .. } = &self.operator {
            let mut key = Vec::new();
            order.key_with_collation(context.root, context.meta, context.collation, &mut key)?;
            return state.add_ordered(key, self.input.evaluate(context)?);
        }
        state.add(self.input.evaluate(context)?, context.collation)
    }

    /// Returns the state of a group of this many documents, if it depends only on their number.
    pub fn for_document_count(&self, documents: u64) -> Option<AccumulatorState> {
        AccumulatorState::for_document_count(&self.operator, self.input.constant(), documents)
    }

    /// Returns the expression that is evaluated for each document.
    pub fn input(&self) -> &Expression {
        &self.input
    }

    /// Returns `true` if the initial state of a group does not depend on its `_id`.
    pub fn has_constant_start(&self) -> bool {
        let count = match &self.operator {
            AccumulatorOperator::SelectN { count, .. } => Some(count),
            AccumulatorOperator::Top { count, .. } => count.as_ref(),
            _ => None,
        };
        count.is_none_or(Expression::is_constant)
    }

    /// Returns `true` if only the first value of a group matters.
    pub fn is_first(&self) -> bool {
        self.operator == AccumulatorOperator::First
    }

    /// Returns `true` if only the last value of a group matters.
    pub fn is_last(&self) -> bool {
        self.operator == AccumulatorOperator::Last
    }

    /// Returns the fields and variables that the accumulator reads.
    pub fn dependencies(&self) -> Dependencies {
        let mut dependencies = self.input.dependencies();
        match &self.operator {
            AccumulatorOperator::SelectN { count, .. } => count.add_dependencies(&mut dependencies),
            AccumulatorOperator::Top { order, count, .. } => {
                add_order(order, &mut dependencies);
                count
                    .iter()
                    .for_each(|count| count.add_dependencies(&mut dependencies));
            }
            _ => {}
        }
        dependencies
    }
}

fn add_order(order: &Sort, dependencies: &mut Dependencies) {
    for field in order.pattern() {
        match field {
            SortField::Path { path, .. } => dependencies.add(&path.to_string()),
            SortField::TextScore { .. } => dependencies.text_score = true,
            SortField::Random { .. } => {}
        }
    }
}

fn unknown(operator: &str) -> Error {
    if operator == "$accumulator" {
        return Error::no_scripts(operator);
    }
    Error::new(15952, format!("unknown group operator '{operator}'"))
}

/// Checks the form of a field of `$group`. Returns the operator and its operand.
fn check_form<'v>(name: &str, value: ValueRef<'v>) -> Result<(&'v str, ValueRef<'v>), Error> {
    if name.contains('.') {
        return Err(Error::new(
            40235,
            format!("The field name '{name}' cannot contain '.'"),
        ));
    }
    if name.starts_with('$') {
        return Err(Error::new(
            40236,
            format!("The field name '{name}' cannot be an operator name"),
        ));
    }
    let not_accumulator = || {
        Error::new(
            40234,
            format!("The field '{name}' must be an accumulator object"),
        )
    };
    let document: Document<'v> = value.as_document().ok_or_else(not_accumulator)?;
    let (operator, operand) = document.first().ok_or_else(not_accumulator)?;
    if !operator.starts_with('$') {
        return Err(not_accumulator());
    }
    if document.count() != 1 {
        return Err(Error::new(
            40238,
            format!("The field '{name}' must specify one accumulator"),
        ));
    }
    Ok((operator, operand))
}

fn check_unary(operator: &str, operand: ValueRef<'_>) -> Result<(), Error> {
    if operand.as_array().is_some() {
        let message = format!("The {operator} accumulator is a unary operator");
        return Err(Error::new(40237, message));
    }
    Ok(())
}

fn parse_count(_: &str, operand: ValueRef<'_>, _: &Scope) -> Result<ParsedAccumulator, Error> {
    match operand.as_document() {
        Some(document) if document.is_empty() => {
            let input = Expression::from_constant(windrow_document::Value::Null);
            Ok(ParsedAccumulator {
                operator: AccumulatorOperator::Count,
                input,
            })
        }
        _ => Err(Error::type_mismatch(
            "$count takes no arguments, i.e. $count:{}",
        )),
    }
}
