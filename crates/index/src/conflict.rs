//! Compares requested indexes with existing ones. A requested index exists already, is new, or
//! conflicts with an existing index.
//!
//! - It exists if name, key and options are the same.
//! - The signature of an index is its key with the options that change its entries or their
//!   uniqueness: `unique`, `sparse`, `partialFilterExpression`, `collation` and
//!   `wildcardProjection`. Indexes with different signatures may coexist under different names.
//! - Indexes with the same signature and different names conflict, as do different indexes with the
//!   same name.
//!
//! - Search indexes conflict with search indexes of the same name only.
//!
//! Keys and options are compared as BSON values: `1` equals `1.0`.

use std::sync::Arc;

use windrow_document::order::compare_documents;
use windrow_document::{Document, ValueRef};
use windrow_mql::Error;
use windrow_mql::filter::Filter;

use crate::definition::Definition;

const CANNOT_CREATE: i32 = 67;
const ALREADY_EXISTS: i32 = 68;
const OPTIONS_CONFLICT: i32 = 85;
const KEYS_CONFLICT: i32 = 86;

/// Returns the requested indexes that do not exist yet, in the order of the request.
///
/// Fails with MongoDB's code 67, 85 or 86 if a requested index conflicts with an existing or
/// another requested one, and with 68 if an index is requested twice.
pub fn missing(
    existing: &[Arc<Definition>],
    requested: Vec<Definition>,
) -> Result<Vec<Definition>, Error> {
    let mut new: Vec<Definition> = Vec::new();
    for one in requested {
        let existing = existing.iter().map(Arc::as_ref);
        if !is_new(&one, existing.clone())? {
            continue;
        }
        if !is_new(&one, existing.chain(&new))? {
            let message = format!("Identical index already exists: {}", one.name);
            return Err(Error::new(ALREADY_EXISTS, message));
        }
        new.push(one);
    }
    Ok(new)
}

/// Returns `true` if an index does not exist yet. Fails with code 67, 85 or 86 if it conflicts with
/// an existing one.
pub fn is_new<'a>(
    requested: &Definition,
    existing: impl Iterator<Item = &'a Definition> + Clone,
) -> Result<bool, Error> {
    if requested.is_search() {
        return is_new_search(requested, existing);
    }
    let existing = existing.filter(|one| !one.is_search());
    if requested.is_of_ids() {
        return Ok(!existing.clone().any(Definition::is_of_ids));
    }
    let same_index = |one: &&Definition| {
        is_same(one.key_pattern(), requested.key_pattern()) && same_signature(one, requested)
    };
    // The index with the same name is compared first: it is the one that the request means.
    if let Some(one) = existing.clone().find(|one| one.name == requested.name) {
        return match (same_index(&one), same_options(one, requested)) {
            (true, true) => Ok(false),
            (true, false) => Err(other_options(one, requested)),
            (false, _) => Err(other_index(one, requested)),
        };
    }
    if let Some(one) = existing.clone().find(same_index) {
        return Err(other_name(one, requested));
    }
    match existing
        .clone()
        .find(|one| one.is_text() && requested.is_text())
    {
        Some(one) => Err(Error::new(
            CANNOT_CREATE,
            format!(
                "only one text index per collection allowed, found existing text index '{}'",
                one.name
            ),
        )),
        None => Ok(true),
    }
}

/// Search indexes differ by their names only, and conflict with no index of another kind.
fn is_new_search<'a>(
    requested: &Definition,
    mut existing: impl Iterator<Item = &'a Definition>,
) -> Result<bool, Error> {
    match existing.find(|one| one.is_search() && one.name == requested.name) {
        None => Ok(true),
        Some(_) => Err(Error::new(
            ALREADY_EXISTS,
            format!(
                "the search index '{}' exists already",
                search_name(requested)
            ),
        )),
    }
}

/// Returns the name of a search index that clients use.
fn search_name(definition: &Definition) -> &str {
    definition
        .search
        .as_ref()
        .map_or(&definition.name, |search| &search.name)
}

fn other_index(one: &Definition, requested: &Definition) -> Error {
    let message = format!(
        "An existing index has the same name as the requested index. When index names are not \
         specified, they are auto generated and can cause conflicts. Please refer to our \
         documentation. Requested index: {}, existing index: {}",
        requested.specification, one.specification
    );
    Error::new(KEYS_CONFLICT, message)
}

fn other_options(one: &Definition, requested: &Definition) -> Error {
    let message = format!(
        "An equivalent index already exists with the same name but different options. Requested \
         index: {}, existing index: {}",
        requested.specification, one.specification
    );
    Error::new(OPTIONS_CONFLICT, message)
}

fn other_name(one: &Definition, requested: &Definition) -> Error {
    let message = if same_options(one, requested) {
        format!("Index already exists with a different name: {}", one.name)
    } else {
        format!(
            "An equivalent index already exists with a different name and options. Requested \
             index: {}, existing index: {}",
            requested.specification, one.specification
        )
    };
    Error::new(OPTIONS_CONFLICT, message)
}

/// Returns `true` if two indexes with the same key have the same signature, so that they cannot
/// coexist.
fn same_signature(one: &Definition, other: &Definition) -> bool {
    one.unique == other.unique
        && one.sparse == other.sparse
        && one.collation == other.collation
        && same_filter(one.partial.as_ref(), other.partial.as_ref())
        && same_projection(one, other)
}

/// Returns `true` if both indexes have the same `wildcardProjection`, or neither has one. An index
/// whose projection equals the default still differs from an index without one.
fn same_projection(one: &Definition, other: &Definition) -> bool {
    let projects = |it: &Definition| it.specification.get("wildcardProjection").is_some();
    projects(one) == projects(other)
        && match (&one.wildcard, &other.wildcard) {
            (Some(ours), Some(theirs)) => ours.has_same_paths(theirs),
            (ours, theirs) => ours.is_none() && theirs.is_none(),
        }
}

/// Returns `true` if the normal forms of two filters are equal.
fn same_filter(one: Option<&Filter>, other: Option<&Filter>) -> bool {
    match (one, other) {
        (Some(ours), Some(theirs)) => is_same(
            ours.to_document().as_document(),
            theirs.to_document().as_document(),
        ),
        (ours, theirs) => ours.is_none() && theirs.is_none(),
    }
}

fn is_same(one: Document<'_>, other: Document<'_>) -> bool {
    compare_documents(one, other).is_eq()
}

/// Fields of a specification that [`same_options`] ignores: they are not options, may change later,
/// or are part of the signature.
const NOT_COMPARED: &[&str] = &[
    "background",
    "collation",
    "hidden",
    "key",
    "name",
    "partialFilterExpression",
    "sparse",
    "textIndexVersion",
    "unique",
    "v",
    "wildcardProjection",
];

/// Returns `true` if two indexes with the same signature also have the same other options.
fn same_options(one: &Definition, other: &Definition) -> bool {
    let (ours, theirs) = (options(one), options(other));
    ours.len() == theirs.len()
        && ours
            .iter()
            .zip(&theirs)
            .all(|(ours, theirs)| ours.0 == theirs.0 && ours.1.equals(theirs.1))
}

/// Returns the options to compare, sorted by name.
fn options(definition: &Definition) -> Vec<(&str, ValueRef<'_>)> {
    let all = definition.specification.iter();
    let mut options: Vec<_> = all
        .filter(|(name, _)| !NOT_COMPARED.contains(name))
        .collect();
    options.sort_by_key(|(name, _)| *name);
    options
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::{DocumentBuf, doc};

    fn check(existing: &[DocumentBuf], requested: DocumentBuf, expected: Result<bool, i32>) {
        let parse = |one: &DocumentBuf| Definition::parse(one.as_document()).unwrap();
        let existing: Vec<Definition> = existing.iter().map(parse).collect();
        let found = is_new(&parse(&requested), existing.iter()).map_err(|error| error.code);
        assert_eq!(found, expected, "{requested}");
    }

    #[test]
    fn an_existing_index_is_not_new() {
        let plain = || [doc! { "key": { "a": 1 }, "name": "i" }];
        check(
            &plain(),
            doc! { "key": { "a": 1.0 }, "name": "i" },
            Ok(false),
        );
        check(
            &plain(),
            doc! { "key": { "a": 1 }, "name": "i", "hidden": true },
            Ok(false),
        );
        check(
            &plain(),
            doc! { "key": { "a": 1 }, "name": "i", "background": true },
            Ok(false),
        );
        check(
            &plain(),
            doc! { "key": { "a": (-1) }, "name": "j" },
            Ok(true),
        );
        check(
            &plain(),
            doc! { "key": { "a": 1, "b": 1 }, "name": "j" },
            Ok(true),
        );
        check(&[], doc! { "key": { "_id": 1 }, "name": "x" }, Ok(true));
        check(
            &[doc! { "key": { "_id": 1 }, "name": "_id_" }],
            doc! { "key": { "_id": 1 }, "name": "x" },
            Ok(false),
        );
        check(
            &[doc! { "key": { "a": 1 }, "name": "i", "partialFilterExpression": { "b": 1 } }],
            doc! { "key": { "a": 1 }, "name": "i", "partialFilterExpression": { "b": 1.0 } },
            Ok(false),
        );
        check(
            &[doc! { "key": { "a": 1 }, "name": "i",
            "partialFilterExpression": { "b": { "$gt": 0, "$lt": 9 }, "c": 1 } }],
            doc! { "key": { "a": 1 }, "name": "i",
            "partialFilterExpression": { "c": { "$eq": 1 }, "$and": [{ "b": { "$lt": 9 } }, { "b": { "$gt": 0 } }] } },
            Ok(false),
        );
    }

    #[test]
    fn conflicts_fail_with_mongodbs_codes() {
        let plain = || [doc! { "key": { "a": 1 }, "name": "i" }];
        check(&plain(), doc! { "key": { "a": 1 }, "name": "j" }, Err(85));
        check(
            &plain(),
            doc! { "key": { "a": 1 }, "name": "i", "unique": true },
            Err(86),
        );
        check(
            &plain(),
            doc! { "key": { "a": 1 }, "name": "i", "partialFilterExpression": { "b": 1 } },
            Err(86),
        );
        check(
            &plain(),
            doc! { "key": { "a": 1 }, "name": "i", "expireAfterSeconds": 5 },
            Err(85),
        );
        check(
            &plain(),
            doc! { "key": { "a": 1 }, "name": "j", "sparse": true },
            Ok(true),
        );
        check(
            &plain(),
            doc! { "key": { "a": 1 }, "name": "j", "unique": true },
            Ok(true),
        );
        check(
            &[doc! { "key": { "a": 1 }, "name": "i", "partialFilterExpression": { "b": 1 } }],
            doc! { "key": { "a": 1 }, "name": "j", "partialFilterExpression": { "b": 2 } },
            Ok(true),
        );
        check(
            &[doc! { "key": { "a": 1 }, "name": "i", "partialFilterExpression": { "b": 1 } }],
            doc! { "key": { "a": 1 }, "name": "j", "partialFilterExpression": { "b": 1.0 } },
            Err(85),
        );
        check(
            &plain(),
            doc! { "key": { "a": 1 }, "name": "j", "expireAfterSeconds": 5 },
            Err(85),
        );
        check(
            &plain(),
            doc! { "key": { "a": 1 }, "name": "i", "prepareUnique": true },
            Err(85),
        );
        check(
            &plain(),
            doc! { "key": { "a": (-1) }, "name": "i" },
            Err(86),
        );
        check(&plain(), doc! { "key": { "a": 2 }, "name": "i" }, Err(86));
    }

    #[test]
    fn wildcard_indexes_conflict_by_their_projections() {
        let key = || doc! { "$**": 1 };
        let projected = |name: &str, projection: DocumentBuf| doc! { "key": (key()), "name": name, "wildcardProjection": projection };
        let one = || [projected("w", doc! { "a": 1, "b": 1 })];
        check(
            &one(),
            projected("w", doc! { "b": true, "a": 1.0 }),
            Ok(false),
        );
        check(
            &one(),
            projected("x", doc! { "b": true, "a": 1.0 }),
            Err(85),
        );
        check(&one(), projected("x", doc! { "a": 1 }), Ok(true));
        check(&one(), projected("x", doc! { "a": 0, "b": 0 }), Ok(true));
        let id_left_out = || projected("x", doc! { "_id": 0 });
        check(
            &[doc! { "key": (key()), "name": "w" }],
            id_left_out(),
            Ok(true),
        );
    }

    #[test]
    fn a_collection_has_one_text_index() {
        let text = || [doc! { "key": { "a": "text" }, "name": "t" }];
        check(
            &text(),
            doc! { "key": { "b": "text" }, "name": "u" },
            Err(85),
        );
        check(
            &text(),
            doc! { "key": { "p": 1, "b": "text" }, "name": "u" },
            Err(67),
        );
    }

    #[test]
    fn requested_indexes_conflict_with_each_other() {
        let parse = |one: DocumentBuf| Definition::parse(one.as_document()).unwrap();
        let one = || parse(doc! { "key": { "a": 1 }, "name": "i" });
        assert_eq!(missing(&[], vec![one()]).unwrap().len(), 1);
        assert_eq!(missing(&[], vec![one(), one()]).unwrap_err().code, 68);
        let existing = [Arc::new(one())];
        assert_eq!(missing(&existing, vec![one(), one()]).unwrap().len(), 0);
        let other = parse(doc! { "key": { "a": 1 }, "name": "j" });
        assert_eq!(missing(&[], vec![one(), other]).unwrap_err().code, 85);
    }
}
