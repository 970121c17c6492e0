//! Markers of unfinished files. They are stored among the failures: while a file has one, it counts
//! as changed.

use crate::changes::ReadJob;
use crate::document_batch::DocumentBatch;
use crate::store::{Store, StoreCollection, StoreError};
use crate::stored_document::{FailureDocument, now_ms};
use crate::walk::FileEntry;

/// Stores markers for files that are read in parts, after their old documents were removed.
/// Several writers store the documents of such a file, so no single writer can do it. The writer of
/// the last part removes the marker.
pub(crate) fn mark_divided(store: &dyn Store, jobs: &[ReadJob<'_>]) -> Result<(), StoreError> {
    let divided = |job: &&ReadJob<'_>| job.divided.is_some() && job.file_part.index == 0;
    let replaced: Vec<&FileEntry> = jobs
        .iter()
        .filter(divided)
        .filter(|job| job.replaces)
        .map(|job| job.file)
        .collect();
    remove_marked(store, &replaced)?;
    let files: Vec<&FileEntry> = jobs.iter().filter(divided).map(|job| job.file).collect();
    insert_markers(store, unfinished(&files))
}

/// Removes all documents of files. They are marked first, and the collection of failures, which
/// contains the markers, is cleared last.
pub(crate) fn remove_marked(store: &dyn Store, files: &[&FileEntry]) -> Result<(), StoreError> {
    if files.is_empty() {
        return Ok(());
    }
    insert_markers(store, unfinished(files))?;
    let paths: Vec<String> = files.iter().map(|file| file.path_text()).collect();
    for collection in StoreCollection::ALL {
        store.remove(collection, &paths)?;
    }
    Ok(())
}

fn unfinished(files: &[&FileEntry]) -> impl Iterator<Item = FailureDocument> {
    files
        .iter()
        .map(|file| FailureDocument::new_unfinished(file, now_ms()))
}

/// Stores markers. An ingestion that was killed may already have stored some.
pub(crate) fn insert_markers(
    store: &dyn Store,
    markers: impl IntoIterator<Item = FailureDocument>,
) -> Result<(), StoreError> {
    let mut batch = DocumentBatch::default();
    for marker in markers {
        batch.push_failure(&marker);
    }
    if batch.count() > 0 {
        // Duplicates are refused, and are not errors.
        store.insert(StoreCollection::Failures, batch.take())?;
    }
    Ok(())
}
