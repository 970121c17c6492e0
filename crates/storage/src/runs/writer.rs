use std::io;
use std::sync::Arc;

use super::block::{BlockAddress, EncodedBlock};
use super::{FOLDER, RunId, path, unfinished_path};
use crate::checksum::checksum;
use crate::disk::{Disk, DiskFile};
use crate::error::StorageError;
use crate::fields::{put, u64_at};
use crate::folder::at;

const MAGIC: &[u8; 8] = b"WRrun-01";
const END_MAGIC: &[u8; 8] = b"WRend-01";
const HEADER_BYTES: usize = 32;
const FOOTER_BYTES: usize = 40;
/// Blocks are handed to the operating system in writes of at least this size.
const WRITE_BYTES: usize = 1 << 20;

/// Writes one run. Nobody sees the file before [`RunWriter::finish`]; dropped without it, the
/// file is removed.
pub struct RunWriter {
    disk: Arc<dyn Disk>,
    file: Arc<dyn DiskFile>,
    run: RunId,
    buffer: Vec<u8>,
    /// Where the buffer's first byte goes.
    offset: u64,
    block_count: u64,
    finished: bool,
}

impl RunWriter {
    pub(crate) fn create(disk: Arc<dyn Disk>, run: RunId) -> Result<Self, StorageError> {
        let path = unfinished_path(run);
        let file = disk.create(&path).map_err(at(&disk, &path))?;
        let mut buffer = Vec::with_capacity(WRITE_BYTES + WRITE_BYTES / 4);
        buffer.extend_from_slice(&header(run));
        Ok(Self {
            disk,
            file,
            run,
            buffer,
            offset: 0,
            block_count: 0,
            finished: false,
        })
    }

    /// The number that the run will have.
    pub fn run(&self) -> RunId {
        self.run
    }

    /// Whether no block was appended.
    pub fn is_empty(&self) -> bool {
        self.block_count == 0
    }

    /// How long the file is so far, in bytes.
    pub fn bytes(&self) -> u64 {
        self.offset + self.buffer.len() as u64
    }

    /// Puts a block at the end; where that is is known at once.
    pub fn append(&mut self, block: &EncodedBlock) -> Result<BlockAddress, StorageError> {
        debug_assert!(block.length_stored() as usize >= super::block::HEADER_BYTES);
        let address = BlockAddress {
            run: self.run,
            offset: self.bytes(),
            length_stored: block.length_stored(),
        };
        block.put(self.run, address.offset, &mut self.buffer);
        self.block_count += 1;
        if self.buffer.len() >= WRITE_BYTES {
            self.write_buffer()?;
        }
        Ok(address)
    }

    /// Makes the run durable, under its name.
    pub fn finish(mut self) -> Result<RunId, StorageError> {
        let footer = footer(self.run, self.bytes(), self.block_count);
        self.buffer.extend_from_slice(&footer);
        self.write_buffer()?;
        let (from, to) = (unfinished_path(self.run), path(self.run));
        self.file.sync_data().map_err(at(&self.disk, &from))?;
        self.disk.rename(&from, &to).map_err(at(&self.disk, &to))?;
        self.finished = true;
        let synced = self.disk.sync_dir(FOLDER).map_err(at(&self.disk, FOLDER));
        if synced.is_err() {
            // A file that stays is removed at the next start.
            let _ = self.disk.remove(&to);
        }
        synced.map(|()| self.run)
    }

    fn write_buffer(&mut self) -> Result<(), StorageError> {
        self.file
            .write_at(self.offset, &self.buffer)
            .map_err(at(&self.disk, &unfinished_path(self.run)))?;
        self.offset += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}

impl Drop for RunWriter {
    fn drop(&mut self) {
        if !self.finished {
            // A file that stays is removed at the next start.
            let _ = self.disk.remove(&unfinished_path(self.run));
        }
    }
}

fn header(run: RunId) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    put(&mut bytes, 0, MAGIC);
    put(&mut bytes, 8, &run.0.to_le_bytes());
    let sum = checksum(run.0, bytes.split_at(24).0);
    put(&mut bytes, 24, &sum.to_le_bytes());
    bytes
}

fn footer(run: RunId, offset: u64, block_count: u64) -> [u8; FOOTER_BYTES] {
    let mut bytes = [0; FOOTER_BYTES];
    put(&mut bytes, 0, END_MAGIC);
    put(&mut bytes, 8, &run.0.to_le_bytes());
    put(&mut bytes, 16, &offset.to_le_bytes());
    put(&mut bytes, 24, &block_count.to_le_bytes());
    let sum = checksum(run.0, bytes.split_at(32).0);
    put(&mut bytes, 32, &sum.to_le_bytes());
    bytes
}

/// Whether a file of `bytes` begins and ends as run `run` must; the inner error says what does
/// not.
pub(crate) fn check_ends(
    file: &dyn DiskFile,
    run: RunId,
    bytes: u64,
) -> io::Result<Result<(), &'static str>> {
    let Some(offset) = bytes.checked_sub(FOOTER_BYTES as u64) else {
        return Ok(Err("it is shorter than a run can be"));
    };
    let mut first = [0; HEADER_BYTES];
    file.read_at(0, &mut first)?;
    if first != header(run) {
        return Ok(Err(
            "its header, the first 32 bytes, is not what was written",
        ));
    }
    let mut last = [0; FOOTER_BYTES];
    file.read_at(offset, &mut last)?;
    match u64_at(&last, 24) {
        Some(block_count) if last == footer(run, offset, block_count) => Ok(Ok(())),
        _ => Ok(Err(
            "its footer, the last 40 bytes, is not what was written",
        )),
    }
}
