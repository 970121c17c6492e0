//! Lookups of entries in a view, alone or many at once.
//!
//! A lookup of a document in memory mostly waits for memory: its block, its restart offsets and its
//! restart interval are in no cache of the processor. [`View::get_all`] looks up many entries at
//! once, and their waits overlap.

use std::cell::RefCell;
use std::sync::Arc;

use bytes::Bytes;
use windrow_storage::StorageError;

use crate::entry::{Entry, EntryKey, EntryVersion, RecordId, same_key};
use crate::prefetch;
use crate::restart_interval::RestartInterval;
use crate::section::{DataBlock, Section};
use crate::sections::Chain;
use crate::view::View;

/// [`View::get_all`] looks up no further entries once the blocks of those before have this many
/// bytes.
const BLOCK_BYTES_MAX: u64 = 4 << 20;

thread_local! {
    /// A buffer for lookups, which is reused.
    static INTERVAL: RefCell<RestartInterval> = RefCell::default();
}

/// A lookup of an entry in a section.
struct Lookup<'v> {
    /// The index of the entry in the request.
    index: usize,
    entry: EntryKey<'v>,
    section: &'v Arc<Section>,
    block: DataBlock,
}

/// Lookups that have read their blocks.
struct Lookups<'v> {
    begun: Vec<Lookup<'v>>,
    /// The index of the first entry of the request that is left to a later request.
    end: usize,
}

impl View {
    /// Returns the payload of an entry, or `None` if there is no such entry.
    pub fn get(&self, key: &[u8], id: RecordId) -> Result<Option<Bytes>, StorageError> {
        if let Some(version) = self.get_in_tail(key, id) {
            return Ok(version.payload());
        }
        self.get_in_sections(key, id)
    }

    /// Looks an entry up in the sections, from the youngest on.
    fn get_in_sections(&self, key: &[u8], id: RecordId) -> Result<Option<Bytes>, StorageError> {
        let entry = EntryKey::new(key, id);
        INTERVAL.with_borrow_mut(|interval| {
            let chains = self.sections.chains();
            for number in (0..chains.len()).rev() {
                let Some(section) = section_to_read(chains, number, entry)? else {
                    continue;
                };
                let block = section.data_block(section.block_of(key, id)?)?;
                if let Some(version) = section.find_in(block, entry, self.snapshot, interval)? {
                    return Ok(version.payload());
                }
            }
            Ok(None)
        })
    }

    /// Returns the payloads of the entries with the empty key and these ids, as [`get`](Self::get)
    /// does. The result has as many elements as `ids`, or fewer, but at least one unless `ids` is
    /// empty. It ends before the second block that is not in the cache, because the caller must be
    /// able to stop between two reads of files. It also ends if the blocks take too much memory.
    pub fn get_all(&self, ids: &[RecordId]) -> Result<Vec<Option<Bytes>>, StorageError> {
        if let [id] = ids {
            return Ok(vec![self.get(b"", *id)?]);
        }
        let in_tail = ids.iter().map(|id| self.get_in_tail(b"", *id));
        let mut versions: Vec<Option<EntryVersion>> = in_tail.collect();
        let mut bytes_left = BLOCK_BYTES_MAX;
        for number in (0..self.sections.chains().len()).rev() {
            let missing = ids.iter().zip(&versions).enumerate();
            let missing = missing.filter(|(_, (_, version))| version.is_none());
            let entries = missing.map(|(index, (id, _))| (index, EntryKey::new(b"", *id)));
            let lookups = self.begin_lookups(number, entries, &mut bytes_left)?;
            versions.truncate(lookups.end);
            prefetch_intervals(&lookups.begun);
            INTERVAL.with_borrow_mut(|interval| {
                for Lookup {
                    index,
                    entry,
                    section,
                    block,
                } in lookups.begun
                {
                    let found = section.find_in(block, entry, self.snapshot, interval)?;
                    if let Some(version) = versions.get_mut(index) {
                        *version = found;
                    }
                }
                Ok::<(), StorageError>(())
            })?;
        }
        let payload = |version: Option<EntryVersion>| version.and_then(EntryVersion::payload);
        Ok(versions.into_iter().map(payload).collect())
    }

    /// Opens the blocks of a chain that may have the entries, whose indexes in the request are
    /// ascending. Stops before an entry if no bytes are left for its block, or if its block is not
    /// in the cache and others were opened already.
    fn begin_lookups<'v>(
        &'v self,
        chain: usize,
        entries: impl Iterator<Item = (usize, EntryKey<'v>)>,
        bytes_left: &mut u64,
    ) -> Result<Lookups<'v>, StorageError> {
        let chains = self.sections.chains();
        let mut begun: Vec<Lookup<'v>> = Vec::new();
        for (index, entry) in entries {
            if *bytes_left == 0 && index > 0 {
                return Ok(Lookups { begun, end: index });
            }
            let Some(section) = section_to_read(chains, chain, entry)? else {
                continue;
            };
            let number = section.block_of(entry.key, entry.id)?;
            let block = match begun.last() {
                Some(last) if last.block.number == number && Arc::ptr_eq(last.section, section) => {
                    last.block.clone()
                }
                Some(_) => match section.cached_data_block(number) {
                    Some(block) => block,
                    None => return Ok(Lookups { begun, end: index }),
                },
                None => section.data_block(number)?,
            };
            *bytes_left = bytes_left.saturating_sub(block.bytes.len() as u64);
            begun.push(Lookup {
                index,
                entry,
                section,
                block,
            });
        }
        Ok(Lookups {
            begun,
            end: usize::MAX,
        })
    }

    /// Looks an entry up in the tail. `None` if the tail has no version of it.
    fn get_in_tail(&self, key: &[u8], id: RecordId) -> Option<EntryVersion> {
        for (place, part) in self.parts.iter().enumerate().rev() {
            let is_own = place >= self.first_own();
            let buffer = part.sorted();
            let first = buffer.lower_bound(key, id);
            let versions = (first..).map_while(|number| Some((number, buffer.get(number)?)));
            let is_there =
                |(_, entry): &(usize, Entry<'_>)| entry.id == id && same_key(entry.key, key);
            for (number, entry) in versions.take_while(is_there) {
                if is_own || entry.position <= self.snapshot {
                    return Some(if entry.deleted {
                        EntryVersion::Tombstone
                    } else {
                        EntryVersion::Payload(buffer.payload(number))
                    });
                }
            }
        }
        None
    }
}

/// Returns the section of a chain that must be read to find an entry. A filter is read first if an
/// older chain may have the entry: one that the younger sections do not have is mostly in the
/// oldest.
fn section_to_read<'c>(
    chains: &'c [Chain],
    number: usize,
    entry: EntryKey<'_>,
) -> Result<Option<&'c Arc<Section>>, StorageError> {
    let (older, rest) = chains.split_at(number);
    let Some(section) = rest.first().and_then(|chain| section_with(chain, entry)) else {
        return Ok(None);
    };
    let is_oldest = older
        .iter()
        .all(|chain| section_with(chain, entry).is_none());
    let is_read = is_oldest || section.may_contain_entry(entry.key, entry.id)?;
    Ok(is_read.then_some(section))
}

/// Returns the section of a chain that may have an entry key.
fn section_with<'c>(chain: &'c Chain, entry: EntryKey<'_>) -> Option<&'c Arc<Section>> {
    let EntryKey { key, id } = entry;
    let ends_before = |section: &Arc<Section>| section.descriptor().ends_before(key, id);
    let section = chain.get(chain.partition_point(ends_before))?;
    (!section.descriptor().begins_after(key, id)).then_some(section)
}

/// Loads the memory that the lookups read first into the caches of the processor: the restart
/// offsets of the blocks, then the restart intervals.
fn prefetch_intervals(lookups: &[Lookup<'_>]) {
    let offsets = lookups.iter().map(|lookup| lookup.block.bytes.last());
    prefetch::load(offsets.flatten().copied());
    let intervals = lookups.iter().flat_map(|lookup| {
        let Lookup {
            section,
            block,
            entry,
            ..
        } = lookup;
        section.expected_bytes(block, entry.id)
    });
    prefetch::load(intervals.flatten());
}
