//! Writing a run: header, blocks, footer. The layout is drawn in docs/format.md.

use std::io;
use std::sync::Arc;

use super::block::{BlockAddress, EncodedBlock};
use super::{FOLDER, RunId, RunStore, path, unfinished_path};
use crate::checksum::checksum;
use crate::disk::{DiskFile, at};
use crate::encryption::{Cipher, FileKind, new_file_key};
use crate::error::StorageError;
use crate::fields::{put, u64_at};

const MAGIC: &[u8; 8] = b"WRrun-01";
const END_MAGIC: &[u8; 8] = b"WRend-01";
const HEADER_BYTES: usize = 32;
const FOOTER_BYTES: usize = 40;
/// Blocks are buffered up to this size, so that the operating system gets few large writes.
const WRITE_BYTES: usize = 1 << 20;

/// Writes one run. [`RunWriter::finish`] makes the run visible. If the writer is dropped without
/// it, the file is removed. [`Runs`](crate::Runs) has an example.
pub struct RunWriter {
    store: Arc<RunStore>,
    file: Arc<dyn DiskFile>,
    run: RunId,
    /// The key of an encrypted run.
    cipher: Option<Cipher>,
    buffer: Vec<u8>,
    /// The offset of the buffer's first byte in the file.
    offset: u64,
    block_count: u64,
    finished: bool,
}

impl RunWriter {
    pub(super) fn create(store: Arc<RunStore>, run: RunId) -> Result<Self, StorageError> {
        let path = unfinished_path(run);
        let disk = &store.disk;
        let created = new_file_key(store.keys.as_deref(), FileKind::Run, run.0);
        let key = created.map_err(at(disk, &path))?;
        let file = disk.create(&path).map_err(at(disk, &path))?;
        let mut buffer = Vec::with_capacity(WRITE_BYTES + WRITE_BYTES / 4);
        buffer.extend_from_slice(&header(run, key.header_field));
        Ok(Self {
            store,
            file,
            run,
            cipher: key.cipher,
            buffer,
            offset: 0,
            block_count: 0,
            finished: false,
        })
    }

    /// Returns the id of the run.
    pub fn run(&self) -> RunId {
        self.run
    }

    /// Returns `true` if no block was appended.
    pub fn is_empty(&self) -> bool {
        self.block_count == 0
    }

    /// Returns the current length of the file in bytes, with the buffered blocks.
    pub fn bytes(&self) -> u64 {
        self.offset + self.buffer.len() as u64
    }

    /// Appends a block and returns its address. The block can be read after
    /// [`finish`](RunWriter::finish).
    ///
    /// # Errors
    /// Fails if the write of the buffer fails.
    pub fn append(&mut self, block: &EncodedBlock) -> Result<BlockAddress, StorageError> {
        debug_assert!(block.length_stored() as usize >= super::block::HEADER_BYTES);
        let offset = self.bytes();
        let length_stored = block.put(self.run, offset, self.cipher.as_ref(), &mut self.buffer)?;
        let address = BlockAddress {
            run: self.run,
            offset,
            length_stored,
        };
        self.block_count += 1;
        if self.buffer.len() >= WRITE_BYTES {
            self.write_buffer()?;
        }
        Ok(address)
    }

    /// Makes the run durable and visible:
    ///
    /// 1. Write the footer and sync the file.
    /// 2. Upload it if the database is in an object store, because other servers read what the
    ///    catalog refers to.
    /// 3. Rename it from its unfinished name, so that a crash never leaves an incomplete run under
    ///    the name of a run.
    /// 4. Sync the folder, because the catalog may refer to the run afterwards.
    /// 5. If it was uploaded, remove other files of runs that were, as the limit of them says.
    ///
    /// # Errors
    /// Fails if one of the steps fails. The file is then removed.
    pub fn finish(mut self) -> Result<RunId, StorageError> {
        let footer = footer(self.run, self.bytes(), self.block_count);
        self.buffer.extend_from_slice(&footer);
        self.write_buffer()?;
        let (from, to) = (unfinished_path(self.run), path(self.run));
        let disk = &self.store.disk;
        self.file.sync_data().map_err(at(disk, &from))?;
        if let Some(objects) = &self.store.objects {
            objects.upload(self.run, self.file.as_ref())?;
        }
        disk.rename(&from, &to).map_err(at(disk, &to))?;
        self.finished = true;
        if let Err(error) = disk.sync_dir(FOLDER).map_err(at(disk, FOLDER)) {
            // If the remove fails, `Runs::retain` deletes the file at the next start.
            let _ = disk.remove(&to);
            return Err(error);
        }
        self.store.add_local(self.run, self.offset);
        Ok(self.run)
    }

    fn write_buffer(&mut self) -> Result<(), StorageError> {
        self.file
            .write_at(self.offset, &self.buffer)
            .map_err(at(&self.store.disk, &unfinished_path(self.run)))?;
        self.offset += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}

impl Drop for RunWriter {
    fn drop(&mut self) {
        if !self.finished {
            // If the remove fails, `Runs::retain` deletes the file at the next start.
            let _ = self.store.disk.remove(&unfinished_path(self.run));
        }
    }
}

/// Returns the header of a run. `key_field` is that of [`DataKeys::create_file_key`], or zeros.
fn header(run: RunId, key_field: [u8; 8]) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    put(&mut bytes, 0, MAGIC);
    put(&mut bytes, 8, &run.0.to_le_bytes());
    put(&mut bytes, 16, &key_field);
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

/// Checks that a file has the header of `run`. Returns the field of the header with its key. The
/// inner error describes the defect.
pub(super) fn check_header(
    file: &dyn DiskFile,
    run: RunId,
) -> io::Result<Result<[u8; 8], &'static str>> {
    let mut first = [0; HEADER_BYTES];
    file.read_at(0, &mut first)?;
    let key_field = u64_at(&first, 16).unwrap_or_default().to_le_bytes();
    if first == header(run, key_field) {
        return Ok(Ok(key_field));
    }
    Ok(Err(
        "its header, the first 32 bytes, is not what was written",
    ))
}

/// Checks that a file of `bytes` bytes has the footer of `run`: it is whole. The inner error
/// describes the defect.
pub(super) fn check_footer(
    file: &dyn DiskFile,
    run: RunId,
    bytes: u64,
) -> io::Result<Result<(), &'static str>> {
    let Some(offset) = bytes.checked_sub(FOOTER_BYTES as u64) else {
        return Ok(Err("it is shorter than a run can be"));
    };
    let mut last = [0; FOOTER_BYTES];
    file.read_at(offset, &mut last)?;
    match u64_at(&last, 24) {
        Some(block_count) if last == footer(run, offset, block_count) => Ok(Ok(())),
        _ => Ok(Err(
            "its footer, the last 40 bytes, is not what was written",
        )),
    }
}
