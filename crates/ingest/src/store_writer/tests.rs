//! An ingestion can be killed between any two writes. The next one must result in the same
//! documents as one that was not killed.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use windrow_document::{Document, DocumentBuf, ValueRef};
use windrow_extract::{DocumentKind, ExtractedDocument, ExtractionCounts};

use super::*;
use crate::changes::{find_changes, plan_jobs};
use crate::file_signature::FileSigner;
use crate::ingestion::read_stored_files;
use crate::markers::mark_divided;
use crate::store::{DocumentVisitor, InsertError, StampVisitor};
use crate::walk::{FileStamp, WalkResult};

/// Documents by collection and `_id`, and the number of writes that succeed.
struct MemoryStore {
    signer: FileSigner,
    documents: [Mutex<BTreeMap<String, DocumentBuf>>; 3],
    writes_left: AtomicUsize,
}

impl MemoryStore {
    fn new() -> Self {
        MemoryStore {
            signer: FileSigner::with_key(&[7; 32]).unwrap(),
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
    fn file_signer(&self) -> &FileSigner {
        &self.signer
    }

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
        collection: StoreCollection,
        path: &str,
        visit: &mut DocumentVisitor<'_>,
    ) -> Result<(), StoreError> {
        for document in self.documents[collection as usize].lock().unwrap().values() {
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

/// The events of a part of a file, derived from its name and its version. The size of the file is
/// its version.
fn events(job: &ReadJob<'_>) -> Vec<FileEvent> {
    let file = job.file;
    let text = format!("version {}", file.stamp.size % LARGE_BYTES);
    let done = || FileEvent::End(FileOutcome::Done(ExtractionCounts::default()));
    match file.path_text().as_str() {
        "/d/archive" => vec![
            document(Some(1), &text),
            FileEvent::MemberFailure {
                failure: failure(Some("#2")),
                attached_to: None,
            },
            FileEvent::MemberSkipped {
                inner: "!/x.ttf".into(),
                format: "font".into(),
                attached_to: None,
            },
            done(),
        ],
        "/d/broken" => vec![FileEvent::End(FileOutcome::Failed(failure(None)))],
        "/d/half" => vec![
            document(Some(1), &text),
            FileEvent::End(FileOutcome::Failed(failure(None))),
        ],
        "/d/large" => {
            let first = job.file_part.index as usize;
            let own = (first..9).step_by(job.file_part.count as usize);
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

/// Larger files are read in parts.
const LARGE_BYTES: u64 = 100 << 20;

/// A folder with all files in the same version.
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

fn ingest_folder(store: &MemoryStore, walked: &WalkResult, retry: bool) -> Result<(), StoreError> {
    let stored = read_stored_files(store, retry)?;
    let changes = find_changes(&stored, walked);
    let progress = Progress::default();
    let limits = BatchLimits {
        bytes_target: 1_000,
        files_max: 3,
        bytes_max: 900,
    };
    let jobs = plan_jobs(&changes, 3);
    mark_divided(store, &jobs)?;
    let mut writers = [0, 1, 2].map(|_| StoreWriter::new(store, &progress, limits));
    // Each part goes to another writer, and all of them are handled at once.
    let (parts, others): (Vec<_>, Vec<_>) = jobs.iter().partition(|job| job.divided.is_some());
    let mut queues: Vec<_> = parts.iter().map(|job| events(job).into_iter()).collect();
    while queues.iter().any(|queue| queue.len() > 0) {
        for ((writer, job), queue) in writers.iter_mut().zip(&parts).zip(&mut queues) {
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
/// again. Returns whether the second ingestion completed, and the stored documents.
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
    // Files and members without text have documents with their names.
    let mut expected = vec![
        "/d/archive/!/x.ttf",
        "/d/archive/#1",
        "/d/broken",
        "/d/half/#1",
    ];
    expected.extend(large.iter().map(String::as_str));
    expected.extend(mails.iter().map(String::as_str));
    expected.extend(["/d/picture", "/d/plain", "/d/text"]);
    expected.extend([
        "/d/archive/#2",
        "/d/broken",
        "/d/half",
        "/d/large",
        "/d/refused",
    ]);
    expected.extend(["/d/archive/!/x.ttf", "/d/picture"]);
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
    mark_divided(&store, &jobs).unwrap();
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
