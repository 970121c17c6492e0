//! Events as documents.

use windrow_collection::{ClusterTime, DdlKind, Event, EventKind, Namespace, Origin};
use windrow_document::{
    ArrayBuf, Document, DocumentBuf, Timestamp, Value, ValueRef, doc, path::array_index,
};
use windrow_invariant::Bug;
use windrow_mql::update::{FieldPath, UpdateDescription};
use windrow_wire::{CommandError, ErrorCode};

use super::options::{BeforeChange, ChangeStreamOptions, FullDocument};
use super::token::{EventToken, Token};
use crate::errors::OrCommandError;
use crate::sessions::UserDigest;

/// Returns the position of an event.
pub fn token(event: &Event) -> EventToken {
    EventToken {
        time: event.time,
        number: event.number,
        ends: false,
        uuid: event.uuid,
        fragment: None,
    }
}

/// Finds the newest version of the document of an event.
pub type LookUp<'l> =
    dyn Fn(&Event, ValueRef<'_>) -> Result<Option<DocumentBuf>, CommandError> + 'l;

/// Returns the event that ends a stream after this event.
pub fn invalidate(event: &Event) -> DocumentBuf {
    let token = Token::Event(EventToken {
        ends: true,
        ..token(event)
    });
    let mut document = DocumentBuf::new();
    document.push("_id", token.to_document());
    document.push("operationType", "invalidate");
    document.push("clusterTime", timestamp(event.time));
    document.push("wallTime", wall_time(event));
    document
}

/// Returns the document of an event.
///
/// # Errors
///
/// - 47: the stream requires a version of the document that was not stored.
/// - 10334: the event is too large.
pub fn document(
    event: &Event,
    options: &ChangeStreamOptions,
    look_up: &LookUp<'_>,
) -> Result<DocumentBuf, CommandError> {
    let mut document = DocumentBuf::new();
    if let Some(origin) = &event.origin {
        document.push("txnNumber", origin.number);
        document.push("lsid", session(origin));
    }
    if let EventKind::Catalog { to: Some(to), .. } = &event.kind {
        document.push("to", pair(to));
    }
    document.push("_id", Token::Event(token(event)).to_document());
    document.push("operationType", operation(event));
    document.push("clusterTime", timestamp(event.time));
    let is_database = event.namespace.collection.is_empty();
    if options.expanded && !is_database {
        document.push("collectionUUID", event.uuid.to_value());
    }
    document.push("wallTime", wall_time(event));
    push_full_document(&mut document, event, options, look_up)?;
    document.push("ns", pair(&event.namespace));
    push_change(&mut document, event, options)?;
    Ok(document)
}

/// Returns the session id in events: with the digest of the user name, which is empty.
fn session(origin: &Origin) -> DocumentBuf {
    let id = Value::Binary {
        subtype: 4,
        bytes: origin.session.0.to_vec(),
    };
    doc! { "id": id, "uid": (UserDigest::NOBODY.to_value()) }
}

fn operation(event: &Event) -> &'static str {
    match &event.kind {
        EventKind::Insert(_) => "insert",
        EventKind::Update {
            description: Some(_),
            ..
        } => "update",
        EventKind::Update {
            description: None, ..
        } => "replace",
        EventKind::Delete { .. } => "delete",
        EventKind::Catalog { operation, .. } => operation.name(),
    }
}

fn timestamp(time: ClusterTime) -> Timestamp {
    Timestamp::from_bits(time.0)
}

fn wall_time(event: &Event) -> Value {
    Value::DateTime(i64::try_from(event.millis).unwrap_or(i64::MAX))
}

/// Returns `{db, coll}`, or `{db}` for a database.
fn pair(namespace: &Namespace) -> DocumentBuf {
    let mut pair = DocumentBuf::new();
    pair.push("db", &namespace.database);
    if !namespace.collection.is_empty() {
        pair.push("coll", &namespace.collection);
    }
    pair
}

fn push_full_document(
    document: &mut DocumentBuf,
    event: &Event,
    options: &ChangeStreamOptions,
    look_up: &LookUp<'_>,
) -> Result<(), CommandError> {
    let full = match &event.kind {
        EventKind::Insert(new)
        | EventKind::Update {
            new,
            description: None,
            ..
        } => Some(Document::from_validated(new).to_buf()),
        EventKind::Update { new, old, .. } => {
            let new = Document::from_validated(new);
            // A new version is stored together with the old one, if the collection stores versions.
            let stored = old.as_ref().map(|_| new.to_buf());
            match options.full_document {
                FullDocument::Default => return Ok(()),
                FullDocument::WhenAvailable => stored,
                FullDocument::Required => Some(stored.ok_or_else(|| missing_image("post-image"))?),
                FullDocument::UpdateLookup => look_up(event, id(new)?)?,
            }
        }
        EventKind::Delete { .. } | EventKind::Catalog { .. } => return Ok(()),
    };
    document.push("fullDocument", full.map_or(Value::Null, Value::from));
    Ok(())
}

fn missing_image(what: &str) -> CommandError {
    let message = format!(
        "the change stream requires a {what}, but it was not kept: see changeStreamPreAndPostImages"
    );
    CommandError::new(ErrorCode::NoMatchingDocument, message)
}

/// Returns the `_id` of a stored document. It always exists.
fn id(document: Document<'_>) -> Result<ValueRef<'_>, CommandError> {
    let id = document.get("_id");
    let id = id.ok_or_else(|| Bug::new(format!("a stored document has no _id: {document}")));
    id.or_command_error()
}

fn key(document: &[u8]) -> Result<DocumentBuf, CommandError> {
    let mut key = DocumentBuf::new();
    key.push("_id", id(Document::from_validated(document))?);
    Ok(key)
}

/// Appends the fields that follow the namespace.
fn push_change(
    document: &mut DocumentBuf,
    event: &Event,
    options: &ChangeStreamOptions,
) -> Result<(), CommandError> {
    let old = match &event.kind {
        EventKind::Insert(new) => {
            document.push("documentKey", key(new)?);
            return Ok(());
        }
        EventKind::Catalog {
            operation,
            description,
            before,
            ..
        } => {
            if options.expanded && !matches!(operation, DdlKind::Drop | DdlKind::DropDatabase) {
                document.push("operationDescription", description.clone());
                if let Some(before) = before {
                    document.push("stateBeforeChange", before.clone());
                }
            }
            return Ok(());
        }
        EventKind::Update {
            new,
            description,
            old,
        } => {
            document.push("documentKey", key(new)?);
            if let Some(description) = description {
                let new = Document::from_validated(new);
                let described = describe(description, new, options.expanded);
                let described = described.or_command_error()?;
                document.push("updateDescription", described);
            }
            old
        }
        EventKind::Delete { key, old } => {
            document.push("documentKey", key.clone());
            old
        }
    };
    let before = match (options.before, old) {
        (BeforeChange::Off, _) => return Ok(()),
        (BeforeChange::Required, None) => return Err(missing_image("pre-image")),
        (_, old) => old.clone().map_or(Value::Null, Value::from),
    };
    document.push("fullDocumentBeforeChange", before);
    Ok(())
}

/// Returns `updateDescription`. The values of the updated paths are in the new version.
fn describe(
    description: &UpdateDescription,
    new: Document<'_>,
    expanded: bool,
) -> Result<DocumentBuf, Bug> {
    let UpdateDescription {
        updated,
        removed,
        truncated,
    } = description;
    let mut fields = DocumentBuf::new();
    for path in updated {
        let name = path.to_string();
        let value = path.value_in(new).ok_or_else(|| {
            let message = format!("an update has set '{name}', which the new version lacks");
            Bug::new(message)
        })?;
        fields.push(&name, value);
    }
    let removed_names: ArrayBuf = removed
        .iter()
        .map(|path| Value::from(path.to_string()))
        .collect();
    let shortened: ArrayBuf = truncated
        .iter()
        .map(|(path, length)| {
            let mut array = DocumentBuf::new();
            array.push("field", path.to_string());
            array.push("newSize", *length as i32);
            Value::from(array)
        })
        .collect();
    let mut described = DocumentBuf::new();
    described.push("updatedFields", fields);
    described.push("removedFields", Value::Array(removed_names));
    described.push("truncatedArrays", Value::Array(shortened));
    if expanded {
        let all = updated.iter().chain(removed);
        let all = all.chain(truncated.iter().map(|(path, _)| path));
        described.push("disambiguatedPaths", disambiguated(all, new));
    }
    Ok(described)
}

/// Returns the ambiguous paths as lists of names. Array indexes are numbers.
fn disambiguated<'p>(paths: impl Iterator<Item = &'p FieldPath>, new: Document<'_>) -> DocumentBuf {
    let mut found = DocumentBuf::new();
    for path in paths {
        let is_ambiguous = |name: &str| name.contains('.') || array_index(name).is_some();
        let mut names = path.names();
        let first_is = names.next().is_some_and(|first| first.contains('.'));
        if first_is || names.any(is_ambiguous) {
            found.push(&path.to_string(), Value::Array(parts(path, new)));
        }
    }
    found
}

fn parts(path: &FieldPath, new: Document<'_>) -> ArrayBuf {
    let mut within = Some(ValueRef::Document(new));
    let part = |name: &str| {
        let array = within.and_then(ValueRef::as_array);
        let part = match array.and(array_index(name)) {
            Some(index) => Value::Int32(index as i32),
            None => Value::from(name),
        };
        within = within.and_then(|value| match value {
            ValueRef::Document(document) => document.get(name),
            ValueRef::Array(array) => array.as_document().get(name),
            _ => None,
        });
        part
    };
    path.names().map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn update_descriptions_have_values_of_the_new_version() {
        let path = |names: &str| FieldPath::new(names);
        let description = UpdateDescription {
            updated: vec![path("a\x001"), path("o\0x.y")],
            removed: vec![path("gone")],
            truncated: vec![(path("l"), 2)],
        };
        let new = doc! { "a": [1, 9], "o": { "x.y": 3 }, "l": [1, 2] };
        let plain = doc! {
            "updatedFields": { "a.1": 9, "o.x.y": 3 }, "removedFields": ["gone"],
            "truncatedArrays": [{ "field": "l", "newSize": 2 }],
        };
        assert_eq!(describe(&description, new.as_document(), false), Ok(plain));
        let described = describe(&description, new.as_document(), true).unwrap();
        let paths = described.get("disambiguatedPaths").map(ValueRef::to_value);
        let expected = doc! { "a.1": ["a", 1], "o.x.y": ["o", "x.y"] };
        assert_eq!(paths, Some(Value::from(expected)));
    }
}
