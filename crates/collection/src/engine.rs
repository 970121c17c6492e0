//! The engine: a data folder's collections, opened, created and dropped; its background thread.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use windrow_document::{Document, DocumentBuf, ValueRef};
use windrow_index::{Definition, Multikey};
use windrow_storage::{Compression, Disk, RowChange, RunsOptions, Storage, StorageOptions};

use crate::collection::{Collection, IndexState};
use crate::core::Core;
use crate::error::Error;
use crate::index::Index;
use crate::namespace::Namespace;
use crate::rows::{self, CollectionRow, FoldedRow};
use crate::rules::collation_of;
use crate::{building, folding, merging, recovery};

/// How an engine uses the machine.
#[derive(Clone, Copy, Debug)]
pub struct EngineOptions {
    /// Bytes of memory that caches, tails and builds share.
    pub memory: u64,
    /// Bytes of memory of tails, at which a fold begins where much is stored: see
    /// `Core::fold_from_bytes`.
    pub tail_bytes: u64,
    /// Bytes of memory for all index builds together.
    pub build_bytes: u64,
    /// Threads for folds, merges and builds.
    pub threads: usize,
    /// How documents are compressed.
    pub compression: Compression,
    /// The longest that a commit stays in a tail alone.
    pub fold_interval: Duration,
    /// Bytes of log records that an index may lag behind before its entries are made unasked.
    pub settle_bytes: u64,
    /// Told of what goes wrong in the background.
    pub on_problem: fn(&str, &Error),
}

impl EngineOptions {
    /// Shares of so many bytes of memory: half for the cache, a sixteenth for tails until they are
    /// folded, 200 MB or a quarter for builds.
    pub fn with_memory(memory: u64) -> EngineOptions {
        EngineOptions {
            memory,
            tail_bytes: (memory / 16).clamp(1 << 20, 256 << 20),
            build_bytes: (memory / 4).clamp(16 << 20, 200 << 20),
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            compression: Compression::Lz4,
            fold_interval: Duration::from_secs(60),
            settle_bytes: 1 << 20,
            on_problem: |what, error| eprintln!("{what}: {error}"),
        }
    }
}

/// A data folder that is open. Closing it is dropping it.
#[derive(Debug)]
pub struct Engine {
    pub(crate) core: Arc<Core>,
    background: Mutex<Vec<JoinHandle<()>>>,
}

impl Engine {
    /// Opens a data folder: its collections as they were, what was not folded from the log; index
    /// builds that were not finished go on.
    pub fn open(disk: Arc<dyn Disk>, options: EngineOptions) -> Result<Arc<Engine>, Error> {
        let runs = RunsOptions {
            cache_bytes: options.memory / 2,
        };
        let storage = Storage::open(
            disk,
            StorageOptions {
                runs,
                ..StorageOptions::default()
            },
        )?;
        let core = recovery::recover(storage, options)?;
        let engine = Arc::new(Engine {
            core: core.clone(),
            background: Mutex::default(),
        });
        engine.drop_temporary()?;
        core.note_stored();
        let mut threads = engine.background.lock();
        threads.push(spawn("windrow-fold", core.clone(), keep_folding)?);
        threads.push(spawn("windrow-merge", core.clone(), keep_merging)?);
        threads.push(spawn("windrow-tails", core.clone(), keep_settling)?);
        for build in building::unfinished(&core) {
            threads.push(spawn("windrow-build", core.clone(), move |core| {
                building::resume(core, &build);
            })?);
        }
        drop(threads);
        Ok(engine)
    }

    /// Collections with the option `temp` end with the process that made them.
    fn drop_temporary(&self) -> Result<(), Error> {
        let is_temporary = |it: &Arc<Collection>| {
            let options = it.options();
            options.get("temp").is_some_and(ValueRef::is_truthy)
        };
        let mut all = self.core.all().into_iter().filter(is_temporary);
        all.try_for_each(|it| self.drop_collection(&it.namespace()).map(drop))
    }

    /// Stops the background threads and syncs the log.
    pub fn close(&self) -> Result<(), Error> {
        self.core.background.closing.store(true, Ordering::Release);
        self.core.background.fold.call();
        self.core.background.merge.call();
        self.core.background.settle.call();
        for thread in self.background.lock().drain(..) {
            let _ = thread.join();
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
        folding::fold(&self.core)?;
        while merging::merge_all(&self.core)? {}
        Ok(())
    }

    pub fn collection(&self, namespace: &Namespace) -> Option<Arc<Collection>> {
        self.core.collections.read().by_name.get(namespace).cloned()
    }

    /// The collections of a database, by name.
    pub fn collections(&self, database: &str) -> Vec<Arc<Collection>> {
        let collections = self.core.collections.read();
        let all = collections.by_name.iter();
        all.filter(|(name, _)| name.database == database)
            .map(|(_, it)| it.clone())
            .collect()
    }

    /// The databases that have collections, by name.
    pub fn databases(&self) -> Vec<String> {
        let collections = self.core.collections.read();
        let mut names: Vec<String> = collections
            .by_name
            .keys()
            .map(|name| name.database.clone())
            .collect();
        names.dedup();
        names
    }

    /// Creates a collection with its index on `_id`.
    pub fn create(
        &self,
        namespace: &Namespace,
        options: Document<'_>,
    ) -> Result<Arc<Collection>, Error> {
        let _changing = self.core.catalog_change.lock();
        if self.collection(namespace).is_some() || self.view(namespace)?.is_some() {
            return Err(Error::NamespaceExists(namespace.to_string()));
        }
        self.create_locked(namespace, options.to_buf())
    }

    /// The collection of that name, created where there is none. Error where it is a view.
    pub fn collection_or_create(&self, namespace: &Namespace) -> Result<Arc<Collection>, Error> {
        if let Some(collection) = self.collection(namespace) {
            return Ok(collection);
        }
        let _changing = self.core.catalog_change.lock();
        match self.collection(namespace) {
            Some(collection) => Ok(collection),
            None if self.view(namespace)?.is_some() => Err(Error::IsView(namespace.to_string())),
            None => self.create_locked(namespace, DocumentBuf::new()),
        }
    }

    /// Called with the lock of catalog changes, once the name is known to be free.
    pub(crate) fn create_locked(
        &self,
        namespace: &Namespace,
        options: DocumentBuf,
    ) -> Result<Arc<Collection>, Error> {
        let core = &self.core;
        let collation = collation_of(options.as_document())?;
        let definition = Arc::new(Definition::of_ids(collation));
        let (id, records, ids_map) = (core.take_id(), core.take_id(), core.take_id());
        let row = CollectionRow {
            namespace: namespace.clone(),
            uuid: random_uuid(),
            options,
            records,
        };
        let since = core.storage.log.written().0;
        let index = Index::new(ids_map, definition, since, true, Multikey::default());
        let folded = FoldedRow {
            position: since,
            ..FoldedRow::default()
        };
        let mut changes = row.put(id);
        changes.push(folded.put(id));
        changes.push(index.row().put(id, ids_map));
        changes.push(rows::put_next_id(core.next_id()));
        core.storage.catalog.change(changes, |_| {})?;
        let indexes = vec![IndexState {
            index: Arc::new(index),
            sections: Arc::default(),
        }];
        let collection = Collection::new(id, row, folded, Arc::default(), indexes, core);
        let collection = Arc::new(collection);
        let mut collections = core.collections.write();
        collections
            .by_name
            .insert(namespace.clone(), collection.clone());
        collections.by_id.insert(id, collection.clone());
        Ok(collection)
    }

    /// Drops a collection; false where there is none.
    pub fn drop_collection(&self, namespace: &Namespace) -> Result<bool, Error> {
        let _changing = self.core.catalog_change.lock();
        let Some(collection) = self.collection(namespace) else {
            return Ok(false);
        };
        self.drop_locked(&collection)?;
        Ok(true)
    }

    /// Drops all collections of a database; how many there were.
    pub fn drop_database(&self, database: &str) -> Result<usize, Error> {
        let _changing = self.core.catalog_change.lock();
        let collections = self.collections(database);
        collections
            .iter()
            .try_for_each(|collection| self.drop_locked(collection))?;
        Ok(collections.len())
    }

    fn drop_locked(&self, collection: &Arc<Collection>) -> Result<(), Error> {
        // Writers that have begun end first; later ones find the collection dropped.
        let _schema = collection.schema.write();
        let changes = self.drop_changes(collection);
        self.core.storage.catalog.change(changes, |_| {})?;
        let mut collections = self.core.collections.write();
        collections.by_name.remove(&collection.namespace());
        collections.by_id.remove(&collection.id);
        drop(collections);
        self.forget(collection)
    }

    /// What takes a collection out of the catalog. Its builds stop.
    pub(crate) fn drop_changes(&self, collection: &Collection) -> Vec<RowChange> {
        let state = collection.state();
        let mut changes = collection.row().delete(collection.id);
        changes.push(RowChange::delete(rows::key(rows::FOLDED, &[collection.id])));
        let sections = state.records.descriptors();
        changes.extend(sections.map(|it| rows::delete_section(collection.records_map, it)));
        for IndexState { index, sections } in &state.indexes {
            index.set_dropped();
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
        state
            .generations()
            .for_each(|generation| generation.retire());
        let of_indexes = state
            .indexes
            .iter()
            .flat_map(|it| it.sections.descriptors());
        let mut all = state.records.descriptors().chain(of_indexes);
        all.try_for_each(|descriptor| self.core.close_section(descriptor))
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
            written: core.storage.log.written().0,
            synced: core.storage.log.synced().0,
        }
    }
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
    /// The newest position of the log, and the newest that is durable.
    pub written: u64,
    pub synced: u64,
}

impl Drop for Engine {
    fn drop(&mut self) {
        let _ = self.close();
    }
}

fn spawn(
    name: &str,
    core: Arc<Core>,
    work: impl FnOnce(&Arc<Core>) + Send + 'static,
) -> Result<JoinHandle<()>, Error> {
    let thread = std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || work(&core));
    thread.map_err(|error| Error::Interrupted(format!("no thread can be started: {error}")))
}

/// Version 4: random.
fn random_uuid() -> [u8; 16] {
    let mut uuid = [0; 16];
    // Without random bytes the uuid is zero: unhelpful, and harmless.
    let _ = getrandom::fill(&mut uuid);
    uuid[6] = uuid[6] & 0x0F | 0x40;
    uuid[8] = uuid[8] & 0x3F | 0x80;
    uuid
}

/// Folds whenever tails have grown enough or are old.
fn keep_folding(core: &Arc<Core>) {
    let mut last_fold = Instant::now();
    while !core.is_closing() {
        core.background.fold.wait(Duration::from_millis(500));
        let full = core.tail_bytes() >= core.fold_from_bytes();
        let old = core.tail_bytes() > 0 && last_fold.elapsed() >= core.options.fold_interval;
        if core.is_closing() || !(full || old) {
            continue;
        }
        if let Err(error) = folding::fold(core) {
            (core.options.on_problem)("folding failed", &error);
            std::thread::sleep(Duration::from_millis(200));
        }
        last_fold = Instant::now();
        core.background.folded.call();
        core.background.merge.call();
    }
}

/// Merges after folds, beside the next ones.
fn keep_merging(core: &Arc<Core>) {
    while !core.is_closing() {
        core.background.merge.wait(Duration::from_millis(500));
        let mut merged = true;
        while merged && !core.is_closing() {
            merged = merging::merge_all(core).unwrap_or_else(|error| {
                (core.options.on_problem)("merging failed", &error);
                false
            });
            core.background.merged.call();
        }
    }
}

/// Makes the entries of indexes a little after their commits came, so that no reader and no fold has
/// to make many.
fn keep_settling(core: &Arc<Core>) {
    while !core.is_closing() {
        core.background.settle.wait(Duration::from_millis(500));
        let position = core.storage.log.written().0;
        for collection in core.all() {
            let state = collection.state();
            for IndexState { index, .. } in &state.indexes {
                if state.active.bytes_unsettled(index) >= core.options.settle_bytes {
                    state.active.index(index, position);
                    core.background.settled.call();
                }
            }
        }
    }
}
