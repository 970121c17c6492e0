//! `$and`, `$or`, `$not`. Evaluation stops at the first argument that decides the result.

use super::tree::Call;
use super::{Context, ExprValue};
use crate::Error;

pub(crate) fn and<'a>(call: &'a Call, context: &Context<'a>) -> Result<ExprValue<'a>, Error> {
    for argument in &call.arguments {
        if !argument.evaluate(context)?.is_truthy() {
            return Ok(false.into());
        }
    }
    Ok(true.into())
}

pub(crate) fn or<'a>(call: &'a Call, context: &Context<'a>) -> Result<ExprValue<'a>, Error> {
    for argument in &call.arguments {
        if argument.evaluate(context)?.is_truthy() {
            return Ok(true.into());
        }
    }
    Ok(false.into())
}

pub(crate) fn not<'a>(call: &'a Call, context: &Context<'a>) -> Result<ExprValue<'a>, Error> {
    Ok((!call.value(0, context)?.is_truthy()).into())
}
