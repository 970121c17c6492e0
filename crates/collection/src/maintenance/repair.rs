//! Repair: rebuilds indexes from the documents.
//!
//! The steps:
//!
//! 1. Fold everything written so far.
//! 2. Stop merges.
//! 3. Read all documents in sections, with the versions that open snapshots see; sort their entries
//!    and write them.
//! 4. Change the catalog once: the new sections replace the old ones.
//!
//! Reads and writes continue, and their folds come after the new sections. A crash leaves
//! everything as it was.

use std::sync::Arc;

use windrow_document::Document;
use windrow_fold::cursor::MergeCursor;
use windrow_fold::merge::{self, OlderData, Retention};
use windrow_fold::sections::Sections;
use windrow_fold::{
    Entry, EntryBufferBuilder, Position, RecordId, RunSink, SectionDescriptor, SectionOptions,
    SortedBuffer, Sorter,
};
use windrow_index::{Definition, Scratch};
use windrow_interrupt::Interrupt;
use windrow_invariant::Bug;
use windrow_storage::StorageError;

use crate::collection::Collection;
use crate::collections::Collections;
use crate::core::Core;
use crate::error::Error;
use crate::generation::append_id_key;
use crate::ids::MapId;
use crate::index::Index;
use crate::maintenance::{folding, merging};
use crate::state::State;
use crate::write::{Entries, entries_of};

/// Rebuilds these maps of a collection.
pub(crate) fn rebuild(
    collections: &Collections,
    collection: &Collection,
    maps: &[MapId],
    interrupt: &dyn Interrupt,
) -> Result<(), Error> {
    folding::fold(collections)?;
    let core = &*collections.core;
    let _merging = core.exclude_merges();
    for map in maps {
        let state = collection.state();
        if let Some(target) = RepairTarget::find(collection, &state, *map) {
            let work = RepairJob {
                core,
                collection,
                target,
                interrupt,
            };
            work.run(&state)?;
        }
    }
    Ok(())
}

/// A map that is derived from documents.
enum RepairTarget {
    Index(Arc<Index>),
    /// The `_id` keys by record id, of a clustered collection.
    Records(Arc<Definition>),
}

impl RepairTarget {
    /// Returns `None` if the collection no longer has the map, or an index build still writes it.
    fn find(collection: &Collection, state: &State, map: MapId) -> Option<RepairTarget> {
        if state.dropped {
            return None;
        }
        if map == collection.records_map {
            return State::clustered_by(&state.indexes).map(RepairTarget::Records);
        }
        let found = state.indexes.iter().find(|it| it.index.map == map)?;
        let index = &found.index;
        (index.is_ready() && !index.definition.clustered)
            .then(|| RepairTarget::Index(index.clone()))
    }
}

struct RepairJob<'w> {
    core: &'w Core,
    collection: &'w Collection,
    target: RepairTarget,
    interrupt: &'w dyn Interrupt,
}

/// The rebuilt entries that are not written yet.
struct RebuiltEntries {
    /// Entries of documents whose current version all snapshots see.
    settled: Sorter,
    /// Entries of documents of which some snapshots see other versions.
    versions: EntryBufferBuilder,
    sections: Vec<SectionDescriptor>,
    scratch: Scratch,
}

/// A version of a document: the position since which it counts, and its entries. A deletion has
/// none.
struct Version {
    position: Position,
    entries: Entries,
}

impl RepairJob<'_> {
    fn run(&self, state: &State) -> Result<(), Error> {
        let records = self.collection.records_map;
        let map = match &self.target {
            RepairTarget::Index(index) => index.map,
            RepairTarget::Records(_) => records,
        };
        // A dropped index has no sections; the caller discards what was written.
        let old = state
            .sections(map, records)
            .map_or(Vec::new(), |sections| sections.by_age());
        let documents: Vec<&Arc<Sections>> = state.document_maps().collect();
        // The last document map contains the documents.
        let documents = documents.last();
        let documents = documents.ok_or_else(|| Bug::new("a collection has no map"))?;
        let of_old = old.iter().map(|it| it.section.descriptor());
        let positions = documents.descriptors().chain(of_old);
        // Without sections, the tails contain everything.
        let position = positions
            .map(|it| it.position)
            .max()
            .unwrap_or(Position::ZERO);
        let sink = self.core.sink()?;
        let keep = Retention {
            snapshots: self.core.snapshot_positions(),
            older: OlderData::None,
        };
        let output = self.make(documents, &sink, position, &keep)?;
        if !output.sections.is_empty() {
            sink.finish()?;
        }
        if let RepairTarget::Index(index) = &self.target {
            // The filters lack the keys that were missing in the index.
            index.recent_key_filter().forget();
        }
        let new = merging::NewSections {
            present: output.sections,
            past: Vec::new(),
        };
        merging::replace(self.core, self.collection, map, &old, new)
    }

    fn check(&self) -> Result<(), Error> {
        self.interrupt.check()?;
        if self.core.is_closing() {
            return Err(Error::interrupted("the database is closed"));
        }
        Ok(())
    }

    fn options(&self, position: Position) -> SectionOptions {
        let index = match &self.target {
            RepairTarget::Index(index) => Some(&**index),
            RepairTarget::Records(_) => None,
        };
        self.collection.section_options(self.core, index, position)
    }

    /// Reads all documents, and writes their entries.
    fn make(
        &self,
        documents: &Sections,
        sink: &RunSink,
        position: Position,
        keep: &Retention,
    ) -> Result<RebuiltEntries, Error> {
        let oldest = keep.oldest()?;
        let mut output = RebuiltEntries {
            settled: Sorter::new(),
            versions: EntryBufferBuilder::new(oldest, 0),
            sections: Vec::new(),
            scratch: Scratch::default(),
        };
        let bytes_max = (self.core.builds.bytes_max() / 2) as usize;
        let mut merge = MergeCursor::from_sections(&documents.by_age())?;
        while merge.current().is_some() {
            let (id, versions) = self.take(&mut merge, oldest, &mut output)?;
            add_versions(self.entry_id(id), versions, oldest, &mut output);
            if output.settled.bytes() + output.versions.bytes() >= bytes_max {
                self.check()?;
                self.write(&mut output, sink, position, keep)?;
            }
        }
        self.check()?;
        self.write(&mut output, sink, position, keep)?;
        Ok(output)
    }

    /// Reads the versions of one record, newest first, down to the one that the oldest snapshot
    /// sees.
    fn take(
        &self,
        merge: &mut MergeCursor,
        oldest: Position,
        output: &mut RebuiltEntries,
    ) -> Result<(RecordId, Vec<Version>), Error> {
        let (mut versions, mut record) = (Vec::<Version>::new(), None);
        while let Some(entry) = merge.current() {
            let (key, id) = record.get_or_insert_with(|| (entry.key.to_vec(), entry.id));
            if (entry.key, entry.id) != (key.as_slice(), *id) {
                break;
            }
            let is_readable = versions.last().is_none_or(|it| it.position > oldest);
            if is_readable {
                let entries = if entry.deleted {
                    Entries::new()
                } else {
                    self.entries(entry.payload, entry.id, output)?
                };
                versions.push(Version {
                    position: entry.position.max(oldest),
                    entries,
                });
            }
            merge.advance()?;
        }
        let (_, id) = record.ok_or_else(|| Bug::new("a repair reads past the last document"))?;
        Ok((id, versions))
    }

    /// Returns the entries of a document.
    fn entries(
        &self,
        document: &[u8],
        id: RecordId,
        output: &mut RebuiltEntries,
    ) -> Result<Entries, Error> {
        let document = Document::from_bytes(document).map_err(|error| StorageError::Damaged {
            place: format!("the document of record {id}"),
            what: error.to_string(),
        })?;
        match &self.target {
            RepairTarget::Index(index) => entries_of(index, document, &mut output.scratch),
            RepairTarget::Records(id_index) => {
                let mut key = Vec::new();
                append_id_key(id_index, document, &mut key);
                Ok(Entries::from([(id.0.to_be_bytes().to_vec(), key)]))
            }
        }
    }

    fn write(
        &self,
        output: &mut RebuiltEntries,
        sink: &RunSink,
        position: Position,
        keep: &Retention,
    ) -> Result<(), Error> {
        let options = self.options(position);
        let section = output.settled.write(sink, options)?;
        output.sections.extend(section);
        let empty = EntryBufferBuilder::new(keep.oldest()?, 0);
        let versions = std::mem::replace(&mut output.versions, empty).finish();
        if !versions.is_empty() {
            let mut merge =
                MergeCursor::from_buffers([Arc::new(SortedBuffer::from_buffer(&versions))])?;
            let written = merge::write_sections(&mut merge, None, keep, sink.into(), options)?;
            output.sections.extend(written.present);
        }
        Ok(())
    }

    /// Returns the id under which a record's entries are stored.
    fn entry_id(&self, record: RecordId) -> RecordId {
        match self.target {
            RepairTarget::Index(_) => record,
            RepairTarget::Records(_) => RecordId::MIN,
        }
    }
}

/// Adds the entries of a record's versions, newest first: what each version added and removed.
fn add_versions(
    id: RecordId,
    versions: Vec<Version>,
    oldest: Position,
    output: &mut RebuiltEntries,
) {
    let is_settled = |version: &Version| version.position <= oldest;
    if let [version] = versions.as_slice()
        && is_settled(version)
    {
        let entries = version.entries.iter();
        entries.for_each(|(key, payload)| output.settled.add(key, id, payload));
        return;
    }
    let mut before = Entries::new();
    for version in versions.into_iter().rev() {
        let removed = before
            .keys()
            .filter(|key| !version.entries.contains_key(*key));
        let removed = removed.map(|key| (key.as_slice(), &b""[..], true));
        let added = version.entries.iter();
        let added = added
            .filter(|(key, payload)| before.get(*key) != Some(*payload))
            .map(|(key, payload)| (key.as_slice(), payload.as_slice(), false));
        for (key, payload, deleted) in removed.chain(added) {
            output.versions.add(Entry {
                key,
                id,
                position: version.position,
                deleted,
                payload,
            });
        }
        before = version.entries;
    }
}
