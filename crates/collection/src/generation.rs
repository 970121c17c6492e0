//! A generation of tails: the entries that a collection's commits since the last fold add to its
//! maps.
//!
//! Commits are appended to one list. A map's tail creates its entries from the list when a reader
//! needs them, or when a background thread gets there first. Writers only append. A fold freezes
//! the generation and starts a new one.
//!
//! Each collection has two maps. One of them contains the documents:
//!
//! | | by `_id` | by record id |
//! |---|---|---|
//! | ordinary | key, record id → shape | record id → document |
//! | clustered | key, record id → document | record id, big-endian, as the key → key of the `_id` |
//!
//! A new version of a document changes only that map, and the indexes whose keys change.

mod chunks;
mod entries;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::{Mutex, RwLock};
use windrow_fold::parallel::map_items;
use windrow_fold::{ExistingParts, HashedKey, Position, Tail, TailPart};
use windrow_index::Definition;

use crate::ids::MapId;
use crate::index::Index;
use crate::record::{Commit, Operation};
use crate::unique_keys::key_probe::KeyProbe;
use crate::unique_keys::key_set::KeySet;
use crate::unique_keys::recent_key_filter::FoldedKeys;
use chunks::{chunks_of, commit_bytes, divide_inserts};
use entries::{
    add_hashes, documents_by_id, documents_by_record, entries_of, ids_by_record, index_entries,
};

pub(crate) use entries::append_id_key;

/// Sorts after all record ids and all keys of `_id`s, as none begins with these bytes.
pub(crate) const BEHIND_ALL: &[u8] = &[0xFF; 9];

/// A generation of tails.
#[derive(Debug)]
pub struct Generation {
    start: Position,
    commits: RwLock<Vec<Arc<Commit>>>,
    /// The bytes of log records.
    record_bytes: AtomicU64,
    records: Tail,
    /// The index on `_id` if it contains the documents.
    clustered: Option<Arc<Definition>>,
    indexes: Mutex<BTreeMap<MapId, Arc<IndexTail>>>,
    memory: TailMemory,
    /// The number of threads that create entries of many commits.
    threads: usize,
}

/// An index's tail, and the log bytes whose entries it contains.
#[derive(Debug)]
struct IndexTail {
    tail: Tail,
    keys: Mutex<CommitKeys>,
    covered_bytes: AtomicU64,
    /// The log bytes searched for keys since the last creation of entries.
    searched_bytes: AtomicU64,
    /// The number of entries of the last creation for each KiB of its commits.
    entries_per_kib: AtomicUsize,
}

/// The kind of the commits without entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Backlog {
    Nothing,
    /// They only insert documents.
    Inserts,
    /// Some of them update or delete documents.
    Changes,
}

/// The keys of the commits after the position `from` up to `position`. The first uniqueness check
/// computes them.
#[derive(Debug)]
struct CommitKeys {
    set: KeySet,
    from: Position,
    position: Position,
}

/// The memory of one generation's tails, also counted in the sum over all.
#[derive(Debug)]
struct TailMemory {
    all: Arc<AtomicU64>,
    /// `None` once the generation is folded and no longer counted.
    own: Mutex<Option<u64>>,
}

impl TailMemory {
    fn add(&self, bytes: u64) {
        if let Some(own) = self.own.lock().as_mut() {
            *own += bytes;
            self.all.fetch_add(bytes, Ordering::Relaxed);
        }
    }
}

impl Generation {
    /// Creates an empty generation after the position `start`. `clustered` is the index on `_id` if
    /// it contains the documents. `memory` counts that of all generations.
    pub fn new(
        start: Position,
        clustered: Option<Arc<Definition>>,
        memory: &Arc<AtomicU64>,
    ) -> Generation {
        Generation {
            start,
            commits: RwLock::default(),
            record_bytes: AtomicU64::new(0),
            records: Tail::new(start),
            clustered,
            indexes: Mutex::default(),
            memory: TailMemory {
                all: memory.clone(),
                own: Mutex::new(Some(0)),
            },
            threads: 1,
        }
    }

    /// Returns a generation with the commits after `position`.
    pub fn after(&self, position: Position, memory: &Arc<AtomicU64>) -> Generation {
        let next = Generation::new(position, self.clustered.clone(), memory);
        for commit in self.commits_since(position) {
            next.push_shared(commit);
        }
        next.with_threads(self.threads)
    }

    /// Sets the number of threads that create entries of many commits.
    pub fn with_threads(self, threads: usize) -> Generation {
        Generation { threads, ..self }
    }

    /// Appends the next commit. Commits must arrive in log order.
    pub fn push(&self, commit: Commit) {
        self.push_shared(Arc::new(commit));
    }

    fn push_shared(&self, commit: Arc<Commit>) {
        let bytes = commit.bytes as u64;
        let mut commits = self.commits.write();
        let newest = commits.last().map_or(self.start, |last| last.position);
        debug_assert!(
            commit.position > newest,
            "the commit of record {} follows that of record {newest}",
            commit.position
        );
        commits.push(commit);
        drop(commits);
        self.record_bytes.fetch_add(bytes, Ordering::Release);
        self.memory.add(bytes);
    }

    /// Stops counting its memory, after it was folded or dropped.
    pub fn retire(&self) {
        if let Some(own) = self.memory.own.lock().take() {
            let all = self.memory.all.fetch_sub(own, Ordering::Relaxed);
            debug_assert!(all >= own, "{own} of {all} bytes of tails");
        }
    }

    /// Returns the memory of log records and entries in bytes.
    pub fn bytes(&self) -> u64 {
        self.memory.own.lock().unwrap_or(0)
    }

    pub fn is_empty(&self) -> bool {
        self.commits.read().is_empty()
    }

    /// Returns the position of the newest commit, or the start of the generation.
    pub fn newest(&self) -> Position {
        self.commits
            .read()
            .last()
            .map_or(self.start, |commit| commit.position)
    }

    /// Returns the position after which the generation starts.
    pub fn start(&self) -> Position {
        self.start
    }

    /// Returns the position of the oldest commit.
    pub fn oldest(&self) -> Option<Position> {
        self.commits.read().first().map(|commit| commit.position)
    }

    /// Returns the commits after a position.
    pub fn commits_since(&self, position: Position) -> Vec<Arc<Commit>> {
        let commits = self.commits.read();
        commits_after(&commits, position).to_vec()
    }

    /// Returns the tail parts of the map by record id. They include all commits up to `position`.
    pub fn records(&self, position: Position) -> Arc<Vec<Arc<TailPart>>> {
        self.records.parts_up_to(position, |from| {
            let commits = self.commits_since(from);
            let covered = covered_position(&commits, position);
            let buffer = match &self.clustered {
                None => documents_by_record(&commits),
                Some(id_index) => ids_by_record(id_index, &commits),
            };
            (vec![TailPart::from(buffer)], covered)
        })
    }

    /// Returns the tail parts of an index, for a reader. They include all commits up to `position`.
    pub fn index(&self, index: &Index, position: Position) -> Arc<Vec<Arc<TailPart>>> {
        let tail = self.index_tail(index);
        let make = |from| self.make_parts_after(from, position, index, &tail);
        tail.tail.parts_up_to(position, make)
    }

    /// Like [`index`](Self::index), but the call does not count as a read, which would cause the
    /// parts to be joined.
    pub fn create_entries(&self, index: &Index, position: Position) -> Arc<Vec<Arc<TailPart>>> {
        let tail = self.index_tail(index);
        let make = |from| self.make_parts_after(from, position, index, &tail);
        tail.tail.extend_to(position, make)
    }

    /// Returns tail parts with the entries of an index after `from`, and the position up to which
    /// they go.
    fn make_parts_after(
        &self,
        from: Position,
        position: Position,
        index: &Index,
        tail: &IndexTail,
    ) -> (Vec<TailPart>, Position) {
        let bytes = self.record_bytes.load(Ordering::Acquire);
        let commits = self.commits_since(from);
        let covered = covered_position(&commits, position);
        let density = tail.entries_per_kib.load(Ordering::Relaxed);
        let parts = self.make_parts(index, &commits, density);
        let entries: usize = parts.iter().map(TailPart::len).sum();
        let commit_kib = commit_bytes(&commits).div_ceil(KIB).max(1);
        let density = entries.div_ceil(commit_kib);
        tail.entries_per_kib.store(density, Ordering::Relaxed);
        let part_bytes: usize = parts.iter().map(TailPart::bytes).sum();
        self.memory.add(part_bytes as u64);
        tail.covered_bytes.store(bytes, Ordering::Release);
        tail.searched_bytes.store(0, Ordering::Relaxed);
        (parts, covered)
    }

    /// Creates the entries of an index, on several threads if the commits have many bytes. Until
    /// the entries of a chunk are in order, they take a multiple of its memory, so no chunk is
    /// large. `entries_per_kib` is the expected number of entries for each KiB of commits.
    fn make_parts(
        &self,
        index: &Index,
        commits: &[Arc<Commit>],
        entries_per_kib: usize,
    ) -> Vec<TailPart> {
        let pieces = divide_inserts(commits);
        let chunks = chunks_of(&pieces, self.threads);
        let make = |commits: &&[Arc<Commit>]| {
            let expected = entries_per_kib * commit_bytes(commits) / KIB;
            let expected = expected + expected / 4;
            TailPart::from(if index.definition.clustered {
                documents_by_id(index, commits, expected)
            } else {
                index_entries(index, commits, expected)
            })
        };
        map_items(&chunks, self.threads, make)
    }

    /// Returns the existing tail parts of an index, without creating more.
    pub fn existing_index_parts(&self, index: &Index) -> Arc<Vec<Arc<TailPart>>> {
        self.index_tail(index).tail.existing_parts().parts
    }

    /// Returns what the commits do of which an index has no entries yet.
    pub fn backlog(&self, index: &Index) -> Backlog {
        let covered = self.index_tail(index).tail.covered();
        let commits = self.commits.read();
        let commits = commits_after(&commits, covered);
        let mut operations = commits.iter().flat_map(|commit| &commit.operations);
        if commits.is_empty() {
            Backlog::Nothing
        } else if operations.all(|it| matches!(it, Operation::Insert { .. })) {
            Backlog::Inserts
        } else {
            Backlog::Changes
        }
    }

    /// Returns tail parts with all entries of one key up to `position`. The last part contains that
    /// key's entries of the commits without parts.
    pub fn index_parts_of_key(
        &self,
        index: &Index,
        position: Position,
        probe: &KeyProbe<'_>,
    ) -> Arc<Vec<Arc<TailPart>>> {
        let tail = self.index_tail(index);
        let ExistingParts { mut parts, covered } = tail.tail.existing_parts();
        if covered >= position {
            return parts;
        }
        let bytes = self.entry_backlog(index);
        if tail.searched_bytes.fetch_add(bytes, Ordering::Relaxed) > SEARCHES * bytes {
            return self.index(index, position);
        }
        let found = entries_of(index, &self.commits_since(covered), probe);
        if !found.is_empty() {
            Arc::make_mut(&mut parts).push(Arc::new(TailPart::from(found)));
        }
        parts
    }

    /// Marks the keys of an index that its commits up to `position` may contain.
    pub fn mark_possible(
        &self,
        index: &Index,
        position: Position,
        keys: &[HashedKey<'_>],
        possible: &mut [bool],
    ) {
        let tail = self.index_tail(index);
        let mut known = tail.keys.lock();
        self.add_keys_up_to(index, position, &mut known);
        known.set.mark_possible(keys, possible);
    }

    /// Adds the keys of the commits up to `position` that `known` lacks.
    fn add_keys_up_to(&self, index: &Index, position: Position, known: &mut CommitKeys) {
        if known.position < position {
            let commits = self.commits_since(known.position);
            for commit in &commits {
                add_hashes(index, commit, &mut known.set);
            }
            known.position = covered_position(&commits, position);
            self.memory.add(known.set.take_growth() as u64);
        }
    }

    /// Returns the keys that the generation adds to an index, if checks have hashed most of them.
    /// Hashing the others would delay a concurrent check.
    pub fn folded_keys(&self, index: &Index) -> Option<FoldedKeys> {
        let tail = self.index_tail(index);
        let mut keys = tail.keys.lock();
        let are_mostly_hashed = {
            let commits = self.commits.read();
            commits_after(&commits, keys.position).len() * COMMITS_PER_UNHASHED <= commits.len()
        };
        if !are_mostly_hashed {
            return None;
        }
        self.add_keys_up_to(index, self.newest(), &mut keys);
        Some(FoldedKeys {
            from: keys.from,
            until: self.newest(),
            hashes: keys.set.hashes().to_vec(),
        })
    }

    /// Returns `true` if a tail has parts to join.
    pub fn has_joinable_parts(&self) -> bool {
        let indexes = self.indexes.lock();
        self.records.has_joinable_parts()
            || indexes
                .values()
                .any(|index| index.tail.has_joinable_parts())
    }

    /// Joins parts of tails, concurrently with readers and writers. Returns `true` if there were
    /// any.
    pub fn join_parts(&self) -> bool {
        let indexes: Vec<_> = self.indexes.lock().values().cloned().collect();
        let joined = indexes.iter().map(|index| index.tail.join_parts());
        joined.fold(self.records.join_parts(), |some, one| some | one)
    }

    /// Returns the memory of an index's entries in bytes.
    pub fn index_bytes(&self, index: &Index) -> u64 {
        let tail = self.index_tail(index);
        let keys = tail.keys.lock().set.bytes();
        (tail.tail.bytes() + keys) as u64
    }

    fn index_tail(&self, index: &Index) -> Arc<IndexTail> {
        let make = || {
            let position = self.start.max(index.since);
            let keys = CommitKeys {
                set: KeySet::default(),
                from: position,
                position,
            };
            Arc::new(IndexTail {
                tail: Tail::new(position),
                keys: Mutex::new(keys),
                covered_bytes: AtomicU64::new(0),
                searched_bytes: AtomicU64::new(0),
                entries_per_kib: AtomicUsize::new(0),
            })
        };
        self.indexes
            .lock()
            .entry(index.map)
            .or_insert_with(make)
            .clone()
    }

    /// Returns about how many log bytes lack entries of an index.
    pub fn entry_backlog(&self, index: &Index) -> u64 {
        let covered = self.index_tail(index).covered_bytes.load(Ordering::Acquire);
        self.record_bytes
            .load(Ordering::Acquire)
            .saturating_sub(covered)
    }
}

/// Bytes without entries are searched for keys about this many times before entries are created,
/// which takes as long as ten searches.
const SEARCHES: u64 = 4;
/// The keys of at most one in this many commits of a generation may be unhashed.
const COMMITS_PER_UNHASHED: usize = 4;

const KIB: usize = 1 << 10;

/// Returns the commits after a position.
fn commits_after(commits: &[Arc<Commit>], position: Position) -> &[Arc<Commit>] {
    let first = commits.partition_point(|commit| commit.position <= position);
    &commits[first..]
}

/// Returns the position that a tail has reached which contains all commits up to `position`.
fn covered_position(commits: &[Arc<Commit>], position: Position) -> Position {
    let last = commits.last();
    last.map_or(position, |last| last.position.max(position))
}
