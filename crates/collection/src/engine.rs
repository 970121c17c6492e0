//! The engine: a data folder's collections, opened, created and dropped; its background thread.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use windrow_document::{Document, DocumentBuf, ValueRef};
use windrow_fold::SnapshotLifetime;
use windrow_storage::{ClusterTime, Disk, Position, RowChange, Storage};

use crate::cluster_snapshot::ClusterSnapshot;
use crate::collection::Collection;
use crate::collections::Collections;
use crate::core::Core;
use crate::ddl_event::{DdlEvent, DdlKind};
use crate::error::Error;
use crate::ids::MapId;
use crate::merging::MergeEffort;
use crate::namespace::Namespace;
use crate::options::{Background, EngineOptions};
use crate::record::transaction::Origin;
use crate::retries::{LastOperation, RecordedResult};
use crate::rows;
use crate::state::IndexState;
use crate::transaction::Transaction;
use crate::{background, building, folding, merging, new_collection, recovery, repair};

/// A data folder that is open. Closing it is dropping it.
#[derive(Debug)]
pub struct Engine {
    pub(crate) core: Arc<Core>,
    pub(crate) collections: Arc<Collections>,
    background: Mutex<Vec<JoinHandle<()>>>,
}

impl Engine {
    /// Opens a data folder: its collections as they were, what was not folded from the log; index
    /// builds that were not finished go on.
    pub fn open(disk: Arc<dyn Disk>, options: EngineOptions) -> Result<Arc<Engine>, Error> {
        let storage = Storage::open(disk, options.storage.clone())?;
        let collections = Arc::new(recovery::recover(storage, options)?);
        let engine = Arc::new(Engine {
            core: collections.core.clone(),
            collections,
            background: Mutex::default(),
        });
        engine.drop_temporary()?;
        if engine.core.options.background == Background::Threads {
            *engine.background.lock() = background::start(&engine.collections)?;
        }
        Ok(engine)
    }

    /// Collections with the option `temp` end with the process that made them.
    fn drop_temporary(&self) -> Result<(), Error> {
        let is_temporary = |it: &Arc<Collection>| {
            let options = it.options();
            options.get("temp").is_some_and(ValueRef::is_truthy)
        };
        let mut all = self.collections.all().into_iter().filter(is_temporary);
        all.try_for_each(|it| self.drop_collection(&it.namespace()).map(drop))
    }

    /// Stops the background threads and syncs the log.
    pub fn close(&self) -> Result<(), Error> {
        background::stop(&self.collections);
        for thread in self.background.lock().drain(..) {
            // A panic there has been reported.
            let _ = thread.join();
        }
        if let Err(error) = folding::record_all_folded(&self.collections) {
            // The next start reads the log instead.
            (self.core.options.on_problem)("shortening the next start failed", &error);
        }
        self.sync()
    }

    /// Everything that was written before the call is durable when it returns.
    pub fn sync(&self) -> Result<(), Error> {
        let log = &self.core.storage.log;
        Ok(log.sync(log.written())?)
    }

    /// Folds what the tails hold, and merges until nothing is left to merge.
    pub fn fold(&self) -> Result<(), Error> {
        self.work(Work::Fold)?;
        while self.work(Work::Merge)? {}
        Ok(())
    }

    /// Does some of what the engine's own threads do, where there are any; whether there was
    /// something to do.
    pub fn work(&self, work: Work) -> Result<bool, Error> {
        match work {
            Work::Fold => folding::fold(&self.collections).map(|sections| sections > 0),
            Work::Merge => merging::merge_all(&self.collections, MergeEffort::Readers, &|| true),
            Work::Compact => self.compact_while(&|| true),
            Work::CreateEntries => Ok(background::create_entries(&self.collections)),
            Work::Builds => {
                let unfinished = building::unfinished(&self.collections);
                let resume = |build| building::resume(&self.core, build);
                unfinished.iter().for_each(resume);
                Ok(!unfinished.is_empty())
            }
        }
    }

    /// As [`Work::Compact`], for as long as `should_continue` says so.
    pub fn compact_while(
        &self,
        should_continue: &(dyn Fn() -> bool + Sync),
    ) -> Result<bool, Error> {
        merging::merge_all(&self.collections, MergeEffort::AllSpace, should_continue)
    }

    /// Makes indexes of a collection anew from its documents, while others read and write, and in their
    /// place. `should_stop` is asked now and then, and says why.
    pub fn rebuild(
        &self,
        collection: &Collection,
        indexes: &[String],
        should_stop: &dyn Fn() -> Option<String>,
    ) -> Result<(), Error> {
        let known = collection.all_indexes();
        let named = known.iter().filter(|index| {
            let name = &index.definition.name;
            indexes.contains(name)
        });
        let maps: Vec<MapId> = named
            .map(|index| match index.definition.clustered {
                // The collection itself: what is made from it is the map by record id.
                true => collection.records_map,
                false => index.map,
            })
            .collect();
        repair::rebuild(&self.collections, collection, &maps, should_stop)
    }

    pub fn collection(&self, namespace: &Namespace) -> Option<Arc<Collection>> {
        self.collections.by_name(namespace)
    }

    /// The collections of a database, by name.
    pub fn collections(&self, database: &str) -> Vec<Arc<Collection>> {
        let mut all = self.collections.all();
        all.retain(|it| it.namespace().database == database);
        all
    }

    /// The UUIDs of all collections.
    pub fn uuids(&self) -> HashSet<[u8; 16]> {
        self.collections.all().iter().map(|it| it.uuid()).collect()
    }

    /// The databases that have collections, by name.
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

    /// The collection of that name, created where there is none. Error where it is a view.
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

    /// Called with the lock of names, once the name is known to be free.
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
        changes.push(DdlEvent::of(DdlKind::Create, &row).with_options(&row).put());
        let (collections, created) = (self.collections.clone(), collection.clone());
        core.storage.catalog.change(changes, move |position| {
            created.set_named_from(position);
            created.record_change_at(position);
            collections.insert(&created);
        })?;
        Ok(collection)
    }

    /// Begins a transaction, which reads what has been written before.
    pub fn begin(&self, origin: Origin) -> Transaction {
        let snapshot = self.core.snapshot(SnapshotLifetime::Limited);
        Transaction::begin(&self.collections, origin, snapshot, None)
    }

    /// The same, reading what was there at a moment.
    pub fn begin_at(
        &self,
        origin: Origin,
        moment: Arc<ClusterSnapshot>,
    ) -> Result<Transaction, Error> {
        let snapshot = moment.again()?;
        Ok(Transaction::begin(
            &self.collections,
            origin,
            snapshot,
            Some(moment),
        ))
    }

    /// What has been written up to now, to be read at once or, by its time, for as long as that is kept.
    pub fn cluster_snapshot(&self) -> ClusterSnapshot {
        ClusterSnapshot::newest(&self.collections, ClusterTime::default())
    }

    /// What was there at a time that is kept, or is the newest. `current`: the latest time that counts as
    /// the newest where nothing has been written since. Error SnapshotNotKept.
    pub fn cluster_snapshot_at(
        &self,
        time: ClusterTime,
        current: ClusterTime,
    ) -> Result<ClusterSnapshot, Error> {
        ClusterSnapshot::at(&self.collections, time, current)
    }

    /// Sets for how long the moments that clients know are kept, but not for longer than snapshots may be
    /// old.
    pub fn set_snapshot_window(&self, window: Duration) {
        self.core.pinned_snapshots.set_window(window);
    }

    /// What a session has done last, also before the engine was opened: of those that have written within
    /// the last half an hour.
    pub fn last_operation(&self, session: &[u8; 16]) -> Option<LastOperation> {
        self.core.retries.last(session)
    }

    /// What a statement of a retryable write has done.
    pub fn recorded_result(&self, origin: Origin, statement: i32) -> RecordedResult {
        self.core.retries.done(origin, statement)
    }

    /// Forgets what a session has done last, since it has ended.
    pub fn forget_session(&self, session: &[u8; 16]) {
        self.core.retries.forget(session);
    }

    /// Drops a collection; false where there is none.
    pub fn drop_collection(&self, namespace: &Namespace) -> Result<bool, Error> {
        let collection = self.collection(namespace);
        collection.map_or(Ok(false), |it| self.drop_found(&it, namespace))
    }

    /// Drops a collection that was found under this name; false where it has that no more.
    pub fn drop_found(
        &self,
        collection: &Arc<Collection>,
        namespace: &Namespace,
    ) -> Result<bool, Error> {
        // Before the lock of names, which transactions take where they create collections.
        let _exclusion = collection.exclude(&|| self.core.cannot_progress())?;
        let _naming = self.collections.naming.lock();
        if collection.is_dropped() || collection.namespace() != *namespace {
            return Ok(false);
        }
        self.drop_named(collection)?;
        Ok(true)
    }

    /// Drops all collections of a database; how many there were.
    pub fn drop_database(&self, database: &str) -> Result<usize, Error> {
        let mut dropped = 0;
        for collection in self.collections(database) {
            dropped += usize::from(self.drop_collection(&collection.namespace())?);
        }
        if dropped > 0 {
            let _changing = self.core.catalog_change.lock();
            let told = vec![DdlEvent::of_database(database).put()];
            self.core.storage.catalog.change(told, |_| {})?;
        }
        Ok(dropped)
    }

    fn drop_named(&self, collection: &Arc<Collection>) -> Result<(), Error> {
        let _changing = self.core.catalog_change.lock();
        // Writers that have begun end first; later ones find the collection dropped.
        let _schema = collection.schema.write();
        let mut changes = self.drop_changes(collection);
        changes.push(DdlEvent::of(DdlKind::Drop, &collection.row()).put());
        let (collections, dropped) = (self.collections.clone(), collection.clone());
        let drop_at = move |position: Position| collections.drop_at(&dropped, position);
        self.core.storage.catalog.change(changes, drop_at)?;
        self.forget(collection)
    }

    /// What takes a collection out of the catalog. Its builds stop.
    pub(crate) fn drop_changes(&self, collection: &Collection) -> Vec<RowChange> {
        let state = collection.state();
        let mut changes = collection.row().delete(collection.id);
        changes.extend(
            self.core
                .retire_name(collection.id, collection.row().named()),
        );
        changes.push(RowChange::delete(rows::key(
            rows::FOLDED,
            &[collection.id.0],
        )));
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

    /// Lets go of what a collection holds that is in no catalog any more.
    pub(crate) fn forget(&self, collection: &Collection) -> Result<(), Error> {
        collection.change_state(|state| state.dropped = true);
        let state = collection.state();
        state.indexes.iter().for_each(|it| it.index.set_dropped());
        state
            .generations()
            .for_each(|generation| generation.retire());
        let mut all = state
            .maps()
            .flat_map(|it| it.descriptors().chain(it.past_descriptors()));
        all.try_for_each(|descriptor| self.core.close_section(descriptor))
    }

    /// How much memory all index builds together take, in bytes.
    pub fn build_bytes(&self) -> u64 {
        self.core.builds.bytes_max()
    }

    /// Sets how much memory all index builds together take, in bytes; those that run keep to it.
    pub fn set_build_bytes(&self, bytes: u64) {
        self.core.builds.set_bytes_max(bytes);
    }

    /// What the engine holds and has done.
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
            making_entries: counters.making_entries.total(),
            folding: counters.folding.total(),
            merging: counters.merging.total(),
            delaying: counters.delaying.total(),
            written: core.storage.log.written(),
            synced: core.storage.log.synced(),
        }
    }
}

/// See [`Engine::work`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// What the tails hold becomes sections.
    Fold,
    /// One merge of every map that needs it.
    Merge,
    /// The same, and of maps where much is gone or replaced: space comes back, as far as nobody reads
    /// what was before.
    Compact,
    /// Indexes make the entries of the newest commits.
    CreateEntries,
    /// Builds that a crash interrupted go on to their end.
    Builds,
}

/// See [`Engine::statistics`]. Sizes are bytes.
#[derive(Clone, Copy, Debug)]
pub struct Statistics {
    pub memory: u64,
    pub tail_bytes: u64,
    pub cache_bytes: u64,
    pub open_snapshots: u64,
    pub folds: u64,
    pub merges: u64,
    /// How often a write waited since tails grew faster than they were folded.
    pub delayed_writes: u64,
    /// How long the background thread made entries of indexes, folds ran, merges ran, and writers waited
    /// for these.
    pub making_entries: Duration,
    pub folding: Duration,
    pub merging: Duration,
    pub delaying: Duration,
    /// The newest position of the log, and the newest that is durable.
    pub written: Position,
    pub synced: Position,
}

impl Drop for Engine {
    fn drop(&mut self) {
        // There is nobody to tell: what could not be synced is as after a crash.
        let _ = self.close();
    }
}
