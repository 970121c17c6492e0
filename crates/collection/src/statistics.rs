//! The sizes of a collection and its indexes.

use crate::collection::Collection;
use crate::state::IndexState;

/// The sizes of a collection and its indexes, in bytes.
#[derive(Clone, Debug)]
pub struct CollectionStatistics {
    /// The number of documents.
    pub documents: u64,
    /// Uncompressed bytes of all documents.
    pub bytes: u64,
    /// Bytes of the documents in run files; in a clustered collection with the map by record id.
    pub bytes_stored: u64,
    /// Memory of documents that are in no run file yet.
    pub tail_bytes: u64,
    /// The number of sections that store documents.
    pub sections: u64,
    /// Without the clustered index of a clustered collection.
    pub indexes: Vec<IndexStatistics>,
}

/// The size of an index, in bytes.
#[derive(Clone, Debug)]
pub struct IndexStatistics {
    /// The name.
    pub name: String,
    /// Bytes in run files.
    pub bytes_stored: u64,
    /// Memory of its tails.
    pub tail_bytes: u64,
    /// Entries in run files, including tombstones and deleted entries.
    pub entries_stored: u64,
    /// The number of sections.
    pub sections: u64,
    /// `true` if queries may use it.
    pub is_ready: bool,
    /// The name of a search index as clients know it. A search index takes space, but does not
    /// count as an index.
    pub search_name: Option<String>,
}

impl IndexStatistics {
    /// Returns the bytes in run files and in memory.
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
    /// Returns the current sizes.
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
