//! Index builds, validation, compaction, and drops of indexes and collections on a disk with slow
//! run files. Reads and writes do not wait for them, in the same or in another collection.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use windrow_collection::{
    BuildControl, Checks, Collection, Direction, Engine, EngineOptions, InsertOrder, Namespace,
    Uninterrupted, Work,
};
use windrow_document::{Document, DocumentBuf, ValueRef, doc};
use windrow_index::Definition;
use windrow_storage::{Disk, DiskFile, LockOutcome, MemoryDisk};

/// The duration of each read or write of a run on the slow disk.
const SLOW: Duration = Duration::from_millis(10);
/// An operation that waits for slow work waits for many reads and writes. The limit leaves room for
/// a busy machine; `make bench-concurrency` measures the published figure.
const WAIT_MAX: Duration = Duration::from_millis(500);
/// Shorter work would not be slow.
const WORK_MIN: Duration = Duration::from_millis(800);

#[derive(Clone, Default)]
struct SlowDisk {
    disk: MemoryDisk,
    slow: Arc<AtomicBool>,
}

struct SlowFile {
    file: Arc<dyn DiskFile>,
    slow: Option<Arc<AtomicBool>>,
}

impl SlowDisk {
    fn file(&self, path: &str, file: Arc<dyn DiskFile>) -> Arc<dyn DiskFile> {
        let slow = path.starts_with("runs/").then(|| self.slow.clone());
        Arc::new(SlowFile { file, slow })
    }
}

impl SlowFile {
    fn wait(&self) {
        if let Some(slow) = &self.slow
            && slow.load(Ordering::Relaxed)
        {
            std::thread::sleep(SLOW);
        }
    }
}

impl Disk for SlowDisk {
    fn create(&self, path: &str) -> io::Result<Arc<dyn DiskFile>> {
        Ok(self.file(path, self.disk.create(path)?))
    }

    fn open(&self, path: &str) -> io::Result<Arc<dyn DiskFile>> {
        Ok(self.file(path, self.disk.open(path)?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        self.disk.remove(path)
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        self.disk.list(folder)
    }

    fn create_dir_all(&self, folder: &str) -> io::Result<()> {
        self.disk.create_dir_all(folder)
    }

    fn sync_dir(&self, folder: &str) -> io::Result<()> {
        self.disk.sync_dir(folder)
    }

    fn lock(&self, path: &str) -> io::Result<LockOutcome> {
        self.disk.lock(path)
    }

    fn place(&self, path: &str) -> String {
        self.disk.place(path)
    }
}

impl DiskFile for SlowFile {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.wait();
        self.file.write_at(offset, bytes)
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<usize> {
        self.wait();
        self.file.read_at(offset, bytes)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.wait();
        self.file.sync_data()
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.file.set_len(bytes)
    }
}

const DOCUMENTS: i32 = 60_000;

struct Setting {
    disk: SlowDisk,
    engine: Arc<Engine>,
    next: AtomicU64,
}

fn named(name: &str) -> Namespace {
    Namespace::new("d", name).unwrap()
}

fn document(id: i32) -> DocumentBuf {
    let text = format!("{:040x}", (id as u128).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    doc! { "_id": id, "a": (id.wrapping_mul(7_919)), "text": text }
}

fn insert(collection: &Collection, ids: std::ops::Range<i32>) {
    let bytes: Vec<u8> = ids.flat_map(|id| document(id).into_bytes()).collect();
    assert!(
        collection
            .insert(Bytes::from(bytes), InsertOrder::Ordered)
            .unwrap()
            .errors
            .is_empty()
    );
}

fn build(collection: &Collection) {
    let specification = doc! { "key": { "text": 1, "a": 1 }, "name": "built" };
    let definition = Definition::parse(specification.as_document()).unwrap();
    let control = BuildControl {
        interrupt: &Uninterrupted,
        on_phase: &|_| {},
    };
    collection
        .create_indexes(vec![definition], &control)
        .unwrap();
}

/// Two folded collections without cached blocks.
fn setting() -> Setting {
    let disk = SlowDisk::default();
    let mut options = EngineOptions {
        threads: 1,
        ..EngineOptions::with_memory(64 << 20)
    };
    options.storage.runs.cache_bytes = 1 << 20;
    let engine = Engine::open(Arc::new(disk.clone()), options).unwrap();
    for name in ["one", "other"] {
        let collection = engine.create(&named(name), Document::EMPTY).unwrap();
        insert(&collection, 0..DOCUMENTS);
    }
    engine.fold().unwrap();
    Setting {
        disk,
        engine,
        next: AtomicU64::new(DOCUMENTS as u64),
    }
}

impl Setting {
    fn collection(&self, name: &str) -> Arc<Collection> {
        self.engine.collection(&named(name)).unwrap()
    }

    /// Inserts a document and reads it, which needs hardly any run.
    fn write_and_read(&self, name: &str) -> Duration {
        let collection = self.collection(name);
        let id = self.next.fetch_add(1, Ordering::Relaxed) as i32;
        let begin = Instant::now();
        insert(&collection, id..id + 1);
        let reader = collection.reader().unwrap();
        let mut newest = reader.records(Direction::Backward);
        assert!(newest.next().unwrap());
        let elapsed = begin.elapsed();
        let found = Document::from_validated(newest.document()).get("_id");
        assert_eq!(found, Some(ValueRef::Int32(id)));
        elapsed
    }

    /// Returns the longest operation in each of these collections during the work.
    fn longest_beside(&self, names: &[&str], work: impl FnOnce(&Setting) + Send) -> Duration {
        names.iter().for_each(|name| _ = self.write_and_read(name));
        let (mut longest, done) = (Duration::ZERO, AtomicBool::new(false));
        self.disk.slow.store(true, Ordering::Relaxed);
        let begin = Instant::now();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                work(self);
                done.store(true, Ordering::Release);
            });
            while !done.load(Ordering::Acquire) {
                for name in names {
                    longest = longest.max(self.write_and_read(name));
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        self.disk.slow.store(false, Ordering::Relaxed);
        assert!(begin.elapsed() >= WORK_MIN, "{:?}", begin.elapsed());
        longest
    }
}

const BOTH: [&str; 2] = ["one", "other"];

fn check(names: &[&str], work: impl FnOnce(&Setting) + Send) {
    let longest = setting().longest_beside(names, work);
    assert!(longest < WAIT_MAX, "{longest:?}");
}

#[test]
fn during_a_build() {
    check(&BOTH, |setting| build(&setting.collection("one")));
}

#[test]
fn during_a_validation() {
    check(&BOTH, |setting| {
        let found = setting.collection("one").validate(Checks::FULL).unwrap();
        assert!(found.is_valid(), "{found:?}");
    });
}

#[test]
fn during_a_rebuild_and_a_merge() {
    check(&BOTH, |setting| {
        let collection = setting.collection("one");
        let all = ["_id_".to_owned()];
        setting
            .engine
            .rebuild(&collection, &all, &Uninterrupted)
            .unwrap();
        while setting.engine.work(Work::Compact).unwrap() {}
    });
}

/// A drop removes what a build has begun, and stops a merge that is in its way.
#[test]
fn during_drops() {
    check(&["other"], |setting| {
        let collection = setting.collection("one");
        build(&collection);
        collection.drop_index("built").unwrap();
        assert!(setting.engine.drop_collection(&named("one")).unwrap());
    });
}
