//! Gives the documents of moved files their new paths, without reading the files.
//!
//! All documents are inserted under the new path before those with the old path are removed,
//! failures first. If an ingestion is killed in between, the next one removes the documents with
//! the old path. It finds the file unchanged under the new path if its documents were inserted;
//! otherwise it reads the file.

use std::collections::HashSet;

use crate::changes::MovedFile;
use crate::document_batch::DocumentBatch;
use crate::progress::Progress;
use crate::store::{Store, StoreCollection, StoreError, remove_files};
use crate::store_writer::BatchLimits;
use crate::stored_document::now_ms;

/// Moves the documents of files. Returns the old paths of the files that were not moved, because
/// their documents exceed the size of one write.
pub(crate) fn move_files(
    store: &dyn Store,
    files: &[MovedFile<'_>],
    progress: &Progress,
) -> Result<HashSet<String>, StoreError> {
    let limits = BatchLimits::default();
    let (mut batches, mut from) = (MovedBatches::default(), Vec::new());
    let mut too_large = HashSet::new();
    for moved in files {
        let documents = MovedBatches::read(store, moved, limits.bytes_max)?;
        if documents.bytes() >= limits.bytes_max {
            too_large.insert(moved.from.clone());
            continue;
        }
        batches.append(documents);
        from.push(moved.from.clone());
        if batches.bytes() >= limits.bytes_target || from.len() >= limits.files_max {
            batches.write(store, &mut from, progress)?;
        }
    }
    batches.write(store, &mut from, progress)?;
    Ok(too_large)
}

/// The documents of moved files, with their new paths.
#[derive(Default)]
struct MovedBatches {
    documents: DocumentBatch,
    skipped: DocumentBatch,
    failures: DocumentBatch,
}

impl MovedBatches {
    /// Reads the documents of a file. Stops when they have `bytes_max` bytes: the result then has
    /// at least as many, and may lack documents.
    fn read(
        store: &dyn Store,
        moved: &MovedFile<'_>,
        bytes_max: usize,
    ) -> Result<MovedBatches, StoreError> {
        let mut batches = MovedBatches::default();
        for collection in StoreCollection::ALL {
            let mut bytes = batches.bytes();
            let batch = batches.batch_mut(collection);
            store.visit_documents(collection, &moved.from, &mut |document| {
                if bytes < bytes_max {
                    bytes += document.as_bytes().len();
                    batch.push_moved(document, moved, now_ms(), store.file_signer());
                }
            })?;
        }
        Ok(batches)
    }

    fn batch_mut(&mut self, collection: StoreCollection) -> &mut DocumentBatch {
        match collection {
            StoreCollection::Documents => &mut self.documents,
            StoreCollection::Skipped => &mut self.skipped,
            StoreCollection::Failures => &mut self.failures,
        }
    }

    fn bytes(&self) -> usize {
        self.documents.bytes() + self.skipped.bytes() + self.failures.bytes()
    }

    fn append(&mut self, other: MovedBatches) {
        self.documents.append(other.documents);
        self.skipped.append(other.skipped);
        self.failures.append(other.failures);
    }

    /// Inserts the documents, and removes those with the old paths.
    fn write(
        &mut self,
        store: &dyn Store,
        from: &mut Vec<String>,
        progress: &Progress,
    ) -> Result<(), StoreError> {
        progress.add(&progress.documents, self.documents.count());
        for collection in StoreCollection::ALL.into_iter().rev() {
            let batch = self.batch_mut(collection);
            if batch.count() == 0 {
                continue;
            }
            let errors = store.insert(collection, batch.take())?;
            // The new paths are not in use, so a refused document is an error of the store.
            if let Some(error) = errors.first() {
                return Err(format!("a moved document was refused: {}", error.reason).into());
            }
        }
        remove_files(store, from)?;
        from.clear();
        Ok(())
    }
}
