//! Writes the documents of many files to the store in batches.

use std::collections::HashMap;
use std::sync::Arc;

use windrow_extract::{ExtractedDocument, MailReference};

use crate::changes::{DividedFile, ReadJob};
use crate::document_batch::DocumentBatch;
use crate::failure::{Failure, FailureClass};
use crate::file_event::{FileEvent, FileOutcome};
use crate::markers::remove_marked;
use crate::progress::Progress;
use crate::store::{Store, StoreCollection, StoreError};
use crate::stored_document::{FailureDocument, FileDocument, SkippedDocument, member_name, now_ms};
use crate::walk::FileEntry;

/// The reason why a file has no text if all its documents are members.
const CONTAINER: &str = "the file has no text of its own; its members are documents";

/// The limits of a batch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BatchLimits {
    /// A batch of this many bytes is written. Larger batches are not faster, and a killed ingestion
    /// loses more.
    pub bytes_target: usize,
    /// A batch of this many files is written.
    pub files_max: usize,
    /// A batch of this many bytes is written even if a file is not complete. Such a file costs a
    /// marker, so this limit is higher. A file that has a marker is written in batches of
    /// `bytes_target`.
    pub bytes_max: usize,
}

impl Default for BatchLimits {
    fn default() -> Self {
        BatchLimits {
            bytes_target: 2 << 20,
            files_max: 1_000,
            bytes_max: 6 << 20,
        }
    }
}

/// Collects the documents of a worker's files and writes them in batches.
///
/// The writes of a batch, in this order (the module `ingestion` explains why):
///
/// 1. markers of files that need several writes
/// 2. removal of replaced documents
/// 3. failures, skipped files and members
/// 4. documents
/// 5. removal of markers of completed files
pub(crate) struct StoreWriter<'s, 'w> {
    store: &'s dyn Store,
    progress: &'s Progress,
    limits: BatchLimits,
    documents: DocumentBatch,
    /// The origin of each of `documents`.
    origins: Vec<DocumentOrigin<'w>>,
    failures: DocumentBatch,
    skipped: DocumentBatch,
    file_count: usize,
    replaced_files: Vec<&'w FileEntry>,
    /// Marked files whose last write is in this batch.
    completed_files: Vec<&'w FileEntry>,
    /// Parts of large files whose last write is in this batch.
    completed_parts: Vec<(&'w FileEntry, Arc<DividedFile>)>,
    file_state: FileState,
}

/// The file and member from which a document was extracted.
#[derive(Debug)]
struct DocumentOrigin<'w> {
    file: &'w FileEntry,
    inner: Option<String>,
    /// The document has no text and is not counted.
    is_unread: bool,
}

/// The state of the file whose events are being received.
#[derive(Debug, Default)]
struct FileState {
    has_started: bool,
    has_documents: bool,
    has_failures: bool,
    has_skipped: bool,
    /// The file has a document under its own name.
    has_name: bool,
    is_marked_unfinished: bool,
}

impl FileState {
    /// Returns `true` if the documents of the file are in several collections, apart from the
    /// document that has only its name. That one is stored last, and a file without documents is
    /// read again.
    fn needs_several_writes(&self) -> bool {
        let kinds = [self.has_documents, self.has_failures, self.has_skipped];
        kinds.into_iter().filter(|has_any| *has_any).count() > 1
    }
}

impl<'s, 'w> StoreWriter<'s, 'w> {
    pub fn new(store: &'s dyn Store, progress: &'s Progress, limits: BatchLimits) -> Self {
        StoreWriter {
            store,
            progress,
            limits,
            documents: DocumentBatch::default(),
            origins: Vec::new(),
            failures: DocumentBatch::default(),
            skipped: DocumentBatch::default(),
            file_count: 0,
            replaced_files: Vec::new(),
            completed_files: Vec::new(),
            completed_parts: Vec::new(),
            file_state: FileState::default(),
        }
    }

    /// Handles the next event of a file.
    pub fn handle(&mut self, job: &ReadJob<'w>, event: FileEvent) -> Result<(), StoreError> {
        let file = job.file;
        if !self.file_state.has_started {
            self.file_state.has_started = true;
            match job.divided {
                // See `markers::mark_divided`.
                Some(_) => self.file_state.is_marked_unfinished = true,
                None => self.replaced_files.extend(job.replaces.then_some(file)),
            }
        }
        match event {
            FileEvent::Document(extracted) => self.add_document(file, *extracted),
            FileEvent::MemberFailure {
                failure,
                attached_to,
            } => {
                let (inner, reason) = (failure.inner.clone(), failure.reason.clone());
                self.add_failure(file, failure);
                self.add_unread_member(file, inner, reason, attached_to)
            }
            FileEvent::MemberSkipped {
                inner,
                format,
                attached_to,
            } => {
                let reason = self.add_skipped(file, Some(inner.clone()), format);
                self.add_unread_member(file, Some(inner), reason, attached_to)
            }
            FileEvent::End(outcome) => self.finish_file(job, outcome),
        }
    }

    fn add_document(
        &mut self,
        file: &'w FileEntry,
        extracted: ExtractedDocument,
    ) -> Result<(), StoreError> {
        let inner = extracted.inner_path.as_deref();
        self.file_state.has_name |= inner.and_then(member_name).is_none();
        self.file_state.has_documents = true;
        self.push_document(file, FileDocument::new(file, extracted, now_ms()))
    }

    /// Adds the document of a member without text, if the member has a name.
    fn add_unread_member(
        &mut self,
        file: &'w FileEntry,
        inner: Option<String>,
        reason: String,
        attached_to: Option<MailReference>,
    ) -> Result<(), StoreError> {
        if inner.as_deref().and_then(member_name).is_none() {
            return Ok(());
        }
        self.file_state.has_documents = true;
        let mut document = FileDocument::new_unread(file, inner, reason, now_ms());
        document.metadata.attached_to = attached_to;
        self.push_document(file, document)
    }

    fn push_document(
        &mut self,
        file: &'w FileEntry,
        document: FileDocument,
    ) -> Result<(), StoreError> {
        self.documents
            .push_file(&document, self.store.file_signer());
        self.origins.push(DocumentOrigin {
            file,
            inner: document.inner,
            is_unread: document.unread.is_some(),
        });
        let bytes_max = if self.file_state.is_marked_unfinished {
            self.limits.bytes_target
        } else {
            self.limits.bytes_max
        };
        if self.documents.bytes() >= bytes_max {
            self.mark_unfinished(file);
            self.flush()?;
        }
        Ok(())
    }

    fn finish_file(&mut self, job: &ReadJob<'w>, outcome: FileOutcome) -> Result<(), StoreError> {
        let file = job.file;
        let unread = match outcome {
            FileOutcome::Skipped(format) if job.file_part.index == 0 => {
                self.progress.add(&self.progress.files_skipped, 1);
                self.add_skipped(file, None, format)
            }
            FileOutcome::Done(_) | FileOutcome::Skipped(_) => CONTAINER.to_owned(),
            FileOutcome::Failed(failure) => {
                let reason = failure.reason.clone();
                if job.divided.as_ref().is_none_or(|it| it.is_first_failure()) {
                    self.add_failure(file, failure);
                }
                reason
            }
        };
        if self.file_state.needs_several_writes() {
            self.mark_unfinished(file);
        }
        if !self.file_state.has_name && job.file_part.index == 0 {
            let document = FileDocument::new_unread(file, None, unread, now_ms());
            self.push_document(file, document)?;
        }
        match &job.divided {
            Some(divided) => self.completed_parts.push((file, Arc::clone(divided))),
            None if self.file_state.is_marked_unfinished => self.completed_files.push(file),
            None => {}
        }
        self.file_state = FileState::default();
        self.file_count += 1;
        if job.divided.as_ref().is_none_or(|it| it.end_read()) {
            self.progress.end_file(file);
        }
        let bytes = self.documents.bytes() + self.failures.bytes() + self.skipped.bytes();
        if bytes >= self.limits.bytes_target || self.file_count >= self.limits.files_max {
            self.flush()?;
        }
        Ok(())
    }

    fn add_failure(&mut self, file: &FileEntry, failure: Failure) {
        self.failures
            .push_failure(&FailureDocument::new(file, failure, now_ms()));
        self.file_state.has_failures = true;
        self.progress.add(&self.progress.failures, 1);
    }

    /// Adds a skipped file or member. Returns the reason.
    fn add_skipped(&mut self, file: &FileEntry, inner: Option<String>, format: String) -> String {
        let skipped = SkippedDocument::new(file, inner, format, now_ms());
        self.skipped.push_skipped(&skipped);
        self.file_state.has_skipped = true;
        skipped.reason()
    }

    fn mark_unfinished(&mut self, file: &FileEntry) {
        if !self.file_state.is_marked_unfinished {
            self.file_state.is_marked_unfinished = true;
            self.failures
                .push_failure(&FailureDocument::new_unfinished(file, now_ms()));
        }
    }

    /// Writes the batch.
    pub fn flush(&mut self) -> Result<(), StoreError> {
        self.file_count = 0;
        self.remove_replaced()?;
        if self.failures.count() > 0 {
            self.store
                .insert(StoreCollection::Failures, self.failures.take())?;
        }
        if self.skipped.count() > 0 {
            self.store
                .insert(StoreCollection::Skipped, self.skipped.take())?;
        }
        if self.documents.count() > 0 {
            self.insert_documents()?;
        }
        let mut completed = std::mem::take(&mut self.completed_files);
        // The other writers have stored their parts before.
        for (file, divided) in self.completed_parts.drain(..) {
            completed.extend(divided.end_store().then_some(file));
        }
        let markers: Vec<String> = completed
            .into_iter()
            .map(FailureDocument::marker_id)
            .collect();
        if !markers.is_empty() {
            self.store.remove_failures(&markers)?;
        }
        Ok(())
    }

    fn insert_documents(&mut self) -> Result<(), StoreError> {
        let errors = self
            .store
            .insert(StoreCollection::Documents, self.documents.take())?;
        let reasons = errors.into_iter().map(|error| (error.index, error.reason));
        let mut reasons: HashMap<usize, String> = reasons.collect();
        let (mut refused, mut read) = (Vec::new(), 0);
        for (index, origin) in self.origins.drain(..).enumerate() {
            match reasons.remove(&index) {
                Some(reason) => refused.push((origin, reason)),
                None => read += usize::from(!origin.is_unread),
            }
        }
        self.progress.add(&self.progress.documents, read);
        self.store_refused(refused)
    }

    fn remove_replaced(&mut self) -> Result<(), StoreError> {
        let replaced = std::mem::take(&mut self.replaced_files);
        remove_marked(self.store, &replaced)
    }

    /// Stores failures for refused documents, and documents that have only their names instead.
    fn store_refused(
        &mut self,
        refused: Vec<(DocumentOrigin<'w>, String)>,
    ) -> Result<(), StoreError> {
        if refused.is_empty() {
            return Ok(());
        }
        let (mut failures, mut names) = (DocumentBatch::default(), DocumentBatch::default());
        for (DocumentOrigin { file, inner, .. }, reason) in refused {
            let name = FileDocument::new_unread(file, inner.clone(), reason.clone(), now_ms());
            names.push_file(&name, self.store.file_signer());
            let class = FailureClass::Refused;
            let failure = Failure {
                inner,
                class,
                reason,
            };
            failures.push_failure(&FailureDocument::new(file, failure, now_ms()));
        }
        self.progress.add(&self.progress.failures, failures.count());
        self.store
            .insert(StoreCollection::Failures, failures.take())?;
        // A document that is refused again already has a failure.
        self.store
            .insert(StoreCollection::Documents, names.take())?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
