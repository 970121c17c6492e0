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
    next_id: AtomicU64,
    /// How many sections stand in each run; a run without any is removed.
    run_sections: Mutex<HashMap<u64, usize>>,
    /// Bytes of log records in tails.
    tail_bytes: AtomicU64,
    pub background: Background,
    pub counters: Counters,
}

#[derive(Default)]
pub(crate) struct Collections {
    pub by_name: BTreeMap<Namespace, Arc<Collection>>,
    pub by_id: HashMap<u64, Arc<Collection>>,
}

/// What wakes the background thread, and what stops it.
#[derive(Default)]
pub(crate) struct Background {
    pub wanted: Mutex<bool>,
    pub wake: Condvar,
    /// Told when a fold has ended.
    pub folded: Condvar,
    pub closing: AtomicBool,
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
            next_id: AtomicU64::new(next_id),
            run_sections: Mutex::default(),
            tail_bytes: AtomicU64::new(0),
            background: Background::default(),
            counters: Counters::default(),
        }
    }

    /// A snapshot of everything written so far.
    pub fn snapshot(&self) -> Snapshot {
        self.snapshots.open(|| self.storage.log.written().0)
    }

    /// Everything at or before this position is seen alike by all snapshots.
    pub fn oldest_snapshot(&self) -> u64 {
        self.snapshots.oldest(|| self.storage.log.written().0)
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
        self.tail_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        let appended = self.storage.log.append(payload, move |position| {
            let commit = Commit {
                position: position.0,
                operations,
                bytes,
            };
            collection.publish(commit, effect);
        });
        if appended.is_err() {
            self.note_folded(bytes as u64);
        }
        if self.tail_bytes() >= self.options.tail_bytes {
            self.wake();
        }
        Ok(appended.map(drop)?)
    }

    pub fn tail_bytes(&self) -> u64 {
        self.tail_bytes.load(Ordering::Relaxed)
    }

    /// Counts what recovery put into tails.
    pub fn note_recovered(&self, bytes: u64) {
        self.tail_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts what left the tails.
    pub fn note_folded(&self, bytes: u64) {
        self.tail_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Wakes the background thread.
    pub fn wake(&self) {
        let mut wanted = self.background.wanted.lock();
        *wanted = true;
        self.background.wake.notify_one();
    }

    /// Lets a writer wait where tails grow faster than they are folded: a little above the limit,
    /// more the farther above it, so that writers slow down instead of stopping.
    pub fn admit(&self, bytes: usize) {
        let limit = self.options.tail_bytes;
        let held = self.tail_bytes() + bytes as u64;
        if held <= limit + limit / 2 {
            return;
        }
        self.counters.delayed_writes.fetch_add(1, Ordering::Relaxed);
        let excess = (held - limit) as f64 / limit as f64;
        let pause = Duration::from_millis((excess * excess * 10.0).min(40.0) as u64);
        let mut wanted = self.background.wanted.lock();
        *wanted = true;
        self.background.wake.notify_one();
        self.background.folded.wait_for(&mut wanted, pause);
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
