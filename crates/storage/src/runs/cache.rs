use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::{Block, BlockAddress, RunId};
use crate::error::StorageError;

/// What the cache itself needs for a block, about.
const OVERHEAD_BYTES: u64 = 96;
/// Sizes the cache's tables; blocks of ordinary size are about this long.
const BLOCK_BYTES: u64 = 32 << 10;

/// Decompressed blocks by address, weighed by their bytes. Concurrent misses of one block load it
/// once.
pub(crate) struct BlockCache(Cache<BlockAddress, Block, Bytes>);

#[derive(Clone)]
struct Bytes;

impl Weighter<BlockAddress, Block> for Bytes {
    fn weight(&self, _: &BlockAddress, block: &Block) -> u64 {
        block.len() as u64 + OVERHEAD_BYTES
    }
}

impl BlockCache {
    pub fn new(bytes_max: u64) -> Self {
        let count = (bytes_max / BLOCK_BYTES).max(64) as usize;
        Self(Cache::with_weighter(count, bytes_max, Bytes))
    }

    pub fn get_or_load(
        &self,
        address: BlockAddress,
        load: impl FnOnce() -> Result<Block, StorageError>,
    ) -> Result<Block, StorageError> {
        self.0.get_or_insert_with(&address, load)
    }

    /// Does not count as a use.
    pub fn peek(&self, address: BlockAddress) -> Option<Block> {
        self.0.peek(&address)
    }

    /// Whether another block finds place without another one going, about.
    pub fn has_room(&self) -> bool {
        let bytes_max = self.0.capacity();
        self.0.weight() < bytes_max - bytes_max / 8
    }

    pub fn forget(&self, run: RunId) {
        self.0.retain(|address, _| address.run != run);
    }

    pub fn bytes(&self) -> u64 {
        self.0.weight()
    }

    pub fn set_bytes_max(&self, bytes: u64) {
        self.0.set_capacity(bytes);
    }
}
