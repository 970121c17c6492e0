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
/// • 14: a value is not a number, or sort values are neither numbers nor dates or a mix of both.
/// - 6050106: two documents have the same sort value.
pub(super) fn linear<'a>(
    input: &'a Expression,
    partition: &Partition<'a>,
) -> Result<Vec<Option<Value>>, Error> {
    let mut values = partition.values(input)?;
    let places = line_places(&values, &sort_values(partition))?;
    let mut before: Option<(usize, Number)> = None;
    for place in 0..values.len() {
        count_work(1)?;
        let value = values.get(place).and_then(Option::as_ref);
        let Some(behind) = value.and_then(|value| Number::from_value(value.as_ref())) else {
            continue;
        };
        if let Some((from, start)) = before {
            fill(&mut values, &places, (from, start), (place, behind))?;
        }
        before = Some((place, behind));
    }
    Ok(values
        .into_iter()
        .map(|value| value.or(Some(Value::Null)))
        .collect())
}

/// The sort values as numbers. Dates are converted to milliseconds.
fn line_places(values: &[Option<Value>], keys: &[Value]) -> Result<Vec<Number>, Error> {
    let mismatch = |what: &str| Err(Error::type_mismatch(what));
    let mut places: Vec<Number> = Vec::with_capacity(keys.len());
    let mut dates_before = None;
    for (value, key) in values.iter().zip(keys) {
        let number = |value: &Value| Number::from_value(value.as_ref());
        if !is_nullish(value) && value.as_ref().and_then(number).is_none() {
            return mismatch("Value to be filled must be numeric or nullish");
        }
        let (place, is_date) = match key {
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
        if places
            .last()
            .is_some_and(|last| difference(place.pair(*last)).is_zero())
        {
            let message = "There can be no repeated values in the sort field";
            return Err(Error::new(6050106, message));
        }
        dates_before = Some(is_date);
        places.push(place);
    }
    Ok(places)
}

/// Fills the documents between two values: the first value plus the slope times the distance.
fn fill(
    values: &mut [Option<Value>],
    places: &[Number],
    (from, start): (usize, Number),
    (to, end): (usize, Number),
) -> Result<(), Bug> {
    let count = values.len();
    let outside = || outside(from..to, count);
    let place = |index: usize| places.get(index).copied().ok_or_else(outside);
    let first = place(from)?;
    let run = difference(place(to)?.pair(first));
    let slope = quotient(difference(end.pair(start)).pair(run));
    for between in from + 1..to {
        let along = difference(place(between)?.pair(first));
        let value = sum(start.pair(product(along.pair(slope))));
        let slot = values.get_mut(between).ok_or_else(outside)?;
        *slot = Some(value.to_value_ref().to_value());
    }
    Ok(())
}
