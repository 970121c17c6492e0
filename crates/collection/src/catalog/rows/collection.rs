//! The rows of collections: definitions, names, and how far they are folded.
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use std::sync::Arc;

use windrow_document::{Document, DocumentBuf, ValueRef, doc};
use windrow_fold::{Position, RecordId};
use windrow_storage::{Catalog, RowChange, StorageError};

use super::pieces::{LongField, replacing};
use super::{
    COLLECTION, CREATION, FOLDED, NAMED, OPTIONS, damaged, key, number, numbers_of, read, row, text,
};
use crate::catalog::namespace::Namespace;
use crate::ids::{CollectionId, CollectionUuid, MapId};

/// The row of a collection.
#[derive(Clone, Debug)]
pub struct CollectionRow {
    pub namespace: Namespace,
    pub uuid: CollectionUuid,
    pub options: DocumentBuf,
    /// The map of documents by record id.
    pub records: MapId,
}

impl CollectionRow {
    /// Returns the changes that write the rows.
    pub fn put(&self, id: CollectionId) -> Vec<RowChange> {
        let mut value = self.named().document();
        value.push("records", self.records.0 as i64);
        let mut changes = options_field(id).put(&mut value, &self.options);
        changes.push(row(key(COLLECTION, &[id.0]), value));
        changes
    }

    /// Returns the row of the collection's current name.
    pub fn named(&self) -> NamedRow {
        NamedRow {
            namespace: self.namespace.clone(),
            uuid: self.uuid,
        }
    }

    /// Returns the changes that replace the rows of `old`, which belong to the same collection.
    /// Each key occurs once.
    pub fn replace(&self, old: &CollectionRow, id: CollectionId) -> Vec<RowChange> {
        replacing(self.put(id), old.delete(id))
    }

    /// Returns the changes that delete the rows.
    pub fn delete(&self, id: CollectionId) -> Vec<RowChange> {
        let mut changes = options_field(id).delete(&self.options);
        changes.push(RowChange::delete(key(COLLECTION, &[id.0])));
        changes
    }

    /// Decodes a row. Reads options that are stored outside the row from `catalog`.
    fn read(
        id: CollectionId,
        value: &[u8],
        catalog: &Catalog,
    ) -> Result<CollectionRow, StorageError> {
        let document = read(value)?;
        let NamedRow { namespace, uuid } = NamedRow::from_document(document)?;
        Ok(CollectionRow {
            namespace,
            uuid,
            options: options_field(id).read(document, catalog)?,
            records: MapId(number(document, "records")?),
        })
    }

    /// Returns the row of a collection, or `None` if there is no such collection.
    pub fn get(id: CollectionId, catalog: &Catalog) -> Result<Option<CollectionRow>, StorageError> {
        let value = catalog.get(&key(COLLECTION, &[id.0]));
        value
            .map(|value| CollectionRow::read(id, &value, catalog))
            .transpose()
    }

    /// Returns the rows of all collections.
    pub fn all(catalog: &Catalog) -> Result<Vec<(CollectionId, CollectionRow)>, StorageError> {
        let rows = catalog.scan(&[COLLECTION]).into_iter();
        let read = |(key, value): (Vec<u8>, Arc<[u8]>)| {
            let [id] = numbers_of(&key)?;
            let id = CollectionId(id);
            Ok((id, CollectionRow::read(id, &value, catalog)?))
        };
        rows.map(read).collect()
    }
}

fn options_field(id: CollectionId) -> LongField {
    LongField {
        name: "options",
        kind: OPTIONS,
        id: id.0,
    }
}

/// The fold state of a collection: the folded position, and the numbers of documents and bytes at
/// that position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FoldedRow {
    pub position: Position,
    pub count: i64,
    pub bytes: i64,
    pub next_record: RecordId,
}

impl FoldedRow {
    /// Returns the change that writes the row.
    pub fn put(&self, collection: CollectionId) -> RowChange {
        let value = doc! {
            "position": self.position.0 as i64, "count": self.count, "bytes": self.bytes,
            "next": self.next_record.0 as i64,
        };
        row(key(FOLDED, &[collection.0]), value)
    }

    fn read(value: &[u8]) -> Result<FoldedRow, StorageError> {
        let document = read(value)?;
        Ok(FoldedRow {
            position: Position(number(document, "position")?),
            count: number(document, "count")? as i64,
            bytes: number(document, "bytes")? as i64,
            next_record: RecordId(number(document, "next")?),
        })
    }

    /// Returns the row of a collection. It is zero if the collection was never folded.
    pub fn get(collection: CollectionId, catalog: &Catalog) -> Result<FoldedRow, StorageError> {
        match catalog.get(&key(FOLDED, &[collection.0])) {
            Some(value) => FoldedRow::read(&value),
            None => Ok(FoldedRow::default()),
        }
    }

    /// Returns the change that deletes the row.
    pub fn delete(collection: CollectionId) -> RowChange {
        RowChange::delete(key(FOLDED, &[collection.0]))
    }
}

/// The current or a former name of a collection, and its UUID.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedRow {
    pub namespace: Namespace,
    pub uuid: CollectionUuid,
}

/// A former name of a collection.
pub struct FormerName {
    pub collection: CollectionId,
    /// The last position at which the collection had the name.
    pub until: Position,
    pub name: NamedRow,
}

impl NamedRow {
    /// Returns the row that records that the collection had this name up to a position.
    pub fn put(&self, collection: CollectionId, until: Position) -> RowChange {
        row(NamedRow::key(collection, until), self.document())
    }

    /// Returns the change that deletes the row of a name that the collection had up to a position.
    pub fn delete(collection: CollectionId, until: Position) -> RowChange {
        RowChange::delete(NamedRow::key(collection, until))
    }

    /// Returns the key of the row of a name that the collection had up to a position.
    pub fn key(collection: CollectionId, until: Position) -> Vec<u8> {
        key(NAMED, &[collection.0, until.0])
    }

    /// Returns the former names in the catalog.
    pub fn former(catalog: &Catalog) -> Result<Vec<FormerName>, StorageError> {
        let rows = catalog.scan(&[NAMED]).into_iter();
        let read = |(key, value): (Vec<u8>, Arc<[u8]>)| {
            let [collection, until] = numbers_of(&key)?;
            Ok(FormerName {
                collection: CollectionId(collection),
                until: Position(until),
                name: NamedRow::from_document(read(&value)?)?,
            })
        };
        rows.map(read).collect()
    }

    /// Returns the name as a document.
    pub fn document(&self) -> DocumentBuf {
        doc! {
            "db": self.namespace.database.as_str(), "coll": self.namespace.collection.as_str(),
            "uuid": (self.uuid.to_value()),
        }
    }

    /// Reads a name that [`document`](Self::document) has returned.
    pub fn from_document(document: Document<'_>) -> Result<NamedRow, StorageError> {
        Ok(NamedRow {
            namespace: Namespace {
                database: text(document, "db")?,
                collection: text(document, "coll")?,
            },
            uuid: uuid(document)?,
        })
    }
}

fn uuid(document: Document<'_>) -> Result<CollectionUuid, StorageError> {
    let found = match document.get("uuid") {
        Some(ValueRef::Binary { bytes, .. }) => bytes.first_chunk::<16>().copied(),
        _ => None,
    };
    let found = found.map(CollectionUuid);
    found.ok_or_else(|| damaged("a row without 'uuid'"))
}

/// Returns the row that marks a collection as being created by a transaction.
pub fn put_creation(collection: CollectionId) -> RowChange {
    RowChange::put(key(CREATION, &[collection.0]), Vec::new())
}

/// Returns the change that deletes that mark.
pub fn delete_creation(collection: CollectionId) -> RowChange {
    RowChange::delete(key(CREATION, &[collection.0]))
}

/// Returns the collections that transactions create, and may not have committed.
pub fn creations(catalog: &Catalog) -> Result<Vec<CollectionId>, StorageError> {
    let rows = catalog.scan(&[CREATION]).into_iter();
    rows.map(|(key, _)| {
        let [id] = numbers_of(&key)?;
        Ok(CollectionId(id))
    })
    .collect()
}
