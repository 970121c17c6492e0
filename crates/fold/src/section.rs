//! Sections: sorted immutable parts of a map in a run file.
//!
//! ```text
//! data blocks      see [`block`](crate::block), in a packed section [`columns`]
//! filter pages     one for 16 data blocks, in order, see `filter`; none if the map has no filters, or
//!                  if the ids of entries with an empty key have few gaps
//! if postings      a block of positions for each data block that has some; pages of field lengths
//! fence blocks     fence*: shared varint | length varint | separator bytes | id varint
//!                          | offset varint | stored length varint | entries varint
//!                          | if postings: offset and stored length of the positions, varints
//! root block       fence block count varint, per fence block: offset, stored length varints
//!                  filter page count varint, per page: offset, stored length varints, or 0 and 0
//!                  if postings: field count varint, per field: length varint | first bytes of its keys
//!                  | record count, sum of lengths, page count varints
//!                  | per page: number, offset, stored length varints
//! ```
//! The separator and id of a fence are at or before the first entry of its block, and after the
//! last entry of the block before. The location of the root is in the section's descriptor, which
//! is a row of the catalog.
//!
//! The fence blocks and the root are the last blocks of a section. A server that reads them from an
//! object store needs one or two requests.
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)
)]

mod check;
mod descriptor;
mod fences;
mod filter_page;
mod lookup;
mod write;

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use windrow_invariant::Bug;
use windrow_postings::{LengthTotals, PAGE_IDS};
use windrow_storage::{Block, BlockAddress, Caching, RunHandle, Runs, StorageError};

pub use check::SectionCheck;
pub use descriptor::SectionDescriptor;
pub(crate) use lookup::DataBlock;
pub use write::{RunSink, SectionOptions, SectionWriter};

use crate::block_layout::{BlockLayout, IntervalContent};
use crate::columns;
use crate::entry::{EntryKey, RecordId};
use crate::entry_digest::EntryDigest;
use crate::extents::ExtentCache;
use crate::filter::{self, HashedKey};
use crate::restart_interval::{PieceContext, RestartInterval};
use fences::{BlockSpan, Fences, Root};

/// The number of data blocks of a filter page.
pub(crate) const FILTER_BLOCKS: usize = 16;

/// A section that can be read. Its fences are loaded at the first read and stay in memory.
pub struct Section {
    descriptor: SectionDescriptor,
    runs: Arc<Runs>,
    /// Keeps the run file until the section is dropped.
    _handle: RunHandle,
    fences: OnceLock<Fences>,
    /// The extents of long lists of postings that readers have requested.
    pub(crate) extents: ExtentCache,
}

impl std::fmt::Debug for Section {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_tuple("Section")
            .field(&self.descriptor)
            .finish()
    }
}

impl Section {
    /// Opens a section. Fails if its run does not exist. Nothing is read yet.
    pub fn open(runs: &Arc<Runs>, descriptor: SectionDescriptor) -> Result<Section, StorageError> {
        let handle = runs.handle(descriptor.run)?;
        Ok(Section {
            descriptor,
            runs: runs.clone(),
            _handle: handle,
            fences: OnceLock::new(),
            extents: ExtentCache::default(),
        })
    }

    /// Returns the descriptor, as the catalog has it.
    pub fn descriptor(&self) -> &SectionDescriptor {
        &self.descriptor
    }

    /// Returns `true` if all entries of this section are before all entries of the other.
    pub fn is_before(&self, other: &Section) -> bool {
        self.descriptor.is_before(&other.descriptor)
    }

    /// Returns the error of a block whose checksum is correct but whose content is not.
    fn undecodable(&self, address: BlockAddress) -> StorageError {
        StorageError::Damaged {
            place: format!("run {} at byte {}", address.run.0, address.offset),
            what: "a block of a section that cannot be decoded".to_owned(),
        }
    }

    fn address(&self, span: BlockSpan) -> BlockAddress {
        BlockAddress {
            run: self.descriptor.run,
            offset: span.offset,
            length_stored: span.length,
        }
    }

    fn fences(&self) -> Result<&Fences, StorageError> {
        if let Some(fences) = self.fences.get() {
            return Ok(fences);
        }
        let fences = self.read_fences()?;
        Ok(self.fences.get_or_init(|| fences))
    }

    fn root(&self) -> Result<Root, StorageError> {
        let address = self.address(BlockSpan {
            offset: self.descriptor.root_offset,
            length: self.descriptor.root_length,
        });
        let root = self.runs.open_block(address, Caching::Past)?;
        let root = Root::read(&root, self.descriptor.postings.is_some());
        root.ok_or_else(|| self.undecodable(address))
    }

    fn read_fences(&self) -> Result<Fences, StorageError> {
        let of_postings = self.descriptor.postings.is_some();
        let mut root = self.root()?;
        let mut fences = Fences::new(&mut root, of_postings);
        for span in root.fences {
            let address = self.address(span);
            let block = self.runs.open_block(address, Caching::Past)?;
            fences
                .read_block(&block)
                .ok_or_else(|| self.undecodable(address))?;
        }
        let entries = fences.entries_before(fences.len());
        if fences.len() == 0 || entries != self.descriptor.entries {
            let what = format!(
                "its fences count {entries} entries, the catalog {}",
                self.descriptor.entries
            );
            return Err(self.damaged(what));
        }
        Ok(fences)
    }

    fn damaged(&self, what: String) -> StorageError {
        let Self { descriptor, .. } = self;
        let place = format!(
            "run {}, the section at byte {}",
            descriptor.run, descriptor.root_offset
        );
        StorageError::Damaged { place, what }
    }

    /// Returns the number of data blocks.
    pub fn block_count(&self) -> Result<usize, StorageError> {
        Ok(self.fences()?.len())
    }

    /// Returns the number of the block that may have an entry key.
    pub fn block_of(&self, key: &[u8], id: RecordId) -> Result<usize, StorageError> {
        Ok(self.fences()?.find(key, id))
    }

    /// Appends the first keys of blocks, about one for every `step` entries.
    pub fn sample(&self, step: u64, into: &mut Vec<Vec<u8>>) -> Result<(), StorageError> {
        let fences = self.fences()?;
        let mut next = 0;
        for block in 0..fences.len() {
            if fences.entries_before(block) >= next {
                into.push(fences.separator(block).to_vec());
                next = fences.entries_before(block) + step;
            }
        }
        Ok(())
    }

    /// Returns the number of entries of a block.
    pub fn entries_in(&self, block: usize) -> Result<u64, StorageError> {
        let fences = self.fences()?;
        Ok(fences.entries_before(block + 1) - fences.entries_before(block))
    }

    /// Returns the number of entries in the blocks before this one.
    pub fn entries_before(&self, block: usize) -> Result<u64, StorageError> {
        Ok(self.fences()?.entries_before(block))
    }

    /// Reads a data block.
    pub fn read(&self, block: usize, caching: Caching) -> Result<Block, StorageError> {
        let fences = self.fences()?;
        let span = fences.address(block).ok_or_else(|| {
            let blocks = fences.len();
            Bug::new(format!(
                "block {block} of a section of {blocks} blocks was requested"
            ))
        })?;
        let address = self.address(span);
        if self.descriptor.packed {
            self.runs.open_packed(address, caching, columns::unpack)
        } else {
            self.runs.open_block(address, caching)
        }
    }

    /// Decodes a restart interval of a data block.
    pub(crate) fn decode(
        &self,
        block: &Block,
        number: usize,
        interval: usize,
        into: &mut RestartInterval,
    ) -> Result<(), StorageError> {
        into.set_piece_context(self.piece_context(block, number, interval)?);
        into.decode(block, interval)
            .ok_or_else(|| self.undecodable_block(number))
    }

    /// Decodes a restart interval from an entry key on, see [`RestartInterval::decode_from`].
    pub(crate) fn decode_from(
        &self,
        block: &Block,
        number: usize,
        interval: usize,
        from: EntryKey<'_>,
        into: &mut RestartInterval,
    ) -> Result<(), StorageError> {
        into.set_piece_context(self.piece_context(block, number, interval)?);
        into.decode_from(block, interval, from.key, from.id)
            .ok_or_else(|| self.undecodable_block(number))
    }

    /// Decodes one entry of a restart interval, see [`RestartInterval::decode_one_from`].
    fn decode_one_from(
        &self,
        block: &DataBlock,
        interval: usize,
        from: EntryKey<'_>,
        into: &mut RestartInterval,
    ) -> Result<(), StorageError> {
        let DataBlock { number, bytes } = block;
        into.set_piece_context(self.piece_context(bytes, *number, interval)?);
        into.decode_one_from(bytes, interval, from)
            .ok_or_else(|| self.undecodable_block(*number))
    }

    /// Reads the positions and field lengths of a restart interval that is a piece of packed
    /// postings.
    fn piece_context(
        &self,
        block: &Block,
        number: usize,
        interval: usize,
    ) -> Result<PieceContext, StorageError> {
        if self.descriptor.postings.is_none() {
            return Ok(PieceContext::default());
        }
        let undecodable = || self.undecodable_block(number);
        let found = self.layout(block, number)?.content(interval);
        let (key, piece) = match found.ok_or_else(undecodable)? {
            IntervalContent::Piece { key, piece } => (key, piece),
            IntervalContent::Entries => return Ok(PieceContext::default()),
        };
        let field = self.field_of(key);
        let mut lengths = Vec::new();
        for page in piece.first_id() / PAGE_IDS..=piece.last_id() / PAGE_IDS {
            if let Some(block) = self.lengths_page(field, page)? {
                lengths.push((page, block));
            }
        }
        let positions = match piece.positions_start() {
            Some(_) => self.positions(number)?,
            None => None,
        };
        Ok(PieceContext { positions, lengths })
    }

    /// Returns the part of a key that names the field. Empty if the section has no postings.
    pub(crate) fn field_of<'k>(&self, key: &'k [u8]) -> &'k [u8] {
        let form = self.descriptor.postings;
        form.map_or(&[], |form| form.field(key))
    }

    /// Reads the positions of a data block. `None` if it has none.
    pub(crate) fn positions(&self, block: usize) -> Result<Option<Block>, StorageError> {
        let span = self.fences()?.positions(block);
        self.read_span(span)
    }

    /// Reads a page of the lengths of a field. `None` if there is none.
    pub(crate) fn lengths_page(
        &self,
        field: &[u8],
        page: u64,
    ) -> Result<Option<Block>, StorageError> {
        let span = self.fences()?.lengths(field, page);
        self.read_span(span)
    }

    /// Returns the totals of the lengths of a field in packed records.
    pub(crate) fn length_totals(&self, field: &[u8]) -> Result<LengthTotals, StorageError> {
        Ok(self.fences()?.length_totals(field))
    }

    fn read_span(&self, span: Option<BlockSpan>) -> Result<Option<Block>, StorageError> {
        let open = |span| self.runs.open_block(self.address(span), Caching::Keep);
        span.map(open).transpose()
    }

    /// Returns the separator of a block: a key at or before its first one and after those of the
    /// block before.
    pub(crate) fn separator(&self, block: usize) -> Result<&[u8], StorageError> {
        Ok(self.fences()?.separator(block))
    }

    /// Reads the restart offsets of a data block.
    pub(crate) fn layout<'b>(
        &self,
        block: &'b Block,
        number: usize,
    ) -> Result<BlockLayout<'b>, StorageError> {
        BlockLayout::read(block).ok_or_else(|| self.undecodable_block(number))
    }

    /// Returns the digest of the entries from the descriptor, if it has one.
    pub fn digest(&self) -> Option<EntryDigest> {
        self.descriptor.hash.map(|hash| EntryDigest {
            entries: self.descriptor.entries,
            hash,
        })
    }

    pub(crate) fn undecodable_block(&self, number: usize) -> StorageError {
        let span = self.fences.get().and_then(|fences| fences.address(number));
        // Only the message needs the span.
        self.undecodable(self.address(span.unwrap_or_default()))
    }

    /// Returns `false` only if the section has no entry with this key. Always `true` for the empty
    /// key: filters then have ids.
    pub fn may_contain(&self, key: &[u8]) -> Result<bool, StorageError> {
        if !self.descriptor.may_contain_key(key) {
            return Ok(false);
        }
        let fences = self.fences()?;
        if key.is_empty() || !fences.has_filters() {
            return Ok(true);
        }
        let hash = filter::hash(key);
        let mut page = fences.find(key, RecordId::MIN) / FILTER_BLOCKS;
        // A key can continue behind the blocks of a page. One comparison mostly excludes that.
        loop {
            match self.filter_bits(page, Caching::Keep)? {
                Some(bits) if !filter::may_contain(&bits, hash) => page += 1,
                _ => return Ok(true),
            }
            let next = page * FILTER_BLOCKS;
            if next >= fences.len() || fences.separator(next) > key {
                return Ok(false);
            }
        }
    }

    /// Returns `false` only if the section has no entry with this key and id.
    pub fn may_contain_entry(&self, key: &[u8], id: RecordId) -> Result<bool, StorageError> {
        if !key.is_empty() {
            return self.may_contain(key);
        }
        let page = self.fences()?.find(key, id) / FILTER_BLOCKS;
        let bits = self.filter_bits(page, Caching::Keep)?;
        Ok(bits.is_none_or(|bits| filter::may_contain(&bits, filter::id_hash(id))))
    }

    /// Returns the indexes of the keys that the section may have, see
    /// [`may_contain`](Self::may_contain). `keys` must be sorted: neighbours mostly share a filter
    /// page.
    pub(crate) fn candidates(&self, keys: &[HashedKey<'_>]) -> Result<Vec<usize>, StorageError> {
        let Range {
            start: mut from,
            end,
        } = self.descriptor.keys_within(keys);
        let mut candidates = Vec::new();
        while let Some(rest @ [next, ..]) = keys.get(from..end) {
            let page = self.filter_page(next.key)?;
            let together = page.as_ref().map_or(0, |page| {
                rest.partition_point(|wanted| page.is_before_end(wanted.key))
            });
            match (&page, rest.get(..together)) {
                (Some(page), Some(together @ [_, ..])) => {
                    filter::touch(&page.bits, together.iter().map(|wanted| wanted.hash));
                    let numbered = (from..end).zip(together);
                    let passes =
                        numbered.filter(|(_, it)| filter::may_contain(&page.bits, it.hash));
                    candidates.extend(passes.map(|(number, _)| number));
                }
                _ if self.may_contain(next.key)? => candidates.push(from),
                _ => {}
            }
            from += together.max(1);
        }
        Ok(candidates)
    }

    /// Reads the filter page of a key. `None` for the empty key, and if there is no page.
    fn filter_page(&self, key: &[u8]) -> Result<Option<FilterPage<'_>>, StorageError> {
        if key.is_empty() {
            return Ok(None);
        }
        let fences = self.fences()?;
        let page = fences.find(key, RecordId::MIN) / FILTER_BLOCKS;
        let next = (page + 1) * FILTER_BLOCKS;
        let end = (next < fences.len()).then(|| fences.separator(next));
        let bits = self.filter_bits(page, Caching::Keep)?;
        Ok(bits.map(|bits| FilterPage { bits, end }))
    }

    /// Reads a filter page. `None` if it was not written.
    fn filter_bits(&self, page: usize, caching: Caching) -> Result<Option<Block>, StorageError> {
        let span = self.fences()?.filter(page);
        let open = |span| self.runs.open_block(self.address(span), caching);
        span.map(open).transpose()
    }
}

/// The filter of some blocks.
struct FilterPage<'s> {
    bits: Block,
    /// The first key of the next page. `None` if this is the last page.
    end: Option<&'s [u8]>,
}

impl FilterPage<'_> {
    fn is_before_end(&self, key: &[u8]) -> bool {
        self.end.is_none_or(|end| key < end)
    }
}
