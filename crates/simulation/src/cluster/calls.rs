//! Calls to the simulated object store: what happens to them, and what happens meanwhile.

use std::ops::Range;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use windrow_storage::{
    Bucket, Creation, DiskFile, MemoryBucket, Outcome, RequestFaults, RetryPolicy, StorageError,
};

use super::{Cluster, StoreMutation};
use crate::clock;

/// The maximum depth of nested calls.
const DEPTH_MAX: usize = 3;
/// The number of attempts of a call.
const ATTEMPTS: u32 = 40;

/// The calls of a server from its start until its crash.
pub(super) struct Calls {
    cluster: Weak<Cluster>,
    server: usize,
    life: u64,
}

impl Calls {
    pub fn new(cluster: &Weak<Cluster>, server: usize, life: u64) -> Arc<Calls> {
        Arc::new(Calls {
            cluster: cluster.clone(),
            server,
            life,
        })
    }

    fn is_alive(&self, cluster: &Cluster) -> bool {
        cluster.with(|state| state.members[self.server].life == self.life)
    }
}

impl RequestFaults for Calls {
    fn outcome(&self, operation: &str, name: &str) -> Outcome {
        // The probe of the object store has threads of its own.
        if !clock::is_of_run() {
            return Outcome::Done;
        }
        let Some(cluster) = self.cluster.upgrade() else {
            return Outcome::RequestLost;
        };
        if self.is_alive(&cluster) {
            let is_reading =
                ["get_range", "size"].contains(&operation) && name.starts_with("runs/");
            cluster.step_meanwhile(self.server, is_reading);
        }
        if !self.is_alive(&cluster) {
            return Outcome::RequestLost;
        }
        let outcome = cluster.with(|state| match state.random.below(100) {
            _ if state.is_ending => Outcome::Done,
            0..3 => Outcome::ReplyLost,
            3..6 => Outcome::RequestLost,
            6..9 => Outcome::Late,
            _ => Outcome::Done,
        });
        let what = || format!("  {operation} {name} {outcome:?}");
        cluster.trace(self.server, what);
        outcome
    }
}

impl RetryPolicy for Calls {
    fn should_retry(&self, attempt: u32, _: &StorageError) -> bool {
        let is_alive = |cluster: Arc<Cluster>| self.is_alive(&cluster);
        attempt < ATTEMPTS && self.cluster.upgrade().is_some_and(is_alive)
    }
}

impl Cluster {
    /// Makes steps of other servers while a server waits for the object store. Now and then the
    /// wait is long. A server that reads a run makes no steps: other readers of the block wait for
    /// it, and would wait forever here.
    fn step_meanwhile(&self, server: usize, is_reading: bool) {
        let steps = self.with(|state| {
            if state.is_ending || state.depth >= DEPTH_MAX {
                return 0;
            }
            match state.random.below(100) {
                0..60 => 0,
                60..98 => state.random.below(3),
                _ => state.random.below(60),
            }
        });
        if steps == 0 {
            return;
        }
        let (was_calling, was_reading) = self.with(|state| {
            state.depth += 1;
            let member = &mut state.members[server];
            let was_reading = std::mem::replace(&mut member.is_reading, is_reading);
            (std::mem::replace(&mut member.is_calling, true), was_reading)
        });
        let life = self.with(|state| state.members[server].life);
        // As in a server, other steps do not have the locks of this one.
        clock::on_another_thread(|| (0..steps).for_each(|_| self.step()));
        self.with(|state| {
            state.depth -= 1;
            if state.members[server].life == life {
                state.members[server].is_calling = was_calling;
                state.members[server].is_reading = was_reading;
            }
        });
    }
}

/// Returns the object store as one server sees it.
pub(super) fn bucket(
    memory: &MemoryBucket,
    calls: Arc<Calls>,
    mutation: StoreMutation,
) -> Arc<dyn Bucket> {
    let inner = memory.with_faults(calls.clone());
    match mutation {
        StoreMutation::None => Arc::new(inner),
        _ => Arc::new(BrokenBucket {
            inner,
            calls,
            mutation,
        }),
    }
}

/// An object store that breaks its promises for objects of the log.
struct BrokenBucket {
    inner: MemoryBucket,
    calls: Arc<Calls>,
    mutation: StoreMutation,
}

impl BrokenBucket {
    fn one_in(&self, times: u64) -> bool {
        let cluster = self.calls.cluster.upgrade();
        cluster.is_some_and(|it| it.one_in(times))
    }
}

impl Bucket for BrokenBucket {
    fn create(&self, name: &str, bytes: Bytes) -> Result<Creation, StorageError> {
        let created = self.inner.create(name, bytes.clone())?;
        if !name.starts_with("log/") {
            return Ok(created);
        }
        match (self.mutation, created) {
            (StoreMutation::TwoWin, Creation::Exists) if self.one_in(2) => {
                self.inner.put(name, bytes)?;
                Ok(Creation::Created)
            }
            (StoreMutation::LosesObjects, Creation::Created) if self.one_in(20) => {
                self.inner.delete(name)?;
                Ok(created)
            }
            _ => Ok(created),
        }
    }

    fn put(&self, name: &str, bytes: Bytes) -> Result<(), StorageError> {
        self.inner.put(name, bytes)
    }

    fn put_file(&self, name: &str, file: &dyn DiskFile) -> Result<(), StorageError> {
        self.inner.put_file(name, file)
    }

    fn get(&self, name: &str) -> Result<Option<Bytes>, StorageError> {
        self.inner.get(name)
    }

    fn get_range(&self, name: &str, range: Range<u64>) -> Result<Option<Bytes>, StorageError> {
        self.inner.get_range(name, range)
    }

    fn size(&self, name: &str) -> Result<Option<u64>, StorageError> {
        self.inner.size(name)
    }

    fn list(&self, folder: &str, after: &str) -> Result<Vec<String>, StorageError> {
        self.inner.list(folder, after)
    }

    fn delete(&self, name: &str) -> Result<(), StorageError> {
        self.inner.delete(name)
    }

    fn place(&self, name: &str) -> String {
        self.inner.place(name)
    }
}
