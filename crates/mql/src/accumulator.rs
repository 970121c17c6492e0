//! Accumulators: what `$group` makes of many values.
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
//! Reading order: [`Accumulator`] is the parsed form, [`AccumulatorState`] one group's values so far.

mod bytes;
mod collect;
mod merged;
mod operator;
mod percentile;
mod several;
mod state;

pub(crate) use operator::Reach;
pub use state::AccumulatorState;

use windrow_document::{Document, ValueRef};

use operator::{Operator, Parsed};

use crate::Error;
use crate::expression::{Context, Dependencies, Expression, Scope};
use crate::sort::{Sort, SortField};

/// A parsed accumulator: its operator and what it is fed with.
#[derive(Clone, Debug, PartialEq)]
pub struct Accumulator {
    operator: Operator,
    /// What each document adds.
    input: Expression,
}

/// How the operand of an accumulator is read.
enum Form {
    /// One expression; an array of any number of them is refused with 40237.
    Unary(Operator),
    /// The operator reads its operand itself.
    Special(fn(&str, ValueRef<'_>, &Scope) -> Result<Parsed, Error>),
}

/// The operator of a name, by the alphabet.
fn find(name: &str) -> Option<Form> {
    Some(match name {
        "$addToSet" => Form::Unary(Operator::AddToSet),
        "$avg" => Form::Unary(Operator::Average { moving: false }),
        "$bottom" | "$bottomN" => Form::Special(several::parse_top),
        "$concatArrays" => Form::Unary(Operator::ConcatArrays),
        "$count" => Form::Special(parse_count),
        "$first" => Form::Unary(Operator::First),
        "$firstN" => Form::Special(several::parse_several),
        "$last" => Form::Unary(Operator::Last),
        "$lastN" => Form::Special(several::parse_several),
        "$max" => Form::Unary(Operator::Max),
        "$maxN" => Form::Special(several::parse_several),
        "$median" => Form::Special(percentile::parse),
        "$mergeObjects" => Form::Unary(Operator::MergeObjects),
        "$min" => Form::Unary(Operator::Min),
        "$minN" => Form::Special(several::parse_several),
        "$percentile" => Form::Special(percentile::parse),
        "$push" => Form::Unary(Operator::Push),
        "$setUnion" => Form::Unary(Operator::SetUnion),
        "$stdDevPop" => Form::Unary(Operator::deviation(false)),
        "$stdDevSamp" => Form::Unary(Operator::deviation(true)),
        "$sum" => Form::Unary(Operator::Sum),
        "$top" | "$topN" => Form::Special(several::parse_top),
        _ => return None,
    })
}

impl Accumulator {
    /// Parses the value of the field `name` of a `$group`: `{$sum: "$n"}`. Errors: 40234 for what is
    /// no such document, 40235 and 40236 for names with dots and dollars, 40237 for a list of
    /// arguments, 40238 for two operators, 15952 for one that there is not.
    pub fn parse(name: &str, value: ValueRef<'_>, scope: &Scope) -> Result<Accumulator, Error> {
        let (operator, operand) = check_form(name, value)?;
        let is_unary = match find(operator) {
            Some(Form::Special(_)) => false,
            Some(Form::Unary(_)) => true,
            None => crate::expression::is_operator(operator),
        };
        if is_unary {
            check_unary(operator, operand)?;
        }
        Accumulator::of_operand(operator, operand, scope)
    }

    /// The accumulator of a window, whose operand may be an array: one expression, too.
    pub(crate) fn of_operand(
        operator: &str,
        operand: ValueRef<'_>,
        scope: &Scope,
    ) -> Result<Accumulator, Error> {
        let (operator, input) = match find(operator) {
            Some(Form::Special(parse)) => parse(operator, operand, scope)?,
            Some(Form::Unary(kind)) => (kind, Expression::parse(operand, scope)?),
            None => return Err(unknown(operator)),
        };
        Ok(Accumulator { operator, input })
    }

    /// The same of windows whose begin moves on: see [`Average`](Operator::Average) and
    /// [`Deviation`](Operator::Deviation).
    pub(crate) fn moving(mut self) -> Accumulator {
        if let Operator::Average { moving } | Operator::Deviation { moving, .. } =
            &mut self.operator
        {
            *moving = true;
        }
        self
    }

    /// A group without values. `context` has what the `n` of `$firstN` and its like may refer to: the
    /// group's `_id`.
    pub fn start(&self, context: &Context<'_>) -> Result<AccumulatorState, Error> {
        AccumulatorState::new(&self.operator, context)
    }

    /// Evaluates what the document adds, and adds it.
    pub fn add(&self, state: &mut AccumulatorState, context: &Context<'_>) -> Result<(), Error> {
        if let Operator::Top { order, .. } = &self.operator {
            let mut key = Vec::new();
            order.key_by(context.root, context.meta, context.collation, &mut key)?;
            return state.add_ordered(key, self.input.evaluate(context)?);
        }
        state.add(self.input.evaluate(context)?, context.collation)
    }

    /// The state of a group of so many documents, where it depends on nothing else.
    pub fn of_many(&self, documents: u64) -> Option<AccumulatorState> {
        AccumulatorState::of_many(&self.operator, self.input.constant(), documents)
    }

    /// What one document adds, for those who keep the values themselves (windows).
    pub fn input(&self) -> &Expression {
        &self.input
    }

    /// Whether a group begins the same whatever its `_id` is.
    pub fn begins_alike(&self) -> bool {
        let count = match &self.operator {
            Operator::Several { count, .. } => Some(count),
            Operator::Top { count, .. } => count.as_ref(),
            _ => None,
        };
        count.is_none_or(Expression::is_constant)
    }

    /// Whether only the first value of a group matters.
    pub fn is_first(&self) -> bool {
        self.operator == Operator::First
    }

    /// Whether only the last value of a group matters.
    pub fn is_last(&self) -> bool {
        self.operator == Operator::Last
    }

    pub fn dependencies(&self) -> Dependencies {
        let mut dependencies = self.input.paths();
        match &self.operator {
            Operator::Several { count, .. } => count.collect(&mut dependencies),
            Operator::Top { order, count, .. } => {
                add_order(order, &mut dependencies);
                count
                    .iter()
                    .for_each(|count| count.collect(&mut dependencies));
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

/// The operator and operand of a field of `$group`.
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

fn parse_count(_: &str, operand: ValueRef<'_>, _: &Scope) -> Result<Parsed, Error> {
    match operand.as_document() {
        Some(document) if document.is_empty() => {
            let input = Expression::constant_of(windrow_document::Value::Null);
            Ok((Operator::Count, input))
        }
        _ => Err(Error::type_mismatch(
            "$count takes no arguments, i.e. $count:{}",
        )),
    }
}
