//! Several servers over one simulated object store: engines that write, follow the log of another
//! one, take over, stall and crash.
//!
//! One thread runs at a time. During each call to the object store, other servers make steps, so
//! a call can take as long as many steps of the others. Requests and replies are lost, requests
//! arrive late, and garbage is collected at once. A crash loses what was not synced, or the whole
//! local disk.
//!
//! The `history` judges: all servers must agree on the content of the database at each position of
//! the log, a write that was acknowledged with "majority" must remain, and a linearizable read must
//! see it.

mod calls;
mod history;
mod members;
mod reads;
mod writes;

use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use windrow_collection::run_of_row;
use windrow_storage::{Bucket, MemoryBucket, inspect, unlock};

use crate::clock;
use crate::random::{Random, mix};
use crate::world::master_key;

use history::History;
use members::{Member, Role};

const SERVERS: usize = 3;

/// How the object store breaks its promises. The simulation must notice it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreMutation {
    /// It keeps its promises.
    None,
    /// It sometimes replaces an object that exists, and says that it has created it.
    TwoWin,
    /// It loses objects of the log that were created.
    LosesObjects,
}

/// What happened in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClusterReport {
    /// A digest of all steps. Runs of the same seed have the same.
    pub trace: u64,
    /// Takeovers of the log.
    pub takeovers: u64,
    /// States of the database that were acknowledged with "majority".
    pub acknowledged: u64,
    /// Linearizable reads.
    pub linearizable: u64,
    /// Copies that had to be loaded again.
    pub reloads: u64,
    /// Comparisons of a follower with the history.
    pub compared: u64,
    /// Shares of index builds that followers have built and the primary has adopted.
    pub shares: u64,
    /// Shares that the primary has taken back.
    pub taken_back: u64,
}

/// A run.
pub(crate) struct Cluster {
    state: Mutex<State>,
    this: Weak<Cluster>,
    objects: MemoryBucket,
    mutation: StoreMutation,
    /// Whether garbage waits for servers that have crashed, or for none.
    member_lifetime: Duration,
    is_encrypted: bool,
}

pub(crate) struct State {
    pub random: Random,
    pub members: Vec<Member>,
    pub history: History,
    /// The number of steps so far, those within others included.
    pub steps: usize,
    /// The number of calls to the object store in progress, each within the one before.
    pub depth: usize,
    /// The run is ending: no call fails, and no other server makes a step.
    pub is_ending: bool,
    pub next_index: u64,
    pub next_session: u64,
    pub report: ClusterReport,
}

/// Runs `steps` random steps, and checks at the end what a server without local data finds.
///
/// # Panics
/// Panics if servers differ, if an acknowledged write is lost, or if a server fails without reason.
pub fn run(seed: u64, steps: usize, mutation: StoreMutation) -> ClusterReport {
    clock::reset(seed);
    let cluster = Arc::new_cyclic(|this| Cluster {
        state: Mutex::new(State {
            random: Random::new(mix(seed)),
            members: (0..SERVERS).map(|_| Member::new()).collect(),
            history: History::default(),
            steps: 0,
            depth: 0,
            is_ending: false,
            next_index: 0,
            next_session: 0,
            report: ClusterReport::default(),
        }),
        this: this.clone(),
        objects: MemoryBucket::new(),
        mutation,
        member_lifetime: match seed % 2 {
            0 => Duration::ZERO,
            _ => Duration::MAX,
        },
        is_encrypted: seed.is_multiple_of(3),
    });
    while cluster.with(|state| state.steps) < steps {
        cluster.step();
    }
    cluster.end();
    cluster.with(|state| state.report)
}

impl Cluster {
    /// Reads or changes the state. Must not call an engine, which may run other steps that lock the
    /// state.
    pub fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.state.lock())
    }

    /// Returns a random number below `end`.
    pub fn below(&self, end: u64) -> u64 {
        self.with(|state| state.random.below(end))
    }

    pub fn one_in(&self, times: u64) -> bool {
        self.with(|state| state.random.one_in(times))
    }

    /// Prints what a server does, if tracing is enabled.
    fn trace(&self, server: usize, what: impl FnOnce() -> String) {
        if std::env::var_os("WINDROW_SIMULATION_TRACE").is_some() {
            let indent = self.with(|state| state.depth) * 2;
            eprintln!("{:indent$}{server}: {}", "", what());
        }
    }

    /// Adds a step to the digest, and prints it if tracing is enabled.
    fn record(&self, server: usize, what: &str, number: u64) {
        self.trace(server, || format!("{what} {number}"));
        self.with(|state| {
            let trace = &mut state.report.trace;
            *trace = what
                .bytes()
                .fold(*trace, |trace, byte| mix(trace ^ u64::from(byte)));
            *trace = mix(*trace ^ mix(number) ^ server as u64);
        });
    }

    /// Makes a random step of a random server.
    fn step(&self) {
        let server = self.with(|state| {
            state.steps += 1;
            state.random.below(SERVERS as u64) as usize
        });
        let Some(running) = self.with(|state| state.members[server].running.clone()) else {
            if self.with(|state| !state.members[server].is_calling) {
                self.start(server);
            }
            return;
        };
        if self.one_in(60) {
            self.crash(server);
            return;
        }
        match &running.role {
            Role::Primary(_) if self.with(|state| state.members[server].is_reading) => {}
            Role::Primary(_) => self.step_as_primary(server, &running),
            Role::Follower(_) if self.with(|state| state.members[server].is_calling) => {}
            Role::Follower(copy) => self.step_as_follower(server, &running, copy),
        }
    }

    /// Compares what a server without local data finds with everything that was acknowledged.
    fn end(&self) {
        self.with(|state| state.is_ending = true);
        for server in 0..SERVERS {
            self.crash(server);
        }
        self.objects.apply_late();
        for round in 0..2 {
            self.with(|state| state.members[0] = Member::new());
            self.start(0);
            let running = self.with(|state| state.members[0].running.clone());
            let running = running.expect("nothing fails at the end");
            let Role::Primary(writer) = running.role else {
                panic!("round {round}: the only server that lives follows another one");
            };
            let position = running.engine.written();
            self.with(|state| state.history.check_end(position));
            self.check_all(0, &running);
            self.upload(0, &running, writer);
            self.collect_garbage(0, &running);
            self.check_objects();
            self.fold(0, &running);
            self.insert(0, &running, writer);
            self.upload(0, &running, writer);
            drop(running);
            self.crash(0);
        }
    }

    /// Checks that no run is missing, and that earlier primaries and their followers left none
    /// behind.
    fn check_objects(&self) {
        let bucket: Arc<dyn Bucket> = Arc::new(self.objects.clone());
        let key = self.is_encrypted.then(master_key);
        let unlocked = unlock(bucket.clone(), key.as_deref()).expect("the key of the database");
        let report = inspect(&unlocked, &run_of_row).expect("a database");
        assert!(report.missing.is_empty(), "{:?}", report.missing);
        assert!(report.orphans.is_empty(), "{:?}", report.orphans);
        let epochs = bucket.list("shares", "").expect("a list").into_iter();
        let mut epochs = epochs.map(|name| name.parse::<u64>().expect("a run") >> 36);
        assert!(epochs.all(|epoch| epoch == report.epoch), "reports remain");
    }
}
