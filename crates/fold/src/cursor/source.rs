//! One sorted source of entries: a chain of sections, or a chunk.

use std::sync::Arc;

use bytes::Bytes;
use windrow_invariant::Bug;
use windrow_storage::{Block, Caching, Position, StorageError};

use crate::chunk::Chunk;
use crate::entry::{Direction, Entry, EntryKey, RecordId};
use crate::layout::Layout;
use crate::section::Section;
use crate::sections::Chain;
use crate::stretch::Stretch;

/// A place in a sorted source. Versions of one place are always met newest first, in both
/// directions: going backward, a run of versions is entered at its newest.
#[derive(Debug)]
pub struct Source {
    kind: Kind,
    direction: Direction,
    /// The entry's number among those at hand; None at the end.
    at: Option<usize>,
    /// Going backward: the run of versions that `at` is in, first and last number.
    run: (usize, usize),
}

#[derive(Debug)]
enum Kind {
    Chunk(Arc<Chunk>),
    Chain(Box<ChainPlace>),
}

/// So many keys and payloads of a chunk are fetched from memory together.
const TOUCHED: usize = 16;

/// How much of a stretch is decoded at once.
#[derive(Clone, Copy, Debug)]
enum Decoded {
    /// All of it is likely to be read.
    All,
    /// As much as is likely to be read after a seek.
    Some,
}

/// What is open of a chain: a section, a block, a stretch.
#[derive(Debug)]
struct ChainPlace {
    chain: Chain,
    section: usize,
    block: usize,
    bytes: Option<Block>,
    shared: Option<Bytes>,
    stretch_number: usize,
    stretches: usize,
    stretch: Stretch,
    caching: Caching,
}

impl Source {
    pub fn chain(chain: Chain, direction: Direction, caching: Caching) -> Source {
        debug_assert!(!chain.is_empty(), "a chain without sections");
        let place = ChainPlace {
            chain,
            section: 0,
            block: 0,
            bytes: None,
            shared: None,
            stretch_number: 0,
            stretches: 0,
            stretch: Stretch::default(),
            caching,
        };
        Source::new(Kind::Chain(Box::new(place)), direction)
    }

    pub fn chunk(chunk: Arc<Chunk>, direction: Direction) -> Source {
        Source::new(Kind::Chunk(chunk), direction)
    }

    fn new(kind: Kind, direction: Direction) -> Source {
        Source {
            kind,
            direction,
            at: None,
            run: (0, 0),
        }
    }

    pub fn set_caching(&mut self, caching: Caching) {
        if let Kind::Chain(place) = &mut self.kind {
            place.caching = caching;
        }
    }

    /// No entry is from behind this position of the log, but for what an index build has read ahead, which
    /// younger sources have, too.
    pub fn newest(&self) -> Position {
        match &self.kind {
            Kind::Chunk(chunk) => chunk.pile().newest_position(),
            // By age, as by key.
            Kind::Chain(place) => {
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
            (Some(at), Kind::Chunk(chunk)) => chunk.head(at),
            (Some(at), Kind::Chain(place)) => place.stretch.head(at),
            (None, _) => 0,
        }
    }

    pub fn is_chunk(&self) -> bool {
        matches!(self.kind, Kind::Chunk(_))
    }

    /// The entry that is current, for what cannot be asked at the end.
    #[inline]
    fn standing(&self) -> Result<usize, Bug> {
        self.at.ok_or_else(at_end)
    }

    #[inline]
    fn get(&self, number: usize) -> Option<Entry<'_>> {
        match &self.kind {
            Kind::Chunk(chunk) => chunk.get(number),
            Kind::Chain(place) => place.stretch.get(place.bytes.as_ref()?, number),
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
            Kind::Chunk(chunk) => Some(chunk.payload(at)),
            Kind::Chain(place) => match place.stretch.payload_range(at) {
                Some(range) => Some(place.shared_block()?.slice(range)),
                None => {
                    let entry = place.stretch.get(place.bytes.as_ref()?, at)?;
                    Some(Bytes::copy_from_slice(entry.payload))
                }
            },
        }
    }

    fn len(&self) -> usize {
        match &self.kind {
            Kind::Chunk(chunk) => chunk.len(),
            Kind::Chain(place) => place.stretch.len(),
        }
    }

    /// Goes to the first entry in the source's direction.
    pub fn start(&mut self) -> Result<(), StorageError> {
        match (&mut self.kind, self.direction) {
            (Kind::Chunk(_), _) => {}
            (Kind::Chain(place), Direction::Forward) => place.open_first()?,
            (Kind::Chain(place), Direction::Backward) => place.open_last()?,
        }
        match self.direction {
            Direction::Forward => self.settle_forward(0, Decoded::All),
            Direction::Backward => self.settle_backward(self.len()),
        }
    }

    /// Goes to the first entry at or after a place, or going backward the last at or before.
    pub fn seek(&mut self, key: &[u8], id: RecordId) -> Result<(), StorageError> {
        if let Kind::Chain(place) = &mut self.kind {
            place.open_at(key, id, self.direction)?;
        }
        let backward = self.direction == Direction::Backward;
        let number = match (&self.kind, backward) {
            (Kind::Chunk(chunk), false) => chunk.lower_bound(key, id),
            (Kind::Chunk(chunk), true) => chunk.upper_bound(key, id),
            (Kind::Chain(place), false) => place.stretch.lower_bound(key, id),
            (Kind::Chain(place), true) => place.stretch.upper_bound(key, id),
        };
        if backward {
            self.settle_backward(number)
        } else {
            self.settle_forward(number, Decoded::Some)
        }
    }

    /// Goes to the first entry of a key. Where it surely has none, it may stand nowhere, without having
    /// looked.
    pub fn seek_key(&mut self, key: &[u8]) -> Result<(), StorageError> {
        if let Kind::Chain(place) = &self.kind
            && !place.may_hold(key)?
        {
            self.at = None;
            return Ok(());
        }
        self.seek(key, RecordId::MIN)
    }

    pub fn advance(&mut self) -> Result<(), StorageError> {
        let at = self.standing()?;
        match self.direction {
            Direction::Forward => self.settle_forward(at + 1, Decoded::All),
            Direction::Backward if at < self.run.1 => {
                self.at = Some(at + 1);
                Ok(())
            }
            Direction::Backward => self.settle_backward(self.run.0),
        }
    }

    /// Goes past the current entry and, as far as they are at hand, all other versions of its place.
    pub fn pass_place(&mut self) -> Result<(), StorageError> {
        let at = self.standing()?;
        match (self.direction, &self.kind) {
            (Direction::Backward, _) => self.settle_backward(self.run.0),
            (Direction::Forward, Kind::Chunk(chunk)) => {
                let behind = chunk.behind_place(at);
                self.settle_forward(behind, Decoded::All)
            }
            (Direction::Forward, Kind::Chain(_)) => {
                let behind = self.behind_at_hand(at, |_| true)?;
                self.settle_forward(behind, Decoded::All)
            }
        }
    }

    /// Goes past the current entry, which is newer than a snapshot, and further versions of its place that
    /// are.
    pub fn pass_newer(&mut self, snapshot: Position) -> Result<(), StorageError> {
        let at = self.standing()?;
        let next = match &self.kind {
            Kind::Chunk(chunk) => chunk.behind_newer(at, snapshot),
            Kind::Chain(_) => self.behind_at_hand(at, |entry| entry.position > snapshot)?,
        };
        match self.direction {
            Direction::Forward => self.settle_forward(next, Decoded::All),
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
        let goes_on = |next: &usize| {
            let next = self.get(*next);
            next.is_some_and(|next| next.same_place(&entry) && holds(&next))
        };
        let behind = (at + 1..self.len()).find(|next| !goes_on(next));
        Ok(behind.unwrap_or(self.len()))
    }

    /// Stands on entry `number`, or on the first of what follows.
    fn settle_forward(&mut self, mut number: usize, next: Decoded) -> Result<(), StorageError> {
        while number >= self.len() {
            let more = match &mut self.kind {
                Kind::Chunk(_) => false,
                Kind::Chain(place) => place.open_next(next)?,
            };
            if !more {
                self.at = None;
                return Ok(());
            }
            number = 0;
        }
        self.stand_on(number);
        Ok(())
    }

    /// Stands on the run of versions that ends before entry `end`, or on the last of what precedes.
    fn settle_backward(&mut self, mut end: usize) -> Result<(), StorageError> {
        while end == 0 {
            let more = match &mut self.kind {
                Kind::Chunk(_) => false,
                Kind::Chain(place) => place.open_previous()?,
            };
            if !more {
                self.at = None;
                return Ok(());
            }
            end = self.len();
        }
        let last = end - 1;
        let mut first = last;
        if let Kind::Chunk(chunk) = &self.kind {
            first = chunk.first_of_place(last);
        }
        while first > 0 && self.same_place(first - 1, last)? {
            first -= 1;
        }
        self.run = (first, last);
        self.stand_on(first);
        Ok(())
    }

    fn same_place(&self, one: usize, other: usize) -> Result<bool, Bug> {
        let entries = self.get(one).zip(self.get(other));
        let (one, other) = entries.ok_or_else(at_end)?;
        Ok(one.same_place(&other))
    }

    fn stand_on(&mut self, number: usize) {
        self.at = Some(number);
        if let Kind::Chunk(chunk) = &self.kind
            && number.is_multiple_of(TOUCHED)
            && self.direction == Direction::Forward
        {
            let ahead = |groups: usize| number + groups * TOUCHED..number + (groups + 1) * TOUCHED;
            chunk.pile().touch_keys(ahead(2));
            chunk.pile().touch_payloads(ahead(1));
        }
    }
}

impl ChainPlace {
    fn may_hold(&self, key: &[u8]) -> Result<bool, StorageError> {
        for section in self.chain.iter() {
            if section.may_hold(key)? {
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

    /// Opens a block of the open section, and of it a stretch: the one that `choose` names of so
    /// many.
    fn open(
        &mut self,
        block: usize,
        decoded: Decoded,
        choose: impl FnOnce(&Layout<'_>) -> Option<usize>,
    ) -> Result<(), StorageError> {
        let section = self.open_section()?;
        let bytes = self.enter_block(&section, block, choose)?;
        let number = self.stretch_number;
        match decoded {
            Decoded::All => section.decode(&bytes, block, number, &mut self.stretch)?,
            Decoded::Some => {
                let first = EntryKey::first_of(b"");
                section.decode_from(&bytes, block, number, first, &mut self.stretch)?;
            }
        }
        self.bytes = Some(bytes);
        Ok(())
    }

    /// As [`open`](Self::open) where a place is or would be, and no more of it than is likely to be read.
    fn open_from(&mut self, block: usize, key: &[u8], id: RecordId) -> Result<(), StorageError> {
        let section = self.open_section()?;
        let bytes = self.enter_block(&section, block, |layout| layout.stretch_of(key, id))?;
        let (number, place) = (self.stretch_number, EntryKey::new(key, id));
        section.decode_from(&bytes, block, number, place, &mut self.stretch)?;
        self.bytes = Some(bytes);
        Ok(())
    }

    /// A block of a section, which is the open one now; the stretch is chosen.
    fn enter_block(
        &mut self,
        section: &Section,
        block: usize,
        choose: impl FnOnce(&Layout<'_>) -> Option<usize>,
    ) -> Result<Block, StorageError> {
        let bytes = match self.bytes.take() {
            Some(bytes) if self.block == block && self.stretches > 0 => bytes,
            _ => {
                self.shared = None;
                section.read(block, self.caching)?
            }
        };
        let layout = section.layout(&bytes, block)?;
        let stretch = choose(&layout).ok_or_else(|| section.senseless_block(block))?;
        (self.block, self.stretches, self.stretch_number) = (block, layout.stretches(), stretch);
        Ok(bytes)
    }

    /// Forgets the open block, since the section changes.
    fn enter_section(&mut self, section: usize) {
        self.section = section;
        (self.bytes, self.shared, self.stretches) = (None, None, 0);
        self.stretch.clear();
    }

    fn open_first(&mut self) -> Result<(), StorageError> {
        self.enter_section(0);
        self.open(0, Decoded::All, |_| Some(0))
    }

    fn open_last(&mut self) -> Result<(), StorageError> {
        self.enter_section(self.chain.len().saturating_sub(1));
        self.open_last_block()
    }

    /// Opens the last stretch of the open section.
    fn open_last_block(&mut self) -> Result<(), StorageError> {
        let blocks = self.open_section()?.block_count()?;
        self.open(blocks.saturating_sub(1), Decoded::All, last_stretch)
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
            Direction::Backward => {
                self.open(block, Decoded::All, |layout| layout.stretch_of(key, id))
            }
        }
    }

    /// Whether the place, or what comes next behind it, is in what is left of the open stretch, which
    /// stands there now.
    fn go_on_from(&mut self, key: &[u8], id: RecordId) -> bool {
        let Some(bytes) = &self.bytes else {
            return false;
        };
        self.stretch.go_on_from(bytes, key, id).is_some() && !self.stretch.is_empty()
    }

    /// Opens what follows what is decoded; false at the end of the chain.
    fn open_next(&mut self, decoded: Decoded) -> Result<bool, StorageError> {
        let Some(section) = self.section_here() else {
            return Ok(false);
        };
        if let Some(bytes) = &self.bytes {
            let more = self.stretch.decode_next(bytes);
            if more.ok_or_else(|| section.senseless_block(self.block))? {
                return Ok(true);
            }
        }
        if self.stretch_number + 1 < self.stretches {
            let next = self.stretch_number + 1;
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

    /// Opens what precedes the open stretch; false at the start of the chain.
    fn open_previous(&mut self) -> Result<bool, StorageError> {
        if self.stretch_number > 0 {
            let previous = self.stretch_number - 1;
            self.open(self.block, Decoded::All, |_| Some(previous))?;
        } else if self.block > 0 {
            self.open(self.block - 1, Decoded::All, last_stretch)?;
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

fn last_stretch(layout: &Layout<'_>) -> Option<usize> {
    Some(layout.stretches().saturating_sub(1))
}
