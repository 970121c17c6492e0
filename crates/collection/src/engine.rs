//! The engine: opens a database directory, creates and drops collections, and owns the background
//! threads.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use windrow_document::{Document, DocumentBuf, ValueRef};
use windrow_fold::SnapshotLifetime;
use windrow_interrupt::{Interrupt, Uninterrupted};
use windrow_storage::{ClusterTime, Confirmation, Disk, Position, RowChange, SharedState, Storage};

use crate::building::share_work;
use crate::catalog::ddl_event::{DdlEvent, DdlKind};
use crate::catalog::namespace::Namespace;
use crate::catalog::rows::{self, FoldedRow};
use crate::cluster_snapshot::ClusterSnapshot;
use crate::collection::Collection;
use crate::collections::Collections;
use crate::core::Core;
use crate::dropped_collection::release_dropped;
use crate::engine_applier::EngineApplier;
use crate::engine_statistics::{ShareCounts, Statistics};
use crate::error::Error;
use crate::ids::{CollectionUuid, MapId};
use crate::maintenance::merging::MergeEffort;
use crate::maintenance::{folding, merging, repair};
use crate::options::{Background, EngineOptions};
use crate::record::transaction::{Origin, SessionKey};
use crate::retries::{LastOperation, RecordedResult};
use crate::state::IndexState;
use crate::transaction::Transaction;
use crate::{background, building, new_collection, recovery};

/// An open database directory. Dropping it closes it.
///
/// The crate's documentation has an example.
#[derive(Debug)]
pub struct Engine {
    pub(crate) core: Arc<Core>,
    pub(crate) collections: Arc<Collections>,
    background: Mutex<Vec<JoinHandle<()>>>,
}

/// An engine that follows the log of another server.
pub struct FollowingEngine {
    /// The engine.
    pub engine: Arc<Engine>,
    /// Applies the records that follow, and makes the engine writable when the storage has taken
    /// over the log: see [`Engine::begin_writing`].
    pub applier: EngineApplier,
}

impl Engine {
    /// Opens a database directory: loads the catalog, replays the log after the last fold, and
    /// resumes unfinished index builds. Starts the background threads, unless
    /// [`Background::Caller`] is set.
    pub fn open(disk: Arc<dyn Disk>, options: EngineOptions) -> Result<Arc<Engine>, Error> {
        let storage = Storage::open(disk, options.storage.clone())?;
        Engine::open_storage(storage, options)
    }

    /// Opens the database of an open storage. See [`Engine::open`].
    pub fn open_storage(storage: Storage, options: EngineOptions) -> Result<Arc<Engine>, Error> {
        let recovered = recovery::recover(storage, options)?;
        let engine = Engine::new(recovered.collections);
        engine.drop_temporary()?;
        engine.start_background()?;
        Ok(engine)
    }

    /// Opens the database of a storage that follows the log of another server. It can be read, and
    /// refuses writes.
    pub fn open_following(
        storage: Storage,
        options: EngineOptions,
    ) -> Result<FollowingEngine, Error> {
        let recovered = recovery::recover(storage, options)?;
        let engine = Engine::new(recovered.collections);
        share_work::offer(&engine.core);
        if engine.core.options.background == Background::Threads {
            let thread = background::start_shares(&engine.collections)?;
            engine.background.lock().push(thread);
        }
        let applier = EngineApplier::new(engine.collections.clone(), recovered.committed);
        Ok(FollowingEngine { engine, applier })
    }

    /// Returns an engine without background threads.
    fn new(collections: Collections) -> Arc<Engine> {
        Arc::new(Engine {
            core: collections.core.clone(),
            collections: Arc::new(collections),
            background: Mutex::default(),
        })
    }

    fn start_background(&self) -> Result<(), Error> {
        if self.core.options.background == Background::Threads {
            *self.background.lock() = background::start(&self.collections)?;
        }
        Ok(())
    }

    /// Makes an engine writable that has followed another server. The storage has taken over the
    /// log.
    pub fn begin_writing(&self, applier: EngineApplier) -> Result<(), Error> {
        share_work::stop(&self.core);
        self.join_background();
        let committed = applier.finish()?;
        self.core
            .use_ids_from(rows::next_id(&self.core.storage.catalog)?);
        recovery::settle_creations(&self.collections, &committed)?;
        for collection in self.collections.all() {
            recovery::record_largest_id(&self.core, &collection)?;
        }
        self.core.storage.retain_runs(self.core.runs())?;
        self.drop_temporary()?;
        self.start_background()
    }

    /// Drops collections with the option `temp`, which end with the process that created them.
    fn drop_temporary(&self) -> Result<(), Error> {
        let is_temporary = |it: &Arc<Collection>| {
            let options = it.options();
            options.get("temp").is_some_and(ValueRef::is_truthy)
        };
        let mut all = self.collections.all().into_iter().filter(is_temporary);
        all.try_for_each(|it| self.drop_collection(&it.namespace()).map(drop))
    }

    /// Stops the background threads, and syncs the log.
    pub fn close(&self) -> Result<(), Error> {
        background::stop(&self.collections);
        share_work::stop(&self.core);
        self.join_background();
        if let Err(error) = folding::record_all_folded(&self.collections) {
            // Without this, the next start replays the log.
            (self.core.options.on_problem)("recording that everything is folded failed", &error);
        }
        let storage = &self.core.storage;
        storage.log.sync(storage.log.written())?;
        storage.close_upload();
        Ok(())
    }

    /// Waits for the end of the background threads. They were requested to stop before.
    fn join_background(&self) {
        for thread in self.background.lock().drain(..) {
            // The panic hook has reported a panic of the thread.
            let _ = thread.join();
        }
    }

    /// Makes all writes before the call durable on the disk of this server.
    pub fn sync(&self) -> Result<(), Error> {
        let log = &self.core.storage.log;
        Ok(log.sync(log.written())?)
    }

    /// Returns `true` if this server follows another one.
    pub fn is_following(&self) -> bool {
        self.core.storage.is_following()
    }

    /// Returns `true` if the database is in an object store.
    pub fn is_shared(&self) -> bool {
        self.core.storage.is_shared()
    }

    /// Returns what this server does in the object store. `None` if the database is not in one.
    pub fn shared_state(&self) -> Option<SharedState> {
        self.core.storage.shared_state()
    }

    /// Returns how often this server has noticed that a server was added to the database in the
    /// object store, or removed.
    pub fn member_changes(&self) -> u64 {
        self.core.storage.member_changes()
    }

    /// Returns the newest position that was written.
    pub fn written(&self) -> Position {
        self.core.storage.log.written()
    }

    /// Waits until the writes up to `position` are durable, at most `at_most`: in the object store
    /// if the database is there, otherwise on the disk. Returns `true` if they are.
    pub fn wait_durable(&self, position: Position, at_most: Duration) -> Result<bool, Error> {
        Ok(self.core.storage.wait_durable(position, at_most)?)
    }

    /// Returns the newest position up to which all writes are durable, as
    /// [`wait_durable`](Engine::wait_durable) means it.
    pub fn durable(&self) -> Position {
        self.core.storage.durable()
    }

    /// Returns the time since this server has extended the log in the object store. `None` if it is
    /// not the primary of a database there.
    pub fn upload_silence(&self) -> Option<Duration> {
        self.core.storage.upload_silence()
    }

    /// Requests a proof that this server is still the primary of a database in an object store.
    /// `None` if the database is not in one.
    pub fn request_confirmation(&self) -> Option<Confirmation> {
        self.core.storage.request_confirmation()
    }

    /// Waits for a proof, at most `at_most`. Returns `true` if it is there: this server was the
    /// primary when it was requested.
    ///
    /// # Errors
    /// Fails if another server has taken over.
    pub fn wait_confirmed(
        &self,
        confirmation: Confirmation,
        at_most: Duration,
    ) -> Result<bool, Error> {
        Ok(self.core.storage.wait_confirmed(confirmation, at_most)?)
    }

    /// Folds the tails, and merges until nothing is left to merge.
    pub fn fold(&self) -> Result<(), Error> {
        self.work(Work::Fold)?;
        while self.work(Work::Merge)? {}
        Ok(())
    }

    /// Runs some background work in the calling thread, besides the engine's own threads. Returns
    /// whether there was anything to do.
    pub fn work(&self, work: Work) -> Result<bool, Error> {
        match work {
            Work::Fold => folding::fold_or_record(&self.collections).map(|sections| sections > 0),
            Work::Merge => {
                merging::merge_all(&self.collections, MergeEffort::Readers, &Uninterrupted)
            }
            Work::Compact => self.compact(&Uninterrupted),
            Work::CreateEntries => Ok(background::create_entries(&self.collections)),
            Work::Builds => {
                let unfinished = building::unfinished_builds(&self.collections);
                let resume = |build| building::resume(&self.core, build);
                unfinished.iter().for_each(resume);
                Ok(!unfinished.is_empty())
            }
            Work::BuildShare => share_work::build_next(&self.collections),
            Work::Upload => Ok(self.core.storage.upload().map(|()| true)?),
            Work::CollectGarbage => Ok(self.core.storage.collect_garbage().map(|()| true)?),
        }
    }

    /// Compacts like [`Work::Compact`]. `interrupt` stops it.
    pub fn compact(&self, interrupt: &(dyn Interrupt + Sync)) -> Result<bool, Error> {
        merging::merge_all(&self.collections, MergeEffort::AllSpace, interrupt)
    }

    /// Rebuilds indexes of a collection from its documents, concurrently with reads and writes.
    pub fn rebuild(
        &self,
        collection: &Collection,
        indexes: &[String],
        interrupt: &dyn Interrupt,
    ) -> Result<(), Error> {
        let known = collection.all_indexes();
        let named = known.iter().filter(|index| {
            let name = &index.definition.name;
            indexes.contains(name)
        });
        let maps: Vec<MapId> = named
            .map(|index| {
                // In a clustered collection, the index on `_id` is the collection itself. Only the
                // map by record id is derived from it.
                if index.definition.clustered {
                    collection.records_map
                } else {
                    index.map
                }
            })
            .collect();
        repair::rebuild(&self.collections, collection, &maps, interrupt)
    }

    /// Returns the collection with this name.
    pub fn collection(&self, namespace: &Namespace) -> Option<Arc<Collection>> {
        self.collections.by_name(namespace)
    }

    /// Returns the collections of a database, sorted by name.
    pub fn collections(&self, database: &str) -> Vec<Arc<Collection>> {
        let mut all = self.collections.all();
        all.retain(|it| it.namespace().database == database);
        all
    }

    /// Returns the UUIDs of all collections.
    pub fn uuids(&self) -> HashSet<CollectionUuid> {
        self.collections.all().iter().map(|it| it.uuid()).collect()
    }

    /// Returns the databases that have collections, sorted by name.
    pub fn databases(&self) -> Vec<String> {
        let names = self.collections.names();
        let mut names: Vec<String> = names.into_iter().map(|name| name.database).collect();
        names.dedup();
        names
    }

    /// Creates a collection with its index on `_id`.
    pub fn create(
        &self,
        namespace: &Namespace,
        options: Document<'_>,
    ) -> Result<Arc<Collection>, Error> {
        let _naming = self.collections.naming.lock();
        if self.collection(namespace).is_some() || self.view(namespace)?.is_some() {
            return Err(Error::NamespaceExists(namespace.to_string()));
        }
        self.create_named(namespace, options.to_buf())
    }

    /// Returns the collection with this name. Creates it if it does not exist. Fails if the name
    /// belongs to a view.
    pub fn collection_or_create(&self, namespace: &Namespace) -> Result<Arc<Collection>, Error> {
        if let Some(collection) = self.collection(namespace) {
            return Ok(collection);
        }
        let _naming = self.collections.naming.lock();
        match self.collection(namespace) {
            Some(collection) => Ok(collection),
            None if self.view(namespace)?.is_some() => Err(Error::IsView(namespace.to_string())),
            None => self.create_named(namespace, DocumentBuf::new()),
        }
    }

    /// Creates a collection. Called with the lock of names, after a check that the name is free.
    pub(crate) fn create_named(
        &self,
        namespace: &Namespace,
        options: DocumentBuf,
    ) -> Result<Arc<Collection>, Error> {
        self.collections.check_case(&namespace.database)?;
        let core = &self.core;
        let _changing = core.catalog_change.lock();
        let since = core.storage.log.written();
        let collection = new_collection::new_collection(core, namespace, options, since)?;
        let mut changes = new_collection::rows_of(core, &collection);
        let row = collection.row();
        changes.push(
            DdlEvent::new(DdlKind::Create, &row)
                .with_options(&row)
                .put(),
        );
        let (collections, created) = (self.collections.clone(), collection.clone());
        core.storage.catalog.change(changes, move |position| {
            created.set_named_from(position);
            created.record_change_at(position);
            collections.insert(&created);
        })?;
        Ok(collection)
    }

    /// Begins a transaction at the newest position.
    pub fn begin(&self, origin: Origin) -> Transaction {
        let snapshot = self.core.snapshot(SnapshotLifetime::Limited);
        Transaction::begin(&self.collections, origin, snapshot, None)
    }

    /// Begins a transaction at a cluster snapshot.
    pub fn begin_at(
        &self,
        origin: Origin,
        cluster_snapshot: Arc<ClusterSnapshot>,
    ) -> Result<Transaction, Error> {
        let snapshot = cluster_snapshot.reopen()?;
        Ok(Transaction::begin(
            &self.collections,
            origin,
            snapshot,
            Some(cluster_snapshot),
        ))
    }

    /// Returns a snapshot of all collections. While it is pinned, clients can read at its cluster
    /// time again.
    pub fn cluster_snapshot(&self) -> ClusterSnapshot {
        ClusterSnapshot::newest(&self.collections, ClusterTime::default())
    }

    /// Returns the snapshot of a cluster time that is pinned or the newest. `current` is the latest
    /// time that counts as the newest if nothing was written since. Fails with
    /// [`Error::SnapshotNotKept`] otherwise.
    pub fn cluster_snapshot_at(
        &self,
        time: ClusterTime,
        current: ClusterTime,
    ) -> Result<ClusterSnapshot, Error> {
        ClusterSnapshot::at(&self.collections, time, current)
    }

    /// Sets for how long snapshots stay pinned, at most the maximal age of snapshots.
    pub fn set_snapshot_window(&self, window: Duration) {
        self.core.pinned_snapshots.set_window(window);
    }

    /// Returns the last operation of a session, if it wrote within the last half hour. Includes
    /// operations from before the last start.
    pub fn last_operation(&self, session: SessionKey) -> Option<LastOperation> {
        self.core.retries.last(session)
    }

    /// Returns the recorded result of a retryable write's statement.
    pub fn recorded_result(&self, origin: Origin, statement: i32) -> RecordedResult {
        self.core.retries.result(origin, statement)
    }

    /// Removes the recorded results of a session that has ended.
    pub fn forget_session(&self, session: SessionKey) {
        self.core.retries.forget(session);
    }

    /// Drops a collection. Returns `false` if there is none.
    pub fn drop_collection(&self, namespace: &Namespace) -> Result<bool, Error> {
        let collection = self.collection(namespace);
        collection.map_or(Ok(false), |it| self.drop_found(&it, namespace))
    }

    /// Drops a collection that the caller found under this name. Returns `false` if it no longer
    /// has the name.
    pub fn drop_found(
        &self,
        collection: &Arc<Collection>,
        namespace: &Namespace,
    ) -> Result<bool, Error> {
        // Before the lock of names, because transactions that use the collection may wait for that
        // lock to create others.
        let _ddl_guard = collection.exclude(&|| self.core.check_progress())?;
        let _naming = self.collections.naming.lock();
        if collection.is_dropped() || collection.namespace() != *namespace {
            return Ok(false);
        }
        self.drop_named(collection)?;
        Ok(true)
    }

    /// Drops all collections of a database. Returns how many.
    pub fn drop_database(&self, database: &str) -> Result<usize, Error> {
        let mut dropped = 0;
        for collection in self.collections(database) {
            dropped += usize::from(self.drop_collection(&collection.namespace())?);
        }
        if dropped > 0 {
            let _changing = self.core.catalog_change.lock();
            let event = vec![DdlEvent::drop_database(database).put()];
            self.core.storage.catalog.change(event, |_| {})?;
        }
        Ok(dropped)
    }

    fn drop_named(&self, collection: &Arc<Collection>) -> Result<(), Error> {
        let _changing = self.core.catalog_change.lock();
        // Waits for running writes. Later ones find the collection dropped.
        let _schema = collection.schema.write();
        let mut changes = self.drop_changes(collection);
        changes.push(DdlEvent::new(DdlKind::Drop, &collection.row()).put());
        let (collections, dropped) = (self.collections.clone(), collection.clone());
        let drop_at = move |position: Position| collections.drop_at(&dropped, position);
        self.core.storage.catalog.change(changes, drop_at)?;
        self.forget(collection)
    }

    /// Returns the catalog changes that remove a collection. Its builds stop.
    pub(crate) fn drop_changes(&self, collection: &Collection) -> Vec<RowChange> {
        let state = collection.state();
        let mut changes = collection.row().delete(collection.id);
        changes.extend(
            self.core
                .retire_name(collection.id, collection.row().named()),
        );
        changes.push(FoldedRow::delete(collection.id));
        let sections = state.records.descriptors();
        changes.extend(sections.map(|it| rows::delete_section(collection.records_map, it)));
        for IndexState {
            index, sections, ..
        } in &state.indexes
        {
            changes.extend(building::delete_rows(&self.core, collection, index));
            let descriptors = sections.descriptors();
            changes.extend(descriptors.map(|it| rows::delete_section(index.map, it)));
        }
        changes
    }

    /// Releases the sections of a collection that was removed from the catalog.
    pub(crate) fn forget(&self, collection: &Collection) -> Result<(), Error> {
        release_dropped(&self.core, collection)
    }

    /// Returns the memory limit of all index builds together, in bytes.
    pub fn build_bytes(&self) -> u64 {
        self.core.builds.bytes_max()
    }

    /// Sets the memory limit of all index builds together, in bytes. Running builds obey it, too.
    pub fn set_build_bytes(&self, bytes: u64) {
        self.core.builds.set_bytes_max(bytes);
    }

    /// Returns the generation of the data key that new files use. `None` if the data folder is not
    /// encrypted.
    pub fn key_generation(&self) -> Option<u16> {
        self.core.storage.runs.key_generation()
    }

    /// Returns `true` if the data folder is encrypted.
    pub fn is_encrypted(&self) -> bool {
        self.key_generation().is_some()
    }

    /// Returns statistics of the engine.
    pub fn statistics(&self) -> Statistics {
        let core = &self.core;
        let counters = &core.counters;
        let count = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        Statistics {
            memory: core.options.memory,
            tail_bytes: core.tail_bytes(),
            cache_bytes: core.storage.runs.cache_bytes(),
            open_snapshots: core.snapshots.count() as u64,
            folds: count(&counters.folds),
            merges: count(&counters.merges),
            delayed_writes: count(&counters.delayed_writes),
            shares: ShareCounts {
                builders: core.storage.builders().len() as u64,
                given: count(&counters.shares_given),
                adopted: count(&counters.shares_adopted),
                taken_back: count(&counters.shares_taken_back),
                built: count(&counters.shares_built),
            },
            store: core.storage.store_statistics(),
            entry_time: counters.entry_time.total(),
            fold_time: counters.fold_time.total(),
            merge_time: counters.merge_time.total(),
            delay_time: counters.delay_time.total(),
            written: core.storage.log.written(),
            synced: core.storage.durable(),
        }
    }
}

/// Kinds of background work, for [`Engine::work`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Turns the tails into sections.
    Fold,
    /// Merges each map that needs it once.
    Merge,
    /// Merges also maps with many deleted or replaced entries, to release their space unless a
    /// snapshot reads them.
    Compact,
    /// Creates the index entries of the newest commits.
    CreateEntries,
    /// Resumes index builds that a crash interrupted.
    Builds,
    /// Builds the next share that the primary has given to this follower.
    BuildShare,
    /// Uploads the next object of the log to the object store, if nothing else does.
    Upload,
    /// Deletes from the object store what no server needs, if nothing else does.
    CollectGarbage,
}

impl Drop for Engine {
    fn drop(&mut self) {
        // A drop cannot report errors. What could not be synced is lost only in a crash.
        let _ = self.close();
    }
}
