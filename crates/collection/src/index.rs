//! An index of a collection: its definition, its map, and the progress of its build.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use windrow_fold::Position;
use windrow_index::Definition;

use crate::catalog::rows::IndexRow;
use crate::ids::MapId;
use crate::unique_keys::recent_key_filter::RecentKeyFilter;

/// An index of a collection.
#[derive(Debug)]
pub struct Index {
    /// The id of its map.
    pub map: MapId,
    /// The parsed specification.
    pub definition: Arc<Definition>,
    /// The index follows the log after this position. Its build reads everything before.
    pub since: Position,
    lifecycle: Arc<Lifecycle>,
}

/// The state of an index that does not change with its definition. The older and the newer
/// definition share it.
#[derive(Debug)]
struct Lifecycle {
    ready: AtomicBool,
    /// The first position at which the index is complete.
    ready_from: AtomicU64,
    dropped: AtomicBool,
    /// The newest definition, which is the one in the catalog.
    newest: Mutex<Arc<Definition>>,
    /// The number of plans that have used the index since `counting`.
    uses: AtomicU64,
    /// The time when the engine opened, the index was created, or it was last hidden or unhidden.
    counting: Mutex<Instant>,
    progress: Progress,
    recent: RecentKeyFilter,
}

/// The progress of a build. The numbers only grow.
#[derive(Debug)]
pub struct Progress {
    /// The documents read so far.
    pub documents: AtomicU64,
    /// The documents to read.
    pub documents_total: AtomicU64,
    /// The keys created so far.
    pub keys: AtomicU64,
    /// The bytes written so far.
    pub bytes: AtomicU64,
    /// All documents are read, and the build checks unique keys.
    pub checking: AtomicBool,
    /// The shares that followers build.
    pub shares: Mutex<Vec<ShareProgress>>,
    /// When the build started.
    pub started: Instant,
}

/// A share of a build that a follower builds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareProgress {
    /// The address of the follower.
    pub builder: String,
    /// The documents that it has read so far.
    pub documents: u64,
}

impl Index {
    /// Creates an index that follows the log after `since`. Queries may use it once it is
    /// [ready](Self::set_ready).
    pub fn new(map: MapId, definition: Arc<Definition>, since: Position) -> Index {
        let progress = Progress {
            documents: AtomicU64::new(0),
            documents_total: AtomicU64::new(0),
            keys: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            checking: AtomicBool::new(false),
            shares: Mutex::default(),
            started: Instant::now(),
        };
        let lifecycle = Lifecycle {
            ready: AtomicBool::new(false),
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
            lifecycle: Arc::new(lifecycle),
        }
    }

    /// Returns the same index with another definition that creates the same entries.
    pub fn with_definition(&self, definition: Definition) -> Index {
        let definition = Arc::new(definition);
        *self.lifecycle.newest.lock() = definition.clone();
        Index {
            map: self.map,
            definition,
            since: self.since,
            lifecycle: self.lifecycle.clone(),
        }
    }

    /// Counts a plan that uses the index.
    pub fn record_use(&self) {
        self.lifecycle.uses.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of plans that used the index since
    /// [`counting_since`](Self::counting_since).
    pub fn uses(&self) -> u64 {
        self.lifecycle.uses.load(Ordering::Relaxed)
    }

    /// Returns since when uses are counted: since the engine opened, the index was created, or it
    /// was last hidden or unhidden.
    pub fn counting_since(&self) -> Instant {
        *self.lifecycle.counting.lock()
    }

    /// Resets the count of uses.
    pub fn reset_uses(&self) {
        let mut counting = self.lifecycle.counting.lock();
        self.lifecycle.uses.store(0, Ordering::Relaxed);
        *counting = Instant::now();
    }

    /// Returns the progress of the build.
    pub fn progress(&self) -> &Progress {
        &self.lifecycle.progress
    }

    /// Returns the filters of recently added keys.
    pub fn recent_key_filter(&self) -> &RecentKeyFilter {
        &self.lifecycle.recent
    }

    /// Returns `true` if queries may use the index.
    pub fn is_ready(&self) -> bool {
        self.lifecycle.ready.load(Ordering::Acquire)
    }

    /// Returns `true` if writers check for duplicate keys. During a build they do not: the end of
    /// the build, which excludes writers, checks the keys of that time.
    pub fn enforces_uniqueness(&self) -> bool {
        self.definition.enforces_uniqueness() && self.is_ready()
    }

    /// Marks the index as ready. `position` is the newest position, after everything that the build
    /// has read.
    pub fn set_ready(&self, position: Position) {
        self.lifecycle
            .ready_from
            .store(position.0, Ordering::Release);
        self.lifecycle.ready.store(true, Ordering::Release);
    }

    /// Returns the first position at which a ready index may be read. The build may have missed
    /// earlier versions.
    pub fn ready_from(&self) -> Position {
        Position(self.lifecycle.ready_from.load(Ordering::Acquire))
    }

    /// Returns `true` if the index was dropped or is about to be. Its build stops then.
    pub fn is_dropped(&self) -> bool {
        self.lifecycle.dropped.load(Ordering::Acquire)
    }

    /// Marks the index as dropped, which stops its build.
    pub fn set_dropped(&self) {
        self.lifecycle.dropped.store(true, Ordering::Release);
    }

    /// Returns its current catalog row.
    pub fn row(&self) -> IndexRow {
        IndexRow {
            specification: self.lifecycle.newest.lock().specification.clone(),
            ready: self.is_ready(),
            since: self.since,
        }
    }
}
