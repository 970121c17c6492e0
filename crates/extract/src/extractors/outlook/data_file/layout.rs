//! The versions of the format, and the header of a file.
//!
//! ```text
//! 0   "!BDN" │ checksum (4) │ "SM" or "SO" │ version (2)
//! …   positions of the roots of the indexes of nodes and blocks, how blocks are encoded
//! ```

use super::FORMAT;
use super::cipher::Cipher;
use crate::error::ExtractError;
use crate::extractors::bytes::{u8_at, u16_at, u32_at, u64_at};

/// The size of the largest header.
pub(super) const HEADER_BYTES: usize = 564;
const VERSION_OFFSET: usize = 10;

/// The layout of a version of the format. All numbers are little-endian.
pub(super) struct Layout {
    /// The size of identifiers and positions in bytes.
    word_bytes: usize,
    pub(super) page_bytes: usize,
    /// Offsets in a page of an index: the number of entries, the bytes of an entry, the level, the
    /// trailer with the kind of the page, and its checksum.
    pub(super) entry_count_offset: usize,
    pub(super) entry_bytes_offset: usize,
    pub(super) page_trailer_offset: usize,
    pub(super) page_checksum_offset: usize,
    /// Blocks with their trailers are padded to a multiple of this size.
    pub(super) block_alignment: usize,
    pub(super) block_trailer_bytes: usize,
    /// Offsets in the trailer of a block.
    pub(super) block_id_offset: usize,
    pub(super) block_checksum_offset: usize,
    /// If set, blocks can be compressed, and the trailer contains the decompressed size at this
    /// offset.
    pub(super) expanded_bytes_offset: Option<usize>,
    /// The number of bits of an item number within a heap block.
    pub(super) heap_item_bits: u32,
    /// Offsets in the header.
    node_index_offset: usize,
    block_index_offset: usize,
    cipher_offset: usize,
}

/// Outlook 97 to 2002.
const ANSI: Layout = Layout {
    word_bytes: 4,
    page_bytes: 512,
    entry_count_offset: 496,
    entry_bytes_offset: 498,
    page_trailer_offset: 500,
    page_checksum_offset: 508,
    block_alignment: 64,
    block_trailer_bytes: 12,
    block_id_offset: 4,
    block_checksum_offset: 8,
    expanded_bytes_offset: None,
    heap_item_bits: 11,
    node_index_offset: 188,
    block_index_offset: 196,
    cipher_offset: 461,
};

/// `.pst` since Outlook 2003, `.ost` of Outlook 2003 to 2010.
const UNICODE: Layout = Layout {
    word_bytes: 8,
    page_bytes: 512,
    entry_count_offset: 488,
    entry_bytes_offset: 490,
    page_trailer_offset: 496,
    page_checksum_offset: 500,
    block_alignment: 64,
    block_trailer_bytes: 16,
    block_id_offset: 8,
    block_checksum_offset: 4,
    expanded_bytes_offset: None,
    heap_item_bits: 11,
    node_index_offset: 224,
    block_index_offset: 240,
    cipher_offset: 513,
};

/// `.ost` since Outlook 2013.
const UNICODE_4K: Layout = Layout {
    word_bytes: 8,
    page_bytes: 4096,
    entry_count_offset: 4056,
    entry_bytes_offset: 4060,
    page_trailer_offset: 4072,
    page_checksum_offset: 4076,
    block_alignment: 512,
    block_trailer_bytes: 24,
    block_id_offset: 8,
    block_checksum_offset: 4,
    expanded_bytes_offset: Some(18),
    heap_item_bits: 14,
    node_index_offset: 224,
    block_index_offset: 240,
    cipher_offset: 513,
};

impl Layout {
    /// Returns the layout of a version.
    pub(super) fn from_version(version: u16) -> Option<&'static Layout> {
        match version {
            14 | 15 => Some(&ANSI),
            20..=23 => Some(&UNICODE),
            36 => Some(&UNICODE_4K),
            _ => None,
        }
    }

    /// Returns `true` if identifiers have 8 bytes.
    pub(super) fn is_wide(&self) -> bool {
        self.word_bytes == 8
    }

    /// Returns word `number` of an entry: an identifier or position.
    pub(super) fn word(&self, entry: &[u8], number: usize) -> Option<u64> {
        self.word_at(entry, number * self.word_bytes)
    }

    pub(super) fn word_at(&self, bytes: &[u8], offset: usize) -> Option<u64> {
        if self.is_wide() {
            u64_at(bytes, offset)
        } else {
            u32_at(bytes, offset).map(u64::from)
        }
    }

    /// Returns the number of entries of a page.
    pub(super) fn entry_count(&self, page: &[u8]) -> Option<usize> {
        if self.page_bytes > 512 {
            u16_at(page, self.entry_count_offset).map(usize::from)
        } else {
            u8_at(page, self.entry_count_offset).map(usize::from)
        }
    }

    /// Returns the bytes of the words of an entry that follow `words` words.
    pub(super) fn after_words<'e>(&self, entry: &'e [u8], words: usize) -> Option<&'e [u8]> {
        entry.get(words * self.word_bytes..)
    }
}

/// The contents of a file header.
pub(super) struct Header {
    pub(super) layout: &'static Layout,
    pub(super) cipher: Cipher,
    /// The positions of the roots.
    pub(super) node_index: u64,
    pub(super) block_index: u64,
}

impl Header {
    pub(super) fn parse(bytes: &[u8]) -> Result<Header, ExtractError> {
        let cut_off = || ExtractError::malformed(FORMAT, "its header is cut off");
        let version = u16_at(bytes, VERSION_OFFSET).ok_or_else(cut_off)?;
        let layout = Layout::from_version(version).ok_or_else(|| {
            ExtractError::malformed(FORMAT, format!("version {version} is not known"))
        })?;
        Ok(Header {
            layout,
            cipher: Cipher::from_code(u8_at(bytes, layout.cipher_offset).ok_or_else(cut_off)?)?,
            node_index: layout
                .word_at(bytes, layout.node_index_offset)
                .ok_or_else(cut_off)?,
            block_index: layout
                .word_at(bytes, layout.block_index_offset)
                .ok_or_else(cut_off)?,
        })
    }
}
