//! The common state of all collections: storage, snapshots, the memory budget of tails, ids, and
//! the signals of background work.

mod counters;
mod run_sections;
mod signals;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;
use windrow_fold::{
    Position, PostingsForm, RunSink, SectionOptions, Snapshot, SnapshotLifetime, Snapshots,
};
use windrow_index::MARK;
use windrow_interrupt::Interrupted;
use windrow_storage::{Compression, RowChange, RunId, Storage};

use crate::building::pool::BuildPool;
use crate::building::taken_shares::TakenShares;
use crate::catalog::retired_names::RetiredNames;
use crate::catalog::rows::{self, NamedRow};
use crate::error::Error;
use crate::ids::{CollectionId, MapId, NextId};
use crate::index::Index;
use crate::lock_order::{OrderedGuard, OrderedLock, Rank, as_another_thread};
use crate::options::{Background, EngineOptions};
use crate::pinned_snapshots::PinnedSnapshots;
use crate::retries::Retries;
use crate::unique_keys::recent_key_filter::FilterBudget;

use counters::Counters;
use signals::BackgroundSignals;
pub(crate) use signals::Signal;

/// The common state of all collections.
pub(crate) struct Core {
    pub storage: Storage,
    pub options: EngineOptions,
    pub snapshots: Arc<Snapshots>,
    /// Positions that clients know by a cluster time.
    pub pinned_snapshots: PinnedSnapshots,
    /// Held while collections, indexes or sections change, first in the catalog, then in memory.
    pub catalog_change: OrderedLock,
    /// Held while a fold runs.
    pub folding: OrderedLock,
    /// Held while merges run. Two merges of one map would restore sections that one of them
    /// removed.
    pub merging: OrderedLock,
    /// The number of threads that wait for `merging`. Running merges stop early for them.
    waiting_for_merging: AtomicUsize,
    /// The [`NextId`].
    next_id: AtomicU64,
    /// The number of open sections in each run. A run without open sections is removed.
    run_sections: Mutex<HashMap<RunId, usize>>,
    /// Runs without open sections that a follower has not removed yet.
    postponed_runs: Mutex<BTreeSet<RunId>>,
    /// The memory of all tails, in bytes.
    pub tail_bytes: Arc<AtomicU64>,
    /// The memory of what open transactions have written, in bytes.
    pub transaction_bytes: Arc<AtomicU64>,
    /// The tail memory at which a fold starts, in bytes.
    fold_from_bytes: AtomicU64,
    /// The memory for filters of recent unique keys.
    pub recent_key_filter: Arc<FilterBudget>,
    pub builds: BuildPool,
    /// The shares of builds that this server has taken as a follower.
    pub taken_shares: TakenShares,
    pub retired_names: RetiredNames,
    pub retries: Arc<Retries>,
    pub background: BackgroundSignals,
    pub counters: Counters,
}

/// Above this many chains of sections, merges run unthrottled.
pub(crate) const CHAINS_MANY: u32 = 20;
/// A fold starts when tails take the stored bytes, before compression, divided by this number.
const STORED_DIVISOR: u64 = 4;
/// With little stored data, a fold starts at the tails' memory limit divided by this number.
const TAILS_MIN_DIVISOR: u64 = 8;
/// Recorded statement results take at most the engine's memory divided by this number.
const RETRIES_DIVISOR: u64 = 32;
/// Filters of recent unique keys take at most the engine's memory divided by this number.
const RECENT_KEYS_DIVISOR: u64 = 32;

impl std::fmt::Debug for Core {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Core")
    }
}

impl Core {
    pub fn new(storage: Storage, options: EngineOptions, next_id: NextId) -> Core {
        Core {
            storage,
            snapshots: Arc::default(),
            pinned_snapshots: PinnedSnapshots::default(),
            catalog_change: OrderedLock::new(Rank::CatalogChange),
            folding: OrderedLock::new(Rank::Maintenance),
            merging: OrderedLock::new(Rank::Maintenance),
            waiting_for_merging: AtomicUsize::new(0),
            next_id: AtomicU64::new(next_id.0),
            run_sections: Mutex::default(),
            postponed_runs: Mutex::default(),
            tail_bytes: Arc::default(),
            transaction_bytes: Arc::default(),
            fold_from_bytes: AtomicU64::new(options.tail_bytes / TAILS_MIN_DIVISOR),
            recent_key_filter: FilterBudget::new(options.memory / RECENT_KEYS_DIVISOR),
            builds: BuildPool::new(options.build_bytes, options.build_priority),
            taken_shares: TakenShares::default(),
            retired_names: RetiredNames::default(),
            retries: Arc::new(Retries::new(options.memory / RETRIES_DIVISOR)),
            background: BackgroundSignals::default(),
            options,
            counters: Counters::default(),
        }
    }

    /// Records that a collection had this name until now, for readers of the log. Returns the
    /// changes of catalog rows. Called while writers are excluded, before its catalog row changes.
    pub fn retire_name(&self, collection: CollectionId, name: NamedRow) -> Vec<RowChange> {
        let log = &self.storage.log;
        let until = log.written();
        let mut changes = self.retired_names.forget_before(log.history_first());
        let key = NamedRow::key(collection, until);
        changes.retain(|it| it.key != key);
        changes.push(name.put(collection, until));
        self.retired_names.retire(collection, until, name);
        changes
    }

    /// Makes the log retain history if a client has ever opened a change stream. Other databases
    /// save the space, and the time to create log segments.
    pub fn restore_history(&self) {
        if rows::is_history_retained(&self.storage.catalog) {
            self.storage.log.keep_history(self.options.history_bytes);
        }
    }

    /// Makes the log retain history from now on, also after the next start.
    pub fn retain_history(&self) -> Result<(), Error> {
        let is_retained = || rows::is_history_retained(&self.storage.catalog);
        if is_retained() {
            return Ok(());
        }
        if self.storage.is_following() {
            // The catalog is that of the primary. The local log is this server's own.
            self.storage.log.keep_history(self.options.history_bytes);
            return Ok(());
        }
        let _changing = self.catalog_change.lock();
        if !is_retained() {
            let change = vec![rows::put_history_retained()];
            self.storage.catalog.change(change, |_| {})?;
        }
        self.restore_history();
        Ok(())
    }

    /// Returns the wall clock in milliseconds since 1970.
    pub fn now_millis(&self) -> u64 {
        (self.options.storage.log.clock)()
    }

    /// Returns a snapshot of everything written so far.
    pub fn snapshot(&self, age: SnapshotLifetime) -> Snapshot {
        self.snapshots.open(age, || self.storage.log.written())
    }

    /// Returns the positions of all open snapshots, and the newest one, which future snapshots may
    /// use.
    pub fn snapshot_positions(&self) -> Vec<Position> {
        self.snapshots.positions(|| self.storage.log.written())
    }

    /// Returns the oldest of [`snapshot_positions`](Self::snapshot_positions). Versions that only
    /// older snapshots could see are obsolete.
    pub fn oldest_position(&self) -> Position {
        self.snapshots.oldest(|| self.storage.log.written())
    }

    /// Returns an id for a new collection.
    pub fn take_collection_id(&self) -> CollectionId {
        CollectionId(self.take_id())
    }

    /// Returns an id for a new map.
    pub fn take_map_id(&self) -> MapId {
        MapId(self.take_id())
    }

    fn take_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Makes this and larger ids the next ones.
    pub fn use_ids_from(&self, next: NextId) {
        self.next_id.fetch_max(next.0, Ordering::Relaxed);
    }

    pub fn next_id(&self) -> NextId {
        NextId(self.next_id.load(Ordering::Relaxed))
    }

    pub fn tail_bytes(&self) -> u64 {
        self.tail_bytes.load(Ordering::Relaxed)
    }

    /// Returns the tail memory at which a fold starts, in bytes. It grows with the stored data,
    /// which bounds the number of sections. It starts low, so write speed in the first seconds is
    /// the speed that lasts.
    pub fn fold_from_bytes(&self) -> u64 {
        self.fold_from_bytes.load(Ordering::Relaxed)
    }

    /// Updates [`fold_from_bytes`](Self::fold_from_bytes) after a fold. `bytes_raw` is the size of
    /// all sections before compression.
    pub fn record_stored(&self, bytes_raw: u64) {
        let bytes_max = self.options.tail_bytes;
        let bytes_min = bytes_max / TAILS_MIN_DIVISOR;
        let bytes = (bytes_raw / STORED_DIVISOR).clamp(bytes_min, bytes_max);
        self.fold_from_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Creates a run file.
    pub fn sink(&self) -> Result<RunSink, Error> {
        self.sink_pausing(|| ())
    }

    /// Returns another snapshot at the position of an open one. Fails if the open one has ended.
    pub fn reopen_snapshot(&self, open: &Snapshot) -> Result<Snapshot, Error> {
        let again = self
            .snapshots
            .open(SnapshotLifetime::Limited, || open.position());
        // Checked after the second snapshot exists: then no version was removed in between.
        if open.has_ended() {
            Err(Error::SnapshotTooOld)
        } else {
            Ok(again)
        }
    }

    /// Creates a run file for past versions, which only snapshots before `before` can see. Returns
    /// `None` if there is no such snapshot.
    pub fn past_sink(&self, before: Position) -> Result<Option<RunSink>, Error> {
        let is_read = self.snapshot_positions().first() < Some(&before);
        is_read.then(|| self.sink()).transpose()
    }

    /// Creates a run file for work that pauses after each block.
    pub fn sink_pausing(&self, pause: impl Fn() + Send + Sync + 'static) -> Result<RunSink, Error> {
        let at_block = self.options.at_block.clone();
        let sink = RunSink::new(self.storage.runs.create()?);
        Ok(sink.with_pause(move || {
            pause();
            as_another_thread(|| at_block.0());
        }))
    }

    /// Returns how to write sections of an index, or of the map by record id if `index` is `None`.
    pub fn section_options(&self, index: Option<&Index>, position: Position) -> SectionOptions {
        let compression = match index {
            Some(index) if !index.definition.clustered => Compression::Lz4,
            _ => self.options.compression,
        };
        SectionOptions {
            filter_bits: filter_bits(index),
            with_digest: index.is_some_and(|index| !index.definition.clustered),
            mark_byte: index.map(|_| MARK),
            compression,
            packed: false,
            postings: index.and_then(postings_form),
            position,
        }
    }

    /// The interrupt of waits for transactions. Fails if no other thread could end a transaction.
    pub fn check_progress(&self) -> Result<(), Interrupted> {
        if self.is_closing() {
            return Err(Interrupted::new("the database is being closed"));
        }
        if self.options.background == Background::Caller {
            return Err(Interrupted::new("no other thread uses the database"));
        }
        Ok(())
    }

    /// Stops running merges early, and prevents new ones until the guard is dropped.
    pub fn exclude_merges(&self) -> OrderedGuard<'_> {
        self.waiting_for_merging.fetch_add(1, Ordering::AcqRel);
        let guard = self.merging.lock();
        self.waiting_for_merging.fetch_sub(1, Ordering::AcqRel);
        guard
    }

    /// Returns `true` if a thread waits until it can [exclude merges](Self::exclude_merges).
    pub fn is_waiting_for_merging(&self) -> bool {
        self.waiting_for_merging.load(Ordering::Acquire) > 0
    }

    pub fn is_closing(&self) -> bool {
        self.background.closing.load(Ordering::Acquire)
    }
}

/// Returns the form of an index that stores postings, which are keys with several records each.
/// `None` for other indexes.
fn postings_form(index: &Index) -> Option<PostingsForm> {
    let definition = &index.definition;
    if definition.is_search() {
        return Some(PostingsForm::ByField);
    }
    let has_postings = definition.is_text() && !definition.unique;
    has_postings.then_some(PostingsForm::OneField)
}

/// Returns the filter bits per key; in the map by record id, per record id. Unique indexes get more
/// bits, because each insert looks up its key in all sections and usually finds it in none.
fn filter_bits(index: Option<&Index>) -> usize {
    match index.map(|index| &index.definition) {
        Some(definition) if definition.enforces_uniqueness() || definition.is_of_ids() => 16,
        Some(definition) if definition.is_text() || definition.is_search() => 0,
        _ => 10,
    }
}
