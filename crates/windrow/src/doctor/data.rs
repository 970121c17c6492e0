//! Checks of folders: the data folder, and those whose files are indexed.

use std::path::Path;

use rustix::fs::{Access, access, statvfs};
use windrow_document::{Document, ValueRef, array};
use windrow_ingest::RUNS_NAME;

use super::check::Check;
use crate::client;
use crate::command_line::Failure;
use crate::data_folder::DataFolder;
use crate::memory;
use crate::progress_bar::format_grouped;
use crate::search::Searcher;

const FOLDER: &str = "data folder";
const DISK: &str = "free disk";
/// Folds and merges write new files before they remove old ones.
const FREE_BYTES_MIN: u64 = 256 << 20;
const FREE_BYTES_LOW: u64 = 2 << 30;

/// Checks the data folder. Returns when the newest run of `windrow index` ended.
pub fn check_folder(folder: &Path, checks: &mut Vec<Check>) -> Option<i64> {
    if !folder.is_dir() {
        let message = format!("{} does not exist yet", folder.display());
        checks.push(Check::skipped(FOLDER, message));
        return None;
    }
    checks.push(check_disk(folder));
    if let Err(error) = access(folder, Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK) {
        let message = format!("{}: {error}", folder.display());
        let advice = "this user must be able to read and write it";
        checks.push(Check::problem(FOLDER, message, advice));
        return None;
    }
    if folder
        .read_dir()
        .is_ok_and(|mut entries| entries.next().is_none())
    {
        checks.push(Check::good(
            FOLDER,
            format!("{} is empty", folder.display()),
        ));
        return None;
    }
    checks.push(check_opens(folder));
    read_newest_run(folder)
}

/// Opens the folder, which verifies the checksums of its log and catalog.
fn check_opens(folder: &Path) -> Check {
    let opened = DataFolder::open(folder, memory::default_memory_bytes());
    let closed = opened.and_then(|opened| match opened {
        DataFolder::Local(engine) => engine.close().map(|()| "").map_err(Failure::runtime),
        DataFolder::Server(address) => {
            let connected = client::connect(&address).map_err(Failure::runtime);
            connected.map(|_| ", open in a server")
        }
    });
    match closed {
        Ok(served) => Check::good(FOLDER, format!("{} opens{served}", folder.display())),
        Err(failure) => {
            let message = format!("{}: {failure}", folder.display());
            let advice = "restore a backup, or index the folders into a new data folder";
            Check::problem(FOLDER, message, advice)
        }
    }
}

/// Returns the end of the newest run. A folder without indexed files has none.
fn read_newest_run(folder: &Path) -> Option<i64> {
    let mut searcher = Searcher::open(folder).ok()?;
    let mut newest = None;
    let newest_first = array![{ "$sort": { "ended": -1 } }, { "$limit": 1 }];
    let mut read = |run: Document<'_>| {
        if let Some(ValueRef::DateTime(ended)) = run.get("ended") {
            newest = Some(ended);
        }
        false
    };
    searcher
        .aggregate_on(RUNS_NAME, &newest_first, &mut read)
        .ok()?;
    newest
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
        _ => Check::good(DISK, message),
    }
}

/// Checks a folder whose files are indexed. Returns what is wrong.
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
        assert_eq!(check_folder(folder.path(), &mut checks), None);
        assert!(
            checks
                .iter()
                .any(|check| check.message.ends_with("is empty"))
        );
        std::fs::write(folder.path().join("odd"), "").unwrap();
        checks.clear();
        check_folder(folder.path(), &mut checks);
        assert!(
            checks.iter().any(|check| check.level == Level::Problem),
            "{checks:?}"
        );
    }
}
