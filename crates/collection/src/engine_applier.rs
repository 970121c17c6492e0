//! Follows the log of another server: applies its records to the collections in memory.
//!
//! The thread that follows is the only one that appends to the local log. For each record it
//! prepares a step, and the log runs the step before readers can use the record's position:
//!
//! - Commits enter the tails, as at a start (`recovery`).
//! - Catalog changes create, drop and rename collections, and add and remove indexes.
//!
//! Sections of folds and merges are adopted later, outside of the log: as soon as no open snapshot
//! is older than the change of the catalog. The other server did not know these snapshots, so its
//! new sections may lack versions that they see. Until then, the old sections and the tails contain
//! everything.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use windrow_fold::sections::Sections;
use windrow_fold::{Section, SectionDescriptor};
use windrow_storage::{
    Applier, Catalog, Content, FollowedRecord, Position, Publish, RunId, StorageError,
};

use crate::catalog::rows::{self, CollectionRow, FoldedRow, IndexRow, RowSubject};
use crate::collection::Collection;
use crate::collections::Collections;
use crate::core::Core;
use crate::dropped_collection::release_dropped;
use crate::error::{Error, undecodable};
use crate::ids::{CollectionId, MapId};
use crate::record::transaction::DataRecord;
use crate::recovery::{self, SectionsByMap};
use crate::retries;
use crate::state::{IndexState, State};

/// Applies the records of another server's log to an engine.
/// [`Engine::open_following`](crate::Engine::open_following) creates it.
pub struct EngineApplier {
    collections: Arc<Collections>,
    /// Collections to which transactions have written since the engine was opened.
    committed: HashSet<CollectionId>,
    /// Collections whose sections have changed in the catalog, and the position of the last change.
    pending: BTreeMap<CollectionId, Position>,
    /// The first error of a step in the log.
    failure: Arc<Mutex<Option<Error>>>,
}

impl EngineApplier {
    /// Begins to follow.
    pub(crate) fn new(
        collections: Arc<Collections>,
        committed: HashSet<CollectionId>,
    ) -> EngineApplier {
        EngineApplier {
            collections,
            committed,
            pending: BTreeMap::new(),
            failure: Arc::default(),
        }
    }

    /// Adopts the sections of other servers, except those that an open snapshot prevents. Call it
    /// after each group of records, and also if there are none for a while.
    pub fn adopt(&mut self) -> Result<(), Error> {
        let oldest = self.collections.core.oldest_position();
        // A later record of the log removes a missing run from the catalog.
        self.adopt_until(oldest).map(drop)
    }

    /// Adopts the sections of the collections that have not changed after `oldest`. Returns the
    /// error of a collection whose run is missing. Its sections can be adopted later.
    fn adopt_until(&mut self, oldest: Position) -> Result<Option<Error>, Error> {
        if let Some(error) = self.failure.lock().take() {
            return Err(error);
        }
        if self.pending.is_empty() {
            return Ok(None);
        }
        let core = &self.collections.core;
        let mut missing = None;
        let due: Vec<CollectionId> = self
            .pending
            .iter()
            .filter(|(_, position)| **position <= oldest)
            .map(|(id, _)| *id)
            .collect();
        if due.is_empty() {
            return Ok(None);
        }
        for id in due {
            let collection = self.collections.by_id(id);
            match collection.map_or(Ok(()), |it| adopt_sections(core, &it)) {
                Err(error @ Error::Storage(StorageError::RunDeleted { .. })) => {
                    missing = Some(error);
                    continue;
                }
                adopted => adopted?,
            }
            self.pending.remove(&id);
        }
        core.discard_postponed()?;
        core.record_stored(self.collections.bytes_raw());
        core.storage
            .drop_log_before(rows::fold_position(&core.storage.catalog)?.next())?;
        Ok(missing)
    }

    /// Adopts all sections, and returns the collections to which transactions have written. Called
    /// when the storage has taken over the log.
    ///
    /// # Errors
    /// Fails with `RunDeleted` if a run is missing.
    pub(crate) fn finish(mut self) -> Result<HashSet<CollectionId>, Error> {
        // Open snapshots see the old sections, which they hold.
        if let Some(missing) = self.adopt_until(Position::MAX)? {
            return Err(missing);
        }
        adopt_sessions(&self.collections.core)?;
        self.collections.core.discard_postponed()?;
        Ok(self.committed)
    }

    fn prepare_data(
        &mut self,
        position: Position,
        millis: u64,
        payload: Vec<u8>,
    ) -> Result<Publish, Error> {
        let data = DataRecord::read(Bytes::from(payload));
        let data = data.ok_or_else(|| undecodable(position))?;
        recovery::record_committed(&mut self.committed, position, &data)?;
        let (collections, failure) = (self.collections.clone(), self.failure.clone());
        Ok(Box::new(move |position| {
            if let Err(error) = recovery::apply(&collections, position, millis, data) {
                failure.lock().get_or_insert(error);
            }
        }))
    }

    fn prepare_catalog(&mut self, position: Position, payload: &[u8]) -> Result<Publish, Error> {
        let changed = Catalog::read_change(payload);
        let changed = changed.ok_or_else(|| undecodable(position))?;
        let mut affected = ChangeScope::default();
        for row in &changed {
            affected.add(&row.key);
        }
        for map in &affected.maps {
            let has_map = |it: &Arc<Collection>| {
                it.records_map == *map || it.all_indexes().iter().any(|index| index.map == *map)
            };
            let owner = self.collections.all().into_iter().find(has_map);
            if let Some(collection) = owner {
                self.pending.insert(collection.id, position);
            }
        }
        for id in affected.folded.iter().chain(&affected.collections) {
            self.pending.insert(*id, position);
        }
        let (collections, failure) = (self.collections.clone(), self.failure.clone());
        Ok(Box::new(move |position| {
            if let Err(error) = apply_change(&collections, &affected, position) {
                failure.lock().get_or_insert(error);
            }
        }))
    }
}

impl Applier for EngineApplier {
    fn prepare(&mut self, record: FollowedRecord) -> Result<Publish, StorageError> {
        let FollowedRecord {
            position, millis, ..
        } = record;
        let prepared = match record.content {
            Content::Data(payload) => self.prepare_data(position, millis, payload),
            Content::Catalog(payload) => self.prepare_catalog(position, &payload),
        };
        prepared.map_err(|error| match error {
            Error::Storage(error) => error,
            other => StorageError::Damaged {
                place: format!("record {position} of the log"),
                what: other.to_string(),
            },
        })
    }

    fn needs_after(&self, written: Position) -> Position {
        // Collections that are not adopted yet use what the log has removed since.
        let oldest = self.pending.values().min();
        oldest.map_or(written, |position| position.previous())
    }
}

/// The collections and maps that a catalog change affects.
#[derive(Default)]
struct ChangeScope {
    /// Collections whose own rows or index rows changed.
    collections: HashSet<CollectionId>,
    /// Maps whose sections changed.
    maps: HashSet<MapId>,
    /// Collections that were folded.
    folded: HashSet<CollectionId>,
    /// Shares of index builds were given or taken back.
    has_shares: bool,
    /// Names that collections had before were added or removed.
    has_former_names: bool,
    /// The log is retained for change streams from now on.
    retains_history: bool,
}

impl ChangeScope {
    /// Adds the subject of the row with this key.
    fn add(&mut self, key: &[u8]) {
        match RowSubject::from_key(key) {
            RowSubject::Collection(id) => {
                self.collections.insert(id);
            }
            RowSubject::Section(map) => {
                self.maps.insert(map);
            }
            RowSubject::Folded(id) => {
                self.folded.insert(id);
            }
            RowSubject::Share => self.has_shares = true,
            RowSubject::FormerName => self.has_former_names = true,
            RowSubject::History => self.retains_history = true,
            RowSubject::Other => {}
        }
    }
}

/// Makes a catalog change in memory. The catalog has its rows already. Called before a snapshot can
/// have its position.
fn apply_change(
    collections: &Collections,
    affected: &ChangeScope,
    position: Position,
) -> Result<(), Error> {
    let core = &collections.core;
    if affected.has_former_names {
        core.retired_names.load(&core.storage.catalog)?;
    }
    if affected.retains_history {
        core.restore_history();
    }
    if affected.has_shares {
        core.background.shares.raise();
    }
    // Dropped collections free their names for others.
    let mut remaining = Vec::new();
    for id in &affected.collections {
        let row = CollectionRow::get(*id, &core.storage.catalog)?;
        match (collections.by_id(*id), row) {
            (Some(dropped), None) => drop_collection(collections, &dropped, position)?,
            (_, Some(row)) => remaining.push((*id, row)),
            (None, None) => {}
        }
    }
    for (id, row) in remaining {
        match collections.by_id(id) {
            None => {
                let mut sections = HashMap::new();
                let created = recovery::open_collection(collections, id, row, &mut sections)?;
                created.set_named_from(position);
                created.record_change_at(position);
            }
            Some(collection) => change_collection(collections, &collection, row, position)?,
        }
    }
    Ok(())
}

fn drop_collection(
    collections: &Collections,
    dropped: &Arc<Collection>,
    position: Position,
) -> Result<(), Error> {
    collections.drop_at(dropped, position);
    release_dropped(&collections.core, dropped)
}

fn change_collection(
    collections: &Collections,
    collection: &Arc<Collection>,
    row: CollectionRow,
    position: Position,
) -> Result<(), Error> {
    if row.namespace == collection.namespace() {
        collection.set_row(row);
    } else {
        collections.rename(collection, None, position, || collection.set_row(row));
    }
    change_indexes(&collections.core, collection, position)?;
    collection.record_change_at(position);
    Ok(())
}

/// Makes the indexes of a collection those of the catalog.
fn change_indexes(core: &Core, collection: &Collection, position: Position) -> Result<(), Error> {
    let catalog = &core.storage.catalog;
    let before = collection.state();
    let mut indexes = Vec::new();
    for (map, row) in IndexRow::read_all(collection.id, catalog)? {
        let known = before.indexes.iter().find(|it| it.index.map == map);
        let changed = ChangedIndex {
            map,
            row,
            is_first: indexes.is_empty(),
            position,
        };
        indexes.push(changed.state(core, collection, known)?);
    }
    let removed: Vec<IndexState> = before
        .indexes
        .iter()
        .filter(|old| !indexes.iter().any(|new| new.index.map == old.index.map))
        .cloned()
        .collect();
    collection.change_state(|state| state.indexes = indexes);
    for IndexState {
        index, sections, ..
    } in removed
    {
        index.set_dropped();
        sections
            .descriptors()
            .chain(sections.past_descriptors())
            .try_for_each(|it| core.close_section(it))?;
    }
    Ok(())
}

/// An index as the catalog describes it after a change.
struct ChangedIndex {
    map: MapId,
    row: IndexRow,
    /// True for the index on `_id`.
    is_first: bool,
    /// The position of the change.
    position: Position,
}

impl ChangedIndex {
    /// Returns the state of the index. `known` is the state before the change.
    fn state(
        self,
        core: &Core,
        collection: &Collection,
        known: Option<&IndexState>,
    ) -> Result<IndexState, Error> {
        let ChangedIndex {
            map,
            row,
            is_first,
            position,
        } = self;
        // An index with sections becomes ready when these are adopted.
        let has_sections = !rows::sections_of(map, &core.storage.catalog)?.is_empty();
        let Some(known) = known else {
            let definition = recovery::definition_of(&collection.options(), &row, is_first)?;
            let row = IndexRow {
                ready: row.ready && !has_sections,
                ..row
            };
            return Ok(recovery::index_state(map, definition, &row, Arc::default()));
        };
        let mut state = known.clone();
        if !is_first && known.index.row().specification != row.specification {
            let definition = recovery::definition_of(&collection.options(), &row, is_first)?;
            state.index = Arc::new(known.index.with_definition(definition));
        }
        if row.ready && !known.index.is_ready() && !has_sections {
            state.index.set_ready(position);
        }
        Ok(state)
    }
}

/// Sections of the catalog that are opened together. What was opened is released after an error.
struct SectionOpening<'c> {
    core: &'c Core,
    opened: Vec<SectionDescriptor>,
}

impl SectionOpening<'_> {
    /// Returns the sections of a map in the catalog. Those in `open` are not opened again.
    fn sections(&mut self, map: MapId, open: &[Arc<Section>]) -> Result<Vec<Arc<Section>>, Error> {
        let mut sections = Vec::new();
        for descriptor in rows::sections_of(map, &self.core.storage.catalog)? {
            let id = SectionId::new(&descriptor);
            let known = open.iter().find(|it| SectionId::new(it.descriptor()) == id);
            sections.push(match known {
                Some(section) => section.clone(),
                None => {
                    let section = self.core.open_section(descriptor.clone())?;
                    self.opened.push(descriptor);
                    section
                }
            });
        }
        Ok(sections)
    }

    /// Returns the sections of all maps of a state.
    fn sections_of_state(&mut self, state: &State, records: MapId) -> Result<SectionsByMap, Error> {
        let mut by_map = HashMap::new();
        by_map.insert(records, self.sections(records, state.records.present())?);
        for IndexState {
            index, sections, ..
        } in &state.indexes
        {
            by_map.insert(index.map, self.sections(index.map, sections.present())?);
        }
        Ok(by_map)
    }
}

/// Identifies a section: two descriptors of one section may differ in other fields.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct SectionId {
    run: RunId,
    root_offset: u64,
}

impl SectionId {
    fn new(descriptor: &SectionDescriptor) -> SectionId {
        SectionId {
            run: descriptor.run,
            root_offset: descriptor.root_offset,
        }
    }
}

/// Replaces the sections of a collection by those of the catalog, and cuts off the part of its
/// tails that they contain. Indexes whose build has ended become ready.
fn adopt_sections(core: &Core, collection: &Collection) -> Result<(), Error> {
    let before = collection.state();
    let mut opening = SectionOpening {
        core,
        opened: Vec::new(),
    };
    let mut by_map = opening
        .sections_of_state(&before, collection.records_map)
        .inspect_err(|_| opening.opened.iter().for_each(|it| core.forget(it)))?;
    let folded = FoldedRow::get(collection.id, &core.storage.catalog)?;
    let adopted: HashSet<SectionId> = by_map
        .values()
        .flatten()
        .map(|section| SectionId::new(section.descriptor()))
        .collect();
    let retired = collection.adopt_state(folded.position, |state| {
        let mut take = |map, sections: &mut Arc<Sections>| {
            if let Some(newest) = by_map.remove(&map) {
                *sections = Arc::new(Sections::new(newest));
            }
        };
        take(collection.records_map, &mut state.records);
        for index in &mut state.indexes {
            take(index.index.map, &mut index.sections);
        }
    });
    if let Some(generation) = retired {
        generation.retire();
    }
    make_ready(core, collection)?;
    let mut removed = before
        .maps()
        .flat_map(|sections| sections.descriptors())
        .filter(|descriptor| !adopted.contains(&SectionId::new(descriptor)));
    removed.try_for_each(|it| core.close_section(it))
}

/// Makes the indexes ready that are ready in the catalog. Their sections are adopted.
fn make_ready(core: &Core, collection: &Collection) -> Result<(), Error> {
    for IndexState { index, .. } in &collection.state().indexes {
        if index.is_ready() {
            continue;
        }
        let row = IndexRow::get(collection.id, index.map, &core.storage.catalog)?;
        if row.is_some_and(|row| row.ready) {
            index.set_ready(core.storage.log.written());
        }
    }
    Ok(())
}

/// Adopts the section with the recorded results of statements. The results themselves are known
/// from the log. The next fold replaces the section.
fn adopt_sessions(core: &Core) -> Result<(), Error> {
    let before = core.retries.section();
    let newest = rows::sections_of(retries::MAP, &core.storage.catalog)?.pop();
    let is_known = match (&before, &newest) {
        (Some(one), Some(other)) => SectionId::new(one) == SectionId::new(other),
        (one, other) => one.is_none() && other.is_none(),
    };
    if is_known {
        return Ok(());
    }
    if let Some(newest) = &newest {
        core.open_section(newest.clone())?;
    }
    core.retries.set_saved(u64::MAX, newest);
    before.iter().try_for_each(|it| core.close_section(it))
}
