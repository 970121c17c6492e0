//! The servers: their start, their steps as a follower, takeovers and crashes.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use windrow_collection::{
    Background, Engine, EngineOptions, Error, Follower, OpenedDatabase, OpeningPolicy, Succession,
    Work, open_shared,
};
use windrow_storage::{
    ClusterOptions, Crash, FollowOutcome, MemoryDisk, Replica, StaleReason, StorageError, Uploads,
};

use super::Cluster;
use super::calls::{self, Calls};
use super::history::{Content, WriterId, content_of_engine};
use crate::clock;
use crate::world::master_key;

/// A machine.
pub(crate) struct Member {
    disk: MemoryDisk,
    /// The number of crashes.
    pub life: u64,
    /// `None` if no server runs.
    pub running: Option<Arc<Running>>,
    /// A call of its server to the object store is in progress.
    pub is_calling: bool,
    /// Its server reads a part of a run from the object store, or asks for its size.
    pub is_reading: bool,
}

impl Member {
    pub fn new() -> Member {
        Member {
            disk: MemoryDisk::new(),
            life: 0,
            running: None,
            is_calling: false,
            is_reading: false,
        }
    }
}

/// A server.
pub(crate) struct Running {
    pub life: u64,
    pub engine: Arc<Engine>,
    pub role: Role,
    /// Folds, merges and builds in progress. They must not be nested within themselves.
    pub busy: Mutex<Vec<LongStep>>,
    /// Open snapshots, with what they must see.
    pub snapshots: Mutex<Vec<(windrow_collection::ClusterSnapshot, Content)>>,
}

/// A step during which other steps of the same server can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LongStep {
    Fold,
    Merge,
    Build,
}

pub(crate) enum Role {
    Primary(WriterId),
    /// `None` while a step uses it.
    Follower(Mutex<Option<Box<Follower>>>),
}

/// Takes over at random, instead of after a time.
struct RandomPolicy<'c> {
    cluster: &'c Cluster,
    server: usize,
}

impl OpeningPolicy for RandomPolicy<'_> {
    fn takes_over(&self, replica: &Replica) -> bool {
        let is_ending = self.cluster.with(|state| state.is_ending);
        is_ending || replica.is_without_primary() || self.cluster.one_in(4)
    }

    fn check_primary(&self) -> Result<(), StorageError> {
        Ok(())
    }

    fn reload(&self, replica: Replica, stale: StaleReason) -> Result<Replica, StorageError> {
        self.cluster.with(|state| state.report.reloads += 1);
        let is_collected = u64::from(stale == StaleReason::Collected);
        self.cluster.record(self.server, "reload", is_collected);
        replica.reload(stale, |_, _| Ok(()))
    }

    fn wait(&self, error: StorageError) -> Result<(), StorageError> {
        Err(error)
    }
}

impl Cluster {
    /// Starts a server, with its local disk or without. After an error it remains down.
    pub fn start(&self, server: usize) {
        let life = self.with(|state| {
            let member = &mut state.members[server];
            if state.random.one_in(4) {
                member.disk = MemoryDisk::new();
            }
            member.is_calling = true;
            member.life
        });
        let started = self.open(server, life);
        self.record(server, "start", u64::from(started.is_ok()));
        let running = match started {
            Ok(running) => running,
            // The object store failed, or another server has taken over in the meantime.
            Err(Error::Storage(StorageError::Unavailable { .. } | StorageError::Fenced { .. })) => {
                None
            }
            Err(_) if self.with(|state| state.members[server].life != life) => None,
            Err(error) => panic!("server {server} does not start: {error:?}"),
        };
        self.with(|state| {
            let member = &mut state.members[server];
            if member.life == life {
                member.is_calling = false;
                member.running = running.map(Arc::new);
            }
        });
    }

    fn open(&self, server: usize, life: u64) -> Result<Option<Running>, Error> {
        let disk = self.with(|state| state.members[server].disk.clone());
        let options = self.cluster_options(server, life);
        let engine_options = engine_options(self.is_encrypted);
        let storage_options = engine_options.storage.clone();
        let replica = Replica::open(Arc::new(disk), storage_options, options)?;
        let policy = RandomPolicy {
            cluster: self,
            server,
        };
        match open_shared(replica, &engine_options, &policy)? {
            OpenedDatabase::Primary(engine) => self.begin_primary(server, life, engine),
            OpenedDatabase::Follower(engine, follower) => {
                let role = Role::Follower(Mutex::new(Some(follower)));
                Ok(Some(running(life, engine, role)))
            }
        }
    }

    fn cluster_options(&self, server: usize, life: u64) -> ClusterOptions {
        let calls = Calls::new(&self.this, server, life);
        // The order of the servers in lists must not differ between runs.
        let mut new_server = [0; 16];
        clock::fill_random(&mut new_server);
        ClusterOptions {
            new_server: Some(new_server),
            bucket: calls::bucket(&self.objects, calls.clone(), self.mutation),
            address: format!("host{server}:27017"),
            cache_bytes: 1 << 15,
            heartbeat: Duration::ZERO,
            retention: Duration::ZERO,
            member_lifetime: self.member_lifetime,
            log_objects_max: 12,
            retry_policy: calls,
            uploads: Uploads::Caller,
        }
    }

    /// Begins the states of a new primary. Returns `None` if it has crashed meanwhile. Fails with
    /// `Fenced` if another server has taken over and has deleted its runs.
    fn begin_primary(
        &self,
        server: usize,
        life: u64,
        engine: Arc<Engine>,
    ) -> Result<Option<Running>, Error> {
        // Everything before the takeover is in the shared log.
        let (base, written) = (engine.durable(), engine.written());
        let content = content_of_engine(&engine).map_err(|error| match error {
            Error::Storage(StorageError::RunDeleted { .. }) => {
                engine.work(Work::Upload).err().unwrap_or(error)
            }
            other => other,
        })?;
        let writer = self.with(|state| {
            if state.members[server].life != life {
                return None;
            }
            state.report.takeovers += 1;
            Some(state.history.begin(base, written, &content))
        });
        let Some(writer) = writer else {
            return Ok(None);
        };
        self.record(server, "takes over", writer as u64);
        Ok(Some(running(life, engine, Role::Primary(writer))))
    }

    /// Ends a server at once. Its local disk loses what was not synced, a part of that, or nothing.
    pub fn crash(&self, server: usize) {
        let kind = self.below(3);
        self.record(server, "crash", kind);
        let running = self.with(|state| {
            let crash = match kind {
                0 => Crash::OfProcess,
                1 => Crash::LosingUnsynced,
                _ => Crash::Tearing {
                    seed: state.random.next_u64(),
                },
            };
            let member = &mut state.members[server];
            member.life += 1;
            member.disk = member.disk.crash(crash);
            member.is_calling = false;
            member.is_reading = false;
            member.running.take()
        });
        // Its drop calls the object store, which does not answer.
        drop(running);
    }

    pub fn step_as_follower(
        &self,
        server: usize,
        running: &Arc<Running>,
        copy: &Mutex<Option<Box<Follower>>>,
    ) {
        match self.below(100) {
            0..70 => {
                self.follow(server, running, copy);
                if self.one_in(2) {
                    self.build_share(server, running);
                }
            }
            70..78 => self.compare(server, running),
            78..82 => self.validate(server, running),
            82..92 => self.check_snapshot(server, running),
            92..97 => self.try_takeover(server, running, copy),
            _ => {}
        }
    }

    /// Builds a share of the primary's index, if there is one.
    fn build_share(&self, server: usize, running: &Arc<Running>) {
        let built = during(running, LongStep::Build, || {
            running.engine.work(Work::BuildShare)
        });
        match built {
            Some(Ok(true)) => self.record(server, "build share", 0),
            Some(Ok(false)) | None => {}
            // The primary builds it.
            Some(Err(Error::Storage(StorageError::Unavailable { .. }))) => {}
            Some(Err(error)) => self.excuse(server, running, &error),
        }
    }

    /// Runs a step of a follower with its copy. The copy cannot be used by another step meanwhile.
    fn with_copy<T>(
        &self,
        server: usize,
        copy: &Mutex<Option<Box<Follower>>>,
        step: impl FnOnce(Box<Follower>) -> (Option<Box<Follower>>, T),
    ) -> Option<T> {
        let taken = copy.lock().take()?;
        let life = self.with(|state| {
            state.members[server].is_calling = true;
            state.members[server].life
        });
        let (remaining, result) = step(taken);
        self.with(|state| {
            let member = &mut state.members[server];
            member.is_calling &= member.life != life;
        });
        *copy.lock() = remaining;
        Some(result)
    }

    fn follow(&self, server: usize, running: &Running, copy: &Mutex<Option<Box<Follower>>>) {
        let followed = self.with_copy(server, copy, |mut follower| {
            let followed = follower.follow();
            (Some(follower), followed)
        });
        match followed {
            Some(Ok(FollowOutcome::Stale(stale))) => self.restart(server, stale),
            Some(Ok(followed)) => {
                self.record(
                    server,
                    "follow",
                    u64::from(followed == FollowOutcome::AtEnd),
                );
            }
            Some(Err(Error::Storage(StorageError::Unavailable { .. }))) => {}
            Some(Err(error)) => assert!(
                self.with(|state| state.members[server].life != running.life),
                "server {server} cannot follow: {error:?}"
            ),
            None => {}
        }
    }

    /// Starts a server again whose copy cannot be continued.
    fn restart(&self, server: usize, stale: StaleReason) {
        self.record(server, "stale", u64::from(stale == StaleReason::Collected));
        let running = self.with(|state| {
            let member = &mut state.members[server];
            member.life += 1;
            member.disk = member.disk.crash(Crash::OfProcess);
            member.running.take()
        });
        drop(running);
    }

    fn try_takeover(
        &self,
        server: usize,
        running: &Arc<Running>,
        copy: &Mutex<Option<Box<Follower>>>,
    ) {
        let result = self.with_copy(server, copy, |follower| {
            match follower.take_over(|| Ok(())) {
                Ok(Succession::Behind(follower)) => (Some(follower), Ok(None)),
                Ok(ended) => (None, Ok(Some(ended))),
                Err(error) => (None, Err(error)),
            }
        });
        let is_alive = self.with(|state| state.members[server].life == running.life);
        if !is_alive {
            return;
        }
        match result {
            Some(Ok(Some(Succession::Stale(stale)))) => self.restart(server, stale),
            Some(Ok(Some(_))) => {
                let begun = self.begin_primary(server, running.life, running.engine.clone());
                self.become_primary(server, running.life, begun);
            }
            // The server ends, as its process would.
            Some(Err(Error::Storage(
                StorageError::Unavailable { .. } | StorageError::Fenced { .. },
            ))) => {
                self.crash(server);
            }
            Some(Err(error)) => panic!("server {server} cannot take over: {error:?}"),
            Some(Ok(None)) | None => {}
        }
    }

    /// Ends a takeover, unless the server has crashed meanwhile.
    fn become_primary(&self, server: usize, life: u64, begun: Result<Option<Running>, Error>) {
        let is_alive = self.with(|state| state.members[server].life == life);
        match begun {
            _ if !is_alive => {}
            Ok(primary) => {
                let primary = primary.map(Arc::new);
                self.with(|state| state.members[server].running = primary);
            }
            // Another server has taken over in the meantime.
            Err(Error::Storage(StorageError::Unavailable { .. } | StorageError::Fenced { .. })) => {
                self.crash(server);
            }
            Err(error) => panic!("server {server} cannot be read: {error:?}"),
        }
    }
}

/// Runs a long step, during which other steps can run. Returns `None` if it is in progress already.
pub(super) fn during<T>(running: &Running, step: LongStep, work: impl FnOnce() -> T) -> Option<T> {
    {
        let mut busy = running.busy.lock();
        if busy.contains(&step) {
            return None;
        }
        busy.push(step);
    }
    let result = work();
    running.busy.lock().retain(|it| *it != step);
    Some(result)
}

fn running(life: u64, engine: Arc<Engine>, role: Role) -> Running {
    // Snapshots must not expire by the real clock, or runs would not be deterministic.
    engine.set_snapshot_window(Duration::MAX);
    Running {
        life,
        engine,
        role,
        busy: Mutex::default(),
        snapshots: Mutex::default(),
    }
}

fn engine_options(is_encrypted: bool) -> EngineOptions {
    let mut options = EngineOptions {
        threads: 1,
        background: Background::Caller,
        build_bytes: 1 << 14,
        entry_backlog_bytes: 1 << 12,
        snapshot_age_max: Duration::MAX,
        random: clock::fill_random,
        on_problem: |_, _| (),
        ..EngineOptions::with_memory(16 << 20)
    };
    options.storage.encryption = is_encrypted.then(master_key);
    options.storage.log.segment_bytes = 1 << 14;
    options.storage.log.sync_interval = None;
    options.storage.log.clock = clock::now_ms;
    options.storage.catalog.checkpoint_bytes = 1 << 12;
    options.storage.runs.cache_bytes = 1 << 16;
    options
}
