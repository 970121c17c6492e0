//! An index definition.

use windrow_document::path::Path;
use windrow_document::{Document, DocumentBuf};
use windrow_mql::filter::Filter;
use windrow_text::{Language, TextVersion};

/// What an index is. Immutable once made.
#[derive(Clone, Debug)]
pub struct Definition {
    pub name: String,
    /// The parts of a key, in order. A text index has its term as one part of kind `Text`.
    pub fields: Vec<KeyField>,
    pub unique: bool,
    /// Documents that have none of the fields contribute nothing.
    pub sparse: bool,
    /// Kept up to date, but not used by queries.
    pub hidden: bool,
    /// Only documents that match contribute.
    pub partial: Option<Filter>,
    pub text: Option<TextDefinition>,
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
    /// The terms of the fields of [`TextDefinition`].
    Text,
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
    /// The index that every collection has.
    pub fn of_ids() -> Definition {
        let specification = windrow_document::doc! { "v": 2, "key": { "_id": 1 }, "name": "_id_" };
        Definition {
            name: "_id_".to_owned(),
            fields: vec![KeyField {
                path: Path::parse("_id"),
                kind: KeyKind::Ascending,
            }],
            unique: true,
            sparse: false,
            hidden: false,
            partial: None,
            text: None,
            specification,
        }
    }

    /// Whether it is the index on `_id`, ascending.
    pub fn is_of_ids(&self) -> bool {
        self.name == "_id_"
    }

    pub fn is_text(&self) -> bool {
        self.text.is_some()
    }

    /// The `key` document of the specification.
    pub fn key_pattern(&self) -> Document<'_> {
        self.specification
            .get("key")
            .and_then(|key| key.as_document())
            .unwrap_or(Document::EMPTY)
    }
}
