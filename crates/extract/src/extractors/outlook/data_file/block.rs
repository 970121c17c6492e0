//! Blocks, and the trees of blocks that contain longer data and the subnodes of a node.
//!
//! ```text
//! block     data │ filled to a multiple of 64 bytes, with the trailer: bytes (2) │ signature (2) │
//!           checksum (4), identifier, in the order of the version
//! data      1 │ level: 1, 2 │ number (2) │ bytes (4) │ identifiers of blocks, of the level below
//! subnodes  2 │ level: 0 │ number (2) │ filler │ entries: node │ block of its data │ of its subnodes
//!           2 │ level: 1 │ number (2) │ filler │ entries: first node │ block
//! ```

use std::collections::BTreeMap;
use std::io::Read;

use flate2::read::ZlibDecoder;

use super::checksum::checksum;
use super::damaged;
use super::file::DataFile;
use super::index::{BlockId, Node, NodeId};
use crate::error::{ExtractError, Limit};
use crate::extractors::bytes::{slice_at, u8_at, u16_at, u32_at};

/// The first byte of an internal block.
const DATA_TREE: u8 = 1;
const SUBNODES: u8 = 2;
const DATA_HEADER_BYTES: usize = 8;
const DATA_LEVELS_MAX: u8 = 2;
/// The minimum size of a block.
const BLOCK_BYTES_MIN: usize = 64;
/// The maximum number of subnodes of a node.
const SUBNODES_MAX: usize = 100_000;

/// The subnodes of a node.
pub(super) type Subnodes = BTreeMap<NodeId, Node>;

impl DataFile<'_> {
    /// Reads and decodes a block. If the checksum is wrong, the damage is recorded and the data is
    /// used.
    fn read_block(&mut self, id: BlockId) -> Result<Vec<u8>, ExtractError> {
        let layout = self.layout;
        let entry = self.find_block(id)?;
        let all_bytes =
            (entry.bytes + layout.block_trailer_bytes).next_multiple_of(layout.block_alignment);
        let mut data = self.read_at(entry.position, all_bytes)?;
        let trailer = data.split_off(all_bytes - layout.block_trailer_bytes);
        data.truncate(entry.bytes);
        let stored_id = layout.word_at(&trailer, layout.block_id_offset);
        if stored_id.map(|id| BlockId(id).key()) != Some(id.key()) {
            return Err(damaged("a block is not where it should be"));
        }
        let stored = u32_at(&trailer, layout.block_checksum_offset);
        if stored != Some(0) && stored != Some(checksum(&data)) {
            self.record_damage(damaged("the checksum of a block is wrong"));
        }
        let expanded_bytes = layout
            .expanded_bytes_offset
            .and_then(|offset| u16_at(&trailer, offset))
            .map(usize::from);
        if let Some(bytes) = expanded_bytes.filter(|bytes| *bytes != 0 && *bytes != data.len()) {
            data = expand(&data, bytes)?;
        }
        if !id.is_internal() {
            self.cipher.decode(&mut data, id.0);
        }
        Ok(data)
    }

    /// Reads the blocks of the data of a node or subnode, at most `bytes_max` bytes.
    pub(super) fn read_blocks(
        &mut self,
        id: BlockId,
        bytes_max: u64,
    ) -> Result<Vec<Vec<u8>>, ExtractError> {
        let mut blocks = Vec::new();
        let mut rest = bytes_max;
        if id.0 != 0 {
            self.append_blocks(id, DATA_LEVELS_MAX + 1, &mut rest, &mut blocks)
                .map_err(|error| match error {
                    ExtractError::Limit { limit, .. } => ExtractError::limit(limit, bytes_max),
                    error => error,
                })?;
        }
        Ok(blocks)
    }

    /// Like [`DataFile::read_blocks`], concatenated.
    pub(super) fn read_data(
        &mut self,
        id: BlockId,
        bytes_max: u64,
    ) -> Result<Vec<u8>, ExtractError> {
        let mut blocks = self.read_blocks(id, bytes_max)?;
        Ok(match blocks.len() {
            1 => blocks.pop().unwrap_or_default(),
            _ => blocks.concat(),
        })
    }

    fn append_blocks(
        &mut self,
        id: BlockId,
        level_end: u8,
        rest: &mut u64,
        blocks: &mut Vec<Vec<u8>>,
    ) -> Result<(), ExtractError> {
        let block = self.read_block(id)?;
        // Empty blocks are counted as well: a damaged tree can refer to one block millions of
        // times.
        let Some(left) = rest.checked_sub(block.len().max(BLOCK_BYTES_MIN) as u64) else {
            return Err(ExtractError::limit(Limit::InputSize, 0));
        };
        *rest = left;
        if !id.is_internal() {
            blocks.push(block);
            return Ok(());
        }
        let level = u8_at(&block, 1).unwrap_or_default();
        if u8_at(&block, 0) != Some(DATA_TREE) || level == 0 || level >= level_end {
            return Err(damaged("a tree of blocks has a wrong block"));
        }
        let count = u16_at(&block, 2).map_or(0, usize::from);
        for number in 0..count {
            let ids = block.get(DATA_HEADER_BYTES..).unwrap_or_default();
            let child = self.layout.word(ids, number);
            let child = child.ok_or_else(|| damaged("a tree of blocks is cut off"))?;
            self.append_blocks(BlockId(child), level, rest, blocks)?;
        }
        Ok(())
    }

    /// Reads the list of the subnodes of a node.
    pub(super) fn read_subnodes(&mut self, node: Node) -> Result<Subnodes, ExtractError> {
        let mut subnodes = Subnodes::new();
        if node.subnodes.0 != 0 {
            self.append_subnodes(node.subnodes, true, &mut subnodes)?;
        }
        Ok(subnodes)
    }

    fn append_subnodes(
        &mut self,
        id: BlockId,
        may_branch: bool,
        subnodes: &mut Subnodes,
    ) -> Result<(), ExtractError> {
        let block = self.read_block(id)?;
        let level = u8_at(&block, 1).unwrap_or(u8::MAX);
        if u8_at(&block, 0) != Some(SUBNODES) || level > u8::from(may_branch) {
            return Err(damaged("a list of subnodes has a wrong block"));
        }
        let header_bytes = if self.layout.is_wide() { 8 } else { 4 };
        let words = if level == 0 { 3 } else { 2 };
        let entries = block.get(header_bytes..).unwrap_or_default();
        for number in 0..u16_at(&block, 2).map_or(0, usize::from) {
            let word = |at| self.layout.word(entries, number * words + at);
            let (Some(node_id), Some(block_id)) = (word(0), word(1)) else {
                return Err(damaged("a list of subnodes is cut off"));
            };
            if subnodes.len() >= SUBNODES_MAX {
                return Err(damaged("a node has too many subnodes"));
            }
            if level > 0 {
                self.append_subnodes(BlockId(block_id), false, subnodes)?;
                continue;
            }
            let node = Node {
                data: BlockId(block_id),
                subnodes: BlockId(word(2).unwrap_or_default()),
            };
            subnodes.insert(NodeId(node_id as u32), node);
        }
        Ok(())
    }
}

/// Decompresses a block.
fn expand(compressed: &[u8], bytes: usize) -> Result<Vec<u8>, ExtractError> {
    let mut expanded = Vec::with_capacity(bytes);
    let mut reader = ZlibDecoder::new(compressed).take(bytes as u64);
    let read = reader.read_to_end(&mut expanded);
    read.map_err(|_| damaged("a compressed block is invalid"))?;
    match slice_at(&expanded, 0, bytes) {
        Some(_) => Ok(expanded),
        None => Err(damaged("a compressed block is cut off")),
    }
}
