//! `$zip`.

use windrow_document::{Array, ValueRef};
use windrow_invariant::Bug;

use super::parse::{Parser, finish};
use super::tree::{Call, EvalResult, Operator, PreparedArguments};
use super::{Context, ExprValue, Expression};
use crate::Error;
use crate::memory::LimitedArrayBuilder;

fn list(
    name: &str,
    value: ValueRef<'_>,
    parser: &Parser,
    code: i32,
) -> Result<Vec<Expression>, Error> {
    let Some(array) = value.as_array() else {
        let found = value.type_of().name();
        return Err(Error::new(
            code,
            format!("{name} must be an array of expressions, found {found}"),
        ));
    };
    array.iter().map(|value| parser.parse(value)).collect()
}

/// Parses `$zip`. Arguments: the inputs, then the defaults.
pub(crate) fn parse(
    operator: &'static Operator,
    operand: ValueRef<'_>,
    parser: &Parser,
) -> Result<Expression, Error> {
    let Some(document) = operand.as_document() else {
        let message = "$zip only supports an object as an argument, found ";
        return Err(Error::new(
            34460,
            format!("{message}{}", operand.type_of().name()),
        ));
    };
    let (mut inputs, mut defaults, mut longest) = (Vec::new(), Vec::new(), false);
    for (name, value) in document {
        match (name, value) {
            ("inputs", value) => inputs = list("inputs", value, parser, 34461)?,
            ("defaults", value) => defaults = list("defaults", value, parser, 34462)?,
            ("useLongestLength", ValueRef::Bool(flag)) => longest = flag,
            ("useLongestLength", _) => {
                return Err(Error::new(34463, "useLongestLength must be a bool"));
            }
            _ => {
                return Err(Error::new(
                    34464,
                    format!("$zip found an unknown argument: {name}"),
                ));
            }
        }
    }
    let count = inputs.len();
    if count == 0 {
        return Err(Error::new(34465, "$zip requires at least one input array"));
    }
    if !defaults.is_empty() && !longest {
        return Err(Error::new(
            34466,
            "cannot specify defaults unless useLongestLength is true",
        ));
    }
    if !defaults.is_empty() && defaults.len() != count {
        return Err(Error::new(
            34467,
            "defaults and inputs must have the same length",
        ));
    }
    inputs.extend(defaults);
    let mut call = Call::new(operator, inputs);
    call.prepared = PreparedArguments::Zip { count, longest };
    finish(call)
}

pub(crate) fn zip<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    let PreparedArguments::Zip { count, longest } = call.prepared else {
        return Err(Bug::new("$zip was not prepared").into());
    };
    let mut values = Vec::with_capacity(call.arguments.len());
    for (index, argument) in call.arguments.iter().enumerate() {
        let value = argument.evaluate(context)?;
        if index < count && value.is_nullish() {
            return Ok(ExprValue::NULL);
        }
        if index < count && value.as_array().is_none() {
            let message = format!(
                "$zip found a non-array expression in input: {}",
                value.or_null()
            );
            return Err(Error::new(34468, message));
        }
        values.push(value);
    }
    let (inputs, defaults) = values.split_at(count);
    let inputs: Vec<Array<'_>> = inputs.iter().filter_map(ExprValue::as_array).collect();
    let lengths = inputs.iter().map(|input| input.count());
    let length = if longest {
        lengths.max()
    } else {
        lengths.min()
    };
    let length = length.ok_or_else(|| Bug::new("$zip has no inputs"))?;
    rows(call, &inputs, defaults, length)
}

/// Builds the rows. A row has no element for an input that has ended and whose default is missing.
fn rows<'a>(
    call: &Call,
    inputs: &[Array<'_>],
    defaults: &[ExprValue<'_>],
    length: usize,
) -> EvalResult<'a> {
    let mut columns: Vec<_> = inputs.iter().map(|input| input.iter()).collect();
    let mut rows = LimitedArrayBuilder::new(call.operator.name);
    for _ in 0..length {
        let mut row = LimitedArrayBuilder::new(call.operator.name);
        for (index, column) in columns.iter_mut().enumerate() {
            let value = match (column.next(), defaults.get(index)) {
                (Some(value), _) => value,
                (None, None) => ValueRef::Null,
                (None, Some(ExprValue::Missing)) => continue,
                (None, Some(default)) => default.or_null(),
            };
            row.push(value)?;
        }
        rows.push(ValueRef::Array(row.finish().as_array()))?;
    }
    Ok(rows.finish().into())
}
