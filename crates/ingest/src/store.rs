//! The interface of an ingestion to the database, which is open in this process or in a server.

use bytes::Bytes;
use windrow_document::{Document, DocumentBuf, doc};
pub use windrow_file_query::INDEX_NAME;

use crate::file_signature::FileSigner;
use crate::pipeline::BackgroundTimes;
use crate::walk::FileStamp;

/// The database of all collections.
pub const DATABASE_NAME: &str = "files";

/// The name of the collection that contains a document for each run.
pub const RUNS_NAME: &str = "runs";

/// The collections that an ingestion writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreCollection {
    /// The documents of files.
    Documents,
    /// Failures of files and members.
    Failures,
    /// Files and members of formats without text.
    Skipped,
}

/// An error of a store. Its text is a sentence.
pub type StoreError = Box<dyn std::error::Error + Send + Sync>;

/// A document that the store refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InsertError {
    /// The position of the document in the batch.
    pub index: usize,
    /// The error as a sentence.
    pub reason: String,
}

/// Receives the path of a document and its stamp. `None` if it has no stamp.
pub type StampVisitor<'v> = dyn FnMut(&str, Option<FileStamp>) + 'v;

/// Receives a stored document.
pub type DocumentVisitor<'v> = dyn FnMut(Document<'_>) + 'v;

/// A database with documents and failures.
///
/// Each call is complete when it returns. If a call's writes survive a crash, so do those of all
/// calls before it. Continuing an interrupted ingestion depends on this order.
pub trait Store: Sync {
    /// Signs the files whose documents are stored.
    fn file_signer(&self) -> &FileSigner;

    /// Creates the collections and their indexes if they do not exist.
    fn prepare(&self) -> Result<(), StoreError>;

    /// Calls `visit` for every document of a collection.
    fn visit_stamps(
        &self,
        collection: StoreCollection,
        visit: &mut StampVisitor<'_>,
    ) -> Result<(), StoreError>;

    /// Calls `visit` for the documents of the file with this path in a collection.
    fn visit_documents(
        &self,
        collection: StoreCollection,
        path: &str,
        visit: &mut DocumentVisitor<'_>,
    ) -> Result<(), StoreError>;

    /// Calls `visit` for all documents of the collection with this name, if it exists. The
    /// documents contain at least `fields`.
    fn visit_all(
        &self,
        collection: &str,
        fields: &[&'static str],
        visit: &mut DocumentVisitor<'_>,
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

    /// Adds a document to the collection [`RUNS_NAME`].
    fn record_run(&self, run: &DocumentBuf) -> Result<(), StoreError>;

    /// Returns the time that the database has worked in the background. `None` if it runs in
    /// another process.
    fn background_times(&self) -> Option<BackgroundTimes> {
        None
    }

    /// Makes all writes durable.
    fn finish(&self) -> Result<(), StoreError>;
}

/// The maximum number of paths in one call of `remove`.
const REMOVE_PATHS_MAX: usize = 1_000;

/// Removes all documents of files from all collections.
pub(crate) fn remove_files(store: &dyn Store, paths: &[String]) -> Result<(), StoreError> {
    for paths in paths.chunks(REMOVE_PATHS_MAX) {
        for collection in StoreCollection::ALL {
            store.remove(collection, paths)?;
        }
    }
    Ok(())
}

impl StoreCollection {
    /// All collections, in the order in which the documents of a file are removed. The failures
    /// come last: the file counts as changed while its marker is stored.
    pub const ALL: [StoreCollection; 3] = [
        StoreCollection::Documents,
        StoreCollection::Skipped,
        StoreCollection::Failures,
    ];

    /// The name of the collection.
    pub fn name(self) -> &'static str {
        match self {
            StoreCollection::Documents => "documents",
            StoreCollection::Failures => "failures",
            StoreCollection::Skipped => "skipped",
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
            StoreCollection::Failures | StoreCollection::Skipped => None,
        }
    }
}

/// The name of the index that finds the documents of a file and returns stamps without reading
/// documents.
pub const STAMP_INDEX_NAME: &str = "stamp";

fn build_stamp_index() -> DocumentBuf {
    let mut key = doc! { "path": 1 };
    for field in FileStamp::FIELDS {
        key.push(field, 1);
    }
    doc! { "v": 2, "key": (key), "name": STAMP_INDEX_NAME }
}
