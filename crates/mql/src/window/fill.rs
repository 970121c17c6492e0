//! Functions that fill null and missing values: `$locf`, `$linearFill`.

use windrow_document::Value;
use windrow_invariant::Bug;

use super::Partition;
use super::bounds::{outside, sort_values};
use crate::Error;
use crate::expression::Expression;
use crate::expression::arithmetic::{difference, product, quotient, sum};
use crate::expression::number::Number;
use crate::interrupt::count_work;

fn is_nullish(value: &Option<Value>) -> bool {
    matches!(value, None | Some(Value::Null | Value::Undefined))
}

/// `$locf`: the last value that is not null or missing.
pub(super) fn last_observed<'a>(
    input: &'a Expression,
    partition: &Partition<'a>,
) -> Result<Vec<Option<Value>>, Error> {
    let mut last = Some(Value::Null);
    let values = partition.values(input)?.into_iter().map(|value| {
        if !is_nullish(&value) {
            last = value;
        }
        last.clone()
    });
    Ok(values.collect())
}

/// `$linearFill`: interpolates between the previous and the next value by the sort field.
///
/// # Errors
///
/// - 14: a value is not a number, or sort values are neither numbers nor dates or a mix of both.
/// - 6050106: two documents have the same sort value.
pub(super) fn linear<'a>(
    input: &'a Expression,
    partition: &Partition<'a>,
) -> Result<Vec<Option<Value>>, Error> {
    let mut values = partition.values(input)?;
    let positions = line_positions(&values, &sort_values(partition))?;
    let mut previous: Option<KnownValue> = None;
    for index in 0..values.len() {
        count_work(1)?;
        let value = values.get(index).and_then(Option::as_ref);
        let Some(following) = value.and_then(|value| Number::from_value(value.as_ref())) else {
            continue;
        };
        let following = KnownValue {
            index,
            value: following,
        };
        if let Some(previous) = previous {
            fill(&mut values, &positions, previous, following)?;
        }
        previous = Some(following);
    }
    Ok(values
        .into_iter()
        .map(|value| value.or(Some(Value::Null)))
        .collect())
}

/// Returns the sort values as numbers. Dates are converted to milliseconds.
fn line_positions(values: &[Option<Value>], keys: &[Value]) -> Result<Vec<Number>, Error> {
    let mismatch = |what: &str| Err(Error::type_mismatch(what));
    let mut positions: Vec<Number> = Vec::with_capacity(keys.len());
    let mut dates_before = None;
    for (value, key) in values.iter().zip(keys) {
        let number = |value: &Value| Number::from_value(value.as_ref());
        if !is_nullish(value) && value.as_ref().and_then(number).is_none() {
            return mismatch("Value to be filled must be numeric or nullish");
        }
        let (position, is_date) = match key {
            Value::DateTime(millis) => (Number::Long(*millis), true),
            other => match number(other) {
                Some(number) => (number, false),
                None => {
                    return mismatch("Value of the sortBy field must be numeric or a date");
                }
            },
        };
        let is_conflict = dates_before.is_some_and(|dates| dates != is_date);
        if is_conflict {
            return mismatch("Conflicting sort value types: numbers and dates");
        }
        if positions
            .last()
            .is_some_and(|last| difference(position.pair(*last)).is_zero())
        {
            let message = "There can be no repeated values in the sort field";
            return Err(Error::new(6050106, message));
        }
        dates_before = Some(is_date);
        positions.push(position);
    }
    Ok(positions)
}

/// A value that is not null or missing, and the index of its document.
#[derive(Clone, Copy)]
struct KnownValue {
    index: usize,
    value: Number,
}

/// Fills the documents between two values: the first value plus the slope times the distance.
fn fill(
    values: &mut [Option<Value>],
    positions: &[Number],
    from: KnownValue,
    to: KnownValue,
) -> Result<(), Bug> {
    let count = values.len();
    let outside = || outside(from.index..to.index, count);
    let position = |index: usize| positions.get(index).copied().ok_or_else(outside);
    let first = position(from.index)?;
    let run = difference(position(to.index)?.pair(first));
    let slope = quotient(difference(to.value.pair(from.value)).pair(run));
    for between in from.index + 1..to.index {
        let distance = difference(position(between)?.pair(first));
        let value = sum(from.value.pair(product(distance.pair(slope))));
        let slot = values.get_mut(between).ok_or_else(outside)?;
        *slot = Some(value.to_value_ref().to_value());
    }
    Ok(())
}
