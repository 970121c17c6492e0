//! `$exists`, `$type`, `$mod`, `$regex`, `$options`, `$bits…`.

use windrow_document::ValueRef;

use super::Operator;
use crate::Error;
use crate::filter::bits::{BitTest, Bits};
use crate::filter::node::Node;
use crate::filter::regex::Regex;
use crate::filter::type_set::TypeSet;

pub(super) fn exists(one: &Operator<'_>) -> Result<Node, Error> {
    let node = Node::Exists {
        path: one.path.clone(),
    };
    Ok(if one.operand.is_truthy() {
        node
    } else {
        Node::not(node)
    })
}

pub(super) fn bits(one: &Operator<'_>, test: BitTest) -> Result<Node, Error> {
    Ok(Node::Bits {
        path: one.path.clone(),
        bits: Bits::parse(test, one.operand)?,
    })
}

pub(super) fn type_of(one: &Operator<'_>) -> Result<Node, Error> {
    let types = TypeSet::parse(one.operand)?;
    if types.is_empty() {
        let message = format!("{} must match at least one type", one.path);
        return Err(Error::failed_to_parse(message));
    }
    Ok(Node::Type {
        path: one.path.clone(),
        types,
    })
}

pub(super) fn modulo(one: &Operator<'_>) -> Result<Node, Error> {
    let list = one
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
        path: one.path.clone(),
        divisor,
        remainder,
    })
}

fn whole_part(name: &str, operand: ValueRef<'_>) -> Result<i64, Error> {
    let whole = match operand {
        ValueRef::Double(number) => ValueRef::Double(number.trunc()).as_whole(),
        ValueRef::Decimal128(number) => number.to_i64_truncated().map(|(whole, _)| whole),
        other if other.is_number() => other.as_whole(),
        _ => {
            return Err(Error::bad_value(format!(
                "malformed mod, {name} not a number"
            )));
        }
    };
    whole.ok_or_else(|| {
        Error::bad_value(format!(
            "malformed mod, {name} value is invalid :: caused by :: Unable to coerce \
             NaN/Inf to integral type, or out of range: {operand}"
        ))
    })
}

pub(super) fn regex(one: &Operator<'_>) -> Result<Node, Error> {
    let options = match one.siblings.get("$options") {
        None => None,
        Some(ValueRef::String(options)) => Some(options),
        Some(_) => return Err(Error::bad_value("$options has to be a string")),
    };
    let (pattern, own) = match one.operand {
        ValueRef::String(pattern) => (pattern, ""),
        ValueRef::Regex { pattern, options } => (pattern, options),
        _ => return Err(Error::bad_value("$regex has to be a string")),
    };
    if options.is_some() && !own.is_empty() {
        // The error number depends on which of the two comes second.
        let names = || one.siblings.iter().map(|(name, _)| name);
        let code = match names().position(|name| name == "$options")
            < names().position(|name| name == "$regex")
        {
            true => 51074,
            false => 51075,
        };
        return Err(Error::new(code, "options set in both $regex and $options"));
    }
    let regex = Regex::new(pattern, options.unwrap_or(own))?;
    Ok(Node::Regex {
        path: one.path.clone(),
        regex,
    })
}

/// `$options` is read by [`regex`]. Alone it is refused.
pub(super) fn options(one: &Operator<'_>) -> Result<Node, Error> {
    if one.siblings.contains("$regex") {
        Ok(Node::AlwaysTrue)
    } else {
        Err(Error::bad_value("$options needs a $regex"))
    }
}
