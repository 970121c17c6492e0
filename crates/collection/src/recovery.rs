//! Opens an engine: collections and indexes from the catalog, tails from the log.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;
use windrow_document::DocumentBuf;
use windrow_fold::sections::Sections;
use windrow_fold::{Direction, Section};
use windrow_index::Definition;
use windrow_storage::{Position, Storage, StorageError};

use crate::catalog::rows::{self, CollectionRow, FoldedRow, IndexRow};
use crate::collection::Collection;
use crate::collections::Collections;
use crate::core::Core;
use crate::error::{Error, undecodable};
use crate::generation::BEHIND_ALL;
use crate::ids::{CollectionId, MapId};
use crate::index::Index;
use crate::new_collection;
use crate::options::EngineOptions;
use crate::record;
use crate::record::net::net;
use crate::record::statements;
use crate::record::transaction::{DataRecord, Origin};
use crate::retries;
use crate::rules::id_index_definition;
use crate::state::IndexState;

pub(crate) type SectionsByMap = HashMap<MapId, Vec<Arc<Section>>>;

/// The state of a database after its log was replayed.
pub(crate) struct RecoveredState {
    pub collections: Collections,
    /// The collections that transactions in the log have written to.
    pub committed: HashSet<CollectionId>,
}

/// Opens everything in the catalog, then replays the log after the fold position.
pub(crate) fn recover(storage: Storage, options: EngineOptions) -> Result<RecoveredState, Error> {
    let next_id = rows::next_id(&storage.catalog)?;
    let folded = rows::fold_position(&storage.catalog)?;
    let core = Arc::new(Core::new(storage, options, next_id));
    core.retired_names.load(&core.storage.catalog)?;
    core.restore_history();
    let mut sections = open_sections(&core)?;
    // There is none before the first fold with recorded results.
    for section in sections.remove(&retries::MAP).unwrap_or_default() {
        retries::read(&core.retries, &section)?;
    }
    core.storage.retain_runs(core.runs())?;
    let collections = Collections::new(core.clone());
    for (id, row) in CollectionRow::all(&core.storage.catalog)? {
        open_collection(&collections, id, row, &mut sections)?;
    }
    let committed = replay(&collections, folded)?;
    if !collections.core.storage.is_following() {
        settle_creations(&collections, &committed)?;
    }
    for collection in collections.all() {
        record_largest_id(&core, &collection)?;
    }
    core.record_stored(collections.bytes_raw());
    Ok(RecoveredState {
        collections,
        committed,
    })
}

fn open_sections(core: &Core) -> Result<SectionsByMap, Error> {
    let mut sections = SectionsByMap::new();
    for rows::MapSection { map, descriptor } in rows::all_sections(&core.storage.catalog)? {
        let section = core.open_section(descriptor)?;
        sections.entry(map).or_default().push(section);
    }
    Ok(sections)
}

/// Opens a collection of the catalog. `sections` are those of its maps.
pub(crate) fn open_collection(
    collections: &Collections,
    id: CollectionId,
    row: CollectionRow,
    sections: &mut SectionsByMap,
) -> Result<Arc<Collection>, Error> {
    let core = &collections.core;
    // A map that was never folded has no sections.
    let mut take = |map| Arc::new(Sections::new(sections.remove(&map).unwrap_or_default()));
    let records = take(row.records);
    let mut indexes = Vec::new();
    for (map, index) in IndexRow::read_all(id, &core.storage.catalog)? {
        let definition = definition_of(&row.options, &index, indexes.is_empty())?;
        indexes.push(index_state(map, definition, &index, take(map)));
    }
    let folded = FoldedRow::get(id, &core.storage.catalog)?;
    let collection = Collection::new(id, row, folded, records, indexes, core);
    collections.insert(&collection);
    Ok(collection)
}

/// Returns the state of an index of the catalog.
pub(crate) fn index_state(
    map: MapId,
    definition: Definition,
    row: &IndexRow,
    sections: Arc<Sections>,
) -> IndexState {
    let index = Index::new(map, Arc::new(definition), row.since);
    if row.ready {
        index.set_ready(Position::ZERO);
    }
    IndexState {
        index: Arc::new(index),
        sections,
        tombstone_ranges: Arc::default(),
    }
}

/// Returns the definition of an index. The first index of a collection is the one on `_id`.
pub(crate) fn definition_of(
    options: &DocumentBuf,
    row: &IndexRow,
    is_first: bool,
) -> Result<Definition, Error> {
    if is_first {
        id_index_definition(options.as_document())
    } else {
        Ok(Definition::parse(row.specification.as_document())?)
    }
}

/// Adds commits to the tails. Returns the collections that transactions have written to.
fn replay(collections: &Collections, folded: Position) -> Result<HashSet<CollectionId>, Error> {
    let mut committed = HashSet::new();
    let log = &collections.core.storage.log;
    // If the log starts later, commits are missing, which is an error.
    for record in log.read_from(folded.next()) {
        let record = record?;
        let position = record.position;
        let data = DataRecord::read(Bytes::from(record.payload));
        let data = data.ok_or_else(|| undecodable(position))?;
        record_committed(&mut committed, position, &data)?;
        apply(collections, position, record.millis, data)?;
    }
    Ok(committed)
}

/// Adds the collections that a transaction has written to.
pub(crate) fn record_committed(
    committed: &mut HashSet<CollectionId>,
    position: Position,
    data: &DataRecord,
) -> Result<(), Error> {
    if let DataRecord::Transaction(transaction) = data {
        for part in &transaction.parts {
            let id = record::collection_of(part);
            committed.insert(id.ok_or_else(|| undecodable(position))?);
        }
    }
    Ok(())
}

/// Adds a record of the log to the tails and to the recorded statements. Skips commits that are
/// folded already or belong to dropped collections.
pub(crate) fn apply(
    collections: &Collections,
    position: Position,
    millis: u64,
    data: DataRecord,
) -> Result<(), Error> {
    match data {
        DataRecord::Commit(payload) => {
            if statements::has_statements(&payload) {
                record_statements(collections, position, millis, &payload)?;
            }
            apply_part(collections, position, payload)
        }
        DataRecord::Transaction(transaction) => {
            let mut parts = transaction.parts.iter();
            if let Some(part) = parts.find(|part| statements::has_statements(part)) {
                record_statements(collections, position, millis, part)?;
            } else if transaction.origin != Origin::NO_SESSION {
                let retries = &collections.core.retries;
                retries.record_committed(transaction.origin, position, millis);
            }
            let mut parts = transaction.parts.into_iter();
            parts.try_for_each(|part| apply_part(collections, position, part))
        }
    }
}

/// Drops collections of transactions that did not commit, and keeps the others. `committed` are the
/// collections to which transactions in the log have written.
pub(crate) fn settle_creations(
    collections: &Collections,
    committed: &HashSet<CollectionId>,
) -> Result<(), Error> {
    let catalog = &collections.core.storage.catalog;
    let mut changes = Vec::new();
    for id in rows::creations(catalog)? {
        changes.push(rows::delete_creation(id));
        let collection = collections.by_id(id);
        if let Some(collection) = collection.filter(|_| !committed.contains(&id)) {
            changes.extend(new_collection::deletions_of(&collections.core, &collection));
            collections.remove(&collection);
        }
    }
    if changes.is_empty() {
        Ok(())
    } else {
        Ok(catalog.change(changes, |_| {}).map(drop)?)
    }
}

/// Adds the recorded statement results of a commit, also for dropped collections.
fn record_statements(
    collections: &Collections,
    position: Position,
    millis: u64,
    payload: &Bytes,
) -> Result<(), Error> {
    let decoded = record::decode(position, payload.clone());
    let (commit, _) = decoded.ok_or_else(|| undecodable(position))?;
    let record = statements::read(payload, &commit.operations);
    let record = record.ok().flatten().ok_or_else(|| undecodable(position))?;
    collections.core.retries.record(record, position, millis);
    Ok(())
}

/// Adds a commit to one collection, or a transaction's part in it.
fn apply_part(collections: &Collections, position: Position, payload: Bytes) -> Result<(), Error> {
    let id = record::collection_of(&payload).ok_or_else(|| undecodable(position))?;
    let Some(collection) = collections.by_id(id) else {
        return Ok(());
    };
    if position <= collection.state().active.newest() {
        return Ok(());
    }
    let decoded = record::decode(position, payload);
    let (mut commit, effect) = decoded.ok_or_else(|| undecodable(position))?;
    commit.operations = net(commit.operations);
    collection.publish(commit, effect);
    Ok(())
}

/// Records the largest `_id`, so that larger ones need no lookup. If the index is damaged there,
/// all `_id`s are looked up, and the index can be rebuilt.
pub(crate) fn record_largest_id(core: &Core, collection: &Collection) -> Result<(), Error> {
    let largest = || {
        let mut cursor = collection.reader()?.entries(0, Direction::Backward)?;
        Ok(cursor.next()?.then(|| cursor.key().to_vec()))
    };
    let largest = match largest() {
        Err(error @ Error::Storage(StorageError::Damaged { .. })) => {
            (core.options.on_problem)("the largest _id cannot be read", &error);
            Some(BEHIND_ALL.to_vec())
        }
        read => read?,
    };
    if let Some(largest) = largest {
        collection.claims.record_stored(&largest);
    }
    Ok(())
}
