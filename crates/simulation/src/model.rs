//! The model: plain maps of the documents that the engine must return, and the names of indexes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use windrow_collection::{Origin, SessionKey};
use windrow_document::{DocumentBuf, ValueRef};

use crate::clock;

/// Documents by `_id`.
pub type Documents = BTreeMap<i32, Arc<DocumentBuf>>;

/// The expected state of a collection.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelCollection {
    /// The documents.
    pub documents: Documents,
    /// Indexes whose creation was acknowledged.
    pub indexes: BTreeSet<String>,
    /// Indexes that may or may not exist, because their creation or removal was not acknowledged.
    pub uncertain_indexes: BTreeSet<String>,
    /// The newest retryable write that changed a document.
    pub last: Option<RetryableWrite>,
}

/// A retryable write with a single statement. Each has its own session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryableWrite {
    /// The session and the number of the write.
    pub origin: Origin,
    /// The time of the write in milliseconds, on the simulated clock.
    pub time_ms: u64,
}

impl RetryableWrite {
    /// Returns the write of the session with this number, at the current time.
    pub fn new(session: u64) -> RetryableWrite {
        let mut key = [0; 16];
        key[..8].copy_from_slice(&session.to_be_bytes());
        let session = SessionKey(key);
        RetryableWrite {
            origin: Origin { session, number: 1 },
            time_ms: clock::now_ms(),
        }
    }
}

/// All collections by name.
pub type Model = BTreeMap<String, ModelCollection>;

impl ModelCollection {
    /// The size of all documents in bytes.
    pub fn bytes(&self) -> u64 {
        let bytes = self.documents.values().map(|it| it.as_bytes().len() as u64);
        bytes.sum()
    }

    /// Returns `true` if a document other than `own` has this value of the field `u`.
    pub fn has_unique(&self, u: Option<i32>, own: i32) -> bool {
        let mut others = self.documents.iter().filter(|(id, _)| **id != own);
        others.any(|(_, document)| unique_key(document) == u)
    }
}

/// Returns the key of the unique index on `u`. `None` if the field is missing, which is a key, too.
pub fn unique_key(document: &DocumentBuf) -> Option<i32> {
    match document.get("u") {
        Some(ValueRef::Int32(u)) => Some(u),
        _ => None,
    }
}
