//! An index of a collection: its definition, its map, and how far its build is.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use windrow_fold::Position;
use windrow_index::Definition;

use crate::ids::MapId;
use crate::recent_key_filter::RecentKeyFilter;
use crate::rows::IndexRow;

/// See the module.
#[derive(Debug)]
pub struct Index {
    /// The number of its map.
    pub map: MapId,
    pub definition: Arc<Definition>,
    /// It follows the log from behind this position; what was before, its build reads.
    pub since: Position,
    life: Arc<Life>,
}

/// What is common to an index before and after a change of its definition: whoever still holds the
/// older one must neither miss nor lose anything.
#[derive(Debug)]
struct Life {
    ready: AtomicBool,
    /// The position from which on it is complete for who reads there.
    ready_from: AtomicU64,
    dropped: AtomicBool,
    /// The newest definition, which is the one that the catalog keeps.
    newest: Mutex<Arc<Definition>>,
    /// How many plans have used it since `counting`.
    uses: AtomicU64,
    /// The start, when it was made, or when it was last hidden or shown again.
    counting: Mutex<Instant>,
    progress: Progress,
    recent: RecentKeyFilter,
}

/// How far a build is. Numbers only grow.
#[derive(Debug)]
pub struct Progress {
    pub documents: AtomicU64,
    pub documents_total: AtomicU64,
    pub keys: AtomicU64,
    pub bytes: AtomicU64,
    /// All documents are read; unique keys are looked at.
    pub checking: AtomicBool,
    pub started: Instant,
}

impl Index {
    pub fn new(map: MapId, definition: Arc<Definition>, since: Position, ready: bool) -> Index {
        let progress = Progress {
            documents: AtomicU64::new(0),
            documents_total: AtomicU64::new(0),
            keys: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            checking: AtomicBool::new(false),
            started: Instant::now(),
        };
        let life = Life {
            ready: AtomicBool::new(ready),
            ready_from: AtomicU64::new(0),
            dropped: AtomicBool::new(false),
            newest: Mutex::new(definition.clone()),
            uses: AtomicU64::new(0),
            counting: Mutex::new(progress.started),
            progress,
            recent: RecentKeyFilter::default(),
        };
        Index {
            map,
            definition,
            since,
            life: Arc::new(life),
        }
    }

    /// The same index with another definition that makes the same entries.
    pub fn with_definition(&self, definition: Definition) -> Index {
        let definition = Arc::new(definition);
        *self.life.newest.lock() = definition.clone();
        Index {
            map: self.map,
            definition,
            since: self.since,
            life: self.life.clone(),
        }
    }

    /// Counts a plan that uses it.
    pub fn record_use(&self) {
        self.life.uses.fetch_add(1, Ordering::Relaxed);
    }

    /// How many plans have used it since [`counting_since`](Self::counting_since).
    pub fn uses(&self) -> u64 {
        self.life.uses.load(Ordering::Relaxed)
    }

    /// From when on its uses are counted: the start, when it was made, or when it was last hidden or
    /// shown again.
    pub fn counting_since(&self) -> Instant {
        *self.life.counting.lock()
    }

    /// Counts its uses anew from now on.
    pub fn count_anew(&self) {
        let mut counting = self.life.counting.lock();
        self.life.uses.store(0, Ordering::Relaxed);
        *counting = Instant::now();
    }

    /// How far its build is.
    pub fn progress(&self) -> &Progress {
        &self.life.progress
    }

    /// The keys that came to it not long ago.
    pub fn recent_key_filter(&self) -> &RecentKeyFilter {
        &self.life.recent
    }

    /// Whether queries may use it.
    pub fn is_ready(&self) -> bool {
        self.life.ready.load(Ordering::Acquire)
    }

    /// Whether writers look for keys that are there already. Where it is being built they do not: what
    /// comes meanwhile is checked when its build ends, which keeps writers out.
    pub fn enforces_uniqueness(&self) -> bool {
        self.definition.enforces_uniqueness() && self.is_ready()
    }

    /// `position`: the newest, behind all that its build has read.
    pub fn set_ready(&self, position: Position) {
        self.life.ready_from.store(position.0, Ordering::Release);
        self.life.ready.store(true, Ordering::Release);
    }

    /// The first position at which it may be read, once it is ready: what was there before, its build
    /// may have missed.
    pub fn ready_from(&self) -> Position {
        Position(self.life.ready_from.load(Ordering::Acquire))
    }

    /// Whether it was dropped, or is to be: a build of it stops.
    pub fn is_dropped(&self) -> bool {
        self.life.dropped.load(Ordering::Acquire)
    }

    pub fn set_dropped(&self) {
        self.life.dropped.store(true, Ordering::Release);
    }

    /// Its row in the catalog as of now.
    pub fn row(&self) -> IndexRow {
        IndexRow {
            specification: self.life.newest.lock().specification.clone(),
            ready: self.is_ready(),
            since: self.since,
        }
    }
}
