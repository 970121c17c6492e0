//! The sort order of `$sortArray`.

use std::cmp::Ordering;

use windrow_document::path::Path;
use windrow_document::{Collation, ValueRef, collation};

use super::field_path::split;
use crate::Error;
use crate::sort::direction::SortDirection;

/// The keys by which elements are sorted.
#[derive(Clone, Debug)]
pub(crate) enum ArraySortOrder {
    /// The elements themselves.
    Whole(SortDirection),
    /// Paths within the elements.
    Fields(Vec<(Path, SortDirection)>),
}

impl ArraySortOrder {
    pub fn parse(value: ValueRef<'_>) -> Result<ArraySortOrder, Error> {
        let ValueRef::Document(fields) = value else {
            return match SortDirection::from_value(value) {
                Some(direction) => Ok(ArraySortOrder::Whole(direction)),
                None if value.is_number() => Err(Error::new(
                    2942506,
                    "$sort key ordering must be 1 (for ascending) or -1 (for descending)",
                )),
                None => Err(Error::new(
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
            keys.push((Path::parse(name), parse_direction(value)?));
        }
        Ok(ArraySortOrder::Fields(keys))
    }

    pub fn compare(
        &self,
        one: ValueRef<'_>,
        other: ValueRef<'_>,
        collation: Option<&Collation>,
    ) -> Ordering {
        match self {
            ArraySortOrder::Whole(direction) => {
                direction.apply(collation::compare(collation, one, other))
            }
            ArraySortOrder::Fields(keys) => keys
                .iter()
                .map(|(path, direction)| {
                    let key = |element| key(path, element);
                    direction.apply(collation::compare(collation, key(one), key(other)))
                })
                .find(|order| order.is_ne())
                .unwrap_or(Ordering::Equal),
        }
    }
}

fn parse_direction(value: ValueRef<'_>) -> Result<SortDirection, Error> {
    SortDirection::from_value(value).ok_or_else(|| {
        Error::new(
            2942505,
            format!("$sortArray orders by 1 (ascending) or -1 (descending), not {value}"),
        )
    })
}

/// Returns the sort key of an element: the value at the path through documents only. An array is a
/// key as a whole. A missing value is null.
fn key<'v>(path: &Path, element: ValueRef<'v>) -> ValueRef<'v> {
    let mut components = path.components().iter();
    let found = components.try_fold(element, |value, component| {
        value.as_document()?.get(component.name())
    });
    found.unwrap_or(ValueRef::Null)
}
