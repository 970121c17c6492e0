//! The record ids of all keys of a range, key by key.
//!
//! A search for one key costs more than reading the few ids that most keys have. Here the blocks of a
//! range are read once, one after the other:
//!
//! 1. Each section and each part of a tail has a *current* key.
//! 2. The least of these is the key of the [`KeyLists`]. Mostly only one source has it. Then its ids are
//!    decoded where they are, without frequencies and lengths.
//! 3. If several sources have the key, a [`PostingList`](super::PostingList) merges them.

use std::sync::Arc;

use windrow_postings::{GROUP, Piece};
use windrow_storage::{Block, Caching, Position, StorageError};

use super::{END, PostingList};
use crate::entry::{EntryKey, RecordId};
use crate::groups::{self, BlockGroup, GroupForm, RowFormat, take_payload};
use crate::section::Section;
use crate::sorted_buffer::SortedBuffer;
use crate::varint;
use crate::view::View;

/// The keys of a range, each with its record ids. A new one is before the first key.
#[derive(Debug)]
pub struct KeyLists {
    view: View,
    /// Behind the keys of the range.
    to: Vec<u8>,
    sources: Vec<KeySource>,
    key: Vec<u8>,
    holder: Holder,
    /// The least current key of the sources other than the only holder, or the end of the range. It
    /// never decreases.
    limit: Vec<u8>,
}

/// The sources that have the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holder {
    /// None was looked for yet.
    Unknown,
    Only(usize),
    Several,
    /// The ids of the key were read. The only source that has the key has moved behind it.
    Read(Option<usize>),
}

#[derive(Debug)]
enum KeySource {
    Sections(Box<SectionKeys>),
    SortedBuffer(ChunkKeys),
}

impl View {
    /// The keys from `from` up to, without, `to`, with their record ids. The entries of the map must be
    /// postings.
    pub fn key_lists(&self, from: &[u8], to: &[u8]) -> Result<KeyLists, StorageError> {
        let mut sources = Vec::new();
        for chain in self.sections.chains() {
            let met = chain.iter().filter(|section| {
                let descriptor = section.descriptor();
                !descriptor.ends_before(from, RecordId::MIN) && descriptor.first_key.as_slice() < to
            });
            let sections: Vec<Arc<Section>> = met.cloned().collect();
            if !sections.is_empty() {
                let keys = SectionKeys::open(sections, from, self.snapshot)?;
                sources.push(KeySource::Sections(Box::new(keys)));
            }
        }
        let first_own = self.parts.len() - self.own_parts;
        for (number, part) in self.parts.iter().enumerate() {
            if part.count(EntryKey::first_of(from), EntryKey::first_of(to)) > 0 {
                let buffer = part.sorted().clone();
                sources.push(KeySource::SortedBuffer(ChunkKeys {
                    next: buffer.lower_bound(from, RecordId::MIN),
                    buffer,
                    snapshot: match number >= first_own {
                        true => Position::MAX,
                        false => self.snapshot,
                    },
                }));
            }
        }
        Ok(KeyLists {
            view: self.clone(),
            to: to.to_vec(),
            sources,
            key: Vec::new(),
            holder: Holder::Unknown,
            limit: Vec::new(),
        })
    }
}

impl KeyLists {
    /// Moves to the next key. Returns `false` at the end. A key can be without ids, if all were deleted.
    #[allow(
        clippy::should_implement_trait,
        reason = "an iterator would copy each key"
    )]
    pub fn next(&mut self) -> Result<bool, StorageError> {
        match self.holder {
            Holder::Only(holder) => self.pass(holder)?,
            Holder::Several => self.leave_key()?,
            Holder::Unknown | Holder::Read(_) => {}
        }
        let known = match self.holder {
            Holder::Only(holder) | Holder::Read(Some(holder)) => Some(holder),
            _ => None,
        };
        if let Some(holder) = known
            && let Some(source) = self.sources.get_mut(holder)
            && source.is_before(&self.limit)?
            && let Some(key) = source.key()
        {
            self.key.clear();
            self.key.extend_from_slice(key);
            self.holder = Holder::Only(holder);
            return Ok(true);
        }
        self.find_least();
        if self.holder == Holder::Unknown {
            self.sources.clear();
        }
        Ok(self.holder != Holder::Unknown)
    }

    /// Moves to the first key of the range that is `key` or greater. Does not move if the current key is
    /// there or beyond and its ids were not read. Returns `false` at the end.
    pub fn seek(&mut self, key: &[u8]) -> Result<bool, StorageError> {
        for source in &mut self.sources {
            source.seek(key)?;
        }
        self.find_least();
        if self.holder == Holder::Unknown {
            self.sources.clear();
        }
        Ok(self.holder != Holder::Unknown)
    }

    /// Finds the least current key of the range and its holders.
    fn find_least(&mut self) {
        let keys = self.sources.iter().map(KeySource::key).enumerate();
        let to = self.to.as_slice();
        let keys = keys.map(|(number, key)| (number, key.filter(|key| *key < to)));
        let mut least: Option<(usize, &[u8])> = None;
        let (mut others, mut is_shared): (Option<&[u8]>, bool) = (None, false);
        for (number, key) in keys {
            let Some(key) = key else {
                continue;
            };
            match least {
                Some((_, known)) if key == known => is_shared = true,
                Some((_, known)) if key > known => {
                    others = Some(others.map_or(key, |others| others.min(key)));
                }
                known => {
                    others = known.map(|(_, key)| key);
                    (least, is_shared) = (Some((number, key)), false);
                }
            }
        }
        self.limit = others.unwrap_or(to).to_vec();
        self.holder = match least {
            None => Holder::Unknown,
            Some((number, key)) => {
                self.key.clear();
                self.key.extend_from_slice(key);
                match is_shared {
                    true => Holder::Several,
                    false => Holder::Only(number),
                }
            }
        };
    }

    /// Returns the key.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// Passes on the ids of the key, in increasing order. Call it once for a key.
    pub fn read(&mut self, take: &mut dyn FnMut(&[u64])) -> Result<(), StorageError> {
        match self.holder {
            Holder::Only(holder) => {
                self.move_on(holder, take)?;
                self.holder = Holder::Read(Some(holder));
            }
            Holder::Several => {
                let mut list = self.merged()?;
                let mut id = list.id();
                let mut batch = Vec::with_capacity(GROUP);
                while id != END {
                    batch.push(id.0);
                    if batch.len() == GROUP {
                        take(&batch);
                        batch.clear();
                    }
                    id = list.next();
                }
                list.take_error().map_or(Ok(()), Err)?;
                take(&batch);
                self.leave_key()?;
                self.holder = Holder::Read(None);
            }
            Holder::Unknown | Holder::Read(_) => {}
        }
        Ok(())
    }

    /// Returns how many ids the key has. Call it once for a key, instead of [`read`](Self::read): it does
    /// not unpack ids if the number is known without.
    pub fn count(&mut self) -> Result<u64, StorageError> {
        let mut count = 0;
        match self.holder {
            Holder::Only(holder) => {
                if let Some(source) = self.sources.get_mut(holder) {
                    count = source.count()?;
                }
                self.holder = Holder::Read(Some(holder));
            }
            Holder::Several => match self.merged()?.count() {
                Some(known) => {
                    count = known;
                    self.leave_key()?;
                    self.holder = Holder::Read(None);
                }
                None => self.read(&mut |ids| count += ids.len() as u64)?,
            },
            Holder::Unknown | Holder::Read(_) => {}
        }
        Ok(count)
    }

    fn merged(&self) -> Result<PostingList, StorageError> {
        self.view.postings(&self.key)
    }

    /// Moves a source behind the key.
    fn move_on(&mut self, source: usize, take: &mut dyn FnMut(&[u64])) -> Result<(), StorageError> {
        match self.sources.get_mut(source) {
            Some(source) => source.read(take),
            None => Ok(()),
        }
    }

    /// Moves a source behind the key without reading ids.
    fn pass(&mut self, source: usize) -> Result<(), StorageError> {
        match self.sources.get_mut(source) {
            Some(source) => source.pass(),
            None => Ok(()),
        }
    }

    /// Moves all sources that have the key behind it.
    fn leave_key(&mut self) -> Result<(), StorageError> {
        for source in &mut self.sources {
            if source.key() == Some(&self.key) {
                source.pass()?;
            }
        }
        Ok(())
    }
}

impl KeySource {
    /// The current key. `None` at the end.
    fn key(&self) -> Option<&[u8]> {
        match self {
            KeySource::Sections(sections) => sections.group.is_some().then_some(&sections.key),
            KeySource::SortedBuffer(buffer) => Some(buffer.buffer.get(buffer.next)?.key),
        }
    }

    /// Whether the current key is before a limit, which may not decrease between calls.
    #[inline]
    fn is_before(&mut self, limit: &[u8]) -> Result<bool, StorageError> {
        match self {
            KeySource::Sections(sections) => sections.is_before(limit),
            KeySource::SortedBuffer(_) => Ok(self.key().is_some_and(|key| key < limit)),
        }
    }

    /// Passes on the ids of the current key and moves behind it.
    fn read(&mut self, take: &mut dyn FnMut(&[u64])) -> Result<(), StorageError> {
        match self {
            KeySource::Sections(sections) => loop {
                sections.read_group(take)?;
                if !sections.next_group()? {
                    return Ok(());
                }
            },
            KeySource::SortedBuffer(buffer) => {
                buffer.read(take);
                Ok(())
            }
        }
    }

    /// Returns how many ids the current key has, and moves behind it.
    fn count(&mut self) -> Result<u64, StorageError> {
        let mut count = 0;
        match self {
            KeySource::Sections(sections) => loop {
                count += sections.count_group()?;
                if !sections.next_group()? {
                    return Ok(count);
                }
            },
            KeySource::SortedBuffer(buffer) => {
                buffer.read(&mut |ids| count += ids.len() as u64);
                Ok(count)
            }
        }
    }

    /// Moves to the first key that is `key` or greater.
    fn seek(&mut self, key: &[u8]) -> Result<(), StorageError> {
        match self {
            KeySource::Sections(sections) => sections.seek(key),
            KeySource::SortedBuffer(buffer) => {
                let is_before = buffer
                    .buffer
                    .get(buffer.next)
                    .is_some_and(|it| it.key < key);
                if is_before {
                    buffer.next = buffer.buffer.lower_bound(key, RecordId::MIN);
                }
                Ok(())
            }
        }
    }

    /// Moves behind the current key.
    fn pass(&mut self) -> Result<(), StorageError> {
        match self {
            KeySource::Sections(sections) => {
                while sections.next_group()? {}
                Ok(())
            }
            KeySource::SortedBuffer(buffer) => {
                buffer.read(&mut |_| ());
                Ok(())
            }
        }
    }
}

/// The keys of a chain of sections.
#[derive(Debug)]
struct SectionKeys {
    /// In order of their keys.
    sections: Vec<Arc<Section>>,
    section: usize,
    block: usize,
    bytes: Block,
    /// The offset of the next group, and the offset behind the last group of the block.
    next: usize,
    end: usize,
    /// The group that is current, and its key. `None` at the end.
    group: Option<BlockGroup>,
    key: Vec<u8>,
    /// Whether all keys of the block are before a limit. `None`: it is not known.
    is_block_before: Option<bool>,
    snapshot: Position,
}

impl SectionKeys {
    /// Opens the chain at the first group with this key or a greater one. There must be a section.
    fn open(
        sections: Vec<Arc<Section>>,
        from: &[u8],
        snapshot: Position,
    ) -> Result<SectionKeys, StorageError> {
        let Some(first) = sections.first() else {
            return Err(windrow_invariant::Bug::new("a chain without sections is read").into());
        };
        let block = first.block_of(from, RecordId::MIN)?;
        let mut keys = SectionKeys {
            section: 0,
            block,
            next: 0,
            end: 0,
            bytes: first.read(block, Caching::Keep)?,
            sections,
            group: None,
            key: Vec::new(),
            is_block_before: None,
            snapshot,
        };
        keys.find_in_block(from)?;
        Ok(keys)
    }

    /// Moves to the first group with this key or a greater one.
    fn seek(&mut self, key: &[u8]) -> Result<(), StorageError> {
        if self.group.is_none() || self.key.as_slice() >= key {
            return Ok(());
        }
        if self.is_in_next_blocks(key)? {
            self.open_block_of(key)?;
        }
        self.find_in_block(key)
    }

    /// Returns `true` if a block behind the open one begins at or before a key.
    fn is_in_next_blocks(&self, key: &[u8]) -> Result<bool, StorageError> {
        match self.sections.get(self.section) {
            Some(section) if self.block + 1 < section.block_count()? => {
                Ok(section.separator(self.block + 1)? <= key)
            }
            _ => Ok(self.section + 1 < self.sections.len()),
        }
    }

    /// Opens the block that a key would be in. It is not before the open one.
    fn open_block_of(&mut self, key: &[u8]) -> Result<(), StorageError> {
        while let Some(section) = self.sections.get(self.section)
            && self.section + 1 < self.sections.len()
            && section.descriptor().ends_before(key, RecordId::MIN)
        {
            self.section += 1;
        }
        if let Some(section) = self.sections.get(self.section) {
            self.block = section.block_of(key, RecordId::MIN)?;
            self.bytes = section.read(self.block, Caching::Keep)?;
            self.is_block_before = None;
        }
        Ok(())
    }

    /// Moves to the first group with this key or a greater one, in the open block or behind it.
    fn find_in_block(&mut self, key: &[u8]) -> Result<(), StorageError> {
        let Some(section) = self.sections.get(self.section) else {
            return Ok(());
        };
        let layout = section.layout(&self.bytes, self.block)?;
        let interval = layout.interval_of(key, RecordId::MIN);
        let start = interval.and_then(|interval| layout.restart(interval));
        self.next = start.ok_or_else(|| section.undecodable_block(self.block))?;
        self.end = layout.groups_end();
        self.next_group()?;
        while self.group.is_some() && self.key.as_slice() < key {
            self.next_group()?;
        }
        Ok(())
    }

    /// See [`KeySource::is_before`]. If the next block begins before the limit, no key of this block is
    /// compared.
    #[inline]
    fn is_before(&mut self, limit: &[u8]) -> Result<bool, StorageError> {
        if self.group.is_none() {
            return Ok(false);
        }
        let is_block_before = match self.is_block_before {
            Some(known) => known,
            None => {
                let known = self.ends_before(limit)?;
                self.is_block_before = Some(known);
                known
            }
        };
        Ok(is_block_before || self.key.as_slice() < limit)
    }

    /// Whether all keys of the block are before a limit, as far as the next block tells.
    fn ends_before(&self, limit: &[u8]) -> Result<bool, StorageError> {
        match self.sections.get(self.section) {
            Some(section) if self.block + 1 < section.block_count()? => {
                Ok(section.separator(self.block + 1)? < limit)
            }
            _ => Ok(false),
        }
    }

    /// Moves to the next group. Returns `true` if it is of the same key.
    #[inline]
    fn next_group(&mut self) -> Result<bool, StorageError> {
        if self.next >= self.end {
            return self.next_block();
        }
        let read = groups::read(&self.bytes, self.next, self.end);
        let (relative, group) = read.ok_or_else(|| self.undecodable())?;
        self.next = group.end;
        let behind = self.key.get(relative.shared..);
        let behind = behind.ok_or_else(|| self.undecodable())?;
        // Mostly the last bytes of two keys differ.
        let is_same = behind.last() == relative.suffix.last() && behind == relative.suffix;
        if !is_same {
            self.key.truncate(relative.shared);
            self.key.extend_from_slice(relative.suffix);
        }
        self.group = Some(group);
        Ok(is_same)
    }

    /// Moves to the first group of the next block, if there is one.
    #[inline(never)]
    fn next_block(&mut self) -> Result<bool, StorageError> {
        self.group = None;
        self.is_block_before = None;
        self.block += 1;
        while let Some(section) = self.sections.get(self.section) {
            if self.block < section.block_count()? {
                self.bytes = section.read(self.block, Caching::Keep)?;
                self.next = 0;
                self.end = section.layout(&self.bytes, self.block)?.groups_end();
                return self.next_group();
            }
            self.section += 1;
            self.block = 0;
        }
        Ok(false)
    }

    fn undecodable(&self) -> StorageError {
        match self.sections.get(self.section) {
            Some(section) => section.undecodable_block(self.block),
            None => windrow_invariant::Bug::new("a chain is read behind its end").into(),
        }
    }

    /// Passes on the ids of the group.
    #[inline]
    fn read_group(&self, take: &mut dyn FnMut(&[u64])) -> Result<(), StorageError> {
        let Some(group) = &self.group else {
            return Ok(());
        };
        let bytes = self.bytes.get(group.start..group.end);
        let read = match group.form {
            GroupForm::One { id, .. } => {
                take(&[id.0]);
                Some(())
            }
            GroupForm::Rows(rows) => bytes.and_then(|it| read_rows(it, rows, self.snapshot, take)),
            GroupForm::Piece => bytes.and_then(|it| read_piece(it, take)),
        };
        read.ok_or_else(|| self.undecodable())
    }

    /// Returns how many ids the group has.
    fn count_group(&self) -> Result<u64, StorageError> {
        let Some(group) = &self.group else {
            return Ok(0);
        };
        match group.form {
            GroupForm::One { .. } => Ok(1),
            GroupForm::Rows(rows) if !rows.has_versions => Ok(rows.count),
            GroupForm::Rows(_) => {
                let mut count = 0;
                self.read_group(&mut |ids| count += ids.len() as u64)?;
                Ok(count)
            }
            GroupForm::Piece => {
                let bytes = self.bytes.get(group.start..group.end);
                let piece = bytes.and_then(Piece::read);
                Ok(piece.ok_or_else(|| self.undecodable())?.len() as u64)
            }
        }
    }
}

/// Passes on the ids of rows that a snapshot sees. Returns `None` if they are damaged.
fn read_rows(
    mut rest: &[u8],
    rows: RowFormat,
    snapshot: Position,
    take: &mut dyn FnMut(&[u64]),
) -> Option<()> {
    let mut ids = [0; GROUP];
    let (mut count, mut id, mut seen) = (0, 0_u64, None);
    for _ in 0..rows.count {
        id = id.checked_add(varint::take(&mut rest)?)?;
        let version = match rows.has_versions {
            true => varint::take(&mut rest)?,
            false => 0,
        };
        if rows.has_payloads {
            take_payload(&mut rest)?;
        }
        let (position, is_deleted) = (Position(version >> 1), version & 1 != 0);
        // Of one record the newest version that the snapshot sees comes first and counts.
        if seen == Some(id) || position > snapshot {
            continue;
        }
        seen = Some(id);
        if !is_deleted {
            *ids.get_mut(count)? = id;
            count += 1;
        }
        if count == GROUP {
            take(&ids);
            count = 0;
        }
    }
    take(ids.get(..count)?);
    Some(())
}

/// Passes on the ids of packed postings. Returns `None` if they are damaged.
fn read_piece(bytes: &[u8], take: &mut dyn FnMut(&[u64])) -> Option<()> {
    let piece = Piece::read(bytes)?;
    let mut ids = [0; GROUP];
    for group in 0..piece.groups() {
        piece.group(group)?.ids(&mut ids)?;
        take(&ids);
    }
    Some(())
}

/// The keys of a buffer.
#[derive(Debug)]
struct ChunkKeys {
    buffer: Arc<SortedBuffer>,
    next: usize,
    snapshot: Position,
}

impl ChunkKeys {
    /// Passes on the ids of the current key and moves behind it.
    fn read(&mut self, take: &mut dyn FnMut(&[u64])) {
        let Some(first) = self.buffer.get(self.next) else {
            return;
        };
        let mut seen = None;
        while let Some(entry) = self.buffer.get(self.next)
            && entry.key == first.key
        {
            self.next += 1;
            if seen == Some(entry.id) || entry.position > self.snapshot {
                continue;
            }
            seen = Some(entry.id);
            if !entry.deleted {
                take(&[entry.id.0]);
            }
        }
    }
}
