//! Runs searches on the documents of indexed files with the privileges of the user.

use windrow_document::{ArrayBuf, doc};
use windrow_file_search::{DocumentSink, DocumentSource};

use crate::database::Database;
use crate::error::PageError;

/// The database and the collection of indexed files.
pub const DATABASE: &str = "files";
/// The collection of the documents.
pub const DOCUMENTS: &str = "documents";

/// The documents of indexed files.
pub struct IndexedFiles {
    database: Database,
}

impl IndexedFiles {
    /// Uses this connection.
    pub fn new(database: Database) -> IndexedFiles {
        IndexedFiles { database }
    }
}

impl DocumentSource for IndexedFiles {
    type Error = PageError;

    fn aggregate(
        &mut self,
        pipeline: &ArrayBuf,
        sink: &mut DocumentSink<'_>,
    ) -> Result<(), PageError> {
        let command = doc! {
            "aggregate": DOCUMENTS, "pipeline": (pipeline.clone()), "cursor": {}, "$db": DATABASE,
        };
        self.database.for_each_document(command, sink)
    }
}
