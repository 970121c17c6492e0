//! Accumulators as expressions: `$sum`, `$avg`, `$min`, `$max`, `$stdDevPop`, `$stdDevSamp` and
//! `$mergeObjects` over their arguments, or over the elements of a single array argument. The
//! accumulators of groups share this code.

use std::cmp::Ordering;
use std::collections::HashMap;

use windrow_document::{Collation, Document, DocumentBuf, Value, ValueRef, collation};

use super::number::Number;
use super::statistics::{Average, Coverage, Deviation};
use super::summation::Sum;
use super::tree::{Call, EvalResult};
use super::{Context, ExprValue};
use crate::Error;
use crate::interrupt::count_work;
use crate::memory::LimitedDocumentBuilder;

/// Calls `take` with each value.
fn for_each_value<'a>(
    call: &'a Call,
    context: &Context<'a>,
    take: &mut dyn FnMut(ExprValue<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    if let [argument] = &*call.arguments {
        let value = argument.evaluate(context)?;
        return match value.as_array() {
            Some(array) => array.iter().try_for_each(|element| {
                count_work(1)?;
                take(ExprValue::Borrowed(element))
            }),
            None => take(value),
        };
    }
    call.arguments
        .iter()
        .try_for_each(|argument| take(argument.evaluate(context)?))
}

/// Calls `take` with each number. Other values are skipped.
fn for_each_number<'a>(
    call: &'a Call,
    context: &Context<'a>,
    mut take: impl FnMut(Number),
) -> Result<(), Error> {
    for_each_value(call, context, &mut |value| {
        value
            .as_ref()
            .and_then(Number::from_value)
            .into_iter()
            .for_each(&mut take);
        Ok(())
    })
}

pub(crate) fn sum<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    let mut sum = Sum::default();
    for_each_number(call, context, |number| sum.add(number))?;
    Ok(sum.number().into())
}

pub(crate) fn avg<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    let mut average = Average::default();
    for_each_number(call, context, |number| average.add(number))?;
    Ok(average.finish().into())
}

fn deviation<'a>(call: &'a Call, context: &Context<'a>, coverage: Coverage) -> EvalResult<'a> {
    let mut deviation = Deviation::new(coverage);
    for_each_number(call, context, |number| deviation.add(number.to_f64()))?;
    Ok(deviation.finish().map_or(ExprValue::NULL, ExprValue::from))
}

pub(crate) fn std_dev_pop<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    deviation(call, context, Coverage::Population)
}

pub(crate) fn std_dev_samp<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    deviation(call, context, Coverage::Sample)
}

/// Replaces `best` by the value if the value is better. Null and missing values never are.
pub(crate) fn keep_better(
    best: &mut Option<Value>,
    value: ExprValue<'_>,
    collation: Option<&Collation>,
    better: fn(Ordering) -> bool,
) {
    let Some(found) = value.as_ref().filter(|found| !found.is_nullish()) else {
        return;
    };
    if best
        .as_ref()
        .is_none_or(|best| better(collation::compare(collation, found, best.as_ref())))
    {
        *best = value.into_value();
    }
}

fn extreme<'a>(
    call: &'a Call,
    context: &Context<'a>,
    better: fn(Ordering) -> bool,
) -> EvalResult<'a> {
    let mut best = None;
    for_each_value(call, context, &mut |value| {
        keep_better(&mut best, value, context.collation, better);
        Ok(())
    })?;
    Ok(best.map_or(ExprValue::NULL, ExprValue::from))
}

pub(crate) fn max<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    extreme(call, context, Ordering::is_gt)
}

pub(crate) fn min<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    extreme(call, context, Ordering::is_lt)
}

pub(crate) fn merge_objects<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    let mut merged = DocumentBuf::new();
    for_each_value(call, context, &mut |value| {
        merge_object(&mut merged, &value)
    })?;
    Ok(merged.into())
}

/// Merges the fields of a document into `merged`. An existing field keeps its position and gets the
/// new value.
pub(crate) fn merge_object(merged: &mut DocumentBuf, value: &ExprValue<'_>) -> Result<(), Error> {
    let Some(added) = document_to_merge(value)? else {
        return Ok(());
    };
    if merged.as_document().is_empty() {
        *merged = added.to_buf();
        return Ok(());
    }
    *merged = merge_fields(merged.as_document(), added)?;
    Ok(())
}

/// Returns the document to merge, or `None` if there is nothing to merge. Fails with 40400 if the
/// value is not a document.
pub(crate) fn document_to_merge<'v>(
    value: &'v ExprValue<'_>,
) -> Result<Option<Document<'v>>, Error> {
    if value.is_nullish() {
        return Ok(None);
    }
    value.as_document().map(Some).ok_or_else(|| {
        let found = value.type_name();
        let message = format!("$mergeObjects requires object inputs, but input is of type {found}");
        Error::new(40400, message)
    })
}

/// Up to this many fields are searched linearly.
const LINEAR_SEARCH_MAX: usize = 8;

fn merge_few_fields(merged: Document<'_>, added: Document<'_>) -> Result<DocumentBuf, Error> {
    let mut builder = LimitedDocumentBuilder::new("$mergeObjects");
    for (name, old) in merged {
        builder.append(name, added.get(name).unwrap_or(old))?;
    }
    for (number, (name, value)) in added.iter().enumerate() {
        let is_again = added.iter().take(number).any(|(before, _)| before == name);
        if !is_again && !merged.contains(name) {
            builder.append(name, value)?;
        }
    }
    Ok(builder.finish())
}

/// Returns the fields of both documents. A field of both has the value in `added`.
fn merge_fields(merged: Document<'_>, added: Document<'_>) -> Result<DocumentBuf, Error> {
    if added.count() <= LINEAR_SEARCH_MAX {
        return merge_few_fields(merged, added);
    }
    let mut new: HashMap<&str, (ValueRef<'_>, bool)> = HashMap::new();
    for (name, value) in added {
        new.entry(name).or_insert((value, false));
    }
    let mut builder = LimitedDocumentBuilder::new("$mergeObjects");
    for (name, old) in merged {
        let value = new.get_mut(name).map(|(value, is_written)| {
            *is_written = true;
            *value
        });
        builder.append(name, value.unwrap_or(old))?;
    }
    for (name, value) in added {
        if new.get(name).is_some_and(|(_, is_written)| !is_written) {
            builder.append(name, value)?;
        }
    }
    Ok(builder.finish())
}
