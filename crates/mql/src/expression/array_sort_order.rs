//! The sort order of `$sortArray`.

use std::cmp::Ordering;

use windrow_document::path::Path;
use windrow_document::{Collation, ValueRef, collation};

use super::field_path::split;
use crate::Error;

/// The keys by which elements are sorted.
#[derive(Clone, Debug)]
pub(crate) enum ArraySortOrder {
    /// The elements themselves. `true` is descending.
    Whole(bool),
    /// Paths within the elements, and `true` for each that is descending.
    Fields(Vec<(Path, bool)>),
}

impl ArraySortOrder {
    pub fn parse(value: ValueRef<'_>) -> Result<ArraySortOrder, Error> {
        let ValueRef::Document(fields) = value else {
            return match value.as_whole() {
                Some(1) => Ok(ArraySortOrder::Whole(false)),
                Some(-1) => Ok(ArraySortOrder::Whole(true)),
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
            let message = "$sortArray must have at least one sort key";
            return Err(Error::new(2942505, message));
        }
        let mut keys = Vec::new();
        for (name, value) in fields {
            split(name)?;
            keys.push((Path::parse(name), direction(value)?));
        }
        Ok(ArraySortOrder::Fields(keys))
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
            ArraySortOrder::Whole(descending) => {
                directed(collation::compare(collation, one, other), *descending)
            }
            ArraySortOrder::Fields(keys) => keys
                .iter()
                .map(|(path, descending)| {
                    let key = |element| key(path, element);
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
        _ => Err(Error::new(
            2942505,
            format!("$sortArray orders by 1 (ascending) or -1 (descending), not {value}"),
        )),
    }
}

/// The sort key of an element: the value at the path through documents only. An array is a key as a
/// whole. A missing value is null.
fn key<'v>(path: &Path, element: ValueRef<'v>) -> ValueRef<'v> {
    let mut components = path.components().iter();
    let found = components.try_fold(element, |value, component| {
        value.as_document()?.get(component.name())
    });
    found.unwrap_or(ValueRef::Null)
}
