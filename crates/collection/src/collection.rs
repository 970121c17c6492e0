//! A collection: its maps, what readers take of them, and what writers share.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use windrow_document::{Collation, DocumentBuf};
use windrow_fold::sections::Sections;
use windrow_fold::{RecordId, SectionOptions, SnapshotLifetime};
use windrow_storage::Position;

use crate::cap::{Cap, CappedInserts};
use crate::claims::Claims;
use crate::core::Core;
use crate::error::Error;
use crate::generation::Generation;
use crate::ids::{CollectionId, MapId};
use crate::index::Index;
use crate::lock_order::{OrderedLock, OrderedRwLock, Rank};
use crate::namespace::Namespace;
use crate::read::Reader;
use crate::record::statements::StatementRecord;
use crate::record::{Commit, Effect, Operation};
use crate::rows::{CollectionRow, FoldedRow};
use crate::rules::Rules;
use crate::scans::Scans;
use crate::state::{Frozen, IndexState, State};
use crate::transaction_locks::{DdlBarrier, DdlGuard, Interrupt, TransactionLocks};

/// How many locks the documents of a collection share.
const DOCUMENT_LOCKS: usize = 256;

/// See the module. Shared by all threads.
#[derive(Debug)]
pub struct Collection {
    pub(crate) id: CollectionId,
    /// The map by record id.
    pub(crate) records_map: MapId,
    row: ArcSwap<CollectionRow>,
    /// What the row's options ask of documents.
    rules: ArcSwap<Rules>,
    /// Itself, for commits that are published later.
    this: Weak<Collection>,
    core: Weak<Core>,
    /// Memory that all tails hold, in bytes.
    tail_bytes: Arc<AtomicU64>,
    /// How many threads make the entries of many commits.
    threads: usize,
    state: ArcSwap<State>,
    /// Held while the state is replaced.
    changing_state: Mutex<()>,
    /// The generation that commits go to. A fold replaces it.
    active: Mutex<Arc<Generation>>,
    /// Read by writers from the look at the indexes to the publishing; written by whoever changes
    /// which indexes there are.
    pub(crate) schema: OrderedRwLock,
    pub(crate) claims: Claims,
    pub(crate) capped_inserts: CappedInserts,
    pub(crate) document_locks: Vec<OrderedLock>,
    /// What open transactions hold of it, and which use it.
    pub(crate) transaction_locks: TransactionLocks,
    pub(crate) ddl_barrier: DdlBarrier,
    /// A position behind the last change of what it is: its name, options and indexes.
    changed: AtomicU64,
    /// A position from which on it has its name; where it was there at the start, 0.
    named_from: AtomicU64,
    next_record: AtomicU64,
    count: AtomicI64,
    bytes: AtomicI64,
    scans: Arc<Scans>,
}

impl Collection {
    pub(crate) fn new(
        id: CollectionId,
        row: CollectionRow,
        folded: FoldedRow,
        records: Arc<Sections>,
        indexes: Vec<IndexState>,
        core: &Arc<Core>,
    ) -> Arc<Collection> {
        let clustered = State::clustered_by(&indexes);
        let active = Generation::new(folded.position, clustered, &core.tail_bytes)
            .with_threads(core.options.threads);
        let active = Arc::new(active);
        let state = State {
            records,
            gone: Arc::default(),
            indexes,
            frozen: None,
            active: active.clone(),
            dropped: false,
        };
        Arc::new_cyclic(|this| Collection {
            id,
            records_map: row.records,
            rules: ArcSwap::from_pointee(Rules::of(row.options.as_document())),
            row: ArcSwap::from_pointee(row),
            this: this.clone(),
            core: Arc::downgrade(core),
            tail_bytes: core.tail_bytes.clone(),
            threads: core.options.threads,
            state: ArcSwap::from_pointee(state),
            changing_state: Mutex::default(),
            active: Mutex::new(active),
            schema: OrderedRwLock::new(Rank::Schema),
            claims: Claims::default(),
            capped_inserts: CappedInserts::default(),
            document_locks: (0..DOCUMENT_LOCKS)
                .map(|_| OrderedLock::new(Rank::Document))
                .collect(),
            transaction_locks: TransactionLocks::default(),
            ddl_barrier: DdlBarrier::default(),
            changed: AtomicU64::new(0),
            named_from: AtomicU64::new(0),
            next_record: AtomicU64::new(folded.next_record.0.max(1)),
            count: AtomicI64::new(folded.count),
            bytes: AtomicI64::new(folded.bytes),
            scans: Arc::default(),
        })
    }

    pub fn namespace(&self) -> Namespace {
        self.row.load().namespace.clone()
    }

    pub fn uuid(&self) -> [u8; 16] {
        self.row.load().uuid
    }

    /// How often it was looked through; who does so counts.
    pub fn scans(&self) -> &Arc<Scans> {
        &self.scans
    }

    /// Whether it is there no more, for who holds it still.
    pub fn is_dropped(&self) -> bool {
        self.state().dropped
    }

    /// The options it was created with, or was given since.
    pub fn options(&self) -> DocumentBuf {
        self.row.load().options.clone()
    }

    /// Whether its documents stand by their `_id`s.
    pub fn is_clustered(&self) -> bool {
        State::clustered_by(&self.state().indexes).is_some()
    }

    /// How it compares strings where nothing else is said; None: by their bytes. It never changes.
    pub fn collation(&self) -> Option<Arc<Collation>> {
        let state = self.state();
        let of_ids = state.indexes.first()?;
        of_ids.index.definition.collation.clone()
    }

    pub(crate) fn rules(&self) -> Arc<Rules> {
        self.rules.load_full()
    }

    /// What the catalog says of it.
    pub(crate) fn row(&self) -> Arc<CollectionRow> {
        self.row.load_full()
    }

    /// Takes a row that the catalog has already.
    pub(crate) fn set_row(&self, row: CollectionRow) {
        self.rules
            .store(Arc::new(Rules::of(row.options.as_document())));
        self.row.store(Arc::new(row));
    }

    /// The number of documents.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed).max(0) as u64
    }

    /// Bytes of all documents, uncompressed.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed).max(0) as u64
    }

    /// Returns the number of [`indexes`](Self::indexes) without the one that a clustered collection
    /// is.
    pub fn index_count(&self) -> usize {
        self.indexes().len() - usize::from(self.is_clustered())
    }

    /// Returns the indexes that `listIndexes` shows, those being built included: all but search
    /// indexes. The first is the one on `_id`.
    pub fn indexes(&self) -> Vec<Arc<Index>> {
        let mut indexes = self.all_indexes();
        indexes.retain(|index| !index.definition.is_search());
        indexes
    }

    /// Returns the search indexes, those being built included. While an index is updated, it is there
    /// with its old and its new definition.
    pub fn search_indexes(&self) -> Vec<Arc<Index>> {
        let mut indexes = self.all_indexes();
        indexes.retain(|index| index.definition.is_search());
        indexes
    }

    /// Returns all indexes, those being built included. The first is the one on `_id`.
    pub fn all_indexes(&self) -> Vec<Arc<Index>> {
        self.state()
            .indexes
            .iter()
            .map(|state| state.index.clone())
            .collect()
    }

    /// A snapshot of all that was written before the call. Reading fails once it is older than
    /// snapshots may become.
    pub fn reader(&self) -> Result<Reader, Error> {
        self.reader_of_age(SnapshotLifetime::Limited)
    }

    /// The same for our own work, which lasts as long as it must.
    pub(crate) fn lasting_reader(&self) -> Result<Reader, Error> {
        self.reader_of_age(SnapshotLifetime::Unlimited)
    }

    fn reader_of_age(&self, age: SnapshotLifetime) -> Result<Reader, Error> {
        let snapshot = self.core()?.snapshot(age);
        let state = self.state();
        Ok(Reader::new(state, snapshot, self.next_record(), None))
    }

    /// Waits until no open transaction uses the collection, and keeps new ones from it until the answer
    /// is dropped: for who is to change what the collection is.
    pub fn exclude(&self, interrupt: &dyn Interrupt) -> Result<DdlGuard<'_>, Error> {
        self.ddl_barrier.exclude(interrupt)
    }

    /// Says that its name, options or indexes have been changed in the catalog.
    pub(crate) fn record_change(&self, core: &Core) {
        self.record_change_at(core.storage.log.written());
    }

    /// Says that it is what it is from a position on.
    pub(crate) fn record_change_at(&self, position: Position) {
        self.changed.fetch_max(position.0, Ordering::AcqRel);
    }

    /// Says that it has its name from a position on.
    pub(crate) fn set_named_from(&self, position: Position) {
        self.named_from.store(position.0, Ordering::Release);
    }

    pub(crate) fn named_from(&self) -> Position {
        Position(self.named_from.load(Ordering::Acquire))
    }

    /// Whether it is what it was at a position since the start of the engine.
    pub(crate) fn is_unchanged_since(&self, position: Position) -> bool {
        self.changed.load(Ordering::Acquire) <= position.0
    }

    pub(crate) fn core(&self) -> Result<Arc<Core>, Error> {
        self.core
            .upgrade()
            .ok_or_else(|| Error::Interrupted("the database is closed".to_owned()))
    }

    pub(crate) fn state(&self) -> Arc<State> {
        self.state.load_full()
    }

    /// Replaces the state by what `change` makes of it; not where it fails.
    pub(crate) fn try_change_state<E>(
        &self,
        change: impl FnOnce(&mut State) -> Result<(), E>,
    ) -> Result<(), E> {
        let _changing = self.changing_state.lock();
        let mut state = State::clone(&self.state.load());
        change(&mut state)?;
        self.state.store(Arc::new(state));
        Ok(())
    }

    /// Replaces the state by what `change` makes of it.
    pub(crate) fn change_state<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let _changing = self.changing_state.lock();
        let mut state = State::clone(&self.state.load());
        let answer = change(&mut state);
        self.state.store(Arc::new(state));
        answer
    }

    pub(crate) fn next_record(&self) -> RecordId {
        RecordId(self.next_record.load(Ordering::Acquire))
    }

    /// Gives record ids for so many documents; the first of them.
    pub(crate) fn take_records(&self, count: u64) -> RecordId {
        RecordId(self.next_record.fetch_add(count, Ordering::AcqRel))
    }

    /// Appends a commit to the log; on return it is written and seen by new readers. `noted`: what
    /// statements of a retryable write it says that it is.
    pub(crate) fn append(
        &self,
        payload: &[&[u8]],
        operations: Vec<Operation>,
        bytes: usize,
        effect: Effect,
        noted: Option<StatementRecord>,
    ) -> Result<Position, Error> {
        let core = self.core()?;
        let this = self.this.clone();
        let noting = noted.map(|noted| (core.retries.clone(), noted, core.now_millis()));
        let position = core.storage.log.append(payload, move |position| {
            if let Some((retries, noted, millis)) = noting {
                retries.record(noted, position, millis);
            }
            let commit = Commit {
                position,
                operations,
                bytes,
            };
            if let Some(this) = this.upgrade() {
                this.publish(commit, effect);
            }
        })?;
        if core.tail_bytes() >= core.fold_from_bytes() {
            core.background.fold.raise();
        }
        Ok(position)
    }

    /// Takes a commit in. Called in the order of the log.
    pub(crate) fn publish(&self, commit: Commit, effect: Effect) {
        let active = self.active.lock();
        self.note(effect);
        active.push(commit);
    }

    fn note(&self, effect: Effect) {
        self.count.fetch_add(effect.documents, Ordering::Relaxed);
        self.bytes.fetch_add(effect.bytes, Ordering::Relaxed);
        self.next_record
            .fetch_max(effect.next_record.0, Ordering::AcqRel);
    }

    /// Begins a new generation; what was active is frozen. Where an older one is still frozen, since
    /// folding it failed, that one. None where there is nothing to fold.
    pub(crate) fn freeze(&self) -> Option<Frozen> {
        let mut active = self.active.lock();
        if let Some(frozen) = &self.state().frozen {
            return Some(frozen.clone());
        }
        if active.is_empty() {
            return None;
        }
        let generation = active.clone();
        let folded = FoldedRow {
            position: generation.newest(),
            count: self.count.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            next_record: self.next_record(),
        };
        let frozen = Frozen { generation, folded };
        let clustered = State::clustered_by(&self.state().indexes);
        let next = Generation::new(folded.position, clustered, &self.tail_bytes)
            .with_threads(self.threads);
        *active = Arc::new(next);
        self.change_state(|state| {
            state.frozen = Some(frozen.clone());
            state.active = active.clone();
        });
        Some(frozen)
    }

    /// Memory that its tails hold, in bytes.
    pub fn tail_bytes(&self) -> u64 {
        self.state()
            .generations()
            .map(|generation| generation.bytes())
            .sum()
    }

    /// The most chains of sections that one of its maps has.
    pub(crate) fn chains_max(&self) -> usize {
        let state = self.state();
        // What a build writes is not merged before it has ended.
        let ready = state.indexes.iter().filter(|it| it.index.is_ready());
        let indexes = ready.map(|it| it.sections.chains().len());
        // An index is there: the one on `_id`.
        indexes.max().unwrap_or(0).max(state.records.chains().len())
    }

    /// The most bytes of log records that one of its indexes has not made entries of.
    pub(crate) fn entry_backlog(&self) -> u64 {
        let state = self.state();
        let indexes = state
            .indexes
            .iter()
            .map(|it| state.active.entry_backlog(&it.index));
        indexes.max().unwrap_or(0)
    }

    /// How sections of its map by record id (no index) or of an index are written.
    pub(crate) fn section_options(
        &self,
        core: &Core,
        index: Option<&Index>,
        position: Position,
    ) -> SectionOptions {
        let mut options = core.section_options(index, position);
        if index.is_none() && self.is_clustered() {
            // Its entries are never replaced: no two sections have ids of one stretch.
            options.filter_bits = 0;
        }
        let of_documents = index.is_none_or(|index| index.definition.clustered);
        match self.rules().compression.filter(|_| of_documents) {
            Some(compression) => SectionOptions {
                compression,
                ..options
            },
            None => options,
        }
    }

    /// Whether and how it is capped.
    pub fn cap(&self) -> Option<Cap> {
        self.rules().cap()
    }

    /// The position of its newest commit: asked before reading, it tells
    /// [`wait_for_commit`](Self::wait_for_commit) what has been seen.
    pub fn newest_commit(&self) -> Position {
        self.state().active.newest()
    }

    /// Waits until it was written to after `seen`, at most so long; whether it was. False too where
    /// only others were written to: then there may be more time to wait.
    pub fn wait_for_commit(&self, seen: Position, at_most: Duration) -> Result<bool, Error> {
        let core = self.core()?;
        let written = core.storage.log.written();
        let has_more = || self.newest_commit() > seen;
        Ok(has_more() || (core.storage.log.wait_beyond(written, at_most) && has_more()))
    }

    /// Tells of a document that was written though the validator does not accept it.
    pub(crate) fn warn(&self, warning: &Error) {
        if let Ok(core) = self.core() {
            let what = format!("Document would fail validation, in {}", self.namespace());
            (core.options.on_problem)(&what, warning);
        }
    }
}
