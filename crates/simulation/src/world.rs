//! The engine, its disk, its model, and what is going on.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use windrow_collection::{
    AtBlock, Background, ClusterTime, Collection, Engine, EngineOptions, Error, Namespace, Origin,
    Reader, Remembered, Transaction,
};
use windrow_storage::{Compression, MemoryDisk, StorageError};

use crate::model::{Documents, Last, Model, Things};
use crate::random::{Random, mixed};

/// See the module. Its steps lock it only between calls of the engine, so that a call can make other
/// steps happen.
pub struct World {
    state: Mutex<State>,
    this: Weak<World>,
}

pub(crate) struct State {
    pub random: Random,
    pub disk: MemoryDisk,
    pub engine: Arc<Engine>,
    pub model: Model,
    /// The models that a crash may go back to, each with the newest log position that it knows.
    pub history: Vec<(u64, Model)>,
    /// What the last write would have made, where it failed and may be there nevertheless.
    pub doubtful: Option<Model>,
    pub fault: Fault,
    /// Whether the disk has been full at some time of the step that is going on.
    pub was_full: bool,
    /// What is going on, and must not begin a second time inside itself.
    pub busy: Vec<Busy>,
    pub held: Vec<Held>,
    /// Times that are known, and what must be read at each.
    pub moments: Vec<(ClusterTime, Model)>,
    pub open: Option<Open>,
    /// The run is at its end: nothing happens inside steps any more.
    pub ending: bool,
    pub next_index: u64,
    pub next_session: u64,
    /// What has happened so far, in one number.
    pub trace: u64,
    options: Knobs,
}

/// What is wrong with the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// What is refused for want of space did not happen.
    Full,
    /// What fails may have happened or not; the engine refuses writes until it is opened again.
    Broken,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Busy {
    Fold,
    Merge,
    Build,
}

/// A reader that stays open, and what it must go on to see.
pub(crate) struct Held {
    pub reader: Reader,
    pub documents: Documents,
}

/// A transaction that is open, and what it must see.
pub(crate) struct Open {
    pub transaction: Arc<Transaction>,
    /// As everything was when it began.
    pub before: Model,
    /// With its own writes.
    pub model: Model,
    /// What it has written: collections and `_id`s.
    pub touched: BTreeSet<(String, i32)>,
}

/// How the engine of a run is set up.
#[derive(Clone, Copy, Debug)]
struct Knobs {
    build_bytes: u64,
    settle_bytes: u64,
    segment_bytes: u64,
    checkpoint_bytes: u64,
    cache_bytes: u64,
    compression: Compression,
}

/// The number of the one statement of a retryable write.
pub(crate) const STATEMENT: i32 = 3;
/// How long a session is remembered at least.
const MEMORY_MILLIS: u64 = 29 * 60 * 1000;

/// How many steps may happen inside each other.
const DEPTH_MAX: usize = 3;

thread_local! {
    /// Random bytes that the engine asks for.
    static BYTES: Cell<u64> = const { Cell::new(0) };
    static CLOCK: Cell<u64> = const { Cell::new(0) };
}

impl World {
    pub fn new(seed: u64) -> Arc<World> {
        let mut random = Random::new(seed);
        BYTES.set(mixed(seed));
        CLOCK.set(0);
        let knobs = Knobs {
            build_bytes: 1 << (10 + random.below(10)),
            settle_bytes: 1 << random.below(18),
            segment_bytes: 1 << (12 + random.below(9)),
            checkpoint_bytes: 1 << (8 + random.below(12)),
            cache_bytes: 1 << (10 + random.below(14)),
            compression: random.pick(&[Compression::None, Compression::Lz4]),
        };
        Arc::new_cyclic(|this: &Weak<World>| {
            let disk = MemoryDisk::new();
            let engine = open(&disk, knobs, this.clone()).expect("an empty disk opens");
            // The history of changes is kept once somebody has asked for it.
            drop(engine.events(|_| true).expect("an empty log is followed"));
            let state = State {
                random,
                disk,
                engine,
                model: Model::new(),
                history: vec![(0, Model::new())],
                doubtful: None,
                fault: Fault::None,
                was_full: false,
                busy: Vec::new(),
                held: Vec::new(),
                moments: Vec::new(),
                open: None,
                ending: false,
                next_index: 0,
                next_session: 0,
                trace: seed,
                options: knobs,
            };
            World {
                state: Mutex::new(state),
                this: this.clone(),
            }
        })
    }

    /// Looks at the state or changes it, without a call of the engine.
    pub(crate) fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.state.lock())
    }

    pub(crate) fn engine(&self) -> Arc<Engine> {
        self.with(|state| state.engine.clone())
    }

    /// A number below `end` that the seed says.
    pub(crate) fn below(&self, end: u64) -> u64 {
        self.with(|state| state.random.below(end))
    }

    pub(crate) fn once_in(&self, times: u64) -> bool {
        self.with(|state| state.random.once_in(times))
    }

    /// A collection that the model has too.
    pub(crate) fn collection(&self, name: &str) -> Arc<Collection> {
        let found = self.engine().collection(&namespace(name));
        found.unwrap_or_else(|| panic!("the engine has no collection {name}"))
    }

    /// The name of a collection that there is.
    pub(crate) fn some_collection(&self) -> Option<String> {
        self.with(|state| {
            let names: Vec<&String> = state.model.keys().collect();
            let count = names.len() as u64;
            (count > 0).then(|| names[state.random.below(count) as usize].clone())
        })
    }

    /// Writes down what has happened.
    pub(crate) fn note(&self, what: &str, number: u64) {
        self.with(|state| {
            if std::env::var_os("WINDROW_SIMULATION_TRACE").is_some() {
                let depth = state.busy.len();
                eprintln!("{:indent$}{what} {number}", "", indent = depth * 2);
            }
            for byte in what.bytes() {
                state.trace = mixed(state.trace ^ u64::from(byte));
            }
            state.trace = mixed(state.trace ^ number);
        });
    }

    /// Notes what a write that was acknowledged has made.
    pub(crate) fn wrote(&self, change: impl FnOnce(&mut Model)) {
        self.with(|state| {
            change(&mut state.model);
            let position = state.engine.statistics().written;
            let model = state.model.clone();
            state.history.push((position, model));
        });
    }

    /// Notes what a write that failed may have made nevertheless: nothing where the log refused it, or
    /// goes on to take others.
    pub(crate) fn may_have_written(&self, error: &Error, change: impl FnOnce(&mut Model)) {
        let is_refused = matches!(
            error,
            Error::Storage(StorageError::RefusingWrites { .. }) | Error::WaitGivenUp
        );
        self.with(|state| {
            if state.fault == Fault::Broken && !is_refused {
                let mut model = state.model.clone();
                change(&mut model);
                state.doubtful = Some(model);
            }
        });
    }

    /// The same of a change of names, which the engine shows before it is durable: whether it does.
    pub(crate) fn may_have_named(
        &self,
        error: &Error,
        change: impl Fn(&mut Model),
        is_shown: bool,
    ) {
        self.may_have_written(error, &change);
        if is_shown {
            self.with(|state| change(&mut state.model));
        }
    }

    /// A session for one retryable write.
    pub(crate) fn new_session(&self) -> Last {
        self.with(|state| {
            state.next_session += 1;
            let mut session = [0; 16];
            session[..8].copy_from_slice(&state.next_session.to_be_bytes());
            Last {
                origin: Origin { session, number: 1 },
                millis: clock(),
            }
        })
    }

    /// Whether the engine remembers the retryable writes of a model, as far as they are not too old or
    /// too many to be.
    pub(crate) fn remembers(&self, model: &Model) -> bool {
        let engine = self.engine();
        let lasts = model.values().filter_map(|things| things.last);
        let mut young = lasts.filter(|last| clock().saturating_sub(last.millis) < MEMORY_MILLIS);
        young.all(|last| engine.remembered(last.origin, STATEMENT) != Remembered::Nothing)
    }

    /// Does something that lasts, in which other steps happen.
    pub(crate) fn busy<T>(&self, what: Busy, work: impl FnOnce() -> T) -> T {
        self.with(|state| state.busy.push(what));
        let answer = work();
        self.with(|state| state.busy.pop());
        answer
    }

    /// Opens the engine on another disk, and forgets what was going on.
    pub(crate) fn reopen(&self, disk: MemoryDisk) -> Result<(), Error> {
        let (knobs, old) = self.with(|state| {
            state.held.clear();
            state.moments.clear();
            state.open = None;
            (state.options, state.engine.clone())
        });
        drop(old);
        let engine = open(&disk, knobs, self.this.clone())?;
        self.with(|state| {
            state.disk = disk;
            state.engine = engine;
            state.fault = Fault::None;
        });
        Ok(())
    }

    /// Ends the engine in an orderly way, with all that waits for its last reader.
    pub(crate) fn close(&self) {
        let knobs = self.with(|state| state.options);
        let other = open(&MemoryDisk::new(), knobs, Weak::new()).expect("an empty disk opens");
        let old = self.with(|state| {
            state.held.clear();
            state.moments.clear();
            state.open = None;
            std::mem::replace(&mut state.engine, other)
        });
        drop(old);
    }

    /// Called between blocks.
    fn at_block(&self) {
        let begins = self
            .with(|state| !state.ending && state.busy.len() < DEPTH_MAX && state.random.once_in(2));
        if begins {
            self.step();
        }
    }
}

pub(crate) fn namespace(name: &str) -> Namespace {
    Namespace::new("test", name).expect("a fair name")
}

impl State {
    pub(crate) fn things(&mut self, name: &str) -> &mut Things {
        self.model.entry(name.to_owned()).or_default()
    }
}

fn open(disk: &MemoryDisk, knobs: Knobs, world: Weak<World>) -> Result<Arc<Engine>, Error> {
    let mut options = EngineOptions {
        threads: 1,
        background: Background::Caller,
        build_bytes: knobs.build_bytes,
        settle_bytes: knobs.settle_bytes,
        compression: knobs.compression,
        snapshot_age_max: Duration::MAX,
        random: fill,
        on_problem: |_, _| (),
        history_bytes: u64::MAX,
        at_block: AtBlock(Arc::new(move || {
            if let Some(world) = world.upgrade() {
                world.at_block();
            }
        })),
        ..EngineOptions::with_memory(16 << 20)
    };
    options.storage.log.segment_bytes = knobs.segment_bytes;
    options.storage.log.sync_interval = None;
    options.storage.log.clock = clock;
    options.storage.catalog.checkpoint_bytes = knobs.checkpoint_bytes;
    options.storage.runs.cache_bytes = knobs.cache_bytes;
    let engine = Engine::open(Arc::new(disk.clone()), options)?;
    // The clock of the machine decides over nothing.
    engine.set_moments_kept(Duration::MAX);
    Ok(engine)
}

/// Milliseconds, of which some pass between any two looks.
fn clock() -> u64 {
    CLOCK.set(CLOCK.get() + 137);
    1_700_000_000_000 + CLOCK.get()
}

fn fill(bytes: &mut [u8]) {
    for byte in bytes {
        BYTES.set(mixed(BYTES.get().wrapping_add(1)));
        *byte = BYTES.get() as u8;
    }
}
