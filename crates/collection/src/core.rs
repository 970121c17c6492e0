//! What all collections share: storage, snapshots, the budget of the tails, ids, the background's calls.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use windrow_fold::{
    Position, PostingsForm, RunSink, Section, SectionDescriptor, SectionOptions, Snapshot,
    SnapshotLifetime, Snapshots,
};
use windrow_index::MARK;
use windrow_storage::{Compression, RowChange, RunId, Storage};

use crate::building::pool::BuildPool;
use crate::error::Error;
use crate::ids::{CollectionId, MapId};
use crate::index::Index;
use crate::lock_order::{OrderedGuard, OrderedLock, Rank, as_another_thread};
use crate::options::{Background as BackgroundWork, EngineOptions};
use crate::pinned_snapshots::PinnedSnapshots;
use crate::recent_key_filter::FilterBudget;
use crate::retired_names::RetiredNames;
use crate::retries::Retries;
use crate::rows::{self, NamedRow};

/// See the module.
pub(crate) struct Core {
    pub storage: Storage,
    pub options: EngineOptions,
    pub snapshots: Arc<Snapshots>,
    /// Positions that clients know by a time.
    pub pinned_snapshots: PinnedSnapshots,
    /// Held while collections, indexes or sections are changed: in the catalog, then in memory.
    pub catalog_change: OrderedLock,
    /// Held while a fold runs.
    pub folding: OrderedLock,
    /// Held while merges run: two of one map would put what one has dropped back.
    pub merging: OrderedLock,
    /// How many wait for the lock of merges: those that run give up.
    waiting_for_merging: AtomicUsize,
    next_id: AtomicU64,
    /// How many sections stand in each run; a run without any is removed.
    run_sections: Mutex<HashMap<RunId, usize>>,
    /// Memory that tails hold, in bytes.
    pub tail_bytes: Arc<AtomicU64>,
    /// The same of what open transactions have written.
    pub transaction_bytes: Arc<AtomicU64>,
    /// Bytes of tails at which a fold begins.
    fold_from_bytes: AtomicU64,
    /// Memory for filters of keys that came not long ago.
    pub recent_key_filter: Arc<FilterBudget>,
    pub builds: BuildPool,
    pub retired_names: RetiredNames,
    pub retries: Arc<Retries>,
    pub background: Background,
    pub counters: Counters,
}

/// What wakes the background threads, what they tell, and what stops them.
#[derive(Default)]
pub(crate) struct Background {
    pub fold: Signal,
    pub folded: Signal,
    pub merge: Signal,
    pub merged: Signal,
    pub create_entries: Signal,
    pub entries_created: Signal,
    pub closing: AtomicBool,
}

/// Something that one thread asks or tells and others wait for.
#[derive(Default)]
pub(crate) struct Signal {
    called: Mutex<bool>,
    changed: Condvar,
}

impl Signal {
    pub fn raise(&self) {
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

/// Past so many chains merges do not rest.
pub(crate) const CHAINS_MANY: u32 = 20;
/// A fold begins where tails have so great a part of the bytes that are stored, before compression.
const STORED_PER_FOLD: u64 = 4;
/// It begins at so great a part of what tails may have, where little is stored.
const TAILS_MIN: u64 = 8;
/// What sessions have done last has at most so great a part of the engine's memory.
const RETRIES_PART: u64 = 32;
/// Filters of recent unique keys have at most so great a part of it.
const RECENT_KEYS_PART: u64 = 32;

/// What the engine has done since it was opened.
#[derive(Debug, Default)]
pub struct Counters {
    pub folds: AtomicU64,
    pub merges: AtomicU64,
    pub delayed_writes: AtomicU64,
    pub making_entries: BusyTime,
    pub folding: BusyTime,
    pub merging: BusyTime,
    pub delaying: BusyTime,
}

/// How long a kind of work took in all.
#[derive(Debug, Default)]
pub struct BusyTime {
    nanos: AtomicU64,
}

/// Adds the time from its creation to its drop.
pub struct Busy<'b> {
    time: &'b BusyTime,
    since: Instant,
}

impl BusyTime {
    pub fn begin(&self) -> Busy<'_> {
        Busy {
            time: self,
            since: Instant::now(),
        }
    }

    pub fn total(&self) -> Duration {
        Duration::from_nanos(self.nanos.load(Ordering::Relaxed))
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        let nanos = u64::try_from(self.since.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.time.nanos.fetch_add(nanos, Ordering::Relaxed);
    }
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
            snapshots: Arc::default(),
            pinned_snapshots: PinnedSnapshots::default(),
            catalog_change: OrderedLock::new(Rank::CatalogChange),
            folding: OrderedLock::new(Rank::Maintenance),
            merging: OrderedLock::new(Rank::Maintenance),
            waiting_for_merging: AtomicUsize::new(0),
            next_id: AtomicU64::new(next_id),
            run_sections: Mutex::default(),
            tail_bytes: Arc::default(),
            transaction_bytes: Arc::default(),
            fold_from_bytes: AtomicU64::new(options.tail_bytes / TAILS_MIN),
            recent_key_filter: FilterBudget::new(options.memory / RECENT_KEYS_PART),
            builds: BuildPool::new(options.build_bytes, options.build_priority),
            retired_names: RetiredNames::default(),
            retries: Arc::new(Retries::new(options.memory / RETRIES_PART)),
            background: Background::default(),
            options,
            counters: Counters::default(),
        }
    }

    /// Remembers that a collection had this name up to now, as long as the log may be asked about it;
    /// what the catalog has to remember, and may forget. Called while nobody writes to it, before the
    /// catalog is changed.
    pub fn retire_name(&self, collection: CollectionId, name: NamedRow) -> Vec<RowChange> {
        let log = &self.storage.log;
        let until = log.written();
        let mut changes = self.retired_names.forget_before(log.history_first());
        changes.retain(|it| it.key != rows::key(rows::NAMED, &[collection.0, until.0]));
        changes.push(name.put(collection, until));
        self.retired_names.retire(collection, until, name);
        changes
    }

    /// Lets the log keep a history once somebody has ever asked for it: others are spared the space,
    /// and the time that new segments take.
    pub fn keep_history_if_wanted(&self) {
        if self.storage.catalog.get(rows::HISTORY_KEPT).is_some() {
            self.storage.log.keep_history(self.options.history_bytes);
        }
    }

    /// From now on the log keeps a history, also when it is opened again.
    pub fn keep_history(&self) -> Result<(), Error> {
        let is_kept = || self.storage.catalog.get(rows::HISTORY_KEPT).is_some();
        if is_kept() {
            return Ok(());
        }
        let _changing = self.catalog_change.lock();
        if !is_kept() {
            let kept = vec![RowChange::put(rows::HISTORY_KEPT, "")];
            self.storage.catalog.change(kept, |_| {})?;
        }
        self.keep_history_if_wanted();
        Ok(())
    }

    /// The time in milliseconds since 1970.
    pub fn now_millis(&self) -> u64 {
        (self.options.storage.log.clock)()
    }

    /// A snapshot of everything written so far.
    pub fn snapshot(&self, age: SnapshotLifetime) -> Snapshot {
        self.snapshots.open(age, || self.storage.log.written())
    }

    /// The positions that are read at, now or from now on.
    pub fn snapshot_positions(&self) -> Vec<Position> {
        self.snapshots.positions(|| self.storage.log.written())
    }

    /// The oldest of them: what only those see who read before it, nobody sees.
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

    pub fn next_id(&self) -> u64 {
        self.next_id.load(Ordering::Relaxed)
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

    /// Tells how many bytes sections have, before compression: after folds.
    pub fn record_stored(&self, bytes_raw: u64) {
        let most = self.options.tail_bytes;
        let bytes = (bytes_raw / STORED_PER_FOLD).clamp(most / TAILS_MIN, most);
        self.fold_from_bytes.store(bytes, Ordering::Relaxed);
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

    /// Changes the catalog so that it knows new sections of finished runs, and opens them. All are
    /// opened before the catalog knows them: from then on nothing may keep readers from them. Where
    /// the catalog does not change, their runs go. `unwanted`: sections that nobody is to know, in the
    /// same runs or others.
    pub fn adopt(
        &self,
        changes: Vec<RowChange>,
        descriptors: Vec<SectionDescriptor>,
        mut unwanted: Vec<SectionDescriptor>,
    ) -> Result<Vec<Arc<Section>>, Error> {
        let mut sections = Vec::new();
        let opened = descriptors.iter().try_for_each(|it| {
            sections.push(self.open_section(it.clone())?);
            Ok(())
        });
        let adopted = opened.and_then(|()| match changes.is_empty() {
            // Past sections alone.
            true => Ok(()),
            false => Ok(self.storage.catalog.change(changes, |_| {}).map(drop)?),
        });
        if adopted.is_err() {
            // A log that refuses writes may have the change nevertheless: then the runs stay.
            if !self.storage.log.takes_writes() {
                return adopted.map(|_| sections);
            }
            for section in &sections {
                self.forget(section.descriptor());
            }
            unwanted.extend(descriptors);
        }
        self.discard(&unwanted)?;
        debug_assert!(adopted.is_err() || sections.iter().all(|it| self.counts(it)));
        adopted.map(|_| sections)
    }

    /// Whether a section is counted for its run.
    fn counts(&self, section: &Section) -> bool {
        let runs = self.run_sections.lock();
        runs.contains_key(&section.descriptor().run)
    }

    /// Removes the runs of sections that the catalog does not know, as far as it knows none of them.
    pub fn discard(&self, descriptors: &[SectionDescriptor]) -> Result<(), Error> {
        let known = self.run_sections.lock();
        let mut runs: Vec<RunId> = descriptors.iter().map(|it| it.run).collect();
        runs.sort_unstable();
        runs.dedup();
        let mut unknown = runs.into_iter().filter(|run| !known.contains_key(run));
        Ok(unknown.try_for_each(|run| self.storage.runs.remove(run))?)
    }

    /// Says that the catalog has a section no more. A run without sections is removed, once nobody
    /// reads it.
    pub fn close_section(&self, descriptor: &SectionDescriptor) -> Result<(), Error> {
        self.forget(descriptor);
        self.discard(std::slice::from_ref(descriptor))
    }

    fn forget(&self, descriptor: &SectionDescriptor) {
        let mut runs = self.run_sections.lock();
        let Some(count) = runs.get_mut(&descriptor.run) else {
            // Its run stays until the next start, which removes what nobody knows.
            debug_assert!(false, "a section of run {} is not counted", descriptor.run);
            return;
        };
        *count -= 1;
        if *count == 0 {
            runs.remove(&descriptor.run);
        }
    }

    /// The runs that have sections.
    pub fn runs(&self) -> std::collections::HashSet<RunId> {
        self.run_sections.lock().keys().copied().collect()
    }

    /// A new run file.
    pub fn sink(&self) -> Result<RunSink, Error> {
        self.sink_pausing(|| ())
    }

    /// One more snapshot where one is open.
    pub fn snapshot_again(&self, open: &Snapshot) -> Result<Snapshot, Error> {
        let again = self
            .snapshots
            .open(SnapshotLifetime::Limited, || open.position());
        // Asked when the other one is open: then nothing was let go of between the two.
        if open.has_ended() {
            Err(Error::SnapshotTooOld)
        } else {
            Ok(again)
        }
    }

    /// One for what only those see who read before a position; None where nobody does.
    pub fn past_sink(&self, before: Position) -> Result<Option<RunSink>, Error> {
        let is_read = self.snapshot_positions().first() < Some(&before);
        is_read.then(|| self.sink()).transpose()
    }

    /// A new run file for work that pauses after each block.
    pub fn sink_pausing(&self, pause: impl Fn() + Send + Sync + 'static) -> Result<RunSink, Error> {
        let at_block = self.options.at_block.clone();
        let sink = RunSink::new(self.storage.runs.create()?);
        Ok(sink.with_pause(move || {
            pause();
            as_another_thread(|| at_block.0());
        }))
    }

    /// How sections of the map by record id (no index) or of an index are written.
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

    /// Whether to wait for a transaction is in vain: nobody is there who could end it.
    pub fn cannot_progress(&self) -> bool {
        self.is_closing() || self.options.background == BackgroundWork::Caller
    }

    /// Keeps merges off; those that run end at once.
    pub fn keep_merges_off(&self) -> OrderedGuard<'_> {
        self.waiting_for_merging.fetch_add(1, Ordering::AcqRel);
        let guard = self.merging.lock();
        self.waiting_for_merging.fetch_sub(1, Ordering::AcqRel);
        guard
    }

    /// Whether somebody waits for merges to end.
    pub fn merges_are_in_the_way(&self) -> bool {
        self.waiting_for_merging.load(Ordering::Acquire) > 0
    }

    pub fn is_closing(&self) -> bool {
        self.background.closing.load(Ordering::Acquire)
    }
}

/// The form of an index whose entries are postings of terms, several records to a key.
fn postings_form(index: &Index) -> Option<PostingsForm> {
    let definition = &index.definition;
    if definition.is_search() {
        return Some(PostingsForm::ByField);
    }
    let has_postings = definition.is_text() && !definition.unique;
    has_postings.then_some(PostingsForm::OneField)
}

/// Bits of filters for each key, in the map by record id for each id. Where keys may not be there twice,
/// every insert asks every section for its key, and mostly it is in none.
fn filter_bits(index: Option<&Index>) -> usize {
    match index.map(|index| &index.definition) {
        Some(definition) if definition.enforces_uniqueness() || definition.is_of_ids() => 16,
        Some(definition) if definition.is_text() || definition.is_search() => 0,
        _ => 10,
    }
}
