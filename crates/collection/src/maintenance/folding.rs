//! Folds: the tails become sections, and the log before them can be truncated.
//!
//! The steps of a fold:
//!
//! 1. Freeze the tails.
//! 2. Write a section for each map with entries, into two run files: one for sections that last,
//!    one for those that will be merged soon. A third file takes past versions, which only older
//!    snapshots can see.
//! 3. Sync the files.
//! 4. Change the catalog once: the new sections, and how far each collection is folded.
//! 5. Publish the sections to readers.
//! 6. Truncate the log.
//!
//! A crash before step 4 leaves runs that the catalog does not contain; the next start removes
//! them. It always removes the third file, as no snapshot survives a restart.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use windrow_fold::cursor::MergeCursor;
use windrow_fold::merge::{self, OlderData, Retention, WrittenSections};
use windrow_fold::parallel::map_items;
use windrow_fold::{EntryKeyBuf, RunSink, Section, SectionDescriptor, SectionOptions};
use windrow_invariant::Bug;
use windrow_storage::{Compression, Position, RowChange};

use crate::catalog::rows;
use crate::collection::Collection;
use crate::collections::Collections;
use crate::core::Core;
use crate::error::Error;
use crate::ids::MapId;
use crate::index::Index;
use crate::retries;
use crate::state::FrozenGeneration;

/// A map to fold.
struct Task {
    collection: Arc<Collection>,
    frozen: FrozenGeneration,
    /// `None` for the map by record id.
    index: Option<Arc<Index>>,
}

/// A thread that writes fewer entries of a map takes less time than it saves.
const ENTRIES_PER_THREAD: usize = 1 << 16;

/// The sections that a task wrote.
struct TaskSections {
    task: usize,
    map: MapId,
    sections: Vec<SectionDescriptor>,
    past: Vec<SectionDescriptor>,
}

/// The run files of a fold. Sections of indexes are soon merged, and their run is deleted then.
/// Documents mostly stay where they are written first. Past versions are deleted when no snapshot
/// reads them; `None` if none does now.
struct FoldRuns {
    long_lived: RunSink,
    short_lived: RunSink,
    past: Option<RunSink>,
}

impl FoldRuns {
    /// Makes all files durable, or removes them all.
    fn finish(self, core: &Core) -> Result<(), Error> {
        let mut finished = Vec::new();
        for sink in [self.long_lived, self.short_lived]
            .into_iter()
            .chain(self.past)
        {
            let run = (!sink.is_empty()).then_some(sink.run());
            if let Err(error) = finish(sink) {
                let mut finished = finished.into_iter();
                finished.try_for_each(|run| core.storage.runs.remove(run))?;
                return Err(error);
            }
            finished.extend(run);
        }
        Ok(())
    }

    fn long_lived_sinks(&self) -> merge::SectionSinks<'_> {
        self.with_past(&self.long_lived)
    }

    fn short_lived_sinks(&self) -> merge::SectionSinks<'_> {
        self.with_past(&self.short_lived)
    }

    fn with_past<'s>(&'s self, present: &'s RunSink) -> merge::SectionSinks<'s> {
        merge::SectionSinks {
            present,
            past: self.past.as_ref(),
        }
    }
}

fn finish(sink: RunSink) -> Result<(), Error> {
    if sink.is_empty() {
        return Ok(());
    }
    Ok(sink.finish()?)
}

/// Folds everything written before the call. Returns the number of sections.
pub(crate) fn fold(collections: &Collections) -> Result<usize, Error> {
    let core = &*collections.core;
    let _folding = core.folding.lock();
    let _busy = core.counters.fold_time.begin();
    let position = core.storage.log.written();
    let tasks = freeze(collections);
    let newest = tasks.iter().map(|task| task.frozen.folded.position).max();
    let Some(newest) = newest else {
        return Ok(0);
    };
    let sinks = FoldRuns {
        long_lived: core.sink()?,
        short_lived: core.sink()?,
        past: core.past_sink(newest)?,
    };
    let written = write_all(core, &tasks, &sinks)?;
    let results = write_retries(core, &sinks.short_lived, position)?;
    sinks.finish(core)?;
    add_recent_keys(core, &tasks);
    let folded = written.iter().map(|it| it.sections.len()).sum();
    let position = position.min(folded_before(collections));
    adopt(core, &tasks, written, &results, position)?;
    if let Some(results) = results {
        core.retries.set_saved(results.version, results.section);
    }
    core.counters.folds.fetch_add(1, Ordering::Relaxed);
    core.record_stored(collections.bytes_raw());
    core.storage.drop_log_before(position.next())?;
    Ok(folded)
}

/// If everything is folded, records that in the catalog, so the next start skips the log. Called
/// after the background threads have ended.
pub(crate) fn record_all_folded(collections: &Collections) -> Result<(), Error> {
    let core = &*collections.core;
    let _folding = core.folding.lock();
    let Some(position) = folded_position(collections) else {
        return Ok(());
    };
    let _changing = core.catalog_change.lock();
    core.storage
        .shorten_start(rows::put_fold_position(position))?;
    Ok(())
}

/// Folds. If there is nothing to fold and the log in the object store is long, records in the
/// catalog that everything is folded, so that the log can be shortened. Returns the number of
/// sections.
pub(crate) fn fold_or_record(collections: &Collections) -> Result<usize, Error> {
    let sections = fold(collections)?;
    if sections == 0 && collections.core.storage.is_shared_log_long() {
        record_position(collections)?;
    }
    Ok(sections)
}

/// If everything is folded, records that, and drops the log before.
fn record_position(collections: &Collections) -> Result<(), Error> {
    let core = &*collections.core;
    let _folding = core.folding.lock();
    let Some(position) = folded_position(collections) else {
        return Ok(());
    };
    {
        let _changing = core.catalog_change.lock();
        let change = rows::put_fold_position(position);
        core.storage.catalog.change(vec![change], |_| {})?;
    }
    Ok(core.storage.drop_log_before(position.next())?)
}

/// Returns the newest position, if everything up to it is folded.
fn folded_position(collections: &Collections) -> Option<Position> {
    let core = &*collections.core;
    let position = core.storage.log.written();
    let has_frozen = |it: &Arc<Collection>| it.state().frozen.is_some();
    let is_folded = folded_before(collections) >= position
        && !collections.all().iter().any(has_frozen)
        && core.retries.is_saved(core.retries.version());
    (is_folded && core.storage.log.takes_writes()).then_some(position)
}

/// The section with the recorded statement results. The log before can be truncated then.
struct ResultsSection {
    /// The version of the results that it contains.
    version: u64,
    /// `None` if no results are recorded.
    section: Option<SectionDescriptor>,
}

/// Writes the recorded statement results, as of this position or later. Returns `None` if the
/// existing section is current.
fn write_retries(
    core: &Core,
    sink: &RunSink,
    position: Position,
) -> Result<Option<ResultsSection>, Error> {
    core.retries.forget_old(core.now_millis());
    let version = core.retries.version();
    if core.retries.is_saved(version) {
        return Ok(None);
    }
    let section = retries::write(&core.retries, sink, position)?;
    Ok(Some(ResultsSection { version, section }))
}

/// Returns the position before which no active generation has commits. After a failed fold, a
/// frozen generation is older than writes before this fold.
fn folded_before(collections: &Collections) -> Position {
    let oldest = collections
        .all()
        .iter()
        .filter_map(|it| it.state().active.oldest())
        .min();
    // Without commits, everything is folded.
    oldest.map_or(Position::MAX, Position::previous)
}

fn freeze(collections: &Collections) -> Vec<Task> {
    let mut tasks = Vec::new();
    for collection in collections.all() {
        let Some(frozen) = collection.freeze() else {
            continue;
        };
        let maps = std::iter::once(None).chain(collection.all_indexes().into_iter().map(Some));
        tasks.extend(maps.map(|index| Task {
            collection: collection.clone(),
            frozen: frozen.clone(),
            index,
        }));
    }
    tasks
}

/// Runs the tasks on all threads.
fn write_all(core: &Core, tasks: &[Task], sinks: &FoldRuns) -> Result<Vec<TaskSections>, Error> {
    let tasks: Vec<_> = tasks.iter().enumerate().collect();
    let outcomes = map_items(&tasks, core.options.threads, |(number, task)| {
        write(core, task, sinks).map(|sections| task_sections(*number, task, sections))
    });
    if outcomes.len() != tasks.len() {
        let what = format!("{} of {} maps were folded", outcomes.len(), tasks.len());
        return Err(Bug::new(what).into());
    }
    outcomes.into_iter().collect()
}

fn task_sections(number: usize, task: &Task, sections: Vec<WrittenSections>) -> TaskSections {
    let past = sections.iter().filter_map(|it| it.past.clone()).collect();
    TaskSections {
        task: number,
        map: task.map(),
        sections: sections.into_iter().filter_map(|it| it.present).collect(),
        past,
    }
}

impl Task {
    /// Returns `true` if the catalog no longer contains the collection or the index. An abandoned
    /// index counts as long as the catalog contains it, because a restart may resume its build.
    fn is_removed(&self) -> bool {
        let state = self.collection.state();
        let map = self.index.as_ref().map(|index| index.map);
        let has = |map| state.indexes.iter().any(|it| it.index.map == map);
        state.dropped || map.is_some_and(|map| !has(map))
    }

    fn map(&self) -> MapId {
        self.index
            .as_ref()
            .map_or(self.collection.records_map, |index| index.map)
    }

    /// Returns `true` if new entries mostly sort after all others, as record ids do.
    fn mostly_appends(&self) -> bool {
        let index = self.index.as_ref();
        index.is_none_or(|index| index.definition.clustered)
    }

    /// Returns the key after all entries in sections of the map, or `None` if the last key is
    /// unknown.
    fn end(&self) -> Option<EntryKeyBuf> {
        let state = self.collection.state();
        let sections = state.sections(self.map(), self.collection.records_map)?;
        let mut end = EntryKeyBuf::default();
        for descriptor in sections.descriptors() {
            let last = descriptor.last_entry_key()?;
            let behind = EntryKeyBuf {
                key: last.key.to_vec(),
                id: last.id.next(),
            };
            if end.as_key() < behind.as_key() {
                end = behind;
            }
        }
        Some(end)
    }
}

fn write(core: &Core, task: &Task, sinks: &FoldRuns) -> Result<Vec<WrittenSections>, Error> {
    let (generation, position) = (&task.frozen.generation, task.frozen.folded.position);
    let parts = match &task.index {
        None => generation.records(position),
        Some(index) => generation.create_entries(index, position),
    };
    let keep = Retention {
        snapshots: core.snapshot_positions(),
        older: OlderData::Present,
    };
    let options = task
        .collection
        .section_options(core, task.index.as_deref(), position);
    // Sections of an index are soon merged. Compressing them would cost more time than it saves,
    // and delay the merge. The same holds for a clustered collection's documents that sort between
    // others.
    let short_lived = SectionOptions {
        compression: Compression::None,
        ..options
    };
    let buffers: Vec<_> = parts.iter().map(|part| part.sorted().clone()).collect();
    let end = if task.mostly_appends() {
        task.end()
    } else {
        None
    };
    let Some(end) = end else {
        let entries: usize = buffers.iter().map(|buffer| buffer.len()).sum();
        let threads = core.options.threads.min(1 + entries / ENTRIES_PER_THREAD);
        let sinks = sinks.short_lived_sinks();
        let sections = merge::write_buffers(&buffers, &keep, sinks, short_lived, threads)?;
        return Ok(vec![sections]);
    };
    let mut merge = MergeCursor::from_buffers(buffers)?;
    // Changes of older documents go into their own section, so new documents, which sort after all
    // others, are never merged.
    let until = Some(end.as_key());
    let changes = match &task.index {
        None => merge::write_sections(&mut merge, until, &keep, sinks.long_lived_sinks(), options)?,
        Some(_) => merge::write_sections(
            &mut merge,
            until,
            &keep,
            sinks.short_lived_sinks(),
            short_lived,
        )?,
    };
    let new = merge::write_sections(&mut merge, None, &keep, sinks.long_lived_sinks(), options)?;
    Ok(vec![changes, new])
}

/// Publishes the written sections: in the catalog, then to readers.
fn adopt(
    core: &Core,
    tasks: &[Task],
    written: Vec<TaskSections>,
    results: &Option<ResultsSection>,
    position: Position,
) -> Result<(), Error> {
    let _changing = core.catalog_change.lock();
    let mut changes = vec![
        rows::put_fold_position(position),
        rows::put_next_id(core.next_id()),
    ];
    let AddedSections {
        mut descriptors,
        placements,
        unused,
    } = place(tasks, written, &mut changes)?;
    for task in tasks.iter().filter(|task| !task.collection.state().dropped) {
        if task.index.is_none() {
            changes.push(task.frozen.folded.put(task.collection.id));
        }
    }
    let mut old = None;
    if let Some(results) = results {
        old = core.retries.section();
        changes.extend(old.iter().map(|it| rows::delete_section(retries::MAP, it)));
        if let Some(section) = &results.section {
            changes.push(rows::put_section(retries::MAP, section));
            // At the end, behind the sections that have a placement.
            descriptors.push(section.clone());
        }
    }
    let expected = descriptors.len();
    let sections = core.adopt(changes, descriptors, unused)?;
    let opened = sections.len();
    if opened != expected {
        // The tails stay, so readers still see what the missing sections contain.
        return Err(Bug::new(format!("a fold opened {opened} of {expected} sections")).into());
    }
    publish(tasks, &placements, &sections)?;
    old.iter().try_for_each(|it| core.close_section(it))
}

/// The sections that a fold adds to the catalog.
#[derive(Default)]
struct AddedSections {
    descriptors: Vec<SectionDescriptor>,
    /// One for each descriptor.
    placements: Vec<SectionPlacement>,
    /// Sections of collections and indexes that were dropped in the meantime.
    unused: Vec<SectionDescriptor>,
}

/// Assigns the written sections to their maps, and adds their rows to `changes`.
fn place(
    tasks: &[Task],
    written: Vec<TaskSections>,
    changes: &mut Vec<RowChange>,
) -> Result<AddedSections, Bug> {
    let mut added = AddedSections::default();
    for written in written {
        let (number, map) = (written.task, written.map);
        // Leaving the section out would lose it when the log is truncated.
        let task = tasks.get(number).ok_or_else(|| {
            let tasks = tasks.len();
            Bug::new(format!(
                "a fold wrote map {map} for task {number} of {tasks}"
            ))
        })?;
        if task.is_removed() {
            let sections = written.sections.into_iter().chain(written.past);
            added.unused.extend(sections);
            continue;
        }
        let rows = written.sections.iter();
        changes.extend(rows.map(|section| rows::put_section(map, section)));
        for (sections, is_past) in [(written.sections, false), (written.past, true)] {
            let placements = sections.iter().map(|_| SectionPlacement {
                task: number,
                map,
                is_past,
            });
            added.placements.extend(placements);
            added.descriptors.extend(sections);
        }
    }
    Ok(added)
}

/// Adds the keys of the new sections to the filters of recent keys, before the sections are
/// published.
fn add_recent_keys(core: &Core, tasks: &[Task]) {
    for task in tasks {
        if let Some(index) = &task.index {
            let folded_keys = task.frozen.generation.folded_keys(index);
            index
                .recent_key_filter()
                .fold(folded_keys, &core.recent_key_filter);
        }
    }
}

/// The map and the part of a new section.
struct SectionPlacement {
    task: usize,
    map: MapId,
    is_past: bool,
}

/// Replaces the frozen tails by the new sections for readers. If the map of a section does not
/// exist, its collection keeps the tails.
fn publish(
    tasks: &[Task],
    placements: &[SectionPlacement],
    opened: &[Arc<Section>],
) -> Result<(), Error> {
    for task in tasks.iter().filter(|task| task.index.is_none()) {
        let collection = &task.collection;
        let is_own = |placement: &SectionPlacement| {
            let task = tasks.get(placement.task);
            task.is_some_and(|other| Arc::ptr_eq(&other.collection, collection))
        };
        collection.try_change_state(|state| {
            let opened = placements.iter().zip(opened);
            for (placement, section) in opened.filter(|(placement, _)| is_own(placement)) {
                let sections = state.sections_of(placement.map, collection.records_map)?;
                let (present, past) = if placement.is_past {
                    (None, Some(section.clone()))
                } else {
                    (Some(section.clone()), None)
                };
                *sections = Arc::new(sections.with_added(present, past));
            }
            // Snapshots from before the drop still read it.
            if !state.dropped {
                state.frozen = None;
            }
            Ok::<(), Bug>(())
        })?;
        task.frozen.generation.retire();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{Background, EngineOptions};
    use crate::{Engine, InsertOrder, Namespace, Work};
    use bytes::Bytes;
    use windrow_document::doc;
    use windrow_invariant::tolerate_bugs;
    use windrow_storage::MemoryDisk;

    /// A section without its map used to be left out while its tail was dropped, so its documents
    /// were missing until the next start.
    #[test]
    fn an_unpublished_section_keeps_the_tail() {
        let options = EngineOptions {
            background: Background::Caller,
            ..EngineOptions::with_memory(64 << 20)
        };
        let engine = Engine::open(Arc::new(MemoryDisk::new()), options).unwrap();
        let name = Namespace::parse("d.c").unwrap();
        let collection = engine.create(&name, doc! {}.as_document()).unwrap();
        let insert = |id: i32| {
            let document = Bytes::from(doc! { "_id": id }.into_bytes());
            let inserted = collection.insert(document, InsertOrder::Ordered).unwrap();
            assert_eq!(inserted.count, 1);
        };
        insert(1);
        engine.work(Work::Fold).unwrap();
        insert(2);
        let tasks = freeze(&engine.collections);
        let section = collection
            .state()
            .records
            .present()
            .first()
            .cloned()
            .unwrap();
        let placements = [SectionPlacement {
            task: 0,
            map: MapId(u64::MAX),
            is_past: false,
        }];
        let published = tolerate_bugs(|| publish(&tasks, &placements, &[section]));
        assert!(matches!(published, Err(Error::Bug(_))), "{published:?}");
        assert!(collection.state().frozen.is_some());
        let count = || {
            let mut records = collection
                .reader()
                .unwrap()
                .records(windrow_fold::Direction::Forward);
            let mut count = 0;
            while records.next().unwrap() {
                count += 1;
            }
            count
        };
        assert_eq!(count(), 2);
        engine.work(Work::Fold).unwrap();
        assert!(collection.state().frozen.is_none());
        assert_eq!(count(), 2);
    }

    /// A section of no task used to be left out, and the log before it was truncated.
    #[test]
    fn a_section_of_no_task_is_a_bug() {
        let options = EngineOptions {
            background: Background::Caller,
            ..EngineOptions::with_memory(64 << 20)
        };
        let engine = Engine::open(Arc::new(MemoryDisk::new()), options).unwrap();
        let core = &*engine.collections.core;
        let written = TaskSections {
            task: 0,
            map: MapId(7),
            sections: Vec::new(),
            past: Vec::new(),
        };
        let adopt = || adopt(core, &[], vec![written], &None, Position(0));
        let adopted = tolerate_bugs(adopt);
        assert!(matches!(adopted, Err(Error::Bug(_))), "{adopted:?}");
    }
}
