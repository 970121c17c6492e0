//! What `$sortArray` sorts by.

use std::cmp::Ordering;

use windrow_document::path::{Component, Path};
use windrow_document::{Collation, ValueRef, collation};

use super::field_path::split;
use crate::Error;

/// What elements are sorted by.
#[derive(Clone, Debug)]
pub(crate) enum Order {
    /// The elements themselves; true: descending.
    Whole(bool),
    /// Paths into them, and whether each is descending.
    Fields(Vec<(Path, bool)>),
}

impl Order {
    pub fn parse(value: ValueRef<'_>) -> Result<Order, Error> {
        let ValueRef::Document(fields) = value else {
            return match value.as_whole() {
                Some(1) => Ok(Order::Whole(false)),
                Some(-1) => Ok(Order::Whole(true)),
                _ if value.is_number() => Err(Error::new(
                    2942506,
                    "$sort key ordering must be 1 (for ascending) or -1 (for descending)",
                )),
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

    pub fn compare(
        &self,
        one: ValueRef<'_>,
        other: ValueRef<'_>,
        collation: Option<&Collation>,
    ) -> Ordering {
        let directed =
            |order: Ordering, descending| if descending { order.reverse() } else { order };
        match self {
            Order::Whole(descending) => {
                directed(collation::compare(collation, one, other), *descending)
            }
            Order::Fields(keys) => keys
                .iter()
                .map(|(path, descending)| {
                    let key = |element| key(path, *descending, element, collation);
                    directed(
                        collation::compare(collation, key(one), key(other)),
                        *descending,
                    )
                })
                .find(|order| order.is_ne())
                .unwrap_or(Ordering::Equal),
        }
    }
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

/// What an element is sorted by: of several values, as arrays on the path give, the least ascending
/// and the greatest descending; null where there is none.
fn key<'v>(
    path: &Path,
    descending: bool,
    element: ValueRef<'v>,
    collation: Option<&Collation>,
) -> ValueRef<'v> {
    let mut found = Vec::new();
    leaves(element, path.components(), &mut found);
    let wanted = if descending {
        Ordering::Greater
    } else {
        Ordering::Less
    };
    let best = found.into_iter().reduce(|best, value| {
        if collation::compare(collation, value, best) == wanted {
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
