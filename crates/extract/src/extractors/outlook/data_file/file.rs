//! A data file and its state while it is read.

use std::io::SeekFrom;

use super::cipher::Cipher;
use super::layout::{HEADER_BYTES, Header, Layout};
use super::page::{Index, PageCache};
use super::{FORMAT, damaged};
use crate::error::ExtractError;
use crate::format::ReadSeek;

pub(super) struct DataFile<'r> {
    reader: &'r mut dyn ReadSeek,
    pub(super) layout: &'static Layout,
    pub(super) cipher: Cipher,
    node_index: u64,
    block_index: u64,
    pub(super) pages: PageCache,
    /// The size of the file in bytes.
    pub(super) bytes: u64,
    /// The first damage or limit since [`DataFile::take_damage`]. It made the output incomplete.
    damage: Option<ExtractError>,
}

impl<'r> DataFile<'r> {
    pub(super) fn open(reader: &'r mut dyn ReadSeek) -> Result<Self, ExtractError> {
        let read_error = |error| ExtractError::malformed(FORMAT, error);
        let bytes = reader.seek(SeekFrom::End(0)).map_err(read_error)?;
        let mut head = Vec::new();
        reader.rewind().map_err(read_error)?;
        let mut limited = std::io::Read::take(&mut *reader, HEADER_BYTES as u64);
        std::io::Read::read_to_end(&mut limited, &mut head).map_err(read_error)?;
        let header = Header::parse(&head)?;
        Ok(DataFile {
            reader,
            layout: header.layout,
            cipher: header.cipher,
            node_index: header.node_index,
            block_index: header.block_index,
            pages: PageCache::new(header.layout),
            bytes,
            damage: None,
        })
    }

    /// Returns the position of the root of an index.
    pub(super) fn root(&self, index: Index) -> u64 {
        match index {
            Index::Blocks => self.block_index,
            Index::Nodes => self.node_index,
        }
    }

    pub(super) fn read_at(&mut self, position: u64, bytes: usize) -> Result<Vec<u8>, ExtractError> {
        let end = position.checked_add(bytes as u64);
        if end.is_none_or(|end| end > self.bytes) {
            return Err(damaged("it is cut off"));
        }
        let mut buffer = vec![0; bytes];
        let read = self.reader.seek(SeekFrom::Start(position));
        read.and_then(|_| self.reader.read_exact(&mut buffer))
            .map_err(|error| ExtractError::malformed(FORMAT, error))?;
        Ok(buffer)
    }

    /// Records the reason why a part of an item is missing or wrong.
    pub(super) fn record_damage(&mut self, error: ExtractError) {
        self.damage.get_or_insert(error);
    }

    pub(super) fn take_damage(&mut self) -> Option<ExtractError> {
        self.damage.take()
    }
}
