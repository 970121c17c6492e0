//! What a worker read goes to the store, many files at once.

use crate::document::{FailureDocument, FileDocument};
use crate::encode::Pending;
use crate::failure::{Failure, FailureClass};
use crate::run::{Job, Progress, now_ms};
use crate::store::{Place, Refusal, Store, StoreError};
use crate::walk::Candidate;
use crate::worker::{End, Event};

/// A batch is written when it has so many bytes of documents, or is of so many files. Larger ones
/// are no faster, and a run that is killed loses them.
const BATCH_BYTES: usize = 2 << 20;
const BATCH_FILES: usize = 1_000;
/// A batch that ends within a file costs the file a marker, so it gets some room first.
const BATCH_BYTES_MAX: usize = 12 << 20;

/// Collects what the files of one worker become and writes it in batches.
///
/// The order of the writes of a batch: markers of files that need several writes, what is replaced
/// goes, failures, documents, markers that are no longer needed go. See the module `run` for why.
pub(crate) struct Writer<'s, 'w> {
    store: &'s dyn Store,
    progress: &'s Progress,
    documents: Pending,
    /// The file and member of every one of `documents`.
    origins: Vec<(&'w Candidate, Option<String>)>,
    failures: Pending,
    files: usize,
    replaced: Vec<&'w Candidate>,
    /// Marked files of which the last write is due.
    finished: Vec<&'w Candidate>,
    open: Open,
}

/// What is known of the file whose events are coming.
#[derive(Debug, Default)]
struct Open {
    has_begun: bool,
    has_documents: bool,
    has_failures: bool,
    is_marked: bool,
}

impl<'s, 'w> Writer<'s, 'w> {
    pub fn new(store: &'s dyn Store, progress: &'s Progress) -> Self {
        Writer {
            store,
            progress,
            documents: Pending::default(),
            origins: Vec::new(),
            failures: Pending::default(),
            files: 0,
            replaced: Vec::new(),
            finished: Vec::new(),
            open: Open::default(),
        }
    }

    /// Takes the next event of a file.
    pub fn take(&mut self, job: &Job<'w>, event: Event) -> Result<(), StoreError> {
        let file = job.file;
        if !self.open.has_begun {
            self.open.has_begun = true;
            self.replaced.extend(job.replaces.then_some(file));
        }
        match event {
            Event::Document(extracted) => {
                let inner = extracted.inner_path.clone();
                self.documents
                    .push_file(&FileDocument::new(file, *extracted, now_ms()));
                self.origins.push((file, inner));
                self.open.has_documents = true;
                if self.documents.bytes() >= BATCH_BYTES_MAX {
                    self.mark(file);
                    self.flush()?;
                }
                Ok(())
            }
            Event::MemberFailed(failure) => {
                self.failure(file, failure);
                Ok(())
            }
            Event::End(end) => self.end(file, end),
        }
    }

    fn end(&mut self, file: &'w Candidate, end: End) -> Result<(), StoreError> {
        match end {
            End::Done(_) => {}
            End::Skipped(_) => self.progress.add(&self.progress.skipped, 1),
            End::Failed(failure) => self.failure(file, failure),
        }
        if self.open.has_documents && self.open.has_failures {
            self.mark(file);
        }
        if self.open.is_marked {
            self.finished.push(file);
        }
        self.open = Open::default();
        self.files += 1;
        self.progress.end_file(file);
        let failure_bytes = self.failures.bytes();
        if self.documents.bytes() + failure_bytes >= BATCH_BYTES || self.files >= BATCH_FILES {
            self.flush()?;
        }
        Ok(())
    }

    fn failure(&mut self, file: &Candidate, failure: Failure) {
        self.failures
            .push_failure(&FailureDocument::new(file, failure, now_ms()));
        self.open.has_failures = true;
        self.progress.add(&self.progress.failures, 1);
    }

    fn mark(&mut self, file: &Candidate) {
        if !self.open.is_marked {
            self.open.is_marked = true;
            self.failures
                .push_failure(&FailureDocument::unfinished(file, now_ms()));
        }
    }

    /// Writes what has come together.
    pub fn flush(&mut self) -> Result<(), StoreError> {
        self.files = 0;
        self.remove_replaced()?;
        if self.failures.count() > 0 {
            self.store.insert(Place::Failures, self.failures.take())?;
        }
        if self.documents.count() > 0 {
            let count = self.documents.count();
            let refusals = self.store.insert(Place::Documents, self.documents.take())?;
            let stored = count.saturating_sub(refusals.len());
            self.progress.add(&self.progress.documents, stored);
            self.note_refusals(&refusals)?;
            self.origins.clear();
        }
        let markers: Vec<String> = std::mem::take(&mut self.finished)
            .into_iter()
            .map(FailureDocument::unfinished_id)
            .collect();
        if !markers.is_empty() {
            self.store.remove_failures(&markers)?;
        }
        Ok(())
    }

    /// Documents go first and failures last, with the markers among them: as long as anything of a
    /// file is left, it counts as changed.
    fn remove_replaced(&mut self) -> Result<(), StoreError> {
        let replaced = std::mem::take(&mut self.replaced);
        if replaced.is_empty() {
            return Ok(());
        }
        let mut markers = Pending::default();
        for file in &replaced {
            markers.push_failure(&FailureDocument::unfinished(file, now_ms()));
        }
        // A marker that is there already, from a run that was killed, is refused, and as good.
        self.store.insert(Place::Failures, markers.take())?;
        let paths: Vec<String> = replaced.into_iter().map(Candidate::path_text).collect();
        self.store.remove(Place::Documents, &paths)?;
        self.store.remove(Place::Failures, &paths)
    }

    fn note_refusals(&mut self, refusals: &[Refusal]) -> Result<(), StoreError> {
        let mut failures = Pending::default();
        for (number, reason) in refusals {
            let Some((file, inner)) = self.origins.get(*number) else {
                continue;
            };
            let failure = Failure {
                inner: inner.clone(),
                class: FailureClass::Refused,
                reason: reason.clone(),
            };
            failures.push_failure(&FailureDocument::new(file, failure, now_ms()));
        }
        if failures.count() > 0 {
            self.progress.add(&self.progress.failures, failures.count());
            self.store.insert(Place::Failures, failures.take())?;
        }
        Ok(())
    }
}
