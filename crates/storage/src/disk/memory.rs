//! [`MemoryDisk`]: a disk in memory for tests, with crashes, torn writes and failures.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::sync::Arc;

use parking_lot::Mutex;

use super::{Disk, DiskFile, LockOutcome};
use crate::checksum::checksum;

/// The kind of a simulated crash: what it does to changes that are not synced.
#[derive(Clone, Copy, Debug)]
pub enum Crash {
    /// The process dies and the machine does not: no write is lost.
    OfProcess,
    /// Power is lost, and all unsynced changes are lost.
    LosingUnsynced,
    /// Power is lost, and some of the unsynced changes are lost. Of the changes of names, a prefix
    /// is kept. Of the changes of each file, either a prefix is kept, or any of the sectors of 512
    /// bytes.
    Tearing {
        /// The seed of the random choices. The same seed makes the same choices.
        seed: u64,
    },
}

/// A disk in memory that tracks which changes are durable, and that can be made to fail.
///
/// Clones share the files, as two processes share a disk. [`MemoryDisk::crash`] returns another
/// disk with the files that a crash leaves.
///
/// ```
/// use windrow_storage::{Crash, Disk, MemoryDisk};
///
/// let disk = MemoryDisk::new();
/// let file = disk.create("file")?;
/// disk.sync_dir("")?;
/// file.write_at(0, b"synced")?;
/// file.sync_data()?;
/// file.write_at(0, b"unsynced")?;
///
/// assert_eq!(disk.crash(Crash::OfProcess).open("file")?.len()?, 8);
/// assert_eq!(disk.crash(Crash::LosingUnsynced).open("file")?.len()?, 6);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct MemoryDisk(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    names: Names,
    durable_names: Names,
    /// Changes of names since the last sync, oldest first.
    pending_names: Vec<NameChange>,
    folders: BTreeSet<String>,
    faults: Faults,
    locked: Option<Arc<()>>,
    syncs: u64,
}

type Names = BTreeMap<String, Arc<Mutex<FileContent>>>;

#[derive(Clone)]
enum NameChange {
    Put(String, Arc<Mutex<FileContent>>),
    Rename(String, String),
    Remove(String),
}

#[derive(Default, Clone)]
struct Faults {
    bytes_max: Option<u64>,
    failing_writes: bool,
    failing_syncs: bool,
    changes_left: Option<u64>,
}

#[derive(Clone, Default)]
struct FileContent {
    bytes: Vec<u8>,
    durable: Vec<u8>,
    pending: Vec<FileChange>,
}

#[derive(Clone)]
enum FileChange {
    Write(u64, Vec<u8>),
    SetLength(u64),
}

impl MemoryDisk {
    /// Returns an empty disk without limits and failures.
    pub fn new() -> Self {
        Self::default()
    }

    /// Limits the sum of all file lengths, in bytes. A write that would exceed it fails with
    /// `StorageFull` and may write a part of its bytes. `None` removes the limit.
    pub fn set_bytes_max(&self, bytes_max: Option<u64>) {
        self.0.lock().faults.bytes_max = bytes_max;
    }

    /// If `failing` is true, each write fails with an I/O error after half of its bytes.
    pub fn set_failing_writes(&self, failing: bool) {
        self.0.lock().faults.failing_writes = failing;
    }

    /// If `failing` is true, each sync fails with an I/O error and makes nothing durable.
    pub fn set_failing_syncs(&self, failing: bool) {
        self.0.lock().faults.failing_syncs = failing;
    }

    /// Lets `changes` more changes succeed and all later ones fail, as if the process ended at that
    /// place. Creates, renames, removes, syncs and changes of lengths count. Writes do not count
    /// and do not fail. `None` removes the limit.
    pub fn set_changes_left(&self, changes: Option<u64>) {
        self.0.lock().faults.changes_left = changes;
    }

    /// Returns the sum of all file lengths, in bytes.
    pub fn bytes(&self) -> u64 {
        self.0.lock().bytes()
    }

    /// Returns a checksum of the names and the contents of all files.
    pub fn digest(&self) -> u64 {
        let state = self.0.lock();
        state.names.iter().fold(0, |digest, (name, content)| {
            let digest = checksum(digest, name.as_bytes());
            checksum(digest, &content.lock().bytes)
        })
    }

    /// Returns the number of file syncs that succeeded.
    pub fn sync_count(&self) -> u64 {
        self.0.lock().syncs
    }

    /// Returns another disk with the files that a crash at this moment leaves. It is not locked,
    /// and has no limits and failures. This disk does not change. After [`Crash::OfProcess`],
    /// unsynced changes are still unsynced on the new disk. After a power loss, all of it is
    /// durable.
    pub fn crash(&self, crash: Crash) -> MemoryDisk {
        let state = self.0.lock();
        let mut random = Random(match crash {
            Crash::Tearing { seed } => seed,
            _ => 0,
        });
        let mut left = match crash {
            Crash::OfProcess => state.copy(),
            Crash::LosingUnsynced => State::after_power_loss(state.durable_names.clone()),
            Crash::Tearing { .. } => State::after_power_loss(state.torn_names(&mut random)),
        };
        left.folders = state.folders.clone();
        for content in left
            .names
            .values_mut()
            .filter(|_| !matches!(crash, Crash::OfProcess))
        {
            let bytes = content.lock().after_crash(crash, &mut random);
            let durable = bytes.clone();
            *content = Arc::new(Mutex::new(FileContent {
                bytes,
                durable,
                pending: Vec::new(),
            }));
        }
        if !matches!(crash, Crash::OfProcess) {
            left.durable_names = left.names.clone();
        }
        MemoryDisk(Arc::new(Mutex::new(left)))
    }

    /// Changes the bytes of a file durably, to simulate damage.
    ///
    /// # Panics
    /// Panics if the file does not exist.
    pub fn spoil(&self, path: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let Some(content) = self.0.lock().names.get(path).cloned() else {
            panic!("there is no file {path:?} to spoil");
        };
        let mut content = content.lock();
        change(&mut content.bytes);
        content.durable = content.bytes.clone();
        content.pending.clear();
    }
}

impl State {
    /// Counts a change before it is made. Fails if the limit of changes is reached.
    fn count_change(&mut self) -> io::Result<()> {
        match &mut self.faults.changes_left {
            Some(0) => Err(io::Error::other(
                "the disk was told to take no more changes",
            )),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn check_syncing(&mut self) -> io::Result<()> {
        self.count_change()?;
        if self.faults.failing_syncs {
            return Err(io::Error::other("the disk was told to fail syncs"));
        }
        Ok(())
    }

    fn bytes(&self) -> u64 {
        self.names
            .values()
            .map(|content| content.lock().bytes.len() as u64)
            .sum()
    }

    fn after_power_loss(names: Names) -> Self {
        Self {
            names,
            ..Self::default()
        }
    }

    /// Returns a deep copy. A file that is reachable under several names, of the durable and of the
    /// current ones, is copied once.
    fn copy(&self) -> Self {
        let mut copies = HashMap::new();
        let mut copy = |content: &Arc<Mutex<FileContent>>| -> Arc<Mutex<FileContent>> {
            let fresh = || Arc::new(Mutex::new(content.lock().clone()));
            copies
                .entry(Arc::as_ptr(content))
                .or_insert_with(fresh)
                .clone()
        };
        let mut copy_names = |names: &Names| -> Names {
            names
                .iter()
                .map(|(name, content)| (name.clone(), copy(content)))
                .collect()
        };
        let (names, durable_names) = (copy_names(&self.names), copy_names(&self.durable_names));
        let copy_change = |change: &NameChange| match change {
            NameChange::Put(name, content) => NameChange::Put(name.clone(), copy(content)),
            other => other.clone(),
        };
        let pending_names = self.pending_names.iter().map(copy_change).collect();
        Self {
            names,
            durable_names,
            pending_names,
            ..Self::default()
        }
    }

    /// Returns the durable names with a random prefix of the unsynced changes.
    fn torn_names(&self, random: &mut Random) -> Names {
        let mut names = self.durable_names.clone();
        let kept = random.below(self.pending_names.len() as u64 + 1);
        for change in self.pending_names.iter().take(kept as usize) {
            apply_name(&mut names, change.clone());
        }
        names
    }

    fn change_name(&mut self, change: NameChange) {
        apply_name(&mut self.names, change.clone());
        self.pending_names.push(change);
    }
}

fn apply_name(names: &mut Names, change: NameChange) {
    match change {
        NameChange::Put(name, content) => {
            names.insert(name, content);
        }
        NameChange::Rename(from, to) => {
            if let Some(content) = names.remove(&from) {
                names.insert(to, content);
            }
        }
        NameChange::Remove(name) => {
            names.remove(&name);
        }
    }
}

impl FileContent {
    /// Returns the bytes that `crash` leaves.
    fn after_crash(&self, crash: Crash, random: &mut Random) -> Vec<u8> {
        match crash {
            Crash::OfProcess => self.bytes.clone(),
            Crash::LosingUnsynced => self.durable.clone(),
            Crash::Tearing { .. } => {
                let mut bytes = self.durable.clone();
                // Either a prefix of the changes is kept, or a random part of each change.
                let in_order = random.below(2) == 0;
                let kept = random.below(self.pending.len() as u64 + 1) as usize;
                for (index, change) in self.pending.iter().enumerate() {
                    if !in_order {
                        change.apply_torn(&mut bytes, random);
                    } else if index < kept {
                        change.apply(&mut bytes);
                    }
                }
                bytes
            }
        }
    }
}

const SECTOR_BYTES: u64 = 512;

impl FileChange {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::SetLength(length) => bytes.resize(*length as usize, 0),
            Self::Write(offset, written) => write_into(bytes, *offset, written),
        }
    }

    /// Applies a random selection of the sectors of a write.
    fn apply_torn(&self, bytes: &mut Vec<u8>, random: &mut Random) {
        let Self::Write(offset, written) = self else {
            return self.apply(bytes);
        };
        let mut done = 0;
        while let Some(rest) = written.get(done..).filter(|rest| !rest.is_empty()) {
            let place = offset + done as u64;
            let to_sector_end = (SECTOR_BYTES - place % SECTOR_BYTES) as usize;
            let sector = rest.get(..to_sector_end).unwrap_or(rest);
            if random.below(2) == 0 {
                write_into(bytes, place, sector);
            }
            done += sector.len();
        }
    }
}

fn write_into(bytes: &mut Vec<u8>, offset: u64, written: &[u8]) {
    let start = offset as usize;
    let end = start + written.len();
    if bytes.len() < end {
        bytes.resize(end, 0);
    }
    if let Some(place) = bytes.get_mut(start..end) {
        place.copy_from_slice(written);
    }
}

impl Disk for MemoryDisk {
    fn create(&self, path: &str) -> io::Result<Arc<dyn DiskFile>> {
        let mut state = self.0.lock();
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        if !folder.is_empty() && !state.folders.contains(folder) {
            return Err(io::ErrorKind::NotFound.into());
        }
        state.count_change()?;
        let content = Arc::new(Mutex::new(FileContent::default()));
        state.change_name(NameChange::Put(path.to_owned(), content.clone()));
        Ok(Arc::new(MemoryFile {
            disk: self.clone(),
            content,
        }))
    }

    fn open(&self, path: &str) -> io::Result<Arc<dyn DiskFile>> {
        let content = self
            .0
            .lock()
            .names
            .get(path)
            .cloned()
            .ok_or(io::ErrorKind::NotFound)?;
        Ok(Arc::new(MemoryFile {
            disk: self.clone(),
            content,
        }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.0.lock();
        if !state.names.contains_key(from) {
            return Err(io::ErrorKind::NotFound.into());
        }
        state.count_change()?;
        state.change_name(NameChange::Rename(from.to_owned(), to.to_owned()));
        Ok(())
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        let mut state = self.0.lock();
        if !state.names.contains_key(path) {
            return Err(io::ErrorKind::NotFound.into());
        }
        state.count_change()?;
        state.change_name(NameChange::Remove(path.to_owned()));
        Ok(())
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        let state = self.0.lock();
        let paths = state.names.keys().chain(&state.folders);
        if folder.is_empty() {
            let first = |path: &String| path.split('/').next().unwrap_or_default().to_owned();
            return Ok(paths
                .map(first)
                .collect::<BTreeSet<_>>()
                .into_iter()
                .collect());
        }
        let inside = |path: &String| Some(path.strip_prefix(folder)?.strip_prefix('/')?.to_owned());
        Ok(paths.filter_map(inside).collect())
    }

    /// The folder is durable at once: no test simulates the loss of a folder.
    fn create_dir_all(&self, folder: &str) -> io::Result<()> {
        self.0.lock().folders.insert(folder.to_owned());
        Ok(())
    }

    /// Makes the names of all folders durable. Journaling file systems do this too: they write
    /// changes of names in order.
    fn sync_dir(&self, _folder: &str) -> io::Result<()> {
        let mut state = self.0.lock();
        state.check_syncing()?;
        state.durable_names = state.names.clone();
        state.pending_names.clear();
        Ok(())
    }

    fn lock(&self, _path: &str) -> io::Result<LockOutcome> {
        let mut state = self.0.lock();
        if state
            .locked
            .as_ref()
            .is_some_and(|held| Arc::strong_count(held) > 1)
        {
            return Ok(LockOutcome::Theirs(None));
        }
        let held = Arc::new(());
        state.locked = Some(held.clone());
        Ok(LockOutcome::Ours(Box::new(held)))
    }

    fn place(&self, path: &str) -> String {
        format!("memory:/{path}")
    }
}

struct MemoryFile {
    disk: MemoryDisk,
    content: Arc<Mutex<FileContent>>,
}

impl MemoryFile {
    fn write(&self, change: FileChange) {
        let mut content = self.content.lock();
        change.apply(&mut content.bytes);
        content.pending.push(change);
    }
}

impl DiskFile for MemoryFile {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let (faults, used) = {
            let state = self.disk.0.lock();
            (
                state.faults.clone(),
                state.faults.bytes_max.map(|_| state.bytes()),
            )
        };
        let written = |count: usize| bytes.get(..count).unwrap_or(bytes).to_vec();
        if faults.failing_writes {
            self.write(FileChange::Write(offset, written(bytes.len() / 2)));
            return Err(io::Error::other("the disk was told to fail writes"));
        }
        if let (Some(bytes_max), Some(used)) = (faults.bytes_max, used) {
            // A write in place needs no space. Only the growth of the file counts.
            let length = self.len()?;
            let end_max = length + bytes_max.saturating_sub(used);
            if offset + bytes.len() as u64 > end_max {
                let count = end_max.saturating_sub(offset) as usize;
                self.write(FileChange::Write(offset, written(count)));
                return Err(io::ErrorKind::StorageFull.into());
            }
        }
        self.write(FileChange::Write(offset, bytes.to_vec()));
        Ok(())
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<usize> {
        let content = self.content.lock();
        let rest = content.bytes.get(offset as usize..).unwrap_or_default();
        let count = rest.len().min(bytes.len());
        if let (Some(to), Some(from)) = (bytes.get_mut(..count), rest.get(..count)) {
            to.copy_from_slice(from);
        }
        Ok(count)
    }

    fn sync_data(&self) -> io::Result<()> {
        {
            let mut state = self.disk.0.lock();
            state.check_syncing()?;
            state.syncs += 1;
        }
        let mut content = self.content.lock();
        // Copies only the unsynced changes: a model test syncs thousands of times.
        let pending = std::mem::take(&mut content.pending);
        for change in &pending {
            change.apply(&mut content.durable);
        }
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.content.lock().bytes.len() as u64)
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.disk.0.lock().count_change()?;
        self.write(FileChange::SetLength(bytes));
        Ok(())
    }
}

/// The generator SplitMix64 (Steele, Lea and Flood, 2014).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit.max(1)
    }
}
