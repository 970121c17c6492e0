//! What a reader of a map sees: sections and tail chunks, each list oldest first.

use std::sync::Arc;

use bytes::Bytes;
use windrow_storage::StorageError;

use crate::chunk::Chunk;
use crate::cursor::{Cursor, Direction};
use crate::section::{Section, SectionDescriptor};

/// Sections that follow each other without overlap, in order of their keys: read as one.
pub type Chain = Arc<Vec<Arc<Section>>>;

/// The sections of a map, oldest first, grouped into chains. Immutable: a change makes a new one.
#[derive(Clone, Debug, Default)]
pub struct Sections {
    all: Vec<Arc<Section>>,
    chains: Vec<Chain>,
}

impl Sections {
    /// Sections in any order; the position up to which each has folded tells their age.
    pub fn new(mut all: Vec<Arc<Section>>) -> Sections {
        all.sort_by_key(|section| section.descriptor().position);
        let mut chains: Vec<Vec<Arc<Section>>> = Vec::new();
        for section in &all {
            match chains.last_mut() {
                Some(chain) if chain.last().is_some_and(|last| last.is_before(section)) => {
                    chain.push(section.clone());
                }
                _ => chains.push(vec![section.clone()]),
            }
        }
        Sections {
            all,
            chains: chains.into_iter().map(Arc::new).collect(),
        }
    }

    /// All sections, oldest first.
    pub fn all(&self) -> &[Arc<Section>] {
        &self.all
    }

    /// Chains, oldest first. A younger chain overrides what an older one holds.
    pub fn chains(&self) -> &[Chain] {
        &self.chains
    }

    pub fn descriptors(&self) -> impl Iterator<Item = &SectionDescriptor> {
        self.all.iter().map(|section| section.descriptor())
    }

    /// Bytes in run files.
    pub fn bytes_stored(&self) -> u64 {
        self.descriptors()
            .map(|descriptor| descriptor.bytes_stored)
            .sum()
    }

    /// Entries, with deletions and what they delete.
    pub fn entries(&self) -> u64 {
        self.descriptors()
            .map(|descriptor| descriptor.entries)
            .sum()
    }
}

/// A map at a snapshot.
#[derive(Clone, Debug)]
pub struct View {
    pub sections: Arc<Sections>,
    /// Tail chunks, oldest first; all younger than the sections.
    pub chunks: Vec<Arc<Chunk>>,
    /// Entries after this log position are not seen.
    pub snapshot: u64,
}

impl View {
    /// A cursor before the first entry (after the last, backward).
    pub fn cursor(&self, direction: Direction) -> Cursor {
        Cursor::new(self, direction)
    }

    /// The payload under a key and id, or None.
    pub fn get(&self, key: &[u8], id: u64) -> Result<Option<Bytes>, StorageError> {
        for chunk in self.chunks.iter().rev() {
            let end = chunk.upper_bound(key, id);
            for number in chunk.lower_bound(key, id)..end {
                let Some(entry) = chunk.get(number) else {
                    break;
                };
                if entry.position <= self.snapshot {
                    return Ok((!entry.deleted).then(|| chunk.payload(number)));
                }
            }
        }
        let mut cursor = Cursor::of_sections(self, Direction::Forward);
        cursor.seek(key, id)?;
        let found = cursor.next()? && cursor.id() == id && cursor.key() == key;
        Ok(found.then(|| cursor.payload_bytes()))
    }

    /// The first id that stands under exactly this key, or None. Filters spare most reads.
    pub fn first_id(&self, key: &[u8]) -> Result<Option<u64>, StorageError> {
        let mut cursor = self.cursor_of_key(key)?;
        cursor.seek(key, 0)?;
        let found = cursor.next()? && cursor.key() == key;
        Ok(found.then(|| cursor.id()))
    }

    /// A forward cursor for reading one key: sections whose filters exclude the key are left out.
    pub fn cursor_of_key(&self, key: &[u8]) -> Result<Cursor, StorageError> {
        let mut kept: Vec<Chain> = Vec::new();
        for chain in self.sections.chains() {
            for section in chain.iter() {
                if section.may_hold(key)? {
                    kept.push(Arc::new(vec![section.clone()]));
                }
            }
        }
        Ok(Cursor::of(
            kept.iter(),
            &self.chunks,
            self.snapshot,
            Direction::Forward,
        ))
    }

    /// About how many entries lie between two places (the first included, the second not), from
    /// fences and chunk bounds alone: off by at most a block at each end of each section, and by
    /// what is deleted.
    pub fn count_about(&self, from: (&[u8], u64), to: (&[u8], u64)) -> Result<u64, StorageError> {
        let mut count = 0;
        for section in self.sections.all() {
            count += count_in_section(section, from, to)?;
        }
        for chunk in &self.chunks {
            let (start, end) = (
                chunk.lower_bound(from.0, from.1),
                chunk.lower_bound(to.0, to.1),
            );
            count += end.saturating_sub(start) as u64;
        }
        Ok(count)
    }
}

/// Whole blocks between the places, and half of those at the ends; one block is opened where both
/// places fall into it.
fn count_in_section(
    section: &Section,
    from: (&[u8], u64),
    to: (&[u8], u64),
) -> Result<u64, StorageError> {
    let descriptor = section.descriptor();
    let last = descriptor.last_key.as_deref();
    let ends_before = last.is_some_and(|last| (last, descriptor.last_id) < from);
    if ends_before || to <= (descriptor.first_key.as_slice(), descriptor.first_id) || to <= from {
        return Ok(0);
    }
    let (first, end) = (
        section.block_of(from.0, from.1)?,
        section.block_of(to.0, to.1)?,
    );
    if end - first <= 1 {
        let mut count = 0;
        for block in first..=end {
            count += crate::cursor::count_in_block(section, block, from, to)?;
        }
        return Ok(count);
    }
    let half = |block| Ok::<u64, StorageError>(section.entries_in(block)? / 2);
    let between = section.entries_before(end)? - section.entries_before(first + 1)?;
    Ok(between + half(first)? + half(end)?)
}
