//! Runs of a database in an object store: how much of them is on the local disk, and what reads of
//! the rest cost.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use common::{Random, cluster_options};
use windrow_storage::{
    BlockAddress, Caching, ClusterOptions, Compression, Disk, MemoryBucket, MemoryDisk, Outcome,
    Replica, RequestFaults, RunId, Storage, StorageOptions, encode_block,
};

const MB: u64 = 1 << 20;
const CACHE_BYTES: u64 = 16 * MB;

/// Counts the requests for parts of objects.
#[derive(Default)]
struct Requests(AtomicU64);

impl RequestFaults for Requests {
    fn outcome(&self, operation: &str, name: &str) -> Outcome {
        if operation == "get_range" && name.starts_with("runs/") {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
        Outcome::Done
    }
}

impl Requests {
    /// Returns the number of requests since the last call.
    fn take(&self) -> u64 {
        self.0.swap(0, Ordering::Relaxed)
    }
}

/// A server, and the requests that it makes.
struct Server {
    storage: Storage,
    requests: Arc<Requests>,
    disk: MemoryDisk,
}

/// Starts a server as the primary.
fn primary(disk: &MemoryDisk, bucket: &MemoryBucket) -> Server {
    let requests = Arc::new(Requests::default());
    let options = ClusterOptions {
        cache_bytes: CACHE_BYTES,
        ..cluster_options(&bucket.with_faults(requests.clone()))
    };
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    let replica = Replica::open(shared, StorageOptions::default(), options).unwrap();
    Server {
        storage: common::primary(replica),
        requests,
        disk: disk.clone(),
    }
}

/// The addresses and the content of the blocks of a run.
type RunBlocks = Vec<(BlockAddress, Vec<u8>)>;

fn write_run(storage: &Storage, seed: u64, blocks: usize, block_bytes: usize) -> RunBlocks {
    let mut random = Random(seed);
    let mut writer = storage.runs.create().unwrap();
    let mut written = Vec::new();
    for _ in 0..blocks {
        let raw = random.payload(block_bytes);
        let block = encode_block(&raw, Compression::None);
        written.push((writer.append(&block).unwrap(), raw));
    }
    writer.finish().unwrap();
    written
}

fn check(storage: &Storage, blocks: &RunBlocks) {
    for (address, raw) in blocks {
        let read = storage.runs.open_block(*address, Caching::Past).unwrap();
        assert!(*read == **raw, "{address:?}");
    }
}

fn folder_bytes(disk: &MemoryDisk, folder: &str) -> u64 {
    let size = |name: String| {
        disk.open(&format!("{folder}/{name}"))
            .unwrap()
            .len()
            .unwrap()
    };
    disk.list(folder).unwrap().into_iter().map(size).sum()
}

fn local_bytes(server: &Server) -> u64 {
    folder_bytes(&server.disk, "runs") + folder_bytes(&server.disk, "cache")
}

#[test]
fn own_runs_are_limited_and_read_again_from_the_store() {
    let (bucket, disk) = (MemoryBucket::new(), MemoryDisk::new());
    let server = primary(&disk, &bucket);
    let first = write_run(&server.storage, 0, 30, 64 << 10);
    let mut runs = vec![first.clone()];
    for seed in 1..16 {
        runs.push(write_run(&server.storage, seed, 30, 64 << 10));
        // A run that is read remains.
        check(&server.storage, &first);
        assert!(
            local_bytes(&server) <= CACHE_BYTES,
            "{}",
            local_bytes(&server)
        );
    }
    assert_eq!(
        server.requests.take(),
        0,
        "what is read often was not evicted"
    );
    runs.iter()
        .for_each(|blocks| check(&server.storage, blocks));
    assert!(server.requests.take() > 0);
    assert!(
        local_bytes(&server) <= CACHE_BYTES,
        "{}",
        local_bytes(&server)
    );
    let known = server.storage.store_statistics().unwrap().cache.bytes;
    assert_eq!(known, local_bytes(&server));
    drop(server);

    let server = primary(&disk, &bucket);
    assert!(
        local_bytes(&server) <= CACHE_BYTES,
        "{}",
        local_bytes(&server)
    );
    runs.iter()
        .for_each(|blocks| check(&server.storage, blocks));
    for blocks in &runs {
        server.storage.runs.remove(blocks[0].0.run).unwrap();
    }
    assert_eq!(local_bytes(&server), 0);
    assert_eq!(server.storage.store_statistics().unwrap().cache.bytes, 0);
}

#[test]
fn evicted_run_is_deleted_after_its_last_reader() {
    let (bucket, disk) = (MemoryBucket::new(), MemoryDisk::new());
    let server = primary(&disk, &bucket);
    let blocks = write_run(&server.storage, 1, 30, 64 << 10);
    let handle = server.storage.runs.handle(blocks[0].0.run).unwrap();
    for seed in 2..16 {
        write_run(&server.storage, seed, 30, 64 << 10);
    }
    let path = format!("runs/{:012}.run", handle.run().0);
    assert!(disk.open(&path).is_err(), "the run was evicted");
    server.storage.runs.remove(handle.run()).unwrap();
    check(&server.storage, &blocks);
    drop(handle);
    assert!(
        server
            .storage
            .runs
            .open_block(blocks[0].0, Caching::Past)
            .is_ok()
    );
    let chunks = disk.list("cache").unwrap();
    assert!(
        chunks
            .iter()
            .all(|name| !name.starts_with(&format!("{:020}", 1)))
    );
}

#[test]
fn runs_are_read_while_they_are_evicted() {
    let (bucket, disk) = (MemoryBucket::new(), MemoryDisk::new());
    let server = primary(&disk, &bucket);
    let runs: Vec<RunBlocks> = (0..6)
        .map(|seed| write_run(&server.storage, seed, 30, 64 << 10))
        .collect();
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !ends.load(Ordering::Relaxed) {
                    runs.iter()
                        .for_each(|blocks| check(&server.storage, blocks));
                }
            });
        }
        for seed in 10..40 {
            write_run(&server.storage, seed, 30, 64 << 10);
        }
        ends.store(true, Ordering::Relaxed);
    });
    assert!(
        local_bytes(&server) <= CACHE_BYTES,
        "{}",
        local_bytes(&server)
    );
}

/// Writes a run, and starts another server without local data.
fn cold(blocks: usize) -> (Server, RunBlocks) {
    let bucket = MemoryBucket::new();
    let first = primary(&MemoryDisk::new(), &bucket);
    let written = write_run(&first.storage, 1, blocks, 32 << 10);
    first.storage.close_upload();
    let second = primary(&MemoryDisk::new(), &bucket);
    assert_eq!(second.requests.take(), 0);
    (second, written)
}

#[test]
fn cold_read_costs_one_request() {
    let (server, blocks) = cold(30);
    let middle = vec![blocks[17].clone()];
    check(&server.storage, &middle);
    assert_eq!(server.requests.take(), 1);
    check(&server.storage, &blocks);
    assert_eq!(server.requests.take(), 0, "the run is smaller than a chunk");
}

#[test]
fn scan_reads_ahead() {
    let (server, blocks) = cold(15 * 32);
    check(&server.storage, &blocks);
    // 1, 2, 4 and 8 MB, and the rest, which is less than 1 MB.
    assert!(server.requests.take() <= 5);
    check(&server.storage, &vec![blocks[200].clone()]);
}

#[test]
fn concurrent_scans_read_ahead() {
    let (server, blocks) = cold(10 * 32);
    // Two readers in turn, each on a half of 10 MB.
    let (one, other) = blocks.split_at(5 * 32);
    for (one, other) in one.iter().zip(other) {
        check(&server.storage, &vec![one.clone()]);
        check(&server.storage, &vec![other.clone()]);
    }
    let requests = server.requests.take();
    assert!(requests <= 8, "{requests}");
}

#[test]
fn damage_on_the_local_disk_is_replaced_from_the_store() {
    let (server, blocks) = cold(30);
    check(&server.storage, &blocks);
    let chunk = format!("cache/{}", server.disk.list("cache").unwrap()[0]);
    let damage = |path: &str| {
        let file = server.disk.open(path).unwrap();
        file.write_at(blocks[3].0.offset + 1000, b"damage").unwrap();
    };
    damage(&chunk);
    check(&server.storage, &blocks);
    assert_eq!(server.requests.take(), 2, "the chunk was read again");

    let own = write_run(&server.storage, 2, 30, 32 << 10);
    let RunId(run) = own[0].0.run;
    damage(&format!("runs/{run:012}.run"));
    check(&server.storage, &own);
    assert_eq!(server.requests.take(), 1, "the run was read from the store");
}
