//! The events of an index build.

use windrow_collection::Collection;
use windrow_document::{DocumentBuf, doc};
use windrow_index::Definition;
use windrow_wire::ErrorCode;

use super::AuditTrail;

/// The indexes of a build, for its events at the start and at the end.
pub struct IndexTrail {
    trail: AuditTrail,
    namespace: String,
    /// The name and the specification of each index.
    indexes: Vec<(String, DocumentBuf)>,
}

impl IndexTrail {
    pub fn new(
        trail: AuditTrail,
        collection: &Collection,
        definitions: &[Definition],
    ) -> IndexTrail {
        let index = |one: &Definition| match &one.search {
            Some(search) => (search.name.clone(), search.source.clone()),
            None => (one.name.clone(), one.specification.clone()),
        };
        IndexTrail {
            trail,
            namespace: collection.namespace().to_string(),
            indexes: definitions.iter().map(index).collect(),
        }
    }

    pub fn record_start(&self) {
        self.record("IndexBuildStarted", 0);
    }

    /// Records the end of the build.
    pub fn record_end(&self, has_succeeded: bool) {
        if has_succeeded {
            self.record("IndexBuildSucceeded", 0);
        } else {
            self.record("IndexBuildAborted", ErrorCode::IndexBuildAborted.number());
        }
    }

    fn record(&self, state: &str, result: i32) {
        for (name, specification) in &self.indexes {
            let param = doc! {
                "ns": (self.namespace.as_str()), "indexName": (name.as_str()),
                "indexSpec": (specification.clone()), "indexBuildState": state,
            };
            self.trail.record_result("createIndex", param, result);
        }
    }
}
