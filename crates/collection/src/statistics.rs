//! Sizes of a collection and its indexes, in bytes.

use crate::collection::{Collection, IndexState};

/// See the module.
#[derive(Clone, Debug)]
pub struct CollectionStatistics {
    pub documents: u64,
    /// Of all documents, uncompressed.
    pub bytes: u64,
    /// In run files, of documents.
    pub bytes_stored: u64,
    /// Memory that tails hold.
    pub tail_bytes: u64,
    pub sections: u64,
    pub indexes: Vec<IndexStatistics>,
}

#[derive(Clone, Debug)]
pub struct IndexStatistics {
    pub name: String,
    /// In run files.
    pub bytes_stored: u64,
    /// Entries in run files, with those that delete and are deleted.
    pub entries_stored: u64,
    pub sections: u64,
    pub is_ready: bool,
}

impl Collection {
    pub fn statistics(&self) -> CollectionStatistics {
        let state = self.state();
        let of_index = |IndexState { index, sections }: &IndexState| IndexStatistics {
            name: index.definition.name.clone(),
            bytes_stored: sections.bytes_stored(),
            entries_stored: sections.entries(),
            sections: sections.all().len() as u64,
            is_ready: index.is_ready(),
        };
        CollectionStatistics {
            documents: self.count(),
            bytes: self.bytes(),
            bytes_stored: state.records.bytes_stored(),
            tail_bytes: self.tail_bytes(),
            sections: state.records.all().len() as u64,
            indexes: state.indexes.iter().map(of_index).collect(),
        }
    }
}
