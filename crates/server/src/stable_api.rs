//! The parts of commands that are not in version 1 of MongoDB's stable API (`apiStrict: true`), for
//! commands that are.

use windrow_document::{Array, Document, DocumentBuf, ValueRef};

/// Arguments of `find`.
const NOT_IN_FIND: &[&str] = &[
    "awaitData",
    "max",
    "min",
    "noCursorTimeout",
    "oplogReplay",
    "readOnce",
    "returnKey",
    "showRecordId",
    "tailable",
];

/// Arguments of `create`.
const NOT_IN_CREATE: &[&str] = &[
    "autoIndexId",
    "capped",
    "indexOptionDefaults",
    "max",
    "size",
    "storageEngine",
];

/// Stages of pipelines.
const STAGES: &[&str] = &[
    "$currentOp",
    "$indexStats",
    "$listLocalSessions",
    "$listSessions",
    "$planCacheStats",
    "$search",
    "$searchMeta",
    "$vectorSearch",
];

/// Options of indexes.
const NOT_IN_INDEXES: &[&str] = &["background", "bucketSize", "sparse", "storageEngine"];

/// Kinds of indexes.
const KINDS: &[&str] = &["geoHaystack", "text"];

/// Stages that contain pipelines, and the name of the argument.
const HOLDERS: &[(&str, &str)] = &[("$lookup", "pipeline"), ("$unionWith", "pipeline")];

/// Commands that write documents of the collection that they name.
const WRITES: &[&str] = &["delete", "findAndModify", "insert", "update"];

/// Parts that are outside of the API in all commands.
pub fn unsupported_argument(command: &str, body: Document<'_>) -> Option<String> {
    const FUNCTIONS: ValueRef<'_> = ValueRef::String("system.js");
    let collection = body.first().map(|(_, name)| name);
    if WRITES.contains(&command) && collection == Some(FUNCTIONS) {
        let message = "may not write to system.js with 'apiStrict: true' in API Version 1";
        return Some(format!("{command} {message}"));
    }
    unsupported_name(body, &["collectionUUID"], command)
}

pub fn unsupported_in_find(body: Document<'_>) -> Option<String> {
    unsupported_name(body, NOT_IN_FIND, "find")
}

pub fn unsupported_in_create(body: Document<'_>) -> Option<String> {
    let pipeline = body.get("pipeline").and_then(ValueRef::as_array);
    unsupported_name(body, NOT_IN_CREATE, "create").or_else(|| unsupported_in_pipeline(pipeline?))
}

pub fn unsupported_in_create_indexes(body: Document<'_>) -> Option<String> {
    let indexes = body.get("indexes").and_then(ValueRef::as_array)?;
    indexes
        .iter()
        .filter_map(ValueRef::as_document)
        .find_map(|index| {
            let refused = |kind| format!("The index type {kind} is not in API Version 1");
            kind_outside(index)
                .map(refused)
                .or_else(|| unsupported_name(index, NOT_IN_INDEXES, "createIndexes.indexes"))
        })
}

fn kind_outside(index: Document<'_>) -> Option<&str> {
    let key = index.get("key").and_then(ValueRef::as_document);
    key.into_iter().flatten().find_map(|(_, kind)| match kind {
        ValueRef::String(kind) if KINDS.contains(&kind) => Some(kind),
        _ => None,
    })
}

/// Returns `true` if an existing index is outside of the API.
pub fn excludes_index(specification: &DocumentBuf) -> bool {
    let is_sparse = specification.get("sparse").is_some_and(ValueRef::is_truthy);
    is_sparse || kind_outside(specification.as_document()).is_some()
}

pub fn unsupported_in_aggregate(body: Document<'_>) -> Option<String> {
    let stages = body.get("pipeline").and_then(ValueRef::as_array);
    unsupported_name(body, &["explain"], "aggregate").or_else(|| unsupported_in_pipeline(stages?))
}

pub fn unsupported_in_coll_mod(body: Document<'_>) -> Option<String> {
    let index = body.get("index").and_then(ValueRef::as_document)?;
    unsupported_name(index, &["prepareUnique"], "collMod.index")
}

/// Returns the part of a pipeline that is outside of the API.
pub fn unsupported_in_pipeline(stages: Array<'_>) -> Option<String> {
    let stages = stages.iter().filter_map(ValueRef::as_document);
    stages
        .filter_map(|stage| stage.first())
        .find_map(|(name, value)| unsupported_in_stage(name, value))
}

fn unsupported_in_stage(name: &str, value: ValueRef<'_>) -> Option<String> {
    let refused = || format!("stage {name} is not allowed with 'apiStrict: true' in API Version 1");
    if STAGES.contains(&name) {
        return Some(refused());
    }
    let value = value.as_document()?;
    match name {
        // Only the count is in the API.
        "$collStats" if value.iter().any(|(name, _)| name != "count") => Some(refused()),
        "$facet" => value
            .iter()
            .find_map(|(_, pipeline)| unsupported_in_pipeline(pipeline.as_array()?)),
        _ => {
            let (_, field) = HOLDERS.iter().find(|(holder, _)| *holder == name)?;
            unsupported_in_pipeline(value.get(field).and_then(ValueRef::as_array)?)
        }
    }
}

fn unsupported_name(body: Document<'_>, outside: &[&str], what: &str) -> Option<String> {
    let (name, _) = body.iter().find(|(name, _)| outside.contains(name))?;
    Some(format!(
        "BSON field '{what}.{name}' is not allowed with apiStrict:true."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::doc;

    fn check(of: fn(Document<'_>) -> Option<String>, body: DocumentBuf, is_outside: bool) {
        assert_eq!(of(body.as_document()).is_some(), is_outside, "{body}");
    }

    #[test]
    fn some_arguments_are_outside_of_the_api() {
        check(unsupported_in_find, doc! { "find": "c", "limit": 1 }, false);
        check(
            unsupported_in_find,
            doc! { "find": "c", "showRecordId": true },
            true,
        );
        let of_drop = |body: Document<'_>| unsupported_argument("drop", body);
        check(of_drop, doc! { "drop": "c", "collectionUUID": null }, true);
        let of_insert = |body: Document<'_>| unsupported_argument("insert", body);
        check(of_insert, doc! { "insert": "c" }, false);
        check(of_insert, doc! { "insert": "system.js" }, true);
        let index = |index: DocumentBuf| doc! { "collMod": "c", "index": index };
        check(
            unsupported_in_coll_mod,
            index(doc! { "hidden": true }),
            false,
        );
        check(
            unsupported_in_coll_mod,
            index(doc! { "prepareUnique": true }),
            true,
        );
    }

    #[test]
    fn some_options_of_collections_and_indexes_are_outside_of_the_api() {
        check(
            unsupported_in_create,
            doc! { "create": "c", "capped": true },
            true,
        );
        check(
            unsupported_in_create,
            doc! { "create": "c", "pipeline": [{ "$indexStats": {} }] },
            true,
        );
        let index = |index: DocumentBuf| doc! { "createIndexes": "c", "indexes": [index] };
        check(
            unsupported_in_create_indexes,
            index(doc! { "key": { "a": 1 } }),
            false,
        );
        check(
            unsupported_in_create_indexes,
            index(doc! { "key": { "a": "text" } }),
            true,
        );
        check(
            unsupported_in_create_indexes,
            index(doc! { "key": { "a": 1 }, "sparse": true }),
            true,
        );
    }

    #[test]
    fn some_stages_are_outside_of_the_api() {
        check(
            unsupported_in_aggregate,
            doc! { "aggregate": "c", "explain": true },
            true,
        );
        let stage = |stage: DocumentBuf| doc! { "aggregate": "c", "pipeline": [stage] };
        check(
            unsupported_in_aggregate,
            stage(doc! { "$match": {} }),
            false,
        );
        check(
            unsupported_in_aggregate,
            stage(doc! { "$collStats": { "count": {} } }),
            false,
        );
        check(
            unsupported_in_aggregate,
            stage(doc! { "$collStats": { "storageStats": {} } }),
            true,
        );
        let facet = doc! { "$facet": { "a": [{ "$planCacheStats": {} }] } };
        check(unsupported_in_aggregate, stage(facet), true);
    }
}
