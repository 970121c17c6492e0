//! `$exists`, `$type`, `$mod`, `$regex`, `$options`, `$bits…`.

use windrow_document::ValueRef;

use super::FieldOperator;
use crate::Error;
use crate::filter::bits::{BitTest, Bits};
use crate::filter::node::Node;
use crate::filter::regex::Regex;
use crate::filter::type_set::TypeSet;

pub(super) fn exists(operator: &FieldOperator<'_>) -> Result<Node, Error> {
    let node = Node::Exists {
        path: operator.path.clone(),
    };
    Ok(if operator.operand.is_truthy() {
        node
    } else {
        Node::not(node)
    })
}

pub(super) fn bits(operator: &FieldOperator<'_>, test: BitTest) -> Result<Node, Error> {
    Ok(Node::Bits {
        path: operator.path.clone(),
        bits: Bits::parse(test, operator.operand)?,
    })
}

pub(super) fn type_of(operator: &FieldOperator<'_>) -> Result<Node, Error> {
    let types = TypeSet::parse(operator.operand)?;
    if types.is_empty() {
        let message = format!("{} must match at least one type", operator.path);
        return Err(Error::failed_to_parse(message));
    }
    Ok(Node::Type {
        path: operator.path.clone(),
        types,
    })
}

pub(super) fn modulo(operator: &FieldOperator<'_>) -> Result<Node, Error> {
    let list = operator
        .operand
        .as_array()
        .ok_or_else(|| Error::bad_value("malformed mod, needs to be an array"))?;
    let (Some(divisor), Some(remainder)) = (list.get(0), list.get(1)) else {
        return Err(Error::bad_value("malformed mod, not enough elements"));
    };
    if list.count() > 2 {
        return Err(Error::bad_value("malformed mod, too many elements"));
    }
    let divisor = whole_part("divisor", divisor)?;
    if divisor == 0 {
        return Err(Error::bad_value("divisor cannot be 0"));
    }
    let remainder = whole_part("remainder", remainder)?;
    Ok(Node::Mod {
        path: operator.path.clone(),
        divisor,
        remainder,
    })
}

fn whole_part(name: &str, operand: ValueRef<'_>) -> Result<i64, Error> {
    let top_level = match operand {
        ValueRef::Double(number) => ValueRef::Double(number.trunc()).as_whole(),
        ValueRef::Decimal128(number) => number.to_i64_truncated().map(|(top_level, _)| top_level),
        other if other.is_number() => other.as_whole(),
        _ => {
            return Err(Error::bad_value(format!(
                "malformed mod, {name} not a number"
            )));
        }
    };
    top_level.ok_or_else(|| {
        Error::bad_value(format!(
            "malformed mod, {name} value is invalid :: caused by :: Unable to coerce \
             NaN/Inf to integral type, or out of range: {operand}"
        ))
    })
}

pub(super) fn regex(operator: &FieldOperator<'_>) -> Result<Node, Error> {
    let options = match operator.siblings.get("$options") {
        None => None,
        Some(ValueRef::String(options)) => Some(options),
        Some(_) => return Err(Error::bad_value("$options has to be a string")),
    };
    let (pattern, own) = match operator.operand {
        ValueRef::String(pattern) => (pattern, ""),
        ValueRef::Regex { pattern, options } => (pattern, options),
        _ => return Err(Error::bad_value("$regex has to be a string")),
    };
    if options.is_some() && !own.is_empty() {
        // The error number depends on which of the two comes second.
        let names = || operator.siblings.iter().map(|(name, _)| name);
        let code = if names().position(|name| name == "$options")
            < names().position(|name| name == "$regex")
        {
            51074
        } else {
            51075
        };
        return Err(Error::new(code, "options set in both $regex and $options"));
    }
    let regex = Regex::new(pattern, options.unwrap_or(own))?;
    Ok(Node::Regex {
        path: operator.path.clone(),
        regex,
    })
}

/// `$options` is read by [`regex`]. Alone it is refused.
pub(super) fn options(operator: &FieldOperator<'_>) -> Result<Node, Error> {
    if operator.siblings.contains("$regex") {
        Ok(Node::AlwaysTrue)
    } else {
        Err(Error::bad_value("$options needs a $regex"))
    }
}
