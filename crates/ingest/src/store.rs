//! The interface of an ingestion to the database, which is open in this process or in a server.

use bytes::Bytes;
use windrow_document::{DocumentBuf, doc};
pub use windrow_file_query::INDEX_NAME;

use crate::walk::FileStamp;

/// The database of both collections.
pub const DATABASE_NAME: &str = "files";

/// The collections that an ingestion writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreCollection {
    /// The documents of files.
    Documents,
    /// Failures of files and members.
    Failures,
}

/// An error of a store. Its text is a sentence.
pub type StoreError = Box<dyn std::error::Error + Send + Sync>;

/// A document that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InsertError {
    /// The position of the document in the batch.
    pub index: usize,
    /// The error as a sentence.
    pub reason: String,
}

/// Receives the path of a document and its stamp, if it has one.
pub type StampVisitor<'v> = dyn FnMut(&str, Option<FileStamp>) + 'v;

/// A database with documents and failures.
///
/// Each call is complete when it returns. If a call's writes survive a crash, so do those of all
/// calls before it. Continuing an interrupted ingestion depends on this order.
pub trait Store: Sync {
    /// Creates the collections and their indexes if they
    /// do not exist.
    fn prepare(&self) -> Result<(), StoreError>;

    /// Calls `visit` for every document of a collection.
    fn visit_stamps(
        &self,
        collection: StoreCollection,
        visit: &mut StampVisitor<'_>,
    ) -> Result<(), StoreError>;

    /// Removes all documents of a collection with one of these paths.
    fn remove(&self, collection: StoreCollection, paths: &[String]) -> Result<(), StoreError>;

    /// Removes failures by their `_id`.
    fn remove_failures(&self, ids: &[String]) -> Result<(), StoreError>;

    /// Inserts concatenated BSON documents. They become visible together. Returns the documents
    /// that were refused.
    fn insert(
        &self,
        collection: StoreCollection,
        documents: Bytes,
    ) -> Result<Vec<InsertError>, StoreError>;

    /// Makes all writes durable.
    fn finish(&self) -> Result<(), StoreError>;
}

impl StoreCollection {
    /// Both collections.
    pub const ALL: [StoreCollection; 2] = [StoreCollection::Documents, StoreCollection::Failures];

    /// The name of the collection.
    pub fn name(self) -> &'static str {
        match self {
            StoreCollection::Documents => "documents",
            StoreCollection::Failures => "failures",
        }
    }

    /// The specification of its index for `createIndexes`.
    pub fn index_specification(self) -> DocumentBuf {
        build_stamp_index()
    }

    /// The definition of its search index with the name [`INDEX_NAME`] for `createSearchIndexes`.
    pub fn search_index_definition(self) -> Option<DocumentBuf> {
        match self {
            StoreCollection::Documents => Some(windrow_file_query::search_index_definition()),
            StoreCollection::Failures => None,
        }
    }
}

/// The name of the index that finds the documents of a file, and returns stamps without reading
/// documents.
pub const STAMP_INDEX_NAME: &str = "path_1_size_1_modified_ns_1";

fn build_stamp_index() -> DocumentBuf {
    doc! { "v": 2, "key": { "path": 1, "size": 1, "modified_ns": 1 }, "name": STAMP_INDEX_NAME }
}
