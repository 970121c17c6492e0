//! Looks at a database in an object store without being one of its servers.

use std::collections::HashSet;
use std::sync::Arc;

use crate::bucket::{Bucket, NoRetries};
use crate::catalog::{LoadedRows, Rows};
use crate::encryption::MasterKey;
use crate::error::StorageError;
use crate::local_state::hex;
use crate::log::Kind;
use crate::position::Position;
use crate::run_id::RunId;
use crate::run_objects;
use crate::shared_log::boundary::{self, Boundary, CHECKPOINTS};
use crate::shared_log::database::Database;
use crate::shared_log::log_object::{self, ObjectKind};
use crate::shared_log::members::MemberState;
use crate::shared_log::{self, LogEnd, database, members, shared_keys};
use crate::storage::FILE_NAME;

/// The report of [`inspect`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreReport {
    /// The id of the database, in hexadecimal digits.
    pub database: String,
    /// The servers that have announced themselves.
    pub members: Vec<MemberState>,
    /// The address of the server that took over the log last. "" if it is before the first log
    /// object that is needed.
    pub primary: String,
    /// True if the last server has ended.
    pub is_released: bool,
    /// The number of takeovers.
    pub epoch: u64,
    /// The newest position.
    pub newest: Position,
    /// The number of the first log object that a new server reads.
    pub first_log_object: u64,
    /// The number of the newest log object.
    pub newest_log_object: u64,
    /// The number of log objects, those that are not needed included.
    pub log_objects: u64,
    /// The number of checkpoints of the catalog.
    pub checkpoints: u64,
    /// The number of runs and their size in bytes.
    pub runs: u64,
    /// The size of all runs in bytes.
    pub run_bytes: u64,
    /// Runs that the catalog names and that do not exist: the database is damaged.
    pub missing: Vec<RunId>,
    /// Runs of earlier epochs that the catalog does not name.
    pub orphans: Vec<RunId>,
}

/// Returns the object store with the database as it was before encryption, for [`inspect`] and
/// [`collect_garbage`]. If it is not encrypted, returns `bucket`.
///
/// # Errors
/// Fails with `Unsuitable` if there is no database, or if it is encrypted and there is no master
/// key, or the other way round, with `WrongKey` if the master key is another one, and if the object
/// store fails.
pub fn unlock(
    bucket: Arc<dyn Bucket>,
    master: Option<&MasterKey>,
) -> Result<Arc<dyn Bucket>, StorageError> {
    let database = database_in(bucket.as_ref())?;
    let keys = shared_keys::keys_of(bucket.as_ref(), database, master)?;
    Ok(shared_keys::with_keys(bucket, keys.as_ref()))
}

/// Decrypts the bytes of a file that [`Storage::seal`](crate::Storage::seal) has encrypted. `place`
/// names it in errors.
///
/// # Errors
/// Fails with `Damaged` if the bytes are not those of such a file of this database, and as
/// [`unlock`] does.
pub fn unseal(
    bucket: &dyn Bucket,
    master: &MasterKey,
    bytes: &[u8],
    place: &str,
) -> Result<Vec<u8>, StorageError> {
    let database = database_in(bucket)?;
    let keys = shared_keys::keys_of(bucket, database, Some(master))?;
    let opened = keys.ok_or("it is not encrypted");
    let opened = opened.and_then(|keys| keys.unseal(FILE_NAME, bytes));
    opened.map_err(|what| StorageError::damaged(place, what))
}

fn database_in(bucket: &dyn Bucket) -> Result<Database, StorageError> {
    database::find(bucket)?.ok_or_else(|| StorageError::Unsuitable {
        place: bucket.place(""),
        what: "there is no database".to_owned(),
    })
}

/// Reads the log from the newest boundary on, and compares the runs with the catalog. `run_of`
/// returns the run that a catalog row names. Servers can change the database meanwhile.
///
/// # Errors
/// Fails with `Damaged` if an object of the log or the checkpoint cannot be read, with `Unsuitable`
/// if there is no database, and if the object store fails.
pub fn inspect(
    bucket: &Arc<dyn Bucket>,
    run_of: &dyn Fn(&[u8]) -> Option<RunId>,
) -> Result<StoreReport, StorageError> {
    let bucket = bucket.as_ref();
    let first = look(bucket, run_of)?;
    if first.missing.is_empty() {
        return Ok(first);
    }
    // A server may have deleted them after the log was read. Then the log does not name them now.
    let mut report = look(bucket, run_of)?;
    report.missing.retain(|run| first.missing.contains(run));
    Ok(report)
}

/// Reads the log, and then the names of the runs.
fn look(
    bucket: &dyn Bucket,
    run_of: &dyn Fn(&[u8]) -> Option<RunId>,
) -> Result<StoreReport, StorageError> {
    let database = database_in(bucket)?;
    let (boundary, log) = loop {
        let (_, boundary) = boundary::newest(bucket)?;
        if let Some(log) = read_log(bucket, boundary)? {
            break (boundary, log);
        }
        // Garbage was collected meanwhile.
    };
    let ReadLog { rows, end, primary } = log;
    let named: HashSet<RunId> = rows.keys().filter_map(|key| run_of(key)).collect();
    let names = bucket.list(run_objects::FOLDER, "")?;
    let found: Vec<RunId> = names
        .iter()
        .filter_map(|name| run_objects::run_from_name(name))
        .collect();
    let mut run_bytes = 0;
    for run in &found {
        run_bytes += bucket.size(&run_objects::name(*run))?.unwrap_or(0);
    }
    let exists: HashSet<RunId> = found.iter().copied().collect();
    let mut missing: Vec<RunId> = named.difference(&exists).copied().collect();
    missing.sort_unstable();
    let is_orphan = |run: &RunId| run_objects::epoch_of(*run) < end.epoch && !named.contains(run);
    Ok(StoreReport {
        database: hex(database.id),
        members: members::states(&members::all(bucket)?),
        primary,
        is_released: end.is_released,
        epoch: end.epoch,
        newest: end.position.previous(),
        first_log_object: boundary.start.max(1),
        newest_log_object: end.number - 1,
        log_objects: bucket.list(log_object::FOLDER, "")?.len() as u64,
        checkpoints: bucket.list(CHECKPOINTS, "")?.len() as u64,
        runs: found.len() as u64,
        run_bytes,
        missing,
        orphans: found.into_iter().filter(is_orphan).collect(),
    })
}

/// Deletes what no server needs: log objects and checkpoints before the newest boundary, and the
/// runs that `report` calls orphans. Returns the number of deleted runs.
///
/// # Errors
/// Fails if the object store fails.
pub fn collect_garbage(
    bucket: &Arc<dyn Bucket>,
    report: &StoreReport,
) -> Result<u64, StorageError> {
    let bucket = bucket.as_ref();
    let (_, boundary) = boundary::newest(bucket)?;
    shared_log::delete_covered(bucket, &boundary, &NoRetries)?;
    for run in &report.orphans {
        bucket.delete(&run_objects::name(*run))?;
    }
    Ok(report.orphans.len() as u64)
}

/// The content of the log.
struct ReadLog {
    /// The rows of the catalog at the end of the log.
    rows: Rows,
    end: LogEnd,
    /// The address of the last server that took over.
    primary: String,
}

/// Reads the log from a boundary on. Returns `None` if something that is needed was deleted
/// meanwhile.
fn read_log(bucket: &dyn Bucket, boundary: Boundary) -> Result<Option<ReadLog>, StorageError> {
    let mut loaded = match boundary.checkpoint {
        None => LoadedRows::empty(),
        Some(name) => {
            let Some(bytes) = bucket.get(&name.path())? else {
                boundary::check_replaced(bucket, &NoRetries, boundary, "its checkpoint")?;
                return Ok(None);
            };
            let place = bucket.place(&name.path());
            LoadedRows::decode(&bytes, name.position)
                .map_err(|what| StorageError::damaged(place, what))?
        }
    };
    let start = boundary.start.max(1);
    let (mut number, mut end, mut primary) = (start, LogEnd::EMPTY, String::new());
    while let Some(object) = shared_log::read(bucket, number)? {
        if number > start && !shared_log::follows(bucket, &object, end.position)? {
            return Ok(None);
        }
        for record in &object.records {
            if record.payload.kind == Kind::Catalog {
                let place = || bucket.place(&log_object::name(number));
                let payload = record.payload.payload();
                let payload = payload.map_err(|what| StorageError::damaged(place(), what))?;
                loaded.apply(record.position, &payload)?;
            }
        }
        if object.header.kind == ObjectKind::Takeover {
            primary.clone_from(&object.address);
        }
        end = LogEnd::after(&object);
        number += 1;
    }
    let checkpointed = boundary.checkpoint.map(|name| name.position);
    if checkpointed.is_some_and(|position| end.position <= position) {
        boundary::check_replaced(bucket, &NoRetries, boundary, "a part of the log")?;
        return Ok(None);
    }
    Ok(Some(ReadLog {
        rows: loaded.into_rows(),
        end,
        primary,
    }))
}
