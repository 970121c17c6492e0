//! [`LocalFiles`]: the run files of a data folder whose database is in an object store. A run has
//! its final name only after it was uploaded. The files that were not read for the longest time are
//! therefore removed if all of them together are too large. Later reads of such a run read parts of
//! the object.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::block::BlockAddress;
use super::run_file::RunFile;
use super::{RunId, RunStore, path};
use crate::disk::at;
use crate::error::StorageError;

/// The run files of the data folder that can be removed. Empty if there is no object store.
#[derive(Default)]
pub(super) struct LocalFiles {
    files: Mutex<HashMap<RunId, LocalFile>>,
    /// The sizes of runs whose files were removed, in bytes.
    evicted: Mutex<HashMap<RunId, u64>>,
    /// Counts reads of files and new files.
    clock: AtomicU64,
}

#[derive(Clone, Copy)]
struct LocalFile {
    bytes: u64,
    /// The time at which the file was written, by the clock of [`LocalFiles`].
    added: u64,
}

impl LocalFiles {
    /// Returns the next time.
    pub fn advance_clock(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub fn has(&self, run: RunId) -> bool {
        self.files.lock().contains_key(&run)
    }

    fn add(&self, run: RunId, bytes: u64) {
        let added = self.advance_clock();
        self.files.lock().insert(run, LocalFile { bytes, added });
    }

    /// Returns the size of a run whose file was removed.
    pub fn evicted_bytes(&self, run: RunId) -> Option<u64> {
        self.evicted.lock().get(&run).copied()
    }

    fn evict(&self, run: RunId) -> bool {
        let file = self.files.lock().remove(&run);
        if let Some(file) = &file {
            self.evicted.lock().insert(run, file.bytes);
        }
        file.is_some()
    }

    fn forget(&self, run: RunId) -> bool {
        self.evicted.lock().remove(&run);
        self.files.lock().remove(&run).is_some()
    }

    fn bytes(&self) -> u64 {
        self.files.lock().values().map(|file| file.bytes).sum()
    }

    fn all(&self) -> Vec<(RunId, LocalFile)> {
        let files = self.files.lock();
        files.iter().map(|(run, file)| (*run, *file)).collect()
    }
}

impl RunStore {
    /// Counts the files of an earlier process, and removes some as the limit says.
    pub(super) fn count_local(&self, runs: &[RunId]) -> Result<(), StorageError> {
        if self.objects.is_none() {
            return Ok(());
        }
        for run in runs {
            let path = path(*run);
            let bytes = self.disk.open(&path).and_then(|file| file.len());
            self.local.add(*run, bytes.map_err(at(&self.disk, &path))?);
        }
        self.evict_local();
        Ok(())
    }

    /// Counts the file of a run that was uploaded, and removes others as the limit says.
    pub(super) fn add_local(&self, run: RunId, bytes: u64) {
        if self.objects.is_some() {
            self.local.add(run, bytes);
            self.evict_local();
        }
    }

    fn evict_local(&self) {
        let Some(objects) = &self.objects else {
            return;
        };
        let mut bytes = self.local.bytes();
        if bytes > objects.local_bytes_max() {
            let mut files = self.local.all();
            files.sort_by_cached_key(|(run, file)| (self.last_read(*run).max(file.added), *run));
            for (run, file) in files {
                if bytes <= objects.local_bytes_max() {
                    break;
                }
                self.remove_local(run);
                bytes -= file.bytes;
            }
        }
        objects.set_local_bytes(self.local.bytes());
    }

    /// Returns when a run was last read. 0 if it is not open.
    fn last_read(&self, run: RunId) -> u64 {
        let open = self.files.read().get(&run).and_then(|it| it.file.upgrade());
        open.map_or(0, |file| file.last_read.load(Ordering::Relaxed))
    }

    /// Removes the file of a run that is in the object store. Reads in progress are not disturbed.
    /// Returns `false` if there was none.
    ///
    /// A file can be opened meanwhile, before its name is gone and after this function has looked
    /// for open files. [`RunStore::leave_evicted`] notices that.
    pub(super) fn remove_local(&self, run: RunId) -> bool {
        if !self.local.evict(run) {
            return false;
        }
        // What cannot be removed is counted again at the next start.
        let _ = self.disk.remove(&path(run));
        let files = self.files.write();
        let open = files.get(&run).and_then(|it| it.file.upgrade());
        // Its drop can take the lock.
        drop(files);
        if let Some(open) = open {
            self.leave_evicted(&open);
        }
        true
    }

    /// Lets an open file read from the object store if it is not in the data folder any more.
    pub(super) fn leave_evicted(&self, file: &RunFile) {
        if let Some(objects) = &self.objects
            && !self.local.has(file.run)
        {
            *file.file.write() = objects.file(file.run, file.bytes);
        }
    }

    pub(super) fn forget_local(&self, run: RunId) {
        if self.local.forget(run)
            && let Some(objects) = &self.objects
        {
            objects.set_local_bytes(self.local.bytes());
        }
    }

    /// Discards what the local disk has of a damaged block, if the object store has it, too.
    pub(super) fn discard_local(self: &Arc<Self>, file: &RunFile, address: BlockAddress) -> bool {
        let Some(objects) = &self.objects else {
            return false;
        };
        if !self.remove_local(file.run) {
            let end = address.offset + u64::from(address.length_stored);
            objects.discard(file.run, address.offset..end);
        }
        true
    }
}
