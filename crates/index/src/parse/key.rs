//! The key of an index: its fields, their kinds, and the kinds that may be combined.

use windrow_document::path::Path;
use windrow_document::{Document, ValueRef};
use windrow_mql::Error;

use super::cannot;
use crate::definition::{KeyField, KeyKind};
use crate::wildcard::PATH_FIELD;

const KEY_FIELDS_MAX: usize = 32;
const TOO_MANY_FIELDS: i32 = 13103;
const TOO_MANY_HASHED: i32 = 31303;

/// The name of the wildcard for all fields.
pub(super) const ALL_FIELDS: &str = "$**";

/// The kind of an index, which follows from the fields of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    /// Ordinary and geospatial indexes.
    Plain,
    Hashed,
    Text,
    Wildcard,
}

impl Family {
    /// Returns the kind of an index with this key.
    pub(super) fn from_key(key: Document<'_>) -> Family {
        let any = |wanted: &str| key.iter().any(|(_, it)| it == ValueRef::String(wanted));
        let is_wildcard = |(name, value): (&str, ValueRef<'_>)| {
            is_wildcard(name) && value != ValueRef::String("text")
        };
        if any("text") {
            Family::Text
        } else if key.iter().any(is_wildcard) {
            Family::Wildcard
        } else if any("hashed") {
            Family::Hashed
        } else {
            Family::Plain
        }
    }
}

fn is_wildcard(name: &str) -> bool {
    name == ALL_FIELDS || name.ends_with(".$**")
}

/// Returns the parts of the key. The text fields, which must be adjacent, are one part. A wildcard
/// is two parts: the path and the value. Fails with MongoDB's code if the key is not valid.
pub(super) fn fields(key: Document<'_>, family: Family) -> Result<Vec<KeyField>, Error> {
    if key.is_empty() {
        return Err(cannot("Index keys cannot be empty.".to_owned()));
    }
    if key.count() > KEY_FIELDS_MAX {
        return Err(Error::new(
            TOO_MANY_FIELDS,
            format!("Number of fields in compound index can't exceed {KEY_FIELDS_MAX}"),
        ));
    }
    if family == Family::Wildcard {
        return wildcard(key);
    }
    let mut fields: Vec<KeyField> = Vec::new();
    let already_stored = key.contains("_fts");
    for (name, value) in key
        .iter()
        .filter(|(name, _)| !(already_stored && *name == "_ftsx"))
    {
        let kind = kind_of(value)?;
        if kind != KeyKind::Text {
            check_path(name)?;
            if name == "_fts" {
                return Err(cannot(
                    "Index key contains an illegal field name: '_fts'".to_owned(),
                ));
            }
        }
        let has_text = fields.iter().any(|field| field.kind == KeyKind::Text);
        if kind == KeyKind::Text && has_text {
            if fields.last().is_some_and(|last| last.kind != KeyKind::Text) {
                return Err(cannot(
                    "'text' fields in index must all be adjacent".to_owned(),
                ));
            }
            continue;
        }
        let path = if kind == KeyKind::Text { "_fts" } else { name };
        fields.push(KeyField {
            path: Path::parse(path),
            kind,
        });
    }
    check_plugins(&fields, key)?;
    check_hashed(&fields, key)?;
    Ok(fields)
}

/// Fails with code 67 if a number in the key of a text index is not 1 or -1. The fraction is
/// ignored.
pub(super) fn check_directions(key: Document<'_>) -> Result<(), Error> {
    let is_direction = |value: ValueRef<'_>| {
        let whole = value.as_f64().map(f64::trunc);
        !value.is_number() || whole == Some(1.0) || whole == Some(-1.0)
    };
    match key.iter().find(|(_, value)| !is_direction(*value)) {
        None => Ok(()),
        Some((name, value)) => Err(cannot(format!(
            "the field '{name}' of a compound text index must be 1 or -1, but it is {value}"
        ))),
    }
}

/// Fails with code 67 if the key combines several of the kinds text, hashed, `2dsphere` and `2d`.
fn check_plugins(fields: &[KeyField], key: Document<'_>) -> Result<(), Error> {
    let mut plugins = fields.iter().filter(|field| !field.kind.is_plain());
    let first = plugins.next().map(|field| field.kind);
    if plugins.all(|other| Some(other.kind) == first) {
        Ok(())
    } else {
        Err(cannot(format!(
            "Can't use more than one index plugin for a single index: {key}"
        )))
    }
}

/// Fails with code 31303 if the key has several hashed fields.
fn check_hashed(fields: &[KeyField], key: Document<'_>) -> Result<(), Error> {
    let hashed = |field: &&KeyField| field.kind == KeyKind::Hashed;
    match fields.iter().filter(hashed).count() {
        0 | 1 => Ok(()),
        count => Err(Error::new(
            TOO_MANY_HASHED,
            format!(
                "A maximum of one index field is allowed to be hashed but found {count} for \
                 'key' {key}"
            ),
        )),
    }
}

/// Returns the name of the wildcard field in the key: `$**` or a path that ends in `.$**`.
pub(super) fn wildcard_name(key: Document<'_>) -> Option<&str> {
    key.iter()
        .map(|(name, _)| name)
        .find(|name| is_wildcard(name))
}

/// Returns the parts of the key of a wildcard index.
fn wildcard(key: Document<'_>) -> Result<Vec<KeyField>, Error> {
    if key.iter().filter(|(name, _)| is_wildcard(name)).count() > 1 {
        return Err(cannot(
            "A compound wildcard index can have only one wildcard field".to_owned(),
        ));
    }
    let mut fields = Vec::with_capacity(key.count() + 1);
    for (name, value) in key {
        let kind = kind_of(value)?;
        if !is_wildcard(name) {
            check_path(name)?;
            if !kind.is_plain() {
                return Err(cannot(format!(
                    "a wildcard index has no fields of other kinds beside it, found {value}"
                )));
            }
            fields.push(KeyField {
                path: Path::parse(name),
                kind,
            });
            continue;
        }
        if let Some(inner) = name.strip_suffix(".$**") {
            check_path(inner)?;
        }
        // The values may be in descending order. The paths are always in ascending order.
        if !kind.is_plain() {
            return Err(cannot(format!(
                "A $** in an index key pattern must be a number, found {value}"
            )));
        }
        let field = |path, kind| KeyField {
            path: Path::parse(path),
            kind,
        };
        fields.extend([field(PATH_FIELD, KeyKind::Ascending), field(name, kind)]);
    }
    Ok(fields)
}

fn kind_of(value: ValueRef<'_>) -> Result<KeyKind, Error> {
    match value {
        ValueRef::String("text") => Ok(KeyKind::Text),
        ValueRef::String("hashed") => Ok(KeyKind::Hashed),
        ValueRef::String("2dsphere") => Ok(KeyKind::Sphere),
        ValueRef::String("2d") => Ok(KeyKind::Plane),
        ValueRef::String("geoHaystack") => Err(cannot(
            "GeoHaystack indexes cannot be created in version 5.0 and above".to_owned(),
        )),
        ValueRef::String(kind) => Err(cannot(format!("Unknown index plugin '{kind}'"))),
        value if value.is_number() => match value.as_f64() {
            Some(number) if number > 0.0 => Ok(KeyKind::Ascending),
            Some(number) if number < 0.0 => Ok(KeyKind::Descending),
            _ => Err(cannot(
                "Values in the index key pattern cannot be 0.".to_owned(),
            )),
        },
        other => Err(cannot(format!(
            "Values in v:2 index key pattern cannot be of type {}",
            other.type_of().name()
        ))),
    }
}

/// Fails with code 67 if a path has an empty component or one that starts with `$`.
pub(super) fn check_path(name: &str) -> Result<(), Error> {
    if name.is_empty() || name.split('.').any(str::is_empty) {
        return Err(cannot(
            "Index keys cannot contain an empty field.".to_owned(),
        ));
    }
    // The fields of a DBRef are allowed below another field.
    let is_reference = |part: &str| matches!(part, "$ref" | "$id" | "$db");
    let mut parts = name.split('.').enumerate();
    if parts.any(|(depth, part)| part.starts_with('$') && (depth == 0 || !is_reference(part))) {
        return Err(cannot(format!(
            "Index key contains an illegal field name '{name}'"
        )));
    }
    Ok(())
}
