//! A generation of tails: what a collection's commits since the last fold add to its maps.
//!
//! Commits are pushed onto one list. A map's tail makes its entries from the list when somebody reads
//! the map, or when a background thread gets there first: writers only push. A fold freezes the
//! generation and begins a new one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::{Mutex, RwLock};
use windrow_document::Document;
use windrow_fold::{Chunk, ChunkBuilder, Entry, Tail};
use windrow_index::{Multikey, Scratch};

use crate::index::Index;
use crate::record::{self, Commit, Operation};

/// See the module.
#[derive(Debug)]
pub struct Generation {
    start: u64,
    commits: RwLock<Vec<Arc<Commit>>>,
    /// Bytes of log records.
    record_bytes: AtomicU64,
    records: Tail,
    indexes: Mutex<BTreeMap<u64, Arc<IndexTail>>>,
    held: Held,
}

/// An index's tail, and how many bytes of log records it has made entries of.
#[derive(Debug)]
struct IndexTail {
    tail: Tail,
    settled_bytes: AtomicU64,
    /// How many entries were made the last time.
    last_entries: AtomicUsize,
}

/// Memory that tails hold, in bytes: of one generation, counted into the sum of all.
#[derive(Debug)]
struct Held {
    all: Arc<AtomicU64>,
    /// None once it is folded, and no longer counted.
    own: Mutex<Option<u64>>,
}

impl Held {
    fn add(&self, bytes: u64) {
        if let Some(own) = self.own.lock().as_mut() {
            *own += bytes;
            self.all.fetch_add(bytes, Ordering::Relaxed);
        }
    }
}

impl Generation {
    /// `held` counts the memory of all generations.
    pub fn new(start: u64, held: &Arc<AtomicU64>) -> Generation {
        Generation {
            start,
            commits: RwLock::default(),
            record_bytes: AtomicU64::new(0),
            records: Tail::new(start),
            indexes: Mutex::default(),
            held: Held {
                all: held.clone(),
                own: Mutex::new(Some(0)),
            },
        }
    }

    /// Adds the next commit in the order of the log.
    pub fn push(&self, commit: Commit) {
        let bytes = commit.bytes as u64;
        self.commits.write().push(Arc::new(commit));
        self.record_bytes.fetch_add(bytes, Ordering::Release);
        self.held.add(bytes);
    }

    /// Says that it is folded or dropped: its memory is not counted any more.
    pub fn retire(&self) {
        if let Some(own) = self.held.own.lock().take() {
            self.held.all.fetch_sub(own, Ordering::Relaxed);
        }
    }

    /// Memory held, in bytes: log records and entries.
    pub fn bytes(&self) -> u64 {
        self.held.own.lock().unwrap_or(0)
    }

    pub fn is_empty(&self) -> bool {
        self.commits.read().is_empty()
    }

    /// The position of the newest commit, or where the generation starts.
    pub fn newest(&self) -> u64 {
        self.commits
            .read()
            .last()
            .map_or(self.start, |commit| commit.position)
    }

    /// Commits up to here are in older generations or sections.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// The position of the oldest commit.
    pub fn oldest(&self) -> Option<u64> {
        self.commits.read().first().map(|commit| commit.position)
    }

    /// The commits after a position.
    pub fn commits_since(&self, position: u64) -> Vec<Arc<Commit>> {
        let commits = self.commits.read();
        let first = commits.partition_point(|commit| commit.position <= position);
        commits.get(first..).unwrap_or_default().to_vec()
    }

    /// The chunks of documents up to at least `position`.
    pub fn records(&self, position: u64) -> Arc<Vec<Arc<Chunk>>> {
        self.records.settle(position, |from| {
            let commits = self.commits_since(from);
            let settled = commits
                .last()
                .map_or(position, |last| last.position.max(position));
            (records_chunk(&commits), settled)
        })
    }

    /// The chunks of an index up to at least `position`.
    pub fn index(&self, index: &Index, position: u64) -> Arc<Vec<Arc<Chunk>>> {
        let tail = self.index_tail(index);
        tail.tail.settle(position, |from| {
            let bytes = self.record_bytes.load(Ordering::Acquire);
            let commits = self.commits_since(from);
            let settled = commits
                .last()
                .map_or(position, |last| last.position.max(position));
            let expected = tail.last_entries.load(Ordering::Relaxed);
            let chunk = index_chunk(index, &commits, expected + expected / 4);
            tail.last_entries.store(chunk.len(), Ordering::Relaxed);
            self.held.add(chunk.bytes() as u64);
            tail.settled_bytes.store(bytes, Ordering::Release);
            (chunk, settled)
        })
    }

    /// Memory that an index's entries take, in bytes.
    pub fn index_bytes(&self, index: &Index) -> u64 {
        self.index_tail(index).tail.bytes() as u64
    }

    fn index_tail(&self, index: &Index) -> Arc<IndexTail> {
        let make = || {
            let tail = Tail::new(self.start.max(index.since));
            Arc::new(IndexTail {
                tail,
                settled_bytes: AtomicU64::new(0),
                last_entries: AtomicUsize::new(0),
            })
        };
        self.indexes
            .lock()
            .entry(index.map)
            .or_insert_with(make)
            .clone()
    }

    /// About how many bytes of log records an index has not made entries of.
    pub fn bytes_unsettled(&self, index: &Index) -> u64 {
        let settled = self.index_tail(index).settled_bytes.load(Ordering::Acquire);
        self.record_bytes
            .load(Ordering::Acquire)
            .saturating_sub(settled)
    }
}

fn records_chunk(commits: &[Arc<Commit>]) -> Chunk {
    let base = commits.first().map_or(0, |commit| commit.position);
    let mut builder = ChunkBuilder::new(base, commits.len());
    for commit in commits {
        let position = commit.position;
        for operation in &commit.operations {
            match operation {
                Operation::Insert { first, documents } => {
                    let arena = builder.share(documents.clone());
                    for ((offset, document), id) in record::documents(documents).zip(*first..) {
                        let length = document.as_bytes().len() as u32;
                        builder.add_shared(id, position, arena, offset as u32, length);
                    }
                }
                Operation::Update { id, document, .. } => {
                    let arena = builder.share(document.clone());
                    builder.add_shared(*id, position, arena, 0, document.len() as u32);
                }
                Operation::Delete { id, .. } => {
                    builder.add(Entry {
                        key: b"",
                        id: *id,
                        position,
                        deleted: true,
                        payload: b"",
                    });
                }
            }
        }
    }
    builder.finish()
}

/// `entries`: about how many are expected.
fn index_chunk(index: &Index, commits: &[Arc<Commit>], entries: usize) -> Chunk {
    let base = commits.first().map_or(0, |commit| commit.position);
    let mut builder = ChunkBuilder::new(base, entries);
    let mut scratch = Scratch::default();
    let mut multikey = Multikey::of(index.definition.fields.len());
    for commit in commits {
        let position = commit.position;
        for operation in &commit.operations {
            match operation {
                Operation::Insert { first, documents } => {
                    for ((_, document), id) in record::documents(documents).zip(*first..) {
                        let mut add = |key: &[u8], payload: &[u8]| {
                            builder.add(Entry {
                                key,
                                id,
                                position,
                                deleted: false,
                                payload,
                            });
                        };
                        add_entries(index, document, &mut scratch, &mut multikey, &mut add);
                    }
                }
                Operation::Update {
                    id,
                    changes,
                    document,
                } => {
                    let document = Document::from_validated(document);
                    add_changes(index, *id, position, changes, &mut builder);
                    if !changes.is_empty() {
                        add_entries(index, document, &mut scratch, &mut multikey, &mut |_, _| {});
                    }
                }
                Operation::Delete { id, changes } => {
                    add_changes(index, *id, position, changes, &mut builder);
                }
            }
        }
    }
    index.note_multikey(&multikey);
    builder.finish()
}

/// The writer has made sure that the document has entries; one that has none after all (its rules
/// changed between versions of Windrow) contributes none.
fn add_entries(
    index: &Index,
    document: Document<'_>,
    scratch: &mut Scratch,
    multikey: &mut Multikey,
    add: &mut dyn FnMut(&[u8], &[u8]),
) {
    let made = index.definition.entries(document, scratch, multikey, add);
    debug_assert!(made.is_ok(), "{made:?}");
}

fn add_changes(
    index: &Index,
    id: u64,
    position: u64,
    changes: &[record::IndexChange],
    builder: &mut ChunkBuilder,
) {
    for change in changes.iter().filter(|change| change.map == index.map) {
        for key in &change.gone {
            builder.add(Entry {
                key,
                id,
                position,
                deleted: true,
                payload: b"",
            });
        }
        for (key, payload) in &change.come {
            builder.add(Entry {
                key,
                id,
                position,
                deleted: false,
                payload,
            });
        }
    }
}
