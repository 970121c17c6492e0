//! The filters that a partial index may have. The planner can decide for each of them whether a
//! query implies it.
//!
//! MongoDB's documentation names equality, comparisons, `$exists: true`, `$type`, `$in`, `$and`,
//! `$or`, `$geoWithin` and `$geoIntersects`
//! (<https://www.mongodb.com/docs/manual/core/index-partial/>).

use std::sync::Arc;

use windrow_document::{Collation, Document, ValueRef};
use windrow_mql::Error;
use windrow_mql::filter::{Environment, Filter, Node};

const CANNOT_CREATE: i32 = 67;
const FEATURE_NOT_ALLOWED: i32 = 224;

/// The maximum depth of a filter. Conditions count as one level, as does each list of `$and` and
/// `$or` around them. Several conditions at one level count as an implicit `$and`.
const DEPTH_MAX: usize = 4;

/// Parses the filter of a partial index. `collation` is the collation of the index.
///
/// Fails with the error of the filter's parser if `document` is not a filter, and with code 67, 224
/// or 2 if a partial index does not support one of its operators.
pub fn parse(document: Document<'_>, collation: Option<Arc<Collation>>) -> Result<Filter, Error> {
    let environment = Environment {
        collation,
        ..Environment::default()
    };
    let filter = Filter::parse_with(document, &environment)?;
    // The parser removes conditions that always hold. Only the empty document may have no
    // conditions.
    let is_empty = document.is_empty();
    match filter.root() {
        Node::AlwaysTrue if is_empty => {}
        root => check(root)?,
    }
    Ok(filter)
}

/// Fails with code 67 if a filter is deeper than the maximum for a new index.
pub(crate) fn check_depth(document: Document<'_>) -> Result<(), Error> {
    if depth(document) <= DEPTH_MAX {
        Ok(())
    } else {
        Err(cannot(format!(
            "partialFilterExpression depth may not exceed {DEPTH_MAX}"
        )))
    }
}

/// Returns the depth of a valid filter as it is written, before normalization.
fn depth(filter: Document<'_>) -> usize {
    let mut conditions = 0usize;
    let mut deepest = 0usize;
    for (name, value) in filter {
        let (count, levels) = match value {
            ValueRef::Array(list) if matches!(name, "$and" | "$or") => {
                let documents = list.iter().filter_map(ValueRef::as_document);
                (1, 1 + documents.map(depth).max().unwrap_or(0))
            }
            _ if name == "$comment" => (0, 0),
            ValueRef::Document(operators) if starts_with_operator(operators) => {
                (operators.count(), 1)
            }
            _ => (1, 1),
        };
        conditions += count;
        deepest = deepest.max(levels);
    }
    if conditions == 1 {
        deepest
    } else {
        deepest + 1
    }
}

fn starts_with_operator(document: Document<'_>) -> bool {
    document
        .first()
        .is_some_and(|(name, _)| name.starts_with('$'))
}

/// Fails if a partial index does not support an operator of the filter.
fn check(node: &Node) -> Result<(), Error> {
    let refused = |what: &str| {
        Err(cannot(format!(
            "Expression not supported in partial index: {what}"
        )))
    };
    match node {
        Node::And(all) | Node::Or(all) => all.iter().try_for_each(check),
        Node::In { regexes, .. } if !regexes.is_empty() => refused("a regular expression"),
        Node::Compare { .. }
        | Node::In { .. }
        | Node::Exists { .. }
        | Node::Type { .. }
        | Node::Geo { .. } => Ok(()),
        Node::Expr(_) => Err(not_allowed("$expr")),
        Node::Schema(_) => Err(not_allowed("$jsonSchema")),
        Node::AlwaysTrue | Node::AlwaysFalse => refused("$alwaysTrue, $alwaysFalse"),
        Node::Nor(_) => refused("$nor"),
        Node::Not(_) => refused("$not, $ne, $nin, $exists: false"),
        Node::Regex { .. } => refused("$regex"),
        Node::ElemMatchObject { .. } | Node::ElemMatchValue { .. } => refused("$elemMatch"),
        Node::Size { .. } => refused("$size"),
        Node::Mod { .. } => refused("$mod"),
        Node::Bits { .. } => refused("$bitsAllSet and the like"),
        Node::Near { .. } => refused("$near, $nearSphere"),
        Node::Text(_) => Err(Error::bad_value(
            "$text is not allowed in the filter of a partial index",
        )),
    }
}

fn cannot(message: String) -> Error {
    Error::new(CANNOT_CREATE, message)
}

fn not_allowed(operator: &str) -> Error {
    let message = format!("{operator} is not allowed in the filter of a partial index");
    Error::new(FEATURE_NOT_ALLOWED, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::{DocumentBuf, doc};

    #[test]
    fn unsupported_and_deep_filters_are_rejected() {
        let check = |filter: DocumentBuf, expected: Result<(), i32>| {
            let found = parse(filter.as_document(), None);
            let found = found.and_then(|_| check_depth(filter.as_document()));
            assert_eq!(found.map_err(|error| error.code), expected, "{filter}");
        };
        check(doc! {}, Ok(()));
        check(doc! { "b": 1, "c": { "$gt": 2, "$lte": 5 } }, Ok(()));
        check(doc! { "b": { "$exists": true } }, Ok(()));
        check(doc! { "b": { "$type": "string" } }, Ok(()));
        check(doc! { "b": { "$in": [1, 2] } }, Ok(()));
        check(
            doc! { "$or": [{ "b": 1 }, { "$and": [{ "c": 1 }, { "d": 1 }] }] },
            Ok(()),
        );
        let three = || doc! { "$and": [{ "$and": [{ "$and": [{ "b": 3 }] }] }] };
        check(three(), Ok(()));
        check(doc! { "$and": [(three())] }, Err(67));
        check(doc! { "$or": [(three())] }, Err(67));
        check(
            doc! { "$and": [{ "$and": [{ "$or": [{ "b": 3, "c": 3 }] }] }] },
            Err(67),
        );
        check(
            doc! { "$or": [{ "$or": [{ "b": { "$gt": 3, "$lt": 5 } }] }] },
            Ok(()),
        );
        check(doc! { "b": { "$exists": false } }, Err(67));
        check(doc! { "b": { "$ne": 1 } }, Err(67));
        check(doc! { "b": { "$not": { "$gt": 1 } } }, Err(67));
        check(doc! { "b": { "$regex": "x" } }, Err(67));
        check(doc! { "b": { "$size": 1 } }, Err(67));
        check(doc! { "b": { "$mod": [2, 0] } }, Err(67));
        check(doc! { "b": { "$elemMatch": { "$gt": 1 } } }, Err(67));
        check(doc! { "b": { "$bitsAllSet": 1 } }, Err(67));
        check(doc! { "$alwaysTrue": 1 }, Err(67));
        check(doc! { "$expr": { "$gt": ["$b", 5] } }, Err(224));
        check(doc! { "$jsonSchema": { "required": ["b"] } }, Err(224));
        let within = doc! { "$geoWithin": { "$center": [[0, 0], 1] } };
        check(doc! { "b": within }, Ok(()));
        let point = doc! { "type": "Point", "coordinates": [1, 2] };
        let intersects = doc! { "$geoIntersects": { "$geometry": point } };
        check(doc! { "b": (intersects.clone()) }, Ok(()));
        check(doc! { "b": { "$not": intersects } }, Err(67));
        check(doc! { "b": { "$near": [0, 0] } }, Err(67));
        check(doc! { "$text": { "$search": "x" } }, Err(2));
        check(doc! { "$foo": 1 }, Err(2));
    }
}
