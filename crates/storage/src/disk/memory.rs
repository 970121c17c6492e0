use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::sync::Arc;

use parking_lot::Mutex;

use super::{Disk, DiskFile, LockOutcome};
use crate::checksum::checksum;

/// What a crash does to what was not synced.
#[derive(Clone, Copy, Debug)]
pub enum Crash {
    /// The process died, the machine lives: every write is there.
    OfProcess,
    /// Power was lost and nothing that was unsynced had reached the disk.
    LosingUnsynced,
    /// Power was lost: of the unsynced, each sector of 512 bytes was kept or lost as the seed
    /// says, and of the names the first few changes were kept.
    Tearing { seed: u64 },
}

/// A disk in memory that knows what is durable and what is only written, and that fails when told
/// to. Clones share it, as two processes share a disk; [`MemoryDisk::crash`] makes another.
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

type Names = BTreeMap<String, Arc<Mutex<Content>>>;

#[derive(Clone)]
enum NameChange {
    Put(String, Arc<Mutex<Content>>),
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
struct Content {
    bytes: Vec<u8>,
    durable: Vec<u8>,
    pending: Vec<Change>,
}

#[derive(Clone)]
enum Change {
    Write(u64, Vec<u8>),
    SetLength(u64),
}

impl MemoryDisk {
    pub fn new() -> Self {
        Self::default()
    }

    /// From now on files may hold this many bytes together; `None` lifts the limit.
    pub fn set_bytes_max(&self, bytes_max: Option<u64>) {
        self.0.lock().faults.bytes_max = bytes_max;
    }

    /// From now on writes fail with an I/O error after half of their bytes.
    pub fn set_failing_writes(&self, failing: bool) {
        self.0.lock().faults.failing_writes = failing;
    }

    /// From now on syncs of files fail, and make nothing durable.
    pub fn set_failing_syncs(&self, failing: bool) {
        self.0.lock().faults.failing_syncs = failing;
    }

    /// After this many more changes (writes, syncs, changes of names and lengths) all fail, as if
    /// the process ended there.
    pub fn set_changes_left(&self, changes: Option<u64>) {
        self.0.lock().faults.changes_left = changes;
    }

    /// The sum of all file lengths, in bytes.
    pub fn bytes(&self) -> u64 {
        self.0.lock().bytes()
    }

    /// The names and bytes of all files, in one number.
    pub fn digest(&self) -> u64 {
        let state = self.0.lock();
        state.names.iter().fold(0, |digest, (name, content)| {
            let digest = checksum(digest, name.as_bytes());
            checksum(digest, &content.lock().bytes)
        })
    }

    /// How many syncs of files succeeded so far.
    pub fn sync_count(&self) -> u64 {
        self.0.lock().syncs
    }

    /// Another disk with what a crash at this moment leaves of this one: unlocked, without faults.
    /// After the death of a process alone, what was unsynced is so still.
    pub fn crash(&self, crash: Crash) -> MemoryDisk {
        let state = self.0.lock();
        let mut random = Random(match crash {
            Crash::Tearing { seed } => seed,
            _ => 0,
        });
        let mut left = match crash {
            Crash::OfProcess => state.copy(),
            Crash::LosingUnsynced => State::after_power_loss(state.durable_names.clone()),
            Crash::Tearing { .. } => State::after_power_loss(state.some_names(&mut random)),
        };
        left.folders = state.folders.clone();
        for content in left
            .names
            .values_mut()
            .filter(|_| !matches!(crash, Crash::OfProcess))
        {
            let bytes = content.lock().left_by(crash, &mut random);
            let durable = bytes.clone();
            *content = Arc::new(Mutex::new(Content {
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

    /// Changes bytes of a file behind the database's back, durably.
    ///
    /// # Panics
    /// When there is no such file.
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
    /// Every change asks here first.
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

    /// The same files and changes, sharing nothing. One file stays one under all of its names.
    fn copy(&self) -> Self {
        let mut copies = HashMap::new();
        let mut copy = |content: &Arc<Mutex<Content>>| -> Arc<Mutex<Content>> {
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

    fn some_names(&self, random: &mut Random) -> Names {
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

impl Content {
    fn left_by(&self, crash: Crash, random: &mut Random) -> Vec<u8> {
        match crash {
            Crash::OfProcess => self.bytes.clone(),
            Crash::LosingUnsynced => self.durable.clone(),
            Crash::Tearing { .. } => {
                let mut bytes = self.durable.clone();
                // The first few changes got through: all, none or some; or each in part.
                let in_order = random.below(2) == 0;
                let kept = random.below(self.pending.len() as u64 + 1) as usize;
                for (index, change) in self.pending.iter().enumerate() {
                    match in_order {
                        true if index < kept => change.apply(&mut bytes),
                        true => {}
                        false => change.apply_torn(&mut bytes, random),
                    }
                }
                bytes
            }
        }
    }
}

const SECTOR_BYTES: u64 = 512;

impl Change {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::SetLength(length) => bytes.resize(*length as usize, 0),
            Self::Write(offset, written) => write_into(bytes, *offset, written),
        }
    }

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
        let content = Arc::new(Mutex::new(Content::default()));
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

    /// Durable at once: no test of ours is about a lost folder.
    fn create_dir_all(&self, folder: &str) -> io::Result<()> {
        self.0.lock().folders.insert(folder.to_owned());
        Ok(())
    }

    /// Makes the names of every folder durable; real disks do so too, in the order of changes.
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
    content: Arc<Mutex<Content>>,
}

impl MemoryFile {
    fn write(&self, change: Change) {
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
            self.write(Change::Write(offset, written(bytes.len() / 2)));
            return Err(io::Error::other("the disk was told to fail writes"));
        }
        if let (Some(bytes_max), Some(used)) = (faults.bytes_max, used) {
            // Writing in place needs no space; only what grows the file does.
            let length = self.len()?;
            let end_max = length + bytes_max.saturating_sub(used);
            if offset + bytes.len() as u64 > end_max {
                let count = end_max.saturating_sub(offset) as usize;
                self.write(Change::Write(offset, written(count)));
                return Err(io::ErrorKind::StorageFull.into());
            }
        }
        self.write(Change::Write(offset, bytes.to_vec()));
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
        // Only the unsynced is copied: a model test syncs thousands of times.
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
        self.write(Change::SetLength(bytes));
        Ok(())
    }
}

/// SplitMix64: Steele, Lea and Flood, 2014. Small, seeded, good enough to choose what tears.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit.max(1)
    }
}
