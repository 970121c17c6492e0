//! Checks of folders: the data folder, and those whose files are indexed.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{Access, access, statvfs};
use windrow_collection::{Error, StorageError};
use windrow_document::{Document, ValueRef, array};
use windrow_ingest::RUNS_NAME;
use windrow_storage::MasterKey;

use super::check::Check;
use crate::address_file;
use crate::command_line::Failure;
use crate::data_folder::{DataFolder, engine_options};
use crate::encryption;
use crate::memory;
use crate::progress_bar::format_grouped;
use crate::search::Searcher;

const FOLDER: &str = "data folder";
const DISK: &str = "free disk";
/// Folds and merges write new files before they remove old ones, so they need free space.
const FREE_BYTES_MIN: u64 = 256 << 20;
const FREE_BYTES_LOW: u64 = 2 << 30;

/// What is known about a readable data folder.
#[derive(Debug, Default, PartialEq)]
pub struct FoundData {
    /// The end of the newest run of `windrow index`.
    pub newest_run_ms: Option<i64>,
    /// A server has the folder open.
    pub is_served: bool,
}

/// Checks the data folder of a server. `has_store` is `true` if its database is in an object store.
pub fn check_folder(
    folder: &Path,
    key_file: Option<&Path>,
    has_store: bool,
    checks: &mut Vec<Check>,
) -> FoundData {
    let nothing = FoundData::default();
    if !folder.is_dir() {
        let message = format!("{} does not exist yet", folder.display());
        checks.push(Check::skipped(FOLDER, message));
        return nothing;
    }
    checks.push(check_disk(folder));
    if let Err(error) = access(folder, Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK) {
        let message = format!("{}: {error}", folder.display());
        let advice = "this user must be able to read and write it";
        checks.push(Check::problem(FOLDER, message, advice));
        return nothing;
    }
    if folder
        .read_dir()
        .is_ok_and(|mut entries| entries.next().is_none())
    {
        checks.push(Check::ok(FOLDER, format!("{} is empty", folder.display())));
        return nothing;
    }
    match encryption::find_key(key_file) {
        Ok(key) => check_opens(folder, key, has_store, checks),
        Err(failure) => {
            let advice = "this user must be able to read it, and other users must not";
            checks.push(Check::problem("encryption key", failure, advice));
            nothing
        }
    }
}

/// Opens the folder, which verifies the checksums of its log and catalog, and reads from it.
fn check_opens(
    folder: &Path,
    key: Option<Arc<MasterKey>>,
    has_store: bool,
    checks: &mut Vec<Check>,
) -> FoundData {
    let shown = folder.display();
    if has_store && address_file::read_address(folder, None).is_none() {
        // The folder contains only a part of the data, so it cannot be opened alone.
        let message = format!("{shown}: its server is not running, and only that can open it");
        checks.push(Check::skipped(FOLDER, message));
        return FoundData::default();
    }
    let options = engine_options(memory::default_memory_bytes(), key);
    let read = match DataFolder::open_with(folder, &options, Duration::ZERO) {
        Ok(DataFolder::Local(engine)) => {
            let newest = read_newest_run(DataFolder::Local(engine.clone()));
            let found = FoundData {
                newest_run_ms: newest.ok().flatten(),
                is_served: false,
            };
            engine
                .close()
                .map(|()| found)
                .map_err(|error| OpeningProblem::new(&error))
        }
        Ok(server) => {
            let newest = read_newest_run(server);
            let found = newest.map(|newest_run_ms| FoundData {
                newest_run_ms,
                is_served: true,
            });
            found.map_err(|failure| OpeningProblem {
                reason: failure.to_string(),
                advice: SERVER_ADVICE,
            })
        }
        Err(error) => Err(OpeningProblem::new(&error)),
    };
    match read {
        Ok(found) => {
            let served = if found.is_served {
                ", open in a server"
            } else {
                ""
            };
            checks.push(Check::ok(FOLDER, format!("{shown} opens{served}")));
            found
        }
        Err(OpeningProblem { reason, advice }) => {
            checks.push(Check::problem(FOLDER, format!("{shown}: {reason}"), advice));
            FoundData::default()
        }
    }
}

const SERVER_ADVICE: &str = "the server that has the folder open does not answer; see its log";

/// Why a folder cannot be opened, and what to do about it.
struct OpeningProblem {
    reason: String,
    advice: &'static str,
}

impl OpeningProblem {
    fn new(error: &Error) -> OpeningProblem {
        let advice = match error {
            Error::Storage(StorageError::Encrypted { .. } | StorageError::WrongKey { .. }) => {
                "name the file of its key with --encryption-key-file"
            }
            Error::Storage(StorageError::NotEncrypted { .. }) => {
                "leave the key out; only a new data folder can be encrypted"
            }
            Error::Storage(StorageError::InUse { .. }) => {
                "if a process of another command has it open, wait until it ends"
            }
            _ => "restore a backup, or index the folders into a new data folder",
        };
        OpeningProblem {
            reason: error.to_string(),
            advice,
        }
    }
}

/// Returns the end of the newest run. `None` if no files are indexed.
fn read_newest_run(opened: DataFolder) -> Result<Option<i64>, Failure> {
    let Some(mut searcher) = Searcher::from_folder(opened)? else {
        return Ok(None);
    };
    let mut newest = None;
    let newest_first = array![{ "$sort": { "ended": -1 } }, { "$limit": 1 }];
    let mut read = |run: Document<'_>| {
        if let Some(ValueRef::DateTime(ended)) = run.get("ended") {
            newest = Some(ended);
        }
        false
    };
    searcher.aggregate_on(RUNS_NAME, &newest_first, &mut read)?;
    Ok(newest)
}

fn check_disk(folder: &Path) -> Check {
    let free = match statvfs(folder) {
        Ok(disk) => disk.f_bavail.saturating_mul(disk.f_frsize),
        Err(error) => return Check::skipped(DISK, error),
    };
    rate_disk(free)
}

fn rate_disk(free_bytes: u64) -> Check {
    let message = format!("{} MB", format_grouped(free_bytes / 1_000_000));
    match free_bytes {
        ..FREE_BYTES_MIN => {
            let advice = "writes fail soon; at least 256 MB have to be free";
            Check::problem(DISK, message, advice)
        }
        FREE_BYTES_MIN..FREE_BYTES_LOW => Check::warning(DISK, message, "the disk is soon full"),
        _ => Check::ok(DISK, message),
    }
}

/// Checks a folder whose files are indexed. Returns the problem, if any.
pub fn check_source(folder: &Path) -> Option<Check> {
    const NAME: &str = "indexed folder";
    let error = match folder.symlink_metadata() {
        Ok(_) => folder
            .read_dir()
            .map(drop)
            .err()
            .filter(|_| folder.is_dir())?,
        Err(error) => error,
    };
    let message = format!("{}: {error}", folder.display());
    let advice =
        "its documents are kept; if the files were deleted, run `windrow index --remove FOLDER`";
    Some(match error.kind() {
        std::io::ErrorKind::NotFound => Check::warning(NAME, message, advice),
        _ => Check::problem(NAME, message, "this user must be able to read it"),
    })
}

#[cfg(test)]
mod tests {
    use super::super::check::Level;
    use super::*;

    #[test]
    fn a_full_disk_is_a_problem() {
        for (bytes, expected) in [
            (0, Level::Problem),
            (FREE_BYTES_MIN, Level::Warning),
            (FREE_BYTES_LOW, Level::Good),
        ] {
            assert_eq!(rate_disk(bytes).level, expected, "{bytes}");
        }
    }

    #[test]
    fn folders_are_checked() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(check_source(folder.path()), None);
        let missing = check_source(&folder.path().join("x")).unwrap();
        assert_eq!(missing.level, Level::Warning);
        let mut checks = Vec::new();
        let found = check_folder(folder.path(), None, false, &mut checks);
        assert_eq!(found, FoundData::default());
        assert!(
            checks
                .iter()
                .any(|check| check.message.ends_with("is empty"))
        );
        std::fs::write(folder.path().join("odd"), "").unwrap();
        checks.clear();
        check_folder(folder.path(), None, false, &mut checks);
        assert!(
            checks.iter().any(|check| check.level == Level::Problem),
            "{checks:?}"
        );
    }
}
