//! Index definitions: the parsed form of MongoDB's index specifications.

use std::sync::Arc;

use windrow_document::path::Path;
use windrow_document::{Collation, Document, DocumentBuf, Value, ValueRef, key};
use windrow_geo::Cells;
use windrow_mql::filter::Filter;
use windrow_text::{Language, TextVersion};

use crate::paths::{Wildcard, is_within};
use crate::search::{self, SearchDefinition};

/// The name of the index on `_id`. A clustered collection may give its index another name.
pub const ID_INDEX_NAME: &str = "_id_";

/// A parsed index specification. A change of an index, such as `collMod`, creates a new definition.
#[derive(Clone, Debug)]
pub struct Definition {
    /// The name, unique within the collection.
    pub name: String,
    /// The parts of a key in order. All text fields together are one part of kind
    /// [`KeyKind::Text`]: the term. A wildcard is two parts: the path and the value.
    pub fields: Vec<KeyField>,
    /// No two documents may have the same key.
    pub unique: bool,
    /// The option `prepareUnique`: new duplicate keys are rejected as in a unique index, existing
    /// ones may remain.
    pub prepare_unique: bool,
    /// Documents without any of the fields have no entries.
    pub sparse: bool,
    /// The index is maintained, but queries do not use it.
    pub hidden: bool,
    /// The index is the one on `_id` of a clustered collection: its entries contain the documents.
    pub clustered: bool,
    /// The filter of a partial index: only matching documents have entries.
    pub partial: Option<Filter>,
    /// If set, keys contain the sort keys of strings. If `None`, keys contain the strings
    /// themselves.
    pub collation: Option<Arc<Collation>>,
    /// The option `expireAfterSeconds` of a TTL index: documents expire this number of seconds
    /// after the date in the indexed field.
    pub expire_after_seconds: Option<i64>,
    /// Set for text indexes.
    pub text: Option<TextDefinition>,
    /// Set for `2dsphere` and `2d` indexes.
    pub geo: Option<GeoDefinition>,
    /// Set for wildcard indexes: the paths that the index covers.
    pub wildcard: Option<Wildcard>,
    /// Set for search indexes, which have no [`fields`](Self::fields). Only `$search` uses them.
    pub search: Option<Arc<SearchDefinition>>,
    /// The specification in its normal form, which `listIndexes` returns.
    pub specification: DocumentBuf,
}

/// One part of a key.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyField {
    /// The path of the value in documents.
    pub path: Path,
    /// What the key contains of the value.
    pub kind: KeyKind,
}

/// What a part of a key contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// The value, in ascending order.
    Ascending,
    /// The value, in descending order.
    Descending,
    /// The hash of the value.
    Hashed,
    /// A term of the fields of [`TextDefinition`].
    Text,
    /// A cell of the sphere that intersects a shape (`2dsphere`).
    Sphere,
    /// The square of the plane that contains a point (`2d`).
    Plane,
}

impl KeyKind {
    /// Returns `true` if the key contains the value itself, in its order.
    pub fn is_plain(self) -> bool {
        matches!(self, KeyKind::Ascending | KeyKind::Descending)
    }

    /// Returns `true` for the geospatial kinds.
    pub fn is_geo(self) -> bool {
        matches!(self, KeyKind::Sphere | KeyKind::Plane)
    }
}

/// The options of a geospatial index.
#[derive(Clone, Debug, PartialEq)]
pub struct GeoDefinition {
    /// Maps shapes to keys.
    pub cells: Cells,
    /// The `2dsphereIndexVersion`, or 0 for a `2d` index. Version 1 has entries of documents
    /// without shapes, too, and stores single geometries only.
    pub version: i32,
}

/// The options of a text index.
#[derive(Clone, Debug)]
pub struct TextDefinition {
    /// The indexed fields, except for `$**`.
    pub fields: Vec<TextField>,
    /// The weight of `$**` in the specification. `None` if the index does not have `$**`. It is
    /// shown, but strings that no field names are scored with weight 1, as in MongoDB.
    pub wildcard_weight: Option<f64>,
    /// The language of documents that name none.
    pub default_language: Language,
    /// The name of the field that contains the language of a document or subdocument.
    pub language_override: String,
    /// The `textIndexVersion`.
    pub version: TextVersion,
    /// `true` if the index stores the positions of words.
    pub positions: bool,
}

/// An indexed field of a text index.
#[derive(Clone, Debug, PartialEq)]
pub struct TextField {
    /// The path of the field.
    pub path: Path,
    /// The weight: a whole number from 1 to 99,999.
    pub weight: f64,
}

impl Definition {
    /// Returns the index on `_id`, which every collection has. It uses the collation of the
    /// collection.
    pub fn new_id_index(collation: Option<Arc<Collation>>) -> Definition {
        let mut specification =
            windrow_document::doc! { "v": 2, "key": { "_id": 1 }, "name": ID_INDEX_NAME };
        if let Some(collation) = &collation {
            specification.push("collation", collation.specification());
        }
        Definition {
            name: ID_INDEX_NAME.to_owned(),
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
            search: None,
            specification,
        }
    }

    /// Returns the index on `_id` of a clustered collection, which contains its documents.
    pub fn clustered(name: &str, collation: Option<Arc<Collation>>) -> Definition {
        let plain = Definition::new_id_index(collation);
        let mut specification = windrow_document::doc! {
            "v": 2, "key": { "_id": 1 }, "name": name, "unique": true, "clustered": true,
        };
        if let Some(collation) = plain.specification.get("collation") {
            specification.push("collation", collation);
        }
        Definition {
            name: name.to_owned(),
            clustered: true,
            specification,
            ..plain
        }
    }

    /// Returns a search index. Its specification begins as those of other indexes do.
    pub fn from_search(search: SearchDefinition) -> Definition {
        let (prefix, version) = (search::NAME_PREFIX, search.version);
        let name = format!("{prefix}{}.{version}", search.name);
        let option = windrow_document::doc! {
            "id": (search.id), "name": search.name.as_str(), "version": search.version,
            "createdAt": (ValueRef::DateTime(search.created_at)),
            "analysis": search.analysis,
            "definition": search.source.clone(),
        };
        let mut specification = windrow_document::doc! {
            "v": 2, "key": { "_search": "search" }, "name": name.as_str(),
        };
        specification.push(search::OPTION, option);
        let search = Some(Arc::new(search));
        Definition {
            name,
            fields: Vec::new(),
            unique: false,
            sparse: true,
            search,
            specification,
            ..Definition::new_id_index(None)
        }
    }

    /// Returns `true` if a write must fail if it adds a key that another document has.
    pub fn enforces_uniqueness(&self) -> bool {
        self.unique || self.prepare_unique
    }

    /// Returns `true` if this is the ascending index on `_id` that every collection has.
    pub fn is_of_ids(&self) -> bool {
        self.clustered || self.name == ID_INDEX_NAME
    }

    /// Returns `true` for a text index.
    pub fn is_text(&self) -> bool {
        self.text.is_some()
    }

    /// Returns `true` if the keys are the values at the paths of the fields, without hashes, sort
    /// keys of a collation, terms or cells.
    pub fn has_plain_keys(&self) -> bool {
        let is_plain = self.fields.iter().all(|field| field.kind.is_plain());
        is_plain && self.collation.is_none() && !self.is_wildcard() && !self.is_search()
    }

    /// Returns `true` for a wildcard index.
    pub fn is_wildcard(&self) -> bool {
        self.wildcard.is_some()
    }

    /// Returns `true` for a search index. Clients do not see it among the other indexes.
    pub fn is_search(&self) -> bool {
        self.search.is_some()
    }

    /// Returns `true` if a path has a numeric component. It may be a position in an array or the
    /// name of a field. If it is both in a document, [`Definition::entries`] fails with code 16746.
    pub fn has_places(&self) -> bool {
        let has_place = |path: &Path| path.components().iter().any(|part| part.index().is_some());
        self.fields.iter().any(|field| has_place(&field.path))
    }

    /// Appends the key of an index with one ascending field.
    pub fn append_only_value(&self, bytes: &mut Vec<u8>, value: ValueRef<'_>) {
        key::append_with_collation(bytes, value, false, self.collation.as_deref());
    }

    /// Appends one value to a key and its shape to `shape`, and returns the next ordinal, as
    /// [`key::append_component`] does. Under a collation nothing is appended to `shape`: a value
    /// cannot be restored from its sort key.
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

    /// Returns `true` if the entries of a document may depend on its top-level field `name`. If an
    /// update changes other fields only, the entries stay the same. A name with dots is treated as
    /// a path, since text indexes read such a field as one.
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
        let search = self.search.as_ref();
        let search = search.is_some_and(|search| search.reads(name));
        let mut fields = self.fields.iter();
        search || wildcard || text || partial || fields.any(|field| leads(&field.path))
    }

    /// Returns the specification with one option added or changed. If `value` is `None`, the option
    /// is removed.
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

    /// Returns the `key` document of the specification.
    pub fn key_pattern(&self) -> Document<'_> {
        let key = self.specification.get("key");
        let key = key.and_then(ValueRef::as_document);
        debug_assert!(key.is_some(), "{}", self.specification);
        key.unwrap_or(Document::EMPTY)
    }
}
