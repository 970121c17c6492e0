//! Functions that fill what is null or missing: `$locf`, `$linearFill`.

use windrow_document::{Value, ValueRef};

use super::bounds::sort_values;
use super::{Check, Partition};
use crate::Error;
use crate::expression::Expression;
use crate::expression::arithmetic::{difference, quotient, sum, times};
use crate::expression::number::Number;

fn is_nullish(value: &Option<Value>) -> bool {
    matches!(value, None | Some(Value::Null | Value::Undefined))
}

/// The last value that was there.
pub(super) fn last_observed<'a>(
    input: &'a Expression,
    partition: &Partition<'a>,
    check: &mut Check<'_>,
) -> Result<Vec<Option<Value>>, Error> {
    let mut last = Value::Null;
    let values = partition.values(input, check)?.into_iter().map(|value| {
        if !is_nullish(&value) {
            last = value.unwrap_or(Value::Null);
        }
        Some(last.clone())
    });
    Ok(values.collect())
}

/// On the line between the values before and behind, by the field that the documents are ordered by.
/// Errors: 605001 for values that are no numbers, 6050106 for two documents with the same place on the
/// line, 6050101 and 6050102 for places that are neither numbers nor dates.
pub(super) fn linear<'a>(
    input: &'a Expression,
    partition: &Partition<'a>,
    check: &mut Check<'_>,
) -> Result<Vec<Option<Value>>, Error> {
    let mut values = partition.values(input, check)?;
    let places = line_places(&sort_values(partition))?;
    let mut before: Option<(usize, Number)> = None;
    for place in 0..values.len() {
        check()?;
        let Some(value) = values.get(place).filter(|value| !is_nullish(value)) else {
            continue;
        };
        let Some(behind) = value.as_ref().and_then(|value| Number::of(value.as_ref())) else {
            return Err(Error::new(
                605001,
                "Value to be filled must be numeric or nullish",
            ));
        };
        if let Some((from, start)) = before {
            fill(&mut values, &places, (from, start), (place, behind));
        }
        before = Some((place, behind));
    }
    Ok(values
        .into_iter()
        .map(|value| value.or(Some(Value::Null)))
        .collect())
}

/// The numbers that say where documents are on the line; dates as their milliseconds.
fn line_places(values: &[Value]) -> Result<Vec<Number>, Error> {
    let mut places = Vec::with_capacity(values.len());
    let mut kinds = (false, false);
    for value in values {
        let place = match value.as_ref() {
            ValueRef::DateTime(millis) => {
                kinds.0 = true;
                Number::Long(millis)
            }
            other => {
                kinds.1 = true;
                Number::of(other).ok_or_else(|| {
                    let found = other.type_of().name();
                    let message = format!("the sortBy field of $linearFill cannot be {found}");
                    Error::new(6050101, message)
                })?
            }
        };
        if kinds == (true, true) {
            let message = "the sortBy fields of $linearFill must all be numbers or all be dates";
            return Err(Error::new(6050102, message));
        }
        places.push(place);
    }
    let is_same = |pair: &[Number]| match pair {
        [one, two] => difference(one.pair(*two)).is_zero(),
        _ => false,
    };
    match places.windows(2).any(is_same) {
        true => Err(Error::new(
            6050106,
            "There can be no repeated values in the sort field",
        )),
        false => Ok(places),
    }
}

fn fill(
    values: &mut [Option<Value>],
    places: &[Number],
    (from, start): (usize, Number),
    (to, end): (usize, Number),
) {
    let place = |number: usize| places.get(number).copied().unwrap_or(Number::Int(0));
    let run = difference(place(to).pair(place(from)));
    let rise = difference(end.pair(start));
    for between in from + 1..to {
        let along = difference(place(between).pair(place(from)));
        let gained = quotient(times(rise.pair(along)).pair(run));
        let value = sum(start.pair(gained)).to_value_ref().to_value();
        if let Some(slot) = values.get_mut(between) {
            *slot = Some(value);
        }
    }
}
