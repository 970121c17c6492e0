//! The cache of decompressed blocks.

use foldhash::fast::FixedState;
use quick_cache::Weighter;
use quick_cache::sync::{Cache, DefaultLifecycle};

use super::{Block, BlockAddress, RunId};
use crate::error::StorageError;

/// The approximate memory that the cache needs for an entry, in bytes.
const OVERHEAD_BYTES: u64 = 96;
/// The length of a typical block, in bytes. It determines the size of the cache's tables.
const BLOCK_BYTES: u64 = 32 << 10;

/// Decompressed blocks by address, with their length as weight. Concurrent misses of one block load
/// it once. Hashes are the same in each process, so that simulations are deterministic.
pub(crate) struct BlockCache(Cache<BlockAddress, Block, Bytes, FixedState>);

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
        let (hash, lifecycle) = (FixedState::default(), DefaultLifecycle::default());
        Self(Cache::with(count, bytes_max, Bytes, hash, lifecycle))
    }

    pub fn get_or_load(
        &self,
        address: BlockAddress,
        load: impl FnOnce() -> Result<Block, StorageError>,
    ) -> Result<Block, StorageError> {
        self.0.get_or_insert_with(&address, load)
    }

    /// Returns a block that is in the cache.
    pub fn get(&self, address: BlockAddress) -> Option<Block> {
        self.0.get(&address)
    }

    /// Returns a block without a change of its recency. A merge that peeks therefore does not push
    /// the blocks of queries out of the cache.
    pub fn peek(&self, address: BlockAddress) -> Option<Block> {
        self.0.peek(&address)
    }

    /// Returns `true` if another block probably fits without an eviction: an eighth of the cache is
    /// free.
    pub fn has_room(&self) -> bool {
        let bytes_max = self.0.capacity();
        self.0.weight() < bytes_max - bytes_max / 8
    }

    /// Removes all blocks of a run.
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
