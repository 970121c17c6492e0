//! Writing of sections: sorted entries in, a descriptor out.

use std::sync::Arc;

use parking_lot::Mutex;
use windrow_invariant::Bug;
use windrow_storage::{
    BlockAddress, BlockEncoder, Compression, EncodedBlock, Position, RunId, RunWriter,
    StorageError, encode_block, encode_parts,
};

use super::FILTER_BLOCKS;
use super::descriptor::{KEY_BYTES_MAX, SectionDescriptor};
use super::fences::{BlockSpan, FenceRow, FenceWriter, FieldLengthPages, LengthsPageSpan, Root};
use super::filter_page::FilterPageBuilder;
use crate::block::{BLOCK_BYTES, BlockBuilder, PiecePositions, PostingsForm, SectionLengths};
use crate::columns;
use crate::entry::{Entry, EntryKey, RecordId, common_prefix};
use crate::entry_digest::EntryDigest;
use crate::filter;
use crate::marks::Marks;

/// A run file to which several threads write sections. Each thread compresses its blocks. Only
/// appending them is serialized.
pub struct RunSink {
    writer: Mutex<RunWriter>,
    /// Called after each block by the thread that appended it.
    pause: Option<Box<dyn Fn() + Send + Sync>>,
}

impl std::fmt::Debug for RunSink {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "RunSink(run {})", self.run())
    }
}

impl RunSink {
    /// Wraps a new run file.
    pub fn new(writer: RunWriter) -> RunSink {
        RunSink {
            writer: Mutex::new(writer),
            pause: None,
        }
    }

    /// Calls `pause` after each block. Background work sleeps there so that other work goes first.
    pub fn with_pause(self, pause: impl Fn() + Send + Sync + 'static) -> RunSink {
        RunSink {
            pause: Some(Box::new(pause)),
            ..self
        }
    }

    fn append(&self, block: &EncodedBlock) -> Result<BlockAddress, StorageError> {
        let address = self.writer.lock().append(block)?;
        if let Some(pause) = &self.pause {
            pause();
        }
        Ok(address)
    }

    /// Returns `true` if nothing was written.
    pub fn is_empty(&self) -> bool {
        self.writer.lock().is_empty()
    }

    /// Returns the id of the run.
    pub fn run(&self) -> RunId {
        self.writer.lock().run()
    }

    /// Returns the number of bytes written so far.
    pub fn bytes(&self) -> u64 {
        self.writer.lock().bytes()
    }

    /// Syncs the file. Its sections are durable afterwards.
    pub fn finish(self) -> Result<(), StorageError> {
        self.writer.into_inner().finish().map(drop)
    }
}

/// How a section is written.
#[derive(Clone, Copy, Debug)]
pub struct SectionOptions {
    /// The number of filter bits for each key, or for each id if keys are empty. 0 for no filters,
    /// if single entries are not looked up.
    pub filter_bits: usize,
    /// The descriptor gets a digest of the entries. Sections of documents need none: checksums
    /// protect them.
    pub with_digest: bool,
    /// The first byte of the keys of marks, if the map has marks, see [`marks`](crate::marks).
    pub mark_byte: Option<u8>,
    /// The compression of blocks.
    pub compression: Compression,
    /// Data blocks are packed as small as possible, at any cost, see [`columns`].
    pub packed: bool,
    /// The form of the keys if the entries are postings, which are then packed.
    pub postings: Option<PostingsForm>,
    /// The newest log position of the entries.
    pub position: Position,
}

/// Encodes packed blocks: by rows or by columns, whichever is smaller.
#[derive(Debug, Default)]
struct PackedBlockEncoder {
    blocks: usize,
    by_columns: bool,
}

/// Both encodings are compared once in this many blocks.
const PACKED_ALIKE: usize = 8;

impl PackedBlockEncoder {
    /// Encodes a block. Keys that are texts with long common parts are smaller by rows.
    fn encode(&mut self, raw: &[u8]) -> EncodedBlock {
        let compares = self.blocks.is_multiple_of(PACKED_ALIKE);
        self.blocks += 1;
        let by_rows = || encode_parts(&columns::rows(raw));
        if !compares && !self.by_columns {
            return by_rows();
        }
        let by_columns = columns::columns(raw).map(|columns| encode_parts(&columns));
        match by_columns {
            None => by_rows(),
            Some(by_columns) if !compares => by_columns,
            Some(by_columns) => {
                let by_rows = by_rows();
                self.by_columns = by_columns.length_stored() < by_rows.length_stored();
                if self.by_columns { by_columns } else { by_rows }
            }
        }
    }
}

/// Writes one section of a run.
///
/// ```
/// use std::sync::Arc;
/// use windrow_fold::{Entry, Position, RecordId, RunSink, Section, SectionOptions, SectionWriter};
/// use windrow_storage::{Compression, MemoryDisk, Storage, StorageOptions};
///
/// let storage = Storage::open(Arc::new(MemoryDisk::new()), StorageOptions::default())?;
/// let run = RunSink::new(storage.runs.create()?);
/// let options = SectionOptions {
///     filter_bits: 10,
///     with_digest: true,
///     mark_byte: None,
///     compression: Compression::Lz4,
///     packed: false,
///     postings: None,
///     position: Position(1),
/// };
/// let mut writer = SectionWriter::new(&run, options);
/// let entry = Entry {
///     key: b"a",
///     id: RecordId(1),
///     position: Position::ZERO,
///     deleted: false,
///     payload: b"",
/// };
/// writer.push(&entry, true)?;
/// let descriptor = writer.finish()?.expect("there is an entry");
/// run.finish()?;
/// let section = Section::open(&storage.runs, descriptor)?;
/// assert!(section.may_contain(b"a")?);
/// # Ok::<(), windrow_fold::StorageError>(())
/// ```
#[derive(Debug)]
pub struct SectionWriter<'s> {
    sink: &'s RunSink,
    options: SectionOptions,
    block: BlockBuilder,
    lengths: Arc<SectionLengths>,
    /// Another writer may write keys before.
    is_later_range: bool,
    encoder: BlockEncoder,
    packer: PackedBlockEncoder,
    raw: Vec<u8>,
    fence_writer: FenceWriter,
    /// The finished fence blocks, which are written next to the root: a reader needs them together,
    /// and reads from an object store in large pieces.
    fence_blocks: Vec<EncodedBlock>,
    root: Root,
    filter_page: FilterPageBuilder,
    blocks: usize,
    /// The separator of the current block.
    separator: Vec<u8>,
    separator_id: RecordId,
    last_key: Vec<u8>,
    last_key_hash: u64,
    last_id: RecordId,
    /// `None` after an entry that a digest cannot include.
    sum: Option<EntryDigest>,
    marks: Marks,
    /// The first byte of marks. `None` after the last mark, or if the map has none.
    mark_byte: Option<u8>,
    first: Option<(Vec<u8>, RecordId)>,
    entries: u64,
    /// The number of entries in finished blocks.
    entries_in_blocks: u64,
    deletions: u64,
    bytes_stored: u64,
    bytes_raw: u64,
}

impl<'s> SectionWriter<'s> {
    /// Creates a writer. Several writers can share a run.
    pub fn new(sink: &'s RunSink, options: SectionOptions) -> SectionWriter<'s> {
        SectionWriter::with_lengths(sink, options, Arc::default())
    }

    /// Creates a writer of a later range of keys of the same section, for another thread.
    /// [`append_range`](Self::append_range) adds what it has written.
    pub fn for_later_range(&self) -> SectionWriter<'s> {
        SectionWriter {
            is_later_range: true,
            ..SectionWriter::with_lengths(self.sink, self.options, self.lengths.clone())
        }
    }

    fn with_lengths(
        sink: &'s RunSink,
        options: SectionOptions,
        lengths: Arc<SectionLengths>,
    ) -> SectionWriter<'s> {
        SectionWriter {
            sink,
            options,
            block: match options.postings {
                Some(form) => BlockBuilder::for_postings(form, lengths.clone()),
                None => BlockBuilder::default(),
            },
            lengths,
            is_later_range: false,
            encoder: BlockEncoder::new(options.compression),
            packer: PackedBlockEncoder::default(),
            raw: Vec::new(),
            fence_writer: FenceWriter::default(),
            fence_blocks: Vec::new(),
            root: Root::default(),
            filter_page: FilterPageBuilder::default(),
            blocks: 0,
            separator: Vec::new(),
            separator_id: RecordId::MIN,
            last_key: Vec::new(),
            last_key_hash: 0,
            last_id: RecordId::MIN,
            sum: options.with_digest.then(EntryDigest::default),
            marks: Marks::default(),
            mark_byte: options.mark_byte,
            first: None,
            entries: 0,
            entries_in_blocks: 0,
            deletions: 0,
            bytes_stored: 0,
            bytes_raw: 0,
        }
    }

    /// Returns the number of entries so far.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// Returns the bytes of blocks so far, before compression.
    pub fn bytes_raw(&self) -> u64 {
        self.bytes_raw + self.block.len() as u64
    }

    /// Adds the next entry in order. `new_key`: no entry with its key was added before.
    ///
    /// # Errors
    ///
    /// Fails with a bug if the entry is not in order. Without debug assertions only the first entry
    /// of each block is checked.
    pub fn push(&mut self, entry: &Entry<'_>, new_key: bool) -> Result<(), StorageError> {
        debug_assert_eq!(new_key, self.entries == 0 || self.last_key != entry.key);
        if self.block.is_full_before(entry) {
            self.end_block()?;
        }
        // The check of each entry is too slow for production.
        if cfg!(debug_assertions) || self.block.is_empty() {
            self.check_order(entry)?;
        }
        if self.block.is_empty() {
            self.begin_block(entry);
        }
        if new_key && (self.has_filter() || self.options.with_digest) {
            self.last_key_hash = filter::hash(entry.key);
        }
        if self.has_filter() {
            let is_first = new_key || self.block.is_empty();
            self.filter_page.add(entry, is_first, self.last_key_hash);
        }
        self.add_to_sum(entry, new_key);
        self.count_mark(entry);
        if new_key {
            self.last_key.clear();
            self.last_key.extend_from_slice(entry.key);
        }
        self.last_id = entry.id;
        self.block.push(entry, new_key)?;
        self.entries += 1;
        self.deletions += u64::from(entry.deleted);
        Ok(())
    }

    #[inline]
    fn add_to_sum(&mut self, entry: &Entry<'_>, new_key: bool) {
        let is_version = !new_key && self.last_id == entry.id;
        match &mut self.sum {
            Some(_) if entry.deleted || is_version => self.sum = None,
            Some(sum) => sum.add_hashed(self.last_key_hash, entry.id, entry.payload),
            None => {}
        }
    }

    /// Counts the entry if it is a mark. Marks come before all other entries.
    #[inline]
    fn count_mark(&mut self, entry: &Entry<'_>) {
        if self.mark_byte.is_none() {
            return;
        }
        if entry.key.first() == self.mark_byte.as_ref() {
            self.marks.count(entry.key, entry.deleted)
        } else {
            self.mark_byte = None
        }
    }

    /// Fails if an entry does not follow the last one.
    fn check_order(&self, entry: &Entry<'_>) -> Result<(), Bug> {
        let last = EntryKey::new(&self.last_key, self.last_id);
        if self.entries == 0 || last <= entry.entry_key() {
            return Ok(());
        }
        Err(Bug::new(format!(
            "{entry:?} was added to a section after key {:?} and id {}",
            self.last_key, self.last_id
        )))
    }

    /// Chooses the shortest separator between the last entry and this one.
    fn begin_block(&mut self, entry: &Entry<'_>) {
        self.separator.clear();
        self.separator_id = RecordId::MIN;
        if self.first.is_none() {
            self.first = Some((entry.key.to_vec(), entry.id));
        }
        if self.entries > 0 && self.last_key == entry.key {
            self.separator.extend_from_slice(entry.key);
            self.separator_id = entry.id;
            return;
        }
        if self.entries == 0 {
            self.separator.extend_from_slice(entry.key);
            // Readers search in the block before, too, if a key may begin there.
            if !self.is_later_range {
                self.separator_id = entry.id;
            }
            return;
        }
        // A greater key has a byte after the common prefix.
        let common = common_prefix(&self.last_key, entry.key);
        self.separator
            .extend_from_slice(entry.key.split_at(common + 1).0);
    }

    fn end_block(&mut self) -> Result<(), StorageError> {
        let entries = u64::from(self.block.entries());
        let mut raw = std::mem::take(&mut self.raw);
        self.block.finish(&mut raw)?;
        let pieces = self.block.take_positions();
        let has_pieces = pieces.as_ref().is_some_and(|pieces| pieces.has_pieces);
        let positions = pieces
            .map(|pieces| self.append_positions(&pieces))
            .transpose()?;
        let encoded = if !self.options.packed {
            self.encoder.encode(&raw)
        } else if has_pieces {
            encode_parts(&columns::rows(&raw))
        } else {
            self.packer.encode(&raw)
        };
        let address = self.append(encoded)?;
        self.raw = raw;
        self.fence_writer.push(&FenceRow {
            separator: &self.separator,
            id: self.separator_id,
            block: address.into(),
            entries,
            positions,
        });
        self.blocks += 1;
        self.entries_in_blocks += entries;
        if self.fence_writer.len() >= BLOCK_BYTES {
            self.end_fence_block();
        }
        if self.has_filter() && self.blocks.is_multiple_of(FILTER_BLOCKS) {
            self.end_filter()?;
        }
        Ok(())
    }

    /// Appends the positions of a data block and returns their location.
    fn append_positions(&mut self, pieces: &PiecePositions) -> Result<BlockSpan, StorageError> {
        if pieces.positions.is_empty() {
            return Ok(BlockSpan::NONE);
        }
        let address = self.append(encode_block(&pieces.positions, Compression::None))?;
        Ok(address.into())
    }

    /// Appends the pages of field lengths.
    fn end_lengths(&mut self) -> Result<(), StorageError> {
        for field in self.lengths.encode() {
            let mut pages = Vec::with_capacity(field.pages.len());
            for (number, page) in field.pages {
                let address = self.append(encode_block(&page, Compression::Lz4))?;
                let span = address.into();
                pages.push(LengthsPageSpan { number, span });
            }
            self.root.lengths.push(FieldLengthPages {
                field: field.field,
                totals: field.totals,
                pages,
            });
        }
        Ok(())
    }

    fn append(&mut self, encoded: EncodedBlock) -> Result<BlockAddress, StorageError> {
        self.bytes_raw += u64::from(encoded.length_raw());
        self.bytes_stored += u64::from(encoded.length_stored());
        self.sink.append(&encoded)
    }

    fn has_filter(&self) -> bool {
        self.options.filter_bits > 0
    }

    fn end_fence_block(&mut self) {
        if self.fence_writer.len() == 0 {
            return;
        }
        let bytes = self.fence_writer.finish();
        self.fence_blocks
            .push(encode_block(&bytes, Compression::Lz4));
    }

    /// Appends the fence blocks.
    fn end_fences(&mut self) -> Result<(), StorageError> {
        self.end_fence_block();
        for block in std::mem::take(&mut self.fence_blocks) {
            let address = self.append(block)?;
            self.root.fences.push(address.into());
        }
        Ok(())
    }

    fn end_filter(&mut self) -> Result<(), StorageError> {
        let page = self.filter_page.page(self.options.filter_bits);
        let address = match page {
            Some(page) => {
                let address = self.append(encode_block(&page, Compression::None))?;
                address.into()
            }
            None => BlockSpan::NONE,
        };
        self.root.filters.push(address);
        Ok(())
    }

    /// Appends the entries of a writer that [`for_later_range`](Self::for_later_range) created.
    ///
    /// # Errors
    ///
    /// Fails with a bug if its keys are not later, or if the section has filters, whose pages
    /// belong to a fixed number of blocks.
    pub fn append_range(mut self, mut later: SectionWriter<'s>) -> Result<Self, StorageError> {
        if self.has_filter() {
            return Err(Bug::new("a section with filters was written in ranges").into());
        }
        let Some((key, id)) = &later.first else {
            return Ok(self);
        };
        if self.first.is_none() {
            return Ok(later);
        }
        if self.last_key >= *key {
            return Err(Bug::new(format!("the range from {key:?}, {id} on is not later")).into());
        }
        for writer in [&mut self, &mut later] {
            if !writer.block.is_empty() {
                writer.end_block()?;
            }
            writer.end_fence_block();
        }
        self.fence_blocks.append(&mut later.fence_blocks);
        self.blocks += later.blocks;
        (self.last_key, self.last_id) = (later.last_key, later.last_id);
        self.sum = self.sum.zip(later.sum).map(|(mut sum, other)| {
            sum.combine(other);
            sum
        });
        self.marks.add_all(&later.marks);
        self.entries += later.entries;
        self.entries_in_blocks += later.entries_in_blocks;
        self.deletions += later.deletions;
        self.bytes_stored += later.bytes_stored;
        self.bytes_raw += later.bytes_raw;
        Ok(self)
    }

    /// Writes the last block, the fences and the root. Returns `None` if there were no entries. The
    /// run is not synced yet.
    pub fn finish(mut self) -> Result<Option<SectionDescriptor>, StorageError> {
        let Some((first_key, first_id)) = self.first.take() else {
            debug_assert_eq!(self.entries, 0);
            return Ok(None);
        };
        if !self.block.is_empty() {
            self.end_block()?;
        }
        debug_assert_eq!(self.entries_in_blocks, self.entries);
        if !self.filter_page.is_empty() {
            self.end_filter()?;
        }
        self.end_lengths()?;
        self.end_fences()?;
        let root = self.root.encode(self.options.postings.is_some());
        let root = self.append(encode_block(&root, Compression::Lz4))?;
        let first_cut = first_key.len() > KEY_BYTES_MAX;
        let last_cut = self.last_key.len() > KEY_BYTES_MAX;
        Ok(Some(SectionDescriptor {
            run: root.run,
            root_offset: root.offset,
            root_length: root.length_stored,
            position: self.options.position,
            entries: self.entries,
            deletions: self.deletions,
            bytes_stored: self.bytes_stored,
            bytes_raw: self.bytes_raw,
            packed: self.options.packed,
            postings: self.options.postings,
            first_key: first_key
                .get(..KEY_BYTES_MAX)
                .map_or(first_key.clone(), <[u8]>::to_vec),
            first_id: if first_cut { RecordId::MIN } else { first_id },
            last_key: (!last_cut).then_some(self.last_key),
            last_id: self.last_id,
            hash: self.sum.map(|sum| sum.hash),
            marks: self.marks,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::section::Section;
    use std::sync::Arc;
    use windrow_invariant::tolerate_bugs;
    use windrow_storage::{MemoryDisk, Storage, StorageOptions};

    fn options() -> SectionOptions {
        SectionOptions {
            filter_bits: 10,
            with_digest: true,
            mark_byte: None,
            compression: Compression::Lz4,
            packed: false,
            postings: None,
            position: Position(1),
        }
    }

    fn entry(key: &[u8], id: u64) -> Entry<'_> {
        Entry {
            key,
            id: RecordId(id),
            position: Position::ZERO,
            deleted: false,
            payload: b"",
        }
    }

    /// Reading all fences from an object store would otherwise read most of the section.
    #[test]
    fn fences_are_next_to_the_root() {
        let storage =
            Storage::open(Arc::new(MemoryDisk::new()), StorageOptions::default()).unwrap();
        let sink = RunSink::new(storage.runs.create().unwrap());
        let mut writer = SectionWriter::new(&sink, options());
        // Each entry is a block of its own.
        let payload = vec![0; BLOCK_BYTES];
        for id in 1..=10_000 {
            let entry = Entry {
                payload: &payload,
                ..entry(b"a", id)
            };
            writer.push(&entry, id == 1).unwrap();
        }
        writer.end_block().unwrap();
        let fences_start = sink.bytes();
        let descriptor = writer.finish().unwrap().unwrap();
        let fences_end = descriptor.root_offset + u64::from(descriptor.root_length);
        sink.finish().unwrap();
        let section = Section::open(&storage.runs, descriptor).unwrap();
        assert_eq!(section.block_count().unwrap(), 10_000);
        let root = section.root().unwrap();
        assert!(root.fences.len() > 1);
        for span in root.fences {
            assert!((fences_start..fences_end).contains(&span.offset));
        }
    }

    #[test]
    fn only_later_ranges_are_appended() {
        let storage =
            Storage::open(Arc::new(MemoryDisk::new()), StorageOptions::default()).unwrap();
        let sink = RunSink::new(storage.runs.create().unwrap());
        let options = SectionOptions {
            filter_bits: 0,
            ..options()
        };
        let writer = || {
            let mut writer = SectionWriter::new(&sink, options);
            writer.push(&entry(b"b", 2), true).unwrap();
            writer
        };
        let append = |key: &[u8]| {
            let first = writer();
            let mut later = first.for_later_range();
            later.push(&entry(key, 3), true).unwrap();
            first.append_range(later)
        };
        for key in [b"a", b"b"] {
            let refused = tolerate_bugs(|| append(key).map(drop));
            assert!(matches!(refused, Err(StorageError::Bug(_))), "{key:?}");
        }
        let (empty, whole) = (SectionWriter::new(&sink, options), append(b"c").unwrap());
        let whole = whole.append_range(empty.for_later_range()).unwrap();
        let descriptor = empty
            .append_range(whole)
            .unwrap()
            .finish()
            .unwrap()
            .unwrap();
        let mut expected = writer();
        expected.push(&entry(b"c", 3), true).unwrap();
        let expected = expected.finish().unwrap().unwrap();
        assert_eq!(descriptor.hash, expected.hash);
        assert_eq!(
            (descriptor.entries, descriptor.last_key),
            (2, expected.last_key)
        );
        assert_eq!(descriptor.first_key, expected.first_key);
        let with_filters = SectionWriter::new(&sink, super::tests::options());
        let later = with_filters.for_later_range();
        let refused = tolerate_bugs(|| with_filters.append_range(later).map(drop));
        assert!(matches!(refused, Err(StorageError::Bug(_))));
    }

    /// A section of unsorted entries would have been written, and readers would not have found
    /// them.
    #[test]
    fn entries_out_of_order_are_refused() {
        let storage =
            Storage::open(Arc::new(MemoryDisk::new()), StorageOptions::default()).unwrap();
        let sink = RunSink::new(storage.runs.create().unwrap());
        for later in [entry(b"a", 9), entry(b"b", 1), entry(b"", 0)] {
            let mut writer = SectionWriter::new(&sink, options());
            writer.push(&entry(b"b", 2), true).unwrap();
            writer.push(&entry(b"b", 2), false).unwrap();
            let new_key = later.key != b"b";
            let refused = tolerate_bugs(|| writer.push(&later, new_key));
            assert!(matches!(refused, Err(StorageError::Bug(_))), "{later:?}");
        }
    }
}
