//! What all collections share: storage, snapshots, the budget of the tails, ids.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex, RwLock};
use windrow_fold::{Section, SectionDescriptor, Snapshot, Snapshots};
use windrow_storage::{RunId, Storage};

use crate::collection::Collection;
use crate::engine::EngineOptions;
use crate::error::Error;
use crate::namespace::Namespace;
use crate::record::{Commit, Effect, Operation};

/// See the module.
pub(crate) struct Core {
    pub storage: Storage,
    pub options: EngineOptions,
    pub snapshots: Arc<Snapshots>,
    pub collections: RwLock<Collections>,
    /// Held while collections, indexes or sections are changed: in the catalog, then in memory.
    pub catalog_change: Mutex<()>,
    /// Held while a fold runs.
    pub folding: Mutex<()>,
    /// Held while merges run: two of one map would put what one has dropped back.
    pub merging: Mutex<()>,
    next_id: AtomicU64,
    /// How many sections stand in each run; a run without any is removed.
    run_sections: Mutex<HashMap<u64, usize>>,
    /// Memory that tails hold, in bytes.
    pub tail_bytes: Arc<AtomicU64>,
    /// Bytes of tails at which a fold begins.
    fold_from_bytes: AtomicU64,
    pub background: Background,
    pub counters: Counters,
}

#[derive(Default)]
pub(crate) struct Collections {
    pub by_name: BTreeMap<Namespace, Arc<Collection>>,
    pub by_id: HashMap<u64, Arc<Collection>>,
}

/// What wakes the background threads, what they tell, and what stops them.
#[derive(Default)]
pub(crate) struct Background {
    pub fold: Call,
    pub folded: Call,
    pub merge: Call,
    pub merged: Call,
    pub settle: Call,
    pub settled: Call,
    pub closing: AtomicBool,
}

/// Something that one thread asks or tells and others wait for.
#[derive(Default)]
pub(crate) struct Call {
    called: Mutex<bool>,
    changed: Condvar,
}

impl Call {
    pub fn call(&self) {
        let mut called = self.called.lock();
        if !*called {
            *called = true;
            self.changed.notify_all();
        }
    }

    /// Waits for the next call, at most so long; one that came since the last wait counts.
    pub fn wait(&self, at_most: Duration) {
        let mut called = self.called.lock();
        if !*called {
            self.changed.wait_for(&mut called, at_most);
        }
        *called = false;
    }
}

/// So many chains of sections a map should have at most: about three tiers of eight.
const CHAINS_MAX: u64 = 28;
/// Past so many chains merges do not rest.
pub(crate) const CHAINS_MANY: u32 = 20;
/// A fold begins where tails have so great a part of the bytes that are stored, which are compressed,
/// as tails are not.
const STORED_PER_FOLD: u64 = 4;
/// It begins at so great a part of what tails may have, where little is stored.
const TAILS_MIN: u64 = 8;
/// Tails are at most so many times as large as where they are folded before writers wait: what comes
/// while a fold runs has room.
const TAILS_MAX: u64 = 3;
/// Commits of which no entries are made yet are at most so many times as large as where that begins.
const UNSETTLED_MAX: u64 = 4;

/// How far `held` is above a limit, in limits.
fn excess(held: u64, limit: u64) -> f64 {
    held.saturating_sub(limit) as f64 / limit.max(1) as f64
}

/// The longest that a writer waits at once.
fn pause(behind: f64) -> Duration {
    Duration::from_micros(((behind * 40_000.0) as u64).clamp(500, 40_000))
}

/// What the engine has done since it was opened.
#[derive(Debug, Default)]
pub struct Counters {
    pub folds: AtomicU64,
    pub merges: AtomicU64,
    pub delayed_writes: AtomicU64,
}

impl std::fmt::Debug for Core {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Core")
    }
}

impl Core {
    pub fn new(storage: Storage, options: EngineOptions, next_id: u64) -> Core {
        Core {
            storage,
            options,
            snapshots: Arc::default(),
            collections: RwLock::default(),
            catalog_change: Mutex::default(),
            folding: Mutex::default(),
            merging: Mutex::default(),
            next_id: AtomicU64::new(next_id),
            run_sections: Mutex::default(),
            tail_bytes: Arc::default(),
            fold_from_bytes: AtomicU64::new(options.tail_bytes / TAILS_MIN),
            background: Background::default(),
            counters: Counters::default(),
        }
    }

    /// A snapshot of everything written so far.
    pub fn snapshot(&self) -> Snapshot {
        self.snapshots.open(|| self.storage.log.written().0)
    }

    /// The positions that are read at, now or from now on.
    pub fn snapshot_positions(&self) -> Vec<u64> {
        self.snapshots.positions(|| self.storage.log.written().0)
    }

    /// A number for a collection or map that was never given before.
    pub fn take_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    pub fn next_id(&self) -> u64 {
        self.next_id.load(Ordering::Relaxed)
    }

    /// Appends a commit of a collection; on return it is written and seen by new readers.
    pub fn append(
        &self,
        collection: &Collection,
        payload: &[&[u8]],
        operations: Vec<Operation>,
        bytes: usize,
        effect: Effect,
    ) -> Result<(), Error> {
        let Some(collection) = self.collections.read().by_id.get(&collection.id).cloned() else {
            return Err(Error::NamespaceNotFound(collection.namespace().to_string()));
        };
        self.storage.log.append(payload, move |position| {
            let commit = Commit {
                position: position.0,
                operations,
                bytes,
            };
            collection.publish(commit, effect);
        })?;
        if self.tail_bytes() >= self.fold_from_bytes() {
            self.background.fold.call();
        }
        Ok(())
    }

    pub fn tail_bytes(&self) -> u64 {
        self.tail_bytes.load(Ordering::Relaxed)
    }

    /// Bytes of tails at which a fold begins: the more is stored, the more a fold brings, so that there
    /// are never many sections for what there is, and the first seconds of writing tell how fast it
    /// will go on.
    pub fn fold_from_bytes(&self) -> u64 {
        self.fold_from_bytes.load(Ordering::Relaxed)
    }

    /// Looks how much is stored: after folds.
    pub fn note_stored(&self) {
        let of_collection = |collection: &Arc<Collection>| -> u64 {
            let state = collection.state();
            let indexes = state.indexes.iter().map(|it| it.sections.bytes_stored());
            state.records.bytes_stored() + indexes.sum::<u64>()
        };
        let stored: u64 = self.all().iter().map(of_collection).sum();
        let most = self.options.tail_bytes;
        let bytes = (stored / STORED_PER_FOLD).clamp(most / TAILS_MIN, most);
        self.fold_from_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Lets a writer wait where background work falls behind: a little where it is a little behind,
    /// more the farther, so that writers slow down instead of stopping. Two things are watched: records
    /// of which a reader would have to make entries first, and tails that wait to be folded.
    pub fn admit(&self, collection: &Collection) {
        let unsettled = collection.bytes_unsettled();
        let settle_limit = self.options.settle_bytes;
        if unsettled >= settle_limit {
            self.background.settle.call();
        }
        let behind = excess(unsettled, UNSETTLED_MAX * settle_limit);
        if behind > 0.0 {
            self.background.settled.wait(pause(behind));
        }
        let behind = excess(self.tail_bytes(), TAILS_MAX * self.fold_from_bytes());
        if behind > 0.0 {
            self.background.fold.call();
            self.background.folded.wait(pause(behind));
        }
        let behind = behind.max(self.admit_sections(collection));
        if behind > 0.0 || unsettled > UNSETTLED_MAX * settle_limit {
            self.counters.delayed_writes.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits where merges fall behind: readers would have to look into too many sections.
    fn admit_sections(&self, collection: &Collection) -> f64 {
        let behind = excess(collection.chains_max() as u64, CHAINS_MAX);
        if behind > 0.0 {
            self.background.merge.call();
            self.background.merged.wait(pause(behind));
        }
        behind
    }

    /// Opens a section that the catalog has, and counts it for its run.
    pub fn open_section(&self, descriptor: SectionDescriptor) -> Result<Arc<Section>, Error> {
        let section = Section::open(&self.storage.runs, descriptor)?;
        *self
            .run_sections
            .lock()
            .entry(section.descriptor().run)
            .or_insert(0) += 1;
        Ok(Arc::new(section))
    }

    /// Says that the catalog has a section no more. A run without sections is removed, once nobody
    /// reads it.
    pub fn close_section(&self, descriptor: &SectionDescriptor) -> Result<(), Error> {
        let mut runs = self.run_sections.lock();
        let Some(count) = runs.get_mut(&descriptor.run) else {
            return Ok(());
        };
        *count -= 1;
        if *count == 0 {
            runs.remove(&descriptor.run);
            self.storage.runs.remove(RunId(descriptor.run))?;
        }
        Ok(())
    }

    /// The runs that have sections.
    pub fn runs(&self) -> std::collections::HashSet<RunId> {
        self.run_sections
            .lock()
            .keys()
            .map(|run| RunId(*run))
            .collect()
    }

    pub fn is_closing(&self) -> bool {
        self.background.closing.load(Ordering::Acquire)
    }

    /// All collections.
    pub fn all(&self) -> Vec<Arc<Collection>> {
        self.collections.read().by_name.values().cloned().collect()
    }
}
