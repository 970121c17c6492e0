//! Opens a database in an object store: follows its log until no other server extends it, then
//! takes it over.

use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use windrow_collection::{
    Engine, EngineOptions, Error, Follower, OpenedDatabase, OpeningPolicy, StorageError,
    Succession, open_shared as open_shared_database, write_rollback_files,
};
use windrow_document::doc;
use windrow_server::{Log, Stop};
use windrow_storage::{
    Bucket, ClusterOptions, Disk, FollowOutcome, Replica, RetryPolicy, StaleReason, Uploads,
};

use super::placement_check::PlacementCheck;
use super::store_options::StoreOptions;
use crate::store::open_bucket;

/// The interval at which an idle primary extends the log.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// The time for which the primary retains log entries. Followers that are further behind read the
/// log from the object store.
const RETENTION: Duration = Duration::from_secs(60);
/// The maximum number of log objects. An idle primary creates as many in a quarter of an hour.
const LOG_OBJECTS_MAX: u64 = 1000;
/// Data is not retained for servers that were silent for this time.
const MEMBER_LIFETIME: Duration = Duration::from_secs(10 * 60);
/// The interval at which a follower polls for the next log object.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// The pause before a failed request is repeated. It doubles at each failure.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// The time that servers of one rank have to become the primary before those of the next rank try.
const RANK_DELAY: Duration = Duration::from_millis(500);
/// The ids of log lines. MongoDB has no such events.
const STORE_UNAVAILABLE: i32 = 9_000_030;
const FOLLOWS: i32 = 9_000_031;
const PRIMARY: i32 = 9_000_032;
const COPY_RELOADED: i32 = 9_000_033;
const WRITES_ROLLED_BACK: i32 = 9_000_034;
const FENCED: i32 = 9_000_037;

/// Repeats failed requests without a limit.
struct Backoff {
    log: Arc<Log>,
}

impl RetryPolicy for Backoff {
    fn should_retry(&self, attempt: u32, error: &StorageError) -> bool {
        if attempt == 2 {
            let attr = doc! { "error": (error.to_string()) };
            let message = "The object store does not answer; requests are repeated";
            self.log
                .warn("STORAGE", STORE_UNAVAILABLE, "store", message, attr);
        }
        thread::sleep(LONGEST_PAUSE.min(FIRST_PAUSE * 2_u32.saturating_pow(attempt.min(16))));
        true
    }
}

/// A database in an object store.
#[derive(Clone, Copy)]
pub struct SharedDatabase<'a> {
    pub store: &'a StoreOptions,
    pub placement: &'a PlacementCheck,
    pub takeover: Takeover,
}

/// When a server that opens a database becomes its primary.
#[derive(Clone, Copy)]
pub enum Takeover {
    /// If no other server extends the log, but not within this time.
    IfNeeded { abstention: Duration },
    /// In any case.
    Always,
    /// Not while it opens the database.
    Never,
}

/// Opens a database in an object store, as its primary or as a follower of another server.
pub fn open_shared(
    database: SharedDatabase<'_>,
    disk: Arc<dyn Disk>,
    folder: &Path,
    options: EngineOptions,
    log: &Arc<Log>,
) -> Result<OpenedEngine, Error> {
    let store = database.store;
    let bucket = open_bucket(&store.url, &store.options)?;
    let retry_policy = Arc::new(Backoff { log: log.clone() });
    let placement = database.placement.clone();
    placement.check(retry_policy.as_ref())?;
    let cluster = cluster_options(store, bucket, retry_policy.clone());
    let abstention = match database.takeover {
        Takeover::IfNeeded { abstention } => abstention,
        Takeover::Always | Takeover::Never => Duration::ZERO,
    };
    let policy = StartPolicy {
        folder,
        log,
        takeover: database.takeover,
        abstains_until: Instant::now() + abstention,
        primary_check: PrimaryCheck {
            placement,
            retry_policy,
        },
    };
    let opened = loop {
        let storage_options = options.storage.clone();
        let replica = Replica::open(disk.clone(), storage_options, cluster.clone())?;
        match open_shared_database(replica, &options, &policy) {
            // Another server has taken over meanwhile. This server follows it now.
            Err(Error::Storage(error @ StorageError::Fenced { .. })) => log_fenced(log, &error),
            opened => break opened?,
        }
    };
    let (engine, follower) = match opened {
        OpenedDatabase::Primary(engine) => {
            log_role(log, PRIMARY, IS_PRIMARY, &engine);
            return Ok(OpenedEngine {
                engine,
                follow: None,
            });
        }
        OpenedDatabase::Follower(engine, follower) => (engine, follower),
    };
    let message = "Another server is the primary; this one follows its log";
    log_role(log, FOLLOWS, message, &engine);
    let task = FollowTask {
        follower,
        engine: engine.clone(),
        election_timeout: store.election_timeout,
        abstains_until: policy.abstains_until,
        primary_check: policy.primary_check,
        log: log.clone(),
    };
    Ok(OpenedEngine {
        engine,
        follow: Some(task),
    })
}

fn cluster_options(
    store: &StoreOptions,
    bucket: Arc<dyn Bucket>,
    retry_policy: Arc<Backoff>,
) -> ClusterOptions {
    ClusterOptions {
        bucket,
        address: store.advertise.clone(),
        new_server: None,
        cache_bytes: store.cache_bytes,
        heartbeat: HEARTBEAT,
        retention: RETENTION,
        member_lifetime: MEMBER_LIFETIME,
        log_objects_max: LOG_OBJECTS_MAX,
        retry_policy,
        uploads: Uploads::Threads,
    }
}

/// The environment variable by which a server that has stepped down tells its restarted process the
/// number of seconds for which it must not become the primary.
pub const ABSTENTION: &str = "WINDROW_STEPPED_DOWN_SECONDS";

/// Returns the time for which this process must not become the primary.
pub fn abstention() -> Duration {
    let seconds = std::env::var(ABSTENTION).ok();
    Duration::from_secs(seconds.and_then(|it| it.parse().ok()).unwrap_or(0))
}

/// Decides whether a server that has taken over a log may write to it.
struct PrimaryCheck {
    placement: PlacementCheck,
    retry_policy: Arc<Backoff>,
}

impl PrimaryCheck {
    fn run(&self) -> Result<(), StorageError> {
        self.placement.check(self.retry_policy.as_ref())
    }
}

/// The policy at the start.
struct StartPolicy<'a> {
    folder: &'a Path,
    log: &'a Log,
    takeover: Takeover,
    /// The server does not take over before.
    abstains_until: Instant,
    primary_check: PrimaryCheck,
}

impl OpeningPolicy for StartPolicy<'_> {
    fn takes_over(&self, replica: &Replica) -> bool {
        match self.takeover {
            Takeover::IfNeeded { .. } => {
                Instant::now() >= self.abstains_until && replica.is_without_primary()
            }
            Takeover::Always => true,
            Takeover::Never => false,
        }
    }

    fn check_primary(&self) -> Result<(), StorageError> {
        self.primary_check.run()
    }

    fn reload(&self, replica: Replica, stale: StaleReason) -> Result<Replica, StorageError> {
        reload(replica, stale, self.folder, self.log)
    }

    fn wait(&self, _: StorageError) -> Result<(), StorageError> {
        thread::sleep(POLL_INTERVAL);
        Ok(())
    }
}

fn log_role(log: &Log, id: i32, message: &str, engine: &Engine) {
    let attr = doc! { "position": (engine.written().0 as i64) };
    log.info("REPL", id, "store", message, attr);
}

fn log_fenced(log: &Log, error: &StorageError) {
    let attr = doc! { "reason": (error.to_string()) };
    let message = "This server was the primary only for a moment; it opens the database again";
    log.warn("REPL", FENCED, "store", message, attr);
}

const IS_PRIMARY: &str = "This server is the primary now";

/// An engine that was just opened.
pub struct OpenedEngine {
    pub engine: Arc<Engine>,
    /// The task that follows another server. `None` if the engine is the primary.
    pub follow: Option<FollowTask>,
}

/// The task of a server that follows another one.
pub struct FollowTask {
    follower: Box<Follower>,
    engine: Arc<Engine>,
    election_timeout: Duration,
    /// The server does not take over before.
    abstains_until: Instant,
    primary_check: PrimaryCheck,
    log: Arc<Log>,
}

impl FollowTask {
    /// Follows the log until the server stops or becomes the primary. `rank` returns the number of
    /// servers that take precedence as the primary, which get some time to take over.
    ///
    /// Fails if the copy must be reopened.
    pub fn run(mut self, stop: &Stop, rank: &dyn Fn() -> u32) -> Result<(), Error> {
        let mut silent_since = Instant::now();
        let mut needed_since: Option<Instant> = None;
        while !stop.is_requested() {
            match self.follower.follow() {
                Ok(FollowOutcome::Advanced) => {
                    silent_since = Instant::now();
                    continue;
                }
                Ok(FollowOutcome::Stale(stale)) => return Err(stale_copy(stale)),
                Ok(FollowOutcome::AtEnd) => {}
                // The primary cannot reach the object store either. Otherwise this server would
                // receive its log.
                Err(Error::Storage(StorageError::Unavailable { .. })) => {
                    silent_since = Instant::now();
                }
                Err(error) => return Err(error),
            }
            let is_silent = silent_since.elapsed() >= self.election_timeout;
            let is_needed = is_silent || self.follower.is_without_primary();
            if !is_needed || Instant::now() < self.abstains_until {
                needed_since = None;
                stop.wait(POLL_INTERVAL);
                continue;
            }
            let since = *needed_since.get_or_insert_with(Instant::now);
            if since.elapsed() < RANK_DELAY * rank() {
                stop.wait(POLL_INTERVAL);
                continue;
            }
            match self.follower.take_over(|| self.primary_check.run())? {
                Succession::Won => {
                    log_role(&self.log, PRIMARY, IS_PRIMARY, &self.engine);
                    return Ok(());
                }
                Succession::Behind(follower) => self.follower = follower,
                Succession::Stale(stale) => return Err(stale_copy(stale)),
            }
        }
        Ok(())
    }
}

fn stale_copy(stale: StaleReason) -> Error {
    let what = format!("the local copy cannot be continued: {stale:?}");
    Error::interrupted(what)
}

/// Reloads the copy, and writes rollback files of the data that only this server has.
fn reload(
    replica: Replica,
    stale: StaleReason,
    folder: &Path,
    log: &Log,
) -> Result<Replica, StorageError> {
    let message = "The local copy cannot be continued and is loaded again";
    let attr = doc! { "reason": (format!("{stale:?}")) };
    log.warn("REPL", COPY_RELOADED, "store", message, attr);
    replica.reload(stale, |storage, from| {
        let time = rollback_time();
        let documents = write_rollback_files(storage, from, folder, &time)?;
        let message = "Writes that were not uploaded are rolled back";
        let attr = doc! {
            "documents": (documents as i64), "files": (format!("rollback/*/removed.{time}.bson")),
        };
        log.warn("REPL", WRITES_ROLLED_BACK, "store", message, attr);
        Ok(())
    })
}

/// Returns the time in the names of rollback files, in MongoDB's format.
fn rollback_time() -> String {
    let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H-%M-%S.%3f");
    now.to_string()
}
