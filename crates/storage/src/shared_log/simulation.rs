//! A simulation of several servers over one object store. Requests and replies are lost, requests
//! arrive late, servers stall and crash, and garbage is collected at once. Each call to the object
//! store is one step; a seed decides which server makes the next step.
//!
//! The model: each record is a unique number. A server acknowledges the records of an object after
//! [`LogWriter::append`] has returned. At the end, a server without local data must find every
//! acknowledged record at its position, and no two servers may have read different records at one
//! position.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;

use bytes::Bytes;
use parking_lot::{Condvar, Mutex};

use super::boundary::{self, Boundary, CheckpointName};
use super::log_object::ObjectKind;
use super::{LogEnd, LogWriter, Takeover, take_over};
use crate::bucket::memory::{MemoryBucket, Outcome, RequestFaults};
use crate::bucket::{Bucket, RetryPolicy};
use crate::error::StorageError;
use crate::local_state::Id;
use crate::log::{Kind, StoredPayload};
use crate::position::Position;

const SERVERS: usize = 4;
/// The number of calls to the object store in one simulation.
const STEPS: u32 = 1500;

/// A deliberate defect of the protocol. The simulation must detect it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mutation {
    None,
    /// Garbage collection deletes takeover objects.
    TakeoversDeleted,
    /// A takeover does not read the boundary.
    BoundaryUnchecked,
    /// An object is created while the one before is still in flight.
    TwoInFlight,
}

/// Random numbers from a seed (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// Lets one server at a time continue to its next call.
struct Scheduler {
    state: Mutex<Schedule>,
    changed: Condvar,
}

struct Schedule {
    random: Random,
    steps: u32,
    /// The servers that wait for a step.
    waiting: [bool; SERVERS],
    /// The servers whose threads have not ended.
    alive: [bool; SERVERS],
    /// The server that continues.
    turn: Option<usize>,
    /// So many steps a server is stalled.
    stalled: [u32; SERVERS],
}

impl Scheduler {
    fn new(seed: u64) -> Self {
        Self {
            state: Mutex::new(Schedule {
                random: Random(seed),
                steps: 0,
                waiting: [false; SERVERS],
                alive: [true; SERVERS],
                turn: None,
                stalled: [0; SERVERS],
            }),
            changed: Condvar::new(),
        }
    }

    /// Waits for the turn of a server. Returns what happens to its call, or `None` if the
    /// simulation is over.
    fn step(&self, server: usize) -> Option<Outcome> {
        let mut state = self.state.lock();
        state.waiting[server] = true;
        if state.turn == Some(server) {
            state.turn = None;
        }
        self.choose(&mut state);
        while state.turn != Some(server) && state.steps < STEPS {
            self.changed.wait(&mut state);
        }
        state.waiting[server] = false;
        if state.steps >= STEPS {
            return None;
        }
        Some(match state.random.below(100) {
            0..4 => Outcome::ReplyLost,
            4..8 => Outcome::RequestLost,
            8..12 => Outcome::Late,
            _ => Outcome::Done,
        })
    }

    fn end(&self, server: usize) {
        let mut state = self.state.lock();
        state.alive[server] = false;
        if state.turn == Some(server) {
            state.turn = None;
        }
        self.choose(&mut state);
    }

    /// Chooses the next server when all wait.
    fn choose(&self, state: &mut Schedule) {
        let all_wait = (0..SERVERS).all(|it| state.waiting[it] || !state.alive[it]);
        if state.turn.is_some() || !all_wait {
            return;
        }
        state.steps += 1;
        if state.random.chance(2) {
            let server = state.random.below(SERVERS as u64) as usize;
            state.stalled[server] = state.random.below(200) as u32;
        }
        state.stalled = state.stalled.map(|steps| steps.saturating_sub(1));
        let ready: Vec<usize> = (0..SERVERS).filter(|it| state.alive[*it]).collect();
        let awake: Vec<usize> = ready
            .iter()
            .copied()
            .filter(|it| state.stalled[*it] == 0)
            .collect();
        let among = if awake.is_empty() { ready } else { awake };
        if !among.is_empty() {
            let index = state.random.below(among.len() as u64) as usize;
            state.turn = Some(among[index]);
        }
        self.changed.notify_all();
    }
}

struct ServerFaults {
    scheduler: Arc<Scheduler>,
    server: usize,
}

/// The panic that ends a server's thread when the simulation is over.
struct SimulationEnd;

impl RequestFaults for ServerFaults {
    fn outcome(&self, _: &str, _: &str) -> Outcome {
        match self.scheduler.step(self.server) {
            Some(outcome) => outcome,
            None => std::panic::resume_unwind(Box::new(SimulationEnd)),
        }
    }
}

/// Tries again twice.
struct TwoRetries;

impl RetryPolicy for TwoRetries {
    fn should_retry(&self, attempt: u32, _: &StorageError) -> bool {
        attempt < 2
    }
}

/// The values that all servers together have acknowledged and read.
#[derive(Default)]
struct Model {
    acknowledged: BTreeMap<u64, u64>,
    read: BTreeMap<u64, u64>,
    divergence: Option<String>,
    takeovers: u32,
    collections: u32,
}

impl Model {
    fn record_read(&mut self, position: u64, value: u64) {
        let known = *self.read.entry(position).or_insert(value);
        if known != value {
            self.divergence = Some(format!("record {position} is {known} and {value}"));
        }
    }
}

struct Server {
    bucket: Arc<dyn Bucket>,
    id: Id,
    random: Random,
    mutation: Mutation,
    model: Arc<Mutex<Model>>,
    end: LogEnd,
    /// The records before `end`, by position.
    copy: BTreeMap<u64, u64>,
    next_value: u64,
}

impl Server {
    fn run(mut self) {
        loop {
            // An error is a crash: the server begins without local data.
            if self.live().is_err() || self.random.chance(50) {
                self.copy.clear();
                while !self.load().is_ok_and(|done| done) {}
            }
        }
    }

    /// Begins at the newest boundary. Returns `false` if it moved meanwhile.
    fn load(&mut self) -> Result<bool, StorageError> {
        let (_, boundary) = boundary::newest(self.bucket.as_ref())?;
        self.copy.clear();
        self.end = LogEnd::EMPTY;
        let Some(name) = boundary.checkpoint else {
            return Ok(true);
        };
        let Some(bytes) = self.bucket.get(&name.path())? else {
            return Ok(false);
        };
        self.copy = decode_copy(&bytes);
        let Some(object) = super::read(self.bucket.as_ref(), boundary.start)? else {
            return Ok(false);
        };
        self.end = LogEnd {
            number: boundary.start,
            position: object.header.first,
            ..LogEnd::EMPTY
        };
        self.copy
            .retain(|position, _| *position < self.end.position.0);
        Ok(true)
    }

    /// Follows the log, and takes it over now and then.
    fn live(&mut self) -> Result<(), StorageError> {
        for _ in 0..self.random.below(40) {
            if self.follow()? {
                continue;
            }
            if self.random.chance(30) && !self.try_takeover()? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Reads the next object. Returns `false` at the end.
    fn follow(&mut self) -> Result<bool, StorageError> {
        let Some(object) = super::read(self.bucket.as_ref(), self.end.number)? else {
            return Ok(false);
        };
        if object.header.first != self.end.position {
            let (_, boundary) = boundary::newest(self.bucket.as_ref())?;
            assert!(
                self.end.number <= boundary.collected + 1 || self.mutation != Mutation::None,
                "object {} begins with {}, not with {}",
                self.end.number,
                object.header.first,
                self.end.position
            );
            return Err(StorageError::damaged("the log", "a gap"));
        }
        let mut model = self.model.lock();
        for record in &object.records {
            let value = u64::from_le_bytes(record.payload.stored[..8].try_into().unwrap());
            model.record_read(record.position.0, value);
            self.copy.insert(record.position.0, value);
        }
        self.end = LogEnd::after(&object);
        Ok(true)
    }

    /// Takes over and is primary for a while. Returns `false` if it has to begin again.
    fn try_takeover(&mut self) -> Result<bool, StorageError> {
        let checks = self.mutation != Mutation::BoundaryUnchecked;
        let taken = take_over(&self.bucket, self.end, self.id, "", &TwoRetries)?;
        let writer = match taken {
            Takeover::Won(writer) => writer,
            Takeover::Behind => return Ok(true),
            Takeover::Collected if checks => return Ok(false),
            Takeover::Collected => LogWriter {
                bucket: self.bucket.clone(),
                end: LogEnd {
                    number: self.end.number + 1,
                    epoch: self.end.epoch + 1,
                    writer: self.id,
                    ..self.end
                },
            },
        };
        self.model.lock().takeovers += 1;
        match self.lead(writer) {
            Err(StorageError::Fenced { .. }) => Ok(false),
            result => result.map(|()| true),
        }
    }

    fn lead(&mut self, mut writer: LogWriter) -> Result<(), StorageError> {
        for _ in 0..1 + self.random.below(30) {
            self.end = writer.end();
            if self.random.chance(25) {
                self.collect(&writer)?;
            }
            if self.mutation == Mutation::TwoInFlight && self.random.chance(30) {
                self.append_two(&mut writer)?
            } else {
                self.append(&mut writer)?
            }
        }
        self.end = writer.end();
        Ok(())
    }

    /// Returns a new record.
    fn record(&mut self) -> (u64, StoredPayload) {
        self.next_value += 1;
        let payload = StoredPayload {
            kind: Kind::Data,
            lz4: false,
            raw_bytes: 8,
            millis: 1,
            stored: self.next_value.to_le_bytes().to_vec(),
        };
        (self.next_value, payload)
    }

    fn append(&mut self, writer: &mut LogWriter) -> Result<(), StorageError> {
        let mut object = writer.begin(ObjectKind::Segment)?;
        let mut added = BTreeMap::new();
        for position in (writer.end().position.0..).take(self.random.below(3) as usize) {
            let (value, payload) = self.record();
            object.add(&payload);
            added.insert(position, value);
        }
        writer.append(object, &TwoRetries)?;
        self.acknowledge(added);
        Ok(())
    }

    /// Creates two objects, the second one first, and acknowledges each when it exists.
    fn append_two(&mut self, writer: &mut LogWriter) -> Result<(), StorageError> {
        let mut first = writer.begin(ObjectKind::Segment)?;
        let (one, payload) = self.record();
        first.add(&payload);
        let position = writer.end().position.0;
        let mut ahead = LogWriter {
            bucket: self.bucket.clone(),
            end: first.end,
        };
        let mut second = ahead.begin(ObjectKind::Segment)?;
        let (two, payload) = self.record();
        second.add(&payload);
        ahead.append(second, &TwoRetries)?;
        self.acknowledge([(position + 1, two)].into());
        writer.append(first, &TwoRetries)?;
        self.acknowledge([(position, one)].into());
        *writer = ahead;
        Ok(())
    }

    fn acknowledge(&mut self, added: BTreeMap<u64, u64>) {
        let mut model = self.model.lock();
        model.acknowledged.extend(&added);
        self.copy.extend(added);
    }

    /// Makes a checkpoint at the end of the log, and deletes all objects before its last one.
    fn collect(&mut self, writer: &LogWriter) -> Result<(), StorageError> {
        let end = writer.end();
        let start = end.number - 1;
        let name = CheckpointName {
            position: end.position.previous(),
            epoch: end.epoch,
        };
        if name.position == Position::ZERO {
            return Ok(());
        }
        self.bucket.put(&name.path(), encode_copy(&self.copy))?;
        let to = Boundary {
            collected: start - 1,
            start,
            checkpoint: Some(name),
        };
        let newest = boundary::advance(self.bucket.as_ref(), to)?;
        if self.mutation == Mutation::TakeoversDeleted {
            for number in 1..=newest.collected {
                self.bucket.delete(&super::log_object::name(number))?;
            }
        }
        super::delete_covered(self.bucket.as_ref(), &newest, &TwoRetries)?;
        self.model.lock().collections += 1;
        Ok(())
    }
}

fn encode_copy(copy: &BTreeMap<u64, u64>) -> Bytes {
    let pairs = copy
        .iter()
        .flat_map(|(position, value)| [*position, *value]);
    pairs.flat_map(u64::to_le_bytes).collect::<Vec<u8>>().into()
}

fn decode_copy(bytes: &[u8]) -> BTreeMap<u64, u64> {
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
    let pairs = bytes.chunks(16);
    pairs
        .map(|pair| (number(&pair[..8]), number(&pair[8..])))
        .collect()
}

/// Runs one seed. The error says what was lost.
fn simulate(seed: u64, mutation: Mutation) -> Result<(u32, u32), String> {
    let scheduler = Arc::new(Scheduler::new(seed));
    let objects = MemoryBucket::new();
    let model = Arc::new(Mutex::new(Model::default()));
    let server = |index: usize| Server {
        bucket: Arc::new(objects.with_faults(Arc::new(ServerFaults {
            scheduler: scheduler.clone(),
            server: index,
        }))),
        id: [index as u8 + 1; 16],
        random: Random(seed.wrapping_mul(31).wrapping_add(index as u64)),
        mutation,
        model: model.clone(),
        end: LogEnd::EMPTY,
        copy: BTreeMap::new(),
        next_value: (index as u64 + 1) << 32,
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..SERVERS)
            .map(|index| {
                let (server, scheduler) = (server(index), scheduler.clone());
                scope.spawn(move || {
                    let run = std::panic::AssertUnwindSafe(|| server.run());
                    let ended = std::panic::catch_unwind(run);
                    scheduler.end(index);
                    match ended {
                        Err(panic) if panic.is::<SimulationEnd>() => {}
                        Err(panic) => std::panic::resume_unwind(panic),
                        Ok(()) => {}
                    }
                })
            })
            .collect();
        let failed = threads.into_iter().any(|thread| thread.join().is_err());
        if failed {
            Err("a server panicked".to_owned())
        } else {
            Ok(())
        }
    })?;
    objects.apply_late();
    let mut last = Server {
        bucket: Arc::new(objects.clone()),
        ..server(0)
    };
    let lost = |error: StorageError| error.to_string();
    for _ in 0..3 {
        if last.load().map_err(lost)? {
            break;
        }
    }
    while last.follow().map_err(lost)? {}
    let model = model.lock();
    if let Some(divergence) = &model.divergence {
        return Err(divergence.clone());
    }
    for (position, value) in &model.acknowledged {
        let found = last.copy.get(position);
        if found != Some(value) {
            return Err(format!(
                "record {position} should be {value} and is {found:?}"
            ));
        }
    }
    Ok((model.takeovers, model.collections))
}

#[test]
fn acknowledged_records_are_never_lost() {
    let (mut takeovers, mut collections) = (0, 0);
    for seed in 1..=300 {
        match simulate(seed, Mutation::None) {
            Ok((taken, collected)) => {
                takeovers += taken;
                collections += collected;
            }
            Err(what) => panic!("seed {seed}: {what}"),
        }
    }
    assert!(
        takeovers > 900 && collections > 900,
        "{takeovers}, {collections}"
    );
}

#[test]
fn broken_protocols_are_noticed() {
    let notices = |mutation| (1..=200).find(|seed| simulate(*seed, mutation).is_err());
    for mutation in [
        Mutation::TakeoversDeleted,
        Mutation::BoundaryUnchecked,
        Mutation::TwoInFlight,
    ] {
        assert!(notices(mutation).is_some(), "{mutation:?}");
    }
}
