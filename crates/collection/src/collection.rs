//! A collection: its maps, its state for readers, and what writers share.

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
use crate::catalog::namespace::Namespace;
use crate::catalog::rows::{CollectionRow, FoldedRow};
use crate::core::Core;
use crate::error::Error;
use crate::generation::Generation;
use crate::ids::{CollectionId, CollectionUuid, MapId};
use crate::index::Index;
use crate::lock_order::{OrderedLock, OrderedRwLock, Rank};
use crate::read::Reader;
use crate::record::statements::StatementRecord;
use crate::record::{Commit, Effect, Operation};
use crate::rules::Rules;
use crate::scans::Scans;
use crate::state::{FrozenGeneration, IndexState, State};
use crate::transaction_locks::{DdlBarrier, DdlGuard, TransactionLocks, WaitControl};
use crate::unique_keys::claims::Claims;

/// The number of locks that the documents of a collection share.
const DOCUMENT_LOCKS: usize = 256;

/// A collection, shared by all threads.
#[derive(Debug)]
pub struct Collection {
    pub(crate) id: CollectionId,
    /// The map by record id.
    pub(crate) records_map: MapId,
    row: ArcSwap<CollectionRow>,
    /// The rules for documents, derived from the options in the row.
    rules: ArcSwap<Rules>,
    /// Itself, for commits that are published later.
    this: Weak<Collection>,
    core: Weak<Core>,
    /// The memory of all tails, in bytes.
    tail_bytes: Arc<AtomicU64>,
    /// The number of threads that create entries of many commits.
    threads: usize,
    state: ArcSwap<State>,
    /// Held while the state is replaced.
    changing_state: Mutex<()>,
    /// The generation that takes commits. A fold replaces it.
    active: Mutex<Arc<Generation>>,
    /// Read-locked by writers from their look at the indexes until the commit is published.
    /// Write-locked to change the set of indexes.
    pub(crate) schema: OrderedRwLock,
    pub(crate) claims: Claims,
    pub(crate) capped_inserts: CappedInserts,
    pub(crate) document_locks: Vec<OrderedLock>,
    /// The locks of open transactions in this collection, and which transactions use it.
    pub(crate) transaction_locks: TransactionLocks,
    pub(crate) ddl_barrier: DdlBarrier,
    /// A position after the last change of its name, options or indexes.
    changed: AtomicU64,
    /// The position since which it has its name, or 0 if it had the name when the engine opened.
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
            tombstone_ranges: Arc::default(),
            indexes,
            frozen: None,
            active: active.clone(),
            dropped: false,
        };
        Arc::new_cyclic(|this| Collection {
            id,
            records_map: row.records,
            rules: ArcSwap::from_pointee(Rules::from_options(row.options.as_document())),
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

    /// Returns the current name.
    pub fn namespace(&self) -> Namespace {
        self.row.load().namespace.clone()
    }

    /// Returns the UUID, which never changes.
    pub fn uuid(&self) -> CollectionUuid {
        self.row.load().uuid
    }

    /// Returns the counters of collection scans, which the scanning caller updates.
    pub fn scans(&self) -> &Arc<Scans> {
        &self.scans
    }

    /// Returns `true` if the collection was dropped.
    pub fn is_dropped(&self) -> bool {
        self.state().dropped
    }

    /// Returns the current options.
    pub fn options(&self) -> DocumentBuf {
        self.row.load().options.clone()
    }

    /// Returns `true` if the documents are stored by `_id`.
    pub fn is_clustered(&self) -> bool {
        State::clustered_by(&self.state().indexes).is_some()
    }

    /// Returns the default collation, or `None` for comparison by bytes. It never changes.
    pub fn collation(&self) -> Option<Arc<Collation>> {
        let state = self.state();
        let id_index = state.indexes.first()?;
        id_index.index.definition.collation.clone()
    }

    pub(crate) fn rules(&self) -> Arc<Rules> {
        self.rules.load_full()
    }

    /// Returns the current catalog row.
    pub(crate) fn row(&self) -> Arc<CollectionRow> {
        self.row.load_full()
    }

    /// Sets the row, which is in the catalog already.
    pub(crate) fn set_row(&self, row: CollectionRow) {
        self.rules
            .store(Arc::new(Rules::from_options(row.options.as_document())));
        self.row.store(Arc::new(row));
    }

    /// Returns the number of documents.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed).max(0) as u64
    }

    /// Returns the uncompressed bytes of all documents.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed).max(0) as u64
    }

    /// Returns the number of [`indexes`](Self::indexes), without the clustered index of a clustered
    /// collection.
    pub fn index_count(&self) -> usize {
        self.indexes().len() - usize::from(self.is_clustered())
    }

    /// Returns the indexes that `listIndexes` shows: all but search indexes, including those being
    /// built. The first is the index on `_id`.
    pub fn indexes(&self) -> Vec<Arc<Index>> {
        let mut indexes = self.all_indexes();
        indexes.retain(|index| !index.definition.is_search());
        indexes
    }

    /// Returns the search indexes, including those being built. While an index is being updated,
    /// the list contains its old and its new definition.
    pub fn search_indexes(&self) -> Vec<Arc<Index>> {
        let mut indexes = self.all_indexes();
        indexes.retain(|index| index.definition.is_search());
        indexes
    }

    /// Returns all indexes, including those being built. The first is the index on `_id`.
    pub fn all_indexes(&self) -> Vec<Arc<Index>> {
        self.state()
            .indexes
            .iter()
            .map(|state| state.index.clone())
            .collect()
    }

    /// Returns a reader at a new snapshot, which contains everything written before the call. Its
    /// reads fail once the snapshot exceeds the maximal age.
    pub fn reader(&self) -> Result<Reader, Error> {
        self.reader_of_age(SnapshotLifetime::Limited)
    }

    /// Returns a reader at a new snapshot without a maximal age, for the engine's own work.
    pub(crate) fn reader_without_age_limit(&self) -> Result<Reader, Error> {
        self.reader_of_age(SnapshotLifetime::Unlimited)
    }

    fn reader_of_age(&self, age: SnapshotLifetime) -> Result<Reader, Error> {
        let snapshot = self.core()?.snapshot(age);
        let state = self.state();
        Ok(Reader::new(state, snapshot, self.next_record(), None))
    }

    /// Waits until no open transaction uses the collection, and excludes new ones until the guard
    /// is dropped. Required before the collection's definition changes.
    pub fn exclude(&self, wait_control: &dyn WaitControl) -> Result<DdlGuard<'_>, Error> {
        self.ddl_barrier.exclude(wait_control)
    }

    /// Records that the name, options or indexes have changed in the catalog.
    pub(crate) fn record_change(&self, core: &Core) {
        self.record_change_at(core.storage.log.written());
    }

    /// Records that the last such change was at a position.
    pub(crate) fn record_change_at(&self, position: Position) {
        self.changed.fetch_max(position.0, Ordering::AcqRel);
    }

    /// Records the position since which the collection has its name.
    pub(crate) fn set_named_from(&self, position: Position) {
        self.named_from.store(position.0, Ordering::Release);
    }

    pub(crate) fn named_from(&self) -> Position {
        Position(self.named_from.load(Ordering::Acquire))
    }

    /// Returns `true` if the name, options and indexes have not changed since a position.
    pub(crate) fn is_unchanged_since(&self, position: Position) -> bool {
        self.changed.load(Ordering::Acquire) <= position.0
    }

    pub(crate) fn core(&self) -> Result<Arc<Core>, Error> {
        self.core
            .upgrade()
            .ok_or_else(|| Error::interrupted("the database is closed"))
    }

    pub(crate) fn state(&self) -> Arc<State> {
        self.state.load_full()
    }

    /// Replaces the state by the changed one, unless `change` fails.
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

    /// Replaces the state by the changed one.
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

    /// Reserves this many consecutive record ids, and returns the first.
    pub(crate) fn take_records(&self, count: u64) -> RecordId {
        RecordId(self.next_record.fetch_add(count, Ordering::AcqRel))
    }

    /// Appends a commit to the log. When it returns, the commit is in the log and visible to
    /// new readers. `statements` are the statements of a retryable write that the commit contains.
    pub(crate) fn append(
        &self,
        payload: &[&[u8]],
        operations: Vec<Operation>,
        bytes: usize,
        effect: Effect,
        statements: Option<StatementRecord>,
    ) -> Result<Position, Error> {
        let core = self.core()?;
        let this = self.this.clone();
        let recorded =
            statements.map(|statements| (core.retries.clone(), statements, core.now_millis()));
        let position = core.storage.log.append(payload, move |position| {
            if let Some((retries, statements, millis)) = recorded {
                retries.record(statements, position, millis);
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

    /// Adds a commit to the tails. Called in log order.
    pub(crate) fn publish(&self, commit: Commit, effect: Effect) {
        let active = self.active.lock();
        self.apply_effect(effect);
        active.push(commit);
    }

    fn apply_effect(&self, effect: Effect) {
        self.count.fetch_add(effect.documents, Ordering::Relaxed);
        self.bytes.fetch_add(effect.bytes, Ordering::Relaxed);
        self.next_record
            .fetch_max(effect.next_record.0, Ordering::AcqRel);
    }

    /// Freezes the active generation and starts a new one. If an earlier fold failed, its frozen
    /// generation is returned again. Returns `None` if there is nothing to fold.
    pub(crate) fn freeze(&self) -> Option<FrozenGeneration> {
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
        let frozen = FrozenGeneration { generation, folded };
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

    /// Replaces the sections by those of another server, with `change`, and the tails by their part
    /// after `folded`, which the new sections do not contain. Returns the replaced generation, if
    /// the sections contain a part of it.
    pub(crate) fn adopt_state(
        &self,
        folded: Position,
        change: impl FnOnce(&mut State),
    ) -> Option<Arc<Generation>> {
        let mut active = self.active.lock();
        let is_cut = folded > active.start();
        let before = active.clone();
        if is_cut {
            *active = Arc::new(before.after(folded, &self.tail_bytes));
        }
        self.change_state(|state| {
            change(state);
            state.active = active.clone();
        });
        is_cut.then_some(before)
    }

    /// Returns the memory of its tails in bytes.
    pub fn tail_bytes(&self) -> u64 {
        self.state()
            .generations()
            .map(|generation| generation.bytes())
            .sum()
    }

    /// Returns the maximal number of section chains over its maps.
    pub(crate) fn chains_max(&self) -> usize {
        let state = self.state();
        // Sections of a build are merged only after the build.
        let ready = state.indexes.iter().filter(|it| it.index.is_ready());
        let indexes = ready.map(|it| it.sections.chains().len());
        // The index on `_id` always exists.
        indexes.max().unwrap_or(0).max(state.records.chains().len())
    }

    /// Returns the log bytes that lack entries, for the index that lags most.
    pub(crate) fn entry_backlog(&self) -> u64 {
        let state = self.state();
        let indexes = state
            .indexes
            .iter()
            .map(|it| state.active.entry_backlog(&it.index));
        indexes.max().unwrap_or(0)
    }

    /// Returns how to write sections of an index, or of the map by record id if `index` is `None`.
    pub(crate) fn section_options(
        &self,
        core: &Core,
        index: Option<&Index>,
        position: Position,
    ) -> SectionOptions {
        let mut options = core.section_options(index, position);
        if index.is_none() && self.is_clustered() {
            // Entries of this map are never replaced, so each record id is in one section only.
            options.filter_bits = 0;
        }
        let holds_documents = index.is_none_or(|index| index.definition.clustered);
        match self.rules().compression.filter(|_| holds_documents) {
            Some(compression) => SectionOptions {
                compression,
                ..options
            },
            None => options,
        }
    }

    /// Returns the limits of a capped collection.
    pub fn cap(&self) -> Option<Cap> {
        self.rules().cap()
    }

    /// Returns the position of the newest commit. A reader passes it to
    /// [`wait_for_commit`](Self::wait_for_commit) to wait for later ones.
    pub fn newest_commit(&self) -> Position {
        self.state().active.newest()
    }

    /// Waits for a commit to this collection after `seen`, but at most `at_most`. Returns whether
    /// there was one. May return `false` early after commits to other collections.
    pub fn wait_for_commit(&self, seen: Position, at_most: Duration) -> Result<bool, Error> {
        let core = self.core()?;
        let written = core.storage.log.written();
        let has_more = || self.newest_commit() > seen;
        Ok(has_more() || (core.storage.log.wait_beyond(written, at_most) && has_more()))
    }

    /// Logs a warning about a document that was written although the validator rejects it.
    pub(crate) fn warn(&self, warning: &Error) {
        if let Ok(core) = self.core() {
            let what = format!("Document would fail validation, in {}", self.namespace());
            (core.options.on_problem)(&what, warning);
        }
    }
}
