//! Parses query documents into trees. This file has the tables of operators.
//!
//! A name that starts with `$` at the top of a document is a condition on the whole document
//! ([`WHOLE`]). Any other name is a path. Its value is an operand, or a document of operators
//! ([`FIELD`]).

mod array;
mod compare;
mod element;
mod geo;
mod logical;
mod whole;

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
pub(super) struct Place<'e> {
    /// `true` within `$elemMatch`, where `$text` and `$expr` are refused.
    in_element: bool,
    environment: &'e Environment,
}

/// An operator of a field, its operand, and the document that contains it.
pub(super) struct Operator<'a> {
    path: &'a Path,
    name: &'a str,
    environment: &'a Environment,
    operand: ValueRef<'a>,
    siblings: Document<'a>,
}

type FieldParser = fn(&Operator<'_>) -> Result<Node, Error>;
type WholeParser = fn(ValueRef<'_>, Place<'_>) -> Result<Node, Error>;

/// The operators of a field, sorted by name for binary search.
const FIELD: &[(&str, FieldParser)] = &[
    ("$all", array::all),
    ("$bitsAllClear", |one| element::bits(one, BitTest::AllClear)),
    ("$bitsAllSet", |one| element::bits(one, BitTest::AllSet)),
    ("$bitsAnyClear", |one| element::bits(one, BitTest::AnyClear)),
    ("$bitsAnySet", |one| element::bits(one, BitTest::AnySet)),
    ("$elemMatch", array::elem_match),
    ("$eq", |one| compare::equal(one.path, one.operand)),
    ("$exists", element::exists),
    ("$geoIntersects", geo::condition),
    ("$geoWithin", geo::condition),
    ("$gt", |one| compare::compare(one, Comparison::Gt)),
    ("$gte", |one| compare::compare(one, Comparison::Gte)),
    ("$in", compare::is_in),
    ("$lt", |one| compare::compare(one, Comparison::Lt)),
    ("$lte", |one| compare::compare(one, Comparison::Lte)),
    ("$mod", element::modulo),
    ("$ne", compare::not_equal),
    ("$nin", |one| compare::is_in(one).map(Node::not)),
    ("$not", logical::not),
    ("$options", element::options),
    ("$regex", element::regex),
    ("$size", array::size),
    ("$type", element::type_of),
    ("$within", geo::condition),
];

/// The operators of a whole document, sorted by name for binary search.
const WHOLE: &[(&str, WholeParser)] = &[
    ("$alwaysFalse", |operand, _| {
        whole::always("$alwaysFalse", operand, Node::AlwaysFalse)
    }),
    ("$alwaysTrue", |operand, _| {
        whole::always("$alwaysTrue", operand, Node::AlwaysTrue)
    }),
    ("$and", |operand, place| {
        logical::list("$and", operand, place).map(Node::and)
    }),
    ("$comment", |_, _| Ok(Node::AlwaysTrue)),
    ("$expr", whole::expr),
    ("$jsonSchema", whole::json_schema),
    ("$nor", |operand, place| {
        logical::list("$nor", operand, place).map(Node::Nor)
    }),
    ("$or", |operand, place| {
        logical::list("$or", operand, place).and_then(Node::or)
    }),
    ("$sampleRate", whole::sample_rate),
    ("$text", whole::text),
    ("$where", whole::unavailable_where),
];

/// The field names of a database reference, which are not operators.
const REFERENCE: [&str; 3] = ["$db", "$id", "$ref"];

fn find<P: Copy>(table: &[(&str, P)], name: &str) -> Option<P> {
    let place = table.binary_search_by(|(one, _)| (*one).cmp(name)).ok()?;
    table.get(place).map(|(_, parser)| *parser)
}

/// Parses a whole query.
pub(super) fn document(document: Document<'_>, environment: &Environment) -> Result<Node, Error> {
    let root = conditions(
        document,
        Place {
            in_element: false,
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
pub(super) fn conditions(document: Document<'_>, place: Place<'_>) -> Result<Node, Error> {
    let nodes = document
        .iter()
        .map(|(name, value)| condition(name, value, place));
    nodes.collect::<Result<Vec<Node>, Error>>().map(Node::and)
}

fn condition(name: &str, value: ValueRef<'_>, place: Place<'_>) -> Result<Node, Error> {
    if !name.starts_with('$') {
        return field(name, value, place.environment);
    }
    if REFERENCE.contains(&name) {
        return compare::equal(&Path::parse(name), value);
    }
    match find(WHOLE, name) {
        Some(parser) => parser(value, place),
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
        let parser = find(FIELD, name)
            .ok_or_else(|| Error::bad_value(format!("unknown operator: {name}")))?;
        parser(&Operator {
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
        assert!(FIELD.is_sorted_by_key(|(name, _)| *name));
        assert!(WHOLE.is_sorted_by_key(|(name, _)| *name));
    }
}
