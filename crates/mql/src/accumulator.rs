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

use operator::{Operator, ParsedAccumulator};

use crate::Error;
use crate::expression::statistics::Coverage;
use crate::expression::{Context, Dependencies, Expression, Scope};
use crate::sort::{Sort, SortField};

/// A parsed accumulator: its operator and the expression that is its input.
#[derive(Clone, Debug, PartialEq)]
pub struct Accumulator {
    operator: Operator,
    /// The expression that is evaluated for each document.
    input: Expression,
}

/// The form of the operand of an accumulator.
enum OperandForm {
    /// One expression. A list of arguments fails with 40237.
    Unary(Operator),
    /// The operator parses its operand.
    Special(fn(&str, ValueRef<'_>, &Scope) -> Result<ParsedAccumulator, Error>),
}

/// The operator with this name. Sorted by name.
fn find(name: &str) -> Option<OperandForm> {
    Some(match name {
        "$addToSet" => OperandForm::Unary(Operator::AddToSet),
        "$avg" => OperandForm::Unary(Operator::Average { sliding: false }),
        "$bottom" | "$bottomN" => OperandForm::Special(select_n::parse_top),
        "$concatArrays" => OperandForm::Unary(Operator::ConcatArrays),
        "$count" => OperandForm::Special(parse_count),
        "$first" => OperandForm::Unary(Operator::First),
        "$firstN" => OperandForm::Special(select_n::parse_select_n),
        "$last" => OperandForm::Unary(Operator::Last),
        "$lastN" => OperandForm::Special(select_n::parse_select_n),
        "$max" => OperandForm::Unary(Operator::Max),
        "$maxN" => OperandForm::Special(select_n::parse_select_n),
        "$median" => OperandForm::Special(percentile::parse),
        "$mergeObjects" => OperandForm::Unary(Operator::MergeObjects),
        "$min" => OperandForm::Unary(Operator::Min),
        "$minN" => OperandForm::Special(select_n::parse_select_n),
        "$percentile" => OperandForm::Special(percentile::parse),
        "$push" => OperandForm::Unary(Operator::Push),
        "$setUnion" => OperandForm::Unary(Operator::SetUnion),
        "$stdDevPop" => OperandForm::Unary(Operator::deviation(Coverage::Population)),
        "$stdDevSamp" => OperandForm::Unary(Operator::deviation(Coverage::Sample)),
        "$sum" => OperandForm::Unary(Operator::Sum),
        "$top" | "$topN" => OperandForm::Special(select_n::parse_top),
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
            Some(OperandForm::Special(_)) => false,
            Some(OperandForm::Unary(_)) => true,
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
        let (operator, input) = match find(operator) {
            Some(OperandForm::Special(parse)) => parse(operator, operand, scope)?,
            Some(OperandForm::Unary(kind)) => (kind, Expression::parse(operand, scope)?),
            None => return Err(unknown(operator)),
        };
        Ok(Accumulator { operator, input })
    }

    /// Returns the accumulator for windows with a moving start, in which values leave the window:
    /// see [`Average`](Operator::Average) and [`Deviation`](Operator::Deviation).
    pub(crate) fn sliding(mut self) -> Accumulator {
        if let Operator::Average { sliding } | Operator::Deviation { sliding, .. } =
            &mut self.operator
        {
            *sliding = true;
        }
        self
    }

    /// The state of a group without values. `context` has the variables that the `n` of `$firstN`
    /// and similar operators can read: the `_id` of the group. Fails if `n` is invalid.
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
        if let Operator::Top { order, .. } = &self.operator {
            let mut key = Vec::new();
            order.key_with_collation(context.root, context.meta, context.collation, &mut key)?;
            return state.add_ordered(key, self.input.evaluate(context)?);
        }
        state.add(self.input.evaluate(context)?, context.collation)
    }

    /// The state of a group of this many documents, if it depends only on their number.
    pub fn for_document_count(&self, documents: u64) -> Option<AccumulatorState> {
        AccumulatorState::for_document_count(&self.operator, self.input.constant(), documents)
    }

    /// The expression that is evaluated for each document.
    pub fn input(&self) -> &Expression {
        &self.input
    }

    /// Returns `true` if the initial state of a group does not depend on its `_id`.
    pub fn has_constant_start(&self) -> bool {
        let count = match &self.operator {
            Operator::SelectN { count, .. } => Some(count),
            Operator::Top { count, .. } => count.as_ref(),
            _ => None,
        };
        count.is_none_or(Expression::is_constant)
    }

    /// Returns `true` if only the first value of a group matters.
    pub fn is_first(&self) -> bool {
        self.operator == Operator::First
    }

    /// Returns `true` if only the last value of a group matters.
    pub fn is_last(&self) -> bool {
        self.operator == Operator::Last
    }

    /// The fields and variables that the accumulator reads.
    pub fn dependencies(&self) -> Dependencies {
        let mut dependencies = self.input.dependencies();
        match &self.operator {
            Operator::SelectN { count, .. } => count.add_dependencies(&mut dependencies),
            Operator::Top { order, count, .. } => {
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
            Ok((Operator::Count, input))
        }
        _ => Err(Error::type_mismatch(
            "$count takes no arguments, i.e. $count:{}",
        )),
    }
}
