//! What a step has read of other collections than its rows come from.

use crate::plan::Plan;

/// What was looked at there, and how.
#[derive(Clone, Debug, Default)]
pub struct Reads {
    pub documents_examined: u64,
    pub keys_examined: u64,
    /// Postings of searches that were skipped.
    pub keys_skipped: u64,
    pub collection_scans: u64,
    /// The names of the indexes.
    pub indexes: Vec<String>,
}

impl Reads {
    /// Adds the places that a plan reads from.
    pub(crate) fn add_places(&mut self, plan: &Plan) {
        match plan {
            Plan::CollectionScan { .. } | Plan::ClusteredScan { .. } => self.collection_scans += 1,
            Plan::IndexScan(scan) => self.add_index(&scan.index.definition.name),
            Plan::IdHack { .. } => self.add_index("_id_"),
            Plan::Text { scan, within } => {
                self.add_index(&scan.definition.name);
                if let Some(within) = within {
                    self.add_places(within);
                }
            }
            Plan::Near(scan) => self.add_index(&scan.index.definition.name),
            other => {
                let inputs = other.inputs().into_iter();
                inputs.for_each(|input| self.add_places(input));
            }
        }
    }

    /// Adds an index, once.
    pub(crate) fn add_index(&mut self, name: &str) {
        if !self.indexes.iter().any(|known| known == name) {
            self.indexes.push(name.to_owned());
        }
    }
}
