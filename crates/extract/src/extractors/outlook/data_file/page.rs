//! The pages of the indexes of a file. Their layout is in `index`.

use std::collections::HashMap;
use std::rc::Rc;

use super::checksum::checksum;
use super::layout::Layout;
use super::{FORMAT, damaged};
use crate::error::ExtractError;
use crate::extractors::bytes::{u8_at, u32_at};

/// The size of the page cache in bytes. It holds the upper levels of the indexes of large files.
const PAGE_CACHE_BYTES_MAX: usize = 4 << 20;

/// An index of a file, identified by the kind of its pages.
#[derive(Clone, Copy)]
pub(super) enum Index {
    Blocks = 0x80,
    Nodes = 0x81,
}

/// A page of an index.
pub(super) struct Page {
    pub(super) bytes: Vec<u8>,
    /// 0 for a leaf.
    pub(super) level: u8,
    entry_bytes: usize,
    pub(super) entries: usize,
}

impl Page {
    /// Returns the bytes of an entry.
    pub(super) fn entry(&self, number: usize) -> Option<&[u8]> {
        let start = number.checked_mul(self.entry_bytes)?;
        let entry = self
            .bytes
            .get(start..start.checked_add(self.entry_bytes)?)?;
        (number < self.entries).then_some(entry)
    }

    /// Parses a page, and verifies its checksum.
    pub(super) fn parse(bytes: Vec<u8>, layout: &Layout) -> Result<Page, ExtractError> {
        let stored = u32_at(&bytes, layout.page_checksum_offset);
        let covered = bytes.get(..layout.page_trailer_offset).unwrap_or_default();
        if stored != Some(0) && stored != Some(checksum(covered)) {
            return Err(damaged("the checksum of a page of an index is wrong"));
        }
        let fields = (
            u8_at(&bytes, layout.entry_bytes_offset + 1),
            u8_at(&bytes, layout.entry_bytes_offset),
            layout.entry_count(&bytes),
        );
        let (Some(level), Some(entry_bytes), Some(entries)) = fields else {
            return Err(ExtractError::malformed(FORMAT, "a page is cut off"));
        };
        let entry_bytes = usize::from(entry_bytes);
        let fits = entry_bytes * entries <= layout.entry_count_offset;
        if !fits || entry_bytes == 0 && entries > 0 {
            return Err(damaged("a page of an index has too many entries"));
        }
        Ok(Page {
            bytes,
            level,
            entry_bytes,
            entries,
        })
    }
}

/// Pages of the indexes by their positions.
pub(super) struct PageCache {
    pages: HashMap<u64, Rc<Page>>,
    pages_max: usize,
}

impl PageCache {
    pub(super) fn new(layout: &Layout) -> PageCache {
        PageCache {
            pages: HashMap::new(),
            pages_max: PAGE_CACHE_BYTES_MAX / layout.page_bytes,
        }
    }

    pub(super) fn get(&self, position: u64) -> Option<Rc<Page>> {
        self.pages.get(&position).cloned()
    }

    pub(super) fn insert(&mut self, position: u64, page: Rc<Page>) {
        if self.pages.len() >= self.pages_max {
            self.pages.clear();
        }
        self.pages.insert(position, page);
    }
}
