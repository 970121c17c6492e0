//! The sources of a cursor: chains of sections and sorted buffers.

use std::ops::RangeInclusive;
use std::sync::Arc;

use bytes::Bytes;
use windrow_invariant::Bug;
use windrow_storage::{Block, Caching, Position, StorageError};

use crate::block_layout::BlockLayout;
use crate::entry::{Direction, Entry, EntryKey, RecordId};
use crate::restart_interval::RestartInterval;
use crate::section::Section;
use crate::sections::Chain;
use crate::sorted_buffer::SortedBuffer;

/// A position in a sorted source. Versions of one entry come with the newest first in both
/// directions: a backward source enters the versions of an entry at the newest.
#[derive(Debug)]
pub struct EntrySource {
    kind: SourceKind,
    direction: Direction,
    /// The index of the current entry among the decoded ones. `None` at the end.
    at: Option<usize>,
    /// Backward: the indexes of the versions of the current entry.
    versions: RangeInclusive<usize>,
}

#[derive(Debug)]
enum SourceKind {
    Buffer(Arc<SortedBuffer>),
    Chain(Box<ChainReader>),
}

/// The number of entries whose keys and payloads are prefetched together.
const PREFETCHED: usize = 16;

/// How much of a restart interval is decoded at once.
#[derive(Clone, Copy, Debug)]
enum DecodeAmount {
    /// All of it, for a scan.
    All,
    /// A few entries, for a seek.
    Some,
}

/// The open section, block and restart interval of a chain.
#[derive(Debug)]
struct ChainReader {
    chain: Chain,
    section: usize,
    block: usize,
    bytes: Option<Block>,
    shared: Option<Bytes>,
    interval_number: usize,
    intervals: usize,
    interval: RestartInterval,
    caching: Caching,
}

impl EntrySource {
    pub fn chain(chain: Chain, direction: Direction, caching: Caching) -> EntrySource {
        debug_assert!(!chain.is_empty(), "a chain without sections");
        let place = ChainReader {
            chain,
            section: 0,
            block: 0,
            bytes: None,
            shared: None,
            interval_number: 0,
            intervals: 0,
            interval: RestartInterval::default(),
            caching,
        };
        EntrySource::new(SourceKind::Chain(Box::new(place)), direction)
    }

    pub fn buffer(buffer: Arc<SortedBuffer>, direction: Direction) -> EntrySource {
        EntrySource::new(SourceKind::Buffer(buffer), direction)
    }

    fn new(kind: SourceKind, direction: Direction) -> EntrySource {
        EntrySource {
            kind,
            direction,
            at: None,
            versions: 0..=0,
        }
    }

    pub fn set_caching(&mut self, caching: Caching) {
        if let SourceKind::Chain(place) = &mut self.kind {
            place.caching = caching;
        }
    }

    /// Returns the newest position of the source. An index build may have read entries of later
    /// positions, but younger sources have these, too.
    pub fn newest(&self) -> Position {
        match &self.kind {
            SourceKind::Buffer(buffer) => buffer.buffer().newest_position(),
            // The order of keys is also that of age.
            SourceKind::Chain(place) => {
                let last = place.chain.last();
                last.map_or(Position::ZERO, |section| section.descriptor().position)
            }
        }
    }

    /// Moves behind the last entry.
    pub fn end(&mut self) {
        self.at = None;
    }

    pub fn has_entry(&self) -> bool {
        self.at.is_some()
    }

    /// Returns the head of the current key as a number. 0 at the end.
    #[inline]
    pub fn head(&self) -> u128 {
        match (self.at, &self.kind) {
            (Some(at), SourceKind::Buffer(buffer)) => buffer.head(at),
            (Some(at), SourceKind::Chain(place)) => place.interval.head(at),
            (None, _) => 0,
        }
    }

    pub fn is_buffer(&self) -> bool {
        matches!(self.kind, SourceKind::Buffer(_))
    }

    /// Returns the index of the current entry. Fails with a bug at the end.
    #[inline]
    fn current_index(&self) -> Result<usize, Bug> {
        self.at.ok_or_else(at_end)
    }

    #[inline]
    fn get(&self, number: usize) -> Option<Entry<'_>> {
        match &self.kind {
            SourceKind::Buffer(buffer) => buffer.get(number),
            SourceKind::Chain(place) => place.interval.get(place.bytes.as_ref()?, number),
        }
    }

    #[inline]
    pub fn current(&self) -> Option<Entry<'_>> {
        self.get(self.at?)
    }

    /// Returns the current payload as shared bytes. `None` at the end.
    pub fn payload_bytes(&mut self) -> Option<Bytes> {
        let at = self.at?;
        match &mut self.kind {
            SourceKind::Buffer(buffer) => Some(buffer.payload(at)),
            SourceKind::Chain(place) => match place.interval.payload_range(at) {
                Some(range) => Some(place.shared_block()?.slice(range)),
                None => {
                    let entry = place.interval.get(place.bytes.as_ref()?, at)?;
                    Some(Bytes::copy_from_slice(entry.payload))
                }
            },
        }
    }

    fn len(&self) -> usize {
        match &self.kind {
            SourceKind::Buffer(buffer) => buffer.len(),
            SourceKind::Chain(place) => place.interval.len(),
        }
    }

    /// Moves to the first entry in the source's direction.
    pub fn start(&mut self) -> Result<(), StorageError> {
        match (&mut self.kind, self.direction) {
            (SourceKind::Buffer(_), _) => {}
            (SourceKind::Chain(place), Direction::Forward) => place.open_first()?,
            (SourceKind::Chain(place), Direction::Backward) => place.open_last()?,
        }
        match self.direction {
            Direction::Forward => self.move_forward(0, DecodeAmount::All),
            Direction::Backward => self.move_backward(self.len()),
        }
    }

    /// Moves to the first entry at or after an entry key, or, backward, to the last one at or
    /// before it.
    pub fn seek(&mut self, key: &[u8], id: RecordId) -> Result<(), StorageError> {
        if let SourceKind::Chain(place) = &mut self.kind {
            place.open_at(key, id, self.direction)?;
        }
        let backward = self.direction == Direction::Backward;
        let number = match (&self.kind, backward) {
            (SourceKind::Buffer(buffer), false) => buffer.lower_bound(key, id),
            (SourceKind::Buffer(buffer), true) => buffer.upper_bound(key, id),
            (SourceKind::Chain(place), false) => place.interval.lower_bound(key, id),
            (SourceKind::Chain(place), true) => place.interval.upper_bound(key, id),
        };
        if backward {
            self.move_backward(number)
        } else {
            self.move_forward(number, DecodeAmount::Some)
        }
    }

    /// Moves to the first entry of a key. Ends without a read if the filters exclude the key.
    pub fn seek_key(&mut self, key: &[u8]) -> Result<(), StorageError> {
        if let SourceKind::Chain(place) = &self.kind
            && !place.may_contain(key)?
        {
            self.at = None;
            return Ok(());
        }
        self.seek(key, RecordId::MIN)
    }

    pub fn advance(&mut self) -> Result<(), StorageError> {
        let at = self.current_index()?;
        match self.direction {
            Direction::Forward => self.move_forward(at + 1, DecodeAmount::All),
            Direction::Backward if at < *self.versions.end() => {
                self.at = Some(at + 1);
                Ok(())
            }
            Direction::Backward => self.move_backward(*self.versions.start()),
        }
    }

    /// Skips the current entry and those of its other versions that are decoded.
    pub fn skip_versions(&mut self) -> Result<(), StorageError> {
        let at = self.current_index()?;
        match (self.direction, &self.kind) {
            (Direction::Backward, _) => self.move_backward(*self.versions.start()),
            (Direction::Forward, SourceKind::Buffer(buffer)) => {
                let behind = buffer.skip_versions(at);
                self.move_forward(behind, DecodeAmount::All)
            }
            (Direction::Forward, SourceKind::Chain(_)) => {
                let behind = self.skip_decoded(at, |_| true)?;
                self.move_forward(behind, DecodeAmount::All)
            }
        }
    }

    /// Skips the current entry, which is newer than the snapshot, and those of its other versions
    /// that are.
    pub fn skip_newer(&mut self, snapshot: Position) -> Result<(), StorageError> {
        let at = self.current_index()?;
        let next = match &self.kind {
            SourceKind::Buffer(buffer) => buffer.skip_newer(at, snapshot),
            SourceKind::Chain(_) => self.skip_decoded(at, |entry| entry.position > snapshot)?,
        };
        match self.direction {
            Direction::Forward => self.move_forward(next, DecodeAmount::All),
            Direction::Backward if next <= *self.versions.end() => {
                self.at = Some(next);
                Ok(())
            }
            Direction::Backward => self.move_backward(*self.versions.start()),
        }
    }

    /// Returns the index of the first decoded entry after `at` that is not a version of it or for
    /// which `holds` is false.
    fn skip_decoded(&self, at: usize, holds: impl Fn(&Entry<'_>) -> bool) -> Result<usize, Bug> {
        let entry = self.get(at).ok_or_else(at_end)?;
        let should_continue = |next: &usize| {
            let next = self.get(*next);
            next.is_some_and(|next| next.same_entry(&entry) && holds(&next))
        };
        let behind = (at + 1..self.len()).find(|next| !should_continue(next));
        Ok(behind.unwrap_or(self.len()))
    }

    /// Moves to the entry with this index, or to the first one of what follows.
    fn move_forward(&mut self, mut number: usize, next: DecodeAmount) -> Result<(), StorageError> {
        while number >= self.len() {
            let more = match &mut self.kind {
                SourceKind::Buffer(_) => false,
                SourceKind::Chain(place) => place.open_next(next)?,
            };
            if !more {
                self.at = None;
                return Ok(());
            }
            number = 0;
        }
        self.move_to(number);
        Ok(())
    }

    /// Moves to the versions that end before index `end`, or to the last one of what
    /// precedes.
    fn move_backward(&mut self, mut end: usize) -> Result<(), StorageError> {
        while end == 0 {
            let more = match &mut self.kind {
                SourceKind::Buffer(_) => false,
                SourceKind::Chain(place) => place.open_previous()?,
            };
            if !more {
                self.at = None;
                return Ok(());
            }
            end = self.len();
        }
        let last = end - 1;
        let mut first = last;
        if let SourceKind::Buffer(buffer) = &self.kind {
            first = buffer.first_version(last);
        }
        while first > 0 && self.same_entry(first - 1, last)? {
            first -= 1;
        }
        self.versions = first..=last;
        self.move_to(first);
        Ok(())
    }

    fn same_entry(&self, one: usize, other: usize) -> Result<bool, Bug> {
        let entries = self.get(one).zip(self.get(other));
        let (one, other) = entries.ok_or_else(at_end)?;
        Ok(one.same_entry(&other))
    }

    fn move_to(&mut self, number: usize) {
        self.at = Some(number);
        if let SourceKind::Buffer(buffer) = &self.kind
            && number.is_multiple_of(PREFETCHED)
            && self.direction == Direction::Forward
        {
            let ahead =
                |groups: usize| number + groups * PREFETCHED..number + (groups + 1) * PREFETCHED;
            buffer.buffer().prefetch_keys(ahead(2));
            buffer.buffer().prefetch_payloads(ahead(1));
        }
    }
}

impl ChainReader {
    fn may_contain(&self, key: &[u8]) -> Result<bool, StorageError> {
        for section in self.chain.iter() {
            if section.may_contain(key)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the open section. `None` behind the last one.
    fn section_here(&self) -> Option<Arc<Section>> {
        self.chain.get(self.section).cloned()
    }

    fn open_section(&self) -> Result<Arc<Section>, Bug> {
        self.section_here().ok_or_else(|| {
            let (section, sections) = (self.section, self.chain.len());
            Bug::new(format!(
                "section {section} of a chain of {sections} sections was requested"
            ))
        })
    }

    /// Opens a block of the open section and decodes the restart interval that `choose` selects.
    fn open(
        &mut self,
        block: usize,
        decoded: DecodeAmount,
        choose: impl FnOnce(&BlockLayout<'_>) -> Option<usize>,
    ) -> Result<(), StorageError> {
        let section = self.open_section()?;
        let bytes = self.enter_block(&section, block, choose)?;
        let number = self.interval_number;
        match decoded {
            DecodeAmount::All => section.decode(&bytes, block, number, &mut self.interval)?,
            DecodeAmount::Some => {
                let first = EntryKey::first_of(b"");
                section.decode_from(&bytes, block, number, first, &mut self.interval)?;
            }
        }
        self.bytes = Some(bytes);
        Ok(())
    }

    /// Opens a block of the open section and decodes some entries from an entry key on.
    fn open_from(&mut self, block: usize, key: &[u8], id: RecordId) -> Result<(), StorageError> {
        let section = self.open_section()?;
        let bytes = self.enter_block(&section, block, |layout| layout.interval_of(key, id))?;
        let (number, place) = (self.interval_number, EntryKey::new(key, id));
        section.decode_from(&bytes, block, number, place, &mut self.interval)?;
        self.bytes = Some(bytes);
        Ok(())
    }

    /// Reads a block, unless it is open, and selects a restart interval of it.
    fn enter_block(
        &mut self,
        section: &Section,
        block: usize,
        choose: impl FnOnce(&BlockLayout<'_>) -> Option<usize>,
    ) -> Result<Block, StorageError> {
        let bytes = match self.bytes.take() {
            Some(bytes) if self.block == block && self.intervals > 0 => bytes,
            _ => {
                self.shared = None;
                section.read(block, self.caching)?
            }
        };
        let layout = section.layout(&bytes, block)?;
        let interval = choose(&layout).ok_or_else(|| section.undecodable_block(block))?;
        (self.block, self.intervals, self.interval_number) = (block, layout.intervals(), interval);
        Ok(bytes)
    }

    /// Moves to a section and closes the open block.
    fn enter_section(&mut self, section: usize) {
        self.section = section;
        (self.bytes, self.shared, self.intervals) = (None, None, 0);
        self.interval.clear();
    }

    fn open_first(&mut self) -> Result<(), StorageError> {
        self.enter_section(0);
        self.open(0, DecodeAmount::All, |_| Some(0))
    }

    fn open_last(&mut self) -> Result<(), StorageError> {
        self.enter_section(self.chain.len().saturating_sub(1));
        self.open_last_block()
    }

    /// Opens the last restart interval of the open section.
    fn open_last_block(&mut self) -> Result<(), StorageError> {
        let blocks = self.open_section()?.block_count()?;
        self.open(blocks.saturating_sub(1), DecodeAmount::All, last_interval)
    }

    fn open_at(
        &mut self,
        key: &[u8],
        id: RecordId,
        direction: Direction,
    ) -> Result<(), StorageError> {
        if direction == Direction::Forward && self.continue_from(key, id) {
            return Ok(());
        }
        let section = match direction {
            Direction::Forward => self
                .chain
                .partition_point(|section| section.descriptor().ends_before(key, id)),
            Direction::Backward => self
                .chain
                .partition_point(|section| !section.descriptor().begins_after(key, id))
                // If all sections begin behind the entry key, the first one has nothing to show.
                .saturating_sub(1),
        };
        if section != self.section || section >= self.chain.len() {
            self.enter_section(section);
        }
        // Behind the last section, nothing is shown.
        let Some(section) = self.section_here() else {
            return Ok(());
        };
        let block = section.block_of(key, id)?;
        match direction {
            Direction::Forward => self.open_from(block, key, id),
            Direction::Backward => self.open(block, DecodeAmount::All, |layout| {
                layout.interval_of(key, id)
            }),
        }
    }

    /// Continues in the open restart interval if it may have the entry key. Returns `false` if it
    /// does not.
    fn continue_from(&mut self, key: &[u8], id: RecordId) -> bool {
        let Some(bytes) = &self.bytes else {
            return false;
        };
        self.interval.continue_from(bytes, key, id).is_some() && !self.interval.is_empty()
    }

    /// Decodes what follows the decoded entries. Returns `false` at the end of the chain.
    fn open_next(&mut self, decoded: DecodeAmount) -> Result<bool, StorageError> {
        let Some(section) = self.section_here() else {
            return Ok(false);
        };
        if let Some(bytes) = &self.bytes {
            let more = self.interval.decode_next(bytes);
            if more.ok_or_else(|| section.undecodable_block(self.block))? {
                return Ok(true);
            }
        }
        if self.interval_number + 1 < self.intervals {
            let next = self.interval_number + 1;
            self.open(self.block, decoded, |_| Some(next))?;
        } else if self.block + 1 < section.block_count()? {
            self.open(self.block + 1, decoded, |_| Some(0))?;
        } else if self.section + 1 < self.chain.len() {
            self.enter_section(self.section + 1);
            self.open(0, decoded, |_| Some(0))?;
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    /// Decodes what precedes the open restart interval. Returns `false` at the start of the chain.
    fn open_previous(&mut self) -> Result<bool, StorageError> {
        if self.interval_number > 0 {
            let previous = self.interval_number - 1;
            self.open(self.block, DecodeAmount::All, |_| Some(previous))?;
        } else if self.block > 0 {
            self.open(self.block - 1, DecodeAmount::All, last_interval)?;
        } else if self.section > 0 {
            self.enter_section(self.section - 1);
            self.open_last_block()?;
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    /// Returns the open block as shared bytes. They are created once for a block.
    fn shared_block(&mut self) -> Option<&Bytes> {
        let block = self.bytes.as_ref()?;
        let shared = || Bytes::from_owner(block.clone());
        Some(self.shared.get_or_insert_with(shared))
    }
}

#[cold]
fn at_end() -> Bug {
    Bug::new("an entry past the end of a source was requested")
}

fn last_interval(layout: &BlockLayout<'_>) -> Option<usize> {
    Some(layout.intervals().saturating_sub(1))
}
