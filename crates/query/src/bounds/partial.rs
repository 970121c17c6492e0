//! Decides if a filter implies the filter of a partial index.

use std::sync::Arc;

use windrow_document::{Collation, ValueRef};
use windrow_index::Definition;
use windrow_mql::filter::Node;

use super::leaf;

/// Returns `true` if the partial filter of the index admits every document that matches `filter`.
/// `collation` is the collation of `filter`. If the index has another collation, only a partial
/// filter without strings can be implied.
pub fn admits_all(
    definition: &Definition,
    filter: &Node,
    collation: Option<&Arc<Collation>>,
) -> bool {
    let Some(partial) = &definition.partial else {
        return true;
    };
    let alike = definition.collation.as_ref() == collation
        || !has_strings(ValueRef::Document(partial.to_document().as_document()));
    alike && implies(filter, partial.root())
}

fn has_strings(value: ValueRef<'_>) -> bool {
    match value {
        ValueRef::String(_) => true,
        ValueRef::Document(document) => document.iter().any(|(_, value)| has_strings(value)),
        ValueRef::Array(array) => array.iter().any(has_strings),
        _ => false,
    }
}

/// Returns `true` if it is certain that every document that matches `filter` matches `partial`.
pub fn implies(filter: &Node, partial: &Node) -> bool {
    match (filter, partial) {
        (_, Node::AlwaysTrue) | (Node::AlwaysFalse, _) => true,
        (_, Node::And(parts)) => parts.iter().all(|part| implies(filter, part)),
        (Node::Or(branches), _) => branches.iter().all(|branch| implies(branch, partial)),
        (_, Node::Or(parts)) if parts.iter().any(|part| implies(filter, part)) => true,
        (Node::And(conditions), _) => conditions.iter().any(|one| implies(one, partial)),
        (Node::Schema(schema), _) => schema
            .required()
            .any(|path| leaf_implies(&Node::Exists { path }, partial)),
        _ => leaf_implies(filter, partial),
    }
}

fn leaf_implies(filter: &Node, partial: &Node) -> bool {
    let same_path = leaf::path_of(filter).is_some_and(|path| leaf::path_of(partial) == Some(path));
    if !same_path {
        return false;
    }
    if format!("{filter:?}") == format!("{partial:?}") {
        return true;
    }
    if matches!(filter, Node::Not(_)) || matches!(partial, Node::Not(_)) {
        // Array elements that are not documents have no value at a path through them, not even
        // null.
        let is_plain = leaf::path_of(filter).is_some_and(|path| path.components().len() == 1);
        let demands = is_plain && !leaf::accepts_missing(filter);
        return matches!(partial, Node::Exists { .. }) && demands;
    }
    match partial {
        Node::Exists { .. } => !leaf::accepts_missing(filter),
        _ => match (leaf::extent(filter), leaf::extent(partial)) {
            (Some(one), Some(other)) => {
                other.certainty == leaf::Certainty::Exact
                    && one.intervals.is_within(&other.intervals)
            }
            _ => false,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::{DocumentBuf, Value, doc};
    use windrow_mql::filter::Filter;

    /// `expected`: whether the filter implies that of a partial index.
    fn check(filter: DocumentBuf, partial: DocumentBuf, expected: bool) {
        let one = Filter::parse(filter.as_document()).unwrap();
        let other = Filter::parse(partial.as_document()).unwrap();
        let implied = implies(one.root(), other.root());
        assert_eq!(implied, expected, "{filter} → {partial}");
    }

    #[test]
    fn conditions_imply_wider_conditions() {
        check(doc! { "a": 5 }, doc! { "a": { "$gt": 1 } }, true);
        check(doc! { "a": { "$gt": 5 } }, doc! { "a": { "$gt": 1 } }, true);
        check(
            doc! { "a": { "$gt": 0 } },
            doc! { "a": { "$gt": 1 } },
            false,
        );
        check(
            doc! { "a": { "$in": [2, 3] } },
            doc! { "a": { "$gt": 1 } },
            true,
        );
        check(doc! { "a": "x" }, doc! { "a": { "$gt": 1 } }, false);
        check(doc! { "a": 1, "b": 2 }, doc! { "b": 2 }, true);
        check(doc! { "a": 1 }, doc! { "a": 1, "b": 2 }, false);
        check(
            doc! { "$or": [{ "a": 2 }, { "a": 3 }] },
            doc! { "a": { "$gt": 1 } },
            true,
        );
        check(
            doc! { "$or": [{ "a": 2 }, { "b": 3 }] },
            doc! { "a": { "$gt": 1 } },
            false,
        );
        check(
            doc! { "a": { "$type": "string" } },
            doc! { "a": { "$type": "string" } },
            true,
        );
        check(
            doc! { "a": { "$all": [5, 7] } },
            doc! { "a": { "$gt": 5 } },
            true,
        );
    }

    #[test]
    fn conditions_imply_that_a_field_exists() {
        check(
            doc! { "a": { "$ne": (Value::Null) } },
            doc! { "a": { "$exists": true } },
            true,
        );
        check(
            doc! { "a.b": { "$ne": (Value::Null) } },
            doc! { "a.b": { "$exists": true } },
            false,
        );
        check(doc! { "a": 1 }, doc! { "a": { "$exists": true } }, true);
        check(
            doc! { "a": { "$ne": 1 } },
            doc! { "a": { "$exists": true } },
            false,
        );
    }

    #[test]
    fn positions_in_arrays_are_part_of_the_path() {
        check(doc! { "a.0": 5 }, doc! { "a.0": { "$gt": 1 } }, true);
        check(
            doc! { "a.0.b": 5 },
            doc! { "a.0.b": { "$exists": true } },
            true,
        );
        check(doc! { "a.0": 5 }, doc! { "a.1": { "$gt": 1 } }, false);
        check(doc! { "a.0": 5 }, doc! { "a": { "$gt": 1 } }, false);
        check(
            doc! { "a.0": { "$ne": (Value::Null) } },
            doc! { "a.0": { "$exists": true } },
            false,
        );
    }

    #[test]
    fn required_fields_of_schemas_exist() {
        check(
            doc! { "$jsonSchema": { "allOf": [{ "required": ["b", "a"] }] } },
            doc! { "a": { "$exists": true } },
            true,
        );
        check(
            doc! { "$jsonSchema": { "anyOf": [{ "required": ["a"] }, { "required": ["b"] }] } },
            doc! { "a": { "$exists": true } },
            false,
        );
        check(
            doc! { "$jsonSchema": { "required": ["a"] } },
            doc! { "a": { "$gt": 1 } },
            false,
        );
    }

    #[test]
    fn shapes_imply_equal_shapes() {
        let within = |radius: i32| doc! { "p": { "$geoWithin": { "$center": [[0, 0], radius] } } };
        let on_sphere = doc! { "p": { "$geoWithin": { "$centerSphere": [[0, 0], 1] } } };
        check(within(1), within(1), true);
        check(within(1), doc! { "p": { "$exists": true } }, true);
        check(within(1), within(2), false);
        check(within(1), on_sphere, false);
        check(doc! { "p": [0, 0] }, within(1), false);
    }
}
