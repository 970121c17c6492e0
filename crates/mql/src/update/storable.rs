//! What a stored document may not have: other limits than those of BSON itself.
//!
//! Names that begin with a dollar sign follow the manual's "Dollar-Prefixed Field Names" (since
//! 5.0): nested ones may be stored, those of the top level only by inserts (upserts too), and none
//! within `_id`.

use windrow_document::{Document, Type, ValueRef};

use super::modifier::Run;
use crate::Error;

/// Documents nest no deeper than this, the outermost counted.
pub(super) const DEPTH_MAX: usize = 180;

/// A document's bytes after an update, at most.
const BYTES_MAX: usize = 16 * 1024 * 1024;

/// 15 Overflow.
pub(super) fn too_deep(path: &str) -> Error {
    Error::new(
        15,
        format!("Cannot update {path}: the document would nest deeper than {DEPTH_MAX} levels"),
    )
}

/// Checks a whole document's depth.
pub(super) fn check_depth(depth: usize) -> Result<(), Error> {
    if depth > DEPTH_MAX {
        return Err(too_deep("the whole document"));
    }
    Ok(())
}

/// Checks the changed fields of the top level, each with whether it was there before: `_id` stays
/// as it is (66), and no `$name` is written by an update of an existing document (52).
pub(super) fn check_top_level<'a>(
    run: &Run<'_>,
    changed: impl Iterator<Item = (&'a str, bool)>,
) -> Result<(), Error> {
    for (name, was_there) in changed {
        if name == "_id" && was_there {
            return Err(Error::new(
                66,
                "Performing an update on the path '_id' would modify the immutable field '_id'",
            ));
        }
        if name.starts_with('$') && !run.is_insert {
            return Err(dollar_name(name));
        }
    }
    Ok(())
}

/// 52 DollarPrefixedFieldName.
pub(super) fn dollar_name(name: &str) -> Error {
    Error::new(
        52,
        format!(
            "The dollar ($) prefixed field '{name}' in '{name}' is not allowed in the context of an \
             update's replacement document. Consider using an aggregation pipeline with $replaceWith."
        ),
    )
}

/// Checks `_id`: no array, regex or undefined (53), no `$name` within (52).
pub(super) fn check_id(id: ValueRef<'_>) -> Result<(), Error> {
    let type_of = id.type_of();
    if matches!(type_of, Type::Array | Type::Regex | Type::Undefined) {
        return Err(Error::new(
            53,
            format!("The '_id' value cannot be of type {}", type_of.name()),
        ));
    }
    match id {
        ValueRef::Document(document) => check_no_dollar(document),
        _ => Ok(()),
    }
}

fn check_no_dollar(document: Document<'_>) -> Result<(), Error> {
    for (name, value) in document {
        if name.starts_with('$') {
            return Err(dollar_name(name));
        }
        match value {
            ValueRef::Document(inner) => check_no_dollar(inner)?,
            ValueRef::Array(inner) => {
                let documents = inner.iter().filter_map(ValueRef::as_document);
                documents.into_iter().try_for_each(check_no_dollar)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// 17419 where the document has grown too large.
pub(super) fn check_size(document: Document<'_>) -> Result<(), Error> {
    if document.as_bytes().len() > BYTES_MAX {
        return Err(Error::new(
            17419,
            format!("Resulting document after update is larger than {BYTES_MAX}"),
        ));
    }
    Ok(())
}
