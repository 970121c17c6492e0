//! What stages have read from other collections, for statistics and logs.

use crate::plan::Plan;

/// The documents and keys that were read, and the indexes.
#[derive(Clone, Debug, Default)]
pub struct ReadCounters {
    /// The number of documents read.
    pub documents_examined: u64,
    /// The number of index keys read.
    pub keys_examined: u64,
    /// The number of postings that searches skipped.
    pub keys_skipped: u64,
    /// The number of collection scans.
    pub collection_scans: u64,
    /// The names of the indexes used.
    pub indexes: Vec<String>,
}

impl ReadCounters {
    /// Adds the indexes and collection scans of a plan.
    pub(crate) fn add_plan(&mut self, plan: &Plan) {
        match plan {
            Plan::CollectionScan { .. } | Plan::ClusteredScan { .. } => self.collection_scans += 1,
            Plan::IndexScan(scan) => self.add_index(&scan.index.definition.name),
            Plan::IdHack { .. } => self.add_index("_id_"),
            Plan::Text { scan, within } => {
                self.add_index(&scan.definition.name);
                if let Some(within) = within {
                    self.add_plan(within);
                }
            }
            Plan::Near(scan) => self.add_index(&scan.index.definition.name),
            other => {
                let inputs = other.inputs().into_iter();
                inputs.for_each(|input| self.add_plan(input));
            }
        }
    }

    /// Adds an index, if it is not already in the list.
    pub(crate) fn add_index(&mut self, name: &str) {
        if !self.indexes.iter().any(|known| known == name) {
            self.indexes.push(name.to_owned());
        }
    }
}
