//! Sizes of a collection and its indexes, in bytes.

use crate::collection::Collection;
use crate::state::IndexState;

/// See the module.
#[derive(Clone, Debug)]
pub struct CollectionStatistics {
    pub documents: u64,
    /// Of all documents, uncompressed.
    pub bytes: u64,
    /// In run files, of documents; in a clustered collection with the map by record id.
    pub bytes_stored: u64,
    /// Memory that log records hold whose documents are in no run file yet.
    pub tail_bytes: u64,
    pub sections: u64,
    /// Without the one that a clustered collection is.
    pub indexes: Vec<IndexStatistics>,
}

#[derive(Clone, Debug)]
pub struct IndexStatistics {
    pub name: String,
    /// In run files.
    pub bytes_stored: u64,
    /// Memory that its tails hold.
    pub tail_bytes: u64,
    /// Entries in run files, with those that delete and are deleted.
    pub entries_stored: u64,
    pub sections: u64,
    pub is_ready: bool,
    /// The name of a search index as clients know it. It takes space, but does not count as an index.
    pub search_name: Option<String>,
}

impl IndexStatistics {
    /// In run files and in memory.
    pub fn bytes(&self) -> u64 {
        self.bytes_stored + self.tail_bytes
    }
}

impl CollectionStatistics {
    /// Returns the number of indexes that `listIndexes` shows.
    pub fn index_count(&self) -> usize {
        let ordinary = |index: &&IndexStatistics| index.search_name.is_none();
        self.indexes.iter().filter(ordinary).count()
    }
}

impl Collection {
    pub fn statistics(&self) -> CollectionStatistics {
        let state = self.state();
        let of_index = |IndexState {
                            index, sections, ..
                        }: &IndexState| IndexStatistics {
            name: index.definition.name.clone(),
            bytes_stored: sections.bytes_stored(),
            tail_bytes: state.generations().map(|it| it.index_bytes(index)).sum(),
            entries_stored: sections.entries(),
            sections: sections.present().len() as u64,
            is_ready: index.is_ready(),
            search_name: index.definition.search.as_ref().map(|it| it.name.clone()),
        };
        let indexes = state.indexes.iter();
        let indexes = indexes.filter(|state| !state.index.definition.clustered);
        let indexes: Vec<IndexStatistics> = indexes.map(of_index).collect();
        let of_entries: u64 = indexes.iter().map(|index| index.tail_bytes).sum();
        CollectionStatistics {
            documents: self.count(),
            bytes: self.bytes(),
            bytes_stored: state.document_maps().map(|it| it.bytes_stored()).sum(),
            tail_bytes: self.tail_bytes().saturating_sub(of_entries),
            sections: state
                .document_maps()
                .map(|it| it.present().len() as u64)
                .sum(),
            indexes,
        }
    }
}
