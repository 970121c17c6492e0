//! Merging: sections become fewer, so that readers look into few and what is gone gives its space
//! back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use windrow_fold::cursor::MergeCursor;
use windrow_fold::merge::{self, MergeInput, OlderData, Retention, SectionSinks};
use windrow_fold::sections::{RankedSection, Sections};
use windrow_fold::{RunSink, Section, SectionDescriptor, SectionOptions};
use windrow_invariant::Bug;
use windrow_storage::Position;

use crate::collection::Collection;
use crate::collections::Collections;
use crate::core::{CHAINS_MANY, Core};
use crate::error::Error;
use crate::ids::MapId;
use crate::index::Index;
use crate::panic_boundary::panicked;
use crate::rows;
use crate::state::State;

/// Which maps need a merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MergeEffort {
    /// Those with many sections of a size: readers would look into too many.
    Readers,
    /// Also those where much is gone or replaced, whose space can come back, all of it: nobody reads what
    /// was before. And indexes that can be written shorter.
    Space,
    /// Also those of which some of the space can come back: somebody has asked for it.
    AllSpace,
}

/// Whether to go on.
pub(crate) type ShouldContinue<'a> = dyn Fn() -> bool + Sync + 'a;

/// A map gives space back where so great a part of its entries is of no use.
const WASTE_MIN: f64 = 0.2;

/// One merge of every map that needs it, on all cores; whether there was one. Before, what nobody reads any
/// more goes, and what could not be removed when it was given up. An error of one map does not keep the
/// others from theirs. A merge is given up where `should_continue` says no.
pub(crate) fn merge_all(
    collections: &Collections,
    effort: MergeEffort,
    should_continue: &ShouldContinue<'_>,
) -> Result<bool, Error> {
    let core = &collections.core;
    let _merging = core.merging.lock();
    let _busy = core.counters.merging.begin();
    collections.collect_obsolete_versions();
    let mut maps = Vec::new();
    for collection in collections.all() {
        if let Err(error) = collection.remove_abandoned() {
            (core.options.on_problem)("an index that was given up could not be removed", &error);
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
            match merge_map(core, collection, index.as_deref(), effort, should_continue) {
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

/// Lets writers and folds go first: while there are writes a merge rests between stretches of work, the
/// longer the fewer chains there are. So merging goes on beside writing at an even pace, as fast as it
/// must, instead of in bursts.
struct MergePacer {
    core: Arc<Core>,
    collection: Arc<Collection>,
    since: Mutex<Since>,
}

/// When the merge began to work, after its last rest, and what had been written then.
struct Since {
    begin: Instant,
    written: Position,
}

/// How long a merge works, about, before it rests.
const WORK: Duration = Duration::from_millis(3);
/// A merge rests as long as it worked for every so many chains that are missing to many.
const CHAINS_PER_REST: u32 = 4;
/// It rests no longer than so many times as long as it worked.
const RESTS_MAX: u32 = 3;

impl MergePacer {
    fn new(core: Arc<Core>, collection: Arc<Collection>) -> MergePacer {
        let since = Since {
            begin: Instant::now(),
            written: core.storage.log.written(),
        };
        MergePacer {
            core,
            collection,
            since: Mutex::new(since),
        }
    }

    fn rest(&self) {
        let mut since = self.since.lock();
        let worked = since.begin.elapsed();
        if worked < WORK {
            return;
        }
        let written = self.core.storage.log.written();
        if written > since.written && !self.core.is_closing() {
            let chains = self.collection.chains_max() as u32;
            let rests = CHAINS_MANY.saturating_sub(chains).div_ceil(CHAINS_PER_REST);
            std::thread::sleep(worked.min(2 * WORK) * rests.min(RESTS_MAX));
        }
        *since = Since {
            begin: Instant::now(),
            written,
        };
    }
}

/// Merges sections of one map, if it has enough. Whether it did.
fn merge_map(
    core: &Arc<Core>,
    collection: &Arc<Collection>,
    index: Option<&Index>,
    effort: MergeEffort,
    should_continue: &ShouldContinue<'_>,
) -> Result<bool, Error> {
    let map = index.map_or(collection.records_map, |index| index.map);
    let sections = |state: &mut State| {
        state
            .sections_mut(map, collection.records_map)
            .map(|sections| sections.clone())
    };
    // A build writes sections of the same age side by side: they are left alone until it has ended.
    // Asked before the state is read, so that the state of a build that has ended has all of them.
    let building = index.is_some_and(|index| !index.is_ready());
    let mut state = State::clone(&collection.state());
    // The index was dropped since the maps were counted.
    let Some(sections) = sections(&mut state) else {
        return Ok(false);
    };
    let all = 0..sections.present().len();
    let frees = || frees_space(collection, index, &sections, effort).then(|| all.clone());
    let range = merge::pick_sections(sections.present()).or_else(frees);
    let is_last = effort != MergeEffort::Readers && range.as_ref() == Some(&all);
    let chosen = range.and_then(|range| MergeInput::present(&sections, range));
    let chosen = chosen.or_else(|| MergeInput::past(&sections));
    let Some(chosen) = chosen.filter(|_| !building && !state.dropped) else {
        return Ok(false);
    };
    let mut options = collection.section_options(core, index, chosen.position);
    if is_last && is_packable(index) {
        pack(&mut options, index);
    }
    let Some(new) = write(core, collection, index, &chosen, options, should_continue)? else {
        return Ok(false);
    };
    replace(core, collection, map, &chosen.sections, new)?;
    // One section is asked by itself as fast as by a filter in memory.
    if let Some(index) = index.filter(|_| is_last) {
        index.recent_key_filter().forget();
    }
    core.counters.merges.fetch_add(1, Ordering::Relaxed);
    Ok(true)
}

/// Sections in place of others.
#[derive(Default)]
pub(crate) struct NewSections {
    pub present: Vec<SectionDescriptor>,
    pub past: Vec<SectionDescriptor>,
}

/// Merges what was chosen. None where it was given up.
fn write(
    core: &Arc<Core>,
    collection: &Arc<Collection>,
    index: Option<&Index>,
    chosen: &MergeInput,
    options: SectionOptions,
    should_continue: &ShouldContinue<'_>,
) -> Result<Option<NewSections>, Error> {
    let snapshots = core.snapshot_positions();
    let is_read_before = snapshots.first() < Some(&chosen.position);
    let older = match chosen.older {
        // Nobody reads there.
        OlderData::PastOnly if !is_read_before => OlderData::None,
        older => older,
    };
    let keep = Retention { snapshots, older };
    let has_past = || chosen.sections.iter().any(|it| it.is_past);
    // One for both: the rest of one is no work of the other.
    let pace = Arc::new(MergePacer::new(core.clone(), collection.clone()));
    let sink = || {
        let pace = pace.clone();
        core.sink_pausing(move || pace.rest())
    };
    let present = sink()?;
    let past = (is_read_before || has_past()).then(sink).transpose()?;
    let mut entries = MergeCursor::from_sections(&chosen.sections)?;
    // Nobody waits for a merge that is of no use any more, or is in somebody's way.
    let is_dropped = || index.is_some_and(Index::is_dropped) || collection.is_dropped();
    let should_continue = || {
        should_continue() && !core.is_closing() && !core.merges_are_in_the_way() && !is_dropped()
    };
    let sinks = SectionSinks {
        present: &present,
        past: past.as_ref(),
    };
    let made =
        merge::write_sections_while(&mut entries, None, &keep, sinks, options, &should_continue)?;
    let Some(made) = made else {
        return Ok(None);
    };
    let new = NewSections {
        present: made.present.into_iter().collect(),
        past: made.past.into_iter().collect(),
    };
    finish(core, present, past, &new)?;
    Ok(Some(new))
}

/// Makes the runs durable that have something, or none of them stays.
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

/// Whether a merge of all sections is wanted for the space that it gives back.
fn frees_space(
    collection: &Collection,
    index: Option<&Index>,
    sections: &Sections,
    effort: MergeEffort,
) -> bool {
    let can_free = match effort {
        MergeEffort::Readers => return false,
        MergeEffort::Space => knows_all(collection),
        // A map of one section has been merged as far as it knows what is gone.
        MergeEffort::AllSpace => sections.present().len() > 1 || knows_all(collection),
    };
    (can_free && is_wasteful(collection, index, sections)) || is_loose(index, sections)
}

/// Whether the sections know of all that is gone: then a merge of all leaves nothing of that among the
/// present ones, and of what was before only what somebody reads.
fn knows_all(collection: &Collection) -> bool {
    collection.tail_bytes() == 0
}

/// Whether much in the sections is of no use to who reads the newest.
fn is_wasteful(collection: &Collection, index: Option<&Index>, sections: &Sections) -> bool {
    let entries = sections.entries();
    let waste = match index {
        Some(index) if !index.definition.is_of_ids() => {
            // A deletion, and what it deletes.
            2 * sections.descriptors().map(|it| it.deletions).sum::<u64>()
        }
        _ => entries.saturating_sub(collection.count()),
    };
    waste as f64 > WASTE_MIN * entries as f64
}

/// An index is written shorter where so great a part of it is not yet.
const LOOSE_MIN: f64 = 0.25;
/// Not worth a merge where an index takes fewer bytes.
const LOOSE_BYTES_MIN: u64 = 256 << 10;

/// Whether much of an index could be stored shorter than it was, when writers had to be kept up with.
fn is_loose(index: Option<&Index>, sections: &Sections) -> bool {
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

/// As short as can be. Filters spare looks into many sections; who looks into one mostly finds something,
/// but for the keys that must not be there twice.
fn pack(options: &mut SectionOptions, index: Option<&Index>) {
    options.packed = true;
    if !index.is_some_and(|it| it.definition.unique || it.definition.is_of_ids()) {
        options.filter_bits = 0;
    }
}

/// Not documents, nor what carries them: they are compressed as their collection asks for.
fn is_packable(index: Option<&Index>) -> bool {
    index.is_some_and(|index| !index.definition.clustered)
}

/// Puts new sections in the place of those that they were made of, or that were wrong: of each whether it
/// is past.
pub(crate) fn replace(
    core: &Core,
    collection: &Collection,
    map: MapId,
    old: &[RankedSection],
    new: NewSections,
) -> Result<(), Error> {
    let _changing = core.catalog_change.lock();
    let mut state = State::clone(&collection.state());
    let of = |is_past: bool| {
        let found = old.iter().filter(move |it| it.is_past == is_past);
        found.map(|it| &it.section)
    };
    let is_there = |section: &Arc<Section>, all: &[Arc<Section>]| {
        all.iter().any(|other| Arc::ptr_eq(other, section))
    };
    let dropped = state.dropped;
    let sections = state.sections_mut(map, collection.records_map).cloned();
    let there = sections
        .filter(|sections| !dropped && of(false).all(|it| is_there(it, sections.present())));
    let mut descriptors = new.present;
    let Some(sections) = there else {
        descriptors.extend(new.past);
        return core.discard(&descriptors);
    };
    let gone = of(false).map(|section| rows::delete_section(map, section.descriptor()));
    let came = descriptors.iter().map(|it| rows::put_section(map, it));
    let changes = gone.chain(came).collect();
    let present = descriptors.len();
    descriptors.extend(new.past);
    let mut new = core.adopt(changes, descriptors, Vec::new())?;
    let new_past = new.split_off(present);
    if let Some(it) = state.indexes.iter().find(|it| it.index.map == map) {
        it.index
            .recent_key_filter()
            .merge(&of(false).cloned().collect::<Vec<_>>());
    }
    collection.try_change_state(|state| {
        // Dropped it is not: who drops an index or a collection changes the catalog, too.
        let sections = state.sections_of(map, collection.records_map)?;
        let is_old =
            |section: &Arc<Section>| old.iter().any(|it| Arc::ptr_eq(&it.section, section));
        let left = sections.without(is_old);
        debug_assert_eq!(
            left.present().len() + of(false).count(),
            sections.present().len()
        );
        *sections = Arc::new(left.with_added(new, new_past));
        state.forget_gone(map);
        Ok::<(), Bug>(())
    })?;
    // Of the past ones some may have been let go of meanwhile.
    let past = of(true).filter(|it| is_there(it, sections.past()));
    of(false)
        .chain(past)
        .try_for_each(|section| core.close_section(section.descriptor()))
}
