//! A generation of tails: what a collection's commits since the last fold add to its maps.
//!
//! Commits are pushed onto one list. A map's tail makes its entries from the list when somebody reads
//! the map, or when a background thread gets there first: writers only push. A fold freezes the
//! generation and begins a new one.
//!
//! Of the two maps that every collection has one carries the documents:
//!
//! | | by `_id` | by record id |
//! |---|---|---|
//! | ordinary | key, record id → shape | record id → document |
//! | clustered | key, record id → document | record id, big-endian, as the key → key of the `_id` |
//!
//! So a new version of a document concerns, besides the indexes whose keys change, that one map.

mod entries;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::{Mutex, RwLock};
use windrow_fold::{HashedKey, Position, Tail, TailPart};
use windrow_index::Definition;

use crate::ids::MapId;
use crate::index::Index;
use crate::key_probe::KeyProbe;
use crate::key_set::KeySet;
use crate::recent_key_filter::FoldedKeys;
use crate::record::{Commit, Operation};
use entries::{
    add_hashes, documents_by_id, documents_by_record, entries_of, ids_by_record, index_entries,
};

pub(crate) use entries::append_id_key;

/// Behind all places of documents and the keys of all `_id`s: none begins so.
pub(crate) const BEHIND_ALL: &[u8] = &[0xFF; 9];

/// See the module.
#[derive(Debug)]
pub struct Generation {
    start: Position,
    commits: RwLock<Vec<Arc<Commit>>>,
    /// Bytes of log records.
    record_bytes: AtomicU64,
    records: Tail,
    /// The index on `_id` where it carries the documents.
    clustered: Option<Arc<Definition>>,
    indexes: Mutex<BTreeMap<MapId, Arc<IndexTail>>>,
    held: Held,
    /// How many threads make entries of many commits.
    threads: usize,
}

/// An index's tail, and how many bytes of log records it has made entries of.
#[derive(Debug)]
struct IndexTail {
    tail: Tail,
    keys: Mutex<Keys>,
    settled_bytes: AtomicU64,
    /// How many bytes of records were looked through for keys since.
    searched_bytes: AtomicU64,
    /// How many entries were made the last time.
    last_entries: AtomicUsize,
}

/// What commits do of which no entries were made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Behind {
    Nothing,
    /// They only insert documents.
    Additions,
    Changes,
}

/// The keys of the commits behind one position up to another: made when somebody asks for some first.
#[derive(Debug)]
struct Keys {
    set: KeySet,
    from: Position,
    position: Position,
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
    /// `clustered`: the index on `_id`, where it carries the documents. `held` counts the memory of all
    /// generations.
    pub fn new(
        start: Position,
        clustered: Option<Arc<Definition>>,
        held: &Arc<AtomicU64>,
    ) -> Generation {
        Generation {
            start,
            commits: RwLock::default(),
            record_bytes: AtomicU64::new(0),
            records: Tail::new(start),
            clustered,
            indexes: Mutex::default(),
            held: Held {
                all: held.clone(),
                own: Mutex::new(Some(0)),
            },
            threads: 1,
        }
    }

    /// Lets several threads make the entries of many commits.
    pub fn with_threads(self, threads: usize) -> Generation {
        Generation { threads, ..self }
    }

    /// Adds the next commit in the order of the log.
    pub fn push(&self, commit: Commit) {
        let bytes = commit.bytes as u64;
        let mut commits = self.commits.write();
        let newest = commits.last().map_or(self.start, |last| last.position);
        debug_assert!(
            commit.position > newest,
            "the commit of record {} follows that of record {newest}",
            commit.position
        );
        commits.push(Arc::new(commit));
        drop(commits);
        self.record_bytes.fetch_add(bytes, Ordering::Release);
        self.held.add(bytes);
    }

    /// Says that it is folded or dropped: its memory is not counted any more.
    pub fn retire(&self) {
        if let Some(own) = self.held.own.lock().take() {
            let all = self.held.all.fetch_sub(own, Ordering::Relaxed);
            debug_assert!(all >= own, "{own} of {all} bytes of tails");
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
    pub fn newest(&self) -> Position {
        self.commits
            .read()
            .last()
            .map_or(self.start, |commit| commit.position)
    }

    /// Commits up to here are in older generations or sections.
    pub fn start(&self) -> Position {
        self.start
    }

    /// The position of the oldest commit.
    pub fn oldest(&self) -> Option<Position> {
        self.commits.read().first().map(|commit| commit.position)
    }

    /// The commits after a position.
    pub fn commits_since(&self, position: Position) -> Vec<Arc<Commit>> {
        let commits = self.commits.read();
        behind(&commits, position).to_vec()
    }

    /// The parts of the map by record id up to at least `position`.
    pub fn records(&self, position: Position) -> Arc<Vec<Arc<TailPart>>> {
        self.records.parts_up_to(position, |from| {
            let commits = self.commits_since(from);
            let settled = reached(&commits, position);
            let made = match &self.clustered {
                None => documents_by_record(&commits),
                Some(of_ids) => ids_by_record(of_ids, &commits),
            };
            (vec![TailPart::from(made)], settled)
        })
    }

    /// The parts of an index up to at least `position`.
    pub fn index(&self, index: &Index, position: Position) -> Arc<Vec<Arc<TailPart>>> {
        let tail = self.index_tail(index);
        tail.tail.parts_up_to(position, |from| {
            let bytes = self.record_bytes.load(Ordering::Acquire);
            let commits = self.commits_since(from);
            let settled = reached(&commits, position);
            let made = self.make_parts(index, &commits, tail.last_entries.load(Ordering::Relaxed));
            let entries = made.iter().map(TailPart::len).sum();
            tail.last_entries.store(entries, Ordering::Relaxed);
            let made_bytes: usize = made.iter().map(TailPart::bytes).sum();
            self.held.add(made_bytes as u64);
            tail.settled_bytes.store(bytes, Ordering::Release);
            tail.searched_bytes.store(0, Ordering::Relaxed);
            (made, settled)
        })
    }

    /// Makes an index's entries of commits: with many bytes of commits on several threads, a part on each.
    /// `last_entries`: how many entries were made the last time.
    fn make_parts(
        &self,
        index: &Index,
        commits: &[Arc<Commit>],
        last_entries: usize,
    ) -> Vec<TailPart> {
        let shares = shares_of(commits, self.threads);
        let expected = (last_entries + last_entries / 4) / shares.len().max(1);
        let make = |commits: &[Arc<Commit>]| {
            TailPart::from(if index.definition.clustered {
                documents_by_id(index, commits, expected)
            } else {
                index_entries(index, commits, expected)
            })
        };
        let Some((first, others)) = shares.split_first() else {
            return Vec::new();
        };
        std::thread::scope(|scope| {
            let make = &make;
            let started: Vec<_> = others
                .iter()
                .map(|share| scope.spawn(move || make(share)))
                .collect();
            let mut parts = vec![make(first)];
            parts.extend(started.into_iter().map(|thread| match thread.join() {
                Ok(part) => part,
                Err(panic) => std::panic::resume_unwind(panic),
            }));
            parts
        })
    }

    /// The parts of an index that are made.
    pub fn index_made(&self, index: &Index) -> Arc<Vec<Arc<TailPart>>> {
        self.index_tail(index).tail.made().0
    }

    /// What the commits do of which an index has no entries yet.
    pub fn behind(&self, index: &Index) -> Behind {
        let settled = self.index_tail(index).tail.settled();
        let commits = self.commits.read();
        let commits = behind(&commits, settled);
        let mut operations = commits.iter().flat_map(|commit| &commit.operations);
        match operations.all(|it| matches!(it, Operation::Insert { .. })) {
            true if commits.is_empty() => Behind::Nothing,
            true => Behind::Additions,
            false => Behind::Changes,
        }
    }

    /// The parts of an index that have what there is of a key up to at least `position`: one is made of what
    /// the commits without entries have of it.
    pub fn index_of(
        &self,
        index: &Index,
        position: Position,
        probe: &KeyProbe<'_>,
    ) -> Arc<Vec<Arc<TailPart>>> {
        let tail = self.index_tail(index);
        let (mut parts, settled) = tail.tail.made();
        if settled >= position {
            return parts;
        }
        let bytes = self.entry_backlog(index);
        if tail.searched_bytes.fetch_add(bytes, Ordering::Relaxed) > SEARCHES * bytes {
            return self.index(index, position);
        }
        let found = entries_of(index, &self.commits_since(settled), probe);
        if !found.is_empty() {
            Arc::make_mut(&mut parts).push(Arc::new(TailPart::from(found)));
        }
        parts
    }

    /// Notes which of these keys of an index its commits up to at least `position` may have.
    pub fn mark_possible(
        &self,
        index: &Index,
        position: Position,
        wanted: &[HashedKey<'_>],
        held: &mut [bool],
    ) {
        let tail = self.index_tail(index);
        let mut keys = tail.keys.lock();
        self.take_in(index, position, &mut keys);
        keys.set.mark_possible(wanted, held);
    }

    fn take_in(&self, index: &Index, position: Position, keys: &mut Keys) {
        if keys.position < position {
            let commits = self.commits_since(keys.position);
            for commit in &commits {
                add_hashes(index, commit, &mut keys.set);
            }
            keys.position = reached(&commits, position);
            self.held.add(keys.set.grown() as u64);
        }
    }

    /// The keys that it brings an index, up to its end, where somebody has asked for most of them: to hash
    /// the others, who asks for one would have to wait.
    pub fn folded_keys(&self, index: &Index) -> Option<FoldedKeys> {
        let tail = self.index_tail(index);
        let mut keys = tail.keys.lock();
        let is_asked_for = {
            let commits = self.commits.read();
            behind(&commits, keys.position).len() * UNASKED_PART <= commits.len()
        };
        if !is_asked_for {
            return None;
        }
        self.take_in(index, self.newest(), &mut keys);
        Some(FoldedKeys {
            from: keys.from,
            until: self.newest(),
            hashes: keys.set.hashes().to_vec(),
        })
    }

    /// Whether a tail has parts that should be merged.
    pub fn has_joinable_parts(&self) -> bool {
        let indexes = self.indexes.lock();
        self.records.has_joinable_parts()
            || indexes
                .values()
                .any(|index| index.tail.has_joinable_parts())
    }

    /// Joins parts of tails while others read and write; whether there were any to merge.
    pub fn join_parts(&self) -> bool {
        let indexes: Vec<_> = self.indexes.lock().values().cloned().collect();
        let joined = indexes.iter().map(|index| index.tail.join_parts());
        joined.fold(self.records.join_parts(), |some, one| some | one)
    }

    /// Memory that an index's entries take, in bytes.
    pub fn index_bytes(&self, index: &Index) -> u64 {
        let tail = self.index_tail(index);
        let keys = tail.keys.lock().set.bytes();
        (tail.tail.bytes() + keys) as u64
    }

    fn index_tail(&self, index: &Index) -> Arc<IndexTail> {
        let make = || {
            let position = self.start.max(index.since);
            let keys = Keys {
                set: KeySet::default(),
                from: position,
                position,
            };
            Arc::new(IndexTail {
                tail: Tail::new(position),
                keys: Mutex::new(keys),
                settled_bytes: AtomicU64::new(0),
                searched_bytes: AtomicU64::new(0),
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
    pub fn entry_backlog(&self, index: &Index) -> u64 {
        let settled = self.index_tail(index).settled_bytes.load(Ordering::Acquire);
        self.record_bytes
            .load(Ordering::Acquire)
            .saturating_sub(settled)
    }
}

/// What nobody has made entries of is searched for keys about so often: making entries takes as long as
/// ten searches.
const SEARCHES: u64 = 4;
/// So great a part of a generation's commits may have keys that nobody has asked for.
const UNASKED_PART: usize = 4;

/// A thread of its own is started for no fewer bytes of commits.
const SHARE_BYTES: usize = 256 << 10;

/// Divides commits among threads: consecutive shares of about equally many bytes, at most `threads`.
fn shares_of(commits: &[Arc<Commit>], threads: usize) -> Vec<&[Arc<Commit>]> {
    let bytes: usize = commits.iter().map(|commit| commit.bytes).sum();
    let count = (bytes / SHARE_BYTES).clamp(1, threads.max(1));
    let (mut shares, mut rest, mut rest_bytes) = (Vec::new(), commits, bytes);
    for left in (1..=count).rev() {
        let (wanted, mut taken) = (rest_bytes / left, 0);
        let within = rest.iter().take_while(|commit| {
            let begins_within = taken < wanted || left == 1;
            taken += if begins_within { commit.bytes } else { 0 };
            begins_within
        });
        let (share, others) = rest.split_at(within.count());
        (rest, rest_bytes) = (others, rest_bytes - taken);
        shares.push(share);
    }
    shares.retain(|share| !share.is_empty());
    shares
}

/// The commits after a position, of all in order.
fn behind(commits: &[Arc<Commit>], position: Position) -> &[Arc<Commit>] {
    let first = commits.partition_point(|commit| commit.position <= position);
    &commits[first..]
}

/// Up to where who has taken in the commits up to at least `position` has come.
fn reached(commits: &[Arc<Commit>], position: Position) -> Position {
    let last = commits.last();
    last.map_or(position, |last| last.position.max(position))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commits(bytes: &[usize]) -> Vec<Arc<Commit>> {
        let commit = |(position, bytes): (u64, &usize)| {
            Arc::new(Commit {
                position: Position(position),
                operations: Vec::new(),
                bytes: *bytes,
            })
        };
        (1..).zip(bytes).map(commit).collect()
    }

    fn sizes(commits: &[Arc<Commit>], threads: usize) -> Vec<usize> {
        let shares = shares_of(commits, threads);
        assert_eq!(
            shares
                .concat()
                .iter()
                .map(|it| it.position)
                .collect::<Vec<_>>(),
            commits.iter().map(|it| it.position).collect::<Vec<_>>(),
        );
        shares.iter().map(|share| share.len()).collect()
    }

    #[test]
    fn commits_are_shared_by_bytes_and_stay_in_order() {
        assert_eq!(sizes(&commits(&[SHARE_BYTES; 8]), 2), [4, 4]);
        assert_eq!(sizes(&commits(&[SHARE_BYTES; 8]), 3), [3, 3, 2]);
        let first_large = commits(&[6 * SHARE_BYTES, SHARE_BYTES, SHARE_BYTES]);
        assert_eq!(sizes(&first_large, 2), [1, 2]);
        let last_large = commits(&[1, 1, 6 * SHARE_BYTES]);
        assert_eq!(sizes(&last_large, 2), [3]);
        assert_eq!(sizes(&commits(&[8 * SHARE_BYTES]), 4), [1]);
        assert_eq!(sizes(&commits(&[SHARE_BYTES / 8; 8]), 4), [8]);
        assert_eq!(sizes(&[], 4), [0; 0]);
    }
}
