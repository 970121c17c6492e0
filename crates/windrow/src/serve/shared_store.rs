//! Opens a database in an object store: follows its log until no other server extends it, and takes
//! it over.

use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use windrow_collection::{
    Engine, EngineOptions, Error, Following, StorageError, write_rollback_files,
};
use windrow_document::doc;
use windrow_server::{Log, Severity, Stop};
use windrow_storage::{ClusterOptions, Disk, Followed, Patience, Promotion, Replica, Stale};

use super::store_options::StoreOptions;
use crate::store::open_bucket;

/// A primary without writes extends the log this often.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// Followers that are so far behind find the log in the object store.
const RETENTION: Duration = Duration::from_secs(60);
/// A follower looks for the next log object this often.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Failed requests are repeated after this time, then after twice the time, and so on.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// The ids of log lines. MongoDB has no such events.
const STORE_ID: i32 = 9_000_030;

/// Repeats failed requests without end.
struct Backoff {
    log: Arc<Log>,
}

impl Patience for Backoff {
    fn again(&self, attempt: u32, error: &StorageError) -> bool {
        if attempt == 2 {
            let attr = doc! { "error": (error.to_string()) };
            let message = "The object store does not answer; requests are repeated";
            self.log.write(
                Severity::Warning,
                "STORAGE",
                STORE_ID,
                "store",
                message,
                attr,
            );
        }
        thread::sleep(LONGEST_PAUSE.min(FIRST_PAUSE * 2_u32.saturating_pow(attempt.min(16))));
        true
    }
}

/// Opens a database in an object store. If no other server extends the log, this one becomes the
/// primary. Otherwise it follows, and the result contains the work that remains.
pub fn open_shared(
    store: &StoreOptions,
    disk: Arc<dyn Disk>,
    folder: &Path,
    options: EngineOptions,
    log: &Arc<Log>,
) -> Result<(Arc<Engine>, Option<FollowTask>), Error> {
    let cluster = ClusterOptions {
        bucket: open_bucket(&store.url, &store.options)?,
        address: store.advertise.clone(),
        cache_bytes: store.cache_bytes,
        heartbeat: HEARTBEAT,
        retention: RETENTION,
        patience: Arc::new(Backoff { log: log.clone() }),
    };
    let mut replica = Replica::open(disk, options.storage.clone(), cluster)?;
    loop {
        replica = match replica.follow(&mut ()) {
            Ok(Followed::Advanced) => continue,
            Ok(Followed::Stale(stale)) => reload(replica, stale, folder, log)?,
            Ok(Followed::AtEnd) if !replica.is_without_primary() => break,
            Ok(Followed::AtEnd) => match replica.take_over()? {
                Promotion::Won(primary) => {
                    let engine = Engine::open_storage(primary.into_storage()?, options)?;
                    say(log, PRIMARY, "This server is the primary now", &engine);
                    return Ok((engine, None));
                }
                Promotion::Behind(replica) => *replica,
                Promotion::Stale(replica, stale) => reload(*replica, stale, folder, log)?,
            },
            Err(StorageError::Unavailable { .. }) => {
                thread::sleep(POLL_INTERVAL);
                continue;
            }
            Err(error) => return Err(error.into()),
        };
    }
    let (engine, following) = Engine::open_following(replica.storage(), options)?;
    let message = "Another server is the primary; this one follows its log";
    say(log, FOLLOWS, message, &engine);
    let task = FollowTask {
        replica,
        following,
        engine: engine.clone(),
        election_timeout: store.election_timeout,
        log: log.clone(),
    };
    Ok((engine, Some(task)))
}

/// The ids of log lines about the role of a server.
const FOLLOWS: i32 = STORE_ID + 1;
const PRIMARY: i32 = STORE_ID + 2;

fn say(log: &Log, id: i32, message: &str, engine: &Engine) {
    let attr = doc! { "position": (engine.written().0 as i64) };
    log.info("REPL", id, "store", message, attr);
}

/// The work of a server that follows another one.
pub struct FollowTask {
    replica: Replica,
    following: Following,
    engine: Arc<Engine>,
    election_timeout: Duration,
    log: Arc<Log>,
}

impl FollowTask {
    /// Follows the log until the server stops or becomes the primary.
    ///
    /// Fails if the copy cannot be continued: the process has to start again.
    pub fn run(mut self, stop: &Stop) -> Result<(), Error> {
        let mut silent_since = Instant::now();
        while !stop.is_requested() {
            match self.replica.follow(&mut self.following) {
                Ok(Followed::Advanced) => {
                    silent_since = Instant::now();
                    self.following.adopt()?;
                    continue;
                }
                Ok(Followed::Stale(stale)) => return Err(stale_copy(stale)),
                Ok(Followed::AtEnd) => self.following.adopt()?,
                // The primary cannot reach the object store either, or this server would not know.
                Err(StorageError::Unavailable { .. }) => silent_since = Instant::now(),
                Err(error) => return Err(error.into()),
            }
            let is_silent = silent_since.elapsed() >= self.election_timeout;
            if !is_silent && !self.replica.is_without_primary() {
                stop.wait(POLL_INTERVAL);
                continue;
            }
            match self.replica.take_over()? {
                Promotion::Won(primary) => {
                    primary.into_storage()?;
                    self.engine.begin_writing(self.following)?;
                    say(
                        &self.log,
                        PRIMARY,
                        "This server is the primary now",
                        &self.engine,
                    );
                    return Ok(());
                }
                Promotion::Behind(replica) => self.replica = *replica,
                Promotion::Stale(_, stale) => return Err(stale_copy(stale)),
            }
        }
        Ok(())
    }
}

fn stale_copy(stale: Stale) -> Error {
    let what = format!("the local copy cannot be continued: {stale:?}");
    Error::Interrupted(what)
}

/// Loads the copy again, and writes rollback files of what only this server has.
fn reload(
    replica: Replica,
    stale: Stale,
    folder: &Path,
    log: &Arc<Log>,
) -> Result<Replica, StorageError> {
    let message = "The local copy cannot be continued and is loaded again";
    let attr = doc! { "reason": (format!("{stale:?}")) };
    log.write(
        Severity::Warning,
        "REPL",
        STORE_ID + 3,
        "store",
        message,
        attr,
    );
    replica.reload(stale, |storage, from| {
        let time = rollback_time();
        let documents = write_rollback_files(storage, from, folder, &time)?;
        let message = "Writes that were not uploaded are rolled back";
        let attr = doc! {
            "documents": (documents as i64), "files": (format!("rollback/*/removed.{time}.bson")),
        };
        log.write(
            Severity::Warning,
            "REPL",
            STORE_ID + 4,
            "store",
            message,
            attr,
        );
        Ok(())
    })
}

/// Returns the time in the names of rollback files, as MongoDB writes it.
fn rollback_time() -> String {
    let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H-%M-%S.%3f");
    now.to_string()
}
