//! Checks of stored documents, whose limits are stricter than those of BSON.
//!
//! Names that start with a dollar sign follow MongoDB's manual, "Dollar-Prefixed Field Names"
//! (since 5.0): they are allowed in nested documents. At the top level only inserts (and upserts)
//! may write them. They are never allowed within `_id`.

use windrow_document::{Document, Type, ValueRef};

use super::modifier::Execution;
use crate::Error;

/// Maximum nesting depth, including the document itself.
pub(super) const DEPTH_MAX: usize = 180;

/// Maximum bytes of a document after an update.
const BYTES_MAX: usize = 16 * 1024 * 1024;

/// Error 15, Overflow.
pub(super) fn too_deep(path: &str) -> Error {
    Error::new(
        15,
        format!("Cannot update {path}: the document would nest deeper than {DEPTH_MAX} levels"),
    )
}

/// Checks the nesting depth of a document. Fails with 15.
pub(super) fn check_depth(depth: usize) -> Result<(), Error> {
    if depth > DEPTH_MAX {
        return Err(too_deep("the whole document"));
    }
    Ok(())
}

/// Checks the changed fields of the top level, each with `true` if it existed before.
///
/// # Errors
///
/// - 66: `_id` would change.
/// - 52: an update of an existing document writes a name that starts with `$`.
pub(super) fn check_top_level<'a>(
    execution: &Execution<'_>,
    changed: impl Iterator<Item = (&'a str, bool)>,
) -> Result<(), Error> {
    for (name, was_there) in changed {
        if name == "_id" && was_there {
            return Err(Error::new(
                66,
                "Performing an update on the path '_id' would modify the immutable field '_id'",
            ));
        }
        if name.starts_with('$') && !execution.is_insert {
            return Err(dollar_name(name));
        }
    }
    Ok(())
}

/// Error 52, DollarPrefixedFieldName.
pub(super) fn dollar_name(name: &str) -> Error {
    Error::new(
        52,
        format!(
            "The dollar ($) prefixed field '{name}' in '{name}' is not allowed in the context of an \
             update's replacement document. Consider using an aggregation pipeline with $replaceWith."
        ),
    )
}

/// Checks an `_id`.
///
/// # Errors
///
/// - 53: it is an array, a regular expression or undefined.
/// - 52: a name in it starts with `$`.
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

/// Fails with 17419 if the document is too large.
pub(super) fn check_size(document: Document<'_>) -> Result<(), Error> {
    if document.as_bytes().len() > BYTES_MAX {
        return Err(Error::new(
            17419,
            format!("Resulting document after update is larger than {BYTES_MAX}"),
        ));
    }
    Ok(())
}
