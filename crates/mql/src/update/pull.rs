//! `$pull` and `$pullAll`: remove elements that match a condition or equal a value.

use std::sync::Arc;

use windrow_document::{ArrayBuf, Value, ValueRef, doc};

use super::distinct::Distinct;
use super::element_filter::{parse_on_element, parse_operators_on_element};
use super::modifier::{Change, Execution, FieldTarget, Modifier};
use crate::Error;
use crate::filter::Filter;

#[derive(Debug)]
struct Pull {
    operator: &'static str,
    condition: Condition,
}

#[derive(Debug)]
enum Condition {
    EqualsAny(Vec<Value>),
    /// A filter on elements that are documents.
    Document(Filter),
    /// Operators on the element itself.
    Element(Filter),
}

/// Operators that make a document a condition on the element itself. `$not` is not one of them:
/// MongoDB refuses it as at the top level of a query.
const ELEMENT_OPERATORS: &[&str] = &[
    "$all",
    "$bitsAllClear",
    "$bitsAllSet",
    "$bitsAnyClear",
    "$bitsAnySet",
    "$elemMatch",
    "$eq",
    "$exists",
    "$geoIntersects",
    "$geoNear",
    "$geoWithin",
    "$gt",
    "$gte",
    "$in",
    "$lt",
    "$lte",
    "$maxDistance",
    "$minDistance",
    "$mod",
    "$ne",
    "$near",
    "$nearSphere",
    "$nin",
    "$options",
    "$regex",
    "$size",
    "$type",
    "$within",
];

pub(super) fn parse_pull(_path: &str, operand: ValueRef<'_>) -> Result<Arc<dyn Modifier>, Error> {
    let condition = match operand {
        ValueRef::Document(document) => {
            let first = document.first().map_or("", |(name, _)| name);
            if ELEMENT_OPERATORS.binary_search(&first).is_ok() {
                Condition::Element(parse_operators_on_element(document)?)
            } else {
                Condition::Document(parse_on_element(document)?)
            }
        }
        ValueRef::Regex { .. } => {
            let operators = doc! { "$regex": (operand.to_value()) };
            Condition::Element(Filter::parse_operators(operators.as_document())?)
        }
        _ => Condition::EqualsAny(vec![operand.to_value()]),
    };
    Ok(Arc::new(Pull {
        operator: "$pull",
        condition,
    }))
}

pub(super) fn parse_pull_all(
    _path: &str,
    operand: ValueRef<'_>,
) -> Result<Arc<dyn Modifier>, Error> {
    let Some(values) = operand.as_array() else {
        return Err(Error::bad_value(format!(
            "$pullAll requires an array argument but was given a {}",
            operand.type_of().name()
        )));
    };
    let condition = Condition::EqualsAny(values.iter().map(ValueRef::to_value).collect());
    Ok(Arc::new(Pull {
        operator: "$pullAll",
        condition,
    }))
}

/// Returns `true` if an element is removed.
type ElementTest<'t> = Box<dyn Fn(ValueRef<'_>) -> Result<bool, Error> + 't>;

impl Condition {
    /// Returns the test for the elements of one array.
    fn test<'t>(&'t self, execution: &'t Execution<'t>) -> ElementTest<'t> {
        match self {
            Condition::EqualsAny(values) => {
                let values = Distinct::new(values, execution);
                Box::new(move |element| Ok(values.contains(element)))
            }
            Condition::Document(filter) => Box::new(|element| match element {
                ValueRef::Document(document) => {
                    filter.matches_with_collation(document, execution.collation)
                }
                _ => Ok(false),
            }),
            Condition::Element(filter) => Box::new(|element| {
                filter.matches_value_with_collation(element, execution.collation)
            }),
        }
    }
}

impl Modifier for Pull {
    fn change<'a>(
        &'a self,
        current: ValueRef<'a>,
        at: &FieldTarget<'a>,
    ) -> Result<Change<'a>, Error> {
        let Some(array) = current.as_array() else {
            return Err(Error::bad_value(format!(
                "Cannot apply {} to a non-array value",
                self.operator
            )));
        };
        let is_pulled = self.condition.test(at.execution);
        let mut elements = Vec::new();
        let mut pulled = false;
        for element in array {
            if is_pulled(element)? {
                pulled = true;
            } else {
                elements.push(element);
            }
        }
        Ok(if pulled {
            Change::owned(elements.into_iter().collect::<ArrayBuf>())
        } else {
            Change::Keep
        })
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_table_of_operators_is_sorted() {
        assert!(super::ELEMENT_OPERATORS.is_sorted());
    }
}
