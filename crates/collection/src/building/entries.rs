//! Reads documents, and collects the entries of indexes that are built together.

use std::sync::Arc;

use windrow_document::Document;
use windrow_fold::{RecordId, RunSink, Sorter};
use windrow_index::{EntrySink, KeyNumber, Scratch, is_mark};
use windrow_invariant::Bug;

use super::pool::Worker;
use super::ranges::truncate_bound;
use crate::catalog::rows::{MapSection, RecordRange};
use crate::core::Core;
use crate::error::Error;
use crate::index::Index;
use crate::read::Reader;

/// Documents between two checks whether to stop.
const DOCUMENTS_PER_CHECK: u64 = 512;
/// Bytes of documents between two checks: few large documents have as many entries as many small
/// ones.
const BYTES_PER_CHECK: usize = 1 << 20;

/// Receives the entries of a range.
pub(super) trait EntryTarget: Sync {
    fn indexes(&self) -> &[Arc<Index>];
    fn reader(&self) -> &Reader;
    /// Fails if the work must stop.
    fn check(&self) -> Result<(), Error>;
    /// Adds documents that were read to the progress.
    fn record_documents(&self, count: u64);
    /// Sorts and writes the entries, and empties `collected`.
    fn write(&self, collected: &mut CollectedEntries) -> Result<(), Error>;
}

/// The entries that a worker has collected since its last section.
pub(super) struct CollectedEntries {
    pub sorters: Vec<Sorter>,
    /// The number of keys in each sorter, without marks.
    pub keys: Vec<u64>,
    scratch: Scratch,
    /// The ranges that were read.
    pub ranges: Vec<RecordRange>,
}

impl CollectedEntries {
    pub fn new(indexes: &[Arc<Index>]) -> CollectedEntries {
        CollectedEntries {
            sorters: indexes.iter().map(|_| Sorter::new()).collect(),
            keys: vec![0; indexes.len()],
            scratch: Scratch::default(),
            ranges: Vec::new(),
        }
    }

    fn take(
        &mut self,
        document: Document<'_>,
        id: RecordId,
        indexes: &[Arc<Index>],
    ) -> Result<(), Error> {
        let (sorters, keys) = (self.sorters.iter_mut(), self.keys.iter_mut());
        for ((index, sorter), keys) in indexes.iter().zip(sorters).zip(keys) {
            let mut sink = SorterSink { sorter, keys, id };
            let definition = &index.definition;
            definition.numbered_entries(document, &mut self.scratch, &mut sink)?;
        }
        Ok(())
    }

    /// Sorts the entries and writes a section for each index that has some. `check` fails if the
    /// work must stop.
    pub fn write_sections(
        &mut self,
        core: &Core,
        indexes: &[Arc<Index>],
        sink: &RunSink,
        check: &dyn Fn() -> Result<(), Error>,
    ) -> Result<Vec<MapSection>, Error> {
        let (sorters, expected) = (self.sorters.len(), indexes.len());
        if sorters != expected {
            // Ranges would count as done whose entries are missing.
            let what = format!("a build has the entries of {sorters} of {expected} indexes");
            return Err(Bug::new(what).into());
        }
        let mut sections = Vec::new();
        for (index, sorter) in indexes.iter().zip(&mut self.sorters) {
            // Sorting and writing one of many indexes takes long enough for a check.
            check()?;
            let options = core.section_options(Some(index), index.since);
            let section = sorter.write(sink, options)?;
            sections.extend(section.map(|descriptor| MapSection {
                map: index.map,
                descriptor,
            }));
        }
        Ok(sections)
    }
}

/// Adds the entries of a document to a sorter.
struct SorterSink<'s> {
    sorter: &'s mut Sorter,
    /// The number of keys, without marks.
    keys: &'s mut u64,
    id: RecordId,
}

impl EntrySink for SorterSink<'_> {
    fn entry(&mut self, key: &[u8], payload: &[u8]) {
        *self.keys += u64::from(!is_mark(key));
        self.sorter.add(key, self.id, payload);
    }

    fn known_entry(&mut self, number: KeyNumber, payload: &[u8]) -> bool {
        let is_known = self.sorter.add_known(number_of(number), self.id, payload);
        *self.keys += u64::from(is_known);
        is_known
    }

    fn numbered_entry(&mut self, number: KeyNumber, key: &[u8], payload: &[u8]) {
        *self.keys += 1;
        self.sorter
            .add_numbered(number_of(number), key, self.id, payload);
    }
}

/// Returns the number of a key as sorters have it.
fn number_of(key: KeyNumber) -> windrow_fold::KeyNumber {
    windrow_fold::KeyNumber {
        generation: key.generation.number(),
        number: key.number,
    }
}

/// Collects the entries of the documents of a range. Writes them when the worker's share of the
/// memory is full.
pub(super) fn read_range(
    target: &dyn EntryTarget,
    range: &RecordRange,
    worker: &Worker<'_>,
    collected: &mut CollectedEntries,
) -> Result<(), Error> {
    let RecordRange { first, end } = range;
    let mut cursor = target.reader().range(Some(first), Some(end))?;
    let (mut from, mut count, mut unchecked_bytes) = (first.clone(), 0, 0);
    while cursor.next()? {
        let bytes: usize = collected.sorters.iter().map(Sorter::bytes).sum();
        if bytes >= worker.bytes_max() {
            let reached = truncate_bound(cursor.bound());
            // Documents whose keys are equal after truncation may be read twice, which is
            // harmless.
            if from < reached {
                collected.ranges.push(RecordRange {
                    first: from,
                    end: reached.clone(),
                });
                target.write(collected)?;
                from = reached;
            }
        }
        let (id, document) = (cursor.id(), cursor.document());
        unchecked_bytes += document.len();
        let taken = collected.take(Document::from_validated(document), id, target.indexes());
        // An interrupt also stops work on a large document, with an error that lacks the reason.
        taken.or_else(|error| target.check().and(Err(error)))?;
        count += 1;
        if count == DOCUMENTS_PER_CHECK || unchecked_bytes >= BYTES_PER_CHECK {
            unchecked_bytes = 0;
            target.record_documents(std::mem::take(&mut count));
            target.check()?;
        }
    }
    target.record_documents(count);
    if from < *end {
        collected.ranges.push(RecordRange {
            first: from,
            end: end.clone(),
        });
    }
    Ok(())
}
