//! Which of the wanted indexes are new, and which are in the way of others.
//!
//! An index is there already where name, key and options are the same. Indexes of one key stand beside
//! each other where they differ in what they hold: unique, sparse, filter, collation, projection; under
//! one name they are in each other's way as indexes of other keys are. Key documents and options are
//! compared as values: `1` and `1.0` are the same.

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

/// The wanted indexes that are not among the known ones, in their order. Fails with MongoDB's code
/// where one is in the way of a known one, or of another wanted one.
pub fn new_ones(
    known: &[Arc<Definition>],
    wanted: Vec<Definition>,
) -> Result<Vec<Definition>, Error> {
    let mut new: Vec<Definition> = Vec::new();
    for one in wanted {
        let known = known.iter().map(Arc::as_ref);
        if !is_new(&one, known.clone())? {
            continue;
        }
        if !is_new(&one, known.chain(&new))? {
            let message = format!("Identical index already exists: {}", one.name);
            return Err(Error::new(ALREADY_EXISTS, message));
        }
        new.push(one);
    }
    Ok(new)
}

/// Whether an index is not among the known ones; an error where one of them is in its way.
pub fn is_new<'a>(
    wanted: &Definition,
    known: impl Iterator<Item = &'a Definition> + Clone,
) -> Result<bool, Error> {
    if wanted.is_of_ids() {
        return Ok(!known.clone().any(Definition::is_of_ids));
    }
    let same_index = |one: &&Definition| {
        is_same(one.key_pattern(), wanted.key_pattern()) && same_signature(one, wanted)
    };
    // The name comes first: it says which index is meant.
    if let Some(one) = known.clone().find(|one| one.name == wanted.name) {
        return match (same_index(&one), same_options(one, wanted)) {
            (true, true) => Ok(false),
            (true, false) => Err(other_options(one, wanted)),
            (false, _) => Err(other_index(one, wanted)),
        };
    }
    if let Some(one) = known.clone().find(same_index) {
        return Err(other_name(one, wanted));
    }
    match known.clone().find(|one| one.is_text() && wanted.is_text()) {
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

fn other_index(one: &Definition, wanted: &Definition) -> Error {
    let message = format!(
        "An existing index has the same name as the requested index. When index names are not \
         specified, they are auto generated and can cause conflicts. Please refer to our \
         documentation. Requested index: {}, existing index: {}",
        wanted.specification, one.specification
    );
    Error::new(KEYS_CONFLICT, message)
}

fn other_options(one: &Definition, wanted: &Definition) -> Error {
    let message = format!(
        "An equivalent index already exists with the same name but different options. Requested \
         index: {}, existing index: {}",
        wanted.specification, one.specification
    );
    Error::new(OPTIONS_CONFLICT, message)
}

fn other_name(one: &Definition, wanted: &Definition) -> Error {
    let message = match same_options(one, wanted) {
        true => format!("Index already exists with a different name: {}", one.name),
        false => format!(
            "An equivalent index already exists with a different name and options. Requested \
             index: {}, existing index: {}",
            wanted.specification, one.specification
        ),
    };
    Error::new(OPTIONS_CONFLICT, message)
}

/// Whether nothing tells apart two indexes of the same key, so that they cannot stand beside each other.
fn same_signature(one: &Definition, other: &Definition) -> bool {
    one.unique == other.unique
        && one.sparse == other.sparse
        && one.collation == other.collation
        && same_filter(one.partial.as_ref(), other.partial.as_ref())
        && same_projection(one, other)
}

/// Whether both project to the same paths, or neither projects: an index that says what it would have
/// anyway is another one than that which says nothing.
fn same_projection(one: &Definition, other: &Definition) -> bool {
    let projects = |it: &Definition| it.specification.get("wildcardProjection").is_some();
    projects(one) == projects(other)
        && match (&one.wildcard, &other.wildcard) {
            (Some(ours), Some(theirs)) => ours.says_the_same(theirs),
            (ours, theirs) => ours.is_none() && theirs.is_none(),
        }
}

/// Whether filters say the same in normal form, however they are written.
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

/// What is no option of an index, may change later, or is compared with the signature.
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

/// Whether indexes of the same key and signature have all other options in common, too.
fn same_options(one: &Definition, other: &Definition) -> bool {
    let (ours, theirs) = (options(one), options(other));
    ours.len() == theirs.len()
        && ours
            .iter()
            .zip(&theirs)
            .all(|(ours, theirs)| ours.0 == theirs.0 && ours.1.equals(theirs.1))
}

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

    fn check(known: &[DocumentBuf], wanted: DocumentBuf, expected: Result<bool, i32>) {
        let parse = |one: &DocumentBuf| Definition::parse(one.as_document()).unwrap();
        let known: Vec<Definition> = known.iter().map(parse).collect();
        let found = is_new(&parse(&wanted), known.iter()).map_err(|error| error.code);
        assert_eq!(found, expected, "{wanted}");
    }

    #[test]
    fn what_is_there_is_not_new() {
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
    fn conflicts_have_mongodbs_codes() {
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
    fn wanted_indexes_are_in_each_others_way() {
        let parse = |one: DocumentBuf| Definition::parse(one.as_document()).unwrap();
        let one = || parse(doc! { "key": { "a": 1 }, "name": "i" });
        assert_eq!(new_ones(&[], vec![one()]).unwrap().len(), 1);
        assert_eq!(new_ones(&[], vec![one(), one()]).unwrap_err().code, 68);
        let known = [Arc::new(one())];
        assert_eq!(new_ones(&known, vec![one(), one()]).unwrap().len(), 0);
        let other = parse(doc! { "key": { "a": 1 }, "name": "j" });
        assert_eq!(new_ones(&[], vec![one(), other]).unwrap_err().code, 85);
    }
}
