//! Opens a database in an object store: follows its log until no other server extends it, and takes
//! it over.

use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use windrow_collection::{Position, StorageError, write_rollback_files};
use windrow_document::doc;
use windrow_server::{Log, Severity};
use windrow_storage::{
    ClusterOptions, Disk, Followed, Patience, Promotion, Replica, Stale, Storage, StorageOptions,
};

use super::options::StoreOptions;
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

/// Opens the storage of a server that is the primary of the database at `store`. Waits as long as
/// another server is.
pub fn open_as_primary(
    store: &StoreOptions,
    disk: Arc<dyn Disk>,
    folder: &Path,
    storage: StorageOptions,
    log: &Arc<Log>,
) -> Result<Storage, StorageError> {
    let options = ClusterOptions {
        bucket: open_bucket(&store.url, &store.options)?,
        address: store.advertise.clone(),
        cache_bytes: store.cache_bytes,
        heartbeat: HEARTBEAT,
        retention: RETENTION,
        patience: Arc::new(Backoff { log: log.clone() }),
    };
    let mut replica = Replica::open(disk, storage, options)?;
    let say = |id, message: &str, position: Position| {
        let attr = doc! { "store": (store.url.clone()), "position": (position.0 as i64) };
        log.info("REPL", id, "store", message, attr);
    };
    let mut silent_since = Instant::now();
    let mut is_waiting = false;
    loop {
        replica = match replica.follow(&mut ()) {
            Ok(Followed::Advanced) => {
                silent_since = Instant::now();
                continue;
            }
            Ok(Followed::Stale(stale)) => reload(replica, stale, folder, log)?,
            Ok(Followed::AtEnd) => {
                let is_silent = silent_since.elapsed() >= store.election_timeout;
                if !is_silent && !replica.is_without_primary() {
                    if !is_waiting {
                        is_waiting = true;
                        let message = "Another server is the primary; this one follows its log";
                        say(STORE_ID + 1, message, replica.written());
                    }
                    thread::sleep(POLL_INTERVAL);
                    continue;
                }
                let position = replica.written();
                match replica.take_over()? {
                    Promotion::Won(primary) => {
                        say(STORE_ID + 2, "This server is the primary now", position);
                        return primary.into_storage();
                    }
                    Promotion::Behind(replica) => *replica,
                    Promotion::Stale(replica, stale) => reload(*replica, stale, folder, log)?,
                }
            }
            // The primary cannot reach the object store either, or this server would not know.
            Err(StorageError::Unavailable { .. }) => {
                silent_since = Instant::now();
                thread::sleep(POLL_INTERVAL);
                continue;
            }
            Err(error) => return Err(error),
        };
    }
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
