//! `$sortArray`, and `$firstN`, `$lastN`, `$minN`, `$maxN`.

use std::cmp::Ordering;

use windrow_document::path::{Component, Path};
use windrow_document::{Array, ArrayBuf, Value, ValueRef};

use super::array::array;
use super::call::{Answer, Call, Prepared};
use super::field_path::split;
use super::operator::{Named, Operator, finish};
use super::{Computed, Context, Expression, Scope};
use crate::Error;

static SORT_ARRAY: Named = Named {
    not_document: 2942500,
    unknown: 2942501,
    names: &[("input", Some(2942502)), ("sortBy", Some(2942503))],
};

/// What elements are sorted by.
#[derive(Clone, Debug)]
pub(crate) enum Order {
    /// The elements themselves; true: descending.
    Whole(bool),
    /// Paths into them, and whether each is descending.
    Fields(Vec<(Path, bool)>),
}

/// Arguments: the input. The order is prepared.
pub(crate) fn parse_sort_array(
    operator: &'static Operator,
    operand: ValueRef<'_>,
    scope: &Scope,
) -> Result<Expression, Error> {
    let values = SORT_ARRAY.values(operator.name, operand)?;
    let (Some(Some(input)), Some(Some(order))) = (values.first(), values.get(1)) else {
        return Err(Error::new(
            2942502,
            "$sortArray requires 'input' and 'sortBy'",
        ));
    };
    let mut call = Call::new(operator, vec![Expression::parse(*input, scope)?]);
    call.prepared = Prepared::Order(Order::parse(*order)?);
    finish(call)
}

fn direction(value: ValueRef<'_>) -> Result<bool, Error> {
    match value.as_whole() {
        Some(1) => Ok(false),
        Some(-1) => Ok(true),
        _ if value.is_number() => Err(Error::new(
            15975,
            "$sort key ordering must be 1 (for ascending) or -1 (for descending)",
        )),
        _ => Err(Error::new(
            15974,
            format!("Illegal key in $sort specification: {value}"),
        )),
    }
}

impl Order {
    fn parse(value: ValueRef<'_>) -> Result<Order, Error> {
        let ValueRef::Document(fields) = value else {
            return match value.as_whole() {
                Some(1) => Ok(Order::Whole(false)),
                Some(-1) => Ok(Order::Whole(true)),
                _ => Err(Error::new(
                    2942507,
                    "The $sort element value must be either 1 or -1",
                )),
            };
        };
        if fields.is_empty() {
            return Err(Error::new(
                15976,
                "$sort stage must have at least one sort key",
            ));
        }
        let mut keys = Vec::new();
        for (name, value) in fields {
            split(name)?;
            keys.push((Path::parse(name), direction(value)?));
        }
        Ok(Order::Fields(keys))
    }

    fn compare(&self, one: ValueRef<'_>, other: ValueRef<'_>) -> Ordering {
        let directed =
            |order: Ordering, descending| if descending { order.reverse() } else { order };
        match self {
            Order::Whole(descending) => directed(one.compare(other), *descending),
            Order::Fields(keys) => keys
                .iter()
                .map(|(path, descending)| {
                    let keys = (key(path, *descending, one), key(path, *descending, other));
                    directed(keys.0.compare(keys.1), *descending)
                })
                .find(|order| order.is_ne())
                .unwrap_or(Ordering::Equal),
        }
    }
}

/// What an element is sorted by: of several values, as arrays on the path give, the least ascending
/// and the greatest descending; null where there is none.
fn key<'v>(path: &Path, descending: bool, element: ValueRef<'v>) -> ValueRef<'v> {
    let mut found = Vec::new();
    leaves(element, path.components(), &mut found);
    let wanted = if descending {
        Ordering::Greater
    } else {
        Ordering::Less
    };
    let best = found.into_iter().reduce(|best, value| {
        if value.compare(best) == wanted {
            value
        } else {
            best
        }
    });
    best.unwrap_or(ValueRef::Null)
}

fn leaves<'v>(value: ValueRef<'v>, path: &[Component], found: &mut Vec<ValueRef<'v>>) {
    match (value, path.split_first()) {
        (ValueRef::Array(array), None) if array.is_empty() => found.push(ValueRef::Undefined),
        (ValueRef::Array(array), None) => found.extend(array),
        (value, None) => found.push(value),
        (ValueRef::Document(document), Some((component, rest))) => {
            match document.get(component.name()) {
                Some(value) => leaves(value, rest, found),
                None => found.push(ValueRef::Null),
            }
        }
        (ValueRef::Array(array), Some(_)) => {
            array
                .iter()
                .for_each(|element| leaves(element, path, found));
        }
        _ => found.push(ValueRef::Null),
    }
}

pub(crate) fn sort_array<'a>(call: &'a Call, context: &Context<'a>) -> Answer<'a> {
    let value = call.value(0, context)?;
    if value.is_nullish() {
        return Ok(Computed::NULL);
    }
    let input = array(&value, 2942504, "The input argument to $sortArray")?;
    let mut elements: Vec<ValueRef<'_>> = input.iter().collect();
    if let Prepared::Order(order) = &call.prepared {
        elements.sort_by(|one, other| order.compare(*one, *other));
    }
    Ok(elements.into_iter().collect::<ArrayBuf>().into())
}

pub(crate) static N: Named = Named {
    not_document: 5787801,
    unknown: 5787901,
    names: &[("n", Some(5787906)), ("input", Some(5787907))],
};

/// The number of values that an operator with `n` keeps: whole and positive.
pub(crate) fn parse_count(name: &str, value: &Computed<'_>) -> Result<usize, Error> {
    let Some(number) = value.as_ref().filter(|value| value.is_number()) else {
        let message = format!(
            "Value for 'n' must be of integral type, but found {}",
            value.type_name()
        );
        return Err(Error::new(5787902, message));
    };
    let Some(whole) = number.as_whole() else {
        return Err(Error::new(
            5787903,
            format!("Value for 'n' must be of integral type, but found {number}"),
        ));
    };
    match usize::try_from(whole) {
        Ok(count) if count > 0 => Ok(count),
        _ => Err(Error::new(
            5787908,
            format!("'n' of {name} must be greater than 0, found {whole}"),
        )),
    }
}

type Pick = for<'v> fn(Array<'v>, usize) -> Vec<ValueRef<'v>>;

fn pick<'a>(call: &'a Call, context: &Context<'a>, pick: Pick) -> Answer<'a> {
    let count = parse_count(call.operator.name, &call.value(0, context)?)?;
    let value = call.value(1, context)?;
    let input = array(&value, 5788200, "Input")?;
    Ok(Computed::Owned(Value::Array(
        pick(input, count).into_iter().collect(),
    )))
}

pub(crate) fn first_n<'a>(call: &'a Call, context: &Context<'a>) -> Answer<'a> {
    pick(call, context, |array, count| {
        array.iter().take(count).collect()
    })
}

pub(crate) fn last_n<'a>(call: &'a Call, context: &Context<'a>) -> Answer<'a> {
    pick(call, context, |array, count| {
        array
            .iter()
            .skip(array.count().saturating_sub(count))
            .collect()
    })
}

fn sorted(array: Array<'_>) -> Vec<ValueRef<'_>> {
    let mut values: Vec<ValueRef<'_>> = array.iter().filter(|value| !value.is_nullish()).collect();
    values.sort_by(|one, other| one.compare(*other));
    values
}

pub(crate) fn min_n<'a>(call: &'a Call, context: &Context<'a>) -> Answer<'a> {
    pick(call, context, |array, count| {
        sorted(array).into_iter().take(count).collect()
    })
}

pub(crate) fn max_n<'a>(call: &'a Call, context: &Context<'a>) -> Answer<'a> {
    pick(call, context, |array, count| {
        sorted(array).into_iter().rev().take(count).collect()
    })
}
