//! `$bitAnd`, `$bitOr`, `$bitXor`, `$bitNot` on ints and longs.

use super::number::Number;
use super::tree::{Call, EvalResult};
use super::{Context, ExprValue};
use crate::Error;

fn fold<'a>(
    call: &'a Call,
    context: &Context<'a>,
    start: i32,
    combine: fn(i64, i64) -> i64,
) -> EvalResult<'a> {
    let (mut bits, mut is_long) = (i64::from(start), false);
    for argument in &call.arguments {
        let value = argument.evaluate(context)?;
        if value.is_nullish() {
            return Ok(ExprValue::NULL);
        }
        match value.as_ref().and_then(Number::from_value) {
            Some(Number::Int(number)) => bits = combine(bits, i64::from(number)),
            Some(Number::Long(number)) => {
                is_long = true;
                bits = combine(bits, number);
            }
            _ => return Err(wrong_type(call, &value)),
        }
    }
    Ok(if is_long {
        bits.into()
    } else {
        (bits as i32).into()
    })
}

fn wrong_type(call: &Call, value: &ExprValue<'_>) -> Error {
    let (name, found) = (call.operator.name, value.type_name());
    Error::type_mismatch(format!("{name} only supports int and long, not {found}"))
}

pub(crate) fn and<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    fold(call, context, -1, |one, other| one & other)
}

pub(crate) fn or<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    fold(call, context, 0, |one, other| one | other)
}

pub(crate) fn xor<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    fold(call, context, 0, |one, other| one ^ other)
}

pub(crate) fn not<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    let value = call.value(0, context)?;
    match value.as_ref().and_then(Number::from_value) {
        _ if value.is_nullish() => Ok(ExprValue::NULL),
        Some(Number::Int(number)) => Ok((!number).into()),
        Some(Number::Long(number)) => Ok((!number).into()),
        Some(_) => Err(wrong_type(call, &value)),
        None => Err(Error::new(
            28765,
            format!(
                "$bitNot only supports int and long, not {}",
                value.type_name()
            ),
        )),
    }
}
