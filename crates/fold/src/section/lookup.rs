//! Lookups of entries in a section.

use bytes::Bytes;
use windrow_storage::{Block, Caching, Position, StorageError};

use super::Section;
use crate::block_layout::BlockLayout;
use crate::entry::{EntryKey, EntryVersion, RecordId};
use crate::restart_interval::RestartInterval;

/// A data block of a section.
#[derive(Clone, Debug)]
pub(crate) struct DataBlock {
    /// The number of the block in the section.
    pub number: usize,
    /// The content.
    pub bytes: Block,
}

impl Section {
    /// Reads a data block and keeps it in the cache.
    pub(crate) fn data_block(&self, number: usize) -> Result<DataBlock, StorageError> {
        let bytes = self.read(number, Caching::Keep)?;
        Ok(DataBlock { number, bytes })
    }

    /// Returns a data block that is in the cache.
    pub(crate) fn cached_data_block(&self, number: usize) -> Option<DataBlock> {
        let span = self.fences.get()?.address(number)?;
        let bytes = self.runs.cached_block(self.address(span))?;
        Some(DataBlock { number, bytes })
    }

    /// Looks up the version of an entry that is visible at a snapshot, in the block that may have
    /// it. `None` if there is none. `interval` is a reusable buffer.
    pub(crate) fn find_in(
        &self,
        block: DataBlock,
        entry: EntryKey<'_>,
        snapshot: Position,
        interval: &mut RestartInterval,
    ) -> Result<Option<EntryVersion>, StorageError> {
        let undecodable = || self.undecodable_block(block.number);
        let EntryKey { key, id } = entry;
        let within = self.interval_of(&block.bytes, block.number, key, id)?;
        self.decode_one_from(&block, within, entry, interval)?;
        // All versions of an entry are in one interval, the newest first.
        loop {
            for at in interval.lower_bound(key, id)..interval.upper_bound(key, id) {
                let version = interval.get(&block.bytes, at).ok_or_else(undecodable)?;
                if version.position > snapshot {
                    continue;
                }
                if version.deleted {
                    return Ok(Some(EntryVersion::Tombstone));
                }
                let payload = match interval.payload_range(at) {
                    Some(range) => Bytes::from_owner(block.bytes).slice(range),
                    None => Bytes::copy_from_slice(version.payload),
                };
                return Ok(Some(EntryVersion::Payload(payload)));
            }
            let is_over = interval.upper_bound(key, id) < interval.len();
            if is_over || !interval.decode_next(&block.bytes).ok_or_else(undecodable)? {
                return Ok(None);
            }
        }
    }

    /// Returns the restart interval of a block that may have an entry key.
    pub(crate) fn interval_of(
        &self,
        block: &Block,
        number: usize,
        key: &[u8],
        id: RecordId,
    ) -> Result<usize, StorageError> {
        let layout = self.layout(block, number)?;
        let found = if key.is_empty() {
            layout.interval_near(self.expected_interval(&layout, number, id), key, id)
        } else {
            layout.interval_of(key, id)
        };
        found.ok_or_else(|| self.undecodable_block(number))
    }

    /// Returns the first bytes of the restart interval in which an id with the empty key is
    /// expected, and of the next one: a search reads both. `None` if there is no such interval.
    pub(crate) fn expected_bytes(&self, block: &DataBlock, id: RecordId) -> [Option<u8>; 2] {
        let Some(layout) = BlockLayout::read(&block.bytes) else {
            return [None; 2];
        };
        let expected = self.expected_interval(&layout, block.number, id);
        [expected, expected + 1].map(|interval| layout.interval(interval)?.first().copied())
    }

    /// Returns the restart interval in which an id with the empty key would be if the ids were
    /// evenly distributed over the intervals of the block.
    fn expected_interval(&self, layout: &BlockLayout<'_>, number: usize, id: RecordId) -> usize {
        let fence_id = |block| self.fences.get().and_then(|fences| fences.id(block));
        let first = fence_id(number).unwrap_or(RecordId::MIN);
        let end = fence_id(number + 1).unwrap_or(self.descriptor.last_id.next());
        let before = u128::from(id.0.saturating_sub(first.0));
        let ids = u128::from(end.0.saturating_sub(first.0).max(1));
        let intervals = layout.intervals() as u128;
        (before * intervals / ids).min(intervals) as usize
    }
}
