//! A generation of tails: what a collection's commits since the last fold add to its maps.
//!
//! Commits are pushed onto one list. A map's tail makes its entries from the list when somebody reads
//! the map, or when a background thread gets there first: writers only push. A fold freezes the
//! generation and begins a new one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::{Mutex, RwLock};
use windrow_document::Document;
use windrow_fold::{Chunk, ChunkBuilder, Entry, Tail};
use windrow_index::{Multikey, Scratch};

use crate::index::Index;
use crate::record::{self, Commit, Operation};

/// See the module.
#[derive(Debug)]
pub struct Generation {
    /// Commits up to here are in older generations or sections.
    start: u64,
    commits: RwLock<Vec<Arc<Commit>>>,
    bytes: AtomicUsize,
    records: Tail,
    indexes: Mutex<BTreeMap<u64, Arc<Tail>>>,
}

impl Generation {
    pub fn new(start: u64) -> Generation {
        Generation {
            start,
            commits: RwLock::default(),
            bytes: AtomicUsize::new(0),
            records: Tail::new(start),
            indexes: Mutex::default(),
        }
    }

    /// Adds the next commit in the order of the log.
    pub fn push(&self, commit: Commit) {
        self.bytes.fetch_add(commit.bytes, Ordering::Relaxed);
        self.commits.write().push(Arc::new(commit));
    }

    pub fn is_empty(&self) -> bool {
        self.commits.read().is_empty()
    }

    /// Bytes of the log records that the generation holds.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The position of the newest commit, or where the generation starts.
    pub fn newest(&self) -> u64 {
        self.commits
            .read()
            .last()
            .map_or(self.start, |commit| commit.position)
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
        let tail = {
            let mut tails = self.indexes.lock();
            let start = self.start.max(index.since);
            tails
                .entry(index.map)
                .or_insert_with(|| Arc::new(Tail::new(start)))
                .clone()
        };
        tail.settle(position, |from| {
            let commits = self.commits_since(from);
            let settled = commits
                .last()
                .map_or(position, |last| last.position.max(position));
            (index_chunk(index, &commits), settled)
        })
    }

    /// How many bytes of commits an index has not made entries of.
    pub fn bytes_unsettled(&self, index: &Index) -> usize {
        let settled = self
            .indexes
            .lock()
            .get(&index.map)
            .map_or(0, |tail| tail.settled());
        self.commits_since(settled.max(index.since))
            .iter()
            .map(|commit| commit.bytes)
            .sum()
    }
}

fn records_chunk(commits: &[Arc<Commit>]) -> Chunk {
    let mut builder = ChunkBuilder::new(commits.first().map_or(0, |commit| commit.position));
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

fn index_chunk(index: &Index, commits: &[Arc<Commit>]) -> Chunk {
    let mut builder = ChunkBuilder::new(commits.first().map_or(0, |commit| commit.position));
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
