//! One sorted source of entries: a chain of sections, or a buffer.

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

/// A place in a sorted source. Versions of one place are always met newest first, in both
/// directions: going backward, a run of versions is entered at its newest.
#[derive(Debug)]
pub struct EntrySource {
    kind: SourceKind,
    direction: Direction,
    /// The entry's number among those at hand; None at the end.
    at: Option<usize>,
    /// Going backward: the run of versions that `at` is in, first and last number.
    run: (usize, usize),
}

#[derive(Debug)]
enum SourceKind {
    SortedBuffer(Arc<SortedBuffer>),
    Chain(Box<ChainReader>),
}

/// So many keys and payloads of a buffer are fetched from memory together.
const PREFETCHED: usize = 16;

/// How much of a interval is decoded at once.
#[derive(Clone, Copy, Debug)]
enum DecodeAmount {
    /// All of it is likely to be read.
    All,
    /// As much as is likely to be read after a seek.
    Some,
}

/// What is open of a chain: a section, a block, a interval.
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
        EntrySource::new(SourceKind::SortedBuffer(buffer), direction)
    }

    fn new(kind: SourceKind, direction: Direction) -> EntrySource {
        EntrySource {
            kind,
            direction,
            at: None,
            run: (0, 0),
        }
    }

    pub fn set_caching(&mut self, caching: Caching) {
        if let SourceKind::Chain(place) = &mut self.kind {
            place.caching = caching;
        }
    }

    /// No entry is from behind this position of the log, but for what an index build has read ahead, which
    /// younger sources have, too.
    pub fn newest(&self) -> Position {
        match &self.kind {
            SourceKind::SortedBuffer(buffer) => buffer.buffer().newest_position(),
            // By age, as by key.
            SourceKind::Chain(place) => {
                let last = place.chain.last();
                last.map_or(Position::ZERO, |section| section.descriptor().position)
            }
        }
    }

    /// Goes behind everything.
    pub fn end(&mut self) {
        self.at = None;
    }

    pub fn has_entry(&self) -> bool {
        self.at.is_some()
    }

    /// The first bytes of the current key as a number; 0 at the end.
    #[inline]
    pub fn head(&self) -> u128 {
        match (self.at, &self.kind) {
            (Some(at), SourceKind::SortedBuffer(buffer)) => buffer.head(at),
            (Some(at), SourceKind::Chain(place)) => place.interval.head(at),
            (None, _) => 0,
        }
    }

    pub fn is_chunk(&self) -> bool {
        matches!(self.kind, SourceKind::SortedBuffer(_))
    }

    /// The entry that is current, for what cannot be asked at the end.
    #[inline]
    fn current_index(&self) -> Result<usize, Bug> {
        self.at.ok_or_else(at_end)
    }

    #[inline]
    fn get(&self, number: usize) -> Option<Entry<'_>> {
        match &self.kind {
            SourceKind::SortedBuffer(buffer) => buffer.get(number),
            SourceKind::Chain(place) => place.interval.get(place.bytes.as_ref()?, number),
        }
    }

    #[inline]
    pub fn current(&self) -> Option<Entry<'_>> {
        self.get(self.at?)
    }

    /// The current payload as a view that outlives the source; None at the end.
    pub fn payload_bytes(&mut self) -> Option<Bytes> {
        let at = self.at?;
        match &mut self.kind {
            SourceKind::SortedBuffer(buffer) => Some(buffer.payload(at)),
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
            SourceKind::SortedBuffer(buffer) => buffer.len(),
            SourceKind::Chain(place) => place.interval.len(),
        }
    }

    /// Goes to the first entry in the source's direction.
    pub fn start(&mut self) -> Result<(), StorageError> {
        match (&mut self.kind, self.direction) {
            (SourceKind::SortedBuffer(_), _) => {}
            (SourceKind::Chain(place), Direction::Forward) => place.open_first()?,
            (SourceKind::Chain(place), Direction::Backward) => place.open_last()?,
        }
        match self.direction {
            Direction::Forward => self.settle_forward(0, DecodeAmount::All),
            Direction::Backward => self.settle_backward(self.len()),
        }
    }

    /// Goes to the first entry at or after a place, or going backward the last at or before.
    pub fn seek(&mut self, key: &[u8], id: RecordId) -> Result<(), StorageError> {
        if let SourceKind::Chain(place) = &mut self.kind {
            place.open_at(key, id, self.direction)?;
        }
        let backward = self.direction == Direction::Backward;
        let number = match (&self.kind, backward) {
            (SourceKind::SortedBuffer(buffer), false) => buffer.lower_bound(key, id),
            (SourceKind::SortedBuffer(buffer), true) => buffer.upper_bound(key, id),
            (SourceKind::Chain(place), false) => place.interval.lower_bound(key, id),
            (SourceKind::Chain(place), true) => place.interval.upper_bound(key, id),
        };
        if backward {
            self.settle_backward(number)
        } else {
            self.settle_forward(number, DecodeAmount::Some)
        }
    }

    /// Goes to the first entry of a key. Where it surely has none, it may stand nowhere, without having
    /// looked.
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
            Direction::Forward => self.settle_forward(at + 1, DecodeAmount::All),
            Direction::Backward if at < self.run.1 => {
                self.at = Some(at + 1);
                Ok(())
            }
            Direction::Backward => self.settle_backward(self.run.0),
        }
    }

    /// Goes past the current entry and, as far as they are at hand, all other versions of its place.
    pub fn pass_place(&mut self) -> Result<(), StorageError> {
        let at = self.current_index()?;
        match (self.direction, &self.kind) {
            (Direction::Backward, _) => self.settle_backward(self.run.0),
            (Direction::Forward, SourceKind::SortedBuffer(buffer)) => {
                let behind = buffer.skip_versions(at);
                self.settle_forward(behind, DecodeAmount::All)
            }
            (Direction::Forward, SourceKind::Chain(_)) => {
                let behind = self.behind_at_hand(at, |_| true)?;
                self.settle_forward(behind, DecodeAmount::All)
            }
        }
    }

    /// Goes past the current entry, which is newer than a snapshot, and further versions of its place that
    /// are.
    pub fn pass_newer(&mut self, snapshot: Position) -> Result<(), StorageError> {
        let at = self.current_index()?;
        let next = match &self.kind {
            SourceKind::SortedBuffer(buffer) => buffer.skip_newer(at, snapshot),
            SourceKind::Chain(_) => self.behind_at_hand(at, |entry| entry.position > snapshot)?,
        };
        match self.direction {
            Direction::Forward => self.settle_forward(next, DecodeAmount::All),
            Direction::Backward if next <= self.run.1 => {
                self.at = Some(next);
                Ok(())
            }
            Direction::Backward => self.settle_backward(self.run.0),
        }
    }

    /// The number behind an entry and those of its place behind it of which `holds` is true.
    fn behind_at_hand(&self, at: usize, holds: impl Fn(&Entry<'_>) -> bool) -> Result<usize, Bug> {
        let entry = self.get(at).ok_or_else(at_end)?;
        let should_continue = |next: &usize| {
            let next = self.get(*next);
            next.is_some_and(|next| next.same_entry(&entry) && holds(&next))
        };
        let behind = (at + 1..self.len()).find(|next| !should_continue(next));
        Ok(behind.unwrap_or(self.len()))
    }

    /// Stands on entry `number`, or on the first of what follows.
    fn settle_forward(
        &mut self,
        mut number: usize,
        next: DecodeAmount,
    ) -> Result<(), StorageError> {
        while number >= self.len() {
            let more = match &mut self.kind {
                SourceKind::SortedBuffer(_) => false,
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

    /// Stands on the run of versions that ends before entry `end`, or on the last of what precedes.
    fn settle_backward(&mut self, mut end: usize) -> Result<(), StorageError> {
        while end == 0 {
            let more = match &mut self.kind {
                SourceKind::SortedBuffer(_) => false,
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
        if let SourceKind::SortedBuffer(buffer) = &self.kind {
            first = buffer.first_version(last);
        }
        while first > 0 && self.same_entry(first - 1, last)? {
            first -= 1;
        }
        self.run = (first, last);
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
        if let SourceKind::SortedBuffer(buffer) = &self.kind
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

    /// The open section; None behind the last.
    fn section_here(&self) -> Option<Arc<Section>> {
        self.chain.get(self.section).cloned()
    }

    fn open_section(&self) -> Result<Arc<Section>, Bug> {
        self.section_here().ok_or_else(|| {
            let (section, sections) = (self.section, self.chain.len());
            Bug::new(format!(
                "section {section} of a chain of {sections} is opened"
            ))
        })
    }

    /// Opens a block of the open section, and of it a interval: the one that `choose` names of so
    /// many.
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

    /// As [`open`](Self::open) where a place is or would be, and no more of it than is likely to be read.
    fn open_from(&mut self, block: usize, key: &[u8], id: RecordId) -> Result<(), StorageError> {
        let section = self.open_section()?;
        let bytes = self.enter_block(&section, block, |layout| layout.interval_of(key, id))?;
        let (number, place) = (self.interval_number, EntryKey::new(key, id));
        section.decode_from(&bytes, block, number, place, &mut self.interval)?;
        self.bytes = Some(bytes);
        Ok(())
    }

    /// A block of a section, which is the open one now; the interval is chosen.
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

    /// Forgets the open block, since the section changes.
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

    /// Opens the last interval of the open section.
    fn open_last_block(&mut self) -> Result<(), StorageError> {
        let blocks = self.open_section()?.block_count()?;
        self.open(blocks.saturating_sub(1), DecodeAmount::All, last_stretch)
    }

    fn open_at(
        &mut self,
        key: &[u8],
        id: RecordId,
        direction: Direction,
    ) -> Result<(), StorageError> {
        if direction == Direction::Forward && self.go_on_from(key, id) {
            return Ok(());
        }
        let section = match direction {
            Direction::Forward => self
                .chain
                .partition_point(|section| section.descriptor().ends_before(key, id)),
            Direction::Backward => self
                .chain
                .partition_point(|section| !section.descriptor().begins_after(key, id))
                // Before all of them, the first has nothing to show.
                .saturating_sub(1),
        };
        if section != self.section || section >= self.chain.len() {
            self.enter_section(section);
        }
        // Behind all of them nothing is open, and nothing is shown.
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

    /// Whether the place, or what comes next behind it, is in what is left of the open interval, which
    /// stands there now.
    fn go_on_from(&mut self, key: &[u8], id: RecordId) -> bool {
        let Some(bytes) = &self.bytes else {
            return false;
        };
        self.interval.go_on_from(bytes, key, id).is_some() && !self.interval.is_empty()
    }

    /// Opens what follows what is decoded; false at the end of the chain.
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

    /// Opens what precedes the open interval; false at the start of the chain.
    fn open_previous(&mut self) -> Result<bool, StorageError> {
        if self.interval_number > 0 {
            let previous = self.interval_number - 1;
            self.open(self.block, DecodeAmount::All, |_| Some(previous))?;
        } else if self.block > 0 {
            self.open(self.block - 1, DecodeAmount::All, last_stretch)?;
        } else if self.section > 0 {
            self.enter_section(self.section - 1);
            self.open_last_block()?;
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    /// The open block as shared bytes, made once a block.
    fn shared_block(&mut self) -> Option<&Bytes> {
        let block = self.bytes.as_ref()?;
        let shared = || Bytes::from_owner(block.clone());
        Some(self.shared.get_or_insert_with(shared))
    }
}

#[cold]
fn at_end() -> Bug {
    Bug::new("a source of entries is asked for one behind its end")
}

fn last_stretch(layout: &BlockLayout<'_>) -> Option<usize> {
    Some(layout.intervals().saturating_sub(1))
}
