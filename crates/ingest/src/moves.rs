//! Gives the documents of moved files their new paths, without reading the files.
//!
//! The documents are inserted under their new paths before the old ones are removed. If an ingestion is
//! killed between both, the next one finds the new ones unchanged and removes the old ones.

use std::collections::HashSet;

use crate::changes::MovedFile;
use crate::document_batch::DocumentBatch;
use crate::progress::Progress;
use crate::store::{Store, StoreCollection, StoreError, remove_files};
use crate::store_writer::BatchLimits;
use crate::stored_document::now_ms;

/// Moves the documents of files. Returns the old paths of those that have more documents than one write
/// may have; they were not moved.
pub(crate) fn move_files(
    store: &dyn Store,
    files: &[MovedFile<'_>],
    progress: &Progress,
) -> Result<HashSet<String>, StoreError> {
    let limits = BatchLimits::default();
    let (mut batch, mut from) = (DocumentBatch::default(), Vec::new());
    let mut too_large = HashSet::new();
    for moved in files {
        let mut documents = DocumentBatch::default();
        store.visit_documents(&moved.from, &mut |document| {
            if documents.bytes() < limits.bytes_max {
                documents.push_moved(document, moved, now_ms(), store.file_signer());
            }
        })?;
        if documents.bytes() >= limits.bytes_max {
            too_large.insert(moved.from.clone());
            continue;
        }
        batch.append(documents);
        from.push(moved.from.clone());
        if batch.bytes() >= limits.bytes_target || from.len() >= limits.files_max {
            write(store, &mut batch, &mut from, progress)?;
        }
    }
    write(store, &mut batch, &mut from, progress)?;
    Ok(too_large)
}

fn write(
    store: &dyn Store,
    batch: &mut DocumentBatch,
    from: &mut Vec<String>,
    progress: &Progress,
) -> Result<(), StoreError> {
    let count = batch.count();
    if count > 0 {
        let errors = store.insert(StoreCollection::Documents, batch.take())?;
        // The new paths are not stored, so a refused document is an error of the store.
        if let Some(error) = errors.first() {
            return Err(format!("a moved document was refused: {}", error.reason).into());
        }
        progress.add(&progress.documents, count);
    }
    remove_files(store, from)?;
    from.clear();
    Ok(())
}
