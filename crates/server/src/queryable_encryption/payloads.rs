//! The payloads in a document: they are replaced by encrypted values.

use std::collections::BTreeSet;

use windrow_document::{ArrayBuf, Document, DocumentBuf, Value, ValueRef};
use windrow_queryable_encryption::{
    ENCRYPTED_SUBTYPE, EncryptedFields, FieldIndex, InsertPayload, SAFE_CONTENT, kind, kind_of,
    stored,
};
use windrow_wire::{CommandError, ErrorCode};

use super::collections::EncryptedCollection;
use super::state::{FoundPayload, count_insertions};
use crate::context::Context;
use crate::errors::{OrCommandError, refuse};

/// MongoDB's error codes.
const NOT_IN_SCHEMA: ErrorCode = ErrorCode(6_373_601);
const OTHER_KEY: ErrorCode = ErrorCode(6_726_301);
const REPEATED_KEY: ErrorCode = ErrorCode(6_371_407);
const TAGS_ARE_OWN: ErrorCode = ErrorCode(6_666_200);

/// Returns what a value is replaced by, or `None` to keep it. The first argument is its dotted
/// path.
type Replace<'r> = dyn FnMut(&str, ValueRef<'_>) -> Result<Option<Value>, CommandError> + 'r;

/// Returns the payloads of a document, in order. Fails if one is not of its field.
pub fn collect(
    document: Document<'_>,
    fields: &EncryptedFields,
) -> Result<Vec<FoundPayload>, CommandError> {
    if document.contains(SAFE_CONTENT) {
        let message = format!("Cannot modify {SAFE_CONTENT} field in document.");
        return refuse(TAGS_ARE_OWN, message);
    }
    let (mut found, mut keys) = (Vec::new(), BTreeSet::new());
    replace_in(document, "", &mut |path, value| {
        let ValueRef::Binary { bytes, .. } = value else {
            return Ok(None);
        };
        match kind_of(value) {
            Some(kind::INSERT_PAYLOAD) => {
                let payload = InsertPayload::parse(bytes).or_command_error()?;
                check(path, &payload, fields)?;
                if !keys.insert(payload.key_id) {
                    let message = "Index key ids must be unique across fields in a document";
                    return refuse(REPEATED_KEY, message);
                }
                let path = path.to_owned();
                found.push(FoundPayload { path, payload });
            }
            Some(other) => check_storable(path, other)?,
            None => {}
        }
        Ok(None)
    })?;
    Ok(found)
}

/// Fails if a value of this kind is a query or a request of a client to encrypt.
fn check_storable(path: &str, kind: u8) -> Result<(), CommandError> {
    let is_stored = matches!(
        kind,
        1 | 2 | kind::EQUALITY_VALUE | kind::RANGE_VALUE | kind::UNINDEXED_VALUE
    );
    if is_stored {
        return Ok(());
    }
    let message = format!("an encrypted value of kind {kind} cannot be stored in '{path}'");
    refuse(ErrorCode::BadValue, message)
}

fn check(
    path: &str,
    payload: &InsertPayload,
    fields: &EncryptedFields,
) -> Result<(), CommandError> {
    let field = fields.field(path).filter(|field| field.index.is_some());
    let Some(field) = field else {
        let message = format!(
            "'{path}' has an encrypted value, but no such field with queries is in \
             encryptionInformation"
        );
        return refuse(NOT_IN_SCHEMA, message);
    };
    if field.key_id != payload.key_id {
        let message = format!(
            "the key of the encrypted field '{path}' is {}, not {}",
            windrow_document::format_uuid(field.key_id),
            windrow_document::format_uuid(payload.key_id)
        );
        return refuse(OTHER_KEY, message);
    }
    let is_range = matches!(field.index, Some(FieldIndex::Range(_)));
    if is_range != payload.is_range {
        let name = if is_range { "ranges" } else { "equality" };
        let message = format!("the value of '{path}' was not encrypted for queries by {name}");
        return refuse(ErrorCode::BadValue, message);
    }
    Ok(())
}

/// Counts the payloads of a document in a transaction, and replaces them by encrypted values.
pub fn store(
    context: &Context<'_>,
    target: &EncryptedCollection,
    document: Document<'_>,
    found: &[FoundPayload],
) -> Result<DocumentBuf, CommandError> {
    let counts = count_insertions(context, target, found)?;
    let mut counted = found.iter().zip(&counts);
    replace_in(document, "", &mut |_, value| {
        if kind_of(value) != Some(kind::INSERT_PAYLOAD) {
            return Ok(None);
        }
        let Some((FoundPayload { payload, .. }, counts)) = counted.next() else {
            return refuse(ErrorCode::InternalError, "a payload was not counted");
        };
        let stored = payload.store(counts).or_command_error()?;
        Ok(Some(Value::Binary {
            subtype: ENCRYPTED_SUBTYPE,
            bytes: stored.bytes,
        }))
    })
}

/// Returns the tags of all encrypted values of a document, in order.
pub fn tags(document: Document<'_>) -> Result<ArrayBuf, CommandError> {
    let mut all = Vec::new();
    replace_in(document, "", &mut |_, value| {
        for tag in stored::tags(value).or_command_error()? {
            all.push(Value::Binary {
                subtype: 0,
                bytes: tag.0.to_vec(),
            });
        }
        Ok(None)
    })?;
    Ok(all.into_iter().collect())
}

/// Returns the document with its tags. A document without encrypted values that are indexed has
/// none.
pub fn with_tags(mut document: DocumentBuf) -> Result<DocumentBuf, CommandError> {
    let tags = tags(document.as_document())?;
    if !tags.as_array().is_empty() {
        document.push(SAFE_CONTENT, Value::Array(tags));
    }
    Ok(document)
}

/// Returns the document with some values replaced. `prefix` is the path of the document, with a dot
/// after it.
fn replace_in(
    document: Document<'_>,
    prefix: &str,
    replace: &mut Replace<'_>,
) -> Result<DocumentBuf, CommandError> {
    let mut changed = DocumentBuf::new();
    for (name, value) in document {
        let path = format!("{prefix}{name}");
        changed.push(name, replaced(value, &path, replace)?);
    }
    Ok(changed)
}

fn replaced(
    value: ValueRef<'_>,
    path: &str,
    replace: &mut Replace<'_>,
) -> Result<Value, CommandError> {
    if let Some(other) = replace(path, value)? {
        return Ok(other);
    }
    Ok(match value {
        ValueRef::Document(inner) => {
            Value::Document(replace_in(inner, &format!("{path}."), replace)?)
        }
        ValueRef::Array(list) => {
            let values = list.iter().enumerate();
            let values =
                values.map(|(at, value)| replaced(value, &format!("{path}.{at}"), replace));
            Value::Array(values.collect::<Result<ArrayBuf, CommandError>>()?)
        }
        other => other.to_value(),
    })
}
