//! `$let` and `$literal`.

use windrow_document::ValueRef;

use super::context::Frame;
use super::parse::{NamedArguments, Parser, finish};
use super::tree::{Call, Operator};
use super::{Context, ExprValue, Expression, check_variable_definition};
use crate::Error;

pub(crate) fn parse_literal(
    _operator: &'static Operator,
    operand: ValueRef<'_>,
    _parser: &Parser,
) -> Result<Expression, Error> {
    Ok(Expression::from_constant(operand.to_value()))
}

/// Never called: `$literal` becomes a constant while parsing.
pub(crate) fn literal<'a>(_: &'a Call, _: &Context<'a>) -> Result<ExprValue<'a>, Error> {
    Ok(ExprValue::Missing)
}

static LET: NamedArguments = NamedArguments {
    not_document: 16874,
    unknown: 16875,
    names: &[("vars", Some(16876)), ("in", Some(16877))],
};

/// Parses `$let`. Arguments: the values of the variables, then the body.
pub(crate) fn parse_let(
    operator: &'static Operator,
    operand: ValueRef<'_>,
    parser: &Parser,
) -> Result<Expression, Error> {
    let values = LET.values(operator.name, operand)?;
    let [Some(variables), Some(body)] = values.as_slice() else {
        return Err(Error::new(16877, "$let needs 'vars' and 'in'"));
    };
    let fields = match variables {
        ValueRef::Document(document) => *document,
        // An array is accepted as an object with the names "0", "1", …, which are not valid
        // variable names.
        ValueRef::Array(array) => array.as_document(),
        other => {
            let found = other.type_of().name();
            let message = format!("invalid parameter: expected an object (vars), found {found}");
            return Err(Error::new(10065, message));
        }
    };
    let (mut arguments, mut frames, mut inner) = (Vec::new(), Vec::new(), parser.clone());
    for (name, value) in fields {
        check_variable_definition(name)?;
        arguments.push(parser.parse(value)?);
        let (next, frame) = inner.define(name);
        inner = next;
        frames.push(frame);
    }
    arguments.push(inner.parse(*body)?);
    finish(Call::new(operator, arguments).with_frames(frames))
}

pub(crate) fn evaluate_let<'a>(
    call: &'a Call,
    context: &Context<'a>,
) -> Result<ExprValue<'a>, Error> {
    bind(call, 0, context, context)
}

/// Binds the variable at an index and the following ones, then evaluates the body. Values are
/// evaluated outside of the `$let`, the body inside.
fn bind(
    call: &Call,
    index: usize,
    outside: &Context<'_>,
    inside: &Context<'_>,
) -> Result<ExprValue<'static>, Error> {
    if index + 1 >= call.arguments.len() {
        return Ok(call.value(index, inside)?.into_owned());
    }
    let value = call.value(index, outside)?;
    let frame = Frame {
        number: call.frame(index),
        value: value.as_ref(),
        next: inside.frames,
    };
    bind(call, index + 1, outside, &inside.with_frame(&frame))
}
