//! `$and`, `$or`, `$nor`, `$not`.

use windrow_document::ValueRef;

use super::{ConditionContext, FieldOperator, conditions, operators};
use crate::Error;
use crate::filter::node::Node;
use crate::filter::regex::Regex;

/// Returns the conditions in the operand of `$and`, `$or` or `$nor`.
pub(super) fn list(
    name: &str,
    operand: ValueRef<'_>,
    context: ConditionContext<'_>,
) -> Result<Vec<Node>, Error> {
    let list = operand
        .as_array()
        .ok_or_else(|| Error::bad_value(format!("{name} argument must be an array")))?;
    if list.is_empty() {
        return Err(Error::bad_value(format!("{name} array must not be empty")));
    }
    let parse = |value: ValueRef<'_>| match value {
        ValueRef::Document(inner) => conditions(inner, context),
        _ => Err(Error::bad_value(format!(
            "{name} argument's entries must be objects"
        ))),
    };
    list.iter().map(parse).collect()
}

pub(super) fn not(operator: &FieldOperator<'_>) -> Result<Node, Error> {
    match operator.operand {
        ValueRef::Regex { pattern, options } => {
            let regex = Regex::new(pattern, options)?;
            Ok(Node::not(Node::Regex {
                path: operator.path.clone(),
                regex,
            }))
        }
        ValueRef::Document(inner) if inner.is_empty() => {
            Err(Error::bad_value("$not cannot be empty"))
        }
        ValueRef::Document(inner) => {
            operators(operator.path, inner, operator.environment).map(Node::not)
        }
        _ => Err(Error::bad_value("$not needs a regex or a document")),
    }
}
