//! Removal of obsolete versions: those with a newer version that no snapshot reads. They are in
//! separate sections ([`Sections::past`](windrow_fold::sections::Sections::past)), which are
//! removed as a whole, without delaying writers. If past versions take too much space, the oldest
//! pinned snapshots are closed first.

use std::sync::Arc;

use windrow_fold::sections::Sections;
use windrow_fold::{Position, Section};

use crate::collection::Collection;
use crate::collections::Collections;
use crate::core::Core;
use crate::error::Error;

impl Collections {
    /// Removes obsolete versions. Returns `true` if any were removed.
    pub fn collect_obsolete_versions(&self) -> bool {
        let core = &self.core;
        let mut all = self.all();
        all.retain(|it| first_past_position(it).is_some());
        if all.is_empty() {
            return false;
        }
        let mut some = self.collect_in(&all);
        let bytes_max = || {
            let present = all.iter().map(|it| StoredBytes::new(it).present).sum();
            core.options.memory.max(present)
        };
        let past_bytes = || all.iter().map(|it| StoredBytes::new(it).past).sum::<u64>();
        while past_bytes() > bytes_max() {
            let first = all.iter().filter_map(first_past_position).min();
            let oldest = core.oldest_position();
            // Closing a snapshot is useless unless its versions can be removed now; the next call
            // would close another one.
            let is_removable = !core.catalog_change.is_locked();
            if !(is_removable
                && first.is_some_and(|first| core.pinned_snapshots.release_oldest(oldest, first)))
            {
                break;
            }
            some |= self.collect_in(&all);
        }
        some
    }

    fn collect_in(&self, all: &[Arc<Collection>]) -> bool {
        let core = &self.core;
        let oldest = core.oldest_position();
        let collect = |collection: &Arc<Collection>| {
            let found = collect(core, collection, oldest);
            found.unwrap_or_else(|error| {
                (core.options.on_problem)("obsolete versions could not be removed", &error);
                // Returning `true` would make the caller try again at once.
                false
            })
        };
        all.iter().fold(false, |some, it| some | collect(it))
    }
}

/// Returns the position of its first past section.
fn first_past_position(collection: &Arc<Collection>) -> Option<Position> {
    let state = collection.state();
    let past = state.maps().filter_map(|it| it.past().first());
    past.map(|it| it.descriptor().position).min()
}

/// The stored bytes of a collection.
struct StoredBytes {
    /// In sections of current versions.
    present: u64,
    /// In sections of past versions.
    past: u64,
}

impl StoredBytes {
    fn new(collection: &Collection) -> StoredBytes {
        let state = collection.state();
        let past = state.maps().map(|it| it.past_bytes()).sum();
        let all: u64 = state.maps().map(|it| it.bytes_stored()).sum();
        StoredBytes {
            present: all - past,
            past,
        }
    }
}

/// Removes past sections of a collection that no snapshot at `oldest` or later needs.
fn collect(core: &Core, collection: &Arc<Collection>, oldest: Position) -> Result<bool, Error> {
    if first_past_position(collection).is_none_or(|first| first > oldest) {
        return Ok(false);
    }
    // The caller does not wait; it tries again later.
    let Some(changing) = core.catalog_change.try_lock() else {
        return Ok(false);
    };
    // Dropping it removed all sections.
    if collection.is_dropped() {
        return Ok(false);
    }
    let removed = collection.change_state(|state| {
        let indexes = state.indexes.iter_mut().map(|it| &mut it.sections);
        let maps = std::iter::once(&mut state.records).chain(indexes);
        maps.flat_map(|it| take_unneeded(it, oldest))
            .collect::<Vec<_>>()
    });
    let mut each = removed.iter();
    each.try_for_each(|it| core.close_section(it.descriptor()))?;
    drop(changing);
    // The last reader of a section deletes its file.
    drop(removed);
    Ok(true)
}

/// Removes and returns the past sections that no snapshot at `oldest` or later needs.
fn take_unneeded(sections: &mut Arc<Sections>, oldest: Position) -> Vec<Arc<Section>> {
    let unread = |it: &&Arc<Section>| it.descriptor().position <= oldest;
    let removed: Vec<Arc<Section>> = sections.past().iter().filter(unread).cloned().collect();
    if !removed.is_empty() {
        let is_removed = |it: &Arc<Section>| removed.iter().any(|one| Arc::ptr_eq(one, it));
        *sections = Arc::new(sections.without(is_removed));
    }
    removed
}
