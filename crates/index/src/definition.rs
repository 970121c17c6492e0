//! An index definition.

use std::sync::Arc;

use windrow_document::path::Path;
use windrow_document::{Collation, Document, DocumentBuf, Value, ValueRef, key};
use windrow_geo::Cells;
use windrow_mql::filter::Filter;
use windrow_text::{Language, TextVersion};

use crate::paths::{Wildcard, is_within};

/// The name of the index on `_id`, where a clustered collection has not given its own.
pub const OF_IDS: &str = "_id_";

/// What an index is. Immutable once made.
#[derive(Clone, Debug)]
pub struct Definition {
    pub name: String,
    /// The parts of a key, in order. A text index has its term as one part of kind `Text`.
    pub fields: Vec<KeyField>,
    pub unique: bool,
    /// New doubles are refused, as in a unique index; those that were there stay.
    pub prepare_unique: bool,
    /// Documents that have none of the fields contribute nothing.
    pub sparse: bool,
    /// Kept up to date, but not used by queries.
    pub hidden: bool,
    /// It is the index on `_id` of a clustered collection: its entries carry the documents.
    pub clustered: bool,
    /// Only documents that match contribute.
    pub partial: Option<Filter>,
    /// How strings are compared: their sort keys stand in keys; None: the strings themselves.
    pub collation: Option<Arc<Collation>>,
    /// How many seconds after the dates in its field documents expire.
    pub expire_after_seconds: Option<i64>,
    pub text: Option<TextDefinition>,
    pub geo: Option<GeoDefinition>,
    /// Which paths it has, where it has those of all fields.
    pub wildcard: Option<Wildcard>,
    /// The specification in its normal form, as `listIndexes` shows it.
    pub specification: DocumentBuf,
}

/// One part of a key.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyField {
    pub path: Path,
    pub kind: KeyKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    Ascending,
    Descending,
    /// The hash of the value.
    Hashed,
    /// The terms of the fields of [`TextDefinition`].
    Text,
    /// The cells of the sphere that hold a shape.
    Sphere,
    /// The square of the plane that holds a point.
    Plane,
}

impl KeyKind {
    /// Whether a key holds the values themselves, in their order.
    pub fn is_plain(self) -> bool {
        matches!(self, KeyKind::Ascending | KeyKind::Descending)
    }

    pub fn is_geo(self) -> bool {
        matches!(self, KeyKind::Sphere | KeyKind::Plane)
    }
}

/// What is particular to an index of places.
#[derive(Clone, Debug, PartialEq)]
pub struct GeoDefinition {
    pub cells: Cells,
    /// That of a `2dsphere` index: 1 holds documents without places too, and single shapes only.
    pub version: i32,
}

/// What is particular to a text index.
#[derive(Clone, Debug)]
pub struct TextDefinition {
    /// The indexed fields with their weights; for `$**` see `wildcard_weight`.
    pub fields: Vec<TextField>,
    /// The weight of every string that no field names, where the index has `$**`.
    pub wildcard_weight: Option<f64>,
    pub default_language: Language,
    /// The field that names a document's language.
    pub language_override: String,
    pub version: TextVersion,
}

#[derive(Clone, Debug, PartialEq)]
pub struct TextField {
    pub path: Path,
    pub weight: f64,
}

impl Definition {
    /// The index that every collection has. It compares as the collection does.
    pub fn of_ids(collation: Option<Arc<Collation>>) -> Definition {
        let mut specification =
            windrow_document::doc! { "v": 2, "key": { "_id": 1 }, "name": OF_IDS };
        if let Some(collation) = &collation {
            specification.push("collation", collation.specification());
        }
        Definition {
            name: OF_IDS.to_owned(),
            fields: vec![KeyField {
                path: Path::parse("_id"),
                kind: KeyKind::Ascending,
            }],
            unique: true,
            prepare_unique: false,
            sparse: false,
            hidden: false,
            clustered: false,
            partial: None,
            collation,
            expire_after_seconds: None,
            text: None,
            geo: None,
            wildcard: None,
            specification,
        }
    }

    /// The index on `_id` by which a clustered collection is kept.
    pub fn clustered(name: &str, collation: Option<Arc<Collation>>) -> Definition {
        let of_ids = Definition::of_ids(collation);
        let mut specification = windrow_document::doc! {
            "v": 2, "key": { "_id": 1 }, "name": name, "unique": true, "clustered": true,
        };
        if let Some(collation) = of_ids.specification.get("collation") {
            specification.push("collation", collation);
        }
        Definition {
            name: name.to_owned(),
            clustered: true,
            specification,
            ..of_ids
        }
    }

    /// Whether writers must not bring a key that another document has.
    pub fn refuses_doubles(&self) -> bool {
        self.unique || self.prepare_unique
    }

    /// Whether it is the index on `_id`, ascending, that every collection has.
    pub fn is_of_ids(&self) -> bool {
        self.clustered || self.name == OF_IDS
    }

    pub fn is_text(&self) -> bool {
        self.text.is_some()
    }

    /// Whether its keys are the values of its paths as they stand in documents.
    pub fn has_plain_keys(&self) -> bool {
        let is_plain = self.fields.iter().all(|field| field.kind.is_plain());
        is_plain && self.collation.is_none() && !self.is_wildcard()
    }

    pub fn is_wildcard(&self) -> bool {
        self.wildcard.is_some()
    }

    /// Whether a path has a number, which a document may take for a place in an array or for a name: of one
    /// that takes it for both no entries can be made.
    pub fn has_places(&self) -> bool {
        let has_place = |path: &Path| path.components().iter().any(|part| part.index().is_some());
        self.fields.iter().any(|field| has_place(&field.path))
    }

    /// The key of an index with one ascending field.
    pub fn append_only_value(&self, bytes: &mut Vec<u8>, value: ValueRef<'_>) {
        key::append_with_collation(bytes, value, false, self.collation.as_deref());
    }

    /// Appends one value of a key, as [`key::append_component`] does; sort keys of a collation have no
    /// shape, since they are not read back.
    pub(crate) fn append_part(
        &self,
        bytes: &mut Vec<u8>,
        shape: &mut Vec<u8>,
        ordinal: u32,
        value: ValueRef<'_>,
        descending: bool,
    ) -> u32 {
        match self.collation.as_deref() {
            None => key::append_component(bytes, shape, ordinal, value, descending),
            collation => {
                key::append_with_collation(bytes, value, descending, collation);
                ordinal
            }
        }
    }

    /// Whether a document's entries may depend on what it has at the top under this name. A name with dots
    /// counts as the path that it looks like: indexes of words take it for that.
    pub fn reads(&self, name: &str) -> bool {
        let reads = |path: &str| is_within(path, name) || is_within(name, path);
        let has_dots = name.contains('.');
        let leads = |path: &Path| match path.components().first() {
            Some(first) if !has_dots => first.name() == name,
            _ => reads(&path.to_string()),
        };
        let wildcard = self.wildcard.as_ref().is_some_and(|paths| match paths {
            Wildcard::Only(list) => list.iter().any(|path| reads(path)),
            Wildcard::Without(_) => true,
        });
        let text = self.text.as_ref().is_some_and(|text| {
            let mut fields = text.fields.iter();
            text.wildcard_weight.is_some()
                || reads(&text.language_override)
                || fields.any(|field| leads(&field.path))
        });
        let partial = self.partial.as_ref().is_some_and(|filter| {
            let read = filter.dependencies();
            read.whole || read.paths.iter().any(|path| reads(path))
        });
        let mut fields = self.fields.iter();
        wildcard || text || partial || fields.any(|field| leads(&field.path))
    }

    /// The specification with one option put in, changed, or (None) taken out.
    pub fn specification_with(&self, option: &str, value: Option<Value>) -> DocumentBuf {
        let mut changed = DocumentBuf::new();
        for (name, old) in self.specification.iter() {
            match &value {
                _ if name != option => changed.push(name, old),
                Some(value) => changed.push(name, value.clone()),
                None => {}
            }
        }
        match value {
            Some(value) if changed.get(option).is_none() => changed.push(option, value),
            _ => {}
        }
        changed
    }

    /// The `key` document of the specification, which every definition has.
    pub fn key_pattern(&self) -> Document<'_> {
        let key = self.specification.get("key");
        let key = key.and_then(ValueRef::as_document);
        debug_assert!(key.is_some(), "{}", self.specification);
        key.unwrap_or(Document::EMPTY)
    }
}
