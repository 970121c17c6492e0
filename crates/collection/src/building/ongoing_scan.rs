//! A scan of a build in progress: what it reads, and how finished sections enter the indexes.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::Mutex;
use windrow_interrupt::Interrupted;
use windrow_invariant::Bug;
use windrow_mql::interrupt::SharedInterrupt;
use windrow_storage::RowChange;

use super::control::BuildControl;
use super::entries::{CollectedEntries, EntryTarget};
use super::ranges::RangeQueue;
use crate::catalog::rows::{self, MapSection, RecordRange};
use crate::collection::Collection;
use crate::core::Core;
use crate::error::Error;
use crate::ids::MapId;
use crate::index::Index;
use crate::read::Reader;

const DROPPED: &str = "the index was dropped while it was built";

/// Returns the error of a build whose index was dropped.
pub(super) fn dropped() -> Error {
    Error::interrupted(DROPPED)
}

/// Returns an interrupt that stops the creation of entries once one of the indexes is dropped.
pub(super) fn interrupt_if_dropped(indexes: Vec<Arc<Index>>) -> SharedInterrupt {
    Arc::new(move || {
        if indexes.iter().any(|index| index.is_dropped()) {
            Err(Interrupted::new(DROPPED))
        } else {
            Ok(())
        }
    })
}

/// A scan of a build in progress.
pub(super) struct Scan<'s> {
    pub collection: &'s Collection,
    pub core: &'s Core,
    pub indexes: &'s [Arc<Index>],
    pub control: &'s BuildControl<'s>,
    pub reader: Reader,
    pub queue: RangeQueue,
    /// The first error of a worker.
    pub failed: Mutex<Option<Error>>,
}

impl Scan<'_> {
    /// Returns `true` if the indexes or the collection do not exist any more.
    pub fn is_dropped(&self) -> bool {
        self.collection.state().dropped || self.indexes.iter().any(|it| it.is_dropped())
    }

    /// Adds the sections of finished runs to the indexes, and the rows that they cover these
    /// ranges. `changes` are those of other rows.
    pub fn adopt(
        &self,
        sections: Vec<MapSection>,
        ranges: &[RecordRange],
        mut changes: Vec<RowChange>,
    ) -> Result<(), Error> {
        let core = self.core;
        for index in self.indexes {
            let built = ranges.iter();
            changes.extend(built.map(|range| rows::put_built_range(index.map, range)));
        }
        let added = sections.iter();
        changes.extend(added.map(|added| rows::put_section(added.map, &added.descriptor)));
        let maps: Vec<MapId> = sections.iter().map(|section| section.map).collect();
        let descriptors = sections.into_iter().map(|section| section.descriptor);
        // Before the lock: the sections of another server are read from the object store, which
        // takes long.
        let opened = core.open_sections(descriptors.collect());
        let _changing = core.catalog_change.lock();
        if self.is_dropped() {
            opened.give_up(core)?;
            return Err(dropped());
        }
        let opened = core.adopt_opened(changes, opened, Vec::new())?;
        if maps.len() != opened.len() {
            let (opened, expected) = (opened.len(), maps.len());
            return Err(Bug::new(format!("a build opened {opened} of {expected} sections")).into());
        }
        let shown = self.collection.try_change_state(|state| {
            for (map, section) in maps.into_iter().zip(opened) {
                let sections = state.sections_of(map, self.collection.records_map)?;
                *sections = Arc::new(sections.with_added([section], []));
            }
            Ok::<(), Bug>(())
        });
        Ok(shown?)
    }

    /// Adds what was written to the progress of the indexes.
    pub fn record_written(&self, keys: &[u64], sections: &[MapSection]) {
        for (index, keys) in self.indexes.iter().zip(keys) {
            index.progress().keys.fetch_add(*keys, Ordering::Relaxed);
            let own = sections.iter().filter(|section| section.map == index.map);
            let bytes = own.map(|section| section.descriptor.bytes_stored).sum();
            index.progress().bytes.fetch_add(bytes, Ordering::Relaxed);
        }
    }
}

impl EntryTarget for Scan<'_> {
    fn indexes(&self) -> &[Arc<Index>] {
        self.indexes
    }

    fn reader(&self) -> &Reader {
        &self.reader
    }

    fn check(&self) -> Result<(), Error> {
        self.control.interrupt.check()?;
        if self.indexes.iter().any(|index| index.is_dropped()) {
            return Err(dropped());
        }
        match &*self.failed.lock() {
            Some(_) => Err(Error::interrupted("another part of the build failed")),
            None => Ok(()),
        }
    }

    fn record_documents(&self, count: u64) {
        for index in self.indexes {
            let documents = &index.progress().documents;
            documents.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// Sorts and writes the collected entries, and adds the sections to the indexes.
    fn write(&self, collected: &mut CollectedEntries) -> Result<(), Error> {
        if collected.ranges.is_empty() {
            return Ok(());
        }
        let sink = self.core.sink()?;
        let check = || self.check();
        let sections = collected.write_sections(self.core, self.indexes, &sink, &check)?;
        if !sections.is_empty() {
            sink.finish()?;
        }
        let keys = std::mem::replace(&mut collected.keys, vec![0; self.indexes.len()]);
        self.record_written(&keys, &sections);
        let ranges = std::mem::take(&mut collected.ranges);
        self.adopt(sections, &ranges, Vec::new())
    }
}
