//! `$setUnion`, `$setIntersection`, `$setDifference`, `$setEquals`, `$setIsSubset`,
//! `$anyElementTrue`, `$allElementsTrue`.
//!
//! Sets are arrays whose order and duplicates are ignored. Results are in MongoDB's order, except
//! those of `$setDifference`, which keep the order of its first argument.

use std::cmp::Ordering;

use windrow_document::{Array, ArrayBuf, ValueRef};

use super::tree::{Call, EvalResult};
use super::{Context, ExprValue};
use crate::Error;
use crate::interrupt::{count_work, sort_by};
use crate::memory::{LimitedArrayBuilder, LimitedVec, check_value};

/// Sorted distinct elements. Of equal elements the first one is kept.
struct ValueSet<'v, 'c> {
    values: LimitedVec<'c, ValueRef<'v>>,
    context: Context<'c>,
}

impl<'v, 'c> ValueSet<'v, 'c> {
    fn new(
        values: impl IntoIterator<Item = ValueRef<'v>>,
        call: &'c Call,
        context: &Context<'c>,
    ) -> Result<ValueSet<'v, 'c>, Error> {
        let mut values = LimitedVec::collect_from(values, call.operator.name)?;
        sort_by(&mut values, |one, other| context.compare(*one, *other))?;
        values.dedup_by(|next, previous| context.equals(*next, *previous));
        Ok(ValueSet {
            values,
            context: *context,
        })
    }

    fn contains(&self, value: ValueRef<'_>) -> Result<bool, Error> {
        // A binary search in a large set misses the processor's caches.
        count_work(8)?;
        let found = self
            .values
            .binary_search_by(|one| self.context.compare(*one, value));
        Ok(found.is_ok())
    }

    fn equals(&self, other: &ValueSet<'_, '_>) -> bool {
        let mut pairs = self.values.iter().zip(other.values.iter());
        self.values.len() == other.values.len()
            && pairs.all(|(one, other)| self.context.equals(*one, *other))
    }
}

fn array<'v>(call: &Call, value: &'v ExprValue<'_>, code: i32) -> Result<Array<'v>, Error> {
    value.as_array().ok_or_else(|| {
        let (name, found) = (call.operator.name, value.type_name());
        Error::new(
            code,
            format!("All operands of {name} must be arrays. One argument is of type: {found}"),
        )
    })
}

pub(crate) fn union<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    let (mut sets, mut bytes) = (Vec::new(), 0);
    for argument in &call.arguments {
        let value = argument.evaluate(context)?;
        if value.is_nullish() {
            return Ok(ExprValue::NULL);
        }
        // Duplicates count as in MongoDB, because they are held until all arguments are evaluated.
        bytes += array(call, &value, 17043)?.as_bytes().len();
        check_value(call.operator.name, bytes)?;
        sets.push(value);
    }
    let all = sets.iter().filter_map(ExprValue::as_array).flatten();
    let mut union = LimitedArrayBuilder::new(call.operator.name);
    union.extend(ValueSet::new(all, call, context)?.values.iter().copied())?;
    Ok(union.finish().into())
}

pub(crate) fn intersection<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    let mut sets = Vec::new();
    for argument in &call.arguments {
        let value = argument.evaluate(context)?;
        if value.is_nullish() {
            return Ok(ExprValue::NULL);
        }
        array(call, &value, 17047)?;
        sets.push(value);
    }
    let mut arrays = sets.iter().filter_map(ExprValue::as_array);
    let mut common = ValueSet::new(arrays.next().into_iter().flatten(), call, context)?;
    for array in arrays {
        let other = ValueSet::new(array, call, context)?;
        let mut shared = LimitedVec::new(call.operator.name);
        for value in common.values.iter().copied() {
            if other.contains(value)? {
                shared.push(value)?;
            }
        }
        common.values = shared;
    }
    Ok(common.values.iter().copied().collect::<ArrayBuf>().into())
}

pub(crate) fn difference<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    let (one, other) = (call.value(0, context)?, call.value(1, context)?);
    if one.is_nullish() || other.is_nullish() {
        return Ok(ExprValue::NULL);
    }
    let (minuend, subtrahend) = (
        array(call, &one, 17048)?,
        ValueSet::new(array(call, &other, 17049)?, call, context)?,
    );
    let mut values = LimitedVec::new(call.operator.name);
    for (index, value) in minuend.iter().enumerate() {
        if !subtrahend.contains(value)? {
            values.push((index, value))?;
        }
    }
    // The sort is stable, so the first of equal elements is kept.
    sort_by(&mut values, |(_, one), (_, other)| {
        context.compare(*one, *other)
    })?;
    values.dedup_by(|(_, next), (_, previous)| context.equals(*next, *previous));
    values.sort_by_key(|(index, _)| *index);
    Ok(values
        .iter()
        .map(|(_, value)| *value)
        .collect::<ArrayBuf>()
        .into())
}

pub(crate) fn equals<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    let first = call.value(0, context)?;
    let first = ValueSet::new(array(call, &first, 17044)?, call, context)?;
    for argument in call.arguments.iter().skip(1) {
        let value = argument.evaluate(context)?;
        if !first.equals(&ValueSet::new(array(call, &value, 17044)?, call, context)?) {
            return Ok(false.into());
        }
    }
    Ok(true.into())
}

/// Fails with 17045 if there are fewer than two sets.
pub(crate) fn prepare_equals(call: &mut Call) -> Result<(), Error> {
    match call.arguments.len().cmp(&2) {
        Ordering::Less => Err(Error::new(17045, "$setEquals needs at least two arguments")),
        _ => Ok(()),
    }
}

pub(crate) fn is_subset<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    let (one, other) = (call.value(0, context)?, call.value(1, context)?);
    let (one, other) = (array(call, &one, 17046)?, array(call, &other, 17042)?);
    let whole = ValueSet::new(other, call, context)?;
    for value in one.iter() {
        if !whole.contains(value)? {
            return Ok(false.into());
        }
    }
    Ok(true.into())
}

pub(crate) fn any_element_true<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    let value = call.value(0, context)?;
    Ok(array(call, &value, 17041)?
        .iter()
        .any(ValueRef::is_truthy)
        .into())
}

pub(crate) fn all_elements_true<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    let value = call.value(0, context)?;
    Ok(array(call, &value, 17040)?
        .iter()
        .all(ValueRef::is_truthy)
        .into())
}
