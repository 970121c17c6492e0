//! `$cmp`, `$eq`, `$ne`, `$gt`, `$gte`, `$lt`, `$lte`: MongoDB's order over all types, with missing
//! below everything but MinKey.

use std::cmp::Ordering;

use windrow_document::{Type, ValueRef};

use super::tree::Call;
use super::{Computed, Context};
use crate::Error;

/// The order of two values that may be missing. Missing is like undefined, but below it.
pub(crate) fn compare(one: &Computed<'_>, other: &Computed<'_>, context: &Context<'_>) -> Ordering {
    match (one.as_ref(), other.as_ref()) {
        (Some(one), Some(other)) => context.compare(one, other),
        (None, None) => Ordering::Equal,
        (None, Some(other)) => below(other),
        (Some(one), None) => below(one).reverse(),
    }
}

fn below(other: ValueRef<'_>) -> Ordering {
    if other.type_of() == Type::MinKey {
        Ordering::Greater
    } else {
        Ordering::Less
    }
}

fn order<'a>(call: &'a Call, context: &Context<'a>) -> Result<Ordering, Error> {
    let one = call.value(0, context)?;
    let other = call.value(1, context)?;
    Ok(compare(&one, &other, context))
}

pub(crate) fn cmp<'a>(call: &'a Call, context: &Context<'a>) -> Result<Computed<'a>, Error> {
    Ok((order(call, context)? as i32).into())
}

pub(crate) fn eq<'a>(call: &'a Call, context: &Context<'a>) -> Result<Computed<'a>, Error> {
    Ok(order(call, context)?.is_eq().into())
}

pub(crate) fn ne<'a>(call: &'a Call, context: &Context<'a>) -> Result<Computed<'a>, Error> {
    Ok(order(call, context)?.is_ne().into())
}

pub(crate) fn gt<'a>(call: &'a Call, context: &Context<'a>) -> Result<Computed<'a>, Error> {
    Ok(order(call, context)?.is_gt().into())
}

pub(crate) fn gte<'a>(call: &'a Call, context: &Context<'a>) -> Result<Computed<'a>, Error> {
    Ok(order(call, context)?.is_ge().into())
}

pub(crate) fn lt<'a>(call: &'a Call, context: &Context<'a>) -> Result<Computed<'a>, Error> {
    Ok(order(call, context)?.is_lt().into())
}

pub(crate) fn lte<'a>(call: &'a Call, context: &Context<'a>) -> Result<Computed<'a>, Error> {
    Ok(order(call, context)?.is_le().into())
}
