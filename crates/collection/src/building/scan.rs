//! The scan of a build: all threads read, sort and write concurrently.
//!
//! The documents are divided into ranges in natural order, by record id, or in a clustered
//! collection by key. A worker takes range after range. When its share of the memory is full, it
//! sorts the entries and writes a section for each index, with rows for the ranges that they cover.
//! Workers do not wait for each other.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use windrow_document::Document;
use windrow_fold::{RecordId, SectionDescriptor, Sorter};
use windrow_index::{Scratch, is_mark};
use windrow_invariant::Bug;
use windrow_mql::Error as LanguageError;
use windrow_mql::interrupt::with_interrupt;
use windrow_storage::RowChange;

use super::control::BuildControl;
use super::pool::Worker;
use crate::collection::Collection;
use crate::core::Core;
use crate::error::Error;
use crate::generation::BEHIND_ALL;
use crate::index::Index;
use crate::read::Reader;
use crate::rows;

/// A range of keys, without its end.
type Range = (Vec<u8>, Vec<u8>);

/// The number of ranges per worker: enough for all workers to end at about the same time.
const RANGES_PER_WORKER: u64 = 32;
/// Bounds are stored in catalog rows, which are small, so longer ones are truncated.
const PLACE_BYTES_MAX: usize = 256;
/// Each additional worker needs this many bytes of documents. It writes sections of its own, and
/// entries in overlapping sections can only be counted by reading them.
const BYTES_PER_WORKER: u64 = 1 << 20;
/// Documents between two checks whether to stop.
const DOCUMENTS_PER_CHECK: u64 = 512;
/// Bytes of documents between two checks: few large documents have as many entries as many small
/// ones.
const BYTES_PER_CHECK: usize = 1 << 20;

/// The error code that stops work on a large document; see [`Scan::work`].
const INTERRUPTED: i32 = 11601;
const DROPPED: &str = "the index was dropped while it was built";

struct Scan<'s> {
    collection: &'s Collection,
    core: &'s Core,
    indexes: &'s [Arc<Index>],
    control: &'s BuildControl<'s>,
    reader: Reader,
    ranges: Vec<Range>,
    next: AtomicUsize,
    failed: Mutex<Option<Error>>,
}

/// Scans the collection for indexes whose builds have covered the same records.
pub(super) fn scan(
    collection: &Collection,
    core: &Core,
    indexes: &[Arc<Index>],
    control: &BuildControl<'_>,
) -> Result<(), Error> {
    // Indexes of a resumed build may have covered different records; then each is scanned
    // separately.
    let covered: Vec<_> = indexes.iter().map(|index| covered(core, index)).collect();
    if covered.windows(2).any(|pair| pair[0] != pair[1]) {
        return indexes
            .iter()
            .try_for_each(|index| scan(collection, core, std::slice::from_ref(index), control));
    }
    let reader = collection.lasting_reader()?;
    let threads = core.options.threads.max(1);
    // All have covered the same. Without indexes there is nothing to scan for.
    let done = covered.into_iter().next().unwrap_or_default();
    let cuts = reader.split_keys(threads as u64 * RANGES_PER_WORKER)?;
    let ranges = ranges(&done, cuts);
    for index in indexes {
        index
            .progress()
            .documents_total
            .store(collection.count(), Ordering::Relaxed);
    }
    let scan = Scan {
        collection,
        core,
        indexes,
        control,
        reader,
        ranges,
        next: AtomicUsize::new(0),
        failed: Mutex::default(),
    };
    let worth = usize::try_from(collection.bytes() / BYTES_PER_WORKER).unwrap_or(usize::MAX);
    let workers = threads.min(scan.ranges.len()).min(worth.max(1));
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| scan.work());
        }
    });
    scan.failed.into_inner().map_or(Ok(()), Err)
}

/// Returns the ranges that sections of an unfinished build cover, in order.
fn covered(core: &Core, index: &Index) -> Vec<Range> {
    let prefix = rows::key(rows::BUILD, &[index.map.0]);
    let rows = core.storage.catalog.scan(&prefix);
    let place = |key: &[u8]| key.split_at(prefix.len()).1.to_vec();
    rows.iter()
        .map(|(key, end)| (place(key), end.to_vec()))
        .collect()
}

/// Returns the ranges that are not done, divided at the cuts, which are sorted.
fn ranges(done: &[Range], cuts: Vec<Vec<u8>>) -> Vec<Range> {
    let mut left = Vec::new();
    let mut from = Vec::new();
    let mut cuts = cuts.into_iter().map(cut).peekable();
    let last = (BEHIND_ALL.to_vec(), Vec::new());
    for (first, done_end) in done.iter().cloned().chain([last]) {
        while let Some(cut) = cuts.next_if(|cut| *cut < first) {
            if from < cut {
                left.push((std::mem::replace(&mut from, cut.clone()), cut));
            }
        }
        if from < first {
            left.push((from.clone(), first));
        }
        from = from.max(done_end);
    }
    left
}

/// Truncates a bound to the length that fits a row.
fn cut(mut place: Vec<u8>) -> Vec<u8> {
    place.truncate(PLACE_BYTES_MAX);
    place
}

/// What a worker has collected since its last section.
struct Collected {
    sorters: Vec<Sorter>,
    /// The number of keys in each sorter, without marks.
    keys: Vec<u64>,
    scratch: Scratch,
    /// The ranges that were read.
    places: Vec<Range>,
}

impl Scan<'_> {
    fn work(&self) {
        let indexes = self.indexes.to_vec();
        let interrupt = move || {
            if indexes.iter().any(|index| index.is_dropped()) {
                Err(LanguageError::new(INTERRUPTED, DROPPED))
            } else {
                Ok(())
            }
        };
        if let Err(error) = with_interrupt(Arc::new(interrupt), || self.try_work()) {
            self.failed.lock().get_or_insert(error);
        }
    }

    fn try_work(&self) -> Result<(), Error> {
        let worker = self.core.builds.join();
        let mut collected = Collected {
            sorters: self.indexes.iter().map(|_| Sorter::new()).collect(),
            keys: vec![0; self.indexes.len()],
            scratch: Scratch::default(),
            places: Vec::new(),
        };
        while let Some(range) = self.ranges.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            self.read_range(range, &worker, &mut collected)?;
        }
        self.write(&mut collected)
    }

    fn read_range(
        &self,
        (first, end): &Range,
        worker: &Worker<'_>,
        collected: &mut Collected,
    ) -> Result<(), Error> {
        let mut cursor = self.reader.range(Some(first), Some(end))?;
        let (mut from, mut count, mut unchecked_bytes) = (first.clone(), 0, 0);
        while cursor.next()? {
            let bytes: usize = collected.sorters.iter().map(Sorter::bytes).sum();
            if bytes >= worker.bytes_max() {
                let place = cut(cursor.place());
                // Documents whose keys are equal after truncation may be read twice, which is
                // harmless.
                if from < place {
                    collected.places.push((from, place.clone()));
                    self.write(collected)?;
                    from = place;
                }
            }
            let (id, document) = (cursor.id(), cursor.document());
            unchecked_bytes += document.len();
            let taken = self.take(Document::from_validated(document), id, collected);
            // An interrupt also stops work on a large document, with an error that lacks the
            // reason.
            taken.or_else(|error| self.check().and(Err(error)))?;
            count += 1;
            if count == DOCUMENTS_PER_CHECK || unchecked_bytes >= BYTES_PER_CHECK {
                unchecked_bytes = 0;
                self.record_documents(&mut count);
                self.check()?;
            }
        }
        self.record_documents(&mut count);
        if from < *end {
            collected.places.push((from, end.clone()));
        }
        Ok(())
    }

    /// Adds the documents since the last call to the progress.
    fn record_documents(&self, count: &mut u64) {
        let count = std::mem::take(count);
        for index in self.indexes {
            let documents = &index.progress().documents;
            documents.fetch_add(count, Ordering::Relaxed);
        }
    }

    fn take(
        &self,
        document: Document<'_>,
        id: RecordId,
        into: &mut Collected,
    ) -> Result<(), Error> {
        let Collected {
            sorters,
            keys,
            scratch,
            ..
        } = into;
        for ((index, sorter), keys) in self.indexes.iter().zip(sorters).zip(keys) {
            let mut add = |key: &[u8], payload: &[u8]| {
                *keys += u64::from(!is_mark(key));
                sorter.add(key, id, payload);
            };
            index.definition.entries(document, scratch, &mut add)?;
        }
        Ok(())
    }

    fn check(&self) -> Result<(), Error> {
        if let Some(why) = (self.control.should_stop)() {
            return Err(Error::Interrupted(why));
        }
        if self.indexes.iter().any(|index| index.is_dropped()) {
            return Err(Error::Interrupted(DROPPED.to_owned()));
        }
        match &*self.failed.lock() {
            Some(_) => Err(Error::Interrupted(
                "another part of the build failed".to_owned(),
            )),
            None => Ok(()),
        }
    }

    /// Sorts and writes the collected entries, and adds the sections to the indexes.
    fn write(&self, collected: &mut Collected) -> Result<(), Error> {
        if collected.places.is_empty() {
            return Ok(());
        }
        let sink = self.core.sink()?;
        let mut sections = Vec::new();
        let Collected { sorters, keys, .. } = collected;
        for ((index, sorter), keys) in self.indexes.iter().zip(sorters).zip(keys) {
            // Sorting and writing one of many indexes takes long enough for a check.
            self.check()?;
            let options = self.core.section_options(Some(index), index.since);
            let section = sorter.write(&sink, options)?;
            let written = std::mem::take(keys);
            index.progress().keys.fetch_add(written, Ordering::Relaxed);
            sections.push(section);
        }
        if sections.iter().any(Option::is_some) {
            sink.finish()?;
        }
        self.adopt(sections, std::mem::take(&mut collected.places))
    }

    fn adopt(
        &self,
        sections: Vec<Option<SectionDescriptor>>,
        places: Vec<Range>,
    ) -> Result<(), Error> {
        let core = self.core;
        let (written, expected) = (sections.len(), self.indexes.len());
        if written != expected {
            // The rows below would mark ranges as done whose entries are missing.
            let what = format!("a build wrote sections of {written} of {expected} indexes");
            return Err(Bug::new(what).into());
        }
        let _changing = core.catalog_change.lock();
        let (mut changes, mut maps, mut descriptors) = (Vec::new(), Vec::new(), Vec::new());
        for (index, section) in self.indexes.iter().zip(sections) {
            for (first, end) in &places {
                let mut key = rows::key(rows::BUILD, &[index.map.0]);
                key.extend_from_slice(first);
                changes.push(RowChange::put(key, end.clone()));
            }
            if let Some(section) = section {
                changes.push(rows::put_section(index.map, &section));
                let bytes = section.bytes_stored;
                index.progress().bytes.fetch_add(bytes, Ordering::Relaxed);
                maps.push(index.map);
                descriptors.push(section);
            }
        }
        if self.collection.state().dropped || self.indexes.iter().any(|it| it.is_dropped()) {
            core.discard(&descriptors)?;
            return Err(Error::Interrupted(DROPPED.to_owned()));
        }
        let opened = core.adopt(changes, descriptors, Vec::new())?;
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_cover_the_rest() {
        let check = |done: &[(&str, &str)], cuts: &[&str], expected: &[(&str, &str)]| {
            let range = |(from, end): &(&str, &str)| {
                let end = match *end {
                    "END" => BEHIND_ALL.to_vec(),
                    end => end.as_bytes().to_vec(),
                };
                (from.as_bytes().to_vec(), end)
            };
            let done: Vec<Range> = done.iter().map(range).collect();
            let expected: Vec<Range> = expected.iter().map(range).collect();
            let cuts = cuts.iter().map(|cut| cut.as_bytes().to_vec()).collect();
            assert_eq!(ranges(&done, cuts), expected);
        };
        check(&[], &[], &[("", "END")]);
        check(&[], &["", "b", "d"], &[("", "b"), ("b", "d"), ("d", "END")]);
        let left = [("c", "d"), ("d", "e"), ("g", "END")];
        check(&[("", "c"), ("e", "g")], &["b", "d", "f", "g"], &left);
        check(&[("", "END")], &["b"], &[]);
        check(
            &[("b", "e"), ("c", "d")],
            &["c"],
            &[("", "b"), ("e", "END")],
        );
    }
}
