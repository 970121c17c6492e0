//! The state of a run: the engine, its disk, the model, and steps in progress.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use windrow_collection::{
    AtBlock, Background, ClusterTime, Collection, Engine, EngineOptions, Error, MergeSizes,
    Namespace, Reader, RecordedResult, Transaction,
};
use windrow_storage::{Compression, MasterKey, MemoryDisk, Position, StorageError};

use crate::clock;
use crate::model::{Documents, Model, ModelCollection, RetryableWrite};
use crate::random::{Random, mix};

/// A run. Its state is only locked between calls of the engine, so that other steps can run within
/// a call.
pub struct World {
    state: Mutex<State>,
    this: Weak<World>,
}

pub(crate) struct State {
    pub random: Random,
    pub disk: MemoryDisk,
    pub engine: Arc<Engine>,
    pub model: Model,
    /// The models that a crash may recover, each with the log position that it includes.
    pub history: Vec<(Position, Model)>,
    /// The model after the last write, if that write failed and may have happened nevertheless.
    pub uncertain: Option<Model>,
    pub fault: Fault,
    /// The disk was full at some time during the current step.
    pub was_full: bool,
    /// Long steps in progress. They must not be nested within themselves.
    pub busy: Vec<LongStep>,
    pub open_readers: Vec<OpenReader>,
    /// Cluster times, each with the model at that time.
    pub snapshots: Vec<(ClusterTime, Model)>,
    pub transaction: Option<OpenTransaction>,
    /// The run is ending: no more steps run within others.
    pub is_ending: bool,
    pub next_index: u64,
    pub next_session: u64,
    /// A digest of all steps so far.
    pub trace: u64,
    settings: EngineSettings,
}

/// A fault of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// Writes that fail for lack of space did not happen.
    Full,
    /// Writes that fail may or may not have happened. The engine refuses further writes until it is
    /// reopened.
    Failing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LongStep {
    Fold,
    Merge,
    Build,
}

/// An open reader and the documents that it must see.
pub(crate) struct OpenReader {
    pub reader: Reader,
    pub documents: Documents,
}

/// An open transaction and the model that it must see.
pub(crate) struct OpenTransaction {
    pub transaction: Arc<Transaction>,
    /// The model when it began.
    pub before: Model,
    /// The model with its own writes.
    pub model: Model,
    /// The collections and `_id`s that it has written.
    pub written: BTreeSet<(String, i32)>,
}

/// Random options of the engine.
#[derive(Clone, Copy, Debug)]
struct EngineSettings {
    build_bytes: u64,
    entry_backlog_bytes: u64,
    segment_bytes: u64,
    checkpoint_bytes: u64,
    cache_bytes: u64,
    merge_sizes: MergeSizes,
    compression: Compression,
    is_encrypted: bool,
}

/// The number of the only statement of each retryable write.
pub(crate) const STATEMENT: i32 = 3;
/// The minimal time for which the engine remembers a session.
const SESSION_MEMORY_MS: u64 = 29 * 60 * 1000;

/// The master key of encrypted data folders.
const MASTER_KEY: &str = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";

/// Returns the master key of encrypted databases.
pub(crate) fn master_key() -> Arc<MasterKey> {
    Arc::new(MasterKey::parse(MASTER_KEY).expect("32 bytes in base64"))
}

/// The maximal nesting of steps.
const DEPTH_MAX: usize = 3;

impl World {
    /// Creates a run with an empty disk and random options of the engine.
    pub fn new(seed: u64) -> Arc<World> {
        let mut random = Random::new(seed);
        clock::reset(seed);
        let settings = EngineSettings {
            build_bytes: 1 << (10 + random.below(10)),
            entry_backlog_bytes: 1 << random.below(18),
            segment_bytes: 1 << (12 + random.below(9)),
            checkpoint_bytes: 1 << (8 + random.below(12)),
            cache_bytes: 1 << (10 + random.below(14)),
            // So small that sections are of several tiers.
            merge_sizes: MergeSizes::with_tiers_from(1 << (7 + random.below(8))),
            compression: random.pick(&[Compression::None, Compression::Lz4]),
            is_encrypted: seed % 3 == 2,
        };
        Arc::new_cyclic(|this: &Weak<World>| {
            let disk = MemoryDisk::new();
            let engine = open_engine(&disk, settings, this.clone()).expect("an empty disk opens");
            // The engine preserves the history of changes once a change stream was opened.
            drop(
                engine
                    .events(|_| true)
                    .expect("an empty log has a change stream"),
            );
            let state = State {
                random,
                disk,
                engine,
                model: Model::new(),
                history: vec![(Position::ZERO, Model::new())],
                uncertain: None,
                fault: Fault::None,
                was_full: false,
                busy: Vec::new(),
                open_readers: Vec::new(),
                snapshots: Vec::new(),
                transaction: None,
                is_ending: false,
                next_index: 0,
                next_session: 0,
                trace: seed,
                settings,
            };
            World {
                state: Mutex::new(state),
                this: this.clone(),
            }
        })
    }

    /// Reads or changes the state. Must not call the engine, which may run other steps that lock
    /// the state.
    pub(crate) fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.state.lock())
    }

    pub(crate) fn engine(&self) -> Arc<Engine> {
        self.with(|state| state.engine.clone())
    }

    /// Returns a random number below `end`.
    pub(crate) fn below(&self, end: u64) -> u64 {
        self.with(|state| state.random.below(end))
    }

    pub(crate) fn one_in(&self, times: u64) -> bool {
        self.with(|state| state.random.one_in(times))
    }

    /// Returns a collection that exists in the model.
    pub(crate) fn collection(&self, name: &str) -> Arc<Collection> {
        let found = self.engine().collection(&namespace(name));
        found.unwrap_or_else(|| panic!("the engine has no collection {name}"))
    }

    /// Returns the name of a random collection.
    pub(crate) fn random_collection(&self) -> Option<String> {
        self.with(|state| {
            let names: Vec<&String> = state.model.keys().collect();
            let count = names.len() as u64;
            (count > 0).then(|| names[state.random.below(count) as usize].clone())
        })
    }

    /// Adds a step to the digest, and prints it if tracing is enabled.
    pub(crate) fn record(&self, what: &str, number: u64) {
        self.with(|state| {
            if std::env::var_os("WINDROW_SIMULATION_TRACE").is_some() {
                let depth = state.busy.len();
                eprintln!("{:indent$}{what} {number}", "", indent = depth * 2);
            }
            for byte in what.bytes() {
                state.trace = mix(state.trace ^ u64::from(byte));
            }
            state.trace = mix(state.trace ^ number);
        });
    }

    /// Records an acknowledged write.
    pub(crate) fn record_write(&self, change: impl FnOnce(&mut Model)) {
        self.with(|state| {
            change(&mut state.model);
            let position = state.engine.statistics().written;
            let model = state.model.clone();
            state.history.push((position, model));
        });
    }

    /// Records a failed write that may have happened nevertheless. It did not happen if the log
    /// refused it or still accepts writes.
    pub(crate) fn record_uncertain_write(&self, error: &Error, change: impl FnOnce(&mut Model)) {
        let is_refused = matches!(
            error,
            Error::Storage(StorageError::RefusingWrites { .. }) | Error::Interrupted(_)
        );
        self.with(|state| {
            if state.fault == Fault::Failing && !is_refused {
                let mut model = state.model.clone();
                change(&mut model);
                state.uncertain = Some(model);
            }
        });
    }

    /// Records a failed creation, removal or renaming of a collection. The engine shows such a
    /// change before it is durable, so the model follows if `is_shown`.
    pub(crate) fn record_uncertain_ddl(
        &self,
        error: &Error,
        change: impl Fn(&mut Model),
        is_shown: bool,
    ) {
        self.record_uncertain_write(error, &change);
        if is_shown {
            self.with(|state| change(&mut state.model));
        }
    }

    /// Returns a new session for a retryable write.
    pub(crate) fn new_session(&self) -> RetryableWrite {
        self.with(|state| {
            state.next_session += 1;
            RetryableWrite::new(state.next_session)
        })
    }

    /// Returns `true` if the engine remembers the model's retryable writes, except those that are
    /// too old.
    pub(crate) fn remembers_writes(&self, model: &Model) -> bool {
        let engine = self.engine();
        let lasts = model
            .values()
            .filter_map(|collection_model| collection_model.last);
        let mut young =
            lasts.filter(|last| clock::now_ms().saturating_sub(last.time_ms) < SESSION_MEMORY_MS);
        young.all(|last| engine.recorded_result(last.origin, STATEMENT) != RecordedResult::Nothing)
    }

    /// Runs a long step, during which other steps can run.
    pub(crate) fn during<T>(&self, what: LongStep, work: impl FnOnce() -> T) -> T {
        self.with(|state| state.busy.push(what));
        let result = work();
        self.with(|state| state.busy.pop());
        result
    }

    /// Opens the engine on another disk. Readers, snapshots and transactions are lost.
    pub(crate) fn reopen(&self, disk: MemoryDisk) -> Result<(), Error> {
        let (settings, old) = self.with(|state| {
            state.open_readers.clear();
            state.snapshots.clear();
            state.transaction = None;
            (state.settings, state.engine.clone())
        });
        drop(old);
        let engine = open_engine(&disk, settings, self.this.clone())?;
        self.with(|state| {
            state.disk = disk;
            state.engine = engine;
            state.fault = Fault::None;
        });
        Ok(())
    }

    /// Closes the engine and everything that keeps it open.
    pub(crate) fn close(&self) {
        let settings = self.with(|state| state.settings);
        let other =
            open_engine(&MemoryDisk::new(), settings, Weak::new()).expect("an empty disk opens");
        let old = self.with(|state| {
            state.open_readers.clear();
            state.snapshots.clear();
            state.transaction = None;
            std::mem::replace(&mut state.engine, other)
        });
        drop(old);
    }

    /// The engine calls this between blocks of long steps.
    fn at_block(&self) {
        let starts_step = self.with(|state| {
            !state.is_ending && state.busy.len() < DEPTH_MAX && state.random.one_in(2)
        });
        if starts_step {
            self.step();
        }
    }
}

pub(crate) fn namespace(name: &str) -> Namespace {
    Namespace::new("test", name).expect("a valid name")
}

impl State {
    pub(crate) fn model_collection(&mut self, name: &str) -> &mut ModelCollection {
        self.model.entry(name.to_owned()).or_default()
    }
}

fn open_engine(
    disk: &MemoryDisk,
    settings: EngineSettings,
    world: Weak<World>,
) -> Result<Arc<Engine>, Error> {
    let mut options = EngineOptions {
        threads: 1,
        background: Background::Caller,
        build_bytes: settings.build_bytes,
        entry_backlog_bytes: settings.entry_backlog_bytes,
        compression: settings.compression,
        merge_sizes: settings.merge_sizes,
        snapshot_age_max: Duration::MAX,
        random: clock::fill_random,
        on_problem: |_, _| (),
        history_bytes: u64::MAX,
        at_block: AtBlock(Arc::new(move || {
            if let Some(world) = world.upgrade() {
                world.at_block();
            }
        })),
        ..EngineOptions::with_memory(16 << 20)
    };
    options.storage.log.segment_bytes = settings.segment_bytes;
    options.storage.log.sync_interval = None;
    options.storage.log.clock = clock::now_ms;
    options.storage.catalog.checkpoint_bytes = settings.checkpoint_bytes;
    options.storage.runs.cache_bytes = settings.cache_bytes;
    options.storage.encryption = settings.is_encrypted.then(master_key);
    let engine = Engine::open(Arc::new(disk.clone()), options)?;
    // Snapshots must not expire by the real clock, or runs would not be deterministic.
    engine.set_snapshot_window(Duration::MAX);
    Ok(engine)
}
