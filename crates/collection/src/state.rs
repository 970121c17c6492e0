//! The state of a collection at a moment: the sections and tails that a reader uses together.

use std::sync::Arc;

use windrow_fold::TombstoneRanges;
use windrow_fold::sections::Sections;
use windrow_index::Definition;
use windrow_invariant::Bug;

use crate::catalog::rows::FoldedRow;
use crate::generation::Generation;
use crate::ids::MapId;
use crate::index::Index;

/// The state of a collection.
#[derive(Clone, Debug)]
pub struct State {
    /// The sections of the map by record id.
    pub records: Arc<Sections>,
    /// The tombstone ranges of the map by record id.
    pub tombstone_ranges: Arc<TombstoneRanges>,
    /// The first is the index on `_id`.
    pub indexes: Vec<IndexState>,
    /// The generation that is being folded.
    pub frozen: Option<FrozenGeneration>,
    pub active: Arc<Generation>,
    pub dropped: bool,
}

/// A generation that accepts no more commits, and the collection's counts including it.
#[derive(Clone, Debug)]
pub struct FrozenGeneration {
    pub generation: Arc<Generation>,
    pub folded: FoldedRow,
}

#[derive(Clone, Debug)]
pub struct IndexState {
    pub index: Arc<Index>,
    pub sections: Arc<Sections>,
    pub tombstone_ranges: Arc<TombstoneRanges>,
}

impl State {
    /// Returns the index on `_id` if it contains the documents, that is, if the collection is
    /// clustered.
    pub fn clustered_by(indexes: &[IndexState]) -> Option<Arc<Definition>> {
        let id_index = &indexes.first()?.index.definition;
        id_index.clustered.then(|| id_index.clone())
    }

    /// Iterates over the sections of the maps that store the collection itself: by record id, and
    /// if it is clustered by `_id`.
    pub fn document_maps(&self) -> impl Iterator<Item = &Arc<Sections>> {
        let id_index = self.indexes.first();
        let id_index = id_index.filter(|state| state.index.definition.clustered);
        std::iter::once(&self.records).chain(id_index.map(|state| &state.sections))
    }

    /// Iterates over the sections of all maps.
    pub fn maps(&self) -> impl Iterator<Item = &Arc<Sections>> {
        let indexes = self.indexes.iter().map(|it| &it.sections);
        std::iter::once(&self.records).chain(indexes)
    }

    /// Iterates over the generations, oldest first.
    pub fn generations(&self) -> impl Iterator<Item = &Arc<Generation>> {
        let frozen = self.frozen.iter().map(|frozen| &frozen.generation);
        frozen.chain(std::iter::once(&self.active))
    }

    /// Returns the tombstone ranges of the map that contains the documents.
    pub fn document_tombstone_ranges(&self) -> &Arc<TombstoneRanges> {
        let by_id = self.indexes.first();
        let by_id = by_id.filter(|it| it.index.definition.clustered);
        by_id.map_or(&self.tombstone_ranges, |it| &it.tombstone_ranges)
    }

    /// Clears the tombstone ranges of a map. A repair changes what old positions show, and merges
    /// remove tombstones that the ranges would skip. Readers of the older sections record ranges of
    /// these.
    pub fn clear_tombstone_ranges(&mut self, map: MapId) {
        let found = self.indexes.iter_mut().find(|state| state.index.map == map);
        *found.map_or(&mut self.tombstone_ranges, |state| {
            &mut state.tombstone_ranges
        }) = Arc::default();
    }

    /// Returns the sections of a map that must exist. Fails with a bug otherwise, because writes
    /// would become invisible.
    pub fn sections_of(
        &mut self,
        map: MapId,
        records_map: MapId,
    ) -> Result<&mut Arc<Sections>, Bug> {
        let found = self.sections_mut(map, records_map);
        found.ok_or_else(|| Bug::new(format!("map {map} of new sections does not exist")))
    }

    /// Returns the sections of a map, or `None` if its index was dropped.
    pub fn sections(&self, map: MapId, records_map: MapId) -> Option<&Arc<Sections>> {
        if map == records_map {
            return Some(&self.records);
        }
        let found = self.indexes.iter().find(|state| state.index.map == map);
        found.map(|state| &state.sections)
    }

    /// Returns the sections of a map to change, or `None` if its index was dropped.
    pub fn sections_mut(&mut self, map: MapId, records_map: MapId) -> Option<&mut Arc<Sections>> {
        if map == records_map {
            return Some(&mut self.records);
        }
        let found = self.indexes.iter_mut().find(|state| state.index.map == map);
        found.map(|state| &mut state.sections)
    }
}
