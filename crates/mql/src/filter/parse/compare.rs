//! `$eq`, `$ne`, `$gt`, `$gte`, `$lt`, `$lte`, `$in`, `$nin`.

use windrow_document::ValueRef;
use windrow_document::path::Path;

use super::{Operator, is_operators};
use crate::Error;
use crate::filter::compare::Comparison;
use crate::filter::node::Node;
use crate::filter::regex::Regex;
use crate::interrupt::count_work;

pub(super) fn equal(path: &Path, operand: ValueRef<'_>) -> Result<Node, Error> {
    node(path, Comparison::Eq, operand)
}

pub(super) fn not_equal(one: &Operator<'_>) -> Result<Node, Error> {
    refuse_regex(one)?;
    equal(one.path, one.operand).map(Node::not)
}

pub(super) fn compare(one: &Operator<'_>, operator: Comparison) -> Result<Node, Error> {
    refuse_regex(one)?;
    node(one.path, operator, one.operand)
}

fn node(path: &Path, operator: Comparison, operand: ValueRef<'_>) -> Result<Node, Error> {
    if operand == ValueRef::Undefined {
        return Err(Error::bad_value("cannot compare to undefined"));
    }
    Ok(Node::Compare {
        path: path.clone(),
        operator,
        value: operand.to_value(),
    })
}

fn refuse_regex(one: &Operator<'_>) -> Result<(), Error> {
    match one.operand {
        ValueRef::Regex { .. } => Err(Error::bad_value(format!(
            "Can't have regex as arg to {}.",
            one.name
        ))),
        _ => Ok(()),
    }
}

/// Parses `$in`. One value is an equality. An empty list never matches.
pub(super) fn is_in(one: &Operator<'_>) -> Result<Node, Error> {
    let list = one
        .operand
        .as_array()
        .ok_or_else(|| Error::bad_value(format!("{} needs an array", one.name)))?;
    let (mut values, mut regexes) = (Vec::new(), Vec::new());
    for value in list {
        count_work(2)?;
        match value {
            ValueRef::Regex { pattern, options } => regexes.push(Regex::new(pattern, options)?),
            ValueRef::Document(inner) if is_operators(inner) => {
                return Err(Error::bad_value(format!(
                    "cannot nest $ under {}",
                    one.name
                )));
            }
            ValueRef::Undefined => return Err(Error::bad_value("cannot compare to undefined")),
            other => values.push(other.to_value()),
        }
    }
    Node::any_of(one.path.clone(), values, regexes)
}
