//! Collections and indexes before they are published.

use std::sync::Arc;

use windrow_document::DocumentBuf;
use windrow_fold::Position;
use windrow_index::Definition;
use windrow_storage::RowChange;

use crate::catalog::namespace::Namespace;
use crate::catalog::rows::{self, CollectionRow, FoldedRow};
use crate::collection::Collection;
use crate::core::Core;
use crate::error::Error;
use crate::ids::{CollectionUuid, NextId};
use crate::index::Index;
use crate::rules::id_index_definition;
use crate::state::IndexState;

/// Creates a collection with its index on `_id`, only in memory. It follows the log after `since`.
pub(crate) fn new_collection(
    core: &Arc<Core>,
    namespace: &Namespace,
    options: DocumentBuf,
    since: Position,
) -> Result<Arc<Collection>, Error> {
    let definition = id_index_definition(options.as_document())?;
    let id = core.take_collection_id();
    let row = CollectionRow {
        namespace: namespace.clone(),
        uuid: random_uuid(core.options.random),
        options,
        records: core.take_map_id(),
    };
    let folded = FoldedRow {
        position: since,
        ..FoldedRow::default()
    };
    let indexes = vec![new_index(core, definition, since)];
    Ok(Collection::new(
        id,
        row,
        folded,
        Arc::default(),
        indexes,
        core,
    ))
}

/// Creates an index of an empty collection, which is ready at once.
pub(crate) fn new_index(core: &Core, definition: Definition, since: Position) -> IndexState {
    let (map, definition) = (core.take_map_id(), Arc::new(definition));
    let index = Index::new(map, definition, since);
    index.set_ready(Position::ZERO);
    IndexState {
        index: Arc::new(index),
        sections: Arc::default(),
        tombstone_ranges: Arc::default(),
    }
}

/// Returns the catalog changes that add a new collection and its indexes.
pub(crate) fn rows_of(core: &Core, collection: &Collection) -> Vec<RowChange> {
    let state = collection.state();
    let folded = FoldedRow {
        position: state.active.start(),
        ..FoldedRow::default()
    };
    let mut changes = collection.row().put(collection.id);
    changes.push(folded.put(collection.id));
    let indexes = state.indexes.iter().map(|it| &it.index);
    changes.extend(indexes.flat_map(|index| index.row().put(collection.id, index.map)));
    changes.push(rows::put_next_id(core.next_id()));
    changes
}

/// Returns the catalog changes that remove such a collection again.
pub(crate) fn deletions_of(core: &Core, collection: &Collection) -> Vec<RowChange> {
    let mut changes = rows_of(core, collection);
    changes.retain(|row| row.key != rows::put_next_id(NextId::FIRST).key);
    let removed = changes.into_iter().map(|row| RowChange::delete(row.key));
    removed.collect()
}

/// Returns a random UUID (version 4).
pub(crate) fn random_uuid(random: fn(&mut [u8])) -> CollectionUuid {
    let mut uuid = [0; 16];
    random(&mut uuid);
    uuid[6] = uuid[6] & 0x0F | 0x40;
    uuid[8] = uuid[8] & 0x3F | 0x80;
    CollectionUuid(uuid)
}
