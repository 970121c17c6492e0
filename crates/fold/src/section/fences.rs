//! Fences: the first key of every data block, its location, and the number of its entries.

use windrow_postings::LengthTotals;
use windrow_storage::BlockAddress;

use crate::entry::{EntryKey, RecordId, compare_keys};
use crate::varint;

/// The fences of a section in memory, about 40 bytes for a block of 32 KB.
#[derive(Debug, Default)]
pub struct Fences {
    separators: Vec<u8>,
    separator_ends: Vec<u32>,
    blocks: Vec<Fence>,
    filters: Vec<BlockSpan>,
    /// The locations of the positions of each block, in a section of postings.
    positions: Vec<BlockSpan>,
    lengths: Vec<FieldLengthPages>,
    of_postings: bool,
}

#[derive(Clone, Copy, Debug)]
struct Fence {
    id: RecordId,
    span: BlockSpan,
    /// The number of entries in the blocks before.
    entries_before: u64,
    entries: u64,
}

/// The location of a block in the run file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockSpan {
    pub offset: u64,
    /// The stored length, in bytes.
    pub length: u32,
}

impl BlockSpan {
    /// A block that was not written.
    pub const NONE: BlockSpan = BlockSpan {
        offset: 0,
        length: 0,
    };

    /// Takes a span off the front of encoded bytes.
    fn take(bytes: &mut &[u8]) -> Option<BlockSpan> {
        Some(BlockSpan {
            offset: varint::take(bytes)?,
            length: u32::try_from(varint::take(bytes)?).ok()?,
        })
    }

    fn put(self, bytes: &mut Vec<u8>) {
        varint::put(bytes, self.offset);
        varint::put(bytes, u64::from(self.length));
    }
}

impl From<BlockAddress> for BlockSpan {
    fn from(address: BlockAddress) -> BlockSpan {
        BlockSpan {
            offset: address.offset,
            length: address.length_stored,
        }
    }
}

impl Fences {
    /// Creates the fences of a section with this root. The fence blocks are added by
    /// [`read_block`](Self::read_block).
    pub fn new(root: &mut Root, of_postings: bool) -> Fences {
        Fences {
            filters: std::mem::take(&mut root.filters),
            lengths: std::mem::take(&mut root.lengths),
            of_postings,
            ..Fences::default()
        }
    }

    /// Returns the location of the positions of a data block, if it has some.
    pub fn positions(&self, block: usize) -> Option<BlockSpan> {
        let found = self.positions.get(block).copied();
        found.filter(|span| *span != BlockSpan::NONE)
    }

    /// Returns the location of a page of field lengths, if there is one.
    pub fn lengths(&self, field: &[u8], page: u64) -> Option<BlockSpan> {
        let field = self.lengths.iter().find(|it| it.field == field)?;
        let at = field
            .pages
            .binary_search_by_key(&page, |it| it.number)
            .ok()?;
        field.pages.get(at).map(|page| page.span)
    }

    /// Returns the totals of the lengths of a field.
    pub fn length_totals(&self, field: &[u8]) -> LengthTotals {
        let field = self.lengths.iter().find(|it| it.field == field);
        field.map_or(LengthTotals::default(), |field| field.totals)
    }

    /// Returns the locations of all pages of field lengths.
    pub fn all_lengths(&self) -> impl Iterator<Item = BlockSpan> {
        let pages = self.lengths.iter().flat_map(|field| &field.pages);
        pages.map(|page| page.span)
    }

    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    pub fn has_filters(&self) -> bool {
        !self.filters.is_empty()
    }

    /// Returns the location of a filter page, if there is one.
    pub fn filter(&self, page: usize) -> Option<BlockSpan> {
        let found = self.filters.get(page).copied();
        found.filter(|span| *span != BlockSpan::NONE)
    }

    /// Returns the location of a data block.
    pub fn address(&self, block: usize) -> Option<BlockSpan> {
        self.blocks.get(block).map(|fence| fence.span)
    }

    /// Returns the separator of a block: a key at or before its first one and after those of the
    /// block before.
    ///
    /// # Panics
    ///
    /// Panics if there is no such block.
    pub fn separator(&self, block: usize) -> &[u8] {
        let start = match block.checked_sub(1) {
            None => Some(&0),
            Some(before) => self.separator_ends.get(before),
        };
        let ends = start.zip(self.separator_ends.get(block));
        let found =
            ends.and_then(|(start, end)| self.separators.get(*start as usize..*end as usize));
        found.unwrap_or_else(|| no_block(block, self.blocks.len()))
    }

    /// Returns the id of the fence of a block, at or before the first id of its entries if all keys
    /// are equal. `None` if there is no such block.
    pub fn id(&self, block: usize) -> Option<RecordId> {
        self.blocks.get(block).map(|fence| fence.id)
    }

    /// Returns the number of entries before a block, or of all entries behind the last block.
    pub fn entries_before(&self, block: usize) -> u64 {
        match self.blocks.get(block) {
            Some(fence) => fence.entries_before,
            None => self
                .blocks
                .last()
                .map_or(0, |last| last.entries_before + last.entries),
        }
    }

    /// Returns the last block whose fence is at or before an entry key, or 0 if there is none.
    pub fn find(&self, key: &[u8], id: RecordId) -> usize {
        let (mut low, mut high) = (0, self.blocks.len());
        while high - low > 1 {
            let middle = low.midpoint(high);
            if self.place(middle) > EntryKey::new(key, id) {
                high = middle;
            } else {
                low = middle;
            }
        }
        low
    }

    /// Returns the separator and id of a block.
    fn place(&self, block: usize) -> EntryKey<'_> {
        let fence = self.blocks.get(block);
        let fence = fence.unwrap_or_else(|| no_block(block, self.blocks.len()));
        EntryKey::new(self.separator(block), fence.id)
    }

    /// Returns `true` if a block begins after the one before.
    fn is_in_order(&self, block: usize) -> bool {
        match block.checked_sub(1) {
            None => true,
            Some(before) => self.place(before) < self.place(block),
        }
    }

    /// Adds the fences of a fence block. Returns `None` if it is damaged.
    pub fn read_block(&mut self, mut bytes: &[u8]) -> Option<()> {
        let mut last_start = self.separators.len();
        let mut first = true;
        while !bytes.is_empty() {
            let shared = usize::try_from(varint::take(&mut bytes)?).ok()?;
            let length = varint::take(&mut bytes)?;
            let suffix = varint::take_bytes(&mut bytes, length)?;
            let start = self.separators.len();
            if shared > start - last_start || (first && shared > 0) {
                return None;
            }
            self.separators
                .extend_from_within(last_start..last_start + shared);
            self.separators.extend_from_slice(suffix);
            self.separator_ends
                .push(u32::try_from(self.separators.len()).ok()?);
            (last_start, first) = (start, false);
            let entries_before = self.entries_before(self.blocks.len());
            let fence = Fence {
                id: RecordId(varint::take(&mut bytes)?),
                span: BlockSpan::take(&mut bytes)?,
                entries_before,
                entries: varint::take(&mut bytes)?,
            };
            fence.entries_before.checked_add(fence.entries)?;
            if self.of_postings {
                self.positions.push(BlockSpan::take(&mut bytes)?);
            }
            self.blocks.push(fence);
            if !self.is_in_order(self.blocks.len() - 1) {
                return None;
            }
        }
        Some(())
    }
}

#[cold]
fn no_block(block: usize, blocks: usize) -> ! {
    panic!("block {block} of a section of {blocks} blocks was requested");
}

/// Encodes fences into blocks.
#[derive(Debug, Default)]
pub struct FenceWriter {
    bytes: Vec<u8>,
    last: Vec<u8>,
}

/// A fence to encode.
#[derive(Clone, Copy, Debug)]
pub struct FenceRow<'f> {
    pub separator: &'f [u8],
    pub id: RecordId,
    /// The location of the data block.
    pub block: BlockSpan,
    pub entries: u64,
    /// The location of its positions, in a section of postings.
    pub positions: Option<BlockSpan>,
}

impl FenceWriter {
    pub fn push(&mut self, fence: &FenceRow<'_>) {
        let FenceRow {
            separator, entries, ..
        } = *fence;
        debug_assert!(entries > 0, "a block without entries");
        debug_assert!(
            compare_keys(&self.last, separator).is_le(),
            "the fence {separator:?} follows {:?}",
            self.last
        );
        let pairs = self.last.iter().zip(separator);
        let shared = pairs.take_while(|(a, b)| a == b).count();
        let (_, suffix) = separator.split_at(shared);
        varint::put(&mut self.bytes, shared as u64);
        varint::put(&mut self.bytes, suffix.len() as u64);
        self.bytes.extend_from_slice(suffix);
        varint::put(&mut self.bytes, fence.id.0);
        fence.block.put(&mut self.bytes);
        varint::put(&mut self.bytes, entries);
        if let Some(positions) = fence.positions {
            positions.put(&mut self.bytes);
        }
        self.last.clear();
        self.last.extend_from_slice(separator);
    }

    /// Returns the size of the current block, in bytes.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the bytes of the block and begins the next one.
    pub fn finish(&mut self) -> Vec<u8> {
        self.last.clear();
        std::mem::take(&mut self.bytes)
    }
}

/// The root block: the locations of fence blocks, filter pages and pages of field lengths.
#[derive(Debug, Default)]
pub struct Root {
    pub fences: Vec<BlockSpan>,
    pub filters: Vec<BlockSpan>,
    /// Empty unless the section has postings.
    pub lengths: Vec<FieldLengthPages>,
}

/// The locations of the lengths of a field.
#[derive(Debug, Default)]
pub struct FieldLengthPages {
    /// The first bytes of the field's keys.
    pub field: Vec<u8>,
    /// The totals of the lengths.
    pub totals: LengthTotals,
    /// The pages, in ascending order of their numbers.
    pub pages: Vec<LengthsPageSpan>,
}

/// The location of a page of field lengths.
#[derive(Clone, Copy, Debug)]
pub struct LengthsPageSpan {
    pub number: u64,
    pub span: BlockSpan,
}

impl Root {
    pub fn encode(&self, of_postings: bool) -> Vec<u8> {
        let mut bytes = Vec::new();
        for list in [&self.fences, &self.filters] {
            varint::put(&mut bytes, list.len() as u64);
            list.iter().for_each(|span| span.put(&mut bytes));
        }
        if of_postings {
            varint::put(&mut bytes, self.lengths.len() as u64);
            for field in &self.lengths {
                field.encode(&mut bytes);
            }
        }
        bytes
    }

    pub fn read(mut bytes: &[u8], of_postings: bool) -> Option<Root> {
        let mut lists = [Vec::new(), Vec::new()];
        for list in &mut lists {
            for _ in 0..varint::take(&mut bytes)? {
                list.push(BlockSpan::take(&mut bytes)?);
            }
        }
        let [fences, filters] = lists;
        let mut lengths = Vec::new();
        if of_postings {
            for _ in 0..varint::take(&mut bytes)? {
                lengths.push(FieldLengthPages::read(&mut bytes)?);
            }
        }
        let root = Root {
            fences,
            filters,
            lengths,
        };
        bytes.is_empty().then_some(root)
    }
}

impl FieldLengthPages {
    fn encode(&self, bytes: &mut Vec<u8>) {
        varint::put(bytes, self.field.len() as u64);
        bytes.extend_from_slice(&self.field);
        let LengthTotals { records, sum } = self.totals;
        for number in [records, sum, self.pages.len() as u64] {
            varint::put(bytes, number);
        }
        for page in &self.pages {
            varint::put(bytes, page.number);
            page.span.put(bytes);
        }
    }

    fn read(bytes: &mut &[u8]) -> Option<FieldLengthPages> {
        let length = varint::take(bytes)?;
        let field = varint::take_bytes(bytes, length)?.to_vec();
        let totals = LengthTotals {
            records: varint::take(bytes)?,
            sum: varint::take(bytes)?,
        };
        let mut pages: Vec<LengthsPageSpan> = Vec::new();
        for _ in 0..varint::take(bytes)? {
            let number = varint::take(bytes)?;
            if pages.last().is_some_and(|last| last.number >= number) {
                return None;
            }
            let span = BlockSpan::take(bytes)?;
            pages.push(LengthsPageSpan { number, span });
        }
        Some(FieldLengthPages {
            field,
            totals,
            pages,
        })
    }
}
