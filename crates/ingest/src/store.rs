//! Where documents go: what a run asks of a database, whether it is open here or behind a server.

use bytes::Bytes;
use windrow_document::{DocumentBuf, doc};

use crate::walk::Stamp;

/// The database of both collections.
pub const DATABASE: &str = "files";

/// A collection that a run writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Documents,
    Failures,
}

/// Whatever went wrong in a store; its text is a sentence.
pub type StoreError = Box<dyn std::error::Error + Send + Sync>;

/// A document that was refused: its number in the batch, and why.
pub type Refusal = (usize, String);

/// Takes the path and stamp of a document.
pub type Visit<'v> = dyn FnMut(&str, Option<Stamp>) + 'v;

/// A database that takes documents and failures.
///
/// Each call is complete when it returns, and what one call wrote survives a crash only together
/// with what the calls before it wrote: that is what lets an interrupted run be continued.
pub trait Store: Sync {
    /// Makes the collections and their [`indexes`], where they are not there.
    fn prepare(&self) -> Result<(), StoreError>;

    /// Tells the path of every document of a collection and its stamp, if it has one.
    fn stamps(&self, place: Place, visit: &mut Visit<'_>) -> Result<(), StoreError>;

    /// Removes what the files at these paths became from a collection.
    fn remove(&self, place: Place, paths: &[String]) -> Result<(), StoreError>;

    /// Removes failures by their `_id`.
    fn remove_failures(&self, ids: &[String]) -> Result<(), StoreError>;

    /// Inserts BSON documents that stand one after the other; those of one call become visible
    /// together.
    fn insert(&self, place: Place, documents: Bytes) -> Result<Vec<Refusal>, StoreError>;

    /// Makes everything durable.
    fn finish(&self) -> Result<(), StoreError>;
}

impl Place {
    pub const ALL: [Place; 2] = [Place::Documents, Place::Failures];

    /// The name of the collection.
    pub fn collection(self) -> &'static str {
        match self {
            Place::Documents => "documents",
            Place::Failures => "failures",
        }
    }

    /// The specifications of its indexes, as `createIndexes` takes them.
    pub fn indexes(self) -> Vec<DocumentBuf> {
        match self {
            Place::Documents => vec![stamp_index(), text_index()],
            Place::Failures => vec![stamp_index()],
        }
    }
}

/// Finds what a file became, and tells a file's stamp without its documents being read.
pub const STAMP_INDEX: &str = "path_1_size_1_modified_ns_1";

fn stamp_index() -> DocumentBuf {
    doc! { "v": 2, "key": { "path": 1, "size": 1, "modified_ns": 1 }, "name": STAMP_INDEX }
}

/// A title names what the whole text is about, so a word in it counts as much as five.
fn text_index() -> DocumentBuf {
    doc! {
        "v": 2, "key": { "title": "text", "text": "text" }, "name": "title_text_text_text",
        "weights": { "title": 5, "text": 1 }
    }
}
