//! `$eq`, `$ne`, `$gt`, `$gte`, `$lt`, `$lte`, `$in`, `$nin`.

use windrow_document::ValueRef;
use windrow_document::path::Path;

use super::{FieldOperator, is_operators};
use crate::Error;
use crate::filter::compare::Comparison;
use crate::filter::node::Node;
use crate::filter::regex::Regex;
use crate::interrupt::count_work;

pub(super) fn equal(path: &Path, operand: ValueRef<'_>) -> Result<Node, Error> {
    node(path, Comparison::Eq, operand)
}

pub(super) fn not_equal(operator: &FieldOperator<'_>) -> Result<Node, Error> {
    refuse_regex(operator)?;
    equal(operator.path, operator.operand).map(Node::not)
}

pub(super) fn compare(operator: &FieldOperator<'_>, comparison: Comparison) -> Result<Node, Error> {
    refuse_regex(operator)?;
    node(operator.path, comparison, operator.operand)
}

fn node(path: &Path, comparison: Comparison, operand: ValueRef<'_>) -> Result<Node, Error> {
    if operand == ValueRef::Undefined {
        return Err(Error::bad_value("cannot compare to undefined"));
    }
    Ok(Node::Compare {
        path: path.clone(),
        operator: comparison,
        value: operand.to_value(),
    })
}

fn refuse_regex(operator: &FieldOperator<'_>) -> Result<(), Error> {
    match operator.operand {
        ValueRef::Regex { .. } => Err(Error::bad_value(format!(
            "Can't have regex as arg to {}.",
            operator.name
        ))),
        _ => Ok(()),
    }
}

/// Parses `$in`. One value is an equality. An empty list never matches.
pub(super) fn is_in(operator: &FieldOperator<'_>) -> Result<Node, Error> {
    let list = operator
        .operand
        .as_array()
        .ok_or_else(|| Error::bad_value(format!("{} needs an array", operator.name)))?;
    let (mut values, mut regexes) = (Vec::new(), Vec::new());
    for value in list {
        count_work(2)?;
        match value {
            ValueRef::Regex { pattern, options } => regexes.push(Regex::new(pattern, options)?),
            ValueRef::Document(inner) if is_operators(inner) => {
                return Err(Error::bad_value(format!(
                    "cannot nest $ under {}",
                    operator.name
                )));
            }
            ValueRef::Undefined => return Err(Error::bad_value("cannot compare to undefined")),
            other => values.push(other.to_value()),
        }
    }
    Node::any_of(operator.path.clone(), values, regexes)
}
