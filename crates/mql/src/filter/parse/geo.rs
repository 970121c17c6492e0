//! `$geoWithin`, `$geoIntersects`, `$within`, `$near`, `$nearSphere`.

use std::sync::Arc;

use windrow_document::Document;
use windrow_document::path::Path;
use windrow_geo::{Condition, Near};

use super::FieldOperator;
use crate::filter::node::Node;
use crate::{Error, interrupt};

pub(super) fn condition(operator: &FieldOperator<'_>) -> Result<Node, Error> {
    let condition = Condition::parse_with(operator.name, operator.operand, &interrupt::count)?;
    Ok(Node::Geo {
        path: operator.path.clone(),
        condition: Arc::new(condition),
    })
}

/// Returns `true` for a document with a `$near` operator, whose distance options are fields next to
/// it.
pub(super) fn is_near(operators: Document<'_>) -> bool {
    operators
        .first()
        .is_some_and(|(name, _)| Near::is_operator(name))
}

pub(super) fn near(path: &Path, operators: Document<'_>) -> Result<Node, Error> {
    Ok(Node::Near {
        path: path.clone(),
        near: Arc::new(Near::parse(operators)?),
    })
}

/// Fails with 2 if a `$near` is not at the top level, or next to another `$near` or a `$text`.
pub(in crate::filter) fn check_near(root: &Node) -> Result<(), Error> {
    let refused = |message: &str| Err(Error::bad_value(message));
    match root.near_count() {
        0 => Ok(()),
        1 if root.near().is_none() => refused("geoNear must be top-level expr"),
        1 if root.text().is_some() => refused("text and geoNear not allowed in same query"),
        1 => Ok(()),
        _ => refused("Too many geoNear expressions"),
    }
}
