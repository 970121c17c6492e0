//! The indexes that a reader can use.

use std::sync::Arc;

use windrow_index::Definition;
use windrow_index::search::SearchDefinition;

use crate::ids::MapId;
use crate::state::IndexState;

/// A ready index, as its readers see it.
#[derive(Clone, Debug)]
pub struct ReaderIndex {
    pub(super) state: IndexState,
}

impl ReaderIndex {
    /// Returns the definition.
    pub fn definition(&self) -> &Arc<Definition> {
        &self.state.index.definition
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.state.index.definition.name
    }

    /// Counts a plan that uses the index.
    pub fn record_use(&self) {
        self.state.index.record_use();
    }

    /// Returns the id of its map.
    pub fn map(&self) -> MapId {
        self.state.index.map
    }
}

/// A search index of a reader.
#[derive(Clone, Debug)]
pub struct SearchIndex {
    /// The position of the index in [`Reader::indexes`](super::Reader::indexes).
    pub number: usize,
    /// The definition of the index.
    pub definition: Arc<SearchDefinition>,
}
