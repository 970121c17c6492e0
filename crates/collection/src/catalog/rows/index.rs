//! The rows of indexes.
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use std::sync::Arc;

use windrow_document::DocumentBuf;
use windrow_fold::Position;
use windrow_storage::{Catalog, RowChange, StorageError};

use super::pieces::{LongField, replacing};
use super::{INDEX, SPECIFICATION, damaged, key, number, numbers_of, read, row};
use crate::ids::{CollectionId, MapId};

/// The row of an index: its definition, and whether it can be read.
#[derive(Clone, Debug)]
pub struct IndexRow {
    pub specification: DocumentBuf,
    pub ready: bool,
    /// The log position from which on the index follows the log. Its build reads everything before.
    pub since: Position,
}

impl IndexRow {
    /// Returns the changes that write the rows.
    pub fn put(&self, collection: CollectionId, map: MapId) -> Vec<RowChange> {
        let mut value = DocumentBuf::new();
        let mut changes = specification_field(map).put(&mut value, &self.specification);
        value.push("ready", self.ready);
        value.push("since", self.since.0 as i64);
        changes.push(row(key(INDEX, &[collection.0, map.0]), value));
        changes
    }

    /// Returns the changes that replace the rows of `old`, which belong to the same index. Each key
    /// occurs once.
    pub fn replace(&self, old: &IndexRow, collection: CollectionId, map: MapId) -> Vec<RowChange> {
        replacing(self.put(collection, map), old.delete(collection, map))
    }

    /// Returns the changes that delete the rows.
    pub fn delete(&self, collection: CollectionId, map: MapId) -> Vec<RowChange> {
        let mut changes = specification_field(map).delete(&self.specification);
        changes.push(RowChange::delete(key(INDEX, &[collection.0, map.0])));
        changes
    }

    /// Decodes a row. Reads a specification that is stored outside the row from `catalog`.
    fn read(map: MapId, value: &[u8], catalog: &Catalog) -> Result<IndexRow, StorageError> {
        let document = read(value)?;
        let ready = document.get("ready");
        let ready = ready.ok_or_else(|| damaged("a row without 'ready'"))?;
        Ok(IndexRow {
            specification: specification_field(map).read(document, catalog)?,
            ready: ready.is_truthy(),
            since: Position(number(document, "since")?),
        })
    }

    /// Returns the row of an index, or `None` if there is no such index.
    pub fn get(
        collection: CollectionId,
        map: MapId,
        catalog: &Catalog,
    ) -> Result<Option<IndexRow>, StorageError> {
        let value = catalog.get(&key(INDEX, &[collection.0, map.0]));
        value
            .map(|value| IndexRow::read(map, &value, catalog))
            .transpose()
    }

    /// Returns the rows of the indexes of a collection. The first is the index on `_id`.
    pub fn read_all(
        collection: CollectionId,
        catalog: &Catalog,
    ) -> Result<Vec<(MapId, IndexRow)>, StorageError> {
        let rows = catalog.scan(&key(INDEX, &[collection.0])).into_iter();
        let read = |(key, value): (Vec<u8>, Arc<[u8]>)| {
            let [_, map] = numbers_of(&key)?;
            let map = MapId(map);
            Ok((map, IndexRow::read(map, &value, catalog)?))
        };
        rows.map(read).collect()
    }
}

fn specification_field(map: MapId) -> LongField {
    LongField {
        name: "spec",
        kind: SPECIFICATION,
        id: map.0,
    }
}
