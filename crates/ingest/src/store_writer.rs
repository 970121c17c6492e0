//! Writes the documents of many files to the store in batches.

use std::sync::Arc;

use windrow_extract::ExtractedDocument;

use crate::changes::{ReadJob, SharedFile};
use crate::document_batch::DocumentBatch;
use crate::failure::{Failure, FailureClass};
use crate::progress::Progress;
use crate::store::{InsertError, Store, StoreCollection, StoreError};
use crate::stored_document::{FailureDocument, FileDocument, SkippedDocument, now_ms};
use crate::walk::FileEntry;
use crate::worker::{FileEvent, FileOutcome};

/// When a batch is written.
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
    /// Shares of large files whose last write is in this batch.
    completed_shares: Vec<(&'w FileEntry, Arc<SharedFile>)>,
    file_state: FileState,
}

/// The file and member from which a document was extracted.
#[derive(Debug)]
struct DocumentOrigin<'w> {
    file: &'w FileEntry,
    inner: Option<String>,
}

/// The state of the file whose events are being received.
#[derive(Debug, Default)]
struct FileState {
    has_started: bool,
    has_documents: bool,
    has_failures: bool,
    has_skipped: bool,
    is_marked_unfinished: bool,
}

impl FileState {
    /// Returns `true` if the file has documents in several collections.
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
            completed_shares: Vec::new(),
            file_state: FileState::default(),
        }
    }

    /// Handles the next event of a file.
    pub fn handle(&mut self, job: &ReadJob<'w>, event: FileEvent) -> Result<(), StoreError> {
        let file = job.file;
        if !self.file_state.has_started {
            self.file_state.has_started = true;
            match job.shared {
                // See `mark_shared`.
                Some(_) => self.file_state.is_marked_unfinished = true,
                None => self.replaced_files.extend(job.replaces.then_some(file)),
            }
        }
        match event {
            FileEvent::Document(extracted) => self.add_document(file, *extracted),
            FileEvent::MemberFailure(failure) => {
                self.add_failure(file, failure);
                Ok(())
            }
            FileEvent::MemberSkipped { inner, format } => {
                self.add_skipped(file, Some(inner), format);
                Ok(())
            }
            FileEvent::End(outcome) => self.finish_file(job, outcome),
        }
    }

    fn add_document(
        &mut self,
        file: &'w FileEntry,
        extracted: ExtractedDocument,
    ) -> Result<(), StoreError> {
        let inner = extracted.inner_path.clone();
        self.documents
            .push_file(&FileDocument::new(file, extracted, now_ms()));
        self.origins.push(DocumentOrigin { file, inner });
        self.file_state.has_documents = true;
        let bytes_max = match self.file_state.is_marked_unfinished {
            true => self.limits.bytes_target,
            false => self.limits.bytes_max,
        };
        if self.documents.bytes() >= bytes_max {
            self.mark_unfinished(file);
            self.flush()?;
        }
        Ok(())
    }

    fn finish_file(&mut self, job: &ReadJob<'w>, outcome: FileOutcome) -> Result<(), StoreError> {
        let file = job.file;
        match outcome {
            FileOutcome::Skipped(format) if job.share.index == 0 => {
                self.progress.add(&self.progress.files_skipped, 1);
                self.add_skipped(file, None, format);
            }
            FileOutcome::Done(_) | FileOutcome::Skipped(_) => {}
            FileOutcome::Failed(failure) => {
                if job.shared.as_ref().is_none_or(|it| it.is_first_failure()) {
                    self.add_failure(file, failure);
                }
            }
        }
        if self.file_state.needs_several_writes() {
            self.mark_unfinished(file);
        }
        match &job.shared {
            Some(shared) => self.completed_shares.push((file, Arc::clone(shared))),
            None if self.file_state.is_marked_unfinished => self.completed_files.push(file),
            None => {}
        }
        self.file_state = FileState::default();
        self.file_count += 1;
        if job.shared.as_ref().is_none_or(|it| it.end_read()) {
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

    fn add_skipped(&mut self, file: &FileEntry, inner: Option<String>, format: String) {
        self.skipped
            .push_skipped(&SkippedDocument::new(file, inner, format, now_ms()));
        self.file_state.has_skipped = true;
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
        // All other writers have stored their shares before.
        for (file, shared) in self.completed_shares.drain(..) {
            completed.extend(shared.end_store().then_some(file));
        }
        let markers: Vec<String> = completed
            .into_iter()
            .map(FailureDocument::unfinished_id)
            .collect();
        if !markers.is_empty() {
            self.store.remove_failures(&markers)?;
        }
        Ok(())
    }

    fn insert_documents(&mut self) -> Result<(), StoreError> {
        let count = self.documents.count();
        let errors = self
            .store
            .insert(StoreCollection::Documents, self.documents.take())?;
        let stored_count = count.saturating_sub(errors.len());
        self.progress.add(&self.progress.documents, stored_count);
        self.store_insert_errors(&errors)?;
        self.origins.clear();
        Ok(())
    }

    fn remove_replaced(&mut self) -> Result<(), StoreError> {
        let replaced = std::mem::take(&mut self.replaced_files);
        remove_marked(self.store, &replaced)
    }

    fn store_insert_errors(&mut self, errors: &[InsertError]) -> Result<(), StoreError> {
        let mut failures = DocumentBatch::default();
        for error in errors {
            let Some(origin) = self.origins.get(error.index) else {
                continue;
            };
            let failure = Failure {
                inner: origin.inner.clone(),
                class: FailureClass::Refused,
                reason: error.reason.clone(),
            };
            failures.push_failure(&FailureDocument::new(origin.file, failure, now_ms()));
        }
        if failures.count() > 0 {
            self.progress.add(&self.progress.failures, failures.count());
            self.store
                .insert(StoreCollection::Failures, failures.take())?;
        }
        Ok(())
    }
}

/// Marks the files that are read in shares, after their old documents are removed. Several writers store
/// their documents, so none of them can do it. The last one to store a share removes the marker.
pub(crate) fn mark_shared(store: &dyn Store, jobs: &[ReadJob<'_>]) -> Result<(), StoreError> {
    let shared = |job: &&ReadJob<'_>| job.shared.is_some() && job.share.index == 0;
    let replaced: Vec<&FileEntry> = jobs
        .iter()
        .filter(shared)
        .filter(|job| job.replaces)
        .map(|job| job.file)
        .collect();
    remove_marked(store, &replaced)?;
    let files: Vec<&FileEntry> = jobs.iter().filter(shared).map(|job| job.file).collect();
    insert_markers(store, &files)
}

/// Removes what is stored of files. A file counts as changed while its marker is stored, and the failures,
/// to which markers belong, are removed last.
fn remove_marked(store: &dyn Store, files: &[&FileEntry]) -> Result<(), StoreError> {
    if files.is_empty() {
        return Ok(());
    }
    insert_markers(store, files)?;
    let paths: Vec<String> = files.iter().map(|file| file.path_text()).collect();
    for collection in StoreCollection::ALL {
        store.remove(collection, &paths)?;
    }
    Ok(())
}

fn insert_markers(store: &dyn Store, files: &[&FileEntry]) -> Result<(), StoreError> {
    let mut markers = DocumentBatch::default();
    for file in files {
        markers.push_failure(&FailureDocument::new_unfinished(file, now_ms()));
    }
    if markers.count() > 0 {
        // A marker of an earlier, killed ingestion makes the insertion fail, which is harmless.
        store.insert(StoreCollection::Failures, markers.take())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    //! An ingestion can be killed between any two writes. The next one must end with the same
    //! documents as one that was not killed.

    use std::collections::BTreeMap;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use bytes::Bytes;
    use windrow_document::{Document, DocumentBuf, ValueRef};
    use windrow_extract::{DocumentKind, ExtractedDocument, ExtractionCounts};

    use super::*;
    use crate::changes::{find_changes, plan_jobs};
    use crate::ingestion::read_stored_files;
    use crate::store::{DocumentVisitor, StampVisitor};
    use crate::walk::{FileStamp, WalkResult};

    /// Documents by collection and `_id`, and the number of writes that succeed.
    struct MemoryStore {
        documents: [Mutex<BTreeMap<String, DocumentBuf>>; 3],
        writes_left: AtomicUsize,
    }

    impl MemoryStore {
        fn new() -> Self {
            MemoryStore {
                documents: Default::default(),
                writes_left: AtomicUsize::new(usize::MAX),
            }
        }

        fn write<T>(
            &self,
            collection: StoreCollection,
            change: impl FnOnce(&mut BTreeMap<String, DocumentBuf>) -> T,
        ) -> Result<T, StoreError> {
            if self.writes_left.load(Ordering::Relaxed) == 0 {
                return Err("killed".into());
            }
            self.writes_left.fetch_sub(1, Ordering::Relaxed);
            Ok(change(
                &mut self.documents[collection as usize].lock().unwrap(),
            ))
        }

        /// The `_id`, size, and text or reason of all stored documents.
        fn content(&self) -> Vec<(String, i64, String)> {
            let mut content = Vec::new();
            for documents in &self.documents {
                for (id, document) in documents.lock().unwrap().iter() {
                    let text = document.get("text").or(document.get("reason"));
                    let size = document.get("size").and_then(ValueRef::as_whole).unwrap();
                    content.push((id.clone(), size, text.unwrap().as_str().unwrap().into()));
                }
            }
            content
        }
    }

    fn document_path(document: &DocumentBuf) -> &str {
        document.get("path").and_then(ValueRef::as_str).unwrap()
    }

    impl Store for MemoryStore {
        fn prepare(&self) -> Result<(), StoreError> {
            Ok(())
        }

        fn visit_stamps(
            &self,
            collection: StoreCollection,
            visit: &mut StampVisitor<'_>,
        ) -> Result<(), StoreError> {
            for document in self.documents[collection as usize].lock().unwrap().values() {
                let read_integer = |name| document.get(name).and_then(ValueRef::as_whole);
                let stamp = FileStamp::from_fields(FileStamp::FIELDS.map(read_integer));
                visit(document_path(document), stamp);
            }
            Ok(())
        }

        fn visit_documents(
            &self,
            path: &str,
            visit: &mut DocumentVisitor<'_>,
        ) -> Result<(), StoreError> {
            let [documents, ..] = &self.documents;
            for document in documents.lock().unwrap().values() {
                if document_path(document) == path {
                    visit(document.as_document());
                }
            }
            Ok(())
        }

        fn visit_all(
            &self,
            _: &str,
            _: &[&'static str],
            _: &mut DocumentVisitor<'_>,
        ) -> Result<(), StoreError> {
            unreachable!("a writer does not read the documents")
        }

        fn remove(&self, collection: StoreCollection, paths: &[String]) -> Result<(), StoreError> {
            let is_other =
                |document: &DocumentBuf| paths.iter().all(|it| it != document_path(document));
            self.write(collection, |documents| {
                documents.retain(|_, document| is_other(document));
            })
        }

        fn remove_failures(&self, ids: &[String]) -> Result<(), StoreError> {
            self.write(StoreCollection::Failures, |documents| {
                documents.retain(|id, _| !ids.contains(id));
            })
        }

        /// Refuses duplicate `_id`s, and documents whose `_id` ends with "refused".
        fn insert(
            &self,
            collection: StoreCollection,
            bytes: Bytes,
        ) -> Result<Vec<InsertError>, StoreError> {
            self.write(collection, |documents| {
                let (mut rest, mut index, mut errors) = (&bytes[..], 0, Vec::new());
                while let Some(length) = rest.first_chunk::<4>() {
                    let (document, after) = rest.split_at(u32::from_le_bytes(*length) as usize);
                    let document = Document::from_bytes(document).unwrap().to_buf();
                    let id = document
                        .get("_id")
                        .and_then(ValueRef::as_str)
                        .unwrap()
                        .to_owned();
                    let is_refused =
                        collection == StoreCollection::Documents && id.ends_with("refused");
                    if documents.contains_key(&id) || is_refused {
                        let reason = "no".to_owned();
                        errors.push(InsertError { index, reason });
                    } else {
                        documents.insert(id, document);
                    }
                    (rest, index) = (after, index + 1);
                }
                errors
            })
        }

        fn record_run(&self, _: &DocumentBuf) -> Result<(), StoreError> {
            unreachable!("a writer records no run")
        }

        fn finish(&self) -> Result<(), StoreError> {
            Ok(())
        }
    }

    fn document(inner: Option<usize>, text: &str) -> FileEvent {
        let mut extracted = ExtractedDocument::new(DocumentKind::Text, text.to_owned());
        extracted.inner_path = inner.map(|number| format!("#{number}"));
        FileEvent::Document(Box::new(extracted))
    }

    fn failure(inner: Option<&str>) -> Failure {
        Failure {
            inner: inner.map(str::to_owned),
            ..Failure::new(FailureClass::Malformed, "bad")
        }
    }

    /// The events of a share of a file, by its name and its version, which is its size.
    fn events(job: &ReadJob<'_>) -> Vec<FileEvent> {
        let file = job.file;
        let text = format!("version {}", file.stamp.size % LARGE_BYTES);
        let done = || FileEvent::End(FileOutcome::Done(ExtractionCounts::default()));
        match file.path_text().as_str() {
            "/d/archive" => vec![
                document(Some(1), &text),
                FileEvent::MemberFailure(failure(Some("#2"))),
                FileEvent::MemberSkipped {
                    inner: "#3".into(),
                    format: "font".into(),
                },
                done(),
            ],
            "/d/broken" => vec![FileEvent::End(FileOutcome::Failed(failure(None)))],
            "/d/half" => vec![
                document(Some(1), &text),
                FileEvent::End(FileOutcome::Failed(failure(None))),
            ],
            "/d/large" => {
                let first = job.share.index as usize;
                let own = (first..9).step_by(job.share.count as usize);
                let mails = own.map(|number| document(Some(number), &text.repeat(10)));
                mails
                    .chain([FileEvent::End(FileOutcome::Failed(failure(None)))])
                    .collect()
            }
            "/d/mails" => {
                let mails = (0..9).map(|number| document(Some(number), &text.repeat(10)));
                mails.chain([done()]).collect()
            }
            "/d/picture" if file.stamp.size > 1 => {
                vec![FileEvent::End(FileOutcome::Skipped("picture".into()))]
            }
            _ => vec![document(None, &text), done()],
        }
    }

    const NAMES: [&str; 9] = [
        "archive", "broken", "half", "large", "mails", "picture", "plain", "refused", "text",
    ];

    /// Larger files are read in shares.
    const LARGE_BYTES: u64 = 100 << 20;

    /// The folder with all files in the same version.
    fn folder(version: u64) -> WalkResult {
        let entry = |name: &&str| FileEntry {
            languages: Default::default(),
            path: format!("/d/{name}").into(),
            stamp: FileStamp {
                size: if *name == "large" { LARGE_BYTES } else { 0 } + version,
                modified_ns: 1,
                changed_ns: 1,
                inode: 1,
            },
        };
        WalkResult {
            roots: vec!["/d".into()],
            files: NAMES.iter().map(entry).collect(),
            ..WalkResult::default()
        }
    }

    fn ingest_folder(
        store: &MemoryStore,
        walked: &WalkResult,
        retry: bool,
    ) -> Result<(), StoreError> {
        let stored = read_stored_files(store, retry)?;
        let changes = find_changes(&stored, walked);
        let progress = Progress::default();
        let limits = BatchLimits {
            bytes_target: 1_000,
            files_max: 3,
            bytes_max: 900,
        };
        let jobs = plan_jobs(&changes, 3);
        mark_shared(store, &jobs)?;
        let mut writers = [0, 1, 2].map(|_| StoreWriter::new(store, &progress, limits));
        // Each share goes to another writer, and all of them are handled at once.
        let (shares, others): (Vec<_>, Vec<_>) = jobs.iter().partition(|job| job.shared.is_some());
        let mut queues: Vec<_> = shares.iter().map(|job| events(job).into_iter()).collect();
        while queues.iter().any(|queue| queue.len() > 0) {
            for ((writer, job), queue) in writers.iter_mut().zip(&shares).zip(&mut queues) {
                queue
                    .next()
                    .map_or(Ok(()), |event| writer.handle(job, event))?;
            }
        }
        for job in others {
            for event in events(job) {
                writers[0].handle(job, event)?;
            }
        }
        writers.iter_mut().try_for_each(StoreWriter::flush)
    }

    /// Ingests version 1, then version 2 until it is killed after `writes` writes, then version 2
    /// again. Returns `true` if the second ingestion completed, and what is stored at the end.
    fn ingest_killed_after(writes: usize, retry: bool) -> (bool, Vec<(String, i64, String)>) {
        let store = MemoryStore::new();
        ingest_folder(&store, &folder(1), false).unwrap();
        let version = if retry { 1 } else { 2 };
        store.writes_left.store(writes, Ordering::Relaxed);
        let completed = ingest_folder(&store, &folder(version), retry).is_ok();
        store.writes_left.store(usize::MAX, Ordering::Relaxed);
        ingest_folder(&store, &folder(version), false).unwrap();
        (completed, store.content())
    }

    fn check_all_kills(retry: bool) {
        let (_, expected) = ingest_killed_after(usize::MAX, retry);
        for writes in 0.. {
            let (completed, content) = ingest_killed_after(writes, retry);
            assert_eq!(content, expected, "killed after {writes} writes");
            if completed {
                assert!(writes > 5, "only {writes} writes");
                break;
            }
        }
    }

    #[test]
    fn a_killed_ingestion_is_continued() {
        check_all_kills(false);
    }

    #[test]
    fn a_killed_retry_is_continued() {
        check_all_kills(true);
    }

    #[test]
    fn documents_and_failures_are_stored() {
        let (_, content) = ingest_killed_after(usize::MAX, false);
        let ids: Vec<&str> = content.iter().map(|(id, ..)| id.as_str()).collect();
        let mails: Vec<String> = (0..9).map(|number| format!("/d/mails/#{number}")).collect();
        let large: Vec<String> = (0..9).map(|number| format!("/d/large/#{number}")).collect();
        let mut expected = vec!["/d/archive/#1", "/d/half/#1"];
        expected.extend(large.iter().map(String::as_str));
        expected.extend(mails.iter().map(String::as_str));
        expected.extend(["/d/plain", "/d/text"]);
        expected.extend([
            "/d/archive/#2",
            "/d/broken",
            "/d/half",
            "/d/large",
            "/d/refused",
        ]);
        expected.extend(["/d/archive/#3", "/d/picture"]);
        assert_eq!(ids, expected);
        let is_newest = |size: &i64| size % LARGE_BYTES as i64 == 2;
        assert!(content.iter().all(|(_, size, _)| is_newest(size)));
    }

    #[test]
    fn progress_is_counted() {
        let (store, progress) = (MemoryStore::new(), Progress::default());
        let walked = folder(2);
        let stored = read_stored_files(&store, false).unwrap();
        let changes = find_changes(&stored, &walked);
        let mut writer = StoreWriter::new(&store, &progress, BatchLimits::default());
        let jobs = plan_jobs(&changes, 2);
        mark_shared(&store, &jobs).unwrap();
        for job in &jobs {
            for event in events(job) {
                writer.handle(job, event).unwrap();
            }
        }
        writer.flush().unwrap();
        let count = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        assert_eq!(count(&progress.files_read), 9);
        assert_eq!(count(&progress.documents), 22);
        assert_eq!(count(&progress.failures), 5);
        assert_eq!(count(&progress.files_skipped), 1);
    }
}
