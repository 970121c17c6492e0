//! The open sections of each run file. A run without open sections is removed.

use std::collections::HashSet;
use std::sync::Arc;

use windrow_fold::{Section, SectionDescriptor};
use windrow_storage::{RowChange, RunId};

use crate::catalog::rows;
use crate::core::Core;
use crate::error::Error;

/// Sections that were opened for the catalog.
pub(crate) struct OpenedSections {
    descriptors: Vec<SectionDescriptor>,
    /// Incomplete after an error.
    sections: Vec<Arc<Section>>,
    result: Result<(), Error>,
}

impl OpenedSections {
    /// Removes the runs, because the catalog will not contain the sections.
    pub fn give_up(self, core: &Core) -> Result<(), Error> {
        let sections = self.sections.iter();
        sections.for_each(|section| core.forget(section.descriptor()));
        core.discard(&self.descriptors)
    }
}

impl Core {
    /// Opens a section that the catalog contains, and counts it for its run.
    pub fn open_section(&self, descriptor: SectionDescriptor) -> Result<Arc<Section>, Error> {
        let section = Section::open(&self.storage.runs, descriptor)?;
        *self
            .run_sections
            .lock()
            .entry(section.descriptor().run)
            .or_insert(0) += 1;
        Ok(Arc::new(section))
    }

    /// Adds new sections of finished runs to the catalog, and opens them. All are opened before the
    /// catalog changes, because afterwards an error could no longer undo it. If the catalog does
    /// not change, the runs are removed. `unused` are sections in the same or other runs that
    /// nothing uses.
    pub fn adopt(
        &self,
        changes: Vec<RowChange>,
        descriptors: Vec<SectionDescriptor>,
        unused: Vec<SectionDescriptor>,
    ) -> Result<Vec<Arc<Section>>, Error> {
        self.adopt_opened(changes, self.open_sections(descriptors), unused)
    }

    /// As [`adopt`](Self::adopt), with sections that were opened before.
    pub fn adopt_opened(
        &self,
        changes: Vec<RowChange>,
        opened: OpenedSections,
        mut unused: Vec<SectionDescriptor>,
    ) -> Result<Vec<Arc<Section>>, Error> {
        let OpenedSections {
            descriptors,
            sections,
            result,
        } = opened;
        let adopted = result.and_then(|()| {
            // Sections of past versions have no rows.
            if !changes.is_empty() {
                self.storage.catalog.change(changes, |_| {})?;
            }
            Ok(())
        });
        if adopted.is_err() {
            // A log that refuses writes may contain the change all the same, so the runs stay.
            if !self.storage.log.takes_writes() {
                return adopted.map(|_| sections);
            }
            for section in &sections {
                self.forget(section.descriptor());
            }
            unused.extend(descriptors);
        }
        self.discard(&unused)?;
        debug_assert!(adopted.is_err() || sections.iter().all(|it| self.counts(it)));
        adopted.map(|_| sections)
    }

    /// Opens sections that the catalog does not contain yet.
    pub fn open_sections(&self, descriptors: Vec<SectionDescriptor>) -> OpenedSections {
        let mut sections = Vec::new();
        let result = descriptors.iter().try_for_each(|it| {
            sections.push(self.open_section(it.clone())?);
            Ok(())
        });
        OpenedSections {
            descriptors,
            sections,
            result,
        }
    }

    /// Keeps a run that a follower has written until it is clear if the catalog names it.
    pub fn postpone(&self, runs: impl IntoIterator<Item = RunId>) {
        self.postponed_runs.lock().extend(runs);
    }

    /// Returns `true` if a section is counted for its run.
    fn counts(&self, section: &Section) -> bool {
        let runs = self.run_sections.lock();
        runs.contains_key(&section.descriptor().run)
    }

    /// Removes the runs of sections that the catalog does not contain, unless the catalog contains
    /// other sections of the run.
    pub fn discard(&self, descriptors: &[SectionDescriptor]) -> Result<(), Error> {
        let known = self.run_sections.lock();
        let mut runs: Vec<RunId> = descriptors.iter().map(|it| it.run).collect();
        runs.sort_unstable();
        runs.dedup();
        runs.retain(|run| !known.contains_key(run));
        if self.storage.is_following() {
            // The catalog can name sections that are not opened yet.
            self.postponed_runs.lock().extend(runs);
            return Ok(());
        }
        Ok(runs
            .into_iter()
            .try_for_each(|run| self.storage.runs.remove(run))?)
    }

    /// Removes the runs that a follower has released, unless the catalog names them or a section of
    /// them is open.
    pub fn discard_postponed(&self) -> Result<(), Error> {
        let postponed = std::mem::take(&mut *self.postponed_runs.lock());
        if postponed.is_empty() {
            return Ok(());
        }
        let named = rows::named_runs(&self.storage.catalog);
        let open = self.run_sections.lock();
        for run in postponed {
            if open.contains_key(&run) {
                continue;
            }
            if named.contains(&run) {
                self.postponed_runs.lock().insert(run);
            } else {
                self.storage.runs.remove(run)?;
            }
        }
        Ok(())
    }

    /// Releases a section that was removed from the catalog. A run without sections is removed once
    /// no reader has it.
    pub fn close_section(&self, descriptor: &SectionDescriptor) -> Result<(), Error> {
        self.forget(descriptor);
        self.discard(std::slice::from_ref(descriptor))
    }

    /// Releases a section that was opened, and that the catalog may refer to.
    pub fn forget(&self, descriptor: &SectionDescriptor) {
        let mut runs = self.run_sections.lock();
        let Some(count) = runs.get_mut(&descriptor.run) else {
            // The run stays until the next start, which removes runs without sections.
            debug_assert!(false, "a section of run {} is not counted", descriptor.run);
            return;
        };
        *count -= 1;
        if *count == 0 {
            runs.remove(&descriptor.run);
        }
    }

    /// Returns the runs that contain sections.
    pub fn runs(&self) -> HashSet<RunId> {
        self.run_sections.lock().keys().copied().collect()
    }
}
