//! The table of operators, and how arguments are read.

use windrow_document::{Document, ValueRef};

use super::call::Call;
use super::{Computed, Context, Expression, Scope};
use super::{arithmetic, boolean, comparison, conditional, variable};
use crate::Error;

pub(crate) type Evaluate = for<'a> fn(&'a Call, &Context<'a>) -> Result<Computed<'a>, Error>;

/// One operator: its name, the form of its arguments, and what it does.
pub(crate) struct Operator {
    pub name: &'static str,
    pub form: Form,
    pub evaluate: Evaluate,
    /// Computes once what constant arguments fix.
    pub prepare: Option<fn(&mut Call) -> Result<(), Error>>,
    /// The same arguments always give the same value.
    pub is_pure: bool,
}

/// How the operand of an operator is read.
pub(crate) enum Form {
    /// An array of so many arguments; a single one may stand without the array. 16020 otherwise.
    Exactly(usize),
    /// From so many to so many arguments. 28667 otherwise.
    Between(usize, usize),
    Any,
    Named(&'static Named),
    /// The operator reads its operand itself.
    Special(fn(&'static Operator, ValueRef<'_>, &Scope) -> Result<Expression, Error>),
}

/// Arguments by name: `{input: …, chars: …}`.
pub(crate) struct Named {
    /// The code where the operand is no document.
    pub not_document: i32,
    /// The code of a name that is not one of these.
    pub unknown: i32,
    /// The names, and the code where one that must stand does not.
    pub names: &'static [(&'static str, Option<i32>)],
}

const fn operator(name: &'static str, form: Form, evaluate: Evaluate) -> Operator {
    Operator {
        name,
        form,
        evaluate,
        prepare: None,
        is_pure: true,
    }
}

const fn exactly(name: &'static str, count: usize, evaluate: Evaluate) -> Operator {
    operator(name, Form::Exactly(count), evaluate)
}

const fn any(name: &'static str, evaluate: Evaluate) -> Operator {
    operator(name, Form::Any, evaluate)
}

/// All operators, by name.
static OPERATORS: &[Operator] = &[
    any("$add", arithmetic::add),
    any("$and", boolean::and),
    exactly("$cmp", 2, comparison::cmp),
    operator(
        "$cond",
        Form::Special(conditional::parse_cond),
        conditional::cond,
    ),
    operator(
        "$const",
        Form::Special(variable::parse_literal),
        variable::literal,
    ),
    exactly("$divide", 2, arithmetic::divide),
    exactly("$eq", 2, comparison::eq),
    exactly("$gt", 2, comparison::gt),
    exactly("$gte", 2, comparison::gte),
    operator(
        "$ifNull",
        Form::Special(conditional::parse_if_null),
        conditional::if_null,
    ),
    operator(
        "$let",
        Form::Special(variable::parse_let),
        variable::evaluate_let,
    ),
    operator(
        "$literal",
        Form::Special(variable::parse_literal),
        variable::literal,
    ),
    exactly("$lt", 2, comparison::lt),
    exactly("$lte", 2, comparison::lte),
    exactly("$mod", 2, arithmetic::modulo),
    any("$multiply", arithmetic::multiply),
    exactly("$ne", 2, comparison::ne),
    exactly("$not", 1, boolean::not),
    any("$or", boolean::or),
    exactly("$subtract", 2, arithmetic::subtract),
    operator(
        "$switch",
        Form::Special(conditional::parse_switch),
        conditional::switch,
    ),
];

/// The operator of that name, with its dollar sign.
pub(crate) fn find(name: &str) -> Option<&'static Operator> {
    let place = OPERATORS
        .binary_search_by(|operator| operator.name.cmp(name))
        .ok()?;
    OPERATORS.get(place)
}

/// Parses `{name: operand}`. 168 InvalidPipelineOperator for a name that is not known.
pub(crate) fn parse(name: &str, operand: ValueRef<'_>, scope: &Scope) -> Result<Expression, Error> {
    let Some(operator) = find(name) else {
        return Err(Error::new(168, format!("Unrecognized expression '{name}'")));
    };
    let arguments = match operator.form {
        Form::Exactly(count) => list(operator.name, operand, scope, count..=count, 16020)?,
        Form::Between(least, most) => list(operator.name, operand, scope, least..=most, 28667)?,
        Form::Any => list(operator.name, operand, scope, 0..=usize::MAX, 0)?,
        Form::Named(named) => named.parse(operator.name, operand, scope)?,
        Form::Special(parse) => return parse(operator, operand, scope),
    };
    finish(Call::new(operator, arguments))
}

/// Prepares and folds a call.
pub(crate) fn finish(mut call: Call) -> Result<Expression, Error> {
    if let Some(prepare) = call.operator.prepare {
        prepare(&mut call)?;
    }
    Expression::call(call)
}

/// Arguments as a list; one alone needs no array around it.
pub(crate) fn list(
    name: &str,
    operand: ValueRef<'_>,
    scope: &Scope,
    counts: std::ops::RangeInclusive<usize>,
    code: i32,
) -> Result<Vec<Expression>, Error> {
    let arguments: Vec<Expression> = match operand {
        ValueRef::Array(array) => array
            .iter()
            .map(|value| Expression::parse(value, scope))
            .collect::<Result<_, _>>()?,
        single => vec![Expression::parse(single, scope)?],
    };
    if counts.contains(&arguments.len()) {
        return Ok(arguments);
    }
    let (least, most) = counts.into_inner();
    let expected = if least == most {
        least.to_string()
    } else {
        format!("{least} to {most}")
    };
    let found = arguments.len();
    let message = format!("Expression {name} takes {expected} arguments. {found} were passed in.");
    Err(Error::new(code, message))
}

impl Named {
    /// Reads the arguments into the order of the table.
    fn parse(
        &self,
        operator: &str,
        operand: ValueRef<'_>,
        scope: &Scope,
    ) -> Result<Vec<Expression>, Error> {
        let values = self.values(operator, operand)?;
        let parse = |value: Option<ValueRef<'_>>| match value {
            Some(value) => Expression::parse(value, scope),
            None => Ok(super::ABSENT.clone()),
        };
        values.into_iter().map(parse).collect()
    }

    /// The arguments unparsed, in the order of the table.
    pub fn values<'v>(
        &self,
        operator: &str,
        operand: ValueRef<'v>,
    ) -> Result<Vec<Option<ValueRef<'v>>>, Error> {
        let document = self.document(operator, operand)?;
        let mut values = vec![None; self.names.len()];
        for (name, value) in document {
            let place = self.names.iter().position(|(known, _)| *known == name);
            match place.and_then(|place| values.get_mut(place)) {
                Some(slot) => *slot = Some(value),
                None => {
                    let message = format!("Unrecognized argument to {operator}: {name}");
                    return Err(Error::new(self.unknown, message));
                }
            }
        }
        for ((name, required), value) in self.names.iter().zip(&values) {
            if let (Some(code), None) = (required, value) {
                let message = format!("Missing '{name}' parameter to {operator}");
                return Err(Error::new(*code, message));
            }
        }
        Ok(values)
    }

    fn document<'v>(&self, operator: &str, operand: ValueRef<'v>) -> Result<Document<'v>, Error> {
        operand.as_document().ok_or_else(|| {
            let found = operand.type_of().name();
            let message =
                format!("{operator} only supports an object as its argument, found {found}");
            Error::new(self.not_document, message)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order_so_that_every_operator_is_found() {
        for pair in OPERATORS.windows(2) {
            assert!(
                pair[0].name < pair[1].name,
                "{} {}",
                pair[0].name,
                pair[1].name
            );
        }
        OPERATORS
            .iter()
            .for_each(|operator| assert!(find(operator.name).is_some()));
    }
}
