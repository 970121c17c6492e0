//! The heap in the data of a node, and the B-trees in it.
//!
//! ```text
//! first block  offset of the map (2) │ ec │ kind (1) │ root item (4) │ … │ items │ map
//! others       offset of the map (2) │ … │ items │ map
//! map          number of items (2) │ free ones (2) │ offsets of the items (2 each) │ end of the last
//! item id      0 (5 bits) │ number in the block, from 1 (11 or 14 bits) │ block
//! tree         b5 │ bytes of a key (1) │ bytes of a value (1) │ levels (1) │ item of the root (4)
//! branch       first key │ item (4);  leaf: key │ value
//! ```

use super::damaged;
use super::file::DataFile;
use super::index::BlockId;
use crate::error::ExtractError;
use crate::extractors::bytes::{u8_at, u16_at, u32_at};

const SIGNATURE: u8 = 0xec;
const TREE_SIGNATURE: u8 = 0xb5;
const TREE_LEVELS_MAX: u8 = 8;
const ITEM_ID_BYTES: usize = 4;
/// The maximum size of a heap. Longer values are in subnodes.
const HEAP_BYTES_MAX: u64 = 64 << 20;
/// The maximum number of branches that are followed in a tree.
const BRANCHES_MAX: usize = 100_000;

/// The kind of a heap.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum HeapKind {
    Properties = 0xbc,
    Table = 0x7c,
}

/// The identifier of an item. 0 is none.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct ItemId(pub(super) u32);

pub(super) struct Heap {
    blocks: Vec<Vec<u8>>,
    item_bits: u32,
    pub(super) root: ItemId,
}

impl Heap {
    pub(super) fn read(
        file: &mut DataFile<'_>,
        data: BlockId,
        kind: HeapKind,
    ) -> Result<Self, ExtractError> {
        let blocks = file.read_blocks(data, HEAP_BYTES_MAX)?;
        let first = blocks.first().map(Vec::as_slice).unwrap_or_default();
        let root = u32_at(first, 4).map(ItemId);
        let is_right = u8_at(first, 2) == Some(SIGNATURE) && u8_at(first, 3) == Some(kind as u8);
        match root {
            Some(root) if is_right => Ok(Heap {
                item_bits: file.layout.heap_item_bits,
                blocks,
                root,
            }),
            _ => Err(damaged("a node has a wrong signature")),
        }
    }

    /// Returns an item.
    pub(super) fn item(&self, id: ItemId) -> Option<&[u8]> {
        let block = self.blocks.get((id.0 >> (5 + self.item_bits)) as usize)?;
        let number = ((id.0 >> 5) & ((1 << self.item_bits) - 1)) as usize;
        let map = block.get(usize::from(u16_at(block, 0)?)..)?;
        let is_item = number > 0 && number <= usize::from(u16_at(map, 0)?);
        let offset = |number: usize| Some(usize::from(u16_at(map, 2 + 2 * number)?));
        let bytes = block.get(offset(number)?..offset(number + 1)?)?;
        is_item.then_some(bytes)
    }

    /// Returns the entries of a tree: keys with their values.
    pub(super) fn tree_entries(
        &self,
        tree: ItemId,
        key_bytes: usize,
        entries_max: usize,
    ) -> Result<Vec<&[u8]>, ExtractError> {
        let invalid = || damaged("a list of a node is invalid");
        let header = self.item(tree).ok_or_else(invalid)?;
        let sizes = (u8_at(header, 1), u8_at(header, 2), u8_at(header, 3));
        let (Some(keys), Some(values), Some(levels)) = sizes else {
            return Err(invalid());
        };
        let is_right = u8_at(header, 0) == Some(TREE_SIGNATURE) && usize::from(keys) == key_bytes;
        if !is_right || levels > TREE_LEVELS_MAX {
            return Err(invalid());
        }
        let root = ItemId(u32_at(header, 4).ok_or_else(invalid)?);
        let mut items = vec![root];
        for _ in 0..levels {
            let mut children = Vec::new();
            for branch in items {
                let entries = self.item(branch).ok_or_else(invalid)?;
                let entries = entries.chunks_exact(key_bytes + ITEM_ID_BYTES);
                for entry in entries {
                    children.push(ItemId(u32_at(entry, key_bytes).ok_or_else(invalid)?));
                }
                if children.len() > BRANCHES_MAX {
                    return Err(invalid());
                }
            }
            items = children;
        }
        let mut all = Vec::new();
        for leaf in items.into_iter().filter(|leaf| leaf.0 != 0) {
            let entries = self.item(leaf).ok_or_else(invalid)?;
            all.extend(entries.chunks_exact((key_bytes + usize::from(values)).max(1)));
            if all.len() > entries_max {
                return Err(invalid());
            }
        }
        Ok(all)
    }
}
