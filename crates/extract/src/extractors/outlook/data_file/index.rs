//! The two indexes of a file, which are B-trees of pages: of nodes by their identifiers, and of
//! blocks.
//!
//! ```text
//! page    entries │ number (1 or 2) │ maximum │ bytes of an entry (1) │ level (1) │ trailer
//! branch  first key │ identifier of a page │ its position
//! node    identifier │ block of its data │ block of its subnodes │ parent (4)
//! block   identifier │ position │ bytes (2)
//! ```

use std::rc::Rc;

use super::damaged;
use super::file::DataFile;
use super::page::{Index, Page};
use crate::error::ExtractError;
use crate::extractors::bytes::{u8_at, u16_at, u32_at};

/// The maximum level of an index. With 15 entries per page, 8 levels exceed any file.
const LEVELS_MAX: u8 = 8;

/// The identifier of a node. Its five low bits are its kind.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct NodeId(pub(super) u32);

impl NodeId {
    pub(super) const MESSAGE_STORE: NodeId = NodeId(0x21);
    pub(super) const NAMED_PROPERTIES: NodeId = NodeId(0x61);
    pub(super) const ROOT_FOLDER: NodeId = NodeId(0x122);
    /// The kind of items in folders.
    pub(super) const ITEM: u32 = 0x04;
    pub(super) const ATTACHMENT: u32 = 0x05;
    pub(super) const RECIPIENTS: u32 = 0x12;

    pub(super) fn kind(self) -> u32 {
        self.0 & 0x1f
    }

    /// The number among the nodes of the same kind.
    pub(super) fn number(self) -> u64 {
        u64::from(self.0 >> 5)
    }
}

/// The identifier of a block. 0 means none.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct BlockId(pub(super) u64);

impl BlockId {
    /// The lowest bit is reserved.
    pub(super) fn key(self) -> u64 {
        self.0 & !1
    }

    /// Returns `true` if the block contains block identifiers. Such blocks are not encoded.
    pub(super) fn is_internal(self) -> bool {
        self.0 & 2 != 0
    }
}

/// The content of a node.
#[derive(Clone, Copy)]
pub(super) struct Node {
    pub(super) data: BlockId,
    pub(super) subnodes: BlockId,
}

/// An entry of the index of nodes.
#[derive(Clone, Copy)]
pub(super) struct NodeEntry {
    pub(super) id: NodeId,
    pub(super) node: Node,
    /// The folder of an item or folder.
    pub(super) parent: NodeId,
}

/// An entry of the index of blocks.
#[derive(Clone, Copy)]
pub(super) struct BlockEntry {
    pub(super) position: u64,
    pub(super) bytes: usize,
}

impl DataFile<'_> {
    /// Finds a node.
    pub(super) fn find_node(&mut self, id: NodeId) -> Result<Option<NodeEntry>, ExtractError> {
        let found = self.find(Index::Nodes, u64::from(id.0))?;
        Ok(found.and_then(|(page, number)| self.parse_node(page.entry(number)?)))
    }

    /// Finds a block, which must exist.
    pub(super) fn find_block(&mut self, id: BlockId) -> Result<BlockEntry, ExtractError> {
        let found = self.find(Index::Blocks, id.key())?;
        let entry = found.and_then(|(page, number)| {
            let entry = page.entry(number)?;
            Some(BlockEntry {
                position: self.layout.word(entry, 1)?,
                bytes: u16_at(self.layout.after_words(entry, 2)?, 0)?.into(),
            })
        });
        entry.ok_or_else(|| damaged("a block is not in its index"))
    }

    fn parse_node(&self, entry: &[u8]) -> Option<NodeEntry> {
        let word = |number| self.layout.word(entry, number);
        Some(NodeEntry {
            id: NodeId(word(0)? as u32),
            node: Node {
                data: BlockId(word(1)?),
                subnodes: BlockId(word(2)?),
            },
            parent: NodeId(u32_at(self.layout.after_words(entry, 3)?, 0)?),
        })
    }

    /// Returns the leaf page that contains a key, and the index of its entry there.
    fn find(&mut self, index: Index, key: u64) -> Result<Option<(Rc<Page>, usize)>, ExtractError> {
        let mut page = self.read_page(index, self.root(index), None)?;
        loop {
            let key_of = |number| self.entry_key(index, &page, number);
            let (mut low, mut high) = (0, page.entries);
            while low < high {
                let middle = low + (high - low) / 2;
                if key_of(middle).is_some_and(|found| found <= key) {
                    low = middle + 1;
                } else {
                    high = middle;
                }
            }
            let Some(number) = low.checked_sub(1) else {
                return Ok(None);
            };
            if page.level == 0 {
                let is_found = key_of(number) == Some(key);
                return Ok(is_found.then_some((page, number)));
            }
            page = self.read_child(index, &page, number)?;
        }
    }

    /// Returns the key of an entry: its identifier without reserved bits.
    fn entry_key(&self, index: Index, page: &Page, number: usize) -> Option<u64> {
        let key = self.layout.word(page.entry(number)?, 0)?;
        Some(match index {
            Index::Blocks => BlockId(key).key(),
            Index::Nodes => key & u64::from(u32::MAX),
        })
    }

    fn read_child(
        &mut self,
        index: Index,
        page: &Page,
        number: usize,
    ) -> Result<Rc<Page>, ExtractError> {
        let entry = page.entry(number);
        let position = entry.and_then(|entry| self.layout.word(entry, 2));
        let position = position.ok_or_else(|| damaged("an entry of an index is cut off"))?;
        self.read_page(index, position, Some(page.level))
    }

    /// Reads a page. Its level must be one less than that of the page that refers to it, so there
    /// are no cycles.
    fn read_page(
        &mut self,
        index: Index,
        position: u64,
        parent_level: Option<u8>,
    ) -> Result<Rc<Page>, ExtractError> {
        let page = match self.pages.get(position) {
            Some(page) => page,
            None => {
                let bytes = self.read_at(position, self.layout.page_bytes)?;
                let page = Rc::new(Page::parse(bytes, self.layout)?);
                self.pages.insert(position, Rc::clone(&page));
                page
            }
        };
        let kind = u8_at(&page.bytes, self.layout.page_trailer_offset);
        let is_below = parent_level.is_none_or(|level| level == page.level + 1);
        if kind != Some(index as u8) || !is_below || page.level > LEVELS_MAX {
            return Err(damaged("a page of an index is not where it should be"));
        }
        Ok(page)
    }
}

/// Iterates over all nodes in the order of their identifiers. Damaged pages are skipped.
pub(super) struct NodeWalk {
    /// The pages from the root to a leaf, and the next entry of each.
    levels: Vec<(Rc<Page>, usize)>,
    last: Option<NodeId>,
    /// The number of pages that were read. It is limited, because damaged pages can refer to the
    /// same page many times.
    pages_left: u64,
    /// The reason why nodes are missing.
    pub(super) damage: Option<ExtractError>,
}

impl NodeWalk {
    pub(super) fn start(file: &mut DataFile<'_>) -> Result<Self, ExtractError> {
        let root = file.read_page(Index::Nodes, file.root(Index::Nodes), None)?;
        Ok(NodeWalk {
            levels: vec![(root, 0)],
            last: None,
            pages_left: file.bytes / file.layout.page_bytes as u64 + 1,
            damage: None,
        })
    }

    /// Returns the next node.
    pub(super) fn next(&mut self, file: &mut DataFile<'_>) -> Option<NodeEntry> {
        while let Some((page, next)) = self.levels.last_mut() {
            let (page, number) = (Rc::clone(page), *next);
            *next += 1;
            if number >= page.entries {
                self.levels.pop();
            } else if page.level > 0 {
                self.descend(file, &page, number);
            } else if let Some(entry) = page.entry(number).and_then(|it| file.parse_node(it)) {
                // A repeated node would create two documents with the same position.
                if self.last.is_none_or(|last| last < entry.id) {
                    self.last = Some(entry.id);
                    return Some(entry);
                }
                self.record_damage(damaged("the nodes are not in order"));
            }
        }
        None
    }

    fn descend(&mut self, file: &mut DataFile<'_>, page: &Page, number: usize) {
        let Some(left) = self.pages_left.checked_sub(1) else {
            self.levels.clear();
            self.record_damage(damaged("its index has too many pages"));
            return;
        };
        self.pages_left = left;
        match file.read_child(Index::Nodes, page, number) {
            Ok(child) => self.levels.push((child, 0)),
            Err(error) => self.record_damage(error),
        }
    }

    fn record_damage(&mut self, error: ExtractError) {
        self.damage.get_or_insert(error);
    }
}
