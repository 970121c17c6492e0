//! The sources of key lists: chains of sections and parts of tails, key by key.

use std::sync::Arc;

use windrow_invariant::Bug;
use windrow_postings::{GROUP, Piece};
use windrow_storage::{Block, Caching, Position, StorageError};

use crate::entry::RecordId;
use crate::groups::{self, BlockGroup, GroupForm, RowFormat, take_payload};
use crate::section::Section;
use crate::sorted_buffer::SortedBuffer;
use crate::varint;

#[derive(Debug)]
pub enum KeySource {
    Sections(Box<SectionKeys>),
    Buffer(BufferKeys),
}

impl KeySource {
    /// The current key. `None` at the end.
    pub fn key(&self) -> Option<&[u8]> {
        match self {
            KeySource::Sections(sections) => sections.group.is_some().then_some(&sections.key),
            KeySource::Buffer(buffer) => Some(buffer.buffer.get(buffer.next)?.key),
        }
    }

    /// Returns `true` if the current key is before a limit. The limit must not decrease between
    /// calls.
    #[inline]
    pub fn is_before(&mut self, limit: &[u8]) -> Result<bool, StorageError> {
        match self {
            KeySource::Sections(sections) => sections.is_before(limit),
            KeySource::Buffer(_) => Ok(self.key().is_some_and(|key| key < limit)),
        }
    }

    /// Passes the ids of the current key to `take` and moves behind it.
    pub fn read(&mut self, take: &mut dyn FnMut(&[u64])) -> Result<(), StorageError> {
        match self {
            KeySource::Sections(sections) => loop {
                sections.read_group(take)?;
                if !sections.next_group()? {
                    return Ok(());
                }
            },
            KeySource::Buffer(buffer) => {
                buffer.read(take);
                Ok(())
            }
        }
    }

    /// Returns the number of ids of the current key and moves behind it.
    pub fn count(&mut self) -> Result<u64, StorageError> {
        let mut count = 0;
        match self {
            KeySource::Sections(sections) => loop {
                count += sections.count_group()?;
                if !sections.next_group()? {
                    return Ok(count);
                }
            },
            KeySource::Buffer(buffer) => {
                buffer.read(&mut |ids| count += ids.len() as u64);
                Ok(count)
            }
        }
    }

    /// Returns `true` if the current key has at most `most` entries, as far as that is known
    /// without reading them.
    pub fn has_few(&self, most: u64) -> bool {
        match self {
            KeySource::Sections(sections) => sections.has_few(most),
            KeySource::Buffer(buffer) => buffer.has_few(most),
        }
    }

    /// Moves to the first key that is `key` or greater.
    pub fn seek(&mut self, key: &[u8]) -> Result<(), StorageError> {
        match self {
            KeySource::Sections(sections) => sections.seek(key),
            KeySource::Buffer(buffer) => {
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
    pub fn pass(&mut self) -> Result<(), StorageError> {
        match self {
            KeySource::Sections(sections) => {
                while sections.next_group()? {}
                Ok(())
            }
            KeySource::Buffer(buffer) => {
                buffer.read(&mut |_| ());
                Ok(())
            }
        }
    }
}

/// The keys of a chain of sections.
#[derive(Debug)]
pub struct SectionKeys {
    /// The sections in the order of their keys.
    sections: Vec<Arc<Section>>,
    section: usize,
    block: usize,
    bytes: Block,
    /// The offset of the next group, and the end of the last group of the block.
    next: usize,
    end: usize,
    /// The current group. `None` at the end.
    group: Option<BlockGroup>,
    key: Vec<u8>,
    /// All keys of the block are before the limit. `None` if this was not computed yet.
    is_block_before: Option<bool>,
    snapshot: Position,
}

impl SectionKeys {
    /// Opens the chain at the first group whose key is at or after `from`. Fails with a bug if
    /// there are no sections.
    pub fn open(
        sections: Vec<Arc<Section>>,
        from: &[u8],
        snapshot: Position,
    ) -> Result<SectionKeys, StorageError> {
        let Some(first) = sections.first() else {
            return Err(Bug::new("a chain has no sections").into());
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

    /// See [`KeySource::is_before`]. If the next block begins before the limit, no key of this
    /// block is compared.
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

    /// Returns `true` if the separator of the next block shows that all keys of this block are
    /// before a limit.
    fn ends_before(&self, limit: &[u8]) -> Result<bool, StorageError> {
        match self.sections.get(self.section) {
            Some(section) if self.block + 1 < section.block_count()? => {
                Ok(section.separator(self.block + 1)? < limit)
            }
            _ => Ok(false),
        }
    }

    /// Moves to the next group. Returns `true` if it has the same key.
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
        // The last bytes of two keys mostly differ, so they are compared first.
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
            None => Bug::new("a chain was read past its end").into(),
        }
    }

    /// Passes the ids of the group to `take`.
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

    /// Returns `true` if the group has at most `most` entries and the next group of the block has
    /// another key.
    fn has_few(&self, most: u64) -> bool {
        let has_few = match self.group.as_ref().map(|group| group.form) {
            Some(GroupForm::One { .. }) => true,
            Some(GroupForm::Rows(rows)) => rows.count <= most,
            Some(GroupForm::Piece) | None => false,
        };
        if !has_few || self.next >= self.end {
            return false;
        }
        let next = groups::read(&self.bytes, self.next, self.end);
        next.is_some_and(|(next, _)| self.key.get(next.shared..) != Some(next.suffix))
    }

    /// Returns the number of ids of the group.
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

/// Passes the ids of visible rows to `take`. Returns `None` if they are damaged.
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
        let version = if rows.has_versions {
            varint::take(&mut rest)?
        } else {
            0
        };
        if rows.has_payloads {
            take_payload(&mut rest)?;
        }
        let (position, is_deleted) = (Position(version >> 1), version & 1 != 0);
        // The first visible version of a record is the newest.
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

/// Passes the ids of packed postings to `take`. Returns `None` if they are damaged.
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
pub struct BufferKeys {
    buffer: Arc<SortedBuffer>,
    next: usize,
    snapshot: Position,
}

impl BufferKeys {
    /// Reads the keys from `from` on, as a snapshot sees them.
    pub fn new(buffer: Arc<SortedBuffer>, from: &[u8], snapshot: Position) -> BufferKeys {
        BufferKeys {
            next: buffer.lower_bound(from, RecordId::MIN),
            buffer,
            snapshot,
        }
    }

    /// Returns `true` if the current key has at most `most` entries.
    fn has_few(&self, most: u64) -> bool {
        let key = self.buffer.get(self.next).map(|entry| entry.key);
        let behind = self.buffer.get(self.next.saturating_add(most as usize));
        key.is_some() && behind.map(|entry| entry.key) != key
    }

    /// Passes the ids of the current key to `take` and moves behind it.
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
