//! [`RunFile`]: the open file of a run, in the data folder or in the object store.

use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::RwLock;

use super::block::{self, Block, BlockAddress, StoredRun};
use super::{RunId, RunStore, path, writer};
use crate::disk::{DiskFile, at};
use crate::encryption::{Cipher, DataKeys, FileKind};
use crate::error::StorageError;

/// The open file of a run.
pub(super) struct RunFile {
    pub run: RunId,
    pub bytes: u64,
    /// The file in the data folder, or the object. An eviction replaces the former by the latter.
    pub file: RwLock<Arc<dyn DiskFile>>,
    /// The key of an encrypted run. That of an object is read with its first block.
    cipher: OnceLock<Option<Cipher>>,
    /// The time at which a block was last read from the file, by the clock of
    /// [`LocalFiles`](super::LocalFiles).
    pub last_read: AtomicU64,
    pub removed: AtomicBool,
    shared: Weak<RunStore>,
}

impl RunFile {
    /// Opens a run. A damaged file in the data folder is replaced by the object if there is one.
    pub fn open(shared: &Arc<RunStore>, run: RunId) -> Result<Self, StorageError> {
        let path = path(run);
        let file = match shared.disk.open(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Self::open_object(shared, run);
            }
            opened => opened.map_err(at(&shared.disk, &path))?,
        };
        match Self::open_local(shared, run, file) {
            Err(StorageError::Damaged { .. }) if shared.objects.is_some() => {
                shared.remove_local(run);
                Self::open_object(shared, run)
            }
            opened => opened,
        }
    }

    fn open_local(
        shared: &Arc<RunStore>,
        run: RunId,
        file: Arc<dyn DiskFile>,
    ) -> Result<Self, StorageError> {
        let path = path(run);
        let bytes = file.len().map_err(at(&shared.disk, &path))?;
        let whole = writer::check_footer(file.as_ref(), run, bytes);
        let damaged = |what| StorageError::damaged(shared.disk.place(&path), what);
        whole.map_err(at(&shared.disk, &path))?.map_err(damaged)?;
        let opened = Self::new(shared, run, file, bytes);
        opened.cipher(shared)?;
        Ok(opened)
    }

    /// Opens a run that is not in the data folder. One request asks for its size, unless this
    /// server wrote it. An object is written as a whole, and its blocks have checksums, so nothing
    /// is read yet.
    fn open_object(shared: &Arc<RunStore>, run: RunId) -> Result<Self, StorageError> {
        let place = shared.disk.place(&path(run));
        let Some(objects) = &shared.objects else {
            return Err(StorageError::damaged(place, "the file is missing"));
        };
        let bytes = match shared.local.evicted_bytes(run) {
            Some(bytes) => bytes,
            None => objects
                .size(run)?
                .ok_or(StorageError::RunDeleted { place })?,
        };
        Ok(Self::new(shared, run, objects.file(run, bytes), bytes))
    }

    fn new(shared: &Arc<RunStore>, run: RunId, file: Arc<dyn DiskFile>, bytes: u64) -> Self {
        Self {
            run,
            bytes,
            file: RwLock::new(file),
            cipher: OnceLock::new(),
            last_read: AtomicU64::new(0),
            removed: AtomicBool::new(false),
            shared: Arc::downgrade(shared),
        }
    }

    /// Reads a block.
    pub fn read(&self, shared: &RunStore, address: BlockAddress) -> Result<Block, StorageError> {
        if shared.objects.is_some() {
            let now = shared.local.advance_clock();
            self.last_read.store(now, Ordering::Relaxed);
        }
        let cipher = self.cipher(shared)?;
        let file = self.file.read().clone();
        let stored = StoredRun {
            file: file.as_ref(),
            bytes: self.bytes,
            cipher,
        };
        block::read(&stored, address, || shared.disk.place(&path(self.run)))
    }

    /// Returns the key of the run, or `None` if it is not encrypted. The key is in the header,
    /// which is read if it is needed: not for runs of an object store that is not encrypted.
    fn cipher(&self, shared: &RunStore) -> Result<Option<&Cipher>, StorageError> {
        if let Some(cipher) = self.cipher.get() {
            return Ok(cipher.as_ref());
        }
        let is_object = shared.objects.is_some() && !shared.local.has(self.run);
        let cipher = match &shared.keys {
            None if is_object => None,
            keys => self.read_cipher(shared, keys.as_deref())?,
        };
        Ok(self.cipher.get_or_init(|| cipher).as_ref())
    }

    fn read_cipher(
        &self,
        shared: &RunStore,
        keys: Option<&DataKeys>,
    ) -> Result<Option<Cipher>, StorageError> {
        let path = path(self.run);
        let file = self.file.read().clone();
        let damaged = |what| StorageError::damaged(shared.disk.place(&path), what);
        let field = writer::check_header(file.as_ref(), self.run)
            .map_err(at(&shared.disk, &path))?
            .map_err(damaged)?;
        run_cipher(keys, self.run, field).map_err(damaged)
    }
}

/// Returns the key of a run by the field in its header. The error describes the defect.
fn run_cipher(
    keys: Option<&DataKeys>,
    run: RunId,
    field: [u8; 8],
) -> Result<Option<Cipher>, &'static str> {
    match keys {
        None if field == [0; 8] => Ok(None),
        None => Err("it is encrypted, and the data folder is not"),
        Some(keys) => keys
            .file_key(FileKind::Run, run.0, field)
            .map(Some)
            .ok_or("the data key that it uses is not in the file KEYS"),
    }
}

impl Drop for RunFile {
    fn drop(&mut self) {
        if !self.removed.load(Ordering::Acquire) {
            return;
        }
        if let Some(shared) = self.shared.upgrade() {
            // If the remove fails, `retain` deletes the file at the next start.
            let _ = shared.disk.remove(&path(self.run));
            if let Some(objects) = &shared.objects {
                objects.remove(self.run);
            }
            shared.forget(Some(self.run));
        }
    }
}
