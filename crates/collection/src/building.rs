//! Index builds, concurrent with reads and writes.
//!
//! The steps:
//!
//! 1. Register the indexes at a log position, in the catalog and for writers. From then on they
//!    follow the log like other indexes.
//! 2. Scan a snapshot of that position on all threads. Sort what fits into memory, and write it as
//!    sections, each with a row that says which records it covers.
//! 3. Check unique indexes for duplicates.
//! 4. Mark the indexes as ready.
//!
//! After a crash, the build continues with the records that no row covers.

mod control;
mod duplicate_build;
mod entries;
mod ongoing_scan;
pub(crate) mod pool;
mod ranges;
mod scan;
mod share_report;
pub(crate) mod share_work;
mod sharing;
pub(crate) mod taken_shares;
mod unique;

pub use control::{BuildControl, BuildPhase};

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use windrow_index::search::SearchDefinition;
use windrow_index::{Definition, conflict};
use windrow_interrupt::Interrupted;
use windrow_storage::{Position, RowChange};

use crate::catalog::ddl_event::{DdlEvent, DdlKind};
use crate::catalog::rows;
use crate::collection::Collection;
use crate::collections::Collections;
use crate::core::Core;
use crate::error::Error;
use crate::index::Index;
use crate::panic_boundary::catch_panic;
use crate::state::IndexState;

/// The result of `create_indexes`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreatedIndexes {
    /// The number of indexes before.
    pub before: usize,
    /// The number of indexes after.
    pub after: usize,
    /// The names of the indexes that did not exist before.
    pub created: Vec<String>,
}

/// Returns the requested indexes that do not exist yet. Fails with [`Error::IndexConflict`] if one
/// conflicts with an existing or another requested index.
///
/// Creation of indexes repeats this under the lock of catalog changes. A caller uses it to check a
/// request before it creates a collection or waits for the builds of other callers.
pub fn missing_indexes(
    known: &[Arc<Index>],
    requested: Vec<Definition>,
) -> Result<Vec<Definition>, Error> {
    let known: Vec<Arc<Definition>> = known.iter().map(|it| it.definition.clone()).collect();
    conflict::missing(&known, requested).map_err(|error| Error::IndexConflict {
        code: error.code,
        message: error.message,
    })
}

/// A build checks unique indexes this many times before it excludes folds.
const CHECKS_BESIDE_FOLDS: usize = 2;

impl Collection {
    /// Builds indexes. Skips those that exist with the same options.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use windrow_collection::{Engine, EngineOptions, Error, InsertOrder, Namespace};
    /// # use windrow_storage::MemoryDisk;
    /// use windrow_collection::{BuildControl, Checks, Uninterrupted};
    /// use windrow_document::doc;
    /// use windrow_index::Definition;
    ///
    /// # let options = EngineOptions::with_memory(64 << 20);
    /// # let engine = Engine::open(Arc::new(MemoryDisk::new()), options)?;
    /// let birds = engine.collection_or_create(&Namespace::new("zoo", "birds")?)?;
    /// let heron = doc! { "_id": 1, "legs": 2 }.into_bytes();
    /// birds.insert(heron.into(), InsertOrder::Ordered)?;
    ///
    /// let legs = doc! { "key": { "legs": 1 }, "name": "legs_1" };
    /// let legs = Definition::parse(legs.as_document()).expect("a valid definition");
    /// let control = BuildControl {
    ///     interrupt: &Uninterrupted,
    ///     on_phase: &|_| {},
    /// };
    /// assert_eq!(birds.create_indexes(vec![legs], &control)?.created, ["legs_1"]);
    ///
    /// let validation = birds.validate(Checks::FULL)?;
    /// assert!(validation.is_valid());
    /// assert_eq!(validation.indexes.len(), 2);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn create_indexes(
        &self,
        definitions: Vec<Definition>,
        control: &BuildControl<'_>,
    ) -> Result<CreatedIndexes, Error> {
        let core = self.core()?;
        let before = self.index_count();
        let indexes = {
            let _ddl_guard = self.exclude(&wait_interrupt(&core, control))?;
            self.register(&core, definitions)?
        };
        let created = indexes
            .iter()
            .map(|index| index.definition.name.clone())
            .collect();
        let after = self.index_count();
        (control.on_phase)(&BuildPhase::Registered {
            indexes: indexes.clone(),
        });
        let built = self.build_catching_panics(&core, &indexes, control);
        if let Err(error) = built {
            self.abandon(&core, &indexes);
            return Err(error);
        }
        Ok(CreatedIndexes {
            before,
            after,
            created,
        })
    }

    /// Runs a build, and turns a panic into an error. The index is removed, because the panic would
    /// recur at each start that resumes the build.
    fn build_catching_panics(
        &self,
        core: &Core,
        indexes: &[Arc<Index>],
        control: &BuildControl<'_>,
    ) -> Result<(), Error> {
        catch_panic("an index build", || self.build(core, indexes, control))
    }

    fn register(
        &self,
        core: &Core,
        definitions: Vec<Definition>,
    ) -> Result<Vec<Arc<Index>>, Error> {
        let _changing = core.catalog_change.lock();
        // Waits for running writes, which do not know the new indexes, before the position is
        // taken.
        let _schema = self.schema.write();
        self.check_exists()?;
        let since = core.storage.log.written();
        let new = missing_indexes(&self.all_indexes(), definitions)?;
        let register = |definition| {
            let map = core.take_map_id();
            Arc::new(Index::new(map, Arc::new(definition), since))
        };
        let indexes: Vec<Arc<Index>> = new.into_iter().map(register).collect();
        let mut changes: Vec<RowChange> = indexes
            .iter()
            .flat_map(|index| index.row().put(self.id, index.map))
            .collect();
        changes.push(rows::put_next_id(core.next_id()));
        core.storage.catalog.change(changes, |_| {})?;
        self.record_change(core);
        self.change_state(|state| {
            let new = indexes.iter().cloned();
            state.indexes.extend(new.map(|index| IndexState {
                index,
                sections: Arc::default(),
                tombstone_ranges: Arc::default(),
            }));
        });
        Ok(indexes)
    }

    /// Runs the build of registered indexes to its end.
    fn build(
        &self,
        core: &Core,
        indexes: &[Arc<Index>],
        control: &BuildControl<'_>,
    ) -> Result<(), Error> {
        if indexes.is_empty() {
            return Ok(());
        }
        let started = std::time::Instant::now();
        scan::scan(self, core, indexes, control)?;
        let sum = |of: fn(&Index) -> u64| indexes.iter().map(|index| of(index)).sum();
        (control.on_phase)(&BuildPhase::Scanned {
            documents: indexes
                .iter()
                .map(|it| it.progress().documents.load(Ordering::Relaxed))
                .max()
                // There is at least one index.
                .unwrap_or(0),
            keys: sum(|index| index.progress().keys.load(Ordering::Relaxed)),
            seconds: started.elapsed().as_secs_f64(),
        });
        // The scan of a small collection may be too short for its own check.
        control.interrupt.check()?;
        for index in indexes {
            index.progress().checking.store(true, Ordering::Relaxed);
        }
        self.check_and_finish(core, indexes, control)?;
        let seconds = started.elapsed().as_secs_f64();
        (control.on_phase)(&BuildPhase::Ready { seconds });
        Ok(())
    }

    /// Checks unique indexes, and marks all as ready. If a fold removes commits that the last check
    /// needs, it starts again; the last attempt excludes folds.
    fn check_and_finish(
        &self,
        core: &Core,
        indexes: &[Arc<Index>],
        control: &BuildControl<'_>,
    ) -> Result<(), Error> {
        let checking = std::time::Instant::now();
        let mut folding = None;
        for tries in 1.. {
            if tries > CHECKS_BESIDE_FOLDS {
                folding.get_or_insert_with(|| core.folding.lock());
            }
            let checked = unique::check_before(self, indexes, control)?;
            if tries == 1 {
                (control.on_phase)(&BuildPhase::Checked {
                    seconds: checking.elapsed().as_secs_f64(),
                });
            }
            // Open transactions add entries to the indexes, but do not check them for uniqueness.
            let _ddl_guard = self.exclude(&wait_interrupt(core, control))?;
            if self.finish(core, indexes, checked)? {
                break;
            }
        }
        drop(folding);
        Ok(())
    }

    /// Marks the indexes as ready, in the catalog and for readers. Returns `false` if not all could
    /// be checked.
    fn finish(
        &self,
        core: &Core,
        indexes: &[Arc<Index>],
        checked: Position,
    ) -> Result<bool, Error> {
        let _changing = core.catalog_change.lock();
        let _schema = self.schema.write();
        if !unique::check_after(self, indexes, checked)? {
            return Ok(false);
        }
        if indexes.iter().any(|index| index.is_dropped()) {
            return Err(Error::interrupted(
                "the index was dropped while it was built",
            ));
        }
        let mut changes = Vec::new();
        for index in indexes {
            let build = rows::build_keys(index.map, &core.storage.catalog).into_iter();
            changes.extend(build.map(RowChange::delete));
            let row = rows::IndexRow {
                ready: true,
                ..index.row()
            };
            changes.extend(row.put(self.id, index.map));
        }
        let definitions = indexes.iter().map(|index| &*index.definition);
        let shown: Vec<_> = definitions.filter(|one| !one.is_search()).collect();
        if !shown.is_empty() {
            let event = DdlEvent::indexes(DdlKind::CreateIndexes, &self.row(), shown.into_iter());
            changes.push(event.put());
        }
        core.storage.catalog.change(changes, |_| {})?;
        // Older transactions do not see the indexes, and must know that the collection has changed.
        let written = core.storage.log.written();
        self.record_change_at(written);
        indexes.iter().for_each(|index| index.set_ready(written));
        Ok(true)
    }

    /// Drops an index by name. If it is being built, the build stops.
    pub fn drop_index(&self, name: &str) -> Result<(), Error> {
        let core = self.core()?;
        let found = self
            .all_indexes()
            .into_iter()
            .find(|index| index.definition.name == name);
        let Some(index) = found.filter(|index| !index.is_dropped()) else {
            return Err(Error::IndexNotFound(name.to_owned()));
        };
        if index.definition.is_of_ids() {
            return Err(Error::IndexConflict {
                code: 72,
                message: "cannot drop _id index".to_owned(),
            });
        }
        if index.is_ready() {
            let _ddl_guard = self.exclude(&|| core.check_progress())?;
            self.remove(&core, &index)
        } else {
            // The build sees this and removes the index.
            index.set_dropped();
            Ok(())
        }
    }

    /// Drops search indexes that an update has replaced: those with a newer ready definition of the
    /// same name. A crash may have prevented the update from dropping them.
    pub fn drop_replaced_search_indexes(&self) -> Result<(), Error> {
        let all = self.search_indexes();
        let mut replaced = all.iter().filter(|index| is_replaced(index, &all));
        replaced.try_for_each(|index| match self.drop_index(&index.definition.name) {
            Err(Error::IndexNotFound(_)) => Ok(()),
            dropped => dropped,
        })
    }

    /// Returns the newest definition of each search index that analyzers of another version made:
    /// see [`SearchDefinition::is_outdated`].
    pub fn outdated_search_indexes(&self) -> Vec<Arc<SearchDefinition>> {
        let mut newest: BTreeMap<String, Arc<SearchDefinition>> = BTreeMap::new();
        let indexes = self.search_indexes().into_iter();
        let present = indexes.filter(|index| !index.is_dropped());
        for search in present.filter_map(|index| index.definition.search.clone()) {
            let known = newest.get(&search.name);
            if known.is_none_or(|known| known.version < search.version) {
                newest.insert(search.name.clone(), search);
            }
        }
        newest.retain(|_, search| search.is_outdated());
        newest.into_values().collect()
    }

    /// Removes indexes whose build failed. Those that cannot be removed now are removed later.
    fn abandon(&self, core: &Core, indexes: &[Arc<Index>]) {
        for index in indexes {
            index.set_dropped();
            if let Err(error) = self.remove(core, index) {
                (core.options.on_problem)("a failed index build could not be removed", &error);
            }
        }
    }

    /// Removes abandoned indexes that could not be removed before.
    pub(crate) fn remove_abandoned(&self) -> Result<(), Error> {
        let core = self.core()?;
        let indexes = self.all_indexes().into_iter();
        let mut abandoned = indexes.filter(|index| index.is_dropped());
        abandoned.try_for_each(|index| self.remove(&core, &index))
    }

    fn remove(&self, core: &Core, index: &Index) -> Result<(), Error> {
        let _changing = core.catalog_change.lock();
        let _schema = self.schema.write();
        let state = self.state();
        let found = state.indexes.iter().find(|it| it.index.map == index.map);
        // Dropping the collection has released its indexes.
        let Some(found) = found.filter(|_| !state.dropped) else {
            return Ok(());
        };
        let mut changes = delete_rows(core, self, index);
        changes.extend(
            found
                .sections
                .descriptors()
                .map(|it| rows::delete_section(index.map, it)),
        );
        if index.is_ready() && !index.definition.is_search() {
            let definition = std::iter::once(&*index.definition);
            changes.push(DdlEvent::indexes(DdlKind::DropIndexes, &self.row(), definition).put());
        }
        core.storage.catalog.change(changes, |_| {})?;
        self.record_change(core);
        index.set_dropped();
        self.change_state(|state| state.indexes.retain(|it| it.index.map != index.map));
        let past = found.sections.past_descriptors();
        let mut all = found.sections.descriptors().chain(past);
        all.try_for_each(|descriptor| core.close_section(descriptor))
    }
}

/// Returns `true` if a search index has a ready successor.
fn is_replaced(index: &Index, all: &[Arc<Index>]) -> bool {
    let Some(search) = &index.definition.search else {
        return false;
    };
    let mut successors = all.iter().filter(|other| other.is_ready());
    successors.any(|other| {
        let other = other.definition.search.as_ref();
        other.is_some_and(|other| other.name == search.name && other.version > search.version)
    })
}

/// Returns the changes that delete an index's rows, without those of its sections.
pub(crate) fn delete_rows(core: &Core, collection: &Collection, index: &Index) -> Vec<RowChange> {
    let mut changes = index.row().delete(collection.id, index.map);
    let build = rows::build_keys(index.map, &core.storage.catalog).into_iter();
    changes.extend(build.map(RowChange::delete));
    changes
}

/// A collection's indexes with unfinished builds or updates.
#[derive(Clone, Debug)]
pub(crate) struct UnfinishedBuilds {
    collection: Arc<Collection>,
    indexes: Vec<Arc<Index>>,
    /// `true` if an update has replaced a search index that still exists.
    has_replaced: bool,
}

pub(crate) fn unfinished_builds(collections: &Collections) -> Vec<UnfinishedBuilds> {
    let of = |collection: Arc<Collection>| {
        let all = collection.all_indexes();
        let indexes = all.iter().filter(|index| !index.is_ready()).cloned();
        UnfinishedBuilds {
            indexes: indexes.collect(),
            has_replaced: all.iter().any(|index| is_replaced(index, &all)),
            collection,
        }
    };
    collections
        .all()
        .into_iter()
        .map(of)
        .filter(|it| it.has_replaced || !it.indexes.is_empty())
        .collect()
}

/// Returns the interrupt of a build that waits for the transactions of its collection.
fn wait_interrupt(core: &Core, control: &BuildControl<'_>) -> impl Fn() -> Result<(), Interrupted> {
    || {
        core.check_progress()?;
        control.interrupt.check()
    }
}

/// Resumes a build that a crash interrupted.
pub(crate) fn resume(core: &Arc<Core>, build: &UnfinishedBuilds) {
    let interrupt = || {
        if core.is_closing() {
            return Err(Interrupted::new("the database is being closed"));
        }
        Ok(())
    };
    let control = BuildControl {
        interrupt: &interrupt,
        on_phase: &|_| {},
    };
    let collection = &build.collection;
    let built = collection
        .build_catching_panics(core, &build.indexes, &control)
        .and_then(|()| collection.drop_replaced_search_indexes());
    let Err(error) = built else {
        return;
    };
    if core.is_closing() {
        return;
    }
    (core.options.on_problem)("a resumed index build failed", &error);
    let unready = build.indexes.iter().filter(|index| !index.is_ready());
    let unready: Vec<Arc<Index>> = unready.cloned().collect();
    collection.abandon(core, &unready);
}
