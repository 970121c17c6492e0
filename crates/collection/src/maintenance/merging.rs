//! Merges: fewer sections, so readers search few of them, and deleted entries release their space.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use windrow_fold::cursor::MergeCursor;
use windrow_fold::merge::{self, MergeInput, OlderData, Retention, SectionSinks};
use windrow_fold::sections::{RankedSection, Sections};
use windrow_fold::{RunSink, Section, SectionDescriptor, SectionOptions};
use windrow_interrupt::Interrupt;
use windrow_invariant::Bug;
use windrow_storage::Position;

use crate::catalog::rows;
use crate::collection::Collection;
use crate::collections::Collections;
use crate::core::{CHAINS_MANY, Core};
use crate::error::Error;
use crate::ids::MapId;
use crate::index::Index;
use crate::panic_boundary::panicked;

/// Which maps to merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MergeEffort {
    /// Maps with many sections of similar size, which slow down readers.
    Readers,
    /// Also maps with many deleted or replaced entries whose space can be released completely,
    /// because no snapshot reads them. And indexes that can be packed more densely.
    Space,
    /// Also maps of which only some space can be released. For requests of clients.
    AllSpace,
}

/// A map is merged for its space if this fraction of its entries is obsolete.
const WASTE_MIN: f64 = 0.2;

/// Merges each map that needs it once, on all threads. Returns `true` if there was one. Before
/// that, removes obsolete versions, and abandoned indexes that could not be removed before. An
/// error in one map does not stop the others.
pub(crate) fn merge_all(
    collections: &Collections,
    effort: MergeEffort,
    interrupt: &(dyn Interrupt + Sync),
) -> Result<bool, Error> {
    let core = &collections.core;
    let _merging = core.merging.lock();
    let _busy = core.counters.merge_time.begin();
    collections.collect_obsolete_versions();
    let mut maps = Vec::new();
    for collection in collections.all() {
        if let Err(error) = collection.remove_abandoned() {
            (core.options.on_problem)("an abandoned index could not be removed", &error);
        }
        maps.push((collection.clone(), None));
        maps.extend(
            collection
                .all_indexes()
                .into_iter()
                .map(|it| (collection.clone(), Some(it))),
        );
    }
    let next = AtomicUsize::new(0);
    let merged = AtomicBool::new(false);
    let work = || -> Result<(), Error> {
        let mut first_error = Ok(());
        while let Some((collection, index)) = maps.get(next.fetch_add(1, Ordering::Relaxed)) {
            match merge_map(core, collection, index.as_deref(), effort, interrupt) {
                Ok(true) => merged.store(true, Ordering::Relaxed),
                Ok(false) => {}
                Err(error) => first_error = first_error.and(Err(error)),
            }
        }
        first_error
    };
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..core.options.threads)
            .map(|_| scope.spawn(work))
            .collect();
        let own = work();
        others
            .into_iter()
            .map(|other| other.join().unwrap_or_else(|_| Err(panicked("a merge"))))
            .fold(own, Result::and)
    })?;
    Ok(merged.into_inner())
}

/// Slows merges in favour of writers and folds. While there are writes, a merge pauses after each
/// period of work; the fewer section chains, the longer the pause. So merges work evenly, and not
/// in bursts.
struct MergePacer {
    core: Arc<Core>,
    collection: Arc<Collection>,
    since: Mutex<WorkPeriod>,
}

/// When the merge began its current period of work, and the log position then.
struct WorkPeriod {
    begin: Instant,
    written: Position,
}

/// The approximate length of a period of work.
const WORK_TIME: Duration = Duration::from_millis(3);
/// For each of this many chains below [`CHAINS_MANY`], a pause is one period of work longer.
const CHAINS_PER_PERIOD: u32 = 4;
/// The maximal length of a pause, in periods of work.
const PAUSE_PERIODS_MAX: u32 = 3;

impl MergePacer {
    fn new(core: Arc<Core>, collection: Arc<Collection>) -> MergePacer {
        let since = WorkPeriod {
            begin: Instant::now(),
            written: core.storage.log.written(),
        };
        MergePacer {
            core,
            collection,
            since: Mutex::new(since),
        }
    }

    /// Pauses at the end of a period of work.
    fn pause(&self) {
        let mut since = self.since.lock();
        let worked = since.begin.elapsed();
        if worked < WORK_TIME {
            return;
        }
        let written = self.core.storage.log.written();
        if written > since.written && !self.core.is_closing() {
            let chains = self.collection.chains_max() as u32;
            let periods = CHAINS_MANY
                .saturating_sub(chains)
                .div_ceil(CHAINS_PER_PERIOD);
            std::thread::sleep(worked.min(2 * WORK_TIME) * periods.min(PAUSE_PERIODS_MAX));
        }
        *since = WorkPeriod {
            begin: Instant::now(),
            written,
        };
    }
}

/// Merges sections of one map if it has enough. Returns `true` if it did.
fn merge_map(
    core: &Arc<Core>,
    collection: &Arc<Collection>,
    index: Option<&Index>,
    effort: MergeEffort,
    interrupt: &(dyn Interrupt + Sync),
) -> Result<bool, Error> {
    let map = index.map_or(collection.records_map, |index| index.map);
    // A build writes sections of the same age side by side; they are merged only after the build.
    // Checked before the state is read, so the state of a finished build is complete.
    let building = index.is_some_and(|index| !index.is_ready());
    // A missing index was dropped after the maps were listed.
    let Some(sections) = sections_of_map(collection, map) else {
        return Ok(false);
    };
    let all = 0..sections.present().len();
    let frees = || frees_space(collection, index, &sections, effort).then(|| all.clone());
    let sizes = core.options.merge_sizes;
    let range = sizes.pick_sections(sections.present()).or_else(frees);
    let is_last = effort != MergeEffort::Readers && range.as_ref() == Some(&all);
    let chosen = range.and_then(|range| MergeInput::present(&sections, range));
    let chosen = chosen.or_else(|| sizes.pick_past(&sections));
    let Some(chosen) = chosen.filter(|_| !building) else {
        return Ok(false);
    };
    let mut options = collection.section_options(core, index, chosen.position);
    if is_last && is_packable(index) {
        pack(&mut options, index);
    }
    let Some(new) = write(core, collection, index, &chosen, options, interrupt)? else {
        return Ok(false);
    };
    replace(core, collection, map, &chosen.sections, new)?;
    // Searching a single section is as fast as a filter in memory.
    if let Some(index) = index.filter(|_| is_last) {
        index.recent_key_filter().forget();
    }
    core.counters.merges.fetch_add(1, Ordering::Relaxed);
    Ok(true)
}

/// Returns the sections of a map. `None` if the map or its collection was dropped. Does not retain
/// the state, whose tails would take memory until the end of the merge.
fn sections_of_map(collection: &Collection, map: MapId) -> Option<Arc<Sections>> {
    let state = collection.state();
    if state.dropped {
        return None;
    }
    state.sections(map, collection.records_map).cloned()
}

/// Sections that replace others.
#[derive(Default)]
pub(crate) struct NewSections {
    pub present: Vec<SectionDescriptor>,
    pub past: Vec<SectionDescriptor>,
}

/// Merges the chosen sections. Returns `None` if it stopped early, because the result is useless or
/// because others wait for it.
fn write(
    core: &Arc<Core>,
    collection: &Arc<Collection>,
    index: Option<&Index>,
    chosen: &MergeInput,
    options: SectionOptions,
    interrupt: &(dyn Interrupt + Sync),
) -> Result<Option<NewSections>, Error> {
    let snapshots = core.snapshot_positions();
    let is_read_before = snapshots.first() < Some(&chosen.position);
    let older = match chosen.older {
        // No snapshot reads there.
        OlderData::PastOnly if !is_read_before => OlderData::None,
        older => older,
    };
    let keep = Retention { snapshots, older };
    let has_past = || chosen.sections.iter().any(|it| it.is_past);
    // Shared by both outputs, because the pause of one is no work of the other.
    let pacer = Arc::new(MergePacer::new(core.clone(), collection.clone()));
    let sink = || {
        let pacer = pacer.clone();
        core.sink_pausing(move || pacer.pause())
    };
    let present = sink()?;
    let past = (is_read_before || has_past()).then(sink).transpose()?;
    let mut entries = MergeCursor::from_sections(&chosen.sections)?;
    let is_dropped = || index.is_some_and(Index::is_dropped) || collection.is_dropped();
    let is_useless = || core.is_closing() || core.is_waiting_for_merging() || is_dropped();
    let should_continue = || !is_useless() && interrupt.check().is_ok();
    let sinks = SectionSinks {
        present: &present,
        past: past.as_ref(),
    };
    let sections =
        merge::write_sections_while(&mut entries, None, &keep, sinks, options, &should_continue)?;
    let Some(sections) = sections else {
        interrupt.check()?;
        return Ok(None);
    };
    let new = NewSections {
        present: sections.present.into_iter().collect(),
        past: sections.past.into_iter().collect(),
    };
    finish(core, present, past, &new)?;
    Ok(Some(new))
}

/// Makes the non-empty runs durable, or removes them all.
fn finish(
    core: &Core,
    present: RunSink,
    past: Option<RunSink>,
    new: &NewSections,
) -> Result<(), Error> {
    if !new.present.is_empty() {
        present.finish()?;
    }
    let past = past.filter(|_| !new.past.is_empty());
    let finished = past.map_or(Ok(()), RunSink::finish);
    if finished.is_err() {
        core.discard(&new.present)?;
    }
    Ok(finished?)
}

/// Returns `true` if merging all sections releases enough space.
fn frees_space(
    collection: &Collection,
    index: Option<&Index>,
    sections: &Sections,
    effort: MergeEffort,
) -> bool {
    let can_free = match effort {
        MergeEffort::Readers => return false,
        MergeEffort::Space => has_all_deletions(collection),
        // A map with one section is merged as far as its deletions are known.
        MergeEffort::AllSpace => sections.present().len() > 1 || has_all_deletions(collection),
    };
    (can_free && has_much_garbage(collection, index, sections))
        || is_mostly_unpacked(index, sections)
}

/// Returns `true` if the sections know all deletions. Then merging all of them removes all obsolete
/// entries, except past versions that a snapshot reads.
fn has_all_deletions(collection: &Collection) -> bool {
    collection.tail_bytes() == 0
}

/// Returns `true` if much in the sections is obsolete for the newest snapshot.
fn has_much_garbage(collection: &Collection, index: Option<&Index>, sections: &Sections) -> bool {
    let entries = sections.entries();
    let waste = match index {
        Some(index) if !index.definition.is_of_ids() => {
            // A tombstone, and the entry it deletes.
            2 * sections.descriptors().map(|it| it.deletions).sum::<u64>()
        }
        _ => entries.saturating_sub(collection.count()),
    };
    waste as f64 > WASTE_MIN * entries as f64
}

/// An index is packed if this fraction of its bytes is not yet.
const LOOSE_MIN: f64 = 0.25;
/// Smaller indexes are not worth a merge.
const LOOSE_BYTES_MIN: u64 = 256 << 10;

/// Returns `true` if much of an index was written loosely, to keep up with writers, and can be
/// packed.
fn is_mostly_unpacked(index: Option<&Index>, sections: &Sections) -> bool {
    let (mut loose, mut all) = (0, 0);
    for section in sections.descriptors() {
        all += section.bytes_stored;
        loose += if section.packed {
            0
        } else {
            section.bytes_stored
        };
    }
    is_packable(index) && all >= LOOSE_BYTES_MIN && loose as f64 > LOOSE_MIN * all as f64
}

/// Sets the densest format. Filters save searches in many sections; in a single one most lookups
/// find something, except for unique keys.
fn pack(options: &mut SectionOptions, index: Option<&Index>) {
    options.packed = true;
    if !index.is_some_and(|it| it.definition.unique || it.definition.is_of_ids()) {
        options.filter_bits = 0;
    }
}

/// Returns `true` if the map may be packed. Maps with documents are not: they use their
/// collection's compression.
fn is_packable(index: Option<&Index>) -> bool {
    index.is_some_and(|index| !index.definition.clustered)
}

/// Replaces sections by those merged or rebuilt from them, each in the current or past part of the
/// map.
pub(crate) fn replace(
    core: &Core,
    collection: &Collection,
    map: MapId,
    old: &[RankedSection],
    new: NewSections,
) -> Result<(), Error> {
    let _changing = core.catalog_change.lock();
    let state = collection.state();
    let old_present = || old.iter().filter(|it| !it.is_past).map(|it| &it.section);
    let old_past = old.iter().filter(|it| it.is_past).map(|it| &it.section);
    let is_in = |section: &Arc<Section>, all: &[Arc<Section>]| {
        all.iter().any(|other| Arc::ptr_eq(other, section))
    };
    let dropped = state.dropped;
    let sections = state.sections(map, collection.records_map).cloned();
    let unchanged = sections
        .filter(|sections| !dropped && old_present().all(|it| is_in(it, sections.present())));
    let mut descriptors = new.present;
    let Some(sections) = unchanged else {
        descriptors.extend(new.past);
        return core.discard(&descriptors);
    };
    let removed = old_present().map(|section| rows::delete_section(map, section.descriptor()));
    let added = descriptors.iter().map(|it| rows::put_section(map, it));
    let changes = removed.chain(added).collect();
    let present = descriptors.len();
    descriptors.extend(new.past);
    let mut new = core.adopt(changes, descriptors, Vec::new())?;
    let new_past = new.split_off(present);
    if let Some(it) = state.indexes.iter().find(|it| it.index.map == map) {
        it.index
            .recent_key_filter()
            .merge(&old_present().cloned().collect::<Vec<_>>());
    }
    collection.try_change_state(|state| {
        // The map exists: a drop of an index or a collection changes the catalog, and this
        // holds the lock of catalog changes.
        let sections = state.sections_of(map, collection.records_map)?;
        let is_old =
            |section: &Arc<Section>| old.iter().any(|it| Arc::ptr_eq(&it.section, section));
        let others = sections.without(is_old);
        let (removed, replaced) = (
            sections.present().len() - others.present().len(),
            old_present().count(),
        );
        if removed != replaced {
            return Err(Bug::new(format!(
                "a merge of map {map} replaces {removed} of {replaced} sections"
            )));
        }
        *sections = Arc::new(others.with_added(new, new_past));
        state.clear_tombstone_ranges(map);
        Ok::<(), Bug>(())
    })?;
    // Past sections may have been removed in the meantime.
    let past = old_past.filter(|it| is_in(it, sections.past()));
    old_present()
        .chain(past)
        .try_for_each(|section| core.close_section(section.descriptor()))
}
