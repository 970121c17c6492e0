//! The scan of a build: all cores read, sort and write at once.
//!
//! Record ids are cut into ranges. A worker takes range after range, and when its share of the memory
//! is full it sorts what it has and writes a section for every index, with rows that say which
//! records they cover. No worker waits for another.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use windrow_document::Document;
use windrow_fold::view::Sections;
use windrow_fold::{SectionDescriptor, Sorter};
use windrow_index::{Multikey, Scratch};
use windrow_storage::RowChange;

use super::control::BuildControl;
use super::pool::Worker;
use crate::collection::Collection;
use crate::core::Core;
use crate::error::Error;
use crate::index::Index;
use crate::read::{Reader, RecordId};
use crate::rows;

/// So many ranges a worker, so that all end at about the same time.
const RANGES_PER_WORKER: u64 = 32;
/// Documents between two looks at whether to stop.
const DOCUMENTS_PER_CHECK: u64 = 512;

struct Scan<'s> {
    collection: &'s Collection,
    core: &'s Core,
    indexes: &'s [Arc<Index>],
    control: &'s BuildControl<'s>,
    reader: Reader,
    ranges: Vec<(u64, u64)>,
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
    // A resumed build's indexes may have covered different records: then each is scanned for alone.
    let covered: Vec<_> = indexes.iter().map(|index| covered(core, index)).collect();
    if covered.windows(2).any(|pair| pair[0] != pair[1]) {
        return indexes
            .iter()
            .try_for_each(|index| scan(collection, core, std::slice::from_ref(index), control));
    }
    let reader = collection.lasting_reader()?;
    let threads = core.options.threads.max(1);
    let done = covered.into_iter().next().unwrap_or_default();
    let ranges = ranges(
        &done,
        reader.next_record().0,
        threads as u64 * RANGES_PER_WORKER,
    );
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
    std::thread::scope(|scope| {
        for _ in 0..threads.min(scan.ranges.len()) {
            scope.spawn(|| scan.work());
        }
    });
    scan.failed.into_inner().map_or(Ok(()), Err)
}

/// The record ids that sections of an unfinished build cover, in order.
fn covered(core: &Core, index: &Index) -> Vec<(u64, u64)> {
    let rows = core
        .storage
        .catalog
        .scan(&rows::key(rows::BUILD, &[index.map]));
    let ends = rows.iter().filter_map(|(key, _)| rows::numbers::<3>(key));
    ends.map(|[_, first, end]| (first, end)).collect()
}

/// What is left of 0..end, in pieces of even size.
fn ranges(done: &[(u64, u64)], end: u64, count: u64) -> Vec<(u64, u64)> {
    let mut left = Vec::new();
    let mut from = 0;
    for (first, done_end) in done.iter().copied().chain([(end, end)]) {
        if from < first.min(end) {
            left.push((from, first.min(end)));
        }
        from = from.max(done_end);
    }
    let total: u64 = left.iter().map(|(from, end)| end - from).sum();
    let size = total.div_ceil(count.max(1)).max(1);
    let cut = |(from, end): (u64, u64)| {
        (from..end)
            .step_by(size as usize)
            .map(move |at| (at, (at + size).min(end)))
    };
    left.into_iter().flat_map(cut).collect()
}

/// What a worker has collected since it last wrote.
struct Collected {
    sorters: Vec<Sorter>,
    multikeys: Vec<Multikey>,
    scratch: Scratch,
    /// The records that were read, as ranges.
    records: Vec<(u64, u64)>,
}

impl Scan<'_> {
    fn work(&self) {
        if let Err(error) = self.try_work() {
            self.failed.lock().get_or_insert(error);
        }
    }

    fn try_work(&self) -> Result<(), Error> {
        let worker = self.core.builds.join();
        let mut collected = Collected {
            sorters: self.indexes.iter().map(|_| Sorter::new()).collect(),
            multikeys: self
                .indexes
                .iter()
                .map(|index| Multikey::of(index.definition.fields.len()))
                .collect(),
            scratch: Scratch::default(),
            records: Vec::new(),
        };
        while let Some(range) = self.ranges.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            self.read_range(*range, &worker, &mut collected)?;
        }
        self.write(&mut collected)
    }

    fn read_range(
        &self,
        (first, end): (u64, u64),
        worker: &Worker<'_>,
        collected: &mut Collected,
    ) -> Result<(), Error> {
        let mut cursor = self.reader.record_range(RecordId(first), RecordId(end))?;
        let (mut from, mut count) = (first, 0);
        while cursor.next()? {
            let id = cursor.id().0;
            self.take(Document::from_validated(cursor.document()), id, collected)?;
            count += 1;
            if count == DOCUMENTS_PER_CHECK {
                self.note_documents(&mut count);
                self.check()?;
            }
            let bytes: usize = collected.sorters.iter().map(Sorter::bytes).sum();
            if bytes >= worker.bytes_max() {
                collected.records.push((from, id + 1));
                self.write(collected)?;
                from = id + 1;
            }
        }
        self.note_documents(&mut count);
        if from < end {
            collected.records.push((from, end));
        }
        Ok(())
    }

    /// Adds to the progress what was read since the last time.
    fn note_documents(&self, count: &mut u64) {
        let count = std::mem::take(count);
        for index in self.indexes {
            let documents = &index.progress().documents;
            documents.fetch_add(count, Ordering::Relaxed);
        }
    }

    fn take(&self, document: Document<'_>, id: u64, into: &mut Collected) -> Result<(), Error> {
        let Collected {
            sorters,
            multikeys,
            scratch,
            ..
        } = into;
        for ((index, sorter), multikey) in self.indexes.iter().zip(sorters).zip(multikeys) {
            let mut add = |key: &[u8], payload: &[u8]| sorter.add(key, id, payload);
            index
                .definition
                .entries(document, scratch, multikey, &mut add)?;
        }
        Ok(())
    }

    fn check(&self) -> Result<(), Error> {
        if let Some(why) = (self.control.should_stop)() {
            return Err(Error::Interrupted(why));
        }
        if self.indexes.iter().any(|index| index.is_dropped()) {
            return Err(Error::Interrupted(
                "the index was dropped while it was built".to_owned(),
            ));
        }
        match &*self.failed.lock() {
            Some(_) => Err(Error::Interrupted(
                "another part of the build failed".to_owned(),
            )),
            None => Ok(()),
        }
    }

    /// Sorts and writes what was collected, and makes it part of the indexes.
    fn write(&self, collected: &mut Collected) -> Result<(), Error> {
        if collected.records.is_empty() {
            return Ok(());
        }
        let sink = self.core.sink()?;
        let mut sections = Vec::new();
        for (index, sorter) in self.indexes.iter().zip(&mut collected.sorters) {
            let options = self.core.section_options(Some(index), index.since);
            let keys = sorter.len() as u64;
            let section = sorter.write(&sink, options)?;
            index.progress().keys.fetch_add(keys, Ordering::Relaxed);
            sections.push(section);
        }
        if sections.iter().any(Option::is_some) {
            sink.finish()?;
        }
        for (index, multikey) in self.indexes.iter().zip(&collected.multikeys) {
            index.note_multikey(multikey);
        }
        self.adopt(sections, std::mem::take(&mut collected.records))
    }

    fn adopt(
        &self,
        sections: Vec<Option<SectionDescriptor>>,
        records: Vec<(u64, u64)>,
    ) -> Result<(), Error> {
        let core = self.core;
        let _changing = core.catalog_change.lock();
        let (mut changes, mut maps, mut descriptors) = (Vec::new(), Vec::new(), Vec::new());
        for (index, section) in self.indexes.iter().zip(sections) {
            changes.push(index.row().put(self.collection.id, index.map));
            for (first, end) in &records {
                let key = rows::key(rows::BUILD, &[index.map, *first, *end]);
                changes.push(RowChange::put(key, Vec::new()));
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
            return Err(Error::Interrupted(
                "the index was dropped while it was built".to_owned(),
            ));
        }
        let opened = core.adopt(changes, descriptors)?;
        self.collection.change_state(|state| {
            for (map, section) in maps.into_iter().zip(opened) {
                if let Some(sections) = state.sections_mut(map, self.collection.records_map) {
                    let all = sections.all().iter().cloned().chain([section]);
                    *sections = Arc::new(Sections::new(all.collect()));
                }
            }
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_cover_what_is_left() {
        assert_eq!(ranges(&[], 10, 3), [(0, 4), (4, 8), (8, 10)]);
        assert_eq!(ranges(&[(0, 3), (5, 7)], 10, 1), [(3, 5), (7, 10)]);
        assert_eq!(ranges(&[(0, 20)], 10, 4), []);
        assert_eq!(ranges(&[], 0, 4), []);
    }
}
