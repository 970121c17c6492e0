//! Opens a data folder: takes the LOCK that one process holds, and checks the FORMAT file that
//! names the layout of all other files.

use std::sync::Arc;

use crate::disk::{Disk, DiskLock, LockOutcome, read_all};
use crate::error::StorageError;

/// The content of the FORMAT file of this version. It is text for readers of the folder.
const FORMAT: &str = "windrow data format 1, draft 3\n";
const FORMAT_PATH: &str = "FORMAT";
const FORMAT_TEMPORARY: &str = "FORMAT.new";
const LOCK_PATH: &str = "LOCK";
const FOLDERS: [&str; 3] = ["log", "runs", "catalog"];

/// Locks the folder, checks or writes its FORMAT file, and creates its sub-folders.
///
/// Fails with `InUse` if another process has the lock, with `UnknownFormat` or `Damaged` if the
/// FORMAT file is not that of this version, and with `NotADataFolder` if the folder has no FORMAT
/// file but other files.
pub(crate) fn open_folder(disk: &Arc<dyn Disk>) -> Result<DiskLock, StorageError> {
    let lock = take_lock(disk.as_ref())?;
    match disk.open(FORMAT_PATH) {
        Ok(file) => {
            let found = read_all(file.as_ref()).map_err(at(disk, FORMAT_PATH))?;
            check_format(disk.as_ref(), &found)?;
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => start_folder(disk)?,
        Err(error) => return Err(StorageError::from_io(disk.place(FORMAT_PATH), error)),
    }
    for folder in FOLDERS {
        disk.create_dir_all(folder).map_err(at(disk, folder))?;
    }
    disk.sync_dir("").map_err(at(disk, ""))?;
    Ok(lock)
}

/// Returns a function for `map_err` that adds the place of `path` to an I/O error.
pub(crate) fn at(
    disk: &Arc<dyn Disk>,
    path: &str,
) -> impl FnOnce(std::io::Error) -> StorageError + use<> {
    let place = disk.place(path);
    move |error| StorageError::from_io(place, error)
}

fn take_lock(disk: &dyn Disk) -> Result<DiskLock, StorageError> {
    match disk.lock(LOCK_PATH) {
        Ok(LockOutcome::Ours(lock)) => Ok(lock),
        Ok(LockOutcome::Theirs(owner)) => Err(StorageError::InUse {
            folder: disk.place(""),
            owner,
        }),
        Err(error) => Err(StorageError::from_io(disk.place(LOCK_PATH), error)),
    }
}

fn check_format(disk: &dyn Disk, found: &[u8]) -> Result<(), StorageError> {
    if found == FORMAT.as_bytes() {
        return Ok(());
    }
    let place = disk.place(FORMAT_PATH);
    let text = String::from_utf8_lossy(found);
    if text.starts_with("windrow data format ") {
        return Err(StorageError::UnknownFormat {
            place,
            found: text.trim().to_owned(),
        });
    }
    let start: String = text.chars().take(40).collect();
    Err(StorageError::damaged(
        place,
        format!("it should say which format it is, and says {start:?}"),
    ))
}

/// Writes FORMAT into a folder that has none. Fails if the folder has files of a database without
/// FORMAT, or files that are not of a database: the files of another program must not be mixed
/// with ours.
///
/// 1. Write and sync the text under a temporary name.
/// 2. Rename it and sync the folder. A crash therefore never leaves an incomplete FORMAT file.
fn start_folder(disk: &Arc<dyn Disk>) -> Result<(), StorageError> {
    let mut names = disk.list("").map_err(at(disk, ""))?;
    names.sort();
    let is_allowed = |name: &str| [LOCK_PATH, FORMAT_TEMPORARY, "lost+found"].contains(&name);
    if let Some(name) = names.iter().find(|name| FOLDERS.contains(&name.as_str())) {
        let what = format!("it is missing, though {name:?} stands beside it");
        return Err(StorageError::damaged(disk.place(FORMAT_PATH), what));
    }
    if let Some(name) = names
        .iter()
        .find(|name| !is_allowed(name) && !name.starts_with('.'))
    {
        return Err(StorageError::NotADataFolder {
            folder: disk.place(""),
            found: name.clone(),
        });
    }
    let file = disk
        .create(FORMAT_TEMPORARY)
        .map_err(at(disk, FORMAT_PATH))?;
    file.write_at(0, FORMAT.as_bytes())
        .map_err(at(disk, FORMAT_PATH))?;
    file.sync_data().map_err(at(disk, FORMAT_PATH))?;
    disk.rename(FORMAT_TEMPORARY, FORMAT_PATH)
        .map_err(at(disk, FORMAT_PATH))?;
    disk.sync_dir("").map_err(at(disk, ""))
}
