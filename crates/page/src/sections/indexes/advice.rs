//! Advice about indexes that are not needed.

use windrow_document::ValueRef;

use crate::texts::indexes as texts;

use super::read::IndexState;

/// Options that prevent another index with the same key from replacing an index.
const SPECIAL: [&str; 6] = [
    "unique",
    "sparse",
    "partialFilterExpression",
    "collation",
    "expireAfterSeconds",
    "weights",
];

/// Returns the reasons why an index may be unnecessary.
pub fn advice(index: &IndexState, all: &[IndexState]) -> Vec<String> {
    if index.name == "_id_" || index.is_building {
        return Vec::new();
    }
    let mut sentences = Vec::new();
    if index.has("hidden") {
        sentences.push(texts::HIDDEN.to_owned());
    }
    let others = || {
        all.iter()
            .filter(|it| it.name != index.name && can_replace(it, index))
    };
    if let Some(other) = others().find(|it| !is_longer(it, index) && it.name < index.name) {
        sentences.push(texts::same_as(&other.name));
    } else if let Some(other) = others().find(|it| is_longer(it, index)) {
        sentences.push(texts::prefix_of(&other.name));
    }
    // Unique and TTL indexes are needed even if no query uses them.
    let has_purpose = index.has("unique") || index.definition.get("expireAfterSeconds").is_some();
    if index.uses == Some(0) && !has_purpose {
        sentences.push(texts::UNUSED.to_owned());
    }
    sentences
}

fn is_longer(one: &IndexState, other: &IndexState) -> bool {
    one.key().count() > other.key().count()
}

/// Returns `true` if each query that uses the index can use the other one: the key of the other one
/// begins with the same fields in the same directions.
fn can_replace(other: &IndexState, index: &IndexState) -> bool {
    let is_special = |it: &IndexState| {
        let has_option = SPECIAL
            .iter()
            .any(|name| it.definition.get(name).is_some_and(ValueRef::is_truthy));
        has_option || it.has("hidden") || it.is_building
    };
    let is_ordered = |it: &IndexState| {
        it.key()
            .iter()
            .all(|(name, value)| value.is_number() && name != "$**" && !name.ends_with(".$**"))
    };
    // A sparse index omits documents; a unique one does not.
    let mut plain = other.definition.clone();
    if other.has("unique") {
        plain = without(&plain, "unique");
    }
    let plain_other = IndexState {
        definition: plain,
        ..other.clone()
    };
    let begins = index
        .key()
        .iter()
        .zip(other.key().iter())
        .all(|(one, other)| {
            let (one_sign, other_sign) = (
                one.1.as_f64().map(f64::signum),
                other.1.as_f64().map(f64::signum),
            );
            one.0 == other.0 && one_sign == other_sign
        });
    !is_special(index)
        && !is_special(&plain_other)
        && is_ordered(index)
        && is_ordered(other)
        && index.key().count() <= other.key().count()
        && begins
}

fn without(document: &windrow_document::DocumentBuf, name: &str) -> windrow_document::DocumentBuf {
    let mut left = windrow_document::DocumentBuf::new();
    for (known, value) in document.iter().filter(|(known, _)| *known != name) {
        left.push(known, value.to_value());
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::{DocumentBuf, doc};

    fn index(name: &str, definition: DocumentBuf) -> IndexState {
        IndexState {
            name: name.to_owned(),
            definition,
            bytes: None,
            entries: None,
            uses: Some(1),
            uses_since: None,
            is_building: false,
        }
    }

    #[test]
    fn indexes_that_others_replace_are_named() {
        let all = [
            index("_id_", doc! { "key": { "_id": 1 } }),
            index("a", doc! { "key": { "a": 1 } }),
            index("ab", doc! { "key": { "a": 1.0, "b": -1 } }),
            index("a-", doc! { "key": { "a": -1 } }),
            index("b", doc! { "key": { "b": 1 }, "unique": true }),
            index("bc", doc! { "key": { "b": 1, "c": 1 } }),
            index("c", doc! { "key": { "c": 1 } }),
            index("cd", doc! { "key": { "c": 1, "d": 1 }, "sparse": true }),
            index("e", doc! { "key": { "e": 1 } }),
            index("eu", doc! { "key": { "e": 1, "f": 1 }, "unique": true }),
            index("h", doc! { "key": { "a": "hashed" } }),
            index("w", doc! { "key": { "$**": 1 } }),
        ];
        let named: Vec<&str> = all
            .iter()
            .filter(|it| !advice(it, &all).is_empty())
            .map(|it| it.name.as_str())
            .collect();
        assert_eq!(named, ["a", "e"]);
        assert_eq!(advice(&all[1], &all), [texts::prefix_of("ab")]);
    }

    #[test]
    fn unused_and_hidden_indexes_are_named() {
        let unused = |definition| IndexState {
            uses: Some(0),
            ..index("x", definition)
        };
        let cases = [
            (unused(doc! { "key": { "a": 1 } }), 1),
            (unused(doc! { "key": { "a": 1 }, "unique": true }), 0),
            (
                unused(doc! { "key": { "a": 1 }, "expireAfterSeconds": 0 }),
                0,
            ),
            (unused(doc! { "key": { "a": 1 }, "hidden": true }), 2),
            (index("x", doc! { "key": { "a": 1 } }), 0),
        ];
        for (index, expected) in cases {
            let sentences = advice(&index, std::slice::from_ref(&index));
            assert_eq!(sentences.len(), expected, "{}", index.definition);
        }
    }
}
