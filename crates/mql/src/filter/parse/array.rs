//! `$all`, `$elemMatch`, `$size`.

use windrow_document::path::Path;
use windrow_document::{Array, Document, ValueRef};
use windrow_geo::Near;

use super::{
    ConditionContext, FIELD_OPERATORS, FieldOperator, TOP_LEVEL_OPERATORS, compare, conditions,
    find,
};
use super::{is_operators_in_element, operators};
use crate::Error;
use crate::filter::node::Node;
use crate::filter::regex::Regex;

/// Parses `$all`: the conjunction of equalities or of `$elemMatch`es. An empty list never matches.
pub(super) fn all(operator: &FieldOperator<'_>) -> Result<Node, Error> {
    let list = operator
        .operand
        .as_array()
        .ok_or_else(|| Error::bad_value("$all needs an array"))?;
    if list.is_empty() {
        return Ok(Node::AlwaysFalse);
    }
    let nodes = match list.get(0).and_then(elem_match_operand) {
        Some(_) => all_elem_match(operator, list),
        None => list
            .iter()
            .map(|value| all_member(operator.path, value))
            .collect(),
    };
    nodes.map(Node::and)
}

fn all_member(path: &Path, value: ValueRef<'_>) -> Result<Node, Error> {
    match value {
        ValueRef::Regex { pattern, options } => Ok(Node::Regex {
            path: path.clone(),
            regex: Regex::new(pattern, options)?,
        }),
        ValueRef::Document(inner) if begins_with_operator(inner) => {
            Err(Error::bad_value("no $ expressions in $all"))
        }
        other => compare::equal(path, other),
    }
}

/// Returns `true` if the first name is a known operator. Otherwise the document is a value, even if
/// the name starts with `$`.
fn begins_with_operator(document: Document<'_>) -> bool {
    let is_one = |name: &str| find(FIELD_OPERATORS, name).is_some() || Near::is_operator(name);
    document.first().is_some_and(|(name, _)| is_one(name))
}

fn all_elem_match(operator: &FieldOperator<'_>, list: Array<'_>) -> Result<Vec<Node>, Error> {
    let parse = |value| match elem_match_operand(value) {
        Some(operand) => elem_match_node(operator, operand),
        None => Err(Error::bad_value("$all/$elemMatch has to be consistent")),
    };
    list.iter().map(parse).collect()
}

/// Returns the operand of `{$elemMatch: operand}`.
fn elem_match_operand(value: ValueRef<'_>) -> Option<ValueRef<'_>> {
    let (name, operand) = value.as_document()?.first()?;
    (name == "$elemMatch").then_some(operand)
}

pub(super) fn elem_match(operator: &FieldOperator<'_>) -> Result<Node, Error> {
    elem_match_node(operator, operator.operand)
}

/// The operand has conditions on the element itself if it starts with a field operator, otherwise
/// on the fields of an element that is a document.
fn elem_match_node(operator: &FieldOperator<'_>, operand: ValueRef<'_>) -> Result<Node, Error> {
    let inner = operand
        .as_document()
        .ok_or_else(|| Error::bad_value("$elemMatch needs an Object"))?;
    let path = operator.path.clone();
    if !is_of_element(inner) {
        let context = ConditionContext {
            is_in_element: true,
            environment: operator.environment,
        };
        let condition = Box::new(conditions(inner, context)?);
        return Ok(Node::ElemMatchObject { path, condition });
    }
    let conditions = match operators(&Path::parse(""), inner, operator.environment)? {
        Node::And(children) => children,
        Node::AlwaysTrue => Vec::new(),
        other => vec![other],
    };
    Ok(Node::ElemMatchValue { path, conditions })
}

fn is_of_element(inner: Document<'_>) -> bool {
    let of_document = inner
        .first()
        .is_some_and(|(name, _)| find(TOP_LEVEL_OPERATORS, name).is_some());
    is_operators_in_element(inner) && !of_document
}

pub(super) fn size(operator: &FieldOperator<'_>) -> Result<Node, Error> {
    let size = operator
        .operand
        .as_whole()
        .filter(|size| i32::try_from(*size).is_ok());
    let size = size.filter(|size| *size >= 0).ok_or_else(|| {
        Error::bad_value(format!(
            "Failed to parse $size. Expected a non-negative integer in: $size: {}",
            operator.operand
        ))
    })?;
    Ok(Node::Size {
        path: operator.path.clone(),
        size,
    })
}
