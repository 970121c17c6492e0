//! Options, generators and helper functions that the tests share.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use windrow_storage::{
    CatalogOptions, ClusterOptions, FollowOutcome, LogOptions, MasterKey, MemoryBucket, MemoryDisk,
    Promotion, Replica, RetryPolicy, RunsOptions, Storage, StorageError, StorageOptions, Uploads,
};

thread_local! {
    static ENCRYPTED: Cell<bool> = const { Cell::new(false) };
}

/// Sets whether this thread opens folders with a master key.
pub fn set_encrypted(is_encrypted: bool) {
    ENCRYPTED.set(is_encrypted);
}

/// Returns a master key: the same one for the same byte.
pub fn master_key(byte: char) -> Arc<MasterKey> {
    let text: String = [byte; 42].iter().chain(&['A', '=']).collect();
    Arc::new(MasterKey::parse(&text).expect("a key"))
}

/// The generator SplitMix64 (Steele, Lea and Flood, 2014), for reproducible cases.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// Returns random bytes. The size of their alphabet is random too, so some compress with LZ4
    /// and some do not.
    pub fn payload(&mut self, length: usize) -> Vec<u8> {
        let alphabet = [2, 16, 256][self.below(3) as usize];
        (0..length).map(|_| self.below(alphabet) as u8).collect()
    }
}

/// Returns options with small segments, and without a timer: only the test syncs.
pub fn small() -> StorageOptions {
    StorageOptions {
        encryption: ENCRYPTED.get().then(|| master_key('a')),
        log: LogOptions {
            segment_bytes: 8 << 10,
            recycled_max: 2,
            sync_interval: None,
            ..LogOptions::default()
        },
        runs: RunsOptions {
            cache_bytes: 1 << 20,
        },
        catalog: CatalogOptions {
            checkpoint_bytes: 2 << 10,
        },
    }
}

pub fn open(disk: &MemoryDisk) -> Storage {
    try_open(disk).unwrap_or_else(|error| panic!("{error}"))
}

pub fn try_open(disk: &MemoryDisk) -> Result<Storage, StorageError> {
    Storage::open(Arc::new(disk.clone()), small())
}

/// Gives up at the first failure of the object store.
pub struct NoRetries;

impl RetryPolicy for NoRetries {
    fn should_retry(&self, _: u32, _: &StorageError) -> bool {
        false
    }
}

/// Returns the options of a server over an object store.
pub fn cluster_options(bucket: &MemoryBucket) -> ClusterOptions {
    ClusterOptions {
        bucket: Arc::new(bucket.clone()),
        address: "host:27017".to_owned(),
        new_server: None,
        cache_bytes: 64 << 20,
        heartbeat: Duration::from_millis(20),
        retention: Duration::ZERO,
        retry_policy: Arc::new(NoRetries),
        member_lifetime: Duration::from_secs(600),
        log_objects_max: 20,
        uploads: Uploads::Threads,
    }
}

/// Follows the log to its end and takes it over.
pub fn primary(mut replica: Replica) -> Storage {
    loop {
        while replica.follow(&mut ()).unwrap() == FollowOutcome::Advanced {}
        replica = match replica.take_over().unwrap() {
            Promotion::Won(primary) => return primary.into_storage().unwrap(),
            Promotion::Behind(replica) => *replica,
            Promotion::Stale(_, stale) => panic!("{stale:?}"),
        };
    }
}

/// Opens the folder, expects an error, and returns its text.
pub fn refusal(disk: &MemoryDisk) -> String {
    match try_open(disk) {
        Ok(_) => panic!("the folder was opened"),
        Err(error) => error.to_string(),
    }
}
