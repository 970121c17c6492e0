//! Parses query documents into trees. This file has the tables of operators.
//!
//! A name that starts with `$` at the top of a document is a condition on the whole document
//! ([`TOP_LEVEL_OPERATORS`]). Any other name is a path. Its value is an operand, or a document of
//! operators ([`FIELD_OPERATORS`]).

mod array;
mod compare;
mod element;
mod geo;
mod logical;
mod top_level;

pub(super) use geo::check_near;

use windrow_document::path::Path;
use windrow_document::{Document, ValueRef};

use super::bits::BitTest;
use super::compare::Comparison;
use super::expr::Environment;
use super::node::Node;
use super::regex::Regex;
use crate::Error;

/// The context of a condition on a whole document.
#[derive(Clone, Copy)]
pub(super) struct ConditionContext<'e> {
    /// `true` within `$elemMatch`, where `$text` and `$expr` are refused.
    is_in_element: bool,
    environment: &'e Environment,
}

/// An operator of a field, its operand, and the document that contains it.
pub(super) struct FieldOperator<'a> {
    path: &'a Path,
    name: &'a str,
    environment: &'a Environment,
    operand: ValueRef<'a>,
    siblings: Document<'a>,
}

type FieldParser = fn(&FieldOperator<'_>) -> Result<Node, Error>;
type TopLevelParser = fn(ValueRef<'_>, ConditionContext<'_>) -> Result<Node, Error>;

/// The operators of a field, sorted by name for binary search.
const FIELD_OPERATORS: &[(&str, FieldParser)] = &[
    ("$all", array::all),
    ("$bitsAllClear", |operator| {
        element::bits(operator, BitTest::AllClear)
    }),
    ("$bitsAllSet", |operator| {
        element::bits(operator, BitTest::AllSet)
    }),
    ("$bitsAnyClear", |operator| {
        element::bits(operator, BitTest::AnyClear)
    }),
    ("$bitsAnySet", |operator| {
        element::bits(operator, BitTest::AnySet)
    }),
    ("$elemMatch", array::elem_match),
    ("$eq", |operator| {
        compare::equal(operator.path, operator.operand)
    }),
    ("$exists", element::exists),
    ("$geoIntersects", geo::condition),
    ("$geoWithin", geo::condition),
    ("$gt", |operator| compare::compare(operator, Comparison::Gt)),
    ("$gte", |operator| {
        compare::compare(operator, Comparison::Gte)
    }),
    ("$in", compare::is_in),
    ("$lt", |operator| compare::compare(operator, Comparison::Lt)),
    ("$lte", |operator| {
        compare::compare(operator, Comparison::Lte)
    }),
    ("$mod", element::modulo),
    ("$ne", compare::not_equal),
    ("$nin", |operator| compare::is_in(operator).map(Node::not)),
    ("$not", logical::not),
    ("$options", element::options),
    ("$regex", element::regex),
    ("$size", array::size),
    ("$type", element::type_of),
    ("$within", geo::condition),
];

/// The operators of a whole document, sorted by name for binary search.
const TOP_LEVEL_OPERATORS: &[(&str, TopLevelParser)] = &[
    ("$alwaysFalse", |operand, _| {
        top_level::always("$alwaysFalse", operand, Node::AlwaysFalse)
    }),
    ("$alwaysTrue", |operand, _| {
        top_level::always("$alwaysTrue", operand, Node::AlwaysTrue)
    }),
    ("$and", |operand, context| {
        logical::list("$and", operand, context).map(Node::and)
    }),
    ("$comment", |_, _| Ok(Node::AlwaysTrue)),
    ("$expr", top_level::expr),
    ("$jsonSchema", top_level::json_schema),
    ("$nor", |operand, context| {
        logical::list("$nor", operand, context).map(Node::Nor)
    }),
    ("$or", |operand, context| {
        logical::list("$or", operand, context).and_then(Node::or)
    }),
    ("$sampleRate", top_level::sample_rate),
    ("$text", top_level::text),
    ("$where", top_level::unavailable_where),
];

/// The field names of a database reference, which are not operators.
const REFERENCE: [&str; 3] = ["$db", "$id", "$ref"];

fn find<P: Copy>(table: &[(&str, P)], name: &str) -> Option<P> {
    let index = table
        .binary_search_by(|(known, _)| (*known).cmp(name))
        .ok()?;
    table.get(index).map(|(_, parser)| *parser)
}

/// Parses a whole query.
pub(super) fn document(document: Document<'_>, environment: &Environment) -> Result<Node, Error> {
    let root = conditions(
        document,
        ConditionContext {
            is_in_element: false,
            environment,
        },
    )?;
    if root.text_count() > 1 {
        return Err(Error::bad_value("Too many text expressions"));
    }
    check_near(&root)?;
    Ok(root)
}

/// Parses a document of conditions.
pub(super) fn conditions(
    document: Document<'_>,
    context: ConditionContext<'_>,
) -> Result<Node, Error> {
    let nodes = document
        .iter()
        .map(|(name, value)| condition(name, value, context));
    nodes.collect::<Result<Vec<Node>, Error>>().map(Node::and)
}

fn condition(
    name: &str,
    value: ValueRef<'_>,
    context: ConditionContext<'_>,
) -> Result<Node, Error> {
    if !name.starts_with('$') {
        return field(name, value, context.environment);
    }
    if REFERENCE.contains(&name) {
        return compare::equal(&Path::parse(name), value);
    }
    match find(TOP_LEVEL_OPERATORS, name) {
        Some(parser) => parser(value, context),
        None => Err(Error::bad_value(format!(
            "unknown top level operator: {name}. If you have a field name that starts with a '$' \
             symbol, consider using $getField or $setField."
        ))),
    }
}

fn field(name: &str, value: ValueRef<'_>, environment: &Environment) -> Result<Node, Error> {
    let path = Path::parse(name);
    match value {
        ValueRef::Document(inner) if is_operators(inner) => operators(&path, inner, environment),
        ValueRef::Regex { pattern, options } => Ok(Node::Regex {
            path,
            regex: Regex::new(pattern, options)?,
        }),
        other => compare::equal(&path, other),
    }
}

/// Parses a document of operators on one path.
pub(super) fn operators(
    path: &Path,
    document: Document<'_>,
    environment: &Environment,
) -> Result<Node, Error> {
    if geo::is_near(document) {
        return geo::near(path, document);
    }
    let nodes = document.iter().map(|(name, operand)| {
        let parser = find(FIELD_OPERATORS, name)
            .ok_or_else(|| Error::bad_value(format!("unknown operator: {name}")))?;
        parser(&FieldOperator {
            path,
            name,
            environment,
            operand,
            siblings: document,
        })
    });
    nodes.collect::<Result<Vec<Node>, Error>>().map(Node::and)
}

/// Returns `true` if a document contains operators instead of being a value to compare with: its
/// first name starts with `$` and it is not a database reference.
fn is_operators(document: Document<'_>) -> bool {
    let dollar = document
        .first()
        .is_some_and(|(name, _)| name.starts_with('$'));
    dollar && !(document.contains("$ref") && document.contains("$id") && is_reference(document))
}

/// Returns `true` if those fields of a database reference that the document has are valid.
fn is_reference(document: Document<'_>) -> bool {
    let is_text = |name| {
        document
            .get(name)
            .is_none_or(|value| value.as_str().is_some())
    };
    is_text("$ref") && is_text("$db")
}

/// As [`is_operators`], but one field of a database reference suffices to make the document a
/// value.
fn is_operators_in_element(document: Document<'_>) -> bool {
    let reference = REFERENCE.iter().any(|name| document.contains(name));
    let dollar = document
        .first()
        .is_some_and(|(name, _)| name.starts_with('$'));
    dollar && !(reference && is_reference(document))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_sorted() {
        assert!(FIELD_OPERATORS.is_sorted_by_key(|(name, _)| *name));
        assert!(TOP_LEVEL_OPERATORS.is_sorted_by_key(|(name, _)| *name));
    }
}
