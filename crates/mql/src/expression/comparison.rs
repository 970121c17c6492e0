//! `$cmp`, `$eq`, `$ne`, `$gt`, `$gte`, `$lt`, `$lte`: MongoDB's order over all types. A missing
//! value compares as undefined, which is less than everything but MinKey.

use std::cmp::Ordering;

use windrow_document::ValueRef;

use super::tree::Call;
use super::{Context, ExprValue};
use crate::Error;

/// Compares two values that may be missing.
pub(crate) fn compare(
    one: &ExprValue<'_>,
    other: &ExprValue<'_>,
    context: &Context<'_>,
) -> Ordering {
    let [one, other] = [one, other].map(|one| one.as_ref().unwrap_or(ValueRef::Undefined));
    context.compare(one, other)
}

fn order<'a>(call: &'a Call, context: &Context<'a>) -> Result<Ordering, Error> {
    let one = call.value(0, context)?;
    let other = call.value(1, context)?;
    Ok(compare(&one, &other, context))
}

pub(crate) fn cmp<'a>(call: &'a Call, context: &Context<'a>) -> Result<ExprValue<'a>, Error> {
    Ok((order(call, context)? as i32).into())
}

pub(crate) fn eq<'a>(call: &'a Call, context: &Context<'a>) -> Result<ExprValue<'a>, Error> {
    Ok(order(call, context)?.is_eq().into())
}

pub(crate) fn ne<'a>(call: &'a Call, context: &Context<'a>) -> Result<ExprValue<'a>, Error> {
    Ok(order(call, context)?.is_ne().into())
}

pub(crate) fn gt<'a>(call: &'a Call, context: &Context<'a>) -> Result<ExprValue<'a>, Error> {
    Ok(order(call, context)?.is_gt().into())
}

pub(crate) fn gte<'a>(call: &'a Call, context: &Context<'a>) -> Result<ExprValue<'a>, Error> {
    Ok(order(call, context)?.is_ge().into())
}

pub(crate) fn lt<'a>(call: &'a Call, context: &Context<'a>) -> Result<ExprValue<'a>, Error> {
    Ok(order(call, context)?.is_lt().into())
}

pub(crate) fn lte<'a>(call: &'a Call, context: &Context<'a>) -> Result<ExprValue<'a>, Error> {
    Ok(order(call, context)?.is_le().into())
}
