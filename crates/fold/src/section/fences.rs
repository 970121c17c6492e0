//! Fences: for every data block where it begins, where it stands, how much it holds.

use crate::entry::{EntryKey, RecordId, compare_keys};
use crate::varint;

/// The fences of a section, in memory: about 40 bytes for a block of 32 KB.
#[derive(Debug, Default)]
pub struct Fences {
    separators: Vec<u8>,
    separator_ends: Vec<u32>,
    blocks: Vec<Fence>,
    filters: Vec<(u64, u32)>,
    /// Where the positions of each block stand, in a section of postings.
    positions: Vec<(u64, u32)>,
    lengths: Vec<FieldLengthPages>,
    of_postings: bool,
}

#[derive(Clone, Copy, Debug)]
struct Fence {
    id: RecordId,
    offset: u64,
    length: u32,
    /// Entries in the blocks before.
    entries_before: u64,
    entries: u64,
}

/// In the place of a filter page that would be of no use.
pub const NO_PAGE: (u64, u32) = (0, 0);

impl Fences {
    /// The fences of a section with this root. None were read yet.
    pub fn new(root: &mut Root, of_postings: bool) -> Fences {
        Fences {
            filters: std::mem::take(&mut root.filters),
            lengths: std::mem::take(&mut root.lengths),
            of_postings,
            ..Fences::default()
        }
    }

    /// Where the positions of a data block stand, if it has some.
    pub fn positions(&self, block: usize) -> Option<(u64, u32)> {
        let found = self.positions.get(block).copied();
        found.filter(|address| *address != NO_PAGE)
    }

    /// Where a page of the lengths of a field stands, if there is one.
    pub fn lengths(&self, field: &[u8], page: u64) -> Option<(u64, u32)> {
        let field = self.lengths.iter().find(|it| it.field == field)?;
        let at = field.pages.binary_search_by_key(&page, |it| it.0).ok()?;
        let (_, offset, length) = *field.pages.get(at)?;
        Some((offset, length))
    }

    /// How many records have a length in a field, and the sum of these lengths.
    pub fn length_totals(&self, field: &[u8]) -> (u64, u64) {
        let field = self.lengths.iter().find(|it| it.field == field);
        field.map_or((0, 0), |field| field.totals)
    }

    /// Where all pages of lengths stand.
    pub fn all_lengths(&self) -> impl Iterator<Item = (u64, u32)> {
        let pages = self.lengths.iter().flat_map(|field| &field.pages);
        pages.map(|(_, offset, length)| (*offset, *length))
    }

    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    pub fn has_filters(&self) -> bool {
        !self.filters.is_empty()
    }

    /// Where a filter page stands, if there is one.
    pub fn filter(&self, page: usize) -> Option<(u64, u32)> {
        let found = self.filters.get(page).copied();
        found.filter(|address| *address != NO_PAGE)
    }

    /// Where a data block stands.
    pub fn address(&self, block: usize) -> Option<(u64, u32)> {
        self.blocks
            .get(block)
            .map(|fence| (fence.offset, fence.length))
    }

    /// A key at or before a block's first one, and behind those of the block before.
    ///
    /// # Panics
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

    /// How many entries stand in the blocks before one; behind the last block, in all.
    pub fn entries_before(&self, block: usize) -> u64 {
        match self.blocks.get(block) {
            Some(fence) => fence.entries_before,
            None => self
                .blocks
                .last()
                .map_or(0, |last| last.entries_before + last.entries),
        }
    }

    /// The last block whose fence is at or before a place; 0 where none is.
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

    /// The separator and id of a block.
    fn place(&self, block: usize) -> EntryKey<'_> {
        let fence = self.blocks.get(block);
        let fence = fence.unwrap_or_else(|| no_block(block, self.blocks.len()));
        EntryKey::new(self.separator(block), fence.id)
    }

    /// Whether a block begins behind the one before, if there is one.
    fn is_in_order(&self, block: usize) -> bool {
        match block.checked_sub(1) {
            None => true,
            Some(before) => self.place(before) < self.place(block),
        }
    }

    /// Adds the fences of a fence block. None where it is damaged.
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
                offset: varint::take(&mut bytes)?,
                length: u32::try_from(varint::take(&mut bytes)?).ok()?,
                entries_before,
                entries: varint::take(&mut bytes)?,
            };
            fence.entries_before.checked_add(fence.entries)?;
            if self.of_postings {
                let offset = varint::take(&mut bytes)?;
                let length = u32::try_from(varint::take(&mut bytes)?).ok()?;
                self.positions.push((offset, length));
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
    panic!("block {block} of a section with {blocks} blocks is asked for");
}

/// Writes fences into blocks.
#[derive(Debug, Default)]
pub struct FenceWriter {
    bytes: Vec<u8>,
    last: Vec<u8>,
}

/// A fence that is written.
#[derive(Clone, Copy, Debug)]
pub struct FenceRow<'f> {
    pub separator: &'f [u8],
    pub id: RecordId,
    /// Where the data block stands.
    pub block: (u64, u32),
    pub entries: u64,
    /// Where its positions stand, in a section of postings.
    pub positions: Option<(u64, u32)>,
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
        let (offset, length) = fence.block;
        for number in [fence.id.0, offset, u64::from(length), entries] {
            varint::put(&mut self.bytes, number);
        }
        if let Some((offset, length)) = fence.positions {
            varint::put(&mut self.bytes, offset);
            varint::put(&mut self.bytes, u64::from(length));
        }
        self.last.clear();
        self.last.extend_from_slice(separator);
    }

    /// Bytes of the block so far.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The block's bytes; the next begins.
    pub fn finish(&mut self) -> Vec<u8> {
        self.last.clear();
        std::mem::take(&mut self.bytes)
    }
}

/// The root block: where fence blocks, filter pages and pages of field lengths stand.
#[derive(Debug, Default)]
pub struct Root {
    pub fences: Vec<(u64, u32)>,
    pub filters: Vec<(u64, u32)>,
    /// In a section of postings.
    pub lengths: Vec<FieldLengthPages>,
}

/// Where the lengths of a field stand.
#[derive(Debug, Default)]
pub struct FieldLengthPages {
    /// The first bytes of the field's keys.
    pub field: Vec<u8>,
    /// How many records there are, and the sum of their lengths.
    pub totals: (u64, u64),
    /// Number, offset and stored length of each page, in the order of their numbers.
    pub pages: Vec<(u64, u64, u32)>,
}

impl Root {
    pub fn encode(&self, of_postings: bool) -> Vec<u8> {
        let mut bytes = Vec::new();
        for list in [&self.fences, &self.filters] {
            varint::put(&mut bytes, list.len() as u64);
            for (offset, length) in list {
                varint::put(&mut bytes, *offset);
                varint::put(&mut bytes, u64::from(*length));
            }
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
                let offset = varint::take(&mut bytes)?;
                list.push((offset, u32::try_from(varint::take(&mut bytes)?).ok()?));
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
        let (records, length) = self.totals;
        for number in [records, length, self.pages.len() as u64] {
            varint::put(bytes, number);
        }
        for (number, offset, length) in &self.pages {
            varint::put(bytes, *number);
            varint::put(bytes, *offset);
            varint::put(bytes, u64::from(*length));
        }
    }

    fn read(bytes: &mut &[u8]) -> Option<FieldLengthPages> {
        let length = varint::take(bytes)?;
        let field = varint::take_bytes(bytes, length)?.to_vec();
        let totals = (varint::take(bytes)?, varint::take(bytes)?);
        let mut pages: Vec<(u64, u64, u32)> = Vec::new();
        for _ in 0..varint::take(bytes)? {
            let (number, offset) = (varint::take(bytes)?, varint::take(bytes)?);
            let length = u32::try_from(varint::take(bytes)?).ok()?;
            if pages.last().is_some_and(|last| last.0 >= number) {
                return None;
            }
            pages.push((number, offset, length));
        }
        Some(FieldLengthPages {
            field,
            totals,
            pages,
        })
    }
}
