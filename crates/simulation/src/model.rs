//! What the engine must answer: plain maps of documents, and the names of indexes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use windrow_collection::Origin;
use windrow_document::{DocumentBuf, ValueRef};

/// Documents by `_id`.
pub type Documents = BTreeMap<i32, Arc<DocumentBuf>>;

/// A collection as it must be.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Things {
    pub documents: Documents,
    /// Indexes whose creation was acknowledged.
    pub indexes: BTreeSet<String>,
    /// Indexes that may be there or not: what made or dropped them was not acknowledged.
    pub doubtful_indexes: BTreeSet<String>,
    /// The newest retryable write that has changed something.
    pub last: Option<Last>,
}

/// A retryable write, which has a session of its own, of one statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Last {
    pub origin: Origin,
    /// When it was made, on the clock of the run.
    pub millis: u64,
}

/// All collections, by name.
pub type Model = BTreeMap<String, Things>;

impl Things {
    /// Bytes of all documents.
    pub fn bytes(&self) -> u64 {
        let bytes = self.documents.values().map(|it| it.as_bytes().len() as u64);
        bytes.sum()
    }

    /// Whether a document other than `own` has this value of `u`.
    pub fn has_unique(&self, u: Option<i32>, own: i32) -> bool {
        let mut others = self.documents.iter().filter(|(id, _)| **id != own);
        others.any(|(_, document)| unique_of(document) == u)
    }
}

/// The value of a document that a unique index is on; None where it has none, which is a value too.
pub fn unique_of(document: &DocumentBuf) -> Option<i32> {
    match document.get("u") {
        Some(ValueRef::Int32(u)) => Some(u),
        _ => None,
    }
}
